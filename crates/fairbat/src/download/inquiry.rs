//! What a server is asked of a file, and what it must answer. No I/O.

use std::time::Duration;

use url::Url;

use super::part::Incoming;
use crate::checksum::sha256_hex;
use crate::error::{ErrorKind, TransferError};
use crate::file_name::{FileName, name_for};
use crate::http::priority::DeadlineHint;
use crate::http::without_credentials;
use crate::metalink::MetalinkFile;
use crate::settings::{Checksum, KnownFile, PieceHashes, Target};
use crate::transport::{RemoteFile, SourceUrl};

/// What is known of a file before a server is asked.
#[derive(Debug, Clone)]
pub(crate) struct ExpectedFile {
    pub(crate) checksum: Option<Checksum>,
    pub(crate) known: KnownFile,
}

impl ExpectedFile {
    /// Why a server cannot have the file, by what it says.
    pub(crate) fn objection(&self, remote: &RemoteFile) -> Option<TransferError> {
        let wrong = |what: String| {
            let hint = "look for another server: this one has another version of the file";
            Some(TransferError::new(ErrorKind::Integrity, what).with_hint(hint))
        };
        let total = remote.total;
        if let (Some(total), Some(size)) = (total, self.known.size)
            && total != size
        {
            return wrong(format!(
                "the server's file has {total} bytes instead of {size}"
            ));
        }
        if let (Some(total), Some(pieces)) = (total, &self.known.pieces)
            && !pieces.fits(total)
        {
            let pieces = pieces.hashes.len();
            return wrong(format!(
                "the server's file of {total} bytes has not {pieces} pieces"
            ));
        }
        if let (Some(sent), Some(asked)) = (&remote.digest, &self.checksum)
            && sent.algorithm() == asked.algorithm()
            && sent != asked
        {
            return wrong(format!(
                "the digest of the server's file is {sent} instead of {asked}"
            ));
        }
        None
    }
}

/// What a probe asks for.
#[derive(Debug)]
pub(crate) struct Inquiry {
    pub(crate) at: SourceUrl,
    pub(crate) expected: ExpectedFile,
    /// All sources of the file, this one among them.
    pub(crate) sources: Vec<Url>,
    /// Those of them that may be asked after this one.
    pub(crate) awaited: Vec<Url>,
    /// What the hash of the file is called, if it is known.
    pub(crate) hash: Option<String>,
    /// How many bytes from the start of the file are asked for, at least one.
    pub(crate) length: u64,
    /// How long to wait for an answer, if others may answer sooner.
    pub(crate) patience: Option<Duration>,
    /// The name of the file, if this source is not to give it.
    pub(crate) name: Option<FileName>,
    pub(crate) target: Target,
    /// Whether the file is fetched in one request, whatever the server says of ranges.
    pub(crate) as_stream: bool,
    /// The deadline, for a server that answers with the whole file.
    pub(crate) hint: Option<DeadlineHint>,
}

impl Inquiry {
    /// Whether nothing says what the file is.
    pub(crate) fn is_without_hash(&self) -> bool {
        self.hash.is_none() && self.expected.known.pieces.is_none()
    }

    /// What the file will probably be called.
    pub(crate) fn likely_name(&self) -> FileName {
        let own_name = || name_for(None, &self.at.url);
        self.name.clone().unwrap_or_else(own_name)
    }

    /// The file of a Metalink that describes what a server has, if there is one.
    pub(crate) fn described(files: Vec<MetalinkFile>, remote: &RemoteFile) -> Option<MetalinkFile> {
        let is_alone = files.len() == 1;
        let last = |path: &str| path.rsplit('/').next().map(str::to_owned);
        let name = last(remote.asked.url.path());
        let mut files = files.into_iter().filter(|file| {
            let expected = ExpectedFile {
                checksum: file.checksum.clone(),
                known: KnownFile {
                    name: None,
                    is_found: true,
                    size: file.size,
                    pieces: file.pieces.clone(),
                },
            };
            let has_hash = hash_of(file.checksum.as_ref(), file.pieces.as_ref()).is_some();
            let is_it = is_alone || last(&file.name) == name;
            has_hash && is_it && expected.objection(remote).is_none()
        });
        files.next()
    }

    /// A Metalink describes the file.
    pub(crate) fn describe(&mut self, file: &MetalinkFile) {
        self.hash = hash_of(file.checksum.as_ref(), file.pieces.as_ref());
        self.sources.extend(file.urls.iter().cloned());
    }

    /// What the source says of the file that matters for the disk.
    pub(crate) fn incoming(&self, source: &RemoteFile) -> Incoming {
        let mut shown = without_credentials(&source.asked.url);
        shown.set_query(None);
        let resource = |url: &Url| sha256_hex(without_credentials(url).as_str().as_bytes());
        let own_name = || name_for(source.suggested_name.as_deref(), &source.url);
        Incoming {
            url: shown.into(),
            resource: resource(&source.asked.url),
            others: self
                .sources
                .iter()
                .chain(&source.links.duplicates)
                .map(resource)
                .collect(),
            awaited: self.awaited.iter().map(resource).collect(),
            hash: self
                .hash
                .clone()
                .or_else(|| Some(source.digest.as_ref()?.to_string())),
            total: source.total,
            validator: source.validator.clone(),
            version: source.version.clone(),
            name: self.name.clone().unwrap_or_else(own_name),
            start_over: self.as_stream,
        }
    }
}

/// What the hash is called that says what the file is, if there is one: of the whole file, or of all
/// its pieces.
pub(crate) fn hash_of(whole: Option<&Checksum>, pieces: Option<&PieceHashes>) -> Option<String> {
    let of_pieces = || {
        let pieces = pieces.filter(|it| it.is_strong())?;
        let all: String = pieces.hashes.iter().map(Checksum::hex).collect();
        Some(format!("pieces={}", sha256_hex(all.as_bytes())))
    };
    whole.map(Checksum::to_string).or_else(of_pieces)
}
