//! What a transfer should have left, byte by byte.

use fairbat::download::pieces::{LeaseId, Work};
use fairbat::ranges::RangeSet;

/// State of one byte of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Byte {
    Pending,
    Leased(LeaseId),
    Written,
}

/// A transfer in the model. A stream is a single lease over all its bytes.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) stream: bool,
    pub(crate) bytes: Vec<Byte>,
}

impl Model {
    pub(crate) fn count(&self, state: impl Fn(Byte) -> bool) -> u64 {
        self.bytes.iter().filter(|&&byte| state(byte)).count() as u64
    }

    pub(crate) fn pending(&self) -> u64 {
        self.count(|byte| byte == Byte::Pending)
    }

    pub(crate) fn leased(&self) -> u64 {
        self.count(|byte| matches!(byte, Byte::Leased(_)))
    }

    /// What the journal holds at a crash; of a stream nothing is of use.
    pub(crate) fn written(&self) -> RangeSet {
        (0_u64..)
            .zip(&self.bytes)
            .filter(|(_, byte)| **byte == Byte::Written && !self.stream)
            .map(|(offset, _)| offset..offset + 1)
            .collect()
    }

    /// Chunks counted one by one, as leasing would cut them.
    pub(crate) fn chunks(&self, chunk_len: u64) -> u64 {
        if self.stream {
            return u64::from(self.bytes.contains(&Byte::Pending));
        }
        let (mut chunks, mut room) = (0, 0);
        for byte in &self.bytes {
            if *byte != Byte::Pending {
                room = 0;
            } else if room == 0 {
                chunks += 1;
                room = chunk_len - 1;
            } else {
                room -= 1;
            }
        }
        chunks
    }

    pub(crate) fn work(&self) -> Work {
        let size = self.bytes.len() as u64;
        if self.stream {
            Work::Stream(Some(size))
        } else {
            Work::Ranges(self.written().gaps(size).collect())
        }
    }
}
