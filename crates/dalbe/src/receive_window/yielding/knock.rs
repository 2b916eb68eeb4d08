//! The knock of a flow that yields to a short queue.
//!
//! A flow that has found nobody keeps a short queue of its own. A second flow of this kind
//! meets that queue and yields to it. The first flow then never learns of the second. So
//! the second flow knocks: it takes a part of the path for some round trips. If the first
//! flow gives way, the queue goes, and the second flow grows. Other traffic does not give
//! way. The wait doubles after each knock without an answer. All functions follow from
//! their arguments.

use std::time::Duration;

use super::step::Step;

/// A queue of up to this many targets is short.
const SHORT_TARGETS: f64 = 3.5;
/// The queue is short for this time before the first knock, ...
const FIRST_REST: Duration = Duration::from_secs(5);
/// ... and for at least this many round trips.
const MIN_REST_ROUND_TRIPS: f64 = 42.0;
/// The time doubles at most this many times.
const MAX_UNANSWERED: u32 = 4;
/// A knock lasts for at most this many round trips.
const KNOCK_ROUND_TRIPS: f64 = 14.0;
/// This many round trips without a queue are an answer.
const ANSWER_ROUND_TRIPS: f64 = 2.0;
/// If the queue is gone for longer than this, its traffic comes and goes.
const GONE_ROUND_TRIPS: f64 = 3.0;
/// A knock takes this share of the path, ...
const KNOCK_SHARE: f64 = 0.3;
/// ... and at least this many segments, ...
const MIN_KNOCK: f64 = 4.0;
/// ... but no more than this share.
const MAX_KNOCK_SHARE: f64 = 0.5;

/// The window of a knock on a path that carries so much, segments.
pub(crate) fn window(full: f64) -> f64 {
    (KNOCK_SHARE * full).max(MIN_KNOCK.min(MAX_KNOCK_SHARE * full))
}

/// The knocks of a flow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Knock {
    /// When the queue became short, or when the last knock ended.
    short: Option<Duration>,
    /// When the present knock ends at the latest.
    until: Option<Duration>,
    /// Knocks in a row without an answer, at most [`MAX_UNANSWERED`].
    unanswered: u32,
}

impl Knock {
    /// Whether the flow knocks.
    pub(crate) fn is_on(&self) -> bool {
        self.until.is_some()
    }

    /// The window is no longer in force. A knock is over with it; the queue may still be
    /// there.
    pub(crate) fn break_off(&mut self) {
        self.until = None;
    }

    /// Takes a round trip with a queue; returns whether the flow knocks.
    pub(crate) fn meet(&mut self, step: &Step) -> bool {
        if step.gap > FIRST_REST.as_secs_f64() {
            self.short = None;
        }
        let is_short = !step.has_holes && step.queue <= SHORT_TARGETS * step.target;
        if let Some(until) = self.until {
            if is_short && step.now < until {
                return true;
            }
            self.forget();
            self.unanswered = (self.unanswered + 1).min(MAX_UNANSWERED);
        }
        if !is_short {
            self.short = None;
            return false;
        }
        let since = *self.short.get_or_insert(step.now);
        let rest = FIRST_REST.max(Duration::from_secs_f64(MIN_REST_ROUND_TRIPS * step.rtt));
        if step.now < since + rest * 2_u32.pow(self.unanswered) {
            return false;
        }
        self.until = Some(step.after(KNOCK_ROUND_TRIPS));
        true
    }

    /// Takes a round trip without a queue; returns whether it is the answer to a knock.
    pub(crate) fn take_answer(&mut self, step: &Step) -> bool {
        let gone = GONE_ROUND_TRIPS * step.rtt;
        let is_knock_recent = self
            .until
            .is_some_and(|until| step.now < until + Duration::from_secs_f64(gone));
        let is_answered = is_knock_recent && step.gap > ANSWER_ROUND_TRIPS * step.rtt;
        if is_answered {
            self.unanswered = 0;
        }
        if is_answered || step.gap > gone {
            self.forget();
        }
        is_answered
    }

    /// Forgets the short queue, and ends a knock.
    pub(crate) fn forget(&mut self) {
        self.short = None;
        self.break_off();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: f64 = 0.1;
    const TARGET: f64 = 0.002;

    /// A round trip after so many before, with this queue.
    fn step(round: u32, queue: f64, has_holes: bool) -> Step {
        Step {
            now: Duration::from_millis(100) * round,
            has_come: false,
            carried: 2.0,
            used: 2.0,
            rtt: RTT,
            is_limiting: true,
            queue,
            target: TARGET,
            packet: 0.001,
            is_lost: has_holes,
            has_holes,
            gap: RTT,
        }
    }

    /// A round trip without a queue, this long after the last one with it.
    fn clear(round: u32, gap: f64) -> Step {
        Step {
            gap,
            ..step(round, 0.0, false)
        }
    }

    /// The first rounds of the knocks in so many with this queue.
    fn knocks(knock: &mut Knock, rounds: std::ops::Range<u32>, queue: f64) -> Vec<u32> {
        let on: Vec<_> = rounds
            .filter(|&at| knock.meet(&step(at, queue, false)))
            .collect();
        let begins = |i: &usize| *i == 0 || on[*i] != on[i - 1] + 1;
        (0..on.len()).filter(begins).map(|i| on[i]).collect()
    }

    #[test]
    fn knocks_without_an_answer_become_rare() {
        let mut knock = Knock::default();
        let first = [50, 164, 378, 792, 1606];
        let on = knocks(&mut knock, 0..4000, 0.004);
        assert_eq!(on[..5], first);
        assert_eq!(on[5..], [2420, 3234], "no rarer than that");
    }

    #[test]
    fn a_knock_leaves_most_of_the_path() {
        for (full, expected) in [(100.0, 30.0), (10.0, 4.0), (6.0, 3.0), (1.0, 0.5)] {
            assert_eq!(window(full), expected, "of {full} segments");
        }
    }

    #[test]
    fn a_long_path_is_knocked_at_seldom() {
        let mut knock = Knock::default();
        let far = |round: u32| Step {
            rtt: 5.0 * RTT,
            ..step(5 * round, 0.004, false)
        };
        let first = (0..100).find(|&round| knock.meet(&far(round)));
        assert_eq!(first, Some(42), "round trips of half a second");
    }

    #[test]
    fn a_long_queue_or_a_loss_prevents_a_knock() {
        let mut knock = Knock::default();
        assert!(knocks(&mut knock, 0..1000, 0.008).is_empty());
        assert!(knocks(&mut knock, 1000..1049, 0.004).is_empty());
        assert!(!knock.meet(&step(1049, 0.004, true)));
        assert_eq!(knocks(&mut knock, 1050..1110, 0.004), [1100]);
        assert!(
            !knock.meet(&step(1110, 0.008, false)),
            "a knock that meets more"
        );
    }

    #[test]
    fn a_queue_that_goes_answers_a_knock() {
        let mut knock = Knock::default();
        knocks(&mut knock, 0..52, 0.004);
        assert!(knock.is_on());
        assert!(!knock.take_answer(&clear(53, RTT)));
        assert!(knock.take_answer(&clear(54, 2.1 * RTT)));
        assert!(!knock.take_answer(&clear(55, 2.1 * RTT)), "once");
        assert_eq!(knocks(&mut knock, 56..120, 0.004), [106], "at first again");
    }

    #[test]
    fn a_queue_that_goes_long_after_a_knock_is_no_answer() {
        let mut knock = Knock::default();
        knocks(&mut knock, 0..52, 0.004);
        assert!(!knock.take_answer(&clear(90, 39.0 * RTT)));
        assert!(!knock.is_on());
    }

    #[test]
    fn a_queue_that_comes_and_goes_restarts_the_wait() {
        let mut knock = Knock::default();
        knocks(&mut knock, 0..40, 0.004);
        assert!(!knock.take_answer(&clear(44, 4.0 * RTT)));
        assert_eq!(knocks(&mut knock, 45..100, 0.004), [95]);
    }

    #[test]
    fn a_pause_of_the_flow_does_not_restart_the_wait() {
        let mut knock = Knock::default();
        knocks(&mut knock, 0..40, 0.004);
        let back = |round: u32, gap| Step {
            gap,
            ..step(round, 0.004, false)
        };
        knock.break_off();
        assert!(knock.meet(&back(60, 20.0 * RTT)), "the next response");
        knock.break_off();
        assert!(
            !knock.meet(&back(200, 140.0 * RTT)),
            "nobody looked for long"
        );
        assert_eq!(knocks(&mut knock, 201..300, 0.004), [250]);
    }
}
