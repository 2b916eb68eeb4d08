//! One law for the windows of all connections over a path: together they yield as one
//! does (ctrlTCP: NEAT D3.2, appendix D).
//!
//! The law sees one flow, whose bytes and losses are those of all connections. Its window
//! is divided among them: each gets the same, and what one does not use goes to the
//! others. If a part becomes less than the smallest window, connections take turns: as
//! many as can have the smallest window, and the others wait. A connection that comes
//! later, or that replaces another, finds what the law knows of the path.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::rounds::Rounds;
use super::yielding::YieldingWindow;
use super::{ConnectionSample, LIMITING_SHARE, MIN_WINDOW_SEGMENTS};

/// A connection that leaves a part of its window unused gets this many times what it
/// uses, so that it can grow.
const ROOM_TO_GROW: f64 = 2.0;

/// Where n connections take turns, one that waits reads two segments every n times this.
/// A sender with a closed window tries after about as long (its persist timer, RFC 9293,
/// section 3.8.6.1; on Linux 200 ms).
const WAIT_PER_CONNECTION: Duration = Duration::from_millis(200);

/// If the law has not heard of any connection for so many round trips, it must not take the
/// time since then for a round trip.
const SILENT_ROUND_TRIPS: u32 = 3;

/// Another connection leads after this silence: the reader of one that leads is slow.
const LEADER_SILENCE: Duration = Duration::from_millis(100);

/// The connections over a path. Clones are the same path.
#[derive(Debug, Clone, Default)]
pub struct WindowGroup(Arc<Mutex<Coupled>>);

#[derive(Debug, Clone, Default)]
struct Coupled {
    law: YieldingWindow,
    /// Bytes and segments out of order of all connections that ever were.
    bytes: u64,
    out_of_order: u32,
    /// Largest segment, bytes.
    segment: f64,
    /// Of the law, bytes.
    window: f64,
    /// The connection with whose samples the law hears of all, and when that last was.
    leader: u64,
    led: Duration,
    /// The least queueing delay of all since then, s.
    queueing: Option<f64>,
    members: BTreeMap<u64, Member>,
    next: u64,
}

/// One connection.
#[derive(Debug, Clone, Default)]
struct Member {
    /// As of the last sample.
    bytes: u64,
    out_of_order: u32,
    rounds: Rounds,
    /// Its part of the window, bytes.
    part: f64,
    /// What it can use of a window, bytes; infinite unless it leaves some unused.
    need: f64,
    /// Whether it has a response to receive.
    is_active: bool,
    /// Whether its window counts: not at the start of a response, nor in a pause.
    is_in_force: bool,
}

/// The part of the window that a connection gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Part {
    /// Bytes.
    pub(crate) window: f64,
    /// The time between two reads while others have their turn.
    pub(crate) wait: Option<Duration>,
}

impl Part {
    /// The window of a connection that shares it with no other.
    pub(crate) fn whole(window: f64) -> Self {
        Self { window, wait: None }
    }
}

/// One connection's place in a group, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    group: WindowGroup,
    number: u64,
}

impl WindowGroup {
    /// A place for another connection.
    pub(crate) fn join(&self) -> Seat {
        let mut coupled = self.coupled();
        let number = coupled.next;
        coupled.next += 1;
        coupled.members.insert(number, Member::default());
        drop(coupled);
        Seat {
            group: self.clone(),
            number,
        }
    }

    fn coupled(&self) -> MutexGuard<'_, Coupled> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Mean rate of this connection in the last round trip, byte/s.
    pub(crate) fn rate(&self) -> f64 {
        let coupled = self.group.coupled();
        let member = coupled.members.get(&self.number);
        member.map_or(0.0, |member| member.rounds.rate())
    }

    /// Whether a queue of others may hold the window down.
    pub(crate) fn sees_queue(&self) -> bool {
        self.group.coupled().law.sees_queue()
    }

    /// Takes a sample; returns the part of the window.
    pub(crate) fn update(&self, now: Duration, sample: &ConnectionSample) -> Part {
        self.group.coupled().update(self.number, now, sample)
    }

    /// Takes a sample while the window is not in force; returns the part of the window.
    pub(crate) fn wait(&self, now: Duration, sample: &ConnectionSample) -> Part {
        self.group.coupled().wait(self.number, now, sample)
    }

    /// The connection has nothing to receive until its next sample.
    pub(crate) fn rest(&self) {
        if let Some(member) = self.group.coupled().members.get_mut(&self.number) {
            member.is_active = false;
        }
    }
}

/// A copy of a connection, in a group of its own that knows the same.
impl Clone for Seat {
    fn clone(&self) -> Self {
        let coupled = self.group.coupled().clone();
        Self {
            group: WindowGroup(Arc::new(Mutex::new(coupled))),
            number: self.number,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.group.coupled().members.remove(&self.number);
    }
}

impl Coupled {
    fn update(&mut self, number: u64, now: Duration, sample: &ConnectionSample) -> Part {
        let all = self.add(number, now, sample, true);
        if self.leads(number, now) {
            self.window = if now <= self.led + sample.rtt * SILENT_ROUND_TRIPS {
                self.law.update(now, &all)
            } else {
                self.law.wait(now, &all)
            };
            self.led = now;
            self.queueing = None;
        }
        self.part(number)
    }

    fn wait(&mut self, number: u64, now: Duration, sample: &ConnectionSample) -> Part {
        let all = self.add(number, now, sample, false);
        if self.leads(number, now) {
            let other = self.active().find(|(_, other)| other.is_in_force);
            match other.map(|(&other, _)| other) {
                Some(other) => self.leader = other,
                None => {
                    self.window = self.law.wait(now, &all);
                    self.led = now;
                }
            }
        }
        self.part(number)
    }

    /// Whether the law hears of all connections now: with the samples of one connection,
    /// so that none counts twice in a round trip.
    fn leads(&mut self, number: u64, now: Duration) -> bool {
        if now >= self.led + LEADER_SILENCE {
            self.leader = number;
        }
        self.leader == number
    }

    /// Adds a connection's sample to those of all. Its rate counts if its window is
    /// in force.
    fn add(
        &mut self,
        number: u64,
        now: Duration,
        sample: &ConnectionSample,
        is_in_force: bool,
    ) -> ConnectionSample {
        let member = self.members.entry(number).or_default();
        (member.is_active, member.is_in_force) = (true, is_in_force);
        let more = sample.bytes.saturating_sub(member.bytes);
        self.bytes = self.bytes.saturating_add(more);
        let lost = sample.out_of_order.wrapping_sub(member.out_of_order);
        self.out_of_order = self.out_of_order.wrapping_add(lost);
        (member.bytes, member.out_of_order) = (sample.bytes, sample.out_of_order);
        if is_in_force {
            member.rounds.update(now, sample, f64::INFINITY);
            let used = member.rounds.rate() * sample.rtt.as_secs_f64();
            let is_limited = used >= LIMITING_SHARE * member.part
                || member.part < 2.0 * MIN_WINDOW_SEGMENTS * sample.segment;
            member.need = if is_limited {
                f64::INFINITY
            } else {
                ROOM_TO_GROW * used
            };
        } else {
            member.rounds.skip(now, sample);
            member.need = f64::INFINITY;
        }
        self.segment = self.segment.max(sample.segment);
        self.queueing = match (self.queueing, sample.queueing) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        ConnectionSample {
            bytes: self.bytes,
            out_of_order: self.out_of_order,
            segment: self.segment,
            queueing: self.queueing,
            ..*sample
        }
    }

    fn active(&self) -> impl Iterator<Item = (&u64, &Member)> {
        self.members.iter().filter(|(_, member)| member.is_active)
    }

    /// What this connection gets of the window.
    fn part(&mut self, number: u64) -> Part {
        let smallest = MIN_WINDOW_SEGMENTS * self.segment;
        let count = self.active().count().max(1);
        let fit = ((self.window / smallest) as usize).clamp(1, count);
        let place = self.active().position(|(each, _)| *each == number);
        let has_turn = place.unwrap_or_default() < fit;
        let need = self.members.get(&number).map_or(0.0, |member| member.need);
        let window = match (has_turn, fit < count) {
            (false, _) => smallest,
            (true, true) => self.window / fit as f64,
            (true, false) => self.share(need).max(smallest),
        };
        if let Some(member) = self.members.get_mut(&number) {
            member.part = window;
        }
        let wait = WAIT_PER_CONNECTION.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        Part {
            window,
            wait: (!has_turn).then_some(wait),
        }
    }

    /// The part of a connection that needs so much, bytes: as much, but no more than all
    /// others that need more. What nobody needs is shared, so that all can grow.
    fn share(&self, need: f64) -> f64 {
        let mut needs: Vec<f64> = self.active().map(|(_, member)| member.need).collect();
        needs.sort_by(f64::total_cmp);
        let mut left = self.window;
        for (served, need_of_one) in needs.iter().enumerate() {
            let each = left / (needs.len() - served) as f64;
            if *need_of_one >= each {
                return need.min(each);
            }
            left -= need_of_one;
        }
        need + left / needs.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: f64 = 1448.0;
    const STEP: Duration = Duration::from_millis(20);
    const BASE: Duration = Duration::from_millis(100);

    /// byte/s
    const CAPACITY: f64 = 1.25e6;

    /// Connections over one path, and what others have in its queue.
    struct Path {
        seats: Vec<Seat>,
        parts: Vec<Part>,
        bytes: Vec<f64>,
        /// The most that each sender sends, byte/s.
        limits: Vec<f64>,
        now: Duration,
    }

    impl Path {
        fn of(connections: usize) -> Self {
            let group = WindowGroup::default();
            Self {
                seats: (0..connections).map(|_| group.join()).collect(),
                parts: vec![Part::whole(2.0 * SEGMENT); connections],
                bytes: vec![0.0; connections],
                limits: vec![f64::INFINITY; connections],
                now: Duration::from_secs(1),
            }
        }

        /// Each receives what its window and the path allow; others keep this queue, s.
        fn run(&mut self, steps: u32, queue: f64) {
            for _ in 0..steps {
                self.now += STEP;
                let offered = |(part, limit): (&Part, &f64)| {
                    let rate = if part.wait.is_some() {
                        0.0
                    } else {
                        part.window / 0.1
                    };
                    rate.min(*limit)
                };
                let rates: Vec<f64> = self.parts.iter().zip(&self.limits).map(offered).collect();
                let all: f64 = rates.iter().sum();
                let queueing = queue + (0.1 * (all / CAPACITY - 1.0)).max(0.0);
                for (index, seat) in self.seats.iter().enumerate() {
                    let rate = rates[index] * (CAPACITY / all).min(1.0);
                    self.bytes[index] += rate * STEP.as_secs_f64();
                    let sample = ConnectionSample {
                        rtt: BASE + Duration::from_secs_f64(queueing),
                        base: BASE,
                        queueing: Some(queueing),
                        segment: SEGMENT,
                        bytes: self.bytes[index] as u64,
                        out_of_order: 0,
                        excess: 0.001,
                    };
                    self.parts[index] = seat.update(self.now, &sample);
                }
            }
        }

        fn windows(&self) -> Vec<f64> {
            self.parts.iter().map(|part| part.window).collect()
        }
    }

    #[test]
    fn connections_share_the_window_of_one() {
        let (mut one, mut four) = (Path::of(1), Path::of(4));
        one.run(1000, 0.0);
        four.run(1000, 0.0);
        let parts = four.windows();
        assert!(
            parts.iter().all(|each| (each / parts[0] - 1.0).abs() < 0.1),
            "{parts:?}"
        );
        let (all, one): (f64, f64) = (parts.iter().sum(), one.windows()[0]);
        assert!((all / one - 1.0).abs() < 0.1, "{all} and {one}");
        assert!(one > 0.9 * 0.1 * CAPACITY, "{one}");
    }

    #[test]
    fn what_a_connection_leaves_goes_to_the_others() {
        let mut path = Path::of(3);
        path.limits[2] = 50_000.0;
        path.run(1000, 0.0);
        let parts = path.windows();
        assert!((parts[2] / 10_000.0 - 1.0).abs() < 0.1, "{parts:?}");
        let all: f64 = parts[..2].iter().sum();
        assert!(all > 0.8 * 0.1 * CAPACITY, "{parts:?}");
    }

    #[test]
    fn at_the_smallest_window_connections_take_turns() {
        let mut path = Path::of(8);
        path.run(500, 0.0);
        path.run(100, 0.1);
        assert!(path.windows().iter().all(|&each| each == 2.0 * SEGMENT));
        assert_eq!(path.parts[0].wait, None);
        let wait = Some(8 * WAIT_PER_CONNECTION);
        assert!(path.parts[1..].iter().all(|part| part.wait == wait));
        // The next one follows a connection that is done.
        path.seats[0].rest();
        path.seats.remove(0);
        path.bytes.remove(0);
        path.run(1, 0.1);
        assert_eq!(path.parts[0].wait, None);
    }

    #[test]
    fn who_comes_later_finds_what_is_known() {
        let mut path = Path::of(1);
        path.run(1000, 0.0);
        let before = path.windows()[0];
        let next = path.seats[0].group.join();
        path.seats[0] = next;
        path.bytes[0] = 0.0;
        path.run(1, 0.0);
        assert!(
            path.windows()[0] > 0.8 * before,
            "{:?} and {before}",
            path.parts
        );
    }

    #[test]
    fn a_copy_is_in_a_group_of_its_own() {
        let mut path = Path::of(1);
        path.run(20, 0.0);
        let copy = path.seats[0].clone();
        let before = copy.rate();
        path.limits[0] = 0.0;
        path.run(50, 0.0);
        assert_eq!(copy.rate(), before);
        assert!(path.seats[0].rate() < before);
    }
}
