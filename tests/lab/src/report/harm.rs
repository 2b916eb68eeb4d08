//! What a background does to people, run against the foreground alone with the
//! same seed. Knows two summaries and the scenario they are of.

use crate::record::Summary;
use crate::scenario::{Scenario, Traffic};

/// Goodput of the greedy flows over the whole of the measured part, Mbit/s;
/// `None` without any.
pub(super) fn greedy(scenario: &Scenario, summary: &Summary) -> Option<f64> {
    let window = scenario.measured();
    let forward = scenario.flows().filter(|flow| !flow.backward);
    let flows = forward.zip(&summary.foreground_mbit);
    let greedy = flows.filter(|(flow, _)| matches!(flow.traffic, Traffic::Greedy { .. }));
    let goodputs = greedy.map(|(flow, goodput)| {
        let active = flow.active();
        let from = window.start.max(active.start);
        let until = window.end.min(active.end);
        goodput * (until - from).max(0.0) / (window.end - window.start)
    });
    goodputs.reduce(|all, one| all + one)
}

/// Whether there are greedy flows of which the background can take something.
pub(super) fn has_greedy(scenario: &Scenario) -> bool {
    let mut forward = scenario.foreground.iter().filter(|flow| !flow.backward);
    forward.any(|flow| matches!(flow.traffic, Traffic::Greedy { .. }))
}

/// What the background took of the link that was of use to it, Mbit/s over the
/// measured part: no more than there was to move, so that what was sent twice
/// is no excuse.
fn took(scenario: &Scenario, summary: &Summary) -> f64 {
    let window = scenario.measured();
    let asked = scenario.background.due();
    let bytes: f64 = asked.iter().map(|transfer| transfer.size_mb * 1e6).sum();
    summary
        .background_mbit
        .min(bytes * 8e-6 / (window.end - window.start))
}

/// What greedy flows lost beyond the bytes that the background took, in parts
/// of what they had alone; 0 or less when they lost no more than that.
pub(super) fn beyond(scenario: &Scenario, own: &Summary, alone: &Summary) -> Option<f64> {
    let before = greedy(scenario, alone).filter(|&before| before > 0.0)?;
    let lost = before - greedy(scenario, own)?;
    Some((lost - took(scenario, own)) / before)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measured from 2 s to 62 s: web, a greedy flow, and two for a third of
    /// the time.
    fn scenario() -> Scenario {
        let text = "description = \"a test\"\nduration_s = 80.0\nmeasure_from_s = 2.0\n\
                    measure_until_s = 62.0\n\
                    [[link]]\nrate_mbit = 10.0\ndelay_ms = 20.0\nqueue = { bdp = 1.0 }\n\
                    [[foreground]]\ntraffic = { web = { load = 0.3, mean_kb = 300.0 } }\n\
                    [[foreground]]\ntraffic = { greedy = {} }\nbackward = true\n\
                    [[foreground]]\ntraffic = { greedy = {} }\n\
                    [[foreground]]\ntraffic = { greedy = { flows = 2 } }\nstart_s = 42.0\n\
                    [background]\nsize_mb = 7.5\ndeadline_s = 60.0\n";
        toml::from_str(text).unwrap()
    }

    fn summary(flows: [f64; 4], background_mbit: f64) -> Summary {
        Summary {
            foreground_mbit: flows.to_vec(),
            background_mbit,
            ..Summary::default()
        }
    }

    #[test]
    fn greedy_flows_count_while_they_are_there() {
        let summary = summary([3.0, 4.0, 0.6, 0.9], 0.0);
        assert!((greedy(&scenario(), &summary).unwrap() - 4.5).abs() < 1e-9);
        let mut web = scenario();
        web.foreground.truncate(2);
        assert_eq!(greedy(&web, &summary), None);
        assert!(has_greedy(&scenario()));
        assert!(!has_greedy(&web), "the one goes the other way");
    }

    #[test]
    fn what_the_bytes_take_is_no_harm_and_what_is_sent_twice_is() {
        let alone = summary([3.0, 5.0, 0.0, 0.0], 0.0);
        let harm = |kept: f64, took: f64| {
            let own = summary([3.0, kept, 0.0, 0.0], took);
            beyond(&scenario(), &own, &alone).unwrap()
        };
        // 7.5 MB in 60 s are 1 Mbit/s.
        assert!((harm(3.5, 1.0) - 0.1).abs() < 1e-9);
        assert!((harm(3.5, 1.4) - 0.1).abs() < 1e-9);
        assert!((harm(4.0, 1.0)).abs() < 1e-9);
        assert!((harm(4.5, 0.5)).abs() < 1e-9);
        assert!(harm(4.5, 1.0) < 0.0);
        let nothing = summary([3.0, 0.0, 0.0, 0.0], 0.0);
        assert_eq!(beyond(&scenario(), &nothing, &nothing), None);
    }
}
