//! The journal `NAME.part.fairbat`: which bytes of `NAME.part` may be trusted.
//!
//! A journal is text. Its *record* is replaced as a whole and only after the
//! bytes it names are on the disk, so it survives a power loss:
//!
//! ```text
//! fairbat-journal 1
//! {"url":...,"synced":[[0,1048576]],"instance":...}
//! <CRC-32 of the two lines above>
//! ```
//!
//! Behind it stands the *tail*: a line per write that has reached the kernel
//! but perhaps not the disk, `<first> <end> <CRC-32>`. The page cache outlives
//! a killed process but not the kernel, so the tail counts only within the
//! boot, mount and file that it was written under. A torn or damaged line ends
//! the tail.

use std::fmt::Write as _;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::http::validator::Version;
use crate::ranges::RangeSet;

const MAGIC: &str = "fairbat-journal 1";

/// The part of the journal that is replaced as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalRecord {
    /// Where the bytes come from, for people: without credentials and query.
    pub url: String,
    /// SHA-256 (hex) of the whole URL without credentials and fragment. It
    /// distinguishes two resources that differ only in the query.
    pub resource: String,
    /// What makes the file resumable; `None` for one that must be fetched as
    /// a single stream.
    pub version: Option<Version>,
    /// What the hash is called under which bytes of several servers are joined in the part, if
    /// one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Byte ranges that are on the disk, as `[first, end)`.
    pub synced: Vec<(u64, u64)>,
    /// Identifies the boot, the mount and the part file. The tail counts only if
    /// all three are the same. With an empty value, it never counts.
    pub instance: String,
}

/// Why bytes are not a journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Not a journal, or one of a later format.
    #[error("not a journal of this format")]
    Magic,
    /// The record is cut short or its checksum is wrong.
    #[error("the record is damaged")]
    Damaged,
    /// The record's ranges are not within the file.
    #[error("the record names impossible ranges")]
    Ranges,
}

/// A journal read back.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// The durable record.
    pub record: JournalRecord,
    /// Ranges of the tail, in the order they were written.
    pub tail: Vec<Range<u64>>,
}

impl JournalRecord {
    /// The record's bytes as they stand in the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_string(self).expect("a record has only strings and numbers");
        let mut text = format!("{MAGIC}\n{json}\n");
        let crc = crc32fast::hash(text.as_bytes());
        writeln!(text, "{crc:08x}").expect("writing to a string");
        text.into_bytes()
    }

    /// Byte ranges that are on the disk.
    #[must_use]
    pub fn synced_ranges(&self) -> RangeSet {
        let synced = self.synced.iter();
        synced.map(|&(first, end)| first..end).collect()
    }

    fn ranges_are_possible(&self) -> bool {
        let total = self.version.as_ref().map_or(0, |version| version.total);
        self.synced
            .iter()
            .all(|&(first, end)| first < end && end <= total)
    }
}

/// One tail line for a write of these bytes.
#[must_use]
pub fn tail_line(range: &Range<u64>) -> String {
    let text = format!("{} {}", range.start, range.end);
    let crc = crc32fast::hash(text.as_bytes());
    format!("{text} {crc:08x}\n")
}

impl Journal {
    /// Reads a journal's bytes.
    ///
    /// # Errors
    /// When the record is not whole; a damaged tail is cut, not an error.
    pub fn decode(bytes: &[u8]) -> Result<Self, JournalError> {
        let (magic, rest) = line(bytes).ok_or(JournalError::Magic)?;
        if magic != MAGIC.as_bytes() {
            return Err(JournalError::Magic);
        }
        let (json, rest) = line(rest).ok_or(JournalError::Damaged)?;
        let (crc, tail) = line(rest).ok_or(JournalError::Damaged)?;
        let covered = &bytes[..MAGIC.len() + 1 + json.len() + 1];
        if crc != format!("{:08x}", crc32fast::hash(covered)).as_bytes() {
            return Err(JournalError::Damaged);
        }
        let record: JournalRecord =
            serde_json::from_slice(json).map_err(|_| JournalError::Damaged)?;
        if !record.ranges_are_possible() {
            return Err(JournalError::Ranges);
        }
        let total = record.version.as_ref().map_or(0, |version| version.total);
        Ok(Self {
            tail: decode_tail(tail, total),
            record,
        })
    }

    /// The bytes that may be trusted where `instance` identifies boot, mount and file.
    #[must_use]
    pub fn trusted(&self, instance: &str) -> RangeSet {
        let is_same = !instance.is_empty() && self.record.instance == instance;
        let synced = self.record.synced.iter().map(|&(first, end)| first..end);
        let tail = self.tail.iter().filter(|_| is_same).cloned();
        synced.chain(tail).collect()
    }
}

/// Splits off the first line; `None` when no line end is left.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

fn decode_tail(mut bytes: &[u8], total: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    while let Some((text, rest)) = line(bytes) {
        let Some(range) = decode_tail_line(text).filter(|range| range.end <= total) else {
            break;
        };
        ranges.push(range);
        bytes = rest;
    }
    ranges
}

fn decode_tail_line(text: &[u8]) -> Option<Range<u64>> {
    let text = std::str::from_utf8(text).ok()?;
    let mut fields = text.split(' ');
    let first: u64 = fields.next()?.parse().ok()?;
    let end: u64 = fields.next()?.parse().ok()?;
    // Comparing with what would have been written also refuses every other
    // spelling of the same numbers.
    let whole = tail_line(&(first..end));
    (first < end && whole.strip_suffix('\n') == Some(text)).then_some(first..end)
}
