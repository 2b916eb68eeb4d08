//! When transfers were there beside web fetches of several loads: a table, and
//! boxes as in DA-LBE's fig. 10 (Hayes et al. 2017, NEAT D3.2 Appendix B), of
//! this project's deadline controller and laws, and of the paper's.

use std::path::Path;

use crate::report::select::{Place, color, colors, contenders};
use crate::report::senders::{DEFAULT_LAW, all_runs, runs};
use crate::report::words::title;
use crate::requirement::{Part, Requirement};
use crate::results::{MatrixRecord, RunSummary};
use crate::verdict::Bound;
use lab_run::chart::{ChartResult, Color, Grid, Sheet};
use lab_run::link::PAYLOAD_SHARE;
use lab_run::scenario::{Scenario, Traffic};
use lab_run::statistics::Spread;
use lab_run::table::{NOTHING, Table, percent, shown};

const GRID: Grid = Grid {
    columns: 4,
    panel: (200, 240),
    pitch: (265, 330),
    first: (60, 130),
};

/// Half of the width of a box in parts of the room for it.
const HALF_WIDTH: f64 = 0.28;

/// Whiskers reach so many times the box beyond it, at most.
const WHISKER: f64 = 1.5;

/// Share of the transfers that are to be there in time, %.
const MIN_IN_TIME: f64 = 95.0;

/// Up to this load, with some tolerance for its last digit.
const MAX_LOAD: f64 = 0.501;

/// Transfers that are needed to say so, beside each load.
const MIN_TRANSFERS: f64 = 10.0;

/// Transfers of one contender beside one load. One that was never there took for
/// ever; with a run that failed that is so of every transfer that nobody knows of.
struct Times {
    /// Seconds that each took that was there before the run was over, ascending.
    took: Vec<f64>,
    /// How many there were altogether.
    count: usize,
    /// How many were there in time.
    met: usize,
}

impl Times {
    fn of(matrix: &MatrixRecord, place: &Place, contender: &str) -> Self {
        let asked = matrix.scenarios.get(&place.scenario).map_or(0, |scenario| {
            let background = &scenario.background;
            background.copies as usize * background.due().len()
        });
        let mut times = Self {
            took: Vec::new(),
            count: 0,
            met: 0,
        };
        for run in all_runs(matrix, place, contender) {
            let figures = run.summary.deadline.as_ref();
            let known = figures.map_or(&[][..], |figures| &figures.transfers);
            times.count += known.len().max(asked);
            times.met += known.iter().filter(|one| one.met == Some(true)).count();
            times.took.extend(known.iter().filter_map(|one| one.took_s));
        }
        times.took.sort_by(f64::total_cmp);
        times
    }

    /// How many were there in time, 0 to 1; `None` without any.
    fn met_share(&self) -> Option<f64> {
        (self.count > 0).then(|| self.met as f64 / self.count as f64)
    }

    /// How many were not there before the run was over.
    fn missing(&self) -> usize {
        self.count - self.took.len()
    }

    /// Lower quartile, median and upper quartile, infinite where they are beyond
    /// those that were there; `None` without any.
    fn quartiles(&self) -> Option<[f64; 3]> {
        let last = self.count.checked_sub(1)?;
        // As `percentile`, which leaves out what is not finite.
        let at = |share: f64| {
            let rank = share * last as f64;
            let time = |rank: f64| self.took.get(rank as usize).copied();
            let between = time(rank.floor()).zip(time(rank.ceil()));
            between.map_or(f64::INFINITY, |(below, above)| {
                below + (rank - rank.floor()) * (above - below)
            })
        };
        Some([0.25, 0.5, 0.75].map(at))
    }

    /// The outermost values that are not too far from the box.
    fn whiskers(&self) -> Option<(f64, f64)> {
        let [lower, _, upper] = self.quartiles()?;
        let reach = WHISKER * (upper - lower);
        let mut near = self.took.iter().copied();
        let first = near.find(|value| *value >= lower - reach)?;
        let mut near = self.took.iter().rev().copied();
        let last = near.find(|value| *value <= upper + reach)?;
        Some((first, if upper.is_finite() { last } else { upper }))
    }
}

/// A time to a tenth of a second.
fn seconds(time: f64) -> String {
    if time.is_finite() {
        format!("{time:.1}")
    } else {
        "not there".to_owned()
    }
}

/// The load of web fetches that came with each seed, % of the link's payload; `None`
/// without fetches.
fn load_that_came(matrix: &MatrixRecord, place: &Place, contender: &str) -> Option<Spread> {
    let scenario = matrix.scenarios.get(&place.scenario)?;
    let rate = scenario.link.first()?.rate_mbit * PAYLOAD_SHARE;
    let loads = runs(matrix, place, contender).into_iter().map(|run| {
        let flows = run.summary.forward(scenario);
        let web = flows.filter(|(flow, _)| flow.is_web());
        let web = web.map(|(_, rate)| rate).reduce(|all, one| all + one);
        web.map(|web| 100.0 * web / rate)
    });
    Spread::of(&loads.flatten().collect::<Vec<_>>())
}

/// What goes below the head of the page, of this project's controller.
pub(crate) fn own(matrix: &MatrixRecord) -> String {
    let laws: Vec<_> = contenders(matrix)
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    let head = format!(
        include_str!("../../text/senders-load.md"),
        laws = laws.join(", ")
    );
    times(matrix, &head)
}

/// The same of the paper's.
pub(crate) fn published(matrix: &MatrixRecord) -> String {
    times(matrix, include_str!("../../text/senders-fig10.md"))
}

/// When transfers were there: what is to be said of it, a picture and a table.
fn times(matrix: &MatrixRecord, head: &str) -> String {
    let names = contenders(matrix);
    let rows = Place::all(matrix).into_iter().flat_map(|place| {
        let of = |name: &&str| {
            let times = Times::of(matrix, &place, name);
            Some((place.clone(), (*name).to_owned(), times.quartiles()?, times))
        };
        names.iter().filter_map(of).collect::<Vec<_>>()
    });
    let table = Table::over(rows)
        .column("", |(place, ..)| place.scenario.clone())
        .column("", |(_, name, ..)| title(name).to_owned())
        .column("web load that came, %", |(place, name, ..)| {
            shown(load_that_came(matrix, place, name), 1)
        })
        .column("transfers", |(.., times)| times.count.to_string())
        .column("there in time, %", |(.., times)| {
            percent(times.met_share(), 0)
        })
        .column("lower quartile, s", |row| seconds(row.2[0]))
        .column("median, s", |row| seconds(row.2[1]))
        .column("upper quartile, s", |row| seconds(row.2[2]))
        .column("last, s", |(.., times)| {
            let last = times.took.last().map(|last| seconds(*last));
            let last = last.unwrap_or(NOTHING.to_owned());
            match times.missing() {
                0 => last,
                missing => format!("{last}, {missing} not there"),
            }
        });
    let text = format!(
        include_str!("../../text/senders-load-times.md"),
        name = matrix.name,
        table = table
    );
    format!("{}\n\n{text}", head.trim_end())
}

pub(crate) fn requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let loads = Place::all(matrix).into_iter().filter_map(|place| {
        let load = web_load(matrix.scenarios.get(&place.scenario)?)?;
        Some((load, place))
    });
    let mut loads: Vec<_> = loads.collect();
    loads.sort_by(|one, other| one.0.total_cmp(&other.0));
    let in_time = loads.iter().filter(|(load, _)| *load <= MAX_LOAD);
    let bound = Bound::AtLeast(MIN_IN_TIME);
    let in_time = in_time.map(|(load, at)| {
        let share = Times::of(matrix, at, DEFAULT_LAW).met_share();
        let came = load_that_came(matrix, at, DEFAULT_LAW);
        let came = came.map(|_| format!(" ({} came)", shown(came, 1)));
        let place = format!("load {:.0} %{}:", 100.0 * load, came.unwrap_or_default());
        let seeds = runs(matrix, at, DEFAULT_LAW).len();
        Part::of_all(place, share.map(|share| 100.0 * share), seeds, bound)
    });
    let in_time: Vec<_> = in_time.collect();
    let enough = Bound::AtLeast(MIN_TRANSFERS);
    let counts = contenders(matrix).into_iter().map(|contender| {
        let all = loads.iter().map(|(_, at)| runs(matrix, at, contender));
        let least = all.map(|runs| transfers(&runs)).min().unwrap_or_default();
        Part::count(format!("{}:", title(contender)), least, enough)
    });
    let counts: Vec<_> = counts.collect();
    let there = format!("there in time at loads up to 50 %, %, {}", bound.words(1));
    let beside = format!("transfers beside each load {}", enough.words(0));
    vec![
        Requirement::of_parts(there, 1, &in_time),
        Requirement::of_parts(beside, 0, &counts),
    ]
}

/// How many transfers these runs had, in time or not.
fn transfers(runs: &[&RunSummary]) -> usize {
    let figures = runs.iter().filter_map(|run| run.summary.deadline.as_ref());
    figures.map(|figures| figures.transfers.len()).sum()
}

/// The load of web fetches, 0 to 1.
fn web_load(scenario: &Scenario) -> Option<f64> {
    let mut foreground = scenario.foreground.iter();
    foreground.find_map(|one| match one.traffic {
        Traffic::Web { load, .. } => Some(load),
        _ => None,
    })
}

/// Draws it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let places = Place::all(matrix);
    let title_words = format!("{}: seconds until transfers were there", matrix.name);
    let line = "Boxes: the middle half, with the median; whiskers: the rest within 1.5 times the \
                box; dots: beyond. Dashed: the deadline. At the top: never there.";
    let sheet = Sheet::headed(path, GRID.size(places.len()), &title_words, &[line])?;
    let colors = colors(matrix);
    let named = colors.iter().map(|(name, color)| (title(name), *color));
    sheet.legend(&named.collect::<Vec<_>>(), 70, false)?;
    for (index, place) in places.iter().enumerate() {
        let scenario = matrix.scenarios.get(&place.scenario);
        let due = scenario.and_then(|it| it.background.window_s());
        let due = due.unwrap_or_default();
        let all = contenders(matrix).into_iter();
        let all: Vec<_> = all
            .map(|name| (name, Times::of(matrix, place, name)))
            .collect();
        let last = all.iter().filter_map(|(_, times)| times.took.last());
        let most = last.copied().fold(due, f64::max) * 1.1;
        let count = all.len().max(1) as f64;
        let mut plot = sheet.plot(GRID.frame(index), 0.0..count, 0.0..most, (0, 6))?;
        plot.above(&place.scenario, 16)?;
        plot.across(due, 4)?;
        for (number, (contender, times)) in all.iter().enumerate() {
            let color = color(&colors, contender);
            let middle = number as f64 + 0.5;
            if times.missing() > 0 {
                let (x, y) = plot.place((middle, most));
                let words = format!("{} not there", times.missing());
                sheet.write_around(&words, color, (x, y + 6))?;
            }
            let Some((quartiles, (first, last))) = times.quartiles().zip(times.whiskers()) else {
                continue;
            };
            let [lower, median, upper] = quartiles.map(|time| time.min(most));
            let last = last.min(most);
            let (left, right) = (middle - HALF_WIDTH, middle + HALF_WIDTH);
            plot.boxes([[(left, lower), (right, upper)]], color.mix(0.25).filled())?;
            plot.line(&[(left, median), (right, median)], color, 2)?;
            plot.line(&[(middle, first), (middle, lower)], color, 2)?;
            plot.line(&[(middle, upper), (middle, last)], color, 2)?;
            let all = times.took.iter();
            let beyond = all.filter(|one| **one < first || **one > last);
            plot.dots(beyond.map(|one| (middle, *one)), 3, color.stroke_width(1))?;
        }
    }
    sheet.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::senders::{page, required};
    use crate::report::tests::synthetic::{line, matrix, run};
    use lab_run::deadline::DeadlineFigures;
    use lab_run::record::TransferRecord;

    fn timed(seed: u64, took: &[f64]) -> RunSummary {
        let mut run = run("web", "sender-vegas", seed, &[3.0]);
        let transfer = |took: &f64| TransferRecord {
            took_s: (*took < 70.0).then_some(*took),
            met: Some(*took <= 60.0),
            ..TransferRecord::default()
        };
        run.summary.deadline = Some(DeadlineFigures {
            transfers: took.iter().map(transfer).collect(),
            ..DeadlineFigures::default()
        });
        run
    }

    fn of(runs: Vec<RunSummary>) -> MatrixRecord {
        let mut matrix = matrix();
        matrix.name = "dalbe-load".to_owned();
        let background = &mut matrix.scenarios.get_mut("web").unwrap().background;
        (background.size_mb, background.deadline_s) = (Some(5.0), Some(60.0));
        background.copies = 3;
        matrix.runs = runs;
        matrix
    }

    fn row(matrix: &MatrixRecord) -> String {
        let (page, _) = page(matrix, |_| Vec::new()).unwrap();
        let line = page.lines().find(|line| line.starts_with("| web |"));
        line.unwrap().to_owned()
    }

    #[test]
    fn every_transfer_of_every_seed_counts() {
        let runs = vec![timed(1, &[40.0, 50.0, 52.0]), timed(2, &[54.0, 56.0, 66.0])];
        let expected = format!(
            "| web | {} | 31.1 | 6 | 83 | 50.5 | 53.0 | 55.5 | 66.0 |",
            title("sender-vegas")
        );
        assert_eq!(row(&of(runs)), expected);
    }

    #[test]
    fn what_was_never_there_is_behind_all_others_and_so_is_what_failed() {
        let mut failed = timed(3, &[]);
        failed.failure = Some("send: no route".to_owned());
        let runs = vec![
            timed(1, &[40.0, 50.0, 52.0]),
            timed(2, &[54.0, 66.0, 99.0]),
            failed,
        ];
        let matrix = of(runs);
        let expected = format!(
            "| web | {} | 31.1 | 9 | 44 | 52.0 | 66.0 | not there | 66.0, 4 not there |",
            title("sender-vegas")
        );
        assert_eq!(row(&matrix), expected);
        let svg = drawn(&matrix);
        assert!(svg.contains("4 not there"), "{svg}");
        let nothing = of(vec![timed(1, &[99.0, 99.0, 99.0])]);
        assert!(drawn(&nothing).contains("3 not there"));
    }

    #[test]
    fn the_load_that_came_is_not_the_one_that_was_meant() {
        let mut more = timed(2, &[54.0, 56.0, 66.0]);
        more.summary.foreground_mbit = vec![3.5];
        let line = row(&of(vec![timed(1, &[40.0, 50.0, 52.0]), more]));
        assert!(line.contains("| 33.7 (31.1\u{2013}36.3) | 6 |"), "{line}");
    }

    #[test]
    fn what_is_far_from_the_box_is_a_dot() {
        // The quartiles are 50.25 and 52.75 s.
        let runs = vec![timed(1, &[40.0, 50.0, 51.0]), timed(2, &[52.0, 53.0, 66.0])];
        assert_eq!(drawn(&of(runs)).matches("<circle").count(), 2);
    }

    fn drawn(matrix: &MatrixRecord) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("load.svg");
        draw(matrix, &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        svg
    }

    #[test]
    fn the_papers_own_controller_has_words_of_its_own_and_no_bounds() {
        let mut matrix = of(vec![timed(1, &[50.0])]);
        assert!(
            page(&matrix, |_| Vec::new())
                .unwrap()
                .0
                .contains("not under its terms")
        );
        matrix.name = "dalbe-fig10".to_owned();
        let (text, _) = page(&matrix, |_| Vec::new()).unwrap();
        assert!(text.contains("by the paper's own laws"), "{text}");
        assert!(!text.contains("## What is required"), "{text}");
    }

    #[test]
    fn transfers_are_in_time_at_loads_up_to_the_half() {
        let mut matrix = matrix();
        matrix.name = "dalbe-load".to_owned();
        matrix.scenarios.retain(|name, _| name == "web");
        let of_law = |contender: &str, met: usize| {
            let mut run = run("web", contender, 1, &[3.0]);
            let transfer = |index| TransferRecord {
                met: Some(index < met),
                took_s: Some(50.0),
                ..TransferRecord::default()
            };
            run.summary.deadline = Some(DeadlineFigures {
                transfers: (0..20).map(transfer).collect(),
                ..DeadlineFigures::default()
            });
            run
        };
        matrix.runs = vec![of_law("sender-cdg", 3), of_law(DEFAULT_LAW, 19)];
        let text = required(&matrix);
        let in_time = line(&text, "| there in time");
        assert!(
            in_time.ends_with("| load 30 % (31.1 came): 95.0 | holds, of one seed |"),
            "{in_time}"
        );
        let counts = line(&text, "| transfers beside");
        assert!(counts.ends_with(": 20 | holds |"), "{counts}");
        matrix.runs = vec![of_law(DEFAULT_LAW, 18)];
        let text = required(&matrix);
        let in_time = line(&text, "| there in time");
        assert!(
            in_time
                .ends_with("| load 30 % (31.1 came): **90.0** | **does not hold**, of one seed |"),
            "{in_time}"
        );
    }
}
