//! What the control loop of `fairbat` did, from its samples: how steady it was,
//! and whether it let go when nothing pressed it any more. Knows no deadline.

use std::ops::Range;

use dalbe::weight::MIN_WEIGHT;
use serde::{Deserialize, Serialize};

use crate::record::ControlSample;
use crate::statistics::{deviation, mean};

/// w is at its floor up to here; what is printed and rounded may be a little
/// more.
const LOW_W: f64 = MIN_WEIGHT + 0.01;

/// m is at its floor of one connection up to here, for the same reason.
const LOW_M: f64 = 1.05;

/// What w and m did while a transfer lived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlFigures {
    /// Mean of w.
    pub w_mean: f64,
    /// Standard deviation of w over the last half of the transfer's life.
    pub w_deviation: f64,
    /// How often m changed, rounded to whole connections.
    pub m_changes: usize,
    /// The largest m.
    pub m_most: f64,
    /// How long the transfer went on when nothing pressed any more, s; `None`
    /// where a scenario does not say from when on, or it was over before.
    pub free_s: Option<f64>,
    /// Seconds from then until w and m were at their floors for good; `None` if
    /// never.
    pub settled_s: Option<f64>,
}

impl ControlFigures {
    /// Of samples in their order, of which those within `life` (s) count;
    /// `None` without any.
    #[must_use]
    pub fn of(
        samples: &[ControlSample],
        life: Range<f64>,
        pressure_until: Option<f64>,
    ) -> Option<Self> {
        let lived = samples.iter().filter(|sample| life.contains(&sample.t));
        let lived: Vec<_> = lived.collect();
        let half = f64::midpoint(life.start, life.end);
        let w: Vec<f64> = lived.iter().map(|sample| sample.w).collect();
        let late = lived.iter().filter(|sample| sample.t >= half);
        let late: Vec<f64> = late.map(|sample| sample.w).collect();
        let free = pressure_until.filter(|until| *until < life.end);
        let whole = |sample: &ControlSample| sample.m.round();
        Some(Self {
            w_mean: mean(&w)?,
            w_deviation: deviation(&late).unwrap_or_default(),
            m_changes: lived
                .windows(2)
                .filter(|pair| whole(pair[0]) != whole(pair[1]))
                .count(),
            m_most: lived.iter().map(|sample| sample.m).fold(0.0, f64::max),
            free_s: free.map(|until| life.end - until),
            settled_s: free.and_then(|until| Some(settled(&lived, until)? - until)),
        })
    }
}

/// From when on after this moment both are at their floors; `None` if they are
/// not at the end.
fn settled(samples: &[&ControlSample], until: f64) -> Option<f64> {
    let is_low = |sample: &&ControlSample| sample.w <= LOW_W && sample.m <= LOW_M;
    let free = samples.partition_point(|sample| sample.t < until);
    let free = &samples[free..];
    let low = free
        .iter()
        .rev()
        .take_while(|sample| is_low(sample))
        .count();
    match free.len() - low {
        // They were there already, at the last sample before at the latest.
        0 if low > 0 => Some(until),
        high => free.get(high).map(|sample| sample.t),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(t: f64, w: f64, m: f64) -> ControlSample {
        ControlSample {
            t,
            n: 0.0,
            m,
            active: 1,
            w,
            zeta: None,
            rate: 0.0,
        }
    }

    /// One sample a second from 3 s, of a transfer from 2 s until after the
    /// last.
    fn figures(all: &[(f64, f64)], pressure_until: Option<f64>) -> ControlFigures {
        let samples = all.iter().zip(3_u32..);
        let samples: Vec<_> = samples
            .map(|(&(w, m), second)| sample(f64::from(second), w, m))
            .collect();
        let life = 2.0..3.0 + all.len() as f64;
        ControlFigures::of(&samples, life, pressure_until).unwrap()
    }

    #[test]
    fn w_is_judged_by_its_second_half_and_m_by_its_changes() {
        let rising = [(0.2, 1.0), (0.6, 1.4), (1.0, 1.6), (0.6, 2.4), (1.0, 1.2)];
        let figures = figures(&rising, None);
        assert!((figures.w_mean - 0.68).abs() < 1e-9);
        // The life is from 2 s to 8 s: of 1, 0.6 and 1.
        assert!((figures.w_deviation - 0.4 * 2_f64.sqrt() / 3.0).abs() < 1e-9);
        assert_eq!(figures.m_changes, 2);
        assert_eq!(figures.m_most, 2.4);
        assert_eq!((figures.free_s, figures.settled_s), (None, None));
    }

    #[test]
    fn floors_are_reached_when_they_are_not_left_again() {
        let low = (0.02, 1.0);
        let all = [(1.0, 2.0), (0.5, 1.0), low, (0.02, 1.2), low, low];
        assert_eq!(figures(&all, Some(3.5)).settled_s, Some(3.5));
        assert_eq!(figures(&all, Some(3.5)).free_s, Some(5.5));
        assert_eq!(figures(&all, Some(6.5)).settled_s, Some(0.0));
        let never = [low, low, (0.07, 1.0)];
        assert_eq!(figures(&never, Some(3.5)).settled_s, None);
    }

    #[test]
    fn a_transfer_that_was_over_before_has_nothing_to_show() {
        let figures = figures(&[(0.05, 1.0)], Some(30.0));
        assert_eq!((figures.free_s, figures.settled_s), (None, None));
        assert_eq!(ControlFigures::of(&[], 0.0..9.0, None), None);
    }
}
