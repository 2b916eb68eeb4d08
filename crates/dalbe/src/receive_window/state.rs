//! What a brake is doing, in a word, for people: whether it holds a download
//! back for somebody. Decides nothing.

use std::time::Duration;

use serde::Serialize;

use crate::weight::CapacityEstimate;

/// The rate is taken over this time, and what was seen of others counts as
/// long: people look once a second.
const PERIOD: Duration = Duration::from_secs(1);

/// Who carries less than this of the most that was carried lately is held
/// back: more than what the search for the link's rate costs.
pub const HELD_BACK_SHARE: f64 = 0.8;

/// Yielding begins when the window holds the flow back beside others at more
/// than this share of the looks in a period: else a short queue of its own
/// would do.
const BEGINS: f64 = 0.5;
/// It goes on while that is so at more than this share: beside a stream the
/// queue comes and goes.
const STILL: f64 = 0.1;

/// What a brake is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveWindowState {
    /// Nothing: at w = 1 there is no brake.
    Free,
    /// It takes what nobody wants: of others nothing is to be seen, or they
    /// leave as much as the flow has ever had.
    Filling,
    /// It holds the flow back for somebody else.
    Yielding,
}

/// Tells [`ReceiveWindowState::Yielding`] from [`ReceiveWindowState::Filling`]: the window held
/// the flow back during the last second while others were to be seen, and the
/// flow carries clearly less than it has carried lately. A flow that came last
/// and never had more does not know what it leaves to others.
#[derive(Debug, Clone, Default)]
pub(super) struct Yield {
    /// The most that the flow has carried lately.
    most: CapacityEstimate,
    /// Bytes at the last look.
    bytes: Option<u64>,
    /// When the present period began, and the bytes then.
    period: Option<(Duration, u64)>,
    /// Looks in the present period, and at how many of them the window held
    /// the flow back beside others.
    looks: u32,
    holding: u32,
    is_yielding: bool,
}

impl Yield {
    /// The connection has received `bytes` since it was opened; `holds` if the
    /// window holds it back now, and others are to be seen.
    pub(super) fn update(&mut self, now: Duration, bytes: u64, holds: bool) {
        let more = bytes.saturating_sub(*self.bytes.get_or_insert(bytes));
        self.bytes = Some(bytes);
        self.most.record(now, more);
        self.looks += 1;
        self.holding += u32::from(holds);
        let &mut (began, before) = self.period.get_or_insert((now, bytes));
        let elapsed = now.saturating_sub(began);
        if elapsed < PERIOD {
            return;
        }
        let rate = bytes.saturating_sub(before) as f64 / elapsed.as_secs_f64();
        let enough = if self.is_yielding { STILL } else { BEGINS };
        let holds = f64::from(self.holding) > enough * f64::from(self.looks);
        self.is_yielding = holds && rate < HELD_BACK_SHARE * self.most.rate(now);
        (self.looks, self.holding) = (0, 0);
        self.period = Some((now, bytes));
    }

    /// Nothing is held back, or the next response is awaited: what comes now
    /// says nothing.
    pub(super) fn pause(&mut self, bytes: u64) {
        self.bytes = Some(bytes);
        self.period = None;
        (self.looks, self.holding) = (0, 0);
    }

    pub(super) fn is_yielding(&self) -> bool {
        self.is_yielding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said after each of so many seconds at a rate, byte/ms.
    fn run(yields: &mut Yield, now: &mut u64, bytes: &mut u64, rate: u64, others: bool) -> bool {
        for _ in 0..150 {
            *now += 20;
            *bytes += 20 * rate;
            yields.update(Duration::from_millis(*now), *bytes, others);
        }
        yields.is_yielding()
    }

    #[test]
    fn it_yields_when_others_are_seen_and_less_is_carried_than_before() {
        let (mut yields, mut now, mut bytes) = (Yield::default(), 0, 0);
        let mut run = |rate, others| run(&mut yields, &mut now, &mut bytes, rate, others);
        assert!(!run(1250, false), "alone");
        assert!(!run(1250, true), "its own queue: it carries all there is");
        assert!(run(500, true), "others, and less is carried");
        assert!(!run(500, false), "a slow server");
        assert!(run(500, true));
        assert!(!run(1250, false), "alone again");
    }

    #[test]
    fn a_dip_of_ones_own_is_not_yielding() {
        let (mut yields, mut now, mut bytes) = (Yield::default(), 0, 0);
        run(&mut yields, &mut now, &mut bytes, 1250, false);
        for look in 0..150 {
            now += 20;
            bytes += 20 * 800;
            yields.update(Duration::from_millis(now), bytes, look % 3 == 0);
            assert!(!yields.is_yielding());
        }
    }

    #[test]
    fn who_never_had_more_does_not_know() {
        let (mut yields, mut now, mut bytes) = (Yield::default(), 0, 0);
        assert!(!run(&mut yields, &mut now, &mut bytes, 500, true));
    }

    #[test]
    fn a_pause_is_no_slowness() {
        let (mut yields, mut now, mut bytes) = (Yield::default(), 0, 0);
        run(&mut yields, &mut now, &mut bytes, 1250, false);
        for _ in 0..500 {
            now += 20;
            yields.pause(bytes);
        }
        for _ in 0..60 {
            now += 20;
            bytes += 20 * 1250;
            yields.update(Duration::from_millis(now), bytes, true);
            assert!(!yields.is_yielding());
        }
    }
}
