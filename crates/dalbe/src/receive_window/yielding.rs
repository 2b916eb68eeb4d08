//! The receive window of a flow that yields to all other traffic and still
//! fills an idle link, at every kind of bottleneck.
//!
//! A queue, or a loss, tells that somebody offers more than the link carries. It does
//! not tell who. So the flow asks:
//!
//! - *Filling.* Without a queue the window grows: in small steps near the level at
//!   which a queue was last met, faster and faster beyond it.
//! - *Testing.* When a queue is met, the window goes a little below what the path
//!   carries, and is held. Other traffic that takes what it can get fills the gap, and
//!   the queue returns within the time in which CUBIC is back at its old window. If it
//!   does not return, nobody else wants this share (a live stream, or nobody at all),
//!   and the level is proven.
//! - *Yielding.* If the queue returns, the window goes to its minimum at once. If the queue
//!   then stays short, the flow knocks (`knock`), because the queue may belong to another
//!   flow of this kind.
//! - *Climbing.* Without a queue, the flow comes back from there in small steps. A queue that is
//!   met below the share that CUBIC leaves free after a loss ends the climb.
//!
//! Where queues are so long that CUBIC leaves nothing free after a loss (`depth`), a
//! queue that has gone was that of somebody who has gone. There, tests and waits are
//! short, and the flow comes back fast.
//!
//! Where the rate varies by itself, as radio's does (`variation`), a queue says little. The
//! window then stays, and a test asks from time to time. The time for which packets wait for
//! their burst, as on Wi-Fi (`bursts`), or for a late one (`jitter`) is no queue.
//!
//! At a proven level the flow keeps a queue of its own as FAST TCP does (Wei, Jin, Low and
//! Hegde 2006, eq. 1). To see the delay without a queue, it makes room for a moment (the periodic
//! slow-down of LEDBAT++, RFC 9840).
//!
//! The rule knows nothing of weights, deadlines, sockets, nor of kinds of queues.

mod ceiling;
mod depth;
mod jitter;
mod knock;
mod levels;
mod phase;
mod start;
mod step;
mod variation;

use std::time::Duration;

use self::knock::Knock;
use self::levels::{Levels, TESTED_SHARE_AFTER_LOSS};
use self::phase::{Phase, Test};
use self::step::{AFTER_BURST, AFTER_FILL, AFTER_GROWTH, AFTER_STEP_DOWN, AFTER_WAIT, Step};
use super::rounds::{MIN_REPAIR, Round, Rounds};
use super::{ArrivalWatch, ConnectionSample, INITIAL_WINDOW, LIMITING_SHARE, MIN_WINDOW_SEGMENTS};

/// A queue within this many times the target is noise until the next round trip has
/// one too. Slow start makes such queues by its bursts.
const UNCONFIRMED_TARGETS: f64 = 2.5;
/// A longer one is still that of the last growth for so many round trips, if it is no
/// longer than what the growth sent at once: a sender without pacing keeps sending a window
/// in bunches.
const BURST_AFTER_GROWTH: f64 = 2.5;
/// Our own queue at a proven level is at most this many targets, and our own part of
/// the queue, long.
const OWN_TARGETS: f64 = 2.0;
/// A queue that returns in a test is noise once more, if it is shorter than this many
/// targets.
const NOISE_TARGETS: f64 = 2.5;
/// A queue of so many targets is long: with it, somebody has come.
const LONG_QUEUE_TARGETS: f64 = 8.0;

/// A test holds this share of a whole path after a second loss, ...
const TESTED_SHARE_AFTER_OWN_LOSS: f64 = 0.6;
/// ... and this share of what is carried after noise.
const TESTED_AGAIN_SHARE: f64 = 0.95;
/// The first window that loses data is halved: what the path carries is unknown.
const FIRST_LOSS_SHARE: f64 = 0.5;

/// The first test only lets the burst of slow start pass.
const FIRST_TEST_ROUND_TRIPS: f64 = 8.0;
/// A loss within so many round trips of the first belongs to the same burst.
const BURST_ROUND_TRIPS: f64 = 5.0;

/// A sender that uses this share of a window, and less than a limiting one, lags behind.
const LAGGING_SHARE: f64 = 0.45;
/// It does so for at most this long after others have left (`stale`).
const LAGGING_TIME: Duration = Duration::from_secs(10);

/// The flow comes back after this many round trips without a queue, ...
const CLEAR_ROUND_TRIPS: f64 = 3.0;
/// ... or this many where queues hide nobody, ...
const CLEAR_ROUND_TRIPS_OF_NOBODY: f64 = 1.2;
/// ... but after a climb that met others only after this time, ...
const AFTER_FAILED_CLIMB: Duration = Duration::from_secs(1);
/// ... and after losses, of which one in time warns of none, after this time.
const AFTER_LOSSES: Duration = Duration::from_secs(7);

/// Other traffic that has kept a queue for so many round trips has left when it is gone.
const MIN_QUEUED_ROUND_TRIPS: u32 = 8;

/// More than this share of what the path carries is much of it.
const MUCH: f64 = 0.3;

/// The flow makes room when it has not seen the base for this time, ...
const MAX_BASE_UNSEEN: Duration = Duration::from_secs(15);
/// ... to this share of what the path carries.
const ROOM_SHARE: f64 = 0.88;

/// The window of a flow that yields.
#[derive(Debug, Clone, Default)]
pub(crate) struct YieldingWindow {
    rounds: Rounds,
    levels: Levels,
    phase: Phase,
    /// Segments; 0 before the first sample.
    window: f64,
    /// Bytes.
    segment: f64,
    /// The longest queueing delay that is no sign of others, s.
    target: f64,
    /// When the window last grew, and from which one, segments.
    grew: (Duration, f64),
    /// When the last queue was seen.
    queued: Duration,
    /// Whether the last round had one.
    was_queued: bool,
    /// When the base was last seen, with nothing that had waited for its burst either.
    clear: Option<Duration>,
    next_step: Duration,
    next_climb: Duration,
    knock: Knock,
    /// When the sender last did anything else than in a test of its own.
    taken: Duration,
    /// When all others left.
    freed: Option<Duration>,
    /// Until then, a queue may be that of the flow's own bursts.
    burst_until: Duration,
}

impl YieldingWindow {
    /// Whether a queue of others may hold the window down.
    pub(crate) fn sees_queue(&self) -> bool {
        matches!(self.phase, Phase::Testing(_) | Phase::Yielding { .. })
    }

    /// Whether the flow carries much of what the path carries, or did before a test.
    pub(crate) fn carries_much(&self) -> bool {
        let level = match self.phase {
            Phase::Testing(_) => self.levels.met(),
            _ => self.levels.whole(),
        };
        level > MUCH * self.levels.full()
    }

    /// Whether an [`ArrivalWatch`] is due.
    pub(crate) fn begin_watch(&mut self, now: Duration) -> bool {
        self.is_steady() && self.levels.begin_watch(now)
    }

    /// Takes a watch that is over.
    pub(crate) fn take_watch(&mut self, now: Duration, watch: &ArrivalWatch) {
        if self.is_steady() {
            self.levels.take_watch(now, watch, self.segment);
        }
    }

    /// Whether the window is wide, and changes little.
    fn is_steady(&self) -> bool {
        matches!(self.phase, Phase::Filling | Phase::Testing(_)) || self.knock.is_on()
    }

    /// What the buffer of the path holds at once, bytes; infinite while no data was lost.
    pub(crate) fn burst(&self) -> f64 {
        self.levels.burst() * self.segment
    }

    /// Takes a sample while the window is not in force; returns the window,
    /// bytes.
    pub(crate) fn wait(&mut self, now: Duration, sample: &ConnectionSample) -> f64 {
        self.adopt(sample.segment);
        self.rounds.skip(now, sample);
        self.knock.break_off();
        self.taken = now;
        self.next_step = now + self.rounds.rtt(sample.base).mul_f64(AFTER_WAIT);
        self.window * self.segment
    }

    /// Takes a sample; returns the window, bytes. Can be called at any rate:
    /// the window takes about one step in a round trip.
    pub(crate) fn update(&mut self, now: Duration, sample: &ConnectionSample) -> f64 {
        self.adopt(sample.segment);
        let before = self.window;
        let rtt = self.rounds.rtt(sample.base);
        let long = if self.target > 0.0 {
            LONG_QUEUE_TARGETS * self.target + self.levels.between_bursts()
        } else {
            f64::INFINITY
        };
        self.levels.see_delay(now, sample.queueing, self.target);
        if let Some(round) = self.rounds.update(now, sample, long) {
            self.round(now, sample, &round);
        }
        if self.window > before {
            self.grew = (now, self.offered(now, rtt, before));
        }
        self.offered(now, rtt, self.window) * self.segment
    }

    /// Takes the size of a segment: the kernel's idea of it grows in the first round
    /// trips.
    fn adopt(&mut self, segment: f64) {
        if self.window == 0.0 {
            self.window = INITIAL_WINDOW / segment;
        } else if segment != self.segment {
            self.window *= self.segment / segment;
            self.levels.scale(self.segment / segment);
        }
        self.segment = segment;
    }

    /// The part of the window that is on offer, segments. A sender without pacing sends
    /// at once what a larger window allows, so it opens in the course of a round trip.
    fn offered(&self, now: Duration, rtt: Duration, window: f64) -> f64 {
        let (began, from) = self.grew;
        let since = now.saturating_sub(began);
        if from >= window || since >= rtt {
            return window;
        }
        from + (window - from) * since.div_duration_f64(rtt)
    }

    /// A round trip is over.
    fn round(&mut self, now: Duration, sample: &ConnectionSample, round: &Round) {
        let base = sample.base.as_secs_f64();
        let rate = round.rate / self.segment;
        let carried = rate * base;
        let used = rate * (base + round.mean);
        let is_limiting = used >= (LIMITING_SHARE * self.window).min(self.window - 2.5);
        // What the window does not limit is the sender's to answer.
        let is_lost = round.is_lost() && (is_limiting || self.phase == Phase::Opening);
        let yields = matches!(self.phase, Phase::Yielding { .. });
        self.levels.learn(now, round, carried, base, yields);
        let packet = self.levels.packet(sample.excess);
        let target = self.levels.target(packet, base);
        let queues = round.beyond(self.levels.between_bursts());
        let queue = self.levels.learn_queue(now, &queues, target);
        if !self.knock.is_on() {
            self.levels.learn_depth(queues.min, target, base);
        }
        self.target = target;
        if queue.max(round.min) < 0.5 * target {
            self.clear = Some(now);
        }
        let has_queue = queue > target || is_lost;
        let was_queued = std::mem::replace(&mut self.was_queued, has_queue);
        let noise = UNCONFIRMED_TARGETS * target;
        let since = now.saturating_sub(self.grew.0).as_secs_f64();
        let is_burst = since < BURST_AFTER_GROWTH * (base + round.mean)
            && queue < packet * (self.window - self.grew.1);
        let is_confirmed = is_lost || was_queued || (queue >= noise && !is_burst);
        let is_queued = has_queue && (is_confirmed || self.sees_queue());
        let has_come = queue > LONG_QUEUE_TARGETS * target
            && match self.phase {
                Phase::Opening => true,
                Phase::Filling => now >= self.burst_until && self.levels.is_near(self.window),
                Phase::Testing(_) | Phase::Yielding { .. } | Phase::Climbing { .. } => false,
            };
        let step = Step {
            now,
            has_come,
            carried,
            used,
            rtt: base + round.mean,
            is_limiting,
            queue,
            target,
            packet,
            is_lost,
            has_holes: round.out_of_order > 0,
            gap: now.saturating_sub(self.queued).as_secs_f64(),
        };
        if is_queued {
            self.queued = now;
        }
        let is_test_of_sender = step.is_test_of_sender(self.levels.met(), self.window);
        if !is_test_of_sender || has_queue || round.is_lost() {
            self.taken = now;
        }
        // Nothing that the flow has done lately makes a long queue at a steady level.
        if now < self.next_step && !(has_come && self.phase == Phase::Filling) {
            return;
        }
        if is_queued {
            self.meet(&step);
        } else if queue < noise {
            self.go_on(&step);
        } else {
            // What the last growth has brought is over after a round trip.
            self.next_step = step.after(AFTER_GROWTH);
        }
        let unseen = self.clear.is_some_and(|at| now >= at + MAX_BASE_UNSEEN);
        if unseen && is_limiting && self.phase == Phase::Filling {
            self.clear = Some(now);
            self.lower(&step, ROOM_SHARE * carried, AFTER_STEP_DOWN);
        }
    }

    /// Goes down to this window at most, segments, and waits for the effect.
    fn lower(&mut self, step: &Step, to: f64, round_trips: f64) {
        self.window = to.min(self.window).max(MIN_WINDOW_SEGMENTS);
        self.next_step = step.after(round_trips);
    }

    /// A step with a queue, or a loss.
    fn meet(&mut self, step: &Step) {
        match self.phase {
            Phase::Yielding { queued } => {
                if self.knock.meet(step) {
                    self.window = self.window.max(knock::window(self.levels.full()));
                    self.next_step = step.after(AFTER_GROWTH);
                    return;
                }
                let goes_on = step.gap <= CLEAR_ROUND_TRIPS * step.rtt;
                let queued = queued.filter(|_| goes_on);
                self.phase = Phase::Yielding {
                    queued: queued.map(|rounds| rounds.saturating_add(1)),
                };
                self.lower(step, MIN_WINDOW_SEGMENTS, AFTER_GROWTH);
            }
            Phase::Filling | Phase::Climbing { .. } | Phase::Testing(_) if !step.is_limiting => {
                // The sender decides, but it must not add much to the queue.
                self.phase = Phase::Filling;
                self.lower(step, step.unlimiting(self.levels.whole()), AFTER_GROWTH);
            }
            Phase::Testing(test) => self.fail(step, test),
            Phase::Climbing { is_free: true } if !step.is_lost => {
                // The bursts of slow start: what the path carries shows once they are over.
                self.phase = Phase::Filling;
                self.next_step = step.after(AFTER_BURST);
                self.burst_until = self.next_step;
            }
            Phase::Filling if !step.is_lost && self.levels.explains(step.now, step.carried) => {
                self.next_step = step.after(AFTER_GROWTH);
            }
            Phase::Opening | Phase::Filling | Phase::Climbing { .. } => {
                self.levels.meet(step.carried, self.window, step.is_lost);
                let is_own =
                    step.queue < OWN_TARGETS * step.target + step.own_queue() * step.packet;
                if self.phase == Phase::Filling
                    && !step.is_lost
                    && is_own
                    && self.levels.is_proven(step.carried)
                {
                    self.window = step.followed(self.window, self.levels.ceiling(step.now));
                    self.next_step = step.after(AFTER_FILL);
                } else if matches!(self.phase, Phase::Climbing { is_free: false })
                    && (step.is_lost || step.carried < self.levels.left_by_others())
                {
                    self.yield_to_others(step, false);
                } else {
                    self.test(step);
                }
            }
        }
    }

    /// Begins a test at the level at which a queue was met.
    fn test(&mut self, step: &Step) {
        let is_first = self.phase == Phase::Opening;
        let until = if is_first {
            step.after(FIRST_TEST_ROUND_TRIPS)
        } else {
            step.now + self.levels.test_length(step.rtt)
        };
        self.phase = Phase::Testing(Test {
            began: step.now,
            until,
            is_first,
            by_loss: step.is_lost,
            is_repeated: false,
        });
        let wait = match (is_first, step.is_lost) {
            (true, false) => AFTER_BURST,
            (false, false) => AFTER_STEP_DOWN,
            (_, true) => AFTER_BURST.max(MIN_REPAIR / step.rtt),
        };
        let to = if is_first && step.is_lost {
            FIRST_LOSS_SHARE * self.window
        } else {
            self.levels.tested_share(is_first, step) * self.levels.met()
        };
        self.lower(step, to, wait);
    }

    /// The queue has returned in a test.
    fn fail(&mut self, step: &Step, mut test: Test) {
        let burst = Duration::from_secs_f64(BURST_ROUND_TRIPS * step.rtt);
        if step.is_lost && step.now < test.began + burst {
            test.by_loss = true;
            self.phase = Phase::Testing(test);
            let to = TESTED_SHARE_AFTER_LOSS * self.levels.met();
            self.lower(step, to, AFTER_STEP_DOWN);
        } else if step.is_lost && !test.is_repeated && self.levels.leaves_little() {
            // Others have not had what they would have taken. The loss may be our own.
            let to = TESTED_SHARE_AFTER_OWN_LOSS * self.levels.whole();
            self.test_again(step, test, to, AFTER_BURST.max(MIN_REPAIR / step.rtt));
        } else if !step.is_lost && !test.is_repeated && step.queue < NOISE_TARGETS * step.target {
            let to = TESTED_AGAIN_SHARE * step.carried;
            self.test_again(step, test, to, AFTER_STEP_DOWN);
        } else {
            self.yield_to_others(step, true);
        }
    }

    /// Begins a test anew, with this window at most, segments.
    fn test_again(&mut self, step: &Step, mut test: Test, to: f64, wait: f64) {
        test.until = step.now + self.levels.test_length(step.rtt);
        test.by_loss |= step.is_lost;
        test.is_repeated = true;
        self.phase = Phase::Testing(test);
        self.lower(step, to, wait);
    }

    /// Others take what they can get.
    fn yield_to_others(&mut self, step: &Step, by_test: bool) {
        let is_told = by_test && !step.is_lost || self.levels.hides_nobody();
        let queued = is_told.then_some(0);
        self.phase = Phase::Yielding { queued };
        self.next_climb = step.now
            + if step.is_lost {
                AFTER_LOSSES
            } else {
                AFTER_FAILED_CLIMB
            };
        self.levels.disprove();
        self.lower(step, MIN_WINDOW_SEGMENTS, AFTER_STEP_DOWN);
    }

    /// A step without a queue.
    fn go_on(&mut self, step: &Step) {
        match self.phase {
            Phase::Yielding { queued } => {
                let hides_nobody = self.levels.hides_nobody();
                let clear = if hides_nobody {
                    CLEAR_ROUND_TRIPS_OF_NOBODY
                } else {
                    CLEAR_ROUND_TRIPS
                };
                let may_climb = queued.is_some() || step.now >= self.next_climb;
                let is_answered = self.knock.take_answer(step);
                if is_answered || may_climb && step.gap > clear * step.rtt {
                    let is_free =
                        is_answered || hides_nobody || queued >= Some(MIN_QUEUED_ROUND_TRIPS);
                    self.freed = is_free.then_some(step.now);
                    self.knock.forget();
                    self.phase = Phase::Climbing { is_free };
                }
            }
            Phase::Testing(test) => {
                if step.now >= test.until {
                    if !test.is_first {
                        self.levels.prove_by_test(step.now, test.by_loss);
                    }
                    self.phase = Phase::Filling;
                }
            }
            Phase::Opening => {
                if step.is_limiting {
                    self.window *= 2.0;
                    self.next_step = step.after(AFTER_GROWTH);
                }
            }
            Phase::Climbing { is_free } => {
                // Once the others have left, a sender may lag behind: the window shows it
                // to `stale`.
                let may_lag = is_free && step.used >= LAGGING_SHARE * self.window;
                if step.is_limiting || may_lag {
                    self.window = self.levels.climb(self.window, step.rtt, is_free);
                    self.next_step = step.after(AFTER_GROWTH);
                }
                if self.window >= self.levels.top_of_climb(is_free) {
                    if is_free {
                        self.levels.prove_all();
                    }
                    // The last steps come in bursts.
                    self.next_step = step.after(AFTER_BURST);
                    self.burst_until = self.next_step;
                    self.phase = Phase::Filling;
                }
            }
            Phase::Filling => {
                if self.levels.is_unknown()
                    && step.now >= self.taken + self.levels.test_length(step.rtt)
                {
                    self.levels.prove();
                }
                let may_lag = self.freed.is_some_and(|at| step.now < at + LAGGING_TIME);
                self.window = self.levels.fill(step.now, self.window, step.used, may_lag);
            }
        }
    }
}
