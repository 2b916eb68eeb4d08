//! A sheet of panels: how every picture of the lab is laid out and drawn. Knows
//! numbers, words and pixels, and nothing of what they are of.

use std::ops::Range;
use std::path::Path;

use crate::canvas::{
    AROUND, Canvas, FROM, LABEL, Label, Panel, TITLE, bold, clipped, panel, text, write_labels,
};
pub use crate::canvas::{
    BLUE, ChartResult, FAINT, Frame, GREEN, GREY, INK, MARK, PALE_BLUE, VERMILION,
};
use plotters::element::{Drawable, PointCollection};
use plotters::prelude::{
    Circle, DashedLineSeries, IntoDrawingArea, LineSeries, PathElement, Polygon, Rectangle,
    SVGBackend, WHITE,
};
pub use plotters::style::{Color, RGBAColor, RGBColor, ShapeStyle};

use crate::statistics::Spread;

/// Okabe and Ito's reddish purple.
pub const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);
/// Okabe and Ito's orange, darker, so that it can be read on white.
pub const ORANGE: RGBColor = RGBColor(0xb8, 0x7a, 0x00);

/// Room left below the last row less than between two, px.
const SAVED: i32 = 30;

/// Mean width of a letter, px.
const LETTER: f64 = 7.0;

/// Radius of a dot, px.
const DOT: i32 = 4;

/// From a panel to its labels, px.
const BESIDE: i32 = 14;

/// A line of dashes of this length has gaps of this length, px.
const GAP: i32 = 4;

/// Dashes longer than this have no gaps, px.
const SOLID: i32 = 10;

/// Where panels of one size are, in rows; all in px but the columns.
pub struct Grid {
    /// Panels beside each other.
    pub columns: usize,
    /// Size of the plotting area of a panel.
    pub panel: (i32, i32),
    /// From one panel to the next.
    pub pitch: (i32, i32),
    /// Where the first panel is.
    pub first: (i32, i32),
}

impl Grid {
    /// Size of a picture of so many panels.
    pub fn size(&self, panels: usize) -> (u32, u32) {
        let lines = panels.div_ceil(self.columns) as i32;
        (
            (self.first.0 + self.columns as i32 * self.pitch.0) as u32,
            (self.first.1 + lines * self.pitch.1 - SAVED) as u32,
        )
    }

    /// The plotting area of a panel, counted from 0.
    pub fn frame(&self, panel: usize) -> Frame {
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

/// A picture that is being drawn into an SVG file.
pub struct Sheet<'a>(Canvas<'a>);

impl<'a> Sheet<'a> {
    /// An empty one of this size, px.
    ///
    /// # Errors
    /// What plotters says.
    pub fn new(path: &'a Path, size: (u32, u32)) -> ChartResult<Self> {
        let canvas = SVGBackend::new(path, size).into_drawing_area();
        canvas.fill(&WHITE)?;
        Ok(Self(canvas))
    }

    /// One with a title, and lines below it that say how to read it.
    ///
    /// # Errors
    /// What plotters says.
    pub fn headed(
        path: &'a Path,
        size: (u32, u32),
        title: &str,
        lines: &[&str],
    ) -> ChartResult<Self> {
        let sheet = Self::new(path, size)?;
        sheet.title(title, INK, (20, 24))?;
        for (line, y) in lines.iter().zip((46..).step_by(18)) {
            sheet.write(line, GREY, (20, y))?;
        }
        Ok(sheet)
    }

    /// Words as a title, at this place.
    ///
    /// # Errors
    /// What plotters says.
    pub fn title(&self, words: &str, color: RGBColor, at: (i32, i32)) -> ChartResult<()> {
        Ok(self.0.draw_text(words, &bold(TITLE, color, FROM), at)?)
    }

    /// Words in the usual size, at this place.
    ///
    /// # Errors
    /// What plotters says.
    pub fn write(&self, words: &str, color: RGBColor, at: (i32, i32)) -> ChartResult<()> {
        self.write_small(words, LABEL, color, at)
    }

    /// Words of this type size, px.
    ///
    /// # Errors
    /// What plotters says.
    pub fn write_small(
        &self,
        words: &str,
        size: f64,
        color: RGBColor,
        at: (i32, i32),
    ) -> ChartResult<()> {
        Ok(self.0.draw_text(words, &text(size, color, FROM), at)?)
    }

    /// Words around a point.
    ///
    /// # Errors
    /// What plotters says.
    pub fn write_around(&self, words: &str, color: RGBColor, at: (i32, i32)) -> ChartResult<()> {
        Ok(self.0.draw_text(words, &text(LABEL, color, AROUND), at)?)
    }

    /// A line between two points of the sheet.
    ///
    /// # Errors
    /// What plotters says.
    pub fn draw_line(&self, ends: [(i32, i32); 2], style: ShapeStyle) -> ChartResult<()> {
        Ok(self.0.draw(&PathElement::new(ends, style))?)
    }

    /// What colours mean, beside each other at this height; with a dot before each.
    ///
    /// # Errors
    /// What plotters says.
    pub fn legend(&self, entries: &[(&str, RGBColor)], y: i32, has_dots: bool) -> ChartResult<()> {
        let indent = if has_dots { 10 } else { 0 };
        let mut x = 26;
        for (words, color) in entries {
            if has_dots {
                self.0.draw(&Circle::new((x, y), DOT, color.filled()))?;
            }
            self.write(words, *color, (x + indent, y))?;
            x += 30 + indent + (words.chars().count() as f64 * LETTER) as i32;
        }
        Ok(())
    }

    /// A panel with these axes and so many numbers at each.
    ///
    /// # Errors
    /// What plotters says.
    pub fn plot<'s>(
        &'s self,
        frame: Frame,
        x: Range<f64>,
        y: Range<f64>,
        marks: (usize, usize),
    ) -> ChartResult<Plot<'s, 'a>> {
        let panel = panel(&self.0, frame, x.clone(), y.clone(), marks)?;
        Ok(Plot {
            sheet: self,
            panel,
            frame,
            x,
            y,
            labels: Vec::new(),
        })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// What plotters says.
    pub fn finish(self) -> ChartResult<()> {
        Ok(self.0.present()?)
    }
}

/// A panel with its axes, to draw into.
pub struct Plot<'s, 'a> {
    sheet: &'s Sheet<'a>,
    panel: Panel<'a>,
    /// Where it is in the picture.
    pub frame: Frame,
    x: Range<f64>,
    y: Range<f64>,
    labels: Vec<Label>,
}

impl<'a> Plot<'_, 'a> {
    /// The largest value that is in the panel.
    pub(crate) fn top(&self) -> f64 {
        self.y.end
    }

    /// Where a point of the panel is on the sheet.
    pub fn place(&self, point: (f64, f64)) -> (i32, i32) {
        self.panel.backend_coord(&point)
    }

    /// A bold title, and what is shown below it.
    ///
    /// # Errors
    /// What plotters says.
    pub fn titles(&self, title: &str, what: &str) -> ChartResult<()> {
        let at = (self.frame.left, self.frame.top - 36);
        let style = bold(LABEL, INK, FROM);
        self.sheet.0.draw_text(title, &style, at)?;
        self.above(what, 16)
    }

    /// Words so far above the panel, px.
    ///
    /// # Errors
    /// What plotters says.
    pub fn above(&self, words: &str, up: i32) -> ChartResult<()> {
        let at = (self.frame.left, self.frame.top - up);
        self.sheet.write(words, INK, at)
    }

    /// What the x axis shows, so far below it, px.
    ///
    /// # Errors
    /// What plotters says.
    pub fn axis(&self, words: &str, down: i32) -> ChartResult<()> {
        let middle = (self.frame.left + self.frame.right) / 2;
        let at = (middle, self.frame.bottom + down);
        self.sheet.write_around(words, INK, at)
    }

    /// Words in place of a number on the x axis.
    ///
    /// # Errors
    /// What plotters says.
    pub fn mark(&self, x: f64, words: &str) -> ChartResult<()> {
        let at = (self.place((x, 0.0)).0, self.frame.bottom + 14);
        self.sheet.write_around(words, INK, at)
    }

    /// A line, cut off where it leaves the panel at the top.
    ///
    /// # Errors
    /// What plotters says.
    pub fn line(&mut self, points: &[(f64, f64)], color: RGBColor, width: u32) -> ChartResult<()> {
        for piece in clipped(points, self.y.end) {
            let style = color.stroke_width(width);
            self.panel.draw_series(LineSeries::new(piece, style))?;
        }
        Ok(())
    }

    /// A line of dashes of this length, px.
    ///
    /// # Errors
    /// What plotters says.
    pub fn dashed(
        &mut self,
        ends: [(f64, f64); 2],
        length: i32,
        color: RGBColor,
    ) -> ChartResult<()> {
        let gap = if length > SOLID { 0 } else { GAP };
        let line = DashedLineSeries::new(ends, length, gap, color.into());
        self.panel.draw_series(line)?;
        Ok(())
    }

    /// Dashes from side to side.
    ///
    /// # Errors
    /// What plotters says.
    pub fn across(&mut self, value: f64, length: i32) -> ChartResult<()> {
        self.dashed([(self.x.start, value), (self.x.end, value)], length, MARK)
    }

    /// Dashes from bottom to top.
    ///
    /// # Errors
    /// What plotters says.
    pub fn upright(&mut self, x: f64, length: i32) -> ChartResult<()> {
        self.dashed([(x, self.y.start), (x, self.y.end)], length, MARK)
    }

    /// Dots of this radius, px.
    ///
    /// # Errors
    /// What plotters says.
    pub fn dots(
        &mut self,
        points: impl IntoIterator<Item = (f64, f64)>,
        radius: i32,
        style: ShapeStyle,
    ) -> ChartResult<()> {
        let dots = points.into_iter();
        self.elements(dots.map(|point| Circle::new(point, radius, style)))
    }

    /// The median as a dot, and a thin line from least to most.
    ///
    /// # Errors
    /// What plotters says.
    pub fn spread(
        &mut self,
        x: f64,
        spread: Spread,
        color: RGBColor,
        is_hollow: bool,
    ) -> ChartResult<()> {
        self.line(&[(x, spread.least), (x, spread.most)], color, 1)?;
        self.dots([(x, spread.median)], DOT, dot_style(color, is_hollow))
    }

    /// Rectangles from corner to corner.
    ///
    /// # Errors
    /// What plotters says.
    pub fn boxes(
        &mut self,
        corners: impl IntoIterator<Item = [(f64, f64); 2]>,
        style: ShapeStyle,
    ) -> ChartResult<()> {
        let boxes = corners.into_iter();
        self.elements(boxes.map(|ends| Rectangle::new(ends, style)))
    }

    /// What lies between two lines.
    pub(crate) fn area(
        &mut self,
        lower: &[(f64, f64)],
        upper: &[(f64, f64)],
        color: RGBAColor,
    ) -> ChartResult<()> {
        let outline: Vec<_> = lower.iter().chain(upper.iter().rev()).copied().collect();
        self.elements([Polygon::new(outline, color.filled())])
    }

    fn elements<E>(&mut self, all: impl IntoIterator<Item = E>) -> ChartResult<()>
    where
        for<'b> &'b E: PointCollection<'b, (f64, f64)>,
        E: Drawable<SVGBackend<'a>>,
    {
        self.panel.draw_series(all)?;
        Ok(())
    }

    /// A label beside the panel, as near to this value as the others allow.
    pub fn label<const N: usize>(&mut self, lines: [String; N], color: RGBColor, value: f64) {
        let value = value.clamp(self.y.start, self.y.end);
        self.labels.push(Label {
            lines: lines.into(),
            color,
            y: self.place((self.x.start, value)).1,
        });
    }

    /// Writes the labels. They may stand so far above and below the panel, px.
    ///
    /// # Errors
    /// What plotters says.
    pub fn finish(self, (above, below): (i32, i32)) -> ChartResult<()> {
        let bounds = self.frame.top - above..self.frame.bottom + below;
        let beside = self.frame.right + BESIDE;
        write_labels(&self.sheet.0, beside, bounds, self.labels)
    }
}

/// Dots are filled, or hollow where that has a meaning of its own.
pub fn dot_style(color: RGBColor, is_hollow: bool) -> ShapeStyle {
    if is_hollow {
        color.stroke_width(1)
    } else {
        color.filled()
    }
}
