//! Round-trip times as they are now, from the sender's smoothed ones.
//!
//! Linux averages with gain 1/8, one sample per acknowledgement: a flow that
//! gets few takes seconds to see a queue come or go. How many have come since
//! the last look is known (`tcpi_segs_in`), so that the average is undone.
//! Knows nothing of queues.

use std::time::Duration;

use crate::socket::TcpInfo;

/// Gain of the kernel's average (RFC 6298 section 2).
const GAIN: f64 = 0.125;

/// So many segments at the beginning are acknowledged one by one (Linux's
/// `TCP_MAX_QUICKACKS`), besides the SYN. Later ones come in pairs, which take
/// longer by the time of a segment on the link: that is no queue.
const SINGLE: u32 = 17;

/// The least time that there is, s: the kernel's unit.
const LEAST: f64 = 1e-6;

/// The round-trip times of one connection that sends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AckSamples {
    /// Smoothed round-trip time at the last look, and segments received until
    /// then.
    last: Option<(Duration, u32)>,
}

impl AckSamples {
    /// The mean of what the kernel has measured since the last look, later
    /// samples counting for more; at least 1 µs. `None` if there was nothing to
    /// measure, or nothing that would say something of the path.
    pub(super) fn newest(&mut self, info: &TcpInfo) -> Option<Duration> {
        let (smoothed, segments) = (info.rtt?, info.segs_in?);
        let (before, already) = self.last.replace((smoothed, segments))?;
        let updates = segments.wrapping_sub(already);
        if updates == 0 || already < SINGLE {
            return None;
        }
        let kept = (1.0 - GAIN).powf(f64::from(updates));
        let (old, new) = (before.as_secs_f64(), smoothed.as_secs_f64());
        let newest = old + (new - old) / (1.0 - kept);
        // An acknowledgement that measures nothing (of a segment sent again)
        // counts as one that did: below what was ever measured it cannot be.
        let least = info.min_rtt.map_or(LEAST, |rtt| rtt.as_secs_f64());
        Some(Duration::from_secs_f64(newest.max(least)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(rtt: f64, segs_in: u32) -> TcpInfo {
        TcpInfo {
            rtt: Some(Duration::from_secs_f64(rtt)),
            segs_in: Some(segs_in),
            min_rtt: Some(Duration::from_millis(50)),
            ..TcpInfo::parse(&[0; 240]).unwrap()
        }
    }

    /// What is found when so many acknowledgements have measured `sample`
    /// after an average of 90 ms.
    fn found(sample: f64, updates: u32) -> f64 {
        let mut samples = AckSamples::default();
        assert_eq!(samples.newest(&info(0.090, 100)), None);
        let kept = 0.875_f64.powi(updates.try_into().unwrap());
        let smoothed = sample + kept * (0.090 - sample);
        let newest = samples.newest(&info(smoothed, 100 + updates));
        newest.unwrap().as_secs_f64()
    }

    #[test]
    fn a_queue_that_goes_is_seen_at_once() {
        for updates in [1, 2, 7, 60] {
            let newest = found(0.055, updates);
            assert!((newest - 0.055).abs() < 1e-5, "{newest} after {updates}");
        }
    }

    #[test]
    fn below_what_was_ever_measured_it_is_not() {
        assert!((found(0.020, 1) - 0.050).abs() < 1e-9);
    }

    #[test]
    fn nothing_new_is_nothing_and_neither_is_the_beginning() {
        let mut samples = AckSamples::default();
        assert_eq!(samples.newest(&info(0.060, 1)), None, "the handshake");
        assert_eq!(samples.newest(&info(0.060, 17)), None, "single segments");
        assert_eq!(samples.newest(&info(0.060, 17)), None, "nothing new");
        assert!(samples.newest(&info(0.060, 18)).is_some());
    }
}
