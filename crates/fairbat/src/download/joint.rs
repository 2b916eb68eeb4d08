//! What bytes of several sources are joined under, and what has been found out about the sources.
//! No I/O.
//!
//! With hashes of pieces, each piece is compared as soon as it is there. With a hash of the whole
//! file only its end tells. So each source is first asked for the same few bytes, and those that
//! send other ones than the present source are not used. If the file is wrong all the same, one
//! source sends alone what others had sent, and when it is right then, the guilty ones are those
//! whose bytes were others.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::settings::PieceHashes;

/// Bytes that every source is asked for, where only the hash of the whole file is known.
pub(crate) const SAMPLE: u64 = 64 * 1024;

/// What the bytes of a transfer are joined under.
#[derive(Debug, Default)]
pub(crate) struct Joint {
    /// Where pieces have hashes.
    pub(crate) pieces: Option<PieceChecks>,
    /// Where they have none.
    pub(crate) sample: Option<Sample>,
    /// Only this source sends from now on.
    pub(crate) alone: Option<usize>,
    /// How often bytes of the finished file were fetched again.
    pub(crate) mendings: u32,
    /// What others had sent before.
    pub(crate) doubts: Vec<Doubt>,
    /// Sources that say something else of the file than the present one.
    dissenters: Vec<(usize, Statement)>,
    /// Sources that have sent what is right.
    proven: BTreeSet<usize>,
}

/// What a source says of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Its size, bytes.
    pub(crate) total: u64,
    /// SHA-256 of the bytes that all are asked for.
    pub(crate) sample: Option<[u8; 32]>,
}

/// The bytes that all sources are asked for.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) range: Range<u64>,
    /// SHA-256 of what the present source has sent, once it has.
    pub(crate) sha256: Option<[u8; 32]>,
}

/// Bytes of a source that were thrown away, because somebody's are wrong.
#[derive(Debug, Clone)]
pub(crate) struct Doubt {
    pub(crate) source: usize,
    pub(crate) range: Range<u64>,
    pub(crate) sha256: [u8; 32],
}

impl Joint {
    /// For a file of `total` bytes. The sample lies at this share of the file, from 0 to 1.
    pub(crate) fn new(total: u64, pieces: Option<PieceHashes>, place: f64) -> Self {
        let pieces = pieces.map(|hashes| PieceChecks::new(hashes, total));
        let length = SAMPLE.min(total);
        let start = ((total - length) as f64 * place) as u64;
        let sample = Sample {
            range: start..start + length,
            sha256: None,
        };
        Self {
            sample: pieces.is_none().then_some(sample),
            pieces,
            ..Self::default()
        }
    }

    /// Whether other sources may be asked: there is something to compare their bytes with.
    pub(crate) fn may_ask_others(&self) -> bool {
        let has_sample = self.sample.as_ref().is_some_and(|it| it.sha256.is_some());
        self.alone.is_none() && (self.pieces.is_some() || has_sample)
    }

    /// Whether bytes of several sources are joined, or pieces compared.
    pub(crate) fn joins(&self) -> bool {
        self.pieces.is_some() || self.sample.is_some()
    }

    /// Whether bytes are being compared.
    pub(crate) fn is_comparing(&self) -> bool {
        self.pieces.as_ref().is_some_and(PieceChecks::is_running)
    }

    /// Whether this source may send bytes of the file.
    pub(crate) fn may_send(&self, source: usize) -> bool {
        self.alone.is_none_or(|alone| alone == source)
    }

    /// A source says this, and the present one `present`. Returns how many others say the same as
    /// that source, if it is not what the present one says.
    pub(crate) fn compare(
        &mut self,
        source: usize,
        says: Statement,
        present: Statement,
    ) -> Option<usize> {
        let is_same = says.total == present.total
            && (says.sample == present.sample || says.sample.is_none() || present.sample.is_none());
        if is_same {
            return None;
        }
        self.dissenters.push((source, says));
        let alike = self.dissenters.iter().filter(|(_, other)| *other == says);
        Some(alike.count() - 1)
    }

    /// Sources that say the same as this one, which differs from the present one.
    pub(crate) fn alike(&self, source: usize) -> impl Iterator<Item = usize> {
        let says = self.dissenters.iter().find(|(other, _)| *other == source);
        let says = says.map(|(_, says)| *says);
        let all = self.dissenters.iter();
        all.filter(move |(_, other)| Some(*other) == says)
            .map(|(source, _)| *source)
    }

    /// A source has sent what is right.
    pub(crate) fn prove(&mut self, source: usize) {
        self.proven.insert(source);
    }

    /// Where a chunk of a source should end that begins at this offset and has about this length:
    /// at the end of a piece, and of the first one while the source is not proven.
    pub(crate) fn end_of_chunk(&self, source: usize, start: u64, length: u64) -> u64 {
        let Some(pieces) = &self.pieces else {
            return start.saturating_add(length);
        };
        let piece = pieces.hashes.length.get();
        let length = if self.proven.contains(&source) {
            length
        } else {
            piece
        };
        let next = (start / piece + 1).saturating_mul(piece);
        let end = start.saturating_add(length) / piece * piece;
        end.max(next)
    }
}

/// How far a piece has been compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceState {
    Unknown,
    Compared,
    Right,
}

/// The pieces of a file with their hashes, and how far they have been compared.
#[derive(Debug)]
pub(crate) struct PieceChecks {
    pub(crate) hashes: PieceHashes,
    total: u64,
    pieces: Vec<PieceState>,
    /// Pieces that are being compared.
    running: usize,
    /// How often each was wrong that was.
    wrong: Vec<(usize, u32)>,
}

impl PieceChecks {
    fn new(hashes: PieceHashes, total: u64) -> Self {
        Self {
            pieces: vec![PieceState::Unknown; hashes.hashes.len()],
            hashes,
            total,
            running: 0,
            wrong: Vec::new(),
        }
    }

    /// The bytes of a piece.
    pub(crate) fn range(&self, piece: usize) -> Range<u64> {
        self.hashes.range(piece, self.total)
    }

    /// The pieces in which some of these bytes lie.
    fn touched(&self, range: &Range<u64>) -> Range<usize> {
        let length = self.hashes.length.get();
        let at = |offset: u64| usize::try_from(offset / length).unwrap_or(usize::MAX);
        let end = at(range.end.saturating_sub(1)).saturating_add(1);
        at(range.start)..end.min(self.pieces.len())
    }

    /// Bytes of this range have been written. Returns the pieces among them that are whole and
    /// have not been compared. They are being compared from now on.
    pub(crate) fn due(
        &mut self,
        range: &Range<u64>,
        has: impl Fn(&Range<u64>) -> bool,
    ) -> Vec<usize> {
        let mut due = Vec::new();
        for piece in self.touched(range) {
            if self.pieces[piece] == PieceState::Unknown && has(&self.range(piece)) {
                self.pieces[piece] = PieceState::Compared;
                self.running += 1;
                due.push(piece);
            }
        }
        due
    }

    /// A piece has been compared. Returns how often it has been wrong.
    pub(crate) fn compared(&mut self, piece: usize, is_right: bool) -> u32 {
        self.running = self.running.saturating_sub(1);
        self.pieces[piece] = if is_right {
            PieceState::Right
        } else {
            PieceState::Unknown
        };
        if is_right {
            return 0;
        }
        match self.wrong.iter_mut().find(|(other, _)| *other == piece) {
            Some((_, times)) => {
                *times += 1;
                *times
            }
            None => {
                self.wrong.push((piece, 1));
                1
            }
        }
    }

    /// These bytes are to be fetched again.
    pub(crate) fn forget(&mut self, range: &Range<u64>) {
        for piece in self.touched(range) {
            self.pieces[piece] = PieceState::Unknown;
        }
    }

    /// Whether pieces are being compared.
    pub(crate) fn is_running(&self) -> bool {
        self.running > 0
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::settings::Checksum;

    fn pieces(length: u64, count: usize) -> PieceHashes {
        PieceHashes {
            length: NonZeroU64::new(length).unwrap(),
            hashes: vec![Checksum::Sha256([0; 32]); count],
        }
    }

    #[test]
    fn a_chunk_ends_with_a_piece() {
        let mut joint = Joint::new(1000, Some(pieces(100, 10)), 0.5);
        // The first chunk of a source is one piece, or what is left of one.
        assert_eq!(joint.end_of_chunk(0, 0, 350), 100);
        assert_eq!(joint.end_of_chunk(0, 30, 350), 100);
        joint.prove(0);
        assert_eq!(joint.end_of_chunk(0, 0, 350), 300);
        assert_eq!(joint.end_of_chunk(0, 130, 350), 400);
        assert_eq!(joint.end_of_chunk(0, 130, 10), 200);
        assert_eq!(Joint::new(1000, None, 0.5).end_of_chunk(0, 130, 10), 140);
    }

    #[test]
    fn a_piece_is_compared_once_it_is_whole() {
        let mut checks = PieceChecks::new(pieces(100, 3), 250);
        assert_eq!(checks.due(&(0..150), |range| range.end <= 150), [0]);
        assert!(checks.is_running());
        assert_eq!(checks.due(&(0..150), |range| range.end <= 150), [0; 0]);
        assert_eq!(checks.due(&(150..250), |_| true), [1, 2]);
        assert_eq!(checks.range(2), 200..250);
        assert_eq!(checks.compared(0, true), 0);
        assert_eq!(checks.compared(1, false), 1);
        assert_eq!(checks.compared(2, true), 0);
        assert!(!checks.is_running());
        assert_eq!(checks.due(&(100..200), |_| true), [1]);
        assert_eq!(checks.compared(1, false), 2);
    }

    #[test]
    fn sources_that_agree_with_each_other_are_counted() {
        let mut joint = Joint::new(1 << 20, None, 1.0);
        assert!(!joint.may_ask_others());
        let sample = joint.sample.as_mut().unwrap();
        assert_eq!(sample.range.end, 1 << 20);
        sample.sha256 = Some([1; 32]);
        assert!(joint.may_ask_others());
        let says = |total, byte| Statement {
            total,
            sample: Some([byte; 32]),
        };
        let present = says(1 << 20, 1);
        assert_eq!(joint.compare(1, says(1 << 20, 1), present), None);
        assert_eq!(joint.compare(2, says(1 << 20, 2), present), Some(0));
        assert_eq!(joint.compare(3, says(900, 1), present), Some(0));
        assert_eq!(joint.compare(4, says(1 << 20, 2), present), Some(1));
        assert_eq!(joint.alike(4).collect::<Vec<_>>(), [2, 4]);
    }
}
