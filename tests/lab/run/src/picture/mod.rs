//! A run as a picture: what was on the link, what it did to the delay, and
//! what steered it, above each other over one time axis. Knows the record of
//! a run and nothing of how it came about.

#[cfg(test)]
pub(crate) mod example_runs;
mod panels;
mod steps;

use std::error::Error;
use std::path::{Path, PathBuf};

use crate::chart::{ChartResult, Frame, GREY, INK, RGBColor, Sheet, VERMILION};
use crate::picture::steps::{Strip, width};
use crate::record::Record;

/// Width of a picture, px.
const WIDTH: u32 = 980;
/// Left and right edge of the panels, px; labels stand to the right of them.
const SIDES: (i32, i32) = (56, 760);
/// From the bottom of a panel to the top of the next, which has a title, px.
const GAP: i32 = 40;
/// Room for the title of a panel above it, px.
const TITLE_LINE: i32 = 26;
/// Room for the time axis below the last panel, px.
const FOOT: i32 = 60;

/// One panel, from the top of the picture to its bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// m, and the connections in use.
    Connections,
    /// w.
    Weight,
    /// zeta, and the rate that we have.
    Deadline,
    /// How far each of several transfers is.
    Progress,
    /// The congestion window of a sender of the lab's.
    Window,
    /// What crosses a link, counted from 0.
    Rates(usize),
    /// What crosses a link against the direction of the data.
    Against(usize),
    /// The queue of a link.
    Queue(usize),
    /// The probes.
    RoundTrip,
    /// Web fetches of the foreground.
    Fetches,
    /// Transfers of the background.
    Jobs,
}

/// Draws the run into an SVG file.
///
/// # Errors
/// What plotters says.
pub fn draw(record: &Record, path: &Path) -> ChartResult<()> {
    let parts = parts(record);
    let head = lines(record);
    let top = FIRST + (1 + head.len() as i32) * LINE;
    let heights: i32 = parts.iter().map(|part| part.height() + GAP).sum();
    let size = (WIDTH, (top + heights + FOOT - GAP + TITLE_LINE) as u32);
    let sheet = Sheet::new(path, size)?;
    draw_head(&sheet, record, &head)?;
    let mut from = top + TITLE_LINE;
    for (index, part) in parts.iter().enumerate() {
        let frame = Frame {
            left: SIDES.0,
            right: SIDES.1,
            top: from,
            bottom: from + part.height(),
        };
        part.draw(&Strip {
            sheet: &sheet,
            record,
            width: width(record.setup.duration_s),
            frame,
            is_last: index + 1 == parts.len(),
        })?;
        from = frame.bottom + GAP;
    }
    let axis = if record.setup.measured() != (0.0..record.setup.duration_s) {
        "seconds since the run began (grey: not measured)"
    } else {
        "seconds since the run began"
    };
    let below = ((SIDES.0 + SIDES.1) / 2, size.1 as i32 - 20);
    sheet.write_around(axis, INK, below)?;
    sheet.finish()
}

/// What there is to show of this run.
fn parts(record: &Record) -> Vec<Part> {
    let mut parts = Vec::new();
    let control = record.control();
    if !control.is_empty() {
        // A sender of the lab's has one, always.
        if record.sender().is_empty() {
            parts.push(Part::Connections);
        }
        parts.push(Part::Weight);
    }
    if control.iter().any(|sample| sample.zeta.is_some()) {
        parts.push(Part::Deadline);
    }
    if record.background.iter().any(panels::has_several) {
        parts.push(Part::Progress);
    }
    if !record.sender().is_empty() {
        parts.push(Part::Window);
    }
    let links = 0..record.links.len();
    parts.extend(links.clone().map(Part::Rates));
    if record.setup.foreground.iter().any(|it| it.backward) {
        parts.extend(links.clone().map(Part::Against));
    }
    parts.extend(links.map(Part::Queue));
    parts.push(Part::RoundTrip);
    if !record.fetches.is_empty() {
        parts.push(Part::Fetches);
    }
    if !record.jobs().is_empty() {
        parts.push(Part::Jobs);
    }
    parts
}

impl Part {
    /// Height of the panel, px.
    fn height(self) -> i32 {
        match self {
            Self::Weight => 60,
            Self::Connections | Self::Deadline | Self::Window | Self::Against(_) => 80,
            Self::Rates(_) => 160,
            Self::Progress | Self::Queue(_) | Self::RoundTrip | Self::Fetches | Self::Jobs => 110,
        }
    }

    fn draw(self, strip: &Strip<'_, '_>) -> ChartResult<()> {
        match self {
            Self::Connections => panels::connections(strip),
            Self::Weight => panels::weight(strip),
            Self::Deadline => panels::deadline(strip),
            Self::Progress => panels::progress(strip),
            Self::Window => panels::window(strip),
            Self::Rates(link) => panels::rates(strip, link, false),
            Self::Against(link) => panels::rates(strip, link, true),
            Self::Queue(link) => panels::queue(strip, link),
            Self::RoundTrip => panels::round_trip(strip),
            Self::Fetches => panels::foreground(strip),
            Self::Jobs => panels::background(strip),
        }
    }
}

/// Height of a line, px.
const LINE: i32 = 20;
/// Middle of the first line, px from the top.
const FIRST: i32 = 24;
/// Letters that a line of this width has room for.
const MAX_LETTERS: usize = 130;

/// What there is to say of this run below its title.
fn lines(record: &Record) -> Vec<(String, RGBColor)> {
    let failure = record.failure();
    let failure = failure.map(|failure| format!("The background failed: {failure}"));
    let all = [
        (record.setup.description.clone(), GREY),
        (figures(record), INK),
        (failure.unwrap_or_default(), VERMILION),
    ];
    let lines = all.iter().flat_map(|(words, color)| {
        let lines = wrapped(words, MAX_LETTERS).into_iter();
        lines.map(|line| (line, *color))
    });
    lines.collect()
}

/// Draws the title, and the lines below it.
fn draw_head(sheet: &Sheet<'_>, record: &Record, lines: &[(String, RGBColor)]) -> ChartResult<()> {
    let quick = if record.quick { ", quick variant" } else { "" };
    let title = format!(
        "{}: {}, seed {}{quick}",
        record.scenario, record.contender, record.seed
    );
    sheet.title(&title, INK, (SIDES.0, FIRST))?;
    for ((words, color), y) in lines.iter().zip((FIRST + LINE..).step_by(LINE as usize)) {
        sheet.write(words, *color, (SIDES.0, y))?;
    }
    Ok(())
}

/// The key figures, in one line.
fn figures(record: &Record) -> String {
    let summary = &record.summary;
    let mut figures = Vec::new();
    if !summary.foreground_mbit.is_empty() {
        let together = summary.foreground_together_mbit;
        figures.push(format!("foreground got {together:.2} Mbit/s"));
    }
    figures.push(format!("background {:.2} Mbit/s", summary.background_mbit));
    figures.push(format!("link {:.0} % in use", 100.0 * summary.utilisation));
    if let (Some(median), Some(p95)) = (summary.rtt_median_ms, summary.rtt_p95_ms) {
        figures.push(format!("RTT median {median:.1} ms, 95 % below {p95:.1} ms"));
    }
    if let Some(mean) = summary.fetch_mean_s {
        figures.push(format!("mean fetch {mean:.2} s"));
    }
    figures.join("; ")
}

/// Lines of no more than so many letters, as long as no word is longer.
fn wrapped(words: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Writes the samples and the picture of a run into `directory`; returns where.
///
/// # Errors
/// When one cannot be written.
pub fn save(record: &Record, directory: &Path) -> Result<(PathBuf, PathBuf), Box<dyn Error>> {
    let name = record.file_name();
    let json = directory.join(format!("{name}.json"));
    let svg = directory.join(format!("{name}.svg"));
    std::fs::write(&json, serde_json::to_vec(record)?)?;
    draw(record, &svg)?;
    Ok((json, svg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_run_is_drawn_small_and_whole() {
        let directory = tempfile::tempdir().unwrap();
        for (name, record) in example_runs::all() {
            let path = directory.path().join(format!("{name}.svg"));
            draw(&record, &path).unwrap();
            let svg = std::fs::read_to_string(&path).unwrap();
            assert!(svg.len() < 200_000, "{name} has {} bytes", svg.len());
            assert!(!svg.contains("NaN") && !svg.contains("inf "), "{name}");
            assert!(svg.contains(&record.contender), "{name}");
        }
    }

    #[test]
    fn only_what_was_recorded_has_a_panel() {
        let records = example_runs::all();
        let of = |name: &str| {
            let found = records.iter().find(|(other, _)| *other == name);
            parts(&found.unwrap().1)
        };
        use Part::{
            Against, Connections, Deadline, Fetches, Jobs, Queue, Rates, RoundTrip, Weight, Window,
        };
        assert_eq!(of("curl"), [Rates(0), Queue(0), RoundTrip]);
        assert_eq!(of("web"), [Rates(0), Queue(0), RoundTrip, Fetches]);
        assert_eq!(
            of("ours"),
            [Connections, Weight, Deadline, Rates(0), Queue(0), RoundTrip]
        );
        assert_eq!(
            of("sender"),
            [Weight, Deadline, Window, Rates(0), Queue(0), RoundTrip]
        );
        assert_eq!(
            of("two-links"),
            [Rates(0), Rates(1), Queue(0), Queue(1), RoundTrip]
        );
        assert_eq!(
            of("reverse"),
            [Rates(0), Against(0), Queue(0), RoundTrip, Jobs]
        );
    }

    #[test]
    fn long_lines_are_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("immeasurable", 7), ["immeasurable"]);
        assert!(wrapped("", 7).is_empty());
    }
}
