//! The body of a response with a file: bytes of one version of it, read as they
//! are wanted. Knows nothing of requests.
//!
//! After each read the file is looked at again. When it is no longer what it
//! was, the body breaks off, and the client sees that it is too short; what
//! was sent until then was read before the change showed, so it is of the one
//! version.

use std::fs::File;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;

use super::Site;
use super::files::Found;
use super::flow::Sending;
use crate::file_version::FileVersion;

/// Bytes that are read at once, and so held for each connection: enough to
/// keep a fast one busy, little beside hundreds of them.
pub(super) const CHUNK: u64 = 64 * 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct FileBody {
    source: Source,
    range: Range<u64>,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
    /// Ends with the body, however that ends.
    _sending: Sending,
}

/// A file, and the version of it that is sent.
#[derive(Debug, Clone)]
struct Source {
    file: Arc<File>,
    version: FileVersion,
    /// Below the directory that is served.
    name: Arc<Path>,
    /// Where trouble with it is told.
    site: Arc<Site>,
}

impl FileBody {
    /// These bytes of the file of this name, as it was found.
    pub(super) fn of(
        site: &Arc<Site>,
        name: &Path,
        found: Found,
        range: Range<u64>,
        sending: Sending,
    ) -> Self {
        Self {
            source: Source {
                file: Arc::new(found.file),
                version: found.version,
                name: name.into(),
                site: Arc::clone(site),
            },
            range,
            reading: None,
            _sending: sending,
        }
    }
}

impl Source {
    /// Reads a piece from the start of what is left.
    fn read(&self, left: &Range<u64>) -> io::Result<Bytes> {
        let length = (left.end - left.start).min(CHUNK);
        let mut piece = vec![0; length as usize];
        let read = self.file.read_exact_at(&mut piece, left.start);
        if FileVersion::of(&self.file.metadata()?) != self.version {
            return Err(io::Error::other("the file has changed"));
        }
        if let Err(error) = &read {
            // The client sees only that it is short.
            let trouble = format_args!("cannot be read, a response is broken off: {error}");
            self.site.warn_of(&self.name, trouble);
        }
        read.map(|()| piece.into())
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if this.range.is_empty() {
            return Poll::Ready(None);
        }
        let reading = this.reading.get_or_insert_with(|| {
            let (source, left) = (this.source.clone(), this.range.clone());
            tokio::task::spawn_blocking(move || source.read(&left))
        });
        let read = ready!(Pin::new(reading).poll(context));
        this.reading = None;
        let piece = read.map_err(io::Error::other).and_then(|piece| piece);
        match &piece {
            Ok(piece) => this.range.start += piece.len() as u64,
            Err(_) => this.range = 0..0,
        }
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.range.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.range.end - self.range.start)
    }
}
