//! What was measured of a run, in steps along the time axis; and the empty panel that a
//! picture of a run draws them into.

use crate::chart::{ChartResult, Color, Frame, INK, Plot, RGBColor, Sheet};
use crate::record::Record;

/// How far a panel reaches above its largest value.
const HEADROOM: f64 = 1.12;

/// Where one panel is drawn, and of what.
pub(crate) struct Strip<'s, 'a> {
    pub(crate) sheet: &'s Sheet<'a>,
    /// The run.
    pub(crate) record: &'s Record,
    /// Width of a step, s.
    pub(crate) width: f64,
    pub(crate) frame: Frame,
    /// Whether it has the numbers of the time axis.
    pub(crate) is_last: bool,
}

impl<'s, 'a> Strip<'s, 'a> {
    /// An empty panel for values from 0 to `largest` of all that will be in it.
    pub(crate) fn plot(
        &self,
        title: &str,
        largest: f64,
        marks: usize,
    ) -> ChartResult<Plot<'s, 'a>> {
        let setup = &self.record.setup;
        let most = if largest > 0.0 {
            HEADROOM * largest
        } else {
            1.0
        };
        let marks = (if self.is_last { 10 } else { 0 }, marks);
        let (end, measured) = (setup.duration_s, setup.measured());
        let mut plot = self.sheet.plot(self.frame, 0.0..end, 0.0..most, marks)?;
        let before = [(0.0, 0.0), (measured.start, most)];
        let after = [(measured.end, 0.0), (end, most)];
        plot.boxes([before, after], INK.mix(0.05).filled())?;
        plot.above(title, 14)?;
        Ok(plot)
    }
}

/// The mean as a line, and least to most behind it.
pub(crate) fn band(plot: &mut Plot<'_, '_>, steps: &[Step], color: RGBColor) -> ChartResult<()> {
    let least = line(steps, |step| step.least);
    let most = line(steps, |step| step.most);
    plot.area(&least, &most, color.mix(0.25))?;
    plot.line(&line(steps, |step| step.mean), color, 2)
}

/// The lower side of an area that begins at 0.
pub(crate) fn floor(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    line.iter().map(|&(moment, _)| (moment, 0.0)).collect()
}

/// The mean over the last tenth of the steps, where a label stands.
pub(crate) fn end_of(steps: &[Step]) -> f64 {
    let last = &steps[steps.len() - steps.len().div_ceil(10)..];
    let sum: f64 = last.iter().map(|step| step.mean).sum();
    sum / last.len().max(1) as f64
}

/// Widths that people can add up in their heads, s.
const WIDTHS_S: [f64; 8] = [0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

/// Most steps along the time axis.
const MAX_STEPS: f64 = 250.0;

/// Width of a step for a run of this length, s.
pub(crate) fn width(duration: f64) -> f64 {
    let fits = |width: &&f64| duration / **width <= MAX_STEPS;
    let width = WIDTHS_S.iter().find(fits);
    width.copied().unwrap_or(duration / MAX_STEPS)
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
