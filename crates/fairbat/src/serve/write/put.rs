//! PUT: a file comes into being, or is replaced, at once and as a whole.
//!
//! The body goes to a file of its own ([`Scratch`]), which is written to the disk,
//! and then renamed, and then that is written to the disk. So under its name there
//! is never a part of it, whatever ends the process or the machine, and who is told
//! that it is stored will find it. What can be refused is refused before the body
//! is asked for (`100 Continue`).

use std::fs::File;
use std::future::poll_fn;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_RANGE, ETAG};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::body::{Body, Incoming};

use super::super::Site;
use super::super::answer::{aside, with, without_content};
use super::super::files::{directory_in, name_in};
use super::super::payload::Payload;
use super::expected::Expected;
use super::place::{Arrived, Arriving, Place, look_ahead};
use super::refusal::Refusal;
use super::scratch::Scratch;
use super::{Stored, Writing};
use crate::file_version::{FileVersion, Look, Looks, TICK, wall_clock};
use crate::http::digest::StatedDigests;

/// How often the directories of a file are made again that somebody removes.
const ATTEMPTS: usize = 16;

/// Takes a file.
pub(super) async fn put(
    site: &Arc<Site>,
    writing: &Arc<Writing>,
    request: &Parts,
    body: Incoming,
) -> Result<Response<Payload>, Refusal> {
    let name = file_name(request.uri.path())?;
    let headers = &request.headers;
    check_form(headers)?;
    let stated = StatedDigests::from_headers(headers).map_err(Refusal::Malformed)?;
    let length = body.size_hint().exact();
    if let (Some(length), Some(most)) = (length, writing.max_upload)
        && length > most
    {
        return Err(Refusal::TooLarge(most));
    }
    let _place = writing
        .uploads
        .try_acquire()
        .map_err(|_| Refusal::Crowded)?;
    let expected = Expected::by(site, &name, headers).await?;
    let scratch = {
        let (site, writing, name) = (Arc::clone(site), Arc::clone(writing), name.clone());
        aside(move || {
            look_ahead(&site.root, &name)?;
            let scratch = Scratch::make(&site.root, &writing.next)?;
            scratch.reserve(length.unwrap_or_default())?;
            Ok::<_, Refusal>(scratch)
        })
    };
    let upload = Upload {
        scratch: scratch.await?,
        stated,
        length: 0,
    };
    let upload = receive(site, writing, upload, body).await?;
    let length = upload.length;
    let digest = upload.stated.check().map_err(|found| Refusal::Corrupt {
        algorithm: found.algorithm(),
        found: found.hex(),
    })?;
    let (arrived, file) = {
        let (site, writing, scratch) = (Arc::clone(site), Arc::clone(writing), upload.scratch);
        aside(move || finish(&site, &writing, &name, scratch, expected)).await?
    };
    let status = match arrived {
        Arrived::Created => StatusCode::CREATED,
        Arrived::Replaced => StatusCode::NO_CONTENT,
    };
    let mut response = match arrived {
        Arrived::Created => without_content(status, []),
        Arrived::Replaced => with(status, HeaderMap::new(), Payload::empty()),
    };
    if let Some(version) = settled(file).await? {
        if let Some(digest) = digest {
            site.digests.know(version, &digest);
        }
        response.headers_mut().insert(ETAG, version.entity_tag());
    }
    response.extensions_mut().insert(Stored(length));
    Ok(response)
}

/// The name of a file; that of a directory is one, but no file can be there.
pub(super) fn file_name(url_path: &str) -> Result<PathBuf, Refusal> {
    name_in(url_path).ok_or_else(|| match directory_in(url_path) {
        Some(_) => Refusal::Directory,
        None => Refusal::NoName,
    })
}

/// Whether the body is the file itself (RFC 9110, section 14.5 and 8.4).
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

/// A body as far as it has come.
struct Upload {
    scratch: Scratch,
    stated: StatedDigests,
    /// Bytes.
    length: u64,
}

impl Upload {
    /// Blocking.
    fn write(mut self, piece: &Bytes) -> Result<Self, Refusal> {
        self.stated.update(piece);
        self.scratch.file.write_all_at(piece, self.length)?;
        self.length += piece.len() as u64;
        Ok(self)
    }
}

/// Takes all of a body. Who sends nothing for as long as one may who takes nothing
/// of a response is not waited for.
async fn receive(
    site: &Site,
    writing: &Writing,
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
        // Trailers say nothing that is wanted.
        let Ok(piece) = frame.map_err(|_| Refusal::Broken)?.into_data() else {
            continue;
        };
        let length = upload.length + piece.len() as u64;
        if let Some(most) = writing.max_upload.filter(|&most| length > most) {
            return Err(Refusal::TooLarge(most));
        }
        upload = aside(move || upload.write(&piece)).await?;
    }
}

/// Puts a file in its place, when it is on the disk, and returns when that is there
/// too. Blocking.
fn finish(
    site: &Site,
    writing: &Writing,
    name: &Path,
    mut scratch: Scratch,
    expected: Expected,
) -> Result<(Arrived, File), Refusal> {
    scratch.file.sync_all()?;
    for _ in 0..ATTEMPTS {
        let place = Place::made(&site.root, name)?;
        let turn = writing.turn();
        expected.check(site, name)?;
        let arrived = place.receive(&mut scratch, expected.arrival());
        drop(turn);
        match arrived {
            Ok(arrived) => {
                place.sync()?;
                return Ok((arrived, scratch.file.try_clone()?));
            }
            Err(Arriving::Gone) => {}
            Err(Arriving::Refused(refusal)) => return Err(refusal),
        }
    }
    Err(Refusal::Busy)
}

/// The version of a file that was just renamed, once every later change shows;
/// `None` if somebody writes to it already.
///
/// The file stays open for so long, so no other can have its number in the same
/// tick.
async fn settled(file: File) -> Result<Option<FileVersion>, Refusal> {
    let mut looks = Looks::default();
    let file = Arc::new(file);
    loop {
        let shared = Arc::clone(&file);
        let metadata = aside(move || shared.metadata().map_err(Refusal::from)).await?;
        let version = FileVersion::of(&metadata);
        match looks.look(version, wall_clock()) {
            Look::Counts => return Ok(Some(version)),
            Look::Again => tokio::time::sleep(TICK).await,
            Look::Restless => return Ok(None),
        }
    }
}
