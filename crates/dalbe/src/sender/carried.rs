//! What has arrived at the other end, in order or not. Of what is acknowledged
//! in order, all that came behind a hole is new at once when that is filled:
//! that would look like a much higher rate, and the path like a faster one.

use crate::socket::TcpInfo;

/// What one connection has carried.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveredBytes {
    /// Bytes at the last look; `None` before the first.
    bytes: Option<u64>,
}

impl DeliveredBytes {
    /// Another look; returns the bytes so far: what was acknowledged in order,
    /// and as many segments as have arrived beyond holes. `None` before Linux
    /// 4.1.
    pub fn update(&mut self, info: &TcpInfo) -> Option<u64> {
        let beyond = u64::from(info.sacked) * u64::from(info.snd_mss);
        let bytes = info.bytes_acked?.saturating_add(beyond);
        // Receivers may take back what they had reported (RFC 2018, section 8).
        self.bytes = self.bytes.max(Some(bytes));
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
