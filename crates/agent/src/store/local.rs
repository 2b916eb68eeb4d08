//! A local directory as a store: a mounted disk, or a share.
//!
//! A file is written in `.fairbat/unfinished`, synced, and renamed into its place,
//! so no reader ever sees half a file.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use bytes::Bytes;
use fairbat::blocking::blocking;
use fairbat::lane::Lane;
use fairbat::transport::RequestContext;
use futures_util::stream::{self, StreamExt};

use super::backend::{ContentStream, DIRECTORY_IN_THE_WAY, Part, Store, check_key};
use super::error::{StoreError, StoreErrorKind};
use super::unfinished::{self, PendingUpload, UNFINISHED};

/// How much of a file is read or written at once, bytes.
const PIECE: usize = 1024 * 1024;

/// Part of the names of this process's unfinished files, and of no other process's.
/// The process ID would not do: in containers it is often the same.
static OWN: LazyLock<String> = LazyLock::new(|| format!("~{:016x}-", unfinished::token()));

/// A directory as a store.
#[derive(Debug, Clone)]
pub(crate) struct LocalStore {
    root: PathBuf,
    lane: Lane,
}

impl LocalStore {
    /// # Errors
    /// The directory does not exist. It is not created, because its disk may not be
    /// mounted.
    pub(crate) fn open(root: &Path, lane: Lane) -> Result<Self, StoreError> {
        if !root.is_dir() {
            return Err(StoreError::new(
                StoreErrorKind::Refused,
                format!("{} is no directory", root.display()),
            )
            .with_hint("mount the disk it is on, or make the directory"));
        }
        Ok(Self {
            root: root.to_owned(),
            lane,
        })
    }

    /// Makes an unfinished file and returns its name. Blocking.
    fn create(&self, key: &str) -> io::Result<(String, File)> {
        let head = unfinished::head(key);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        std::fs::create_dir_all(self.root.join(UNFINISHED))?;
        let upload = format!("{head}{}{number}", *OWN);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(self.unfinished(&upload))?;
        Ok((upload, file))
    }

    /// Writes content at an offset, bytes, into an unfinished file.
    async fn write(
        &self,
        key: &str,
        upload: &str,
        offset: u64,
        content: Bytes,
        context: RequestContext,
    ) -> Result<(), StoreError> {
        let mut written = 0;
        while written < content.len() {
            let piece = content.slice(written..content.len().min(written + PIECE));
            let at = offset + written as u64;
            written += piece.len();
            context.wait(piece.len()).await;
            let moved = piece.len() as u64;
            let path = self.unfinished(upload);
            self.on_disk(key, "writing", move || {
                let file = OpenOptions::new().write(true).open(path)?;
                file.write_all_at(&piece, at)?;
                // From now on the part counts as stored.
                file.sync_data()
            })
            .await
            .map_err(|error| gone(error, self, upload))?;
            context.count(moved, &self.lane);
            self.lane.moved(moved, None);
        }
        Ok(())
    }

    fn unfinished(&self, upload: &str) -> PathBuf {
        self.root.join(UNFINISHED).join(upload)
    }

    fn path(&self, key: &str) -> Result<PathBuf, StoreError> {
        if !key.is_empty() {
            check_key(key)?;
        }
        Ok(self.root.join(key))
    }

    /// Does `work` on a thread that may block.
    async fn on_disk<T: Send + 'static>(
        &self,
        key: &str,
        doing: &str,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = blocking(work).await.unwrap_or_else(|lost| Err(lost.into()));
        done.map_err(|error| disk_error(doing, &self.root.join(key), &error))
    }
}

#[async_trait]
impl Store for LocalStore {
    async fn put(
        &self,
        key: &str,
        content: Bytes,
        context: RequestContext,
    ) -> Result<(), StoreError> {
        if content.len() > PIECE {
            let (this, of) = (self.clone(), key.to_owned());
            let begun = self.on_disk(key, "beginning", move || {
                let (upload, _) = this.create(&of)?;
                let delete = DeleteOnDrop(this.unfinished(&upload));
                Ok((upload, delete))
            });
            let (upload, _delete) = begun.await?;
            self.write(key, &upload, 0, content, context).await?;
            return self.complete(key, &upload, Vec::new()).await;
        }
        context.wait(content.len()).await;
        let moved = content.len() as u64;
        let to = self.path(key)?;
        let (this, of) = (self.clone(), key.to_owned());
        // In one step: changing threads takes longer than writing a small file.
        self.on_disk(key, "storing", move || {
            let (upload, file) = this.create(&of)?;
            let from = DeleteOnDrop(this.unfinished(&upload));
            file.write_all_at(&content, 0)?;
            put_in_place(&file, &from.0, &to)
        })
        .await?;
        context.count(moved, &self.lane);
        self.lane.moved(moved, None);
        Ok(())
    }

    async fn begin(&self, key: &str, _mark: &str) -> Result<String, StoreError> {
        let (this, of) = (self.clone(), key.to_owned());
        self.on_disk(key, "beginning", move || Ok(this.create(&of)?.0))
            .await
    }

    async fn put_part(
        &self,
        key: &str,
        upload: &str,
        part: Part,
        context: RequestContext,
    ) -> Result<String, StoreError> {
        let write = self.write(key, upload, part.offset, part.content, context);
        write.await.map(|()| String::new())
    }

    async fn complete(
        &self,
        key: &str,
        upload: &str,
        _parts: Vec<String>,
    ) -> Result<(), StoreError> {
        let (from, to) = (self.unfinished(upload), self.path(key)?);
        let placed = self.on_disk(key, "finishing", move || {
            put_in_place(&File::open(&from)?, &from, &to)
        });
        placed.await.map_err(|error| gone(error, self, upload))
    }

    async fn abort(&self, key: &str, upload: &str) -> Result<(), StoreError> {
        let path = self.unfinished(upload);
        self.on_disk(key, "giving up", move || {
            ignore_missing(std::fs::remove_file(path))
        })
        .await
    }

    async fn pending(&self, prefix: &str) -> Result<Vec<PendingUpload>, StoreError> {
        let prefix = prefix.to_owned();
        let directory = self.root.join(UNFINISHED);
        self.on_disk(UNFINISHED, "listing", move || {
            let entries = match std::fs::read_dir(directory) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries?,
            };
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            // This process is still writing its own, perhaps for another job.
            let names = names.filter(|name| !name.contains(OWN.as_str()));
            Ok(names
                .filter_map(|name| unfinished::pending(&name, &prefix))
                .collect())
        })
        .await
    }

    async fn get(&self, key: &str, context: RequestContext) -> Result<ContentStream, StoreError> {
        let path = self.path(key)?;
        let opened = self.on_disk(key, "reading", move || {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            Ok((file, size))
        });
        let (file, size) = opened.await?;
        let reading = FileReading {
            store: self.clone(),
            key: key.to_owned(),
            file: file.into(),
            left: 0..size,
            context,
        };
        Ok(stream::try_unfold(reading, FileReading::next).boxed())
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), StoreError> {
        for key in keys {
            let path = self.path(&key)?;
            let root = self.root.clone();
            self.on_disk(&key, "deleting", move || {
                ignore_missing(std::fs::remove_file(&path))?;
                // Also the directories that became empty.
                for parent in path.ancestors().skip(1) {
                    if parent == root || std::fs::remove_dir(parent).is_err() {
                        break;
                    }
                }
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

/// Deletes an unfinished file when dropped; a renamed file is not affected.
struct DeleteOnDrop(PathBuf);

impl Drop for DeleteOnDrop {
    fn drop(&mut self) {
        // An earlier error counts; this one does not.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A file that is being read, piece by piece.
struct FileReading {
    store: LocalStore,
    key: String,
    file: Arc<File>,
    /// Where the next piece begins, and where the file ends, bytes.
    left: Range<u64>,
    context: RequestContext,
}

impl FileReading {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, StoreError> {
        let length = (self.left.end - self.left.start).min(PIECE as u64) as usize;
        if length == 0 {
            return Ok(None);
        }
        self.context.wait(length).await;
        let (file, at) = (Arc::clone(&self.file), self.left.start);
        let piece = self.store.on_disk(&self.key, "reading", move || {
            let mut piece = vec![0; length];
            file.read_exact_at(&mut piece, at)?;
            Ok(Bytes::from(piece))
        });
        let piece = piece.await?;
        self.left.start += length as u64;
        self.context.count(length as u64, &self.store.lane);
        self.store.lane.moved(length as u64, None);
        Ok(Some((piece, self)))
    }
}

/// Syncs a finished file, renames it into its place and syncs the directory.
fn put_in_place(file: &File, from: &Path, to: &Path) -> io::Result<()> {
    file.sync_all()?;
    let parent = to.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)?;
    std::fs::rename(from, to)?;
    File::open(parent)?.sync_all()
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Tells a missing unfinished file from other missing files.
fn gone(error: StoreError, store: &LocalStore, upload: &str) -> StoreError {
    if error.kind == StoreErrorKind::Missing && !store.unfinished(upload).exists() {
        StoreError {
            kind: StoreErrorKind::UploadGone,
            ..error
        }
    } else {
        error
    }
}

fn disk_error(doing: &str, path: &Path, error: &io::Error) -> StoreError {
    let (kind, hint) = match error.kind() {
        io::ErrorKind::NotFound => (StoreErrorKind::Missing, ""),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (StoreErrorKind::Full, "make room on the disk of the store")
        }
        io::ErrorKind::IsADirectory => (StoreErrorKind::Refused, DIRECTORY_IN_THE_WAY),
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => (
            StoreErrorKind::Refused,
            "a file stands where a directory belongs; move it elsewhere",
        ),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => (
            StoreErrorKind::Refused,
            "give the agent the right to write there",
        ),
        _ => (StoreErrorKind::Refused, "check the disk of the store"),
    };
    let message = format!("{doing} {}: {error}", path.display());
    StoreError::new(kind, message).with_hint(hint)
}

#[cfg(test)]
mod tests;
