//! Writes a manifest, line by line.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::line::{self, EndMark};
use super::{
    LineProblem, MAX_LINE, MAX_LINES, ManifestHeader, ManifestKind, ManifestLine, PathOrder,
};
use crate::entry::TreePath;

/// Writes a manifest.
#[derive(Debug)]
pub struct ManifestWriter<W: Write> {
    output: GzEncoder<W>,
    hash: Sha256,
    kind: ManifestKind,
    order: PathOrder,
    entries: u64,
    /// Bytes that may still follow.
    left: u64,
}

/// Why a manifest or an entry cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ManifestWriteError {
    /// The output failed. The manifest cannot be finished.
    #[error("the manifest cannot be written: {0}")]
    Write(#[from] io::Error),
    /// It would have too many entries to be read.
    #[error(
        "the manifest would have more than {} GiB before it is packed: split the job into several",
        MAX_LINES >> 30
    )]
    TooLarge,
    /// This entry cannot be in the manifest. Other entries can.
    #[error("{path} cannot be in the manifest: {problem}")]
    Refused {
        /// Its path.
        path: TreePath,
        /// What is wrong with it.
        problem: LineProblem,
    },
}

impl<W: Write> ManifestWriter<W> {
    /// Begins a manifest.
    ///
    /// # Errors
    /// [`ManifestWriteError::Write`].
    pub fn new(output: W, header: ManifestHeader) -> Result<Self, ManifestWriteError> {
        let mut writer = Self {
            output: GzEncoder::new(output, Compression::default()),
            hash: Sha256::new(),
            kind: header.kind,
            order: PathOrder::default(),
            entries: 0,
            left: MAX_LINES,
        };
        let line = line::write_header(&header).map_err(io::Error::from)?;
        writer.line(line)?;
        Ok(writer)
    }

    /// Writes the next entry.
    ///
    /// # Errors
    /// [`ManifestWriteError::Refused`]: the entry is out of order, below a link or file,
    /// removed in a base, has invalid attributes, or its line is longer than 64 KiB;
    /// [`ManifestWriteError::TooLarge`]; [`ManifestWriteError::Write`].
    pub fn write(&mut self, record: &ManifestLine) -> Result<(), ManifestWriteError> {
        let refused = |problem| ManifestWriteError::Refused {
            path: record.path().clone(),
            problem,
        };
        if self.kind == ManifestKind::Base && matches!(record, ManifestLine::Removed(_)) {
            return Err(refused(LineProblem::RemovedFromBase));
        }
        let line = line::write_record(record).map_err(refused)?;
        if line.len() >= MAX_LINE {
            return Err(refused(LineProblem::TooLong));
        }
        self.order.take(record).map_err(refused)?;
        self.entries += 1;
        self.line(line)?;
        Ok(())
    }

    /// Writes the end. The output is not synced.
    ///
    /// # Errors
    /// [`ManifestWriteError::Write`].
    pub fn finish(mut self) -> Result<W, ManifestWriteError> {
        let end = EndMark {
            entries: self.entries,
            sha256: self.hash.clone().finalize().into(),
        };
        let line = line::write_end(&end).map_err(io::Error::from)?;
        self.line(line)?;
        Ok(self.output.finish()?)
    }

    fn line(&mut self, mut line: Vec<u8>) -> Result<(), ManifestWriteError> {
        line.push(b'\n');
        let left = self.left.checked_sub(line.len() as u64);
        self.left = left.ok_or(ManifestWriteError::TooLarge)?;
        self.hash.update(&line);
        Ok(self.output.write_all(&line)?)
    }
}
