//! Whether deadlines can be met without driving anybody out: what they ask
//! for against fair shares of the first link. Knows what a scenario says and
//! nothing of a run.
//!
//! The demand criterion of earliest deadline first (Baruah, Rosier and Howell,
//! 1990), for transfers that are all there from the start: all deadlines can
//! be met when for each of them what is due by then is together no more than
//! what can be carried until then.

use crate::link::{PAYLOAD_SHARE, Rate, bytes_per_s};
use crate::scenario::{CALL_PACKET_BYTES, CALL_PACKETS_PER_S};
use crate::scenario::{Foreground, LinkSpec, Scenario, Traffic};

/// Share of a fair share that a feasible transfer may need: what remains is
/// for what TCP loses while it looks for its share, and for fetches that come
/// in bursts.
const FEASIBLE: f64 = 0.8;

impl Scenario {
    /// What the deadlines ask for in parts of fair shares: of the one that
    /// asks for most. `None` without deadlines; infinite where others leave
    /// nothing.
    #[must_use]
    pub fn demand(&self) -> Option<f64> {
        self.demand_beside(1.0)
    }

    /// The same when web traffic comes with so many times the load that the
    /// scenario says: arrivals are random.
    fn demand_beside(&self, web: f64) -> Option<f64> {
        let due = self.background.due();
        let start = self.background.start_s;
        let asked = due.iter().map(|last| {
            let until = due
                .iter()
                .filter(|transfer| transfer.deadline_s <= last.deadline_s);
            let bytes: f64 = until.map(|transfer| transfer.size_mb * 1e6).sum();
            bytes / self.fair_share(start, start + last.deadline_s, web)
        });
        asked.reduce(f64::max)
    }

    /// What there is to move in parts of the payload that the first link carries
    /// until the last deadline; `None` without deadlines.
    #[must_use]
    pub fn capacity_share(&self) -> Option<f64> {
        let start = self.background.start_s;
        let end = start + self.background.window_s()?;
        let rate = Rate::of(&self.link.first()?.forward());
        let sizes = self.background.due().into_iter();
        let bytes: f64 = sizes.map(|transfer| transfer.size_mb * 1e6).sum();
        Some(bytes / (rate.capacity(start, end) * PAYLOAD_SHARE))
    }

    /// Whether all deadlines can be met with less than fair shares; `None`
    /// without deadlines.
    #[must_use]
    pub fn is_feasible(&self) -> Option<bool> {
        Some(self.demand()? <= FEASIBLE)
    }

    /// Whether that is so with the foreground that came in a run of its own,
    /// goodput of each flow in Mbit/s. `None` without deadlines.
    #[must_use]
    pub fn is_feasible_beside(&self, foreground_mbit: &[f64]) -> Option<bool> {
        let flows = self.flows().zip(foreground_mbit);
        let came: f64 = flows
            .filter(|(flow, _)| flow.is_web() && !flow.backward)
            .map(|(_, &mbit)| bytes_per_s(mbit))
            .sum();
        let link = self.link.first()?;
        let web = self.foreground.iter().filter(|one| one.is_web());
        let meant: f64 = web.map(|one| takes(one, link).0).sum();
        let factor = if meant > 0.0 { came / meant } else { 1.0 };
        Some(self.demand_beside(factor)? <= FEASIBLE)
    }

    /// Payload that one more flow carries over the first link in a second when it shares evenly,
    /// from the background's start to the end of the run, Mbit/s.
    #[must_use]
    pub fn fair_mbit(&self) -> f64 {
        let (from, until) = (self.background.start_s, self.duration_s);
        self.fair_share(from, until, 1.0) * 8e-6 / (until - from)
    }

    /// Payload that one more flow carries over the first link between two
    /// moments (s) when it shares what loads leave evenly with the greedy
    /// flows that are there, bytes.
    fn fair_share(&self, from: f64, until: f64, web: f64) -> f64 {
        let Some(link) = self.link.first() else {
            return 0.0;
        };
        let rate = Rate::of(&link.forward());
        let spans = self.foreground.iter().map(Foreground::active);
        let changes = spans.flat_map(|span| [span.start, span.end]);
        let steps = link.schedule.iter().map(|step| step.at_s);
        let mut moments: Vec<f64> = changes
            .chain(steps)
            .filter(|moment| (from..until).contains(moment))
            .chain([from, until])
            .collect();
        moments.sort_by(f64::total_cmp);
        let pieces = moments.windows(2).map(|piece| {
            let (begin, end) = (piece[0], piece[1]);
            let here = self.foreground.iter().filter(|one| {
                !one.backward && one.link.is_none_or(|number| number == 1) && {
                    let active = one.active();
                    active.start <= begin && begin < active.end
                }
            });
            let (load, greedy) = here
                .map(|one| {
                    let (load, greedy) = takes(one, link);
                    match one.traffic {
                        Traffic::Web { .. } => (load * web, greedy),
                        _ => (load, greedy),
                    }
                })
                .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let left = rate.capacity(begin, end) * PAYLOAD_SHARE - load * (end - begin);
            left.max(0.0) / (greedy + 1.0)
        });
        pieces.sum()
    }
}

/// What a foreground takes: payload whatever others do, byte/s, and greedy
/// flows.
fn takes(foreground: &Foreground, link: &LinkSpec) -> (f64, f64) {
    match foreground.traffic {
        Traffic::Greedy { flows } => (0.0, f64::from(flows)),
        Traffic::OnOff { .. } => (0.0, 1.0),
        Traffic::Constant { rate_mbit } => (bytes_per_s(rate_mbit), 0.0),
        Traffic::Web { load, .. } => (load * bytes_per_s(link.rate_mbit) * PAYLOAD_SHARE, 0.0),
        // Of packets with their headers.
        Traffic::Udp { rate_mbit, .. } => (bytes_per_s(rate_mbit) * PAYLOAD_SHARE, 0.0),
        Traffic::Call {} => {
            let bytes = f64::from(CALL_PACKET_BYTES * CALL_PACKETS_PER_S);
            (bytes * PAYLOAD_SHARE, 0.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEDY: &str = "[[foreground]]\ntraffic = { greedy = {} }\n";
    const WEB: &str = "[[foreground]]\ntraffic = { web = { load = 0.3, mean_kb = 300.0 } }\n";

    /// 15 Mbit/s of packets: 1.81 MB/s of payload.
    fn scenario(more: &str) -> Scenario {
        let text = format!(
            "description = \"a test\"\nduration_s = 100.0\nmeasure_from_s = 0.0\n\
             [[link]]\nrate_mbit = 15.0\ndelay_ms = 20.0\nqueue = {{ bdp = 1.0 }}\n{more}"
        );
        toml::from_str(&text).unwrap()
    }

    fn demand(more: &str) -> f64 {
        scenario(more).demand().unwrap()
    }

    fn same(got: f64, expected: f64) {
        assert!((got / expected - 1.0).abs() < 1e-9, "{got} for {expected}");
    }

    #[test]
    fn a_share_is_of_what_loads_leave_and_even_among_greedy_flows() {
        let one = "[background]\nsize_mb = 18.1\ndeadline_s = 50.0\n";
        same(demand(one), 0.2);
        same(demand(&format!("{GREEDY}{one}")), 0.4);
        same(demand(&format!("{WEB}{one}")), 0.2 / 0.7);
        same(demand(&format!("{WEB}{GREEDY}{one}")), 0.4 / 0.7);
        let stream = "[[foreground]]\ntraffic = { constant = { rate_mbit = 7.24 } }\n";
        same(demand(&format!("{stream}{one}")), 0.4);
        let back = GREEDY.replace("]]\n", "]]\nbackward = true\n");
        same(demand(&format!("{back}{one}")), 0.2);
        assert_eq!(scenario("").demand(), None);
    }

    #[test]
    fn web_traffic_counts_as_it_came() {
        // 0.3 of 14.5 Mbit/s is meant to come: 0.2 of 0.7 is asked for.
        let one = "[background]\nsize_mb = 45.25\ndeadline_s = 50.0\n";
        let scenario = scenario(&format!("{WEB}{one}"));
        assert_eq!(scenario.is_feasible(), Some(true));
        assert_eq!(scenario.is_feasible_beside(&[4.35]), Some(true));
        // 7.24 of the 14.48 are needed, and 80 % of the rest is less.
        assert_eq!(scenario.is_feasible_beside(&[5.5]), Some(false));
    }

    #[test]
    fn what_comes_and_goes_counts_while_it_is_there() {
        // Half of the time from 2 s to 52 s, and a quarter of it at half the
        // rate.
        let text = "schedule = [{ at_s = 39.5, rate_mbit = 7.5 }]\n[[foreground]]\n\
                    traffic = { greedy = {} }\nstop_s = 27.0\n\
                    [background]\nsize_mb = 9.05\ndeadline_s = 50.0\n";
        same(demand(text), 0.1 / (0.5 * 0.5 + 0.25 + 0.25 * 0.5));
    }

    #[test]
    fn the_tightest_of_several_deadlines_decides() {
        let transfer = |size: f64, deadline: f64| {
            format!("[[background.transfer]]\nsize_mb = {size:?}\ndeadline_s = {deadline:?}\n")
        };
        // The second and the first together are due by 20 s.
        let three = [
            transfer(18.1, 20.0),
            transfer(9.05, 10.0),
            transfer(1.0, 50.0),
        ]
        .concat();
        same(demand(&three), 0.75);
        assert_eq!(scenario(&three).is_feasible(), Some(true));
        let four = three + &transfer(13.0, 20.0);
        assert_eq!(scenario(&four).is_feasible(), Some(false));
    }

    /// The scenarios of the lab, as a matrix runs them.
    #[test]
    fn the_labs_deadlines_ask_for_what_their_names_say() {
        use crate::files;
        let scenario = |name: &str| -> Scenario {
            let name = format!("deadline-{name}");
            files::by_name(&files::scenarios(), &name).unwrap()
        };
        for (kind, feasible) in [
            ("greedy", [true, false, false]),
            ("web", [true, true, false]),
        ] {
            for (part, feasible) in [10, 30, 50].into_iter().zip(feasible) {
                let scenario = scenario(&format!("{kind}-{part}"));
                let share = 100.0 * scenario.capacity_share().unwrap();
                assert!((share - f64::from(part)).abs() < 0.01, "{kind}: {share}");
                assert_eq!(scenario.is_feasible(), Some(feasible), "{kind}-{part}");
            }
        }
        for name in [
            "constant-greedy",
            "constant-stream",
            "halves",
            "joins",
            "three",
        ] {
            assert_eq!(scenario(name).is_feasible(), Some(true), "{name}");
        }
        let overload = scenario("three-overload");
        assert!(overload.capacity_share().unwrap() > 1.1);
    }

    /// Figures of harm are of the time that the transfer has.
    #[test]
    fn the_labs_deadlines_are_measured_until_they_are_over() {
        use crate::files;
        let all: std::collections::BTreeMap<String, Scenario> =
            files::all(&files::scenarios()).unwrap();
        let deadlines = all.iter().filter(|(name, _)| name.starts_with("deadline-"));
        for (name, scenario) in deadlines {
            let mut long = scenario.clone();
            long.scale_time(3.0);
            let quick = scenario.quick_variant().unwrap();
            for run in [scenario.clone(), long, quick] {
                let background = &run.background;
                let due = background.start_s + background.window_s().unwrap();
                let measured = run.measured();
                assert!((measured.start - background.start_s).abs() < 1e-6, "{name}");
                assert!(
                    (measured.end - due).abs() < 1e-6,
                    "{name}: {measured:?}, {due}"
                );
                assert!(run.duration_s > due + 3.0, "{name}: lateness is measured");
            }
        }
    }

    #[test]
    fn where_nothing_is_left_nothing_is_feasible() {
        let full = "[[foreground]]\ntraffic = { udp = { rate_mbit = 20.0 } }\n\
                    [background]\nsize_mb = 1.0\ndeadline_s = 50.0\n";
        assert_eq!(scenario(full).is_feasible(), Some(false));
    }
}
