//! What each connection of several senders of the lab's had.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::samples::{BackgroundRecord, first_bytes_s, goodput};
use crate::scenario::Background;

/// ctrlTCP's short flow, 200 kbit (Islam and Welzl 2016, NEAT D3.2 Appendix D, fig. 7), bytes.
const SHORT_FLOW_BYTES: u64 = 25_000;

/// One of several connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionFigures {
    /// Payload at its receiver in the measured part, Mbit/s.
    pub mbit: f64,
    /// Seconds from its start until its receiver had its first 25 kB; `None` if it never had.
    pub short_flow_s: Option<f64>,
}

impl ConnectionFigures {
    /// Of each, in the order in which they begin; none if there is only one.
    pub(super) fn all(
        background: &Background,
        records: &[BackgroundRecord],
        window: &Range<f64>,
    ) -> Vec<Self> {
        if records.len() < 2 || records.iter().any(|one| one.received.is_empty()) {
            return Vec::new();
        }
        let start = |number: u32| background.start_s + f64::from(number) * background.stagger_s;
        let starts = (0..).map(start);
        let all = starts.zip(records).map(|(start, one)| Self {
            mbit: goodput(&one.received, window.start, window.end),
            short_flow_s: first_bytes_s(&one.received, SHORT_FLOW_BYTES).map(|at| at - start),
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_its_rate_and_the_time_of_its_first_bytes() {
        let background = Background {
            start_s: 0.1,
            stagger_s: 0.2,
            ..Background::default()
        };
        let record = |received: &[u64]| BackgroundRecord {
            received: received.to_vec(),
            ..BackgroundRecord::default()
        };
        let window = 0.2..0.4;
        let first = record(&[0, 10_000, 30_000, 80_000]);
        let second = record(&[0, 0, 0, 20_000]);
        let figures =
            ConnectionFigures::all(&background, &[first.clone(), second.clone()], &window);
        let [one, other] = figures[..] else {
            panic!("{figures:?}");
        };
        // 70 kB and 20 kB within 0.2 s.
        assert!((one.mbit - 2.8).abs() < 1e-9 && (other.mbit - 0.8).abs() < 1e-9);
        // Three quarters of the third interval.
        let took = one.short_flow_s.unwrap();
        assert!((took - 0.175).abs() < 1e-9, "{took}");
        assert_eq!(other.short_flow_s, None);
        assert_eq!(ConnectionFigures::all(&background, &[first], &window), []);
    }
}
