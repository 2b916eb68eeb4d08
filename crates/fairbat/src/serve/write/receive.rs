//! The body of an upload on its way into an unfinished file, and the finished file on its way
//! to its name. Of an upload in parts, each body is a part of the file.

use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::ETAG;
use http_body::Body;

use super::part_uploads::PartUnderWay;
use super::place::{arrive, check_ahead};
use super::refusal::Refusal;
use super::scratch::Scratch;
use super::slots::UploadSlot;
use super::unfinished::{Arrived, ExpectedContent, FIRST_RESERVED, UnfinishedFile};
use super::uploads::Uploads;
use crate::blocking::blocking;
use crate::file_version::FileVersion;
use crate::http::digest::StatedDigests;
use crate::serve::files::OpenFile;
use crate::serve::response::{LogNote, RequestBody, ResponseBody};
use crate::serve::site::{MIN_PROGRESS, ServedSite};

impl UnfinishedFile {
    /// Makes the file, for so many bytes under this name. Blocking.
    pub(crate) fn begin(
        site: &ServedSite,
        uploads: &Uploads,
        slot: UploadSlot,
        name: &Path,
        bytes: u64,
    ) -> Result<Self, Refusal> {
        check_ahead(&site.root, name)?;
        let scratch = Scratch::make(&site.root, &uploads.next_number)?;
        scratch.check_room(bytes)?;
        Ok(Self::new(scratch, slot))
    }

    /// Syncs the file, puts it in its place, and syncs that. Blocking.
    ///
    /// # Errors
    /// The file is still there, unless it or its name could not be written to the disk: then a second
    /// try could seem to succeed.
    pub(crate) fn finish(
        &self,
        site: &ServedSite,
        uploads: &Uploads,
        name: &Path,
        expected: ExpectedContent,
    ) -> Result<(Arrived, OpenFile), Refusal> {
        let mut held = self.alone();
        let scratch = held.as_mut().ok_or(Refusal::UnknownUpload)?;
        if let Err(error) = scratch.file.sync_all() {
            *held = None;
            return Err(error.into());
        }
        let file = scratch.file.try_clone()?;
        let arrived = arrive(site, uploads, name, |place| {
            expected.check(site, name)?;
            place.receive(scratch, expected.arrival())
        });
        // Nothing may write to a file that has its name, even if the name may not be on the disk.
        if scratch.is_kept() {
            *held = None;
        }
        let arrived = arrived?;
        let version = FileVersion::of(&file.metadata()?);
        Ok((arrived, OpenFile { file, version }))
    }
}

/// The part of a body that has come.
pub(crate) struct ReceivedBody {
    file: Arc<UnfinishedFile>,
    /// Of an upload in parts: the part that the body is.
    pub(crate) part: Option<PartUnderWay>,
    digests: StatedDigests,
    /// Where the body begins in the file.
    offset: u64,
    /// Bytes that have come.
    pub(crate) length: u64,
    /// Bytes that the client says will come; 0 if it does not say.
    announced: u64,
    /// Bytes of the body that need no disk space any more.
    reserved: u64,
}

impl ReceivedBody {
    /// Nothing yet of a body of so many bytes, which belongs here in the file.
    pub(crate) fn new(
        file: Arc<UnfinishedFile>,
        digests: StatedDigests,
        offset: u64,
        announced: u64,
    ) -> Self {
        Self {
            file,
            part: None,
            digests,
            offset,
            length: 0,
            announced,
            reserved: 0,
        }
    }

    /// The body is this part of the file.
    pub(crate) fn of_part(self, part: PartUnderWay) -> Self {
        Self {
            part: Some(part),
            ..self
        }
    }

    /// Blocking.
    fn write(mut self, piece: &Bytes) -> Result<Self, Refusal> {
        self.digests.update(piece);
        let end = self.length + piece.len() as u64;
        let wanted = match end > self.reserved {
            true => end
                .saturating_mul(2)
                .max(FIRST_RESERVED)
                .min(self.announced),
            false => 0,
        };
        let wanted = wanted.saturating_sub(self.reserved);
        let granted = self.file.grant(piece.len() as u64, wanted);
        let from = self.offset + self.reserved;
        self.reserved = end.max(self.reserved + granted);
        let is_wanted = || self.part.as_ref().is_none_or(PartUnderWay::is_wanted);
        let position = self.offset + self.length;
        self.file
            .write(piece, position, from..from + granted, is_wanted)?;
        self.length = end;
        Ok(self)
    }

    /// Takes the whole body. `check` refuses a length. A client has [`Patience::sending`] for
    /// each [`MIN_PROGRESS`] bytes of it. Only the time in which the server waits for the
    /// client counts.
    ///
    /// [`Patience::sending`]: crate::serve::Patience::sending
    pub(crate) async fn receive(
        mut self,
        site: &ServedSite,
        mut body: RequestBody,
        check: impl Fn(u64) -> Result<(), Refusal>,
    ) -> Result<Self, Refusal> {
        let (mut waited, mut came) = (Duration::ZERO, 0);
        loop {
            let began = site.clock.now();
            let left = site.patience.sending.saturating_sub(waited);
            let coming = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
            let Ok(frame) = tokio::time::timeout(left, coming).await else {
                return Err(Refusal::Silent);
            };
            waited += site.clock.now().saturating_sub(began);
            let Some(frame) = frame else {
                return Ok(self);
            };
            // Trailers are ignored.
            let Ok(piece) = frame.map_err(|_| Refusal::Broken)?.into_data() else {
                continue;
            };
            check(self.length + piece.len() as u64)?;
            came += piece.len() as u64;
            if came >= MIN_PROGRESS {
                (waited, came) = (Duration::ZERO, 0);
            }
            self = blocking(move || self.write(&piece)).await??;
        }
    }

    /// Compares the digests of the whole body. Returns the SHA-256 if the client stated it.
    pub(crate) fn check_digests(self) -> Result<Option<[u8; 32]>, Refusal> {
        self.digests.check().map_err(|found| Refusal::Corrupt {
            algorithm: found.algorithm(),
            found: found.hex(),
        })
    }
}

/// The answer to the request that has stored a file of so many bytes.
pub(crate) async fn stored(
    site: &ServedSite,
    (arrived, found): (Arrived, OpenFile),
    sha256: Option<[u8; 32]>,
    length: u64,
) -> Result<Response<ResponseBody>, Refusal> {
    let mut response = arrived.response();
    // Without a tag if somebody writes to the file already. The file stays open
    // until then, so no other file can have its inode number.
    if let Some(found) = found.settled().await? {
        if let Some(sha256) = sha256 {
            site.digests.add(found.version, &sha256);
        }
        let tag = found.version.entity_tag();
        response.headers_mut().insert(ETAG, tag);
    }
    let note = LogNote(format!("stored={length}"));
    response.extensions_mut().insert(note);
    Ok(response)
}
