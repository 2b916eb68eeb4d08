//! What every panel of a run's picture needs: its place, the time axis, its
//! title, and lines, areas and labels in it.

use fairbat_tests::chart;
use fairbat_tests::chart::{
    Canvas, ChartResult, FROM, Frame, INK, LABEL, Label, MARK, Panel, text, write_labels,
};
use plotters::prelude::*;

use crate::record::Record;

/// Room for the title of a panel above it, px.
pub(crate) const TITLE_LINE: i32 = 26;

/// How far a panel reaches above its largest value.
const HEADROOM: f64 = 1.12;

/// Where one panel is drawn, and of what.
#[derive(Clone, Copy)]
pub(crate) struct Sheet<'a, 'b> {
    canvas: &'a Canvas<'b>,
    /// The run.
    pub(crate) record: &'a Record,
    /// Width of a step, s.
    pub(crate) width: f64,
    frame: Frame,
    is_last: bool,
}

/// A panel with its axes, to draw into.
pub(crate) struct Plot<'a, 'b> {
    sheet: Sheet<'a, 'b>,
    panel: Panel<'b>,
    most: f64,
    labels: Vec<Label>,
}

impl<'a, 'b> Sheet<'a, 'b> {
    pub(crate) fn new(canvas: &'a Canvas<'b>, record: &'a Record) -> Self {
        Self {
            canvas,
            record,
            width: width(record.setup.duration_s),
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
    pub(crate) fn at(self, frame: Frame, is_last: bool) -> Self {
        Self {
            frame,
            is_last,
            ..self
        }
    }

    /// An empty panel for values from 0 to `largest` of all that will be in
    /// it.
    pub(crate) fn plot(self, title: &str, largest: f64, marks: usize) -> ChartResult<Plot<'a, 'b>> {
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
    pub(crate) fn most(&self) -> f64 {
        self.most
    }

    pub(crate) fn line(
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
    pub(crate) fn bound(&mut self, value: f64, color: RGBColor) -> ChartResult<()> {
        let ends = [(0.0, value), (self.sheet.record.setup.duration_s, value)];
        self.panel
            .draw_series(DashedLineSeries::new(ends, 4, 4, color.into()))?;
        Ok(())
    }

    /// A dashed line from bottom to top.
    pub(crate) fn moment(&mut self, moment: f64) -> ChartResult<()> {
        let ends = [(moment, 0.0), (moment, self.most)];
        self.panel
            .draw_series(DashedLineSeries::new(ends, 4, 4, MARK.into()))?;
        Ok(())
    }

    /// What lies between two lines.
    pub(crate) fn area(
        &mut self,
        lower: &[(f64, f64)],
        upper: &[(f64, f64)],
        color: RGBAColor,
    ) -> ChartResult<()> {
        let outline = between(lower, upper);
        self.panel
            .draw_series([Polygon::new(outline, color.filled())])?;
        Ok(())
    }

    /// The mean as a line, and least to most behind it.
    pub(crate) fn band(&mut self, steps: &[Step], color: RGBColor) -> ChartResult<()> {
        let least = line(steps, |step| step.least);
        let most = line(steps, |step| step.most);
        self.area(&least, &most, color.mix(0.25))?;
        self.line(&line(steps, |step| step.mean), color, 2)
    }

    /// Dots; hollow ones have a meaning of their own.
    pub(crate) fn dots(
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
    pub(crate) fn at_top(&mut self, ranges: &[(f64, f64)], color: RGBColor) -> ChartResult<()> {
        let (upper, lower) = (self.most, 0.96 * self.most);
        let marks = ranges
            .iter()
            .map(|&(from, until)| Rectangle::new([(from, lower), (until, upper)], color.filled()));
        self.panel.draw_series(marks)?;
        Ok(())
    }

    /// A label beside the panel, as near to this value as the others allow.
    pub(crate) fn label<const N: usize>(
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
    pub(crate) fn finish(self) -> ChartResult<()> {
        let frame = self.sheet.frame;
        // Short panels have more words than height.
        let bounds = frame.top - 12..frame.bottom + 16;
        write_labels(self.sheet.canvas, frame.right + 14, bounds, self.labels)
    }
}

/// The mean over the last tenth of the steps, where a label stands.
pub(crate) fn end_of(steps: &[Step]) -> f64 {
    let last = &steps[steps.len() - steps.len().div_ceil(10)..];
    let sum: f64 = last.iter().map(|step| step.mean).sum();
    sum / last.len().max(1) as f64
}

/// Widths that people can add up in their heads, s.
const WIDTHS: [f64; 8] = [0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

/// Most steps along the time axis.
const MOST_STEPS: f64 = 250.0;

/// Width of a step for a run of this length, s.
pub(crate) fn width(duration: f64) -> f64 {
    let fits = |width: &&f64| duration / **width <= MOST_STEPS;
    let width = WIDTHS.iter().find(fits);
    width.copied().unwrap_or(duration / MOST_STEPS)
}

/// What was measured in one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// Where it begins, s.
    pub(crate) from: f64,
    /// Where it ends, s.
    pub(crate) until: f64,
    /// The smallest value.
    pub(crate) least: f64,
    /// The mean.
    pub(crate) mean: f64,
    /// The largest.
    pub(crate) most: f64,
}

/// Puts values with their moments (ascending) into steps of this width; a
/// step without any is left out, and its neighbours touch each other.
pub(crate) fn steps(values: impl IntoIterator<Item = (f64, f64)>, width: f64) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut count = 0.0;
    for (moment, value) in values {
        let from = (moment / width).floor() * width;
        match steps.last_mut() {
            Some(step) if step.from >= from => {
                count += 1.0;
                step.least = step.least.min(value);
                step.mean += (value - step.mean) / count;
                step.most = step.most.max(value);
            }
            before => {
                if let Some(before) = before {
                    before.until = from;
                }
                count = 1.0;
                steps.push(Step {
                    from,
                    until: from + width,
                    least: value,
                    mean: value,
                    most: value,
                });
            }
        }
    }
    steps
}

/// A line along the steps.
pub(crate) fn line(steps: &[Step], value: impl Fn(&Step) -> f64) -> Vec<(f64, f64)> {
    let points = steps.iter().flat_map(|step| {
        let value = value(step);
        [(step.from, value), (step.until, value)]
    });
    points.collect()
}

/// The outline of what lies between two lines along the steps.
pub(crate) fn between(lower: &[(f64, f64)], upper: &[(f64, f64)]) -> Vec<(f64, f64)> {
    lower.iter().chain(upper.iter().rev()).copied().collect()
}

/// Where something happened in steps of this width: one range for
/// neighbours, s.
pub(crate) fn ranges(moments: impl IntoIterator<Item = f64>, width: f64) -> Vec<(f64, f64)> {
    let mut ranges: Vec<(f64, f64)> = Vec::new();
    for moment in moments {
        let from = (moment / width).floor() * width;
        match ranges.last_mut() {
            Some((_, until)) if from <= *until + width / 2.0 => *until = from + width,
            _ => ranges.push((from, from + width)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_grows_with_the_duration() {
        let widths = [0.5, 45.0, 60.0, 100.0, 240.0, 1700.0, 10_000.0].map(width);
        assert_eq!(widths, [0.2, 0.2, 0.25, 0.5, 1.0, 10.0, 40.0]);
    }

    #[test]
    fn steps_hold_what_falls_into_them() {
        let values = [(0.1, 1.0), (0.4, 3.0), (1.6, 5.0)];
        let step = |from, until, least, mean, most| Step {
            from,
            until,
            least,
            mean,
            most,
        };
        assert_eq!(
            steps(values, 0.5),
            [step(0.0, 1.5, 1.0, 2.0, 3.0), step(1.5, 2.0, 5.0, 5.0, 5.0)]
        );
        assert!(steps([], 0.5).is_empty());
    }

    #[test]
    fn neighbours_are_one_range() {
        let moments = [0.1, 0.2, 0.6, 1.2, 3.1];
        assert_eq!(ranges(moments, 0.5), [(0.0, 1.5), (3.0, 3.5)]);
    }
}
