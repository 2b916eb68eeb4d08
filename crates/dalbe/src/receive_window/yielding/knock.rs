//! The knock of a flow that yields to a short queue.
//!
//! A flow of the same kind that has found nobody keeps a short queue of its own for as long
//! as it likes. One that comes later would yield to it for ever, and the first would never
//! know. So it takes a part of the path for some round trips. One of its kind gives way to
//! that, and the queue goes. Traffic that takes all stays, and each knock without an answer
//! doubles the time to the next. All functions follow from their arguments.

use std::time::Duration;

use super::step::Step;

/// A queue of so many targets is short.
const SHORT_TARGETS: f64 = 3.5;
/// It stays for this time before the first knock, ...
const FIRST_REST: Duration = Duration::from_secs(5);
/// ... which doubles this often.
const MAX_UNANSWERED: u32 = 4;
/// A knock lasts for so many round trips at most, ...
const KNOCK_ROUND_TRIPS: f64 = 14.0;
/// ... and is answered by so many without a queue.
const ANSWER_ROUND_TRIPS: f64 = 2.0;
/// A queue that is gone for longer is that of others who come and go.
const GONE_ROUND_TRIPS: f64 = 3.0;

/// The knocks of a flow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Knock {
    /// Since when the queue is short, or the last knock over.
    short: Option<Duration>,
    /// When the present knock is over.
    until: Option<Duration>,
    /// Knocks without an answer, as far as they count.
    unanswered: u32,
}

impl Knock {
    /// A round trip with a queue; returns whether the flow knocks.
    pub(crate) fn meet(&mut self, step: &Step) -> bool {
        let is_short = !step.is_lost && step.queue <= SHORT_TARGETS * step.target;
        if let Some(until) = self.until {
            if is_short && step.now < until {
                return true;
            }
            self.until = None;
            self.unanswered = (self.unanswered + 1).min(MAX_UNANSWERED);
            self.short = None;
        }
        if !is_short {
            self.short = None;
            return false;
        }
        let since = *self.short.get_or_insert(step.now);
        if step.now < since + FIRST_REST * 2_u32.pow(self.unanswered) {
            return false;
        }
        self.until = Some(step.after(KNOCK_ROUND_TRIPS));
        true
    }

    /// A round trip without a queue; returns whether a knock is answered.
    pub(crate) fn is_answered(&mut self, step: &Step) -> bool {
        if step.gap > GONE_ROUND_TRIPS * step.rtt {
            self.short = None;
        }
        let is_answered = self.until.is_some() && step.gap > ANSWER_ROUND_TRIPS * step.rtt;
        if is_answered {
            *self = Self::default();
        }
        is_answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: f64 = 0.1;
    const TARGET: f64 = 0.002;

    /// A round trip after so many before, with this queue.
    fn step(round: u32, queue: f64, is_lost: bool) -> Step {
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
            is_lost,
            gap: RTT,
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
        assert_eq!(knocks(&mut knock, 0..1000, 0.004), [50, 164, 378, 792]);
    }

    #[test]
    fn a_long_queue_and_a_loss_are_no_peer() {
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
        let at = |round, gap| Step {
            gap,
            ..step(round, 0.0, false)
        };
        assert!(!knock.is_answered(&at(53, RTT)));
        assert!(knock.is_answered(&at(54, 2.1 * RTT)));
        assert!(!knock.is_answered(&at(55, 9.0 * RTT)), "once");
        assert_eq!(knocks(&mut knock, 56..120, 0.004), [106], "at first again");
    }

    #[test]
    fn a_queue_that_comes_and_goes_is_no_peer() {
        let mut knock = Knock::default();
        knocks(&mut knock, 0..40, 0.004);
        let gone = Step {
            gap: 4.0 * RTT,
            ..step(44, 0.0, false)
        };
        assert!(!knock.is_answered(&gone));
        assert_eq!(knocks(&mut knock, 45..100, 0.004), [95]);
    }
}
