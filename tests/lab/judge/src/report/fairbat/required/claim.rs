//! The paper's claim on long-lived flows: beside them the other background transports fail,
//! and FAIRBAT does not. What decides it is taken together, since each figure alone misleads:
//! fetches gain from load that is only put off.

use crate::report::fairbat::LONG;
use crate::report::fairbat::figures::Growth;
use crate::report::fairbat::group::{Estimate, Group, estimate};
use crate::report::fairbat::points::{
    AT_ONE_LINK, BASELINE, FAILING, HARD, PLAIN, Point, Topology,
};
use crate::report::fairbat::required::carried::is_near;
use crate::report::fairbat::required::judged::{Judgement, judged};
use crate::report::words::title;
use crate::requirement::Requirement;
use crate::results::MatrixRecord;

/// Of each of the others, in the runs that are long enough for what grows.
pub(crate) fn others_fail(long: Option<&MatrixRecord>) -> [Requirement; FAILING.len()] {
    FAILING.map(|name| {
        let what = format!(
            "{}: beside long flows it fails and {} does not ({LONG}): the interval of ours is above \
             0, the other's not; ours has fewer chunks on the network than TCP, the other more, which \
             grow; both carry the load within 3 %",
            title(name),
            title(PLAIN)
        );
        let Some(long) = long else {
            return Requirement::new(what, "", None);
        };
        let mut points = Point::all_of(long, HARD);
        if !AT_ONE_LINK.contains(&name) {
            points.extend(Point::all_of(long, Topology::Two));
        }
        let all = points.iter().filter_map(|point| settled(long, *point, name));
        let all: Vec<_> = all.collect();
        judged(what, long, &[PLAIN, name, BASELINE], points.len(), all)
    })
}

/// What decides at a point; `None` where one of them has no runs.
fn settled<'a>(long: &MatrixRecord, point: Point<'a>, other: &str) -> Option<Judgement<'a>> {
    let baseline = Group::of(long, point, BASELINE);
    let [ours, others] = [PLAIN, other].map(|name| Group::of(long, point, name));
    let carried = [ours.carried()?, others.carried()?];
    let gains = [ours.improvement(&baseline)?, others.improvement(&baseline)?];
    let active = [
        ours.active_against(&baseline)?,
        others.active_against(&baseline)?,
    ];
    let growth = Growth::of_active(&others)?;
    let all = [
        is_above(gains[0], 0.0),
        gains[1].interval().map(|it| it.low() <= 0.0),
        is_above(active[0], 1.0).map(|more| !more),
        is_above(active[1], 1.0),
        Some(growth.is_certain()),
    ];
    let is_carried = carried.into_iter().all(is_near);
    let holds = is_carried.then(|| together(&all)).flatten();
    let both =
        |figures: [Estimate; 2], digits| figures.map(|it| estimate(Some(it), digits)).join(" and ");
    let put_off = match is_carried {
        true => "",
        false => ", so load was put off, and the rest does not settle it",
    };
    let words = format!(
        "improvement {} %, active {}, the other\u{2019}s {}, carried {:.1} and {:.1} %{put_off}",
        both(gains, 1),
        both(active, 2),
        growth.words(),
        100.0 * carried[0],
        100.0 * carried[1]
    );
    Some(Judgement::new(point, holds, words))
}

/// Whether a figure is above a bound by its whole interval; `None` where the interval does not
/// tell, or is not known.
fn is_above(figure: Estimate, bound: f64) -> Option<bool> {
    let interval = figure.interval()?;
    if interval.low() > bound {
        Some(true)
    } else if interval.high() < bound {
        Some(false)
    } else {
        None
    }
}

/// One that does not hold decides; one that is not known leaves it open.
fn together(all: &[Option<bool>]) -> Option<bool> {
    if all.contains(&Some(false)) {
        return Some(false);
    }
    all.iter().all(|one| *one == Some(true)).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fairbat::points::LEDBAT;
    use crate::report::tests::fairbat::evaluation;

    /// Runs in which the other's chunks grow, and all is carried, seed by seed with some
    /// chance.
    fn long(change: impl Fn(&str, &mut crate::results::RunSummary)) -> MatrixRecord {
        let mut matrix = evaluation();
        matrix.scenarios.retain(|name, _| name == "fairbat-b60-k3");
        let is_there = |name: &str| [PLAIN, LEDBAT, BASELINE].contains(&name);
        matrix
            .runs
            .retain(|run| run.scenario == "fairbat-b60-k3" && is_there(&run.contender));
        for run in &mut matrix.runs {
            let name = run.contender.clone();
            let jobs = run.summary.jobs.as_mut().unwrap();
            if name == PLAIN {
                let active = jobs.active.as_mut().unwrap();
                active.mean = 2.0 + 0.01 * run.seed as f64;
            }
            change(&name, run);
        }
        matrix
    }

    fn line(long: &MatrixRecord) -> String {
        let [first, ..] = others_fail(Some(long));
        format!("{} | {}", first.verdict.words(), first.measured)
    }

    #[test]
    fn all_that_decides_is_taken_together() {
        let found = line(&long(|_, _| {}));
        assert!(found.starts_with("holds | at 1 of 1 points"), "{found}");
        // The other one helps fetches by its whole interval.
        let helps = line(&long(|name, run| {
            if name == LEDBAT {
                run.summary.jobs.as_mut().unwrap().web.moments.mean_y *= 0.5;
            }
        }));
        assert!(helps.starts_with("**does not hold**"), "{helps}");
        // It does not pile up.
        let bounded = line(&long(|name, run| {
            if name == LEDBAT {
                run.summary
                    .jobs
                    .as_mut()
                    .unwrap()
                    .active
                    .as_mut()
                    .unwrap()
                    .quarters = [16.0; 4];
            }
        }));
        assert!(bounded.starts_with("**does not hold**"), "{bounded}");
        // Ours has more on the network than TCP.
        let more = line(&long(|name, run| {
            if name == PLAIN {
                run.summary
                    .jobs
                    .as_mut()
                    .unwrap()
                    .active
                    .as_mut()
                    .unwrap()
                    .mean = 5.0;
            }
        }));
        assert!(more.starts_with("**does not hold**"), "{more}");
    }

    #[test]
    fn load_that_is_put_off_settles_nothing() {
        for late in [PLAIN, LEDBAT] {
            let found = line(&long(|name, run| {
                if name == late {
                    run.summary.background_mbit = 3.6;
                }
            }));
            assert!(
                found.starts_with("**not measured** | at 0 of 1 points"),
                "{found}"
            );
            assert!(found.contains("so load was put off"), "{found}");
        }
    }

    #[test]
    fn without_runs_it_is_not_measured() {
        for it in others_fail(None) {
            assert_eq!(it.verdict.words(), "**not measured**");
        }
        let [_, second, ..] = others_fail(Some(&long(|_, _| {})));
        assert_eq!(second.verdict.words(), "**not measured**");
        assert_eq!(second.measured, "at 0 of 1 points");
    }
}
