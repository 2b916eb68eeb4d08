//! A local directory as a store: a mounted disk, or a share.
//!
//! A file is written in `.fairbat/unfinished`, synced, and renamed into its place,
//! so no reader ever sees half a file. No symbolic link below the directory is followed:
//! whoever owns the disk cannot make the agent read or write elsewhere.

mod modes;
mod place;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use fairbat::beneath::{Beneath, NO_LINKS, reopen};
use fairbat::blocking::blocking;
use fairbat::transport::{LaneClient, RequestContext};
use futures_util::stream::{self, StreamExt};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, fstat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

use self::modes::StoreModes;
use self::place::{DeleteOnDrop, OpenPlace, split};
use super::backend::{
    ContentStream, DIRECTORY_IN_THE_WAY, ListPlace, ListedObject, ListedPage, Store, UploadPart,
    check_key,
};
use super::error::{StoreError, StoreErrorKind};
use super::unfinished::{self, PendingUpload, UNFINISHED, key_of};
use crate::config;
use crate::object_name::beneath;

/// How much of a file is read or written at once, bytes.
const PIECE: usize = 1024 * 1024;

/// Part of the names of this process's unfinished files, and of no other process's.
/// The process ID would not do: in containers it is often the same.
static OWN: LazyLock<String> = LazyLock::new(|| format!("~{:016x}-", unfinished::token()));

/// A directory as a store.
#[derive(Debug, Clone)]
pub(crate) struct LocalStore {
    root: Arc<Beneath>,
    /// Its path, for messages.
    path: PathBuf,
    modes: StoreModes,
    /// See [`Self::owner`].
    owner: Arc<OnceLock<u32>>,
    /// Its requests are not carried by this client, but count as if they were.
    client: LaneClient,
}

impl LocalStore {
    /// Opens the directory. Takes from other users what an earlier version has let them
    /// read, which may last once. Blocking.
    ///
    /// # Errors
    /// The directory does not exist. It is not created, because its disk may not be
    /// mounted.
    pub(crate) fn open(store: &config::Local, client: LaneClient) -> Result<Self, StoreError> {
        let path = store.path.clone();
        let root = Beneath::open(&path).map_err(|errno| {
            let what = match errno {
                Errno::NOENT | Errno::NOTDIR => format!("{} is no directory", path.display()),
                Errno::LOOP => format!("{} is a link that another user has made", path.display()),
                errno => format!("{} cannot be opened: {errno}", path.display()),
            };
            StoreError::new(StoreErrorKind::Refused, what).with_hint(match errno {
                Errno::LOOP => "name the directory that it leads to",
                _ => "mount the disk it is on, or make the directory",
            })
        })?;
        let modes = StoreModes::of(store.file_mode);
        modes.repair(&root, &path);
        Ok(Self {
            root: root.into(),
            path,
            modes,
            owner: Arc::default(),
            client,
        })
    }

    /// Makes an unfinished file. Blocking.
    fn create(&self, key: &str) -> io::Result<(OpenPlace, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{}{number}", unfinished::head(key), *OWN);
        let directory = self
            .modes
            .make_directory(&self.root, Path::new(UNFINISHED))?;
        OpenPlace::create(directory.into(), name)
    }

    /// Opens an unfinished file again. Whoever owns the disk may have put a file in its
    /// place that others hold open, or another name of any file: such an upload is gone.
    /// Blocking.
    fn unfinished(&self, upload: &str, flags: OFlags) -> io::Result<(OpenPlace, File)> {
        let place = OpenPlace::of(&self.root, &key_of(upload))?;
        let found = place.look()?;
        let status = fstat(&found)?;
        let is_own = status.st_uid == geteuid().as_raw() || status.st_uid == self.owner()?;
        match is_own && status.st_nlink == 1 {
            true => Ok((place, reopen(found, flags)?)),
            false => Err(Errno::NOENT.into()),
        }
    }

    /// The owner that the agent's files have here. On a file system that keeps no owners,
    /// a mount option decides. Blocking.
    fn owner(&self) -> io::Result<u32> {
        if let Some(owner) = self.owner.get() {
            return Ok(*owner);
        }
        let (place, file) = self.create("owner")?;
        let _place = DeleteOnDrop(place);
        let owner = fstat(&file)?.st_uid;
        Ok(*self.owner.get_or_init(|| owner))
    }

    /// Deletes a file if it is there. Blocking.
    fn remove(&self, key: &str) -> io::Result<()> {
        let removed =
            OpenPlace::of(&self.root, key).and_then(|place| place.remove(AtFlags::empty()));
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Lists a directory. Blocking.
    fn page(&self, directory: &str) -> io::Result<ListedPage> {
        let mut page = ListedPage::default();
        let path = match directory {
            "" => Path::new("."),
            directory => Path::new(directory),
        };
        let opened = match self.root.subdirectory(path, NO_LINKS) {
            Err(Errno::NOENT) => return Ok(page),
            opened => opened?,
        };
        for entry in Dir::read_from(&opened)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if matches!(name, "." | "..") {
                continue;
            }
            let key = beneath(directory, name);
            let status = match statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                // Deleted meanwhile.
                Err(Errno::NOENT) => continue,
                status => status?,
            };
            match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory => page.more.push(ListPlace::of(key)),
                FileType::RegularFile => page.objects.push(ListedObject {
                    key,
                    size: u64::try_from(status.st_size).ok(),
                }),
                _ => {}
            }
        }
        Ok(page)
    }

    /// Gives a finished file its mode, syncs it, renames it into its place and syncs the
    /// directory.
    fn put_in_place(&self, file: &File, from: &OpenPlace, key: &str) -> io::Result<()> {
        self.modes.finish(file)?;
        file.sync_all()?;
        let (directory, name) = split(key);
        let directory = self.modes.make_directory(&self.root, directory)?;
        from.rename(&directory, name)?;
        directory.sync_all()
    }

    /// Writes content at an offset, bytes, into an unfinished file.
    async fn write(
        &self,
        key: &str,
        file: &Arc<File>,
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
            let file = Arc::clone(file);
            self.on_disk(key, "writing", move || {
                file.write_all_at(&piece, at)?;
                // From now on the part counts as stored.
                file.sync_data()
            })
            .await?;
            self.client.moved(&context, moved);
        }
        Ok(())
    }

    /// Does `work` on a thread that may block.
    async fn on_disk<T: Send + 'static>(
        &self,
        key: &str,
        doing: &str,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = blocking(work).await.unwrap_or_else(|lost| Err(lost.into()));
        done.map_err(|error| disk_error(doing, &self.path.join(key), &error))
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
        check_key(key)?;
        if content.len() > PIECE {
            let (this, of) = (self.clone(), key.to_owned());
            let begun = self.on_disk(key, "beginning", move || {
                let (from, file) = this.create(&of)?;
                Ok((DeleteOnDrop(from), Arc::new(file)))
            });
            let (from, file) = begun.await?;
            self.write(key, &file, 0, content, context).await?;
            let (this, of) = (self.clone(), key.to_owned());
            let placed = self.on_disk(key, "finishing", move || {
                this.put_in_place(&file, &from.0, &of)
            });
            return placed.await;
        }
        context.wait(content.len()).await;
        let moved = content.len() as u64;
        let (this, of) = (self.clone(), key.to_owned());
        // In one step: changing threads takes longer than writing a small file.
        self.on_disk(key, "storing", move || {
            let (from, file) = this.create(&of)?;
            let from = DeleteOnDrop(from);
            file.write_all_at(&content, 0)?;
            this.put_in_place(&file, &from.0, &of)
        })
        .await?;
        self.client.moved(&context, moved);
        Ok(())
    }

    async fn begin(&self, key: &str, _mark: &str) -> Result<String, StoreError> {
        let (this, of) = (self.clone(), key.to_owned());
        self.on_disk(key, "beginning", move || Ok(this.create(&of)?.0.name))
            .await
    }

    async fn put_part(
        &self,
        key: &str,
        upload: &str,
        part: UploadPart,
        context: RequestContext,
    ) -> Result<String, StoreError> {
        let (this, name) = (self.clone(), upload.to_owned());
        let opened = self.on_disk(key, "writing", move || {
            Ok(Arc::new(this.unfinished(&name, OFlags::WRONLY)?.1))
        });
        let file = opened.await.map_err(|error| gone(error, self, upload))?;
        let write = self.write(key, &file, part.offset, part.content, context);
        write.await.map(|()| String::new())
    }

    async fn complete(
        &self,
        key: &str,
        upload: &str,
        _parts: Vec<String>,
    ) -> Result<(), StoreError> {
        check_key(key)?;
        let (this, of, name) = (self.clone(), key.to_owned(), upload.to_owned());
        let placed = self.on_disk(key, "finishing", move || {
            let (from, file) = this.unfinished(&name, OFlags::RDONLY)?;
            this.put_in_place(&file, &from, &of)
        });
        placed.await.map_err(|error| gone(error, self, upload))
    }

    async fn abort(&self, key: &str, upload: &str) -> Result<(), StoreError> {
        let (this, unfinished) = (self.clone(), key_of(upload));
        self.on_disk(key, "giving up", move || this.remove(&unfinished))
            .await
    }

    async fn pending(&self, prefix: &str) -> Result<Vec<PendingUpload>, StoreError> {
        let prefix = prefix.to_owned();
        let root = Arc::clone(&self.root);
        self.on_disk(UNFINISHED, "listing", move || {
            let directory = match root.subdirectory(Path::new(UNFINISHED), NO_LINKS) {
                Err(Errno::NOENT) => return Ok(Vec::new()),
                opened => opened?,
            };
            let entries = Dir::read_from(directory)?;
            let names =
                entries.filter_map(|entry| Some(entry.ok()?.file_name().to_str().ok()?.to_owned()));
            // This process is still writing its own, perhaps for another job.
            let names = names.filter(|name| !name.contains(OWN.as_str()));
            Ok(names
                .filter_map(|name| unfinished::pending(&name, &prefix))
                .collect())
        })
        .await
    }

    async fn get(&self, key: &str, context: RequestContext) -> Result<ContentStream, StoreError> {
        check_key(key)?;
        let (this, of) = (self.clone(), key.to_owned());
        let opened = self.on_disk(key, "reading", move || {
            let file = OpenPlace::of(&this.root, &of)?.open(OFlags::RDONLY)?;
            let size = file.metadata()?.len();
            Ok((file, size))
        });
        let (file, size) = opened.await?;
        let reading = LocalReading {
            store: self.clone(),
            key: key.to_owned(),
            file: file.into(),
            left: 0..size,
            context,
        };
        Ok(stream::try_unfold(reading, LocalReading::next).boxed())
    }

    async fn list(&self, place: &ListPlace) -> Result<ListedPage, StoreError> {
        let (this, directory) = (self.clone(), place.directory.clone());
        self.on_disk(&place.directory, "listing", move || this.page(&directory))
            .await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), StoreError> {
        for key in keys {
            check_key(&key)?;
            let (this, of) = (self.clone(), key.clone());
            self.on_disk(&key, "deleting", move || {
                this.remove(&of)?;
                // Also the directories that became empty.
                let mut inner = of.as_str();
                while let Some((directory, _)) = inner.rsplit_once('/') {
                    let place = OpenPlace::of(&this.root, directory);
                    if place
                        .and_then(|place| place.remove(AtFlags::REMOVEDIR))
                        .is_err()
                    {
                        break;
                    }
                    inner = directory;
                }
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

/// A file that is being read, piece by piece.
struct LocalReading {
    store: LocalStore,
    key: String,
    file: Arc<File>,
    /// Where the next piece begins, and where the file ends, bytes.
    left: Range<u64>,
    context: RequestContext,
}

impl LocalReading {
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
        self.store.client.moved(&self.context, length as u64);
        Ok(Some((piece, self)))
    }
}

/// Tells a missing unfinished file from other missing files.
fn gone(error: StoreError, store: &LocalStore, upload: &str) -> StoreError {
    let is_gone = || store.unfinished(upload, OFlags::RDONLY).is_err();
    if error.kind == StoreErrorKind::Missing && is_gone() {
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
        _ if Errno::from_io_error(error) == Some(Errno::LOOP) => (
            StoreErrorKind::Refused,
            "a symbolic link is in the way, and none is followed in a store; move it elsewhere",
        ),
        _ if Errno::from_io_error(error) == Some(Errno::NXIO) => (
            StoreErrorKind::Refused,
            "it is neither a file nor a directory; move it elsewhere",
        ),
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
            "give the agent the right to write there; if root started it by hand, restart it after \
             the disk was mounted",
        ),
        _ => (StoreErrorKind::Refused, "check the disk of the store"),
    };
    let message = format!("{doing} {}: {error}", path.display());
    StoreError::new(kind, message).with_hint(hint)
}

#[cfg(test)]
mod tests;
