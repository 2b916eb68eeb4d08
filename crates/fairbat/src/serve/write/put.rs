//! PUT: creates or replaces a file as a whole.
//!
//! The body goes to a file of its own ([`Scratch`]). That file is synced to the
//! disk, then renamed, then the directory is synced. So the name never shows a
//! part of the file, whatever ends the process or the machine, and a file that is
//! reported as stored is there after a crash. Refusals come before the body is
//! asked for (`100 Continue`) wherever they can.

use std::future::poll_fn;
use std::net::IpAddr;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_RANGE, ETAG};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response};
use hyper::body::{Body, Incoming};

use super::place::{Arrived, Expected, arrive, check_ahead, file_name};
use super::refusal::Refusal;
use super::scratch::{Scratch, Uploads};
use super::slots::UploadSlot;
use crate::blocking::blocking;
use crate::file_version::FileVersion;
use crate::http::digest::StatedDigests;
use crate::serve::files::Found;
use crate::serve::response::{LogNote, ResponseBody};
use crate::serve::site::{MIN_PROGRESS, Site};

/// Disk space that is reserved with the first bytes of a file, bytes. After that as
/// much again as has come, so a client never takes much more than it sends, and the
/// file has few extents.
const FIRST_RESERVED: u64 = 1024 * 1024;

/// Takes a file.
pub(crate) async fn put(
    site: &Arc<Site>,
    uploads: &Arc<Uploads>,
    peer: IpAddr,
    request: &Parts,
    body: Incoming,
) -> Result<Response<ResponseBody>, Refusal> {
    let name = file_name(request.uri.path())?;
    let headers = &request.headers;
    check_form(headers)?;
    let digests = StatedDigests::from_headers(headers).map_err(Refusal::Malformed)?;
    let announced = body.size_hint().exact().unwrap_or_default();
    uploads.check_size(announced)?;
    let slot = uploads.slots.take(peer)?;
    let expected = Expected::by(site, &name, headers).await?;
    let upload = {
        let (site, uploads, name) = (Arc::clone(site), Arc::clone(uploads), name.clone());
        blocking(move || {
            check_ahead(&site.root, &name)?;
            let scratch = Scratch::make(&site.root, &uploads.next_number)?;
            scratch.check_room(announced)?;
            Ok::<_, Refusal>(Upload {
                scratch,
                _slot: slot,
                digests,
                length: 0,
                announced,
                reserved: 0,
            })
        })
    };
    let upload = upload.await??;
    let upload = receive(site, uploads, upload, body).await?;
    let length = upload.length;
    let (arrived, found, sha256) = {
        let (site, uploads) = (Arc::clone(site), Arc::clone(uploads));
        blocking(move || finish(&site, &uploads, &name, upload, expected)).await??
    };
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

/// Checks that the body is the file itself (RFC 9110, sections 14.5 and 8.4).
fn check_form(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.contains_key(CONTENT_RANGE) {
        return Err(Refusal::Part);
    }
    let is_identity = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(is_identity) {
        return Err(Refusal::Encoded);
    }
    Ok(())
}

/// The part of a body that has come.
struct Upload {
    scratch: Scratch,
    /// Taken for as long as any thread works on the upload, even after its connection
    /// has ended.
    _slot: UploadSlot,
    digests: StatedDigests,
    /// Bytes.
    length: u64,
    /// Bytes that the client says will come; 0 if it does not say.
    announced: u64,
    /// Bytes that have disk space.
    reserved: u64,
}

impl Upload {
    /// Blocking.
    fn write(mut self, piece: &Bytes) -> Result<Self, Refusal> {
        self.digests.update(piece);
        let end = self.length + piece.len() as u64;
        if end > self.reserved {
            let wanted = end.saturating_mul(2).max(FIRST_RESERVED);
            let wanted = wanted.min(self.announced);
            self.scratch.reserve(self.reserved..wanted)?;
            self.reserved = wanted;
        }
        self.scratch.file.write_all_at(piece, self.length)?;
        self.length = end;
        Ok(self)
    }
}

/// Takes the whole body. A client has [`Patience::sending`] for each
/// [`MIN_PROGRESS`] bytes of it. Only the time in which the server waits for the
/// client counts.
///
/// [`Patience::sending`]: crate::serve::Patience::sending
async fn receive(
    site: &Site,
    uploads: &Uploads,
    mut upload: Upload,
    mut body: Incoming,
) -> Result<Upload, Refusal> {
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
            return Ok(upload);
        };
        // Trailers are ignored.
        let Ok(piece) = frame.map_err(|_| Refusal::Broken)?.into_data() else {
            continue;
        };
        uploads.check_size(upload.length + piece.len() as u64)?;
        came += piece.len() as u64;
        if came >= MIN_PROGRESS {
            (waited, came) = (Duration::ZERO, 0);
        }
        upload = blocking(move || upload.write(&piece)).await??;
    }
}

/// Compares the digests, syncs the file, puts it in its place, and syncs that. Returns
/// the SHA-256 too if the client stated it. Blocking.
fn finish(
    site: &Site,
    uploads: &Uploads,
    name: &Path,
    upload: Upload,
    expected: Expected,
) -> Result<(Arrived, Found, Option<[u8; 32]>), Refusal> {
    let Upload {
        _slot,
        mut scratch,
        digests,
        ..
    } = upload;
    let sha256 = digests.check().map_err(|found| Refusal::Corrupt {
        algorithm: found.algorithm(),
        found: found.hex(),
    })?;
    scratch.file.sync_all()?;
    let arrived = arrive(site, uploads, name, |place| {
        expected.check(site, name)?;
        place.receive(&mut scratch, expected.arrival())
    })?;
    let file = scratch.file.try_clone()?;
    let version = FileVersion::of(&file.metadata()?);
    Ok((arrived, Found { file, version }, sha256))
}
