//! What a QUIC connection that sends has under way, as the laws of the kernel count it.

use std::collections::VecDeque;

/// What is under way.
#[derive(Debug, Clone)]
pub(super) struct PathState {
    /// Size of a packet, bytes.
    pub(super) segment: u16,
    /// Bytes sent, and bytes up to the newest packet that has arrived.
    pub(super) next: u64,
    pub(super) acknowledged: u64,
    /// What has left at once and has not arrived: the number of its last packet, and how many bytes
    /// were sent up to there.
    pub(super) sent: VecDeque<(u64, u64)>,
    /// The same of the last of it that has arrived.
    pub(super) arrived: (u64, u64),
    /// Packets under way.
    pub(super) outstanding: u32,
    pub(super) max_outstanding: u32,
    /// The most is counted anew from this byte on.
    pub(super) counted_from: u64,
    pub(super) delivered: u32,
}

impl PathState {
    pub(super) fn new(segment: u16) -> Self {
        Self {
            segment,
            next: 0,
            acknowledged: 0,
            sent: VecDeque::new(),
            arrived: (0, 0),
            outstanding: 0,
            max_outstanding: 0,
            counted_from: 0,
            delivered: 0,
        }
    }

    /// Packets have left at once, the last of them with this number.
    pub(super) fn send(&mut self, bytes: u64, number: u64) {
        self.next += bytes;
        self.outstanding += packets(bytes + u64::from(self.segment) - 1, self.segment);
        self.sent.push_back((number, self.next));
        if self.acknowledged >= self.counted_from {
            self.counted_from = self.next;
            self.max_outstanding = 0;
        }
        self.max_outstanding = self.max_outstanding.max(self.outstanding);
    }

    /// The packets up to this one have arrived, or will not.
    pub(super) fn arrive_up_to(&mut self, number: u64) {
        while let Some(&front) = self.sent.front().filter(|(last, _)| *last <= number) {
            self.sent.pop_front();
            self.arrived = front;
            self.acknowledged = front.1;
        }
        // Some of what has left at once.
        let (before, upto) = self.arrived;
        let bytes = number.saturating_sub(before) * u64::from(self.segment);
        let most = self.sent.front().map_or(upto, |(_, upto)| upto - 1);
        self.acknowledged = self.acknowledged.max((upto + bytes).min(most));
    }
}

/// How many packets of this size these bytes fill.
pub(super) fn packets(bytes: u64, segment: u16) -> u32 {
    u32::try_from(bytes / u64::from(segment.max(1))).unwrap_or(u32::MAX)
}
