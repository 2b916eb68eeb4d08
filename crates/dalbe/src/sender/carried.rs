//! What has arrived at the other end, in order or not. Of what is acknowledged
//! in order, all that came behind a hole is new at once when that is filled:
//! that would look like a much higher rate, and the path like a faster one.

use crate::brake::SEGMENT_LEAST;
use crate::socket::TcpInfo;

/// What one connection has carried.
#[derive(Debug, Clone, Copy, Default)]
pub struct Carried {
    /// Segments at the last look.
    segments: Option<u32>,
    /// Bytes at the last look; `None` before the first.
    bytes: Option<u64>,
}

impl Carried {
    /// Another look; returns the bytes so far. What came before the first look
    /// counts by what was acknowledged of it. `None` before Linux 4.1.
    pub fn update(&mut self, info: &TcpInfo) -> Option<u64> {
        let acked = info.bytes_acked?;
        let bytes = match (self.bytes, self.segments, info.delivered) {
            (Some(bytes), Some(before), Some(now)) => {
                let segment = info.snd_mss.max(SEGMENT_LEAST);
                bytes.saturating_add(u64::from(now.wrapping_sub(before)) * u64::from(segment))
            }
            _ => acked,
        };
        (self.segments, self.bytes) = (info.delivered, Some(bytes));
        self.bytes
    }

    /// Another look; returns the bytes since the last one, 0 at the first.
    pub fn since_last(&mut self, info: &TcpInfo) -> u64 {
        let before = self.bytes;
        let now = self.update(info);
        now.zip(before)
            .map_or(0, |(now, before)| now.saturating_sub(before))
    }
}
