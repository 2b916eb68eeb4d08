//! One file on its way to a store: as a whole if it is small, in parts if it is
//! not, or piece by piece in one request where a store takes no parts. What is
//! stored under its key is always one version of it.

mod parts;
mod pieces;
mod stream;
mod whole;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};

use super::attempts::Failing;
use super::plan::Remembered;
use super::push::Job;
use super::source::{ReadError, Source};
use crate::config::Verify;
use crate::entry::TreePath;
use crate::object_name;
use crate::state::{StateChange, StateError, Synced, SyncedKind};
use crate::store::{StoreError, StoreErrorKind};

/// How often a file is begun anew that changes while it is read.
const VERSIONS: usize = 3;

/// A file up to here is read as it is opened, bytes: what waits for a permit is
/// in memory then, but of no more files than there may be connections and two.
const SMALL: u64 = 64 * 1024;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// The store has it.
    Sent,
    /// The store had it already.
    Same,
    /// It is gone from the source: the next scan will say so.
    Gone,
}

/// What the store has under the key of a file, as far as it is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Had {
    Nothing,
    /// Another content, or one that is not known.
    Something,
    /// This one.
    This(Remembered),
}

/// Why a file is not in step.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// It, or its disk.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state.
    #[error(transparent)]
    State(#[from] StateError),
    /// A thread or a task was lost.
    #[error("a task ended without a result")]
    Lost,
}

impl Failing for FileError {
    fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::Read(_) | Self::State(_) | Self::Lost => None,
        }
    }
}

impl Job {
    /// Brings a file to the store, unless it has this content already. `size` is
    /// what the plan counted for it.
    pub(super) async fn bring(
        self: &Arc<Self>,
        path: &TreePath,
        size: u64,
        had: Had,
    ) -> Result<Done, FileError> {
        let mut had = had;
        for version in 1..=VERSIONS {
            let credited = Arc::new(AtomicU64::new(0));
            let done = self.bring_version(path, size, had, &credited).await;
            // It may be another by now.
            had = Had::Something;
            if done.is_err() {
                self.ledger.lost(credited.load(Ordering::Relaxed));
            }
            match done {
                Err(FileError::Read(ReadError::Gone)) => return Ok(Done::Gone),
                Err(FileError::Read(ReadError::Changed)) if version < VERSIONS => {}
                Err(FileError::Store(error)) if error.kind == StoreErrorKind::UploadGone => {
                    // Before the next version asks what is under way.
                    let gone = StateChange::Gone(path.clone());
                    self.writer.keep(self.id, gone).await?;
                    if version == VERSIONS {
                        return Err(error.into());
                    }
                }
                other => return other,
            }
        }
        Err(ReadError::Changed.into())
    }

    async fn bring_version(
        self: &Arc<Self>,
        path: &TreePath,
        planned: u64,
        had: Had,
        credited: &Arc<AtomicU64>,
    ) -> Result<Done, FileError> {
        let is_sent = !matches!(had, Had::This(_));
        let (source, content) = self.open(path, is_sent).await?;
        let size = source.state().size;
        if let Had::This(known) = had {
            let of = Arc::clone(&source);
            let sha256 = blocking(move || hash(&of)).await??;
            if sha256 == known.sha256 {
                let (path, synced) = (path.clone(), synced(&source, sha256));
                // The manifest knows all but what the state alone keeps.
                self.note(if source.attributes() == known.attributes {
                    StateChange::Refreshed(path, synced)
                } else {
                    StateChange::Synced(path, synced)
                })
                .await?;
                return Ok(Done::Same);
            }
        }
        let in_parts = size > self.store.part_size(size) && self.store.takes_parts();
        let sha256 = if in_parts {
            self.send_parts(path, &source, had, credited).await?
        } else if size > self.store.part_size(size) {
            self.send_stream(path, &source, had, credited).await?
        } else {
            self.send_whole(path, &source, content, had, credited)
                .await?
        };
        if self.settings.verify == Verify::ReadBack {
            self.read_back(path, sha256).await?;
        }
        // What it is now has been sent, and not what the scan saw.
        self.ledger.resized(planned, size);
        let (path, synced) = (path.clone(), synced(&source, sha256));
        self.note(if in_parts {
            StateChange::Completed(path, synced)
        } else {
            StateChange::Synced(path, synced)
        })
        .await?;
        Ok(Done::Sent)
    }

    /// From now on the store may have another content under the key of a file than
    /// is remembered: so that a process that is killed before it can remember the
    /// new one leaves no false memory.
    async fn replacing(&self, path: &TreePath, had: Had) -> Result<(), StateError> {
        if had == Had::Nothing {
            return Ok(());
        }
        let replacing = StateChange::Replacing(vec![path.clone()]);
        self.writer.keep(self.id, replacing).await
    }

    /// Whether the store gives back what it was sent.
    async fn read_back(&self, path: &TreePath, sha256: [u8; 32]) -> Result<(), FileError> {
        let key = self.key(path);
        let read = || async {
            let mut hash = Sha256::new();
            let mut content = self.store.get(&key, None, self.passage()).await?;
            while let Some(piece) = content.try_next().await? {
                hash.update(&piece);
            }
            Ok(hash.finalize())
        };
        if self.insist(read).await?[..] == sha256 {
            return Ok(());
        }
        let message = format!("{key} reads back as something else than was sent");
        Err(StoreError::new(StoreErrorKind::Integrity, message).into())
    }

    /// Opens a file. The content of a small one that `is_sent` is read at once:
    /// from one thread to another and back takes longer than that.
    async fn open(
        &self,
        path: &TreePath,
        is_sent: bool,
    ) -> Result<(Arc<Source>, Option<Hashed>), FileError> {
        let (root, path) = (self.settings.source.clone(), path.clone());
        let opened = blocking(move || {
            let source = Source::open(&root, &path)?;
            let size = source.state().size;
            let content = (is_sent && size <= SMALL).then(|| read_hashed(&source, 0, size));
            Ok::<_, ReadError>((Arc::new(source), content.transpose()?))
        });
        Ok(opened.await??)
    }

    /// The key of a file in the store.
    pub(super) fn key(&self, path: &TreePath) -> String {
        object_name::under(&self.settings.prefix, path)
    }

    pub(super) async fn note(&self, change: StateChange) -> Result<(), StateError> {
        self.writer.note(self.id, change).await
    }
}

fn synced(source: &Source, sha256: [u8; 32]) -> Synced {
    Synced {
        attributes: source.attributes(),
        kind: SyncedKind::File {
            state: source.state(),
            sha256,
        },
    }
}

/// What is read to find a hash is read in pieces of this size, bytes.
const PIECE: u64 = 1024 * 1024;

fn hash(source: &Source) -> Result<[u8; 32], ReadError> {
    let mut whole = Sha256::new();
    let size = source.state().size;
    let mut offset = 0;
    while offset < size {
        let length = (size - offset).min(PIECE);
        whole.update(source.read(offset, length as usize)?);
        offset += length;
    }
    source.check()?;
    Ok(whole.finalize().into())
}

async fn check(source: &Arc<Source>) -> Result<(), FileError> {
    let source = Arc::clone(source);
    Ok(blocking(move || source.check()).await??)
}

/// Some content, and its SHA-256.
type Hashed = (Bytes, [u8; 32]);

async fn read(source: &Arc<Source>, offset: u64, length: u64) -> Result<Hashed, FileError> {
    let source = Arc::clone(source);
    Ok(blocking(move || read_hashed(&source, offset, length)).await??)
}

fn read_hashed(source: &Source, offset: u64, length: u64) -> Result<Hashed, ReadError> {
    let content = source.read(offset, length as usize)?;
    let sha256 = Sha256::digest(&content).into();
    Ok((Bytes::from(content), sha256))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FileError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| FileError::Lost)
}
