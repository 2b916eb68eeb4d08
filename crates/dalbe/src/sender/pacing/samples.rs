//! Round-trip times as they are now, from the sender's smoothed ones.

use std::time::Duration;

use crate::socket::TcpInfo;

/// Gain of the kernel's average (RFC 6298 section 2).
const GAIN: f64 = 0.125;

/// So many segments at the beginning are acknowledged one by one (Linux's
/// `TCP_MAX_QUICKACKS`), and the SYN by another: a pair takes longer, by the
/// time of a segment on the link, without any queue.
const SINGLE: u32 = 17;

/// The round-trip times of one connection that sends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AckSamples {
    last: Option<(Duration, u32)>,
}

impl AckSamples {
    pub(super) fn newest(&mut self, info: &TcpInfo) -> Option<Duration> {
        let smoothed = info.rtt?;
        let segments = info.segs_in?;
        let (old, before) = self.last.replace((smoothed, segments))?;
        if before < SINGLE {
            return None;
        }
        let updates = segments.wrapping_sub(before);
        if updates == 0 {
            return None;
        }
        let kept = (1.0 - GAIN).powf(f64::from(updates));
        let (old, new) = (old.as_secs_f64(), smoothed.as_secs_f64());
        let newest = old + (new - old) / (1.0 - kept);
        let least = info.min_rtt.map_or(0.0, |rtt| rtt.as_secs_f64());
        Some(Duration::from_secs_f64(newest.max(least)))
    }
}
