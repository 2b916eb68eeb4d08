//! From the last byte to the finished file: verify, then put in place.
//! Blocking; runs off the event loop.

use std::io::Read as _;

use super::message::Finished;
use super::part::error::StoreError;
use super::part::file::PartFile;
use super::worker::StopSignal;
use crate::checksum::Hasher;
use crate::error::{ErrorKind, TransferError};
use crate::settings::{Checksum, Target};
use crate::transport::Source;

/// Bytes read at once while hashing.
const READ: usize = 1024 * 1024;

/// What a finished file must be.
#[derive(Debug)]
pub(crate) struct Expected {
    /// Its size.
    pub(crate) length: u64,
    /// What the user asked for.
    pub(crate) asked: Option<Checksum>,
}

/// Verifies the part and puts the file in its place.
pub(crate) fn finish(
    part: &PartFile,
    source: &Source,
    expected: &Expected,
    target: &Target,
    stop: &StopSignal,
) -> Result<Finished, TransferError> {
    let reader = part.reader()?;
    let sha256 = match verify(reader, part.target(), source, expected, stop) {
        Err(error) if error.kind == ErrorKind::Integrity => {
            part.discard()?;
            return Err(error);
        }
        result => result?,
    };
    let replace = matches!(target, Target::File(_));
    part.finish(expected.length, source.modified, replace)?;
    Ok(Finished {
        path: part.target().to_owned(),
        bytes: expected.length,
        sha256,
    })
}

/// Verifies a file that was already in its place.
pub(crate) fn verify_complete(
    path: &std::path::Path,
    source: &Source,
    expected: &Expected,
    stop: &StopSignal,
) -> Result<Finished, TransferError> {
    let reader = std::fs::File::open(path).map_err(|error| StoreError::io("read", path, error))?;
    let sha256 = verify(reader, path, source, expected, stop).map_err(|error| {
        let hint = "remove the file to download it again";
        error.with_hint(hint)
    })?;
    Ok(Finished {
        path: path.to_owned(),
        bytes: expected.length,
        sha256,
    })
}

/// Compares the bytes with every digest there is; returns the SHA-256 if one
/// of them is.
fn verify(
    mut reader: std::fs::File,
    path: &std::path::Path,
    source: &Source,
    expected: &Expected,
    stop: &StopSignal,
) -> Result<Option<String>, TransferError> {
    let asked = expected.asked.iter().map(|sum| (sum, "was asked for"));
    let sent = source
        .digest
        .iter()
        .map(|sum| (sum, "the server sent with it"));
    let mut checks: Vec<(Hasher, &Checksum, &str)> = asked
        .chain(sent)
        .map(|(sum, whose)| (sum.hasher(), sum, whose))
        .collect();
    if checks.is_empty() {
        return Ok(None);
    }
    let failed = |error| StoreError::io("read", path, error);
    let mut buffer = vec![0; READ];
    let mut left = expected.length;
    while left > 0 {
        if *stop.borrow() {
            return Err(TransferError::new(
                ErrorKind::Interrupted,
                "stopped while verifying",
            ));
        }
        let want = usize::try_from(left).unwrap_or(READ).min(READ);
        reader.read_exact(&mut buffer[..want]).map_err(failed)?;
        for (hasher, ..) in &mut checks {
            hasher.update(&buffer[..want]);
        }
        left -= want as u64;
    }
    let mut sha256 = None;
    for (hasher, wanted, whose) in checks {
        let found = hasher.finish();
        if found != *wanted {
            return Err(TransferError::new(
                ErrorKind::Integrity,
                format!("the file's digest is {found}, but {wanted} {whose}"),
            )
            .with_hint(
                "the download was discarded; check the URL and the digest, then try again",
            ));
        }
        if matches!(found, Checksum::Sha256(_)) {
            sha256 = Some(found.hex());
        }
    }
    Ok(sha256)
}
