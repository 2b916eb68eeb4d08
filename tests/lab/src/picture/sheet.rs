//! What every panel of a run's picture needs: its place, the time axis, its
//! title, and lines, areas and labels in it.

use fairbat_tests::chart::{
    self, Canvas, ChartResult, FROM, Frame, INK, LABEL, Label, MARK, Panel, text, write_labels,
};
use plotters::prelude::*;

use super::bins::{self, Step};
use crate::record::Record;

/// Room for the title of a panel above it, px.
pub(super) const TITLE_LINE: i32 = 26;

/// How far a panel reaches above its largest value.
const HEADROOM: f64 = 1.12;

/// Where one panel is drawn, and of what.
#[derive(Clone, Copy)]
pub(super) struct Sheet<'a, 'b> {
    canvas: &'a Canvas<'b>,
    /// The run.
    pub(super) record: &'a Record,
    /// Width of a step, s.
    pub(super) width: f64,
    frame: Frame,
    is_last: bool,
}

/// A panel with its axes, to draw into.
pub(super) struct Plot<'a, 'b> {
    sheet: Sheet<'a, 'b>,
    panel: Panel<'b>,
    most: f64,
    labels: Vec<Label>,
}

impl<'a, 'b> Sheet<'a, 'b> {
    pub(super) fn new(canvas: &'a Canvas<'b>, record: &'a Record) -> Self {
        Self {
            canvas,
            record,
            width: bins::width(record.setup.duration_s),
            frame: Frame {
                left: 0,
                right: 0,
                top: 0,
                bottom: 0,
            },
            is_last: false,
        }
    }

    /// The same with a place; the last has the numbers of the time axis.
    pub(super) fn at(self, frame: Frame, is_last: bool) -> Self {
        Self {
            frame,
            is_last,
            ..self
        }
    }

    /// An empty panel for values from 0 to `largest` of all that will be in
    /// it.
    pub(super) fn plot(self, title: &str, largest: f64, marks: usize) -> ChartResult<Plot<'a, 'b>> {
        let setup = &self.record.setup;
        let most = if largest > 0.0 {
            HEADROOM * largest
        } else {
            1.0
        };
        let time_marks = if self.is_last { 10 } else { 0 };
        let mut panel = chart::panel(
            self.canvas,
            self.frame,
            0.0..setup.duration_s,
            0.0..most,
            (time_marks, marks),
        )?;
        let measured = setup.measured();
        let before = [(0.0, 0.0), (measured.start, most)];
        let after = [(measured.end, 0.0), (setup.duration_s, most)];
        let shade = INK.mix(0.05).filled();
        panel.draw_series([before, after].map(|part| Rectangle::new(part, shade)))?;
        let style = text(LABEL, INK, FROM);
        let above = (self.frame.left, self.frame.top - 14);
        self.canvas.draw_text(title, &style, above)?;
        Ok(Plot {
            sheet: self,
            panel,
            most,
            labels: Vec::new(),
        })
    }
}

impl Plot<'_, '_> {
    /// The largest value that is in the panel.
    pub(super) fn most(&self) -> f64 {
        self.most
    }

    pub(super) fn line(
        &mut self,
        points: &[(f64, f64)],
        color: RGBColor,
        width: u32,
    ) -> ChartResult<()> {
        for piece in chart::clipped(points, self.most) {
            let style = color.stroke_width(width);
            self.panel.draw_series(LineSeries::new(piece, style))?;
        }
        Ok(())
    }

    /// A dashed line from side to side.
    pub(super) fn bound(&mut self, value: f64, color: RGBColor) -> ChartResult<()> {
        let ends = [(0.0, value), (self.sheet.record.setup.duration_s, value)];
        self.panel
            .draw_series(DashedLineSeries::new(ends, 4, 4, color.into()))?;
        Ok(())
    }

    /// A dashed line from bottom to top.
    pub(super) fn moment(&mut self, moment: f64) -> ChartResult<()> {
        let ends = [(moment, 0.0), (moment, self.most)];
        self.panel
            .draw_series(DashedLineSeries::new(ends, 4, 4, MARK.into()))?;
        Ok(())
    }

    /// What lies between two lines.
    pub(super) fn area(
        &mut self,
        lower: &[(f64, f64)],
        upper: &[(f64, f64)],
        color: RGBAColor,
    ) -> ChartResult<()> {
        let outline = bins::between(lower, upper);
        self.panel
            .draw_series([Polygon::new(outline, color.filled())])?;
        Ok(())
    }

    /// The mean as a line, and least to most behind it.
    pub(super) fn band(&mut self, steps: &[Step], color: RGBColor) -> ChartResult<()> {
        let least = bins::line(steps, |step| step.least);
        let most = bins::line(steps, |step| step.most);
        self.area(&least, &most, color.mix(0.25))?;
        self.line(&bins::line(steps, |step| step.mean), color, 2)
    }

    /// Dots; hollow ones have a meaning of their own.
    pub(super) fn dots(
        &mut self,
        points: &[(f64, f64)],
        color: RGBColor,
        is_hollow: bool,
    ) -> ChartResult<()> {
        let style = if is_hollow {
            color.stroke_width(1)
        } else {
            color.filled()
        };
        let dots = points.iter().map(|&point| Circle::new(point, 3, style));
        self.panel.draw_series(dots)?;
        Ok(())
    }

    /// Marks at the top of the panel for ranges of time.
    pub(super) fn at_top(&mut self, ranges: &[(f64, f64)], color: RGBColor) -> ChartResult<()> {
        let (upper, lower) = (self.most, 0.96 * self.most);
        let marks = ranges
            .iter()
            .map(|&(from, until)| Rectangle::new([(from, lower), (until, upper)], color.filled()));
        self.panel.draw_series(marks)?;
        Ok(())
    }

    /// A label beside the panel, as near to this value as the others allow.
    pub(super) fn label<const N: usize>(
        &mut self,
        lines: [String; N],
        color: RGBColor,
        value: f64,
    ) {
        let value = value.clamp(0.0, self.most);
        self.labels.push(Label {
            lines: lines.into(),
            color,
            y: self.panel.backend_coord(&(0.0, value)).1,
        });
    }

    /// Writes the labels.
    pub(super) fn finish(self) -> ChartResult<()> {
        let frame = self.sheet.frame;
        // Short panels have more words than height.
        let bounds = frame.top - 12..frame.bottom + 16;
        write_labels(self.sheet.canvas, frame.right + 14, bounds, self.labels)
    }
}

/// The mean over the last tenth of the steps, where a label stands.
pub(super) fn end_of(steps: &[Step]) -> f64 {
    let last = &steps[steps.len() - steps.len().div_ceil(10)..];
    let sum: f64 = last.iter().map(|step| step.mean).sum();
    sum / last.len().max(1) as f64
}
