//! The last step of a file: its bytes are compared with every known hash, and it is put in its
//! place. Blocks, so it runs off the event loop.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::joint::Doubt;
use super::part::PartError;
use super::part::file::PartFile;
use crate::checksum::{Hasher, digest_of, read_all};
use crate::error::{ErrorKind, TransferError};
use crate::ranges::RangeSet;
use crate::settings::{Checksum, PieceHashes, Target};
use crate::transport::RemoteFile;

/// What a finished file is checked for.
#[derive(Debug)]
pub(crate) struct Expected {
    /// Its size.
    pub(crate) length: u64,
    /// The digest that it must have, and whose that is.
    pub(crate) asked: Option<Checksum>,
    pub(crate) asked_by: &'static str,
    /// Hashes of its pieces.
    pub(crate) pieces: Option<PieceHashes>,
}

/// From whom the bytes of a part file are, should the file be wrong.
#[derive(Debug)]
pub(crate) struct Senders {
    /// The present source.
    pub(crate) present: usize,
    /// What each source has sent in this run.
    pub(crate) sent: Vec<(usize, RangeSet)>,
    /// Bytes of others that were thrown away before.
    pub(crate) doubts: Vec<Doubt>,
    /// Whether some of the bytes may be fetched again.
    pub(crate) may_mend: bool,
    /// Whether the sources may be compared with each other before.
    pub(crate) may_compare: bool,
}

impl Senders {
    /// What these sources have sent.
    fn of(&self, sources: &[usize]) -> Vec<Range<u64>> {
        let of_them = self.sent.iter().filter(|(it, _)| sources.contains(it));
        let ranges = of_them.flat_map(|(_, sent)| sent.iter());
        ranges.collect::<RangeSet>().iter().collect()
    }

    /// What the present source has not sent, of so many bytes.
    fn of_others(&self, length: u64) -> Vec<Range<u64>> {
        let mut others: RangeSet = std::iter::once(0..length).collect();
        for range in self.of(&[self.present]) {
            others.remove(range);
        }
        others.iter().collect()
    }
}

/// A file in its place.
#[derive(Debug)]
pub(crate) struct FinishedFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) sha256: Option<String>,
    /// Sources whose bytes were thrown away and were not those of this file.
    pub(crate) guilty: Vec<usize>,
}

/// Why a file is not in its place.
#[derive(Debug)]
pub(crate) struct FinishFailure {
    pub(crate) error: TransferError,
    /// What may help; if nothing does, the part is closed.
    pub(crate) remedy: Option<Remedy>,
}

/// What may make a wrong file right.
#[derive(Debug)]
pub(crate) enum Remedy {
    /// The sources are compared with each other. Nothing has been taken out of the part.
    Compare,
    /// These bytes may be wrong, and are no longer in the part.
    Fetch {
        wrong: Vec<Range<u64>>,
        from: AskedAgain,
    },
}

/// From whom bytes are fetched again.
#[derive(Debug)]
pub(crate) enum AskedAgain {
    /// From anybody: each piece has a hash.
    All,
    /// From all but these.
    Others(Vec<usize>),
    /// From the present source. This is what was there of the others.
    Present(Vec<Doubt>),
}

impl From<TransferError> for FinishFailure {
    fn from(error: TransferError) -> Self {
        Self {
            error,
            remedy: None,
        }
    }
}

impl From<PartError> for FinishFailure {
    fn from(error: PartError) -> Self {
        TransferError::from(error).into()
    }
}

/// Verifies the part and puts the file in its place.
pub(crate) fn finish(
    part: &PartFile,
    source: &RemoteFile,
    expected: &Expected,
    senders: &Senders,
    target: &Target,
    is_stopped: &dyn Fn() -> bool,
) -> Result<FinishedFile, FinishFailure> {
    let read = |offset, buffer: &mut [u8]| part.read_at(offset, buffer);
    let verified = match verify(&read, source, expected, is_stopped)? {
        Ok(verified) => verified,
        Err(Mismatch { error, pieces }) => {
            return Err(match pieces {
                Some(wrong) => take_out(part, error, wrong, AskedAgain::All, senders)?,
                None if senders.may_compare => FinishFailure {
                    error,
                    remedy: Some(Remedy::Compare),
                },
                None => settle_dispute(part, error, expected.length, senders, Vec::new())?,
            });
        }
    };
    let mut guilty = Vec::new();
    for doubt in &senders.doubts {
        let is_same = digest_of(doubt.range.clone(), read)? == doubt.sha256;
        if !is_same && !guilty.contains(&doubt.source) {
            guilty.push(doubt.source);
        }
    }
    let replace = !matches!(target, Target::Directory(_));
    part.finish(expected.length, source.modified, replace)?;
    Ok(FinishedFile {
        path: part.target().to_owned(),
        bytes: expected.length,
        sha256: verified,
        guilty,
    })
}

/// The file is wrong: takes out what the guilty sources have sent, and if that is nothing, what the
/// present one has not.
pub(crate) fn settle_dispute(
    part: &PartFile,
    error: TransferError,
    length: u64,
    senders: &Senders,
    guilty: Vec<usize>,
) -> Result<FinishFailure, PartError> {
    let wrong = senders.of(&guilty);
    if !wrong.is_empty() {
        return take_out(part, error, wrong, AskedAgain::Others(guilty), senders);
    }
    let mut doubts = Vec::new();
    let others = senders.sent.iter().filter(|(it, _)| *it != senders.present);
    for (source, sent) in others {
        for range in sent.iter() {
            let read = |offset, buffer: &mut [u8]| part.read_at(offset, buffer);
            let sha256 = digest_of(range.clone(), read)?;
            let source = *source;
            doubts.push(Doubt {
                source,
                range,
                sha256,
            });
        }
    }
    let wrong = senders.of_others(length);
    take_out(part, error, wrong, AskedAgain::Present(doubts), senders)
}

/// Takes bytes out of the part that may be wrong, or throws it away.
fn take_out(
    part: &PartFile,
    error: TransferError,
    wrong: Vec<Range<u64>>,
    from: AskedAgain,
    senders: &Senders,
) -> Result<FinishFailure, PartError> {
    if wrong.is_empty() || !senders.may_mend {
        part.discard()?;
        return Ok(error.into());
    }
    part.forget(&wrong)?;
    let remedy = Some(Remedy::Fetch { wrong, from });
    Ok(FinishFailure { error, remedy })
}

/// Verifies a file that was already in its place.
pub(crate) fn verify_complete(
    path: &Path,
    source: &RemoteFile,
    expected: &Expected,
    is_stopped: &dyn Fn() -> bool,
) -> Result<FinishedFile, FinishFailure> {
    let failed = |error| PartError::io("read", path, error);
    let file = File::open(path).map_err(failed)?;
    let read = |offset, buffer: &mut [u8]| file.read_exact_at(buffer, offset).map_err(failed);
    let sha256 = verify(&read, source, expected, is_stopped)?.map_err(|mismatch| {
        let hint = "remove the file to download it again";
        mismatch.error.with_hint(hint)
    })?;
    Ok(FinishedFile {
        path: path.to_owned(),
        bytes: expected.length,
        sha256,
        guilty: Vec::new(),
    })
}

/// The run is being stopped before it is known whether the file is right.
pub(crate) fn stopped_early() -> TransferError {
    TransferError::new(ErrorKind::Interrupted, "stopped while verifying")
}

/// Bytes that do not have their hash.
#[derive(Debug)]
struct Mismatch {
    error: TransferError,
    /// The pieces that are wrong, where pieces have hashes.
    pieces: Option<Vec<Range<u64>>>,
}

/// Fills a buffer from an offset on.
type Read<'a> = dyn Fn(u64, &mut [u8]) -> Result<(), PartError> + 'a;

/// Compares the bytes with every known hash; returns the SHA-256 of the file, if it is among them.
fn verify(
    read: &Read<'_>,
    source: &RemoteFile,
    expected: &Expected,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Result<Option<String>, Mismatch>, TransferError> {
    let asked = expected.asked.iter().map(|sum| (sum, expected.asked_by));
    let sent = source
        .digest
        .iter()
        .map(|sum| (sum, "is what the server sent with it"));
    let mut checks: Vec<(Hasher, &Checksum, &str)> = asked
        .chain(sent)
        .map(|(sum, whose)| (sum.hasher(), sum, whose))
        .collect();
    if let Some(pieces) = &expected.pieces
        && !pieces.fits(expected.length)
    {
        let (length, pieces) = (expected.length, pieces.hashes.len());
        let message = format!("the file of {length} bytes has not {pieces} pieces");
        return Ok(Err(Mismatch::new(message, None)));
    }
    let mut pieces = expected.pieces.as_ref().map(PieceReader::new);
    if checks.is_empty() && pieces.is_none() {
        return Ok(Ok(None));
    }
    let read = |offset, buffer: &mut [u8]| match is_stopped() {
        true => Err(stopped_early()),
        false => Ok(read(offset, buffer)?),
    };
    read_all(0..expected.length, read, |bytes| {
        for (hasher, ..) in &mut checks {
            hasher.update(bytes);
        }
        if let Some(pieces) = &mut pieces {
            pieces.take(bytes);
        }
        Ok(())
    })?;
    let wrong = pieces.map(|pieces| pieces.wrong(expected.length));
    let mut sha256 = None;
    for (hasher, wanted, whose) in checks {
        let found = hasher.finish();
        if found != *wanted {
            let message = format!("the file's digest is {found}, but {wanted} {whose}");
            return Ok(Err(Mismatch::new(message, wrong)));
        }
        if matches!(found, Checksum::Sha256(_)) {
            sha256 = Some(found.hex());
        }
    }
    match wrong {
        Some(wrong) if !wrong.is_empty() => {
            let message = format!("{} pieces of the file do not have their hash", wrong.len());
            Ok(Err(Mismatch::new(message, Some(wrong))))
        }
        _ => Ok(Ok(sha256)),
    }
}

impl Mismatch {
    fn new(message: String, pieces: Option<Vec<Range<u64>>>) -> Self {
        let hint = "the download was discarded; check the URL and the digest, then try again";
        Self {
            error: TransferError::new(ErrorKind::Integrity, message).with_hint(hint),
            pieces,
        }
    }
}

/// Compares the pieces of a file that is read from its beginning.
struct PieceReader<'a> {
    expected: &'a PieceHashes,
    /// The hasher of the present piece, and how much of that is still to come.
    present: Option<(Hasher, u64)>,
    index: usize,
    wrong: Vec<usize>,
}

impl<'a> PieceReader<'a> {
    fn new(expected: &'a PieceHashes) -> Self {
        let mut reader = Self {
            expected,
            present: None,
            index: 0,
            wrong: Vec::new(),
        };
        reader.begin();
        reader
    }

    fn begin(&mut self) {
        let hash = self.expected.hashes.get(self.index);
        self.present = hash.map(|hash| (hash.hasher(), self.expected.length.get()));
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some((hasher, left)) = &mut self.present else {
                return;
            };
            let length = bytes
                .len()
                .min(usize::try_from(*left).unwrap_or(usize::MAX));
            let (now, later) = bytes.split_at(length);
            hasher.update(now);
            *left -= length as u64;
            bytes = later;
            if *left == 0 {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        if let Some((hasher, _)) = self.present.take()
            && hasher.finish() != self.expected.hashes[self.index]
        {
            self.wrong.push(self.index);
        }
        self.index += 1;
        self.begin();
    }

    /// The pieces that are wrong of a file of this length, all of which has been read.
    fn wrong(mut self, length: u64) -> Vec<Range<u64>> {
        let is_begun = |(_, left): &(Hasher, u64)| *left < self.expected.length.get();
        if self.present.as_ref().is_some_and(is_begun) {
            self.end();
        }
        let wrong = self.wrong.iter();
        wrong
            .map(|piece| self.expected.range(*piece, length))
            .collect()
    }
}
