//! Many samples as few steps: a picture has room for some hundred of them.
//! Knows no record and draws nothing.

/// Widths that people can add up in their heads, s.
const WIDTHS: [f64; 8] = [0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

/// Most steps along the time axis.
const MOST_STEPS: f64 = 250.0;

/// Width of a step for a run of this length, s.
pub(super) fn width(duration: f64) -> f64 {
    let fits = |width: &&f64| duration / **width <= MOST_STEPS;
    let width = WIDTHS.iter().find(fits);
    width.copied().unwrap_or(duration / MOST_STEPS)
}

/// What was measured in one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// Where it begins, s.
    pub(super) from: f64,
    /// Where it ends, s.
    pub(super) until: f64,
    /// The smallest value.
    pub(super) least: f64,
    /// The mean.
    pub(super) mean: f64,
    /// The largest.
    pub(super) most: f64,
}

/// Puts values with their moments (ascending) into steps of this width; a
/// step without any is left out, and its neighbours touch each other.
pub(super) fn steps(values: impl IntoIterator<Item = (f64, f64)>, width: f64) -> Vec<Step> {
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
pub(super) fn line(steps: &[Step], value: impl Fn(&Step) -> f64) -> Vec<(f64, f64)> {
    let points = steps.iter().flat_map(|step| {
        let value = value(step);
        [(step.from, value), (step.until, value)]
    });
    points.collect()
}

/// The outline of what lies between two lines along the steps.
pub(super) fn between(lower: &[(f64, f64)], upper: &[(f64, f64)]) -> Vec<(f64, f64)> {
    lower.iter().chain(upper.iter().rev()).copied().collect()
}

/// Where something happened in steps of this width: one range for
/// neighbours, s.
pub(super) fn ranges(moments: impl IntoIterator<Item = f64>, width: f64) -> Vec<(f64, f64)> {
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
