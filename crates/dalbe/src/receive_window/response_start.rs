//! How a response begins. The sender still has its congestion window from before, and
//! would send it all at once after the silence between two responses. So the window
//! doubles from round trip to round trip, as in slow start (RFC 5681), and grows by no more
//! from look to look than the buffer of the path holds.

use std::time::Duration;

use super::ConnectionSample;

/// What every new flow may send at once, segments (RFC 6928).
pub(super) const FIRST_WINDOW: f64 = 10.0;

/// The burst that the sender may send after the silence between two responses, as a share
/// of the window. Most buffers hold such a burst.
const FIRST_WINDOW_SHARE: f64 = 0.25;

/// In a buffer that is much shorter than the window, a look adds this share of the window:
/// a train of this size in 20 ms is spread over the path.
const MIN_GROWTH_SHARE: f64 = 1.0 / 16.0;

/// The start of a response on one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum ResponseStart {
    /// No data has come since the connection had received this many bytes.
    Awaited(u64),
    /// Data comes. At the last sample, so many bytes of the window were open.
    Opening { at: Duration, open: f64 },
    /// It is over.
    #[default]
    Over,
}

impl ResponseStart {
    pub(super) fn is_over(self) -> bool {
        self == Self::Over
    }

    /// How much of this window is open now, bytes, on a path whose buffer holds a `burst`,
    /// bytes.
    pub(super) fn open(
        &mut self,
        now: Duration,
        sample: &ConnectionSample,
        window: f64,
        burst: f64,
    ) -> f64 {
        let first = (FIRST_WINDOW * sample.segment)
            .max(FIRST_WINDOW_SHARE * window)
            .min(burst);
        let open = match *self {
            Self::Awaited(before) if sample.bytes == before => return first.min(window),
            Self::Awaited(_) => first,
            Self::Opening { at, open } => {
                let round_trips = now.saturating_sub(at).div_duration_f64(sample.rtt);
                (open * round_trips.exp2()).min(open + burst.max(MIN_GROWTH_SHARE * window))
            }
            Self::Over => window,
        };
        *self = if open < window {
            Self::Opening { at: now, open }
        } else {
            Self::Over
        };
        open.min(window)
    }
}

/// The window beyond the end of a response, bytes: what the sender may send at once of the
/// next one.
pub(super) fn beyond_the_end(segment: f64, burst: f64) -> f64 {
    (FIRST_WINDOW * segment).min(burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: f64 = 1448.0;

    /// What is open of 80 segments in each of ten looks, one every 20 ms, in segments.
    fn opened(rtt_ms: u64, burst: f64) -> Vec<f64> {
        let mut start = ResponseStart::Awaited(5);
        let sample = |bytes| ConnectionSample {
            rtt: Duration::from_millis(rtt_ms),
            base: Duration::from_millis(rtt_ms),
            queueing: Some(0.0),
            segment: SEGMENT,
            bytes,
            out_of_order: 0,
            excess: 0.0,
        };
        let mut look = |look: u64| {
            let now = Duration::from_millis(20 * look);
            let sample = sample(if look < 2 { 5 } else { 6 + look });
            start.open(now, &sample, 80.0 * SEGMENT, burst * SEGMENT) / SEGMENT
        };
        (0..10).map(|number| look(number).round()).collect()
    }

    #[test]
    fn a_window_doubles_in_each_round_trip_once_data_comes() {
        let open = opened(40, f64::INFINITY);
        assert_eq!(
            open,
            [20.0, 20.0, 20.0, 28.0, 40.0, 57.0, 80.0, 80.0, 80.0, 80.0]
        );
    }

    #[test]
    fn a_window_never_grows_by_more_than_the_buffer_holds() {
        let open = opened(20, 8.0);
        assert_eq!(
            open,
            [8.0, 8.0, 8.0, 16.0, 24.0, 32.0, 40.0, 48.0, 56.0, 64.0]
        );
        assert_eq!(beyond_the_end(SEGMENT, 8.0 * SEGMENT), 8.0 * SEGMENT);
        assert_eq!(beyond_the_end(SEGMENT, f64::INFINITY), 10.0 * SEGMENT);
    }
}
