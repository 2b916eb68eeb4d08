//! When transfers were there beside web fetches of several loads: a table, and
//! boxes as in DA-LBE's fig. 10 (Hayes et al. 2017, NEAT D3.2 Appendix B), of
//! this project's deadline controller and laws.

use std::fmt::Write;
use std::path::Path;

use fairbat_tests::chart::{
    AROUND, Canvas, ChartResult, FROM, Frame, GREY, INK, LABEL, MARK, TITLE, bold, panel, text,
};
use plotters::prelude::*;

use crate::link::PAYLOAD_SHARE;
use crate::report::MatrixRecord;
use crate::report::chart::{Grid, color, colors};
use crate::report::senders::{Place, all_runs, contenders, places, runs};
use crate::report::words::{NOTHING, cell, shown, title};
use crate::scenario::{Foreground, Traffic};
use crate::statistics::Spread;

/// Where the panels are.
const GRID: Grid = Grid {
    columns: 4,
    panel: (200, 240),
    pitch: (265, 330),
    first: (60, 130),
};

/// Half of the width of a box in parts of the room for it.
const HALF: f64 = 0.28;

/// Whiskers reach so many times the box beyond it, at most.
const WHISKER: f64 = 1.5;

/// Mean width of a letter, px.
const LETTER: f64 = 7.0;

/// Transfers of one contender beside one load. One that was never there took for
/// ever; with a run that failed that is so of every transfer that nobody knows of.
pub(crate) struct Times {
    /// Seconds that each took that was there before the run was over, ascending.
    took: Vec<f64>,
    /// How many there were altogether.
    count: usize,
    /// How many were there in time.
    met: usize,
}

impl Times {
    pub(crate) fn of(matrix: &MatrixRecord, place: Place<'_>, contender: &str) -> Self {
        let asked = matrix.scenarios.get(place.scenario).map_or(0, |scenario| {
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
    pub(crate) fn met_share(&self) -> Option<f64> {
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
            let (below, above) = (time(rank.floor()), time(rank.ceil()));
            let between = below.zip(above);
            between.map_or(f64::INFINITY, |(below, above)| {
                below + (rank - rank.floor()) * (above - below)
            })
        };
        Some([at(0.25), at(0.5), at(0.75)])
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

/// Seconds that the transfers of a place have.
fn window(matrix: &MatrixRecord, place: Place<'_>) -> Option<f64> {
    matrix.scenarios.get(place.scenario)?.background.window_s()
}

/// The load of web fetches that came with each seed, % of the link's payload; `None`
/// without fetches.
pub(crate) fn came(matrix: &MatrixRecord, place: Place<'_>, contender: &str) -> Option<Spread> {
    let scenario = matrix.scenarios.get(place.scenario)?;
    let rate = scenario.link.first()?.rate_mbit * PAYLOAD_SHARE;
    let is_web = |flow: &Foreground| matches!(flow.traffic, Traffic::Web { .. });
    let loads = runs(matrix, place, contender).into_iter().map(|run| {
        let flows = scenario.flows().filter(|flow| !flow.backward);
        let flows = flows.zip(&run.summary.foreground_mbit);
        let web = flows.filter(|(flow, _)| is_web(flow));
        let web = web.map(|(_, rate)| *rate).reduce(|all, one| all + one);
        web.map(|web| 100.0 * web / rate)
    });
    Spread::of(&loads.flatten().collect::<Vec<_>>())
}

/// What goes below the head of the page.
pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let mut text = format!(
        "What fig. 10 of the DA-LBE paper shows, and not under its terms: the weight is made by \
         this project's deadline controller, as `fairbat` has it, and not by MBC with the price \
         ratio phi, and {}. Each transfer counts for itself, those of runs that failed too. Times \
         are from its start until everything was there; one that was not there when the run was \
         over ranks behind all others. The web load that came is what the fetches got, of the \
         payload that the link carries, over the measured part: arrivals and sizes are random, so it is \
         not the load that was meant.\n\n\
         ![Times of completion as boxes]({}.svg)\n\n\
         | | | web load that came, % | transfers | there in time, % | lower quartile, s | \
         median, s | upper quartile, s | last, s |\n|---|---|---|---|---|---|---|---|---|\n",
        laws(matrix),
        matrix.name
    );
    for place in places(matrix) {
        for contender in contenders(matrix) {
            let times = Times::of(matrix, place, contender);
            let Some([lower, median, upper]) = times.quartiles() else {
                continue;
            };
            let last = times
                .took
                .last()
                .map_or(NOTHING.to_owned(), |last| seconds(*last));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {:.0} | {} | {} | {} | {}{} |",
                place.scenario,
                cell(title(contender)),
                shown(came(matrix, place, contender), 1),
                times.count,
                100.0 * times.met_share().unwrap_or_default(),
                seconds(lower),
                seconds(median),
                seconds(upper),
                last,
                match times.missing() {
                    0 => String::new(),
                    missing => format!(", {missing} not there"),
                }
            );
        }
    }
    text
}

/// Which laws these are: none has the paper's name for nothing.
fn laws(matrix: &MatrixRecord) -> String {
    let names = contenders(matrix).into_iter();
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    format!(
        "the laws are this project's {} (`sender-vegas-paper` and `sender-cubic-beta` are the \
         paper's)",
        names.join(", ")
    )
}

/// Draws it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let places = places(matrix);
    let canvas = SVGBackend::new(path, GRID.size(places.len())).into_drawing_area();
    canvas.fill(&WHITE)?;
    let words = format!(
        "{}: seconds until transfers were there, by fairbat's deadline controller",
        matrix.name
    );
    canvas.draw_text(&words, &bold(TITLE, INK, FROM), (20, 24))?;
    let words = "Boxes: the middle half, with the median; whiskers: the rest within 1.5 times the \
                 box; dots: beyond. Dashed: the deadline. At the top: never there.";
    canvas.draw_text(words, &text(LABEL, GREY, FROM), (20, 46))?;
    let colors = colors(matrix);
    let mut x = 26;
    for (contender, color) in &colors {
        let words = title(contender);
        canvas.draw_text(words, &text(LABEL, *color, FROM), (x, 70))?;
        x += 30 + (words.chars().count() as f64 * LETTER) as i32;
    }
    for (index, place) in places.into_iter().enumerate() {
        one(&canvas, GRID.frame(index), matrix, place, &colors)?;
    }
    canvas.present()?;
    Ok(())
}

fn one(
    canvas: &Canvas<'_>,
    frame: Frame,
    matrix: &MatrixRecord,
    place: Place<'_>,
    colors: &[(&str, RGBColor)],
) -> ChartResult<()> {
    let contenders = contenders(matrix);
    let due = window(matrix, place).unwrap_or_default();
    let times: Vec<_> = contenders
        .iter()
        .map(|contender| Times::of(matrix, place, contender))
        .collect();
    let last = times.iter().filter_map(|one| one.took.last());
    let most = last.copied().fold(due, f64::max) * 1.1;
    let count = contenders.len().max(1) as f64;
    let mut panel = panel(canvas, frame, 0.0..count, 0.0..most, (0, 6))?;
    let style = text(LABEL, INK, FROM);
    canvas.draw_text(place.scenario, &style, (frame.left, frame.top - 16))?;
    let ends = [(0.0, due), (count, due)];
    panel.draw_series(DashedLineSeries::new(ends, 4, 4, MARK.into()))?;
    for (number, (contender, times)) in contenders.iter().zip(&times).enumerate() {
        let color = color(colors, contender);
        let middle = number as f64 + 0.5;
        if times.missing() > 0 {
            let (x, y) = panel.backend_coord(&(middle, most));
            let words = format!("{} not there", times.missing());
            canvas.draw_text(&words, &text(LABEL, color, AROUND), (x, y + 6))?;
        }
        let (Some(quartiles), Some((first, last))) = (times.quartiles(), times.whiskers()) else {
            continue;
        };
        let [lower, median, upper] = quartiles.map(|time| time.min(most));
        let last = last.min(most);
        let (left, right) = (middle - HALF, middle + HALF);
        let area = Rectangle::new([(left, lower), (right, upper)], color.mix(0.25).filled());
        panel.draw_series([area])?;
        let lines = [
            [(left, median), (right, median)],
            [(middle, first), (middle, lower)],
            [(middle, upper), (middle, last)],
        ];
        for line in lines {
            panel.draw_series(LineSeries::new(line, color.stroke_width(2)))?;
        }
        let beyond = times
            .took
            .iter()
            .filter(|one| **one < first || **one > last);
        let dots = beyond.map(|one| Circle::new((middle, *one), 3, color.stroke_width(1)));
        panel.draw_series(dots)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::DeadlineFigures;
    use crate::record::TransferRecord;
    use crate::report::RunSummary;
    use crate::report::senders::{Kind, page};
    use crate::report::tests::synthetic::{matrix, run};

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

    fn line(matrix: &MatrixRecord) -> String {
        let page = page(Kind::Load, matrix, &[]);
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
        assert_eq!(line(&of(runs)), expected);
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
        assert_eq!(line(&matrix), expected);
        let svg = drawn(&matrix);
        assert!(svg.contains("4 not there"), "{svg}");
        let nothing = of(vec![timed(1, &[99.0, 99.0, 99.0])]);
        assert!(drawn(&nothing).contains("3 not there"));
    }

    #[test]
    fn the_load_that_came_is_not_the_one_that_was_meant() {
        let mut more = timed(2, &[54.0, 56.0, 66.0]);
        more.summary.foreground_mbit = vec![3.5];
        let line = line(&of(vec![timed(1, &[40.0, 50.0, 52.0]), more]));
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
}
