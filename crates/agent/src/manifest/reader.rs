//! Reads a manifest, line by line.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use flate2::bufread::GzDecoder;
use sha2::{Digest as _, Sha256};

use super::line::{self, EndMark, ParsedLine};
use super::{
    LineProblem, MAX_LINE, ManifestHeader, ManifestKind, ManifestReadError, PathOrder, Record,
};

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
}

impl<R: Read> ManifestReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`ManifestReadError`].
    pub fn open(input: R) -> Result<Self, ManifestReadError> {
        let mut lines = LineReader {
            input: BufReader::new(GzDecoder::new(BufReader::new(input))),
            hash: Sha256::new(),
            line: Vec::new(),
            number: 0,
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

    fn record(&mut self) -> Result<Option<Record>, ManifestReadError> {
        self.lines.next()?;
        let refused = |problem| ManifestReadError::Line {
            line: self.lines.number,
            problem,
        };
        let record = match line::read(&self.lines.line).map_err(refused)? {
            ParsedLine::Record(record) => record,
            ParsedLine::End(end) => return self.end(end).map(|()| None),
        };
        if self.header.kind == ManifestKind::Base && matches!(record, Record::Removed(_)) {
            return Err(refused(LineProblem::RemovedFromBase));
        }
        self.order.take(&record).map_err(refused)?;
        self.entries += 1;
        let found = self.entries;
        match self.header.entries {
            Some(announced) if found > announced => {
                Err(ManifestReadError::Count { announced, found })
            }
            Some(_) | None => {
                self.lines.hash.update(&self.lines.line);
                Ok(Some(record))
            }
        }
    }

    fn end(&mut self, end: EndMark) -> Result<(), ManifestReadError> {
        let found = self.entries;
        for announced in [Some(end.entries), self.header.entries]
            .into_iter()
            .flatten()
        {
            if announced != found {
                return Err(ManifestReadError::Count { announced, found });
            }
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
    type Item = Result<Record, ManifestReadError>;

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
        rest.read_until(b'\n', &mut self.line).map_err(read_error)?;
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
