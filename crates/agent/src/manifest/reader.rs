//! Reads a manifest, line by line; and a base with its deltas, merged into the tree of
//! the last delta.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use flate2::bufread::GzDecoder;
use sha2::{Digest as _, Sha256};

use super::line::{self, EndMark, ParsedLine};
use super::{
    LineProblem, MAX_LINE, MAX_LINES, ManifestHeader, ManifestItem, ManifestKind, ManifestLine,
    ManifestReadError, PathOrder,
};
use crate::entry::TreePath;

/// Reads a manifest: an iterator of its entries, which ends after an error. Only the end
/// shows that the manifest is complete.
#[derive(Debug)]
pub struct ManifestReader<R> {
    lines: LineReader<R>,
    header: ManifestHeader,
    order: PathOrder,
    entries: u64,
    is_at_end: bool,
}

#[derive(Debug)]
struct LineReader<R> {
    input: BufReader<GzDecoder<BufReader<R>>>,
    hash: Sha256,
    line: Vec<u8>,
    number: u64,
    /// Bytes that may still follow.
    left: u64,
}

impl<R: Read> ManifestReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`ManifestReadError`].
    pub fn open(input: R) -> Result<Self, ManifestReadError> {
        Self::within(MAX_LINES, input)
    }

    /// The same for a manifest whose lines have at most `left` bytes.
    pub(crate) fn within(left: u64, input: R) -> Result<Self, ManifestReadError> {
        let mut lines = LineReader {
            input: BufReader::new(GzDecoder::new(BufReader::new(input))),
            hash: Sha256::new(),
            line: Vec::new(),
            number: 0,
            left,
        };
        lines.next()?;
        let header = line::read_header(&lines.line)?;
        lines.hash.update(&lines.line);
        Ok(Self {
            lines,
            header,
            order: PathOrder::default(),
            entries: 0,
            is_at_end: false,
        })
    }

    /// The header.
    pub fn header(&self) -> &ManifestHeader {
        &self.header
    }

    fn record(&mut self) -> Result<Option<ManifestLine>, ManifestReadError> {
        self.lines.next()?;
        let refused = |problem| ManifestReadError::Line {
            line: self.lines.number,
            problem,
        };
        let record = match line::read(&self.lines.line).map_err(refused)? {
            ParsedLine::Line(record) => record,
            ParsedLine::End(end) => return self.end(end).map(|()| None),
        };
        if self.header.kind == ManifestKind::Base && matches!(record, ManifestLine::Removed(_)) {
            return Err(refused(LineProblem::RemovedFromBase));
        }
        self.order.take(&record).map_err(refused)?;
        self.entries += 1;
        self.lines.hash.update(&self.lines.line);
        Ok(Some(record))
    }

    fn end(&mut self, end: EndMark) -> Result<(), ManifestReadError> {
        let (announced, found) = (end.entries, self.entries);
        if announced != found {
            return Err(ManifestReadError::Count { announced, found });
        }
        let sha256: [u8; 32] = self.lines.hash.clone().finalize().into();
        if sha256 != end.sha256 {
            return Err(ManifestReadError::Digest);
        }
        match self.lines.is_at_end()? {
            true => Ok(()),
            false => Err(ManifestReadError::Trailing),
        }
    }
}

impl<R: Read> Iterator for ManifestReader<R> {
    type Item = Result<ManifestLine, ManifestReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end {
            return None;
        }
        let record = self.record().transpose();
        self.is_at_end = !matches!(record, Some(Ok(_)));
        record
    }
}

impl<R: Read> LineReader<R> {
    /// Reads a line, with its end.
    fn next(&mut self) -> Result<(), ManifestReadError> {
        self.line.clear();
        self.number += 1;
        let mut rest = (&mut self.input).take(MAX_LINE as u64);
        let length = rest.read_until(b'\n', &mut self.line).map_err(read_error)?;
        let left = self.left.checked_sub(length as u64);
        self.left = left.ok_or(ManifestReadError::TooLarge)?;
        if self.line.ends_with(b"\n") {
            Ok(())
        } else if self.line.len() < MAX_LINE {
            Err(ManifestReadError::CutOff)
        } else {
            Err(ManifestReadError::Line {
                line: self.number,
                problem: LineProblem::TooLong,
            })
        }
    }

    /// Whether nothing follows in the gzip or after it.
    fn is_at_end(&mut self) -> Result<bool, ManifestReadError> {
        if !self.input.fill_buf().map_err(read_error)?.is_empty() {
            return Ok(false);
        }
        let after = self.input.get_mut().get_mut();
        Ok(after.fill_buf().map_err(read_error)?.is_empty())
    }
}

fn read_error(error: io::Error) -> ManifestReadError {
    match error.kind() {
        ErrorKind::UnexpectedEof => ManifestReadError::CutOff,
        _ => ManifestReadError::Read(error),
    }
}

/// Merges a base and its deltas: an iterator of the latest entries, ordered by path.
/// Memory holds one entry of each manifest. It ends after an error; earlier entries
/// are not trustworthy then.
#[derive(Debug)]
pub struct MergedManifests<R> {
    /// The base, then the deltas from the oldest to the latest.
    sources: Vec<ManifestReader<R>>,
    /// The next record of each source that has one.
    heads: Vec<Option<ManifestLine>>,
    /// Their paths, with the indices of the sources. The first path is on top, with its
    /// latest source.
    next: BinaryHeap<(Reverse<TreePath>, usize)>,
    order: PathOrder,
}

/// Why manifests cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// One of them cannot be read.
    #[error("manifest {sequence} {error}")]
    Read {
        /// Its number.
        sequence: u64,
        /// What is wrong with it.
        error: ManifestReadError,
    },
    /// One of them is of the wrong kind.
    #[error("manifest {sequence} is not a {expected:?}")]
    Kind {
        /// Its number.
        sequence: u64,
        /// The expected kind.
        expected: ManifestKind,
    },
    /// One is missing, or they are out of order.
    #[error("manifest {expected} is missing: {found} is in its place")]
    Sequence {
        /// The expected number.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// Together they form no tree.
    #[error("the manifests do not fit together at {path}: {problem}")]
    Unfit {
        /// Where.
        path: TreePath,
        /// What is wrong.
        problem: LineProblem,
    },
}

impl<R: Read> MergedManifests<R> {
    /// Merges a base and its deltas, which follow it from the oldest to the latest.
    ///
    /// # Errors
    /// [`MergeError`].
    pub fn new(sources: Vec<ManifestReader<R>>) -> Result<Self, MergeError> {
        let headers = || sources.iter().map(ManifestReader::header);
        let first = headers().next().map_or(0, |base| base.sequence);
        for (i, header) in headers().enumerate() {
            let (found, expected) = (header.sequence, first.saturating_add(i as u64));
            if found != expected {
                return Err(MergeError::Sequence { expected, found });
            }
            let expected = match i {
                0 => ManifestKind::Base,
                _ => ManifestKind::Delta,
            };
            if header.kind != expected {
                return Err(MergeError::Kind {
                    sequence: found,
                    expected,
                });
            }
        }
        let mut merged = Self {
            heads: sources.iter().map(|_| None).collect(),
            next: BinaryHeap::new(),
            order: PathOrder::default(),
            sources,
        };
        for source in 0..merged.sources.len() {
            merged.advance(source)?;
        }
        Ok(merged)
    }

    /// Takes the next record of a source, and reads the one after it.
    fn advance(&mut self, source: usize) -> Result<Option<ManifestLine>, MergeError> {
        let sequence = self.sources[source].header().sequence;
        let read = self.sources[source].next().transpose();
        let read = read.map_err(|error| MergeError::Read { sequence, error })?;
        if let Some(record) = &read {
            self.next.push((Reverse(record.path().clone()), source));
        }
        Ok(std::mem::replace(&mut self.heads[source], read))
    }

    fn item(&mut self) -> Result<Option<ManifestItem>, MergeError> {
        while let Some((Reverse(path), latest)) = self.next.pop() {
            let record = self.advance(latest)?;
            while let Some((Reverse(other), _)) = self.next.peek()
                && *other == path
                && let Some((_, older)) = self.next.pop()
            {
                self.advance(older)?;
            }
            let Some(record @ ManifestLine::Item(_)) = record else {
                continue;
            };
            let taken = self.order.take(&record);
            taken.map_err(|problem| MergeError::Unfit { path, problem })?;
            if let ManifestLine::Item(item) = record {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

impl<R: Read> Iterator for MergedManifests<R> {
    type Item = Result<ManifestItem, MergeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.item().transpose();
        if matches!(item, Some(Err(_))) {
            self.next.clear();
        }
        item
    }
}
