//! Panels of one size in rows, as a picture of many scenarios has them. Knows
//! numbers of panels and pixels only.

use fairbat_tests::chart::{BLUE, Frame, GREEN, GREY, INK, VERMILION};
use plotters::style::RGBColor;

use crate::report::{ALONE, MatrixRecord, OURS, PUSHING};

/// Room left below the last row less than between two, px.
const SAVED: i32 = 30;

/// Where panels are; all in px but the columns.
pub(crate) struct Grid {
    /// Panels beside each other.
    pub(crate) columns: usize,
    /// Size of the plotting area of a panel.
    pub(crate) panel: (i32, i32),
    /// From one panel to the next.
    pub(crate) pitch: (i32, i32),
    /// Where the first panel is.
    pub(crate) first: (i32, i32),
}

impl Grid {
    /// Size of a picture of so many panels.
    pub(crate) fn size(&self, panels: usize) -> (u32, u32) {
        let lines = panels.div_ceil(self.columns) as i32;
        (
            (self.first.0 + self.columns as i32 * self.pitch.0) as u32,
            (self.first.1 + lines * self.pitch.1 - SAVED) as u32,
        )
    }

    /// The plotting area of a panel, counted from 0.
    pub(crate) fn frame(&self, panel: usize) -> Frame {
        let left = self.first.0 + (panel % self.columns) as i32 * self.pitch.0;
        let top = self.first.1 + (panel / self.columns) as i32 * self.pitch.1;
        Frame {
            left,
            right: left + self.panel.0,
            top,
            bottom: top + self.panel.1,
        }
    }
}

/// Okabe and Ito's reddish purple.
pub(crate) const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);
/// Okabe and Ito's orange, darker, so that it can be read on white.
pub(crate) const ORANGE: RGBColor = RGBColor(0xb8, 0x7a, 0x00);
/// Colours of the others, in the order of their names' appearance.
const COLORS: [RGBColor; 5] = [VERMILION, GREEN, PURPLE, ORANGE, GREY];

/// Each contender's colour: blue is ours.
pub(crate) fn colors(matrix: &MatrixRecord) -> Vec<(&str, RGBColor)> {
    let mut colors: Vec<(&str, RGBColor)> = Vec::new();
    let mut others = COLORS.into_iter().cycle();
    for run in &matrix.runs {
        let name = run.contender.as_str();
        if name == ALONE || colors.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let color = if [OURS, PUSHING].contains(&name) {
            Some(BLUE)
        } else {
            others.next()
        };
        colors.extend(color.map(|color| (name, color)));
    }
    colors
}

pub(crate) fn color(colors: &[(&str, RGBColor)], contender: &str) -> RGBColor {
    let found = colors.iter().find(|(name, _)| *name == contender);
    found.map_or(INK, |&(_, color)| color)
}
