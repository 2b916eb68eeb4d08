//! One law for the windows of all connections over a path: together they yield as one
//! does (ctrlTCP: NEAT D3.2, appendix D).
//!
//! The law sees one flow, whose bytes and losses are those of all connections. Its window
//! is divided among them in whole segments: each gets the same, and what one does not use
//! goes to the others. If a part becomes less than the smallest window, connections take
//! turns: as many as can have the smallest window, and the others wait. A connection that
//! comes later, or that replaces another, finds what the law knows of the path.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pause::PERSIST_TIME;
use super::rounds::{MIN_ROUND, Rounds};
use super::yielding::YieldingWindow;
use super::{ArrivalWatch, ConnectionSample, LIMITING_SHARE, LeastRtt, MIN_WINDOW_SEGMENTS};

/// A connection that leaves a part of its window unused gets this many times what it
/// uses, so that it can grow.
const ROOM_TO_GROW: f64 = 2.0;

/// Where n connections take turns, one that waits reads two segments every n times this.
/// A sender with a closed window tries after about as long (its persist timer, RFC 9293,
/// section 3.8.6.1; on Linux 200 ms).
const WAIT_PER_CONNECTION: Duration = Duration::from_millis(200);

/// No connection waits longer than this: its server must see that it lives.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// A turn takes at least this long, and two waits: a sender needs some round trips to get
/// going.
const TURN: Duration = Duration::from_secs(4);

/// A connection without a sample for this time has a reader that does not read, or nothing
/// to receive.
const UNREAD: Duration = Duration::from_secs(1);

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
    /// The rate at which the law begins, byte/s, if others know one.
    start: Option<f64>,
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
    /// The sum of the queueing delays of all since then, s, and their number. Their mean is
    /// that of one connection with as many samples; their least would be shorter.
    queueing: (f64, u32),
    members: BTreeMap<u64, CoupledConnection>,
    next: u64,
}

/// One connection.
#[derive(Debug, Clone, Default)]
struct CoupledConnection {
    /// As of the last sample.
    bytes: u64,
    out_of_order: u32,
    rounds: Rounds,
    /// Its part of the window, bytes.
    part: f64,
    /// Whether others have their turn.
    waits: bool,
    /// What it can use of a window, bytes, if its last round trip has left some unused.
    most: Option<f64>,
    /// When the last sample was.
    seen: Option<Duration>,
    /// When data last came.
    came: Duration,
    /// Until then its sender may not have noticed that it has its turn.
    awaited_until: Duration,
    /// Whether nothing has come for longer than what holds it back explains.
    is_idle: bool,
    least: LeastRtt,
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
    /// What the buffer of the path holds of it at once, beside others that open, bytes;
    /// infinite if that is unknown.
    pub(crate) burst: f64,
}

impl Part {
    /// The window of a connection that shares it with no other.
    pub(crate) fn whole(window: f64) -> Self {
        Self {
            window,
            wait: None,
            burst: f64::INFINITY,
        }
    }
}

/// One connection's place in a group, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    group: WindowGroup,
    number: u64,
}

impl WindowGroup {
    /// Whether it has any connection.
    #[must_use]
    pub fn is_used(&self) -> bool {
        !self.coupled().members.is_empty()
    }

    /// The first connection begins at this rate, byte/s, where others over the path have left off.
    /// Later ones go by what is known here.
    pub fn begin_at(&self, rate: f64) {
        let mut coupled = self.coupled();
        if coupled.law.is_new() {
            coupled.start = Some(rate);
        }
    }

    /// A place for another connection.
    pub(crate) fn join(&self) -> Seat {
        let mut coupled = self.coupled();
        let number = coupled.next;
        coupled.next += 1;
        coupled.members.insert(number, CoupledConnection::default());
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
    /// Takes the least round-trip times that this connection has seen; returns those of the
    /// path. A connection that came beside a queue, be it that of the others here, knows longer
    /// ones.
    pub(crate) fn compare(&self, now: Duration, own: LeastRtt) -> LeastRtt {
        let mut coupled = self.group.coupled();
        coupled.members.entry(self.number).or_default().least = own;
        let all = coupled.active(now).map(|(_, member)| member.least);
        all.fold(own, LeastRtt::or_less)
    }

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

    /// Whether the flows carry much of what the path carries.
    pub(crate) fn carries_much(&self) -> bool {
        self.group.coupled().law.carries_much()
    }

    /// Whether an [`ArrivalWatch`] is due. One of several connections has only a part of
    /// each burst.
    pub(crate) fn begin_watch(&self, now: Duration) -> bool {
        let mut coupled = self.group.coupled();
        coupled.active(now).count() == 1 && coupled.law.begin_watch(now)
    }

    /// Takes a watch that is over.
    pub(crate) fn take_watch(&self, now: Duration, watch: &ArrivalWatch) {
        self.group.coupled().law.take_watch(now, watch);
    }

    /// Takes a sample; returns the part of the window.
    pub(crate) fn update(&self, now: Duration, sample: &ConnectionSample) -> Part {
        self.group.coupled().update(self.number, now, sample)
    }

    /// Takes a sample while the window is not in force; returns the part of the window.
    pub(crate) fn wait(&self, now: Duration, sample: &ConnectionSample) -> Part {
        self.group.coupled().wait(self.number, now, sample)
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

impl CoupledConnection {
    /// It has used so much of its part in a round trip, bytes.
    fn judge(&mut self, used: f64, segment: f64) {
        let is_limited =
            used >= LIMITING_SHARE * self.part || self.part < 2.0 * MIN_WINDOW_SEGMENTS * segment;
        self.most = (!is_limited).then_some(ROOM_TO_GROW * used);
    }

    /// What it can use of a window, bytes.
    fn need(&self) -> f64 {
        self.most.unwrap_or(f64::INFINITY)
    }

    /// The longest time without data on a connection that has something to receive.
    fn longest_silence(&self, rtt: Duration) -> Duration {
        if self.waits {
            2 * MAX_WAIT
        } else if self.is_in_force {
            (rtt * SILENT_ROUND_TRIPS).max(PERSIST_TIME)
        } else {
            // It may pause.
            2 * PERSIST_TIME + rtt
        }
    }
}

impl Coupled {
    fn update(&mut self, number: u64, now: Duration, sample: &ConnectionSample) -> Part {
        let all = self.add(number, now, sample, true);
        if self.leads(number, now) {
            let silence = sample.rtt.max(MIN_ROUND) * SILENT_ROUND_TRIPS;
            let window = if now <= self.led + silence {
                self.law.update(now, &all)
            } else {
                self.law.wait(now, &all)
            };
            self.follow(now, window);
        }
        self.part(number, now)
    }

    fn wait(&mut self, number: u64, now: Duration, sample: &ConnectionSample) -> Part {
        let all = self.add(number, now, sample, false);
        if self.leads(number, now) {
            let other = self.active(now).find(|(_, other)| other.is_in_force);
            match other.map(|(&other, _)| other) {
                Some(other) => self.leader = other,
                None => {
                    let window = self.law.wait(now, &all);
                    self.follow(now, window);
                }
            }
        }
        self.part(number, now)
    }

    /// The law has heard of all connections, and asks for this window, bytes.
    fn follow(&mut self, now: Duration, window: f64) {
        (self.window, self.led, self.queueing) = (window, now, (0.0, 0));
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
        if let Some(rate) = self.start.take() {
            self.law.begin_at(now, sample, rate);
        }
        let member = self.members.entry(number).or_default();
        (member.seen, member.is_in_force) = (Some(now), is_in_force);
        let more = sample.bytes.saturating_sub(member.bytes);
        if more > 0 {
            member.came = now;
        }
        let silence = now.saturating_sub(member.came);
        member.is_idle =
            now >= member.awaited_until && silence > member.longest_silence(sample.rtt);
        self.bytes = self.bytes.saturating_add(more);
        let lost = sample.out_of_order.wrapping_sub(member.out_of_order);
        self.out_of_order = self.out_of_order.wrapping_add(lost);
        (member.bytes, member.out_of_order) = (sample.bytes, sample.out_of_order);
        if is_in_force && !member.is_idle {
            let round = member.rounds.update(now, sample, f64::INFINITY);
            if let Some(round) = round {
                member.judge(round.rate * sample.rtt.as_secs_f64(), sample.segment);
            }
        } else {
            member.rounds.skip(now, sample);
            member.most = None;
        }
        self.segment = self.segment.max(sample.segment);
        if let Some(queueing) = sample.queueing {
            self.queueing.0 += queueing;
            self.queueing.1 += 1;
        }
        let (sum, count) = self.queueing;
        ConnectionSample {
            bytes: self.bytes,
            out_of_order: self.out_of_order,
            segment: self.segment,
            queueing: (count > 0).then(|| sum / f64::from(count)),
            ..*sample
        }
    }

    /// Connections that somebody reads, or that have been read until a moment ago.
    fn active(&self, now: Duration) -> impl Iterator<Item = (&u64, &CoupledConnection)> {
        let members = self.members.iter();
        members.filter(move |(_, member)| member.seen.is_some_and(|at| now < at + UNREAD))
    }

    /// Those on which data comes, or is over since some round trips. The next response comes at
    /// once as a rule. Meanwhile its part stays free: if others took it, all parts together
    /// would exceed the window for a round trip.
    fn busy(&self, now: Duration) -> impl Iterator<Item = (&u64, &CoupledConnection)> {
        self.active(now).filter(|(_, member)| !member.is_idle)
    }

    /// What this connection gets of the window. If it is idle, that is what it can begin with.
    fn part(&mut self, number: u64, now: Duration) -> Part {
        let count = self.busy(now).count().max(1);
        let smallest = MIN_WINDOW_SEGMENTS * self.segment;
        let fit = ((self.window / smallest) as usize).clamp(1, count);
        let wait = WAIT_PER_CONNECTION.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        let wait = wait.min(MAX_WAIT);
        let turn = now.div_duration_f64(TURN.max(2 * wait)) as usize;
        let place = self.busy(now).position(|(each, _)| *each == number);
        let has_turn = place.is_none_or(|place| (place + count - turn % count) % count < fit);
        let need = self
            .members
            .get(&number)
            .map_or(0.0, CoupledConnection::need);
        let window = match (place, has_turn, fit < count) {
            (None, ..) => (self.window / self.active(now).count().max(1) as f64).max(smallest),
            (Some(_), false, _) => smallest,
            (Some(_), true, true) => self.window / fit as f64,
            (Some(_), true, false) => self.share(number, need, now).max(smallest),
        };
        if let Some(member) = self.members.get_mut(&number) {
            if place.is_some() && has_turn && member.waits {
                member.awaited_until = now + 2 * PERSIST_TIME;
            }
            (member.part, member.waits) = (window, !has_turn);
        }
        // Those that open their windows do so at the same time.
        let opening = self.active(now).filter(|(_, each)| !each.is_in_force);
        let opening = opening.count().max(1) as f64;
        Part {
            window,
            wait: (!has_turn).then_some(wait),
            burst: (self.law.burst() / opening).max(smallest),
        }
    }

    /// The part of a connection that needs so much, bytes: as much, but no more than all
    /// others that need more. What nobody needs is shared, so that all can grow.
    fn share(&self, number: u64, need: f64, now: Duration) -> f64 {
        let mut needs: Vec<f64> = self.busy(now).map(|(_, member)| member.need()).collect();
        needs.sort_by(f64::total_cmp);
        let mut left = self.window;
        for (served, need_of_one) in needs.iter().enumerate() {
            let others = needs.len() - served;
            let each = left / others as f64;
            if *need_of_one >= each {
                return need.min(self.whole(number, left, each, others, now));
            }
            left -= need_of_one;
        }
        need + left / needs.len().max(1) as f64
    }

    /// `each` for this connection in whole segments, of `left` for so many: a sender leaves
    /// what is less than a segment, and the sum would never be used up.
    fn whole(&self, number: u64, left: f64, each: f64, others: usize, now: Duration) -> f64 {
        if others == 1 {
            return each;
        }
        let least = (each / self.segment).floor();
        let over = left / self.segment - least * others as f64;
        let limited = self.busy(now).filter(|(_, member)| member.need() >= each);
        let place = limited.take_while(|(each, _)| **each != number).count();
        let more = f64::from(u8::from((place + 1) as f64 <= over));
        (least + more) * self.segment
    }
}

#[cfg(test)]
mod tests;
