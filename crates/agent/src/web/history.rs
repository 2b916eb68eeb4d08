//! The last hour of the lanes, as the page draws it: means over ten seconds.
//!
//! Points lie at whole multiples of ten seconds, so the mean of a past point stays the
//! same from one request to the next.

use fairbat::machine::LaneDirection;
use serde::Serialize;

use crate::daemon::handle::DaemonHandle;
use crate::status::HistorySample;

/// Time between two points, s.
const STEP: f64 = 10.0;

/// Points of an hour.
const POINTS: usize = 360;

/// The document that the page reads.
#[derive(Serialize)]
pub(crate) struct HistoryDocument {
    /// Time between two points, s.
    step: f64,
    push: Series,
    pull: Series,
}

/// The last hour of a lane. A point without a measurement is `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Series {
    /// Beginning of the first point, s since 1970.
    start: f64,
    /// Mean rate, byte/s.
    rate: Vec<Option<f64>>,
    /// Rate that the deadlines need, byte/s.
    zeta: Vec<Option<f64>>,
    /// Weight of each flow.
    w: Vec<Option<f64>>,
    /// Inactive chunks.
    n: Vec<Option<f64>>,
    /// Limit on the active connections.
    m: Vec<Option<f64>>,
    /// Transfers of the stream that wait.
    stream_n: Vec<Option<f64>>,
    /// Limit on the connections of the stream.
    stream_m: Vec<Option<f64>>,
    /// Queueing delay, ms.
    queue: Vec<Option<f64>>,
}

impl HistoryDocument {
    /// The last hour of both lanes.
    pub(crate) fn of(handle: &DaemonHandle) -> Self {
        let now = handle.status().now.as_duration().as_secs_f64();
        let series = |direction| Series::of(&handle.history(direction), now);
        Self {
            step: STEP,
            push: series(LaneDirection::Push),
            pull: series(LaneDirection::Pull),
        }
    }
}

impl Series {
    /// The means of these samples over the hour that ends at `now`, s since 1970.
    fn of(samples: &[HistorySample], now: f64) -> Self {
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
            stream_n: means(|sample| sample.stream_n, 2),
            stream_m: means(|sample| sample.stream_m, 2),
            queue: means(|sample| sample.queue_s.map(|seconds| seconds * 1e3), 2),
        }
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
            stream_n: None,
            stream_m: None,
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
        let series = Series::of(&samples, 1_000_004.0);
        assert!(series.rate.iter().all(Option::is_none));
        let first = sample(1_000_010.0 - 3_600.0, 1.0, None);
        assert_eq!(Series::of(&[first], 1_000_004.0).rate[0], Some(1.0));
    }
}
