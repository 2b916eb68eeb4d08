//! PUT: creates or replaces a file as a whole.
//!
//! The body goes to a file of its own ([`Scratch`]). That file is synced to the
//! disk, then renamed, then the directory is synced. So the name never shows a
//! part of the file, whatever ends the process or the machine, and a file that is
//! reported as stored is there after a crash. Refusals come before the body is
//! asked for (`100 Continue`) wherever they can.

use std::future::poll_fn;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_RANGE, ETAG};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response};
use hyper::body::{Body, Incoming};

use super::place::{Arrived, Expected, arrive, check_ahead, file_name};
use super::refusal::Refusal;
use super::scratch::{Scratch, Uploads};
use crate::blocking::blocking;
use crate::file_version::FileVersion;
use crate::http::digest::StatedDigests;
use crate::serve::files::Found;
use crate::serve::response::{LogNote, ResponseBody};
use crate::serve::site::Site;

/// Takes a file.
pub(crate) async fn put(
    site: &Arc<Site>,
    uploads: &Arc<Uploads>,
    request: &Parts,
    body: Incoming,
) -> Result<Response<ResponseBody>, Refusal> {
    let name = file_name(request.uri.path())?;
    let headers = &request.headers;
    check_form(headers)?;
    let digests = StatedDigests::from_headers(headers).map_err(Refusal::Malformed)?;
    let length = body.size_hint().exact();
    uploads.check_size(length.unwrap_or_default())?;
    let _slot = uploads.slots.try_acquire().map_err(|_| Refusal::Crowded)?;
    let expected = Expected::by(site, &name, headers).await?;
    let scratch = {
        let (site, uploads, name) = (Arc::clone(site), Arc::clone(uploads), name.clone());
        blocking(move || {
            check_ahead(&site.root, &name)?;
            let scratch = Scratch::make(&site.root, &uploads.next_number)?;
            scratch.reserve(length.unwrap_or_default())?;
            Ok::<_, Refusal>(scratch)
        })
    };
    let upload = Upload {
        scratch: scratch.await??,
        digests,
        length: 0,
    };
    let upload = receive(site, uploads, upload, body).await?;
    let sha256 = upload.digests.check().map_err(|found| Refusal::Corrupt {
        algorithm: found.algorithm(),
        found: found.hex(),
    })?;
    let (arrived, found) = {
        let (site, uploads) = (Arc::clone(site), Arc::clone(uploads));
        blocking(move || finish(&site, &uploads, &name, upload.scratch, expected)).await??
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
    let note = LogNote(format!("stored={}", upload.length));
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
    digests: StatedDigests,
    /// Bytes.
    length: u64,
}

impl Upload {
    /// Blocking.
    fn write(mut self, piece: &Bytes) -> Result<Self, Refusal> {
        self.digests.update(piece);
        self.scratch.file.write_all_at(piece, self.length)?;
        self.length += piece.len() as u64;
        Ok(self)
    }
}

/// Takes the whole body. A client may be silent for as long as during a response.
async fn receive(
    site: &Site,
    uploads: &Uploads,
    mut upload: Upload,
    mut body: Incoming,
) -> Result<Upload, Refusal> {
    loop {
        let coming = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let Ok(frame) = tokio::time::timeout(site.patience.sending, coming).await else {
            return Err(Refusal::Silent);
        };
        let Some(frame) = frame else {
            return Ok(upload);
        };
        // Trailers are ignored.
        let Ok(piece) = frame.map_err(|_| Refusal::Broken)?.into_data() else {
            continue;
        };
        uploads.check_size(upload.length + piece.len() as u64)?;
        upload = blocking(move || upload.write(&piece)).await??;
    }
}

/// Syncs a file, puts it in its place, and syncs that. Blocking.
fn finish(
    site: &Site,
    uploads: &Uploads,
    name: &Path,
    mut scratch: Scratch,
    expected: Expected,
) -> Result<(Arrived, Found), Refusal> {
    scratch.file.sync_all()?;
    let arrived = arrive(site, uploads, name, |place| {
        expected.check(site, name)?;
        place.receive(&mut scratch, expected.arrival())
    })?;
    let file = scratch.file.try_clone()?;
    let version = FileVersion::of(&file.metadata()?);
    Ok((arrived, Found { file, version }))
}
