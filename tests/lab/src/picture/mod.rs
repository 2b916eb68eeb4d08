//! A run as a picture: what was on the link, what it did to the delay, and
//! what steered it, above each other over one time axis. Knows the record of
//! a run and nothing of how it came about.

mod bins;
mod delay;
mod fetches;
mod head;
mod ours;
mod rates;
mod sheet;
#[cfg(test)]
pub(crate) mod synthetic;

use std::path::Path;

use fairbat_tests::chart::{AROUND, ChartResult, Frame, INK, LABEL, text};
use plotters::prelude::*;

use self::sheet::Sheet;
use crate::record::Record;

/// Width of a picture, px.
const WIDTH: u32 = 980;
/// Left and right edge of the panels, px; labels stand to the right of them.
const SIDES: (i32, i32) = (56, 760);
/// From the bottom of a panel to the top of the next, which has a title, px.
const GAP: i32 = 40;
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
    let head = head::lines(record);
    let top = head::height(&head);
    let heights: i32 = parts.iter().map(|part| part.height() + GAP).sum();
    let size = (
        WIDTH,
        (top + heights + FOOT - GAP + sheet::TITLE_LINE) as u32,
    );
    let canvas = SVGBackend::new(path, size).into_drawing_area();
    canvas.fill(&WHITE)?;
    head::draw(&canvas, &head)?;
    let sheet = Sheet::new(&canvas, record);
    let mut frame = Frame {
        left: SIDES.0,
        right: SIDES.1,
        top: top + sheet::TITLE_LINE,
        bottom: 0,
    };
    for (index, part) in parts.iter().enumerate() {
        frame.bottom = frame.top + part.height();
        let sheet = sheet.at(frame, index + 1 == parts.len());
        part.draw(&sheet)?;
        frame.top = frame.bottom + GAP;
    }
    let axis = if record.setup.measured() != (0.0..record.setup.duration_s) {
        "seconds since the run began (grey: not measured)"
    } else {
        "seconds since the run began"
    };
    let below = (size.1 as i32) - 20;
    let middle = (SIDES.0 + SIDES.1) / 2;
    canvas.draw_text(axis, &text(LABEL, INK, AROUND), (middle, below))?;
    canvas.present()?;
    Ok(())
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
    if record.background.iter().any(ours::has_several) {
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

    fn draw(self, sheet: &Sheet<'_, '_>) -> ChartResult<()> {
        match self {
            Self::Connections => ours::connections(sheet),
            Self::Weight => ours::weight(sheet),
            Self::Deadline => ours::deadline(sheet),
            Self::Progress => ours::progress(sheet),
            Self::Window => ours::window(sheet),
            Self::Rates(link) => rates::forward(sheet, link),
            Self::Against(link) => rates::backward(sheet, link),
            Self::Queue(link) => delay::queue(sheet, link),
            Self::RoundTrip => delay::round_trip(sheet),
            Self::Fetches => fetches::foreground(sheet),
            Self::Jobs => fetches::background(sheet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_run_is_drawn_small_and_whole() {
        let directory = tempfile::tempdir().unwrap();
        for (name, record) in synthetic::all() {
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
        let records = synthetic::all();
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
}
