//! A base and its deltas, merged into the tree of the last delta.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read;

use super::{
    LineProblem, ManifestItem, ManifestKind, ManifestReadError, ManifestReader, PathOrder, Record,
};
use crate::entry::TreePath;

/// Merges a base and its deltas: an iterator of the latest entries, ordered by path.
/// Memory holds one entry of each manifest. It ends after an error; earlier entries
/// are not trustworthy then.
#[derive(Debug)]
pub struct MergedManifests<R> {
    /// The base, then the deltas from the oldest to the latest.
    sources: Vec<ManifestReader<R>>,
    /// The next record of each source that has one.
    heads: Vec<Option<Record>>,
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
    /// Merges a base with its deltas, from the oldest to the latest.
    ///
    /// # Errors
    /// [`MergeError`].
    pub fn new(
        base: ManifestReader<R>,
        deltas: Vec<ManifestReader<R>>,
    ) -> Result<Self, MergeError> {
        let mut sources = vec![base];
        sources.extend(deltas);
        let first = sources[0].header().sequence;
        let mut expected = Some(first);
        for (i, source) in sources.iter().enumerate() {
            let found = source.header().sequence;
            if Some(found) != expected {
                let expected = expected.unwrap_or(first);
                return Err(MergeError::Sequence { expected, found });
            }
            let kind = if i == 0 {
                ManifestKind::Base
            } else {
                ManifestKind::Delta
            };
            if source.header().kind != kind {
                return Err(MergeError::Kind {
                    sequence: found,
                    expected: kind,
                });
            }
            expected = found.checked_add(1);
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
    fn advance(&mut self, source: usize) -> Result<Option<Record>, MergeError> {
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
            let Some(record @ Record::Item(_)) = record else {
                continue;
            };
            let taken = self.order.take(&record);
            taken.map_err(|problem| MergeError::Unfit { path, problem })?;
            if let Record::Item(item) = record {
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
