//! The last hour of a lane in few enough points to draw: means over ten seconds.
//!
//! Points lie at whole tens of seconds, so that they do not change from one look
//! to the next.

use serde::Serialize;

use crate::status::HistorySample;

/// Time between two points, s.
pub(super) const STEP: f64 = 10.0;

/// Points of an hour.
pub(super) const POINTS: usize = 360;

/// See the module. What is not known at a point is `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Series {
    /// When the first point begins, s since 1970.
    pub(super) start: f64,
    /// Byte/s.
    pub(super) rate: Vec<Option<f64>>,
    /// What the deadlines ask for, byte/s.
    pub(super) zeta: Vec<Option<f64>>,
    /// Weight.
    pub(super) w: Vec<Option<f64>>,
    /// Chunks.
    pub(super) n: Vec<Option<f64>>,
    /// Connections.
    pub(super) m: Vec<Option<f64>>,
    /// Queueing delay, ms.
    pub(super) queue: Vec<Option<f64>>,
}

impl Series {
    /// Of these samples, the hour that ends at `now`, s since 1970.
    pub(super) fn of(samples: &[HistorySample], now: f64) -> Self {
        let start = ((now / STEP).floor() + 1.0 - POINTS as f64) * STEP;
        let means = |value: fn(&HistorySample) -> Option<f64>, digits: i32| {
            let mut sums = vec![(0.0_f64, 0_u32); POINTS];
            for sample in samples {
                let at = (sample.t - start) / STEP;
                let value = value(sample).filter(|value| value.is_finite());
                if let (Some(value), true) = (value, (0.0..POINTS as f64).contains(&at)) {
                    let (sum, count) = &mut sums[at as usize];
                    *sum += value;
                    *count += 1;
                }
            }
            let scale = 10_f64.powi(digits);
            let mean = |(sum, count): (f64, u32)| match count {
                0 => None,
                count => Some((sum / f64::from(count) * scale).round() / scale),
            };
            sums.into_iter().map(mean).collect::<Vec<_>>()
        };
        Self {
            start,
            rate: means(|sample| Some(sample.rate), 0),
            zeta: means(|sample| sample.zeta, 0),
            w: means(|sample| Some(sample.w), 3),
            n: means(|sample| Some(sample.n), 2),
            m: means(|sample| Some(sample.m), 2),
            queue: means(|sample| sample.queue_s.map(|seconds| seconds * 1e3), 2),
        }
    }

    /// Whether there is no point at all.
    pub(super) fn is_empty(&self) -> bool {
        self.rate.iter().all(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(t: f64, rate: f64, zeta: Option<f64>) -> HistorySample {
        HistorySample {
            t,
            n: 0.0,
            m: 1.0,
            active: 1,
            w: 0.5,
            zeta,
            rate,
            rtt_s: None,
            queue_s: None,
        }
    }

    #[test]
    fn a_point_is_the_mean_of_its_ten_seconds() {
        let samples = [
            sample(999_990.0, 10.0, None),
            sample(999_999.9, 30.0, Some(7.0)),
            sample(1_000_000.0, 5.0, None),
        ];
        let series = Series::of(&samples, 1_000_004.0);
        assert_eq!(series.start, 1_000_010.0 - 3_600.0);
        assert_eq!(series.rate[POINTS - 2..], [Some(20.0), Some(5.0)]);
        assert_eq!(series.zeta[POINTS - 2..], [Some(7.0), None]);
        assert_eq!(series.rate[POINTS - 3], None);
    }

    #[test]
    fn what_is_older_newer_or_no_number_is_left_out() {
        let samples = [
            sample(1_000_010.0 - 3_600.1, 1.0, None),
            sample(1_000_010.0, 1.0, None),
            sample(1_000_000.0, f64::NAN, None),
        ];
        assert!(Series::of(&samples, 1_000_004.0).is_empty());
        let first = sample(1_000_010.0 - 3_600.0, 1.0, None);
        assert_eq!(Series::of(&[first], 1_000_004.0).rate[0], Some(1.0));
    }
}
