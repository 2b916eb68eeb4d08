//! Panels of one size in rows, as a picture of many scenarios has them. Knows
//! numbers of panels and pixels only.

use fairbat_tests::chart::Frame;

/// Room left below the last row less than between two, px.
const SAVED: i32 = 30;

/// Where panels are; all in px but the columns.
pub(super) struct Grid {
    /// Panels beside each other.
    pub(super) columns: usize,
    /// Size of the plotting area of a panel.
    pub(super) panel: (i32, i32),
    /// From one panel to the next.
    pub(super) pitch: (i32, i32),
    /// Where the first panel is.
    pub(super) first: (i32, i32),
}

impl Grid {
    /// Size of a picture of so many panels.
    pub(super) fn size(&self, panels: usize) -> (u32, u32) {
        let lines = panels.div_ceil(self.columns) as i32;
        (
            (self.first.0 + self.columns as i32 * self.pitch.0) as u32,
            (self.first.1 + lines * self.pitch.1 - SAVED) as u32,
        )
    }

    /// The plotting area of a panel, counted from 0.
    pub(super) fn frame(&self, panel: usize) -> Frame {
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
