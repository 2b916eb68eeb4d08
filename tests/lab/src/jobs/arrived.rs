//! How much happened to arrive of what was to be expected: a mean of few runs is
//! made more exact by taking out what it owes to that.

use crate::link::PAYLOAD_SHARE;
use crate::link::rate::bytes_per_s;
use crate::record::Fetch;
use crate::scenario::{Scenario, Traffic};

/// Bytes of fetches and chunks together that arrived before this moment, in parts
/// of those that their loads let expect: 1 on average. `None` where none are to be
/// expected.
pub(super) fn share(
    setup: &Scenario,
    fetches: &[Fetch],
    jobs: &[Fetch],
    until: f64,
) -> Option<f64> {
    let rate = |link: usize| {
        let link = setup.link.get(link)?;
        Some(bytes_per_s(link.rate_mbit) * PAYLOAD_SHARE)
    };
    let mut expected = 0.0;
    for foreground in &setup.foreground {
        if let Traffic::Web { load, .. } = foreground.traffic {
            let span = foreground.active();
            let time = (span.end.min(until) - span.start).max(0.0);
            let link = foreground.link.map_or(0, |link| link - 1);
            expected += load * rate(link)? * time;
        }
    }
    if let Some(chunks) = setup.background.jobs {
        let end = chunks.until_s.unwrap_or(setup.duration_s).min(until);
        let time = (end - setup.background.start_s).max(0.0);
        expected += chunks.load * rate(0)? * time;
    }
    let arrived = fetches.iter().chain(jobs).filter(|one| one.t < until);
    let bytes: f64 = arrived.map(|one| one.bytes as f64).sum();
    let share = bytes / expected;
    share.is_finite().then_some(share)
}
