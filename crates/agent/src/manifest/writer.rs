//! Writes a manifest, line by line.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::line::{self, End};
use super::order::Order;
use super::{Header, Kind, LONGEST_LINE, Problem, Record};
use crate::entry::TreePath;

/// A manifest that is being written.
#[derive(Debug)]
pub struct Writer<W: Write> {
    output: GzEncoder<W>,
    hash: Sha256,
    header: Header,
    order: Order,
    entries: u64,
}

/// Why something cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The output failed; the manifest cannot be finished.
    #[error("the manifest cannot be written: {0}")]
    Write(#[from] io::Error),
    /// This entry cannot be in the manifest. Others can.
    #[error("{path} cannot be in the manifest: {problem}")]
    Refused {
        /// Its path.
        path: TreePath,
        /// What is wrong with it.
        problem: Problem,
    },
    /// It does not have as many entries as its header says.
    #[error("{announced} entries were announced for the manifest, and {found} came")]
    Count {
        /// What the header says.
        announced: u64,
        /// How many there are.
        found: u64,
    },
}

impl<W: Write> Writer<W> {
    /// Begins a manifest.
    ///
    /// # Errors
    /// [`WriteError::Write`].
    pub fn new(output: W, header: Header) -> Result<Self, WriteError> {
        let mut writer = Self {
            output: GzEncoder::new(output, Compression::default()),
            hash: Sha256::new(),
            header,
            order: Order::default(),
            entries: 0,
        };
        let line = line::write_header(&header).map_err(io::Error::from)?;
        writer.line(line)?;
        Ok(writer)
    }

    /// Writes the next entry.
    ///
    /// # Errors
    /// [`WriteError::Refused`] when it is not after the one before, below
    /// something that is no directory, removed in a base, has attributes that no
    /// entry can have, or its line is longer than 64 KiB; [`WriteError::Write`].
    pub fn write(&mut self, record: &Record) -> Result<(), WriteError> {
        let refused = |problem| WriteError::Refused {
            path: record.path().clone(),
            problem,
        };
        if self.header.kind == Kind::Base && matches!(record, Record::Removed(_)) {
            return Err(refused(Problem::RemovedFromBase));
        }
        let line = line::write_record(record).map_err(refused)?;
        if line.len() >= LONGEST_LINE {
            return Err(refused(Problem::TooLong));
        }
        self.order.take(record).map_err(refused)?;
        self.entries += 1;
        self.line(line)?;
        Ok(())
    }

    /// Writes the end. The output is not synced.
    ///
    /// # Errors
    /// [`WriteError::Count`] and [`WriteError::Write`].
    pub fn finish(mut self) -> Result<W, WriteError> {
        let found = self.entries;
        if let Some(announced) = self.header.entries.filter(|announced| *announced != found) {
            return Err(WriteError::Count { announced, found });
        }
        let end = End {
            entries: found,
            sha256: self.hash.clone().finalize().into(),
        };
        let line = line::write_end(&end).map_err(io::Error::from)?;
        self.line(line)?;
        Ok(self.output.finish()?)
    }

    fn line(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        self.hash.update(&line);
        self.output.write_all(&line)
    }
}
