//! The file that is sent, one version of it or an error, and the request body that it
//! becomes.
//!
//! The version of the file ([`crate::file_version`]) is checked before the first read and
//! after each one. So bytes are handed on only when the file was the same after they had
//! been read as before anything was. Reading blocks and runs on threads of its own.
//!
//! The reader and the request are two ends of a channel. When the reader ends before the
//! last byte, whatever the reason, so does the connection: a server sees a body that is
//! too short and keeps nothing of it.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use rustix::fs::OFlags;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

use crate::blocking::blocking;
use crate::error::{ErrorKind, TransferError};
use crate::file_version::{FileVersion, Stability, StabilityCheck, TICK, wall_clock};
use crate::transport::RateLimit;

/// A version of a file, open for reading.
#[derive(Debug)]
pub(crate) struct UploadFile {
    file: File,
    path: PathBuf,
    version: FileVersion,
}

impl UploadFile {
    /// Opens a regular file; `expected` is the version that it must still be,
    /// if it has been open before.
    pub(crate) fn open(path: &Path, expected: Option<FileVersion>) -> Result<Self, TransferError> {
        let unreadable = |error: io::Error| disk_error("read", path, &error);
        // Checked before it is opened: opening a device may have effects.
        regular(path, &path.metadata().map_err(unreadable)?)?;
        let file = OpenOptions::new()
            .read(true)
            // A FIFO that took its place must not block.
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)
            .map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        regular(path, &metadata)?;
        let mut source = Self {
            file,
            path: path.to_owned(),
            version: expected.unwrap_or_else(|| FileVersion::of(&metadata)),
        };
        match expected {
            Some(_) => source.check()?,
            None => source.wait_until_stable()?,
        }
        Ok(source)
    }

    /// Waits until every later change shows.
    fn wait_until_stable(&mut self) -> Result<(), TransferError> {
        let mut check = StabilityCheck::default();
        loop {
            match check.observe(self.version, wall_clock()) {
                Stability::Settled => return Ok(()),
                Stability::Changing => std::thread::sleep(TICK),
                Stability::Unstable => return Err(self.changed()),
            }
            self.version = self.current_version()?;
        }
    }

    pub(crate) fn version(&self) -> FileVersion {
        self.version
    }

    /// Reads `length` bytes from `offset` on, all of which the file has to
    /// have.
    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Bytes, TransferError> {
        let mut piece = vec![0; length];
        let read = self.file.read_exact_at(&mut piece, offset);
        // First: a file that has become shorter has changed, and is not unreadable.
        self.check()?;
        match read {
            Ok(()) => Ok(piece.into()),
            Err(error) => Err(disk_error("read", &self.path, &error)),
        }
    }

    /// Checks that it is still the same version.
    pub(crate) fn check(&self) -> Result<(), TransferError> {
        match self.current_version()? == self.version {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    /// The version that it is now.
    fn current_version(&self) -> Result<FileVersion, TransferError> {
        let metadata = self.file.metadata();
        let metadata = metadata.map_err(|error| disk_error("examined", &self.path, &error))?;
        Ok(FileVersion::of(&metadata))
    }

    fn changed(&self) -> TransferError {
        let message = format!(
            "{} changed while it was being uploaded; the upload was broken off",
            self.path.display()
        );
        TransferError::new(ErrorKind::Integrity, message).with_hint(
            "run the same command again when nobody writes to the file, or upload a snapshot",
        )
    }
}

fn regular(path: &Path, metadata: &Metadata) -> Result<(), TransferError> {
    let kind = metadata.file_type();
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    let message = format!("{} is {what}, not a regular file", path.display());
    Err(
        TransferError::new(ErrorKind::Disk, message).with_hint(if kind.is_dir() {
            "name one file, or pack the directory into one first (tar)"
        } else {
            "save its content to a file first: an upload must be able to start over"
        }),
    )
}

fn disk_error(done: &str, path: &Path, error: &io::Error) -> TransferError {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "check the name of the file",
        io::ErrorKind::PermissionDenied => "ask for the right to read it, or run as its owner",
        _ => "check the disk",
    };
    let message = format!("{} cannot be {done}: {error}", path.display());
    TransferError::new(ErrorKind::Disk, message).with_hint(hint)
}

/// Bytes read at once.
const PIECE: u64 = 128 * 1024;

/// Under a rate limit a piece is at most this part of a second, so that the rate is even.
const PIECES_PER_SECOND: u64 = 20;
/// Smallest piece under a rate limit, bytes.
const MIN_PIECE: u64 = 1024;

/// A body of known length whose bytes come out of a channel.
#[derive(Debug)]
pub(crate) struct FileBody {
    pieces: Receiver<Bytes>,
    left: u64,
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let Some(piece) = ready!(self.pieces.poll_recv(context)) else {
            let error = io::Error::other("the upload was broken off");
            return Poll::Ready(Some(Err(error)));
        };
        self.left = self.left.saturating_sub(piece.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// The body of these bytes of `source`, the work of reading them into it, and how many of them
/// that has handed on.
pub(crate) fn body(
    source: Arc<UploadFile>,
    range: Range<u64>,
    limits: Vec<Arc<RateLimit>>,
) -> (
    FileBody,
    impl Future<Output = Result<(), TransferError>>,
    watch::Receiver<u64>,
) {
    // One piece waits while the next is being read.
    let (sender, pieces) = channel(1);
    let (handed, progress) = watch::channel(0);
    let body = FileBody {
        pieces,
        left: range.end - range.start,
    };
    (body, read(source, range, limits, sender, handed), progress)
}

/// Reads to the end of the range, or until the request ends.
///
/// # Errors
/// The file cannot be read, or has changed; its last byte is not handed
/// on before that is sure.
async fn read(
    source: Arc<UploadFile>,
    range: Range<u64>,
    limits: Vec<Arc<RateLimit>>,
    pieces: Sender<Bytes>,
    handed: watch::Sender<u64>,
) -> Result<(), TransferError> {
    let mut offset = range.start;
    while offset < range.end {
        // A limit may change.
        let rate = limits.iter().map(|limit| limit.rate()).min();
        let most = rate.map_or(PIECE, |rate| {
            (rate / PIECES_PER_SECOND).clamp(MIN_PIECE, PIECE)
        });
        let length = (range.end - offset).min(most) as usize;
        let source = Arc::clone(&source);
        let piece = blocking(move || source.read(offset, length)).await??;
        let waits = limits.iter().map(|limit| limit.reserve(length));
        if let Some(wait) = waits.max() {
            tokio::time::sleep(wait).await;
        }
        if pieces.send(piece).await.is_err() {
            return Ok(());
        }
        offset += length as u64;
        handed.send_replace(offset - range.start);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, content).unwrap();
        (dir, path)
    }

    #[test]
    fn an_unchanged_file_is_read_and_can_be_opened_again() {
        let (_dir, path) = file(b"0123456789");
        let source = UploadFile::open(&path, None).unwrap();
        assert_eq!(source.version().size, 10);
        assert_eq!(source.read(3, 4).unwrap(), &b"3456"[..]);
        let again = UploadFile::open(&path, Some(source.version())).unwrap();
        assert_eq!(again.read(0, 10).unwrap(), &b"0123456789"[..]);
    }

    #[test]
    fn every_change_is_noticed() {
        let changes: [fn(&Path); 4] = [
            |path| fs::write(path, b"9876543210").unwrap(),
            |path| fs::write(path, b"0123").unwrap(),
            |path| {
                let mut file = OpenOptions::new().append(true).open(path).unwrap();
                io::Write::write_all(&mut file, b"x").unwrap();
            },
            |path| fs::rename(path, path.with_extension("old")).unwrap(),
        ];
        for (i, change) in changes.into_iter().enumerate() {
            let (_dir, path) = file(b"0123456789");
            let source = UploadFile::open(&path, None).unwrap();
            change(&path);
            let error = source.read(0, 10).expect_err("it changed");
            assert_eq!(error.kind, ErrorKind::Integrity, "change {i}: {error}");
        }
    }

    #[test]
    fn another_file_of_the_same_name_is_another_version() {
        let (dir, path) = file(b"0123456789");
        let version = UploadFile::open(&path, None).unwrap().version();
        fs::write(dir.path().join("new"), b"0123456789").unwrap();
        fs::rename(dir.path().join("new"), &path).unwrap();
        let error = UploadFile::open(&path, Some(version)).expect_err("another file");
        assert_eq!(error.kind, ErrorKind::Integrity, "{error}");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_by_its_name() {
        let (dir, path) = file(b"");
        for (path, expected) in [
            (dir.path(), "is a directory"),
            (Path::new("/dev/null"), "is a device"),
            (&path.with_extension("missing"), "cannot be read"),
        ] {
            let error = UploadFile::open(path, None).expect_err(expected);
            assert_eq!(error.kind, ErrorKind::Disk);
            assert!(error.message.contains(expected), "{error}");
        }
    }
}
