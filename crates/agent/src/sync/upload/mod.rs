//! One file on its way to a store: whole if it is small, in parts if it is large, or
//! piece by piece in one request where a store takes no parts. The content under a
//! key is always one version of the file.

mod parts;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fairbat::blocking::{LostThread, blocking};
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};

use super::job::PushJob;
use super::plan::StoredVersion;
use super::retry_store::MayBeStoreError;
use super::source::{ReadError, SourceFile};
use crate::config::Verify;
use crate::entry::TreePath;
use crate::state::{StateChange, StateError, Synced, SyncedKind};
use crate::store::{PutMode, StoreError, StoreErrorKind};

/// Attempts for a file that changes while it is read.
const MAX_VERSIONS: usize = 3;

/// Largest file that is read when it is opened, bytes. Such files are in memory while
/// they wait for a permit: at most two more than there are connections.
const MAX_READ_AT_OPEN: u64 = 64 * 1024;

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UploadOutcome {
    /// It was sent.
    Sent,
    /// The store had this content already.
    Same,
    /// It is gone from the source. The next scan finds that out.
    Gone,
}

/// What the state knows about the object under the key of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownObject {
    /// There is none.
    Nothing,
    /// Its content differs, or is unknown.
    Something,
    /// It is this version.
    Version(StoredVersion),
}

/// Why a file was not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum UploadError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// A thread or a task ended without a result.
    #[error("a task ended without a result")]
    Lost,
}

impl From<LostThread> for UploadError {
    fn from(_: LostThread) -> Self {
        Self::Lost
    }
}

impl MayBeStoreError for UploadError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::Read(_) | Self::State(_) | Self::Lost => None,
        }
    }
}

impl PushJob {
    /// Sends a file, unless the store has its content already. `size` is its length
    /// in the plan, bytes.
    pub(crate) async fn upload(
        self: &Arc<Self>,
        path: &TreePath,
        size: u64,
        known: KnownObject,
    ) -> Result<UploadOutcome, UploadError> {
        let mut known = known;
        for version in 1..=MAX_VERSIONS {
            let credited = Arc::new(AtomicU64::new(0));
            let done = self.upload_version(path, size, known, &credited).await;
            // The object may have changed by now.
            known = KnownObject::Something;
            if done.is_err() {
                self.progress.lost(credited.load(Ordering::Relaxed));
            }
            match done {
                Err(UploadError::Read(ReadError::Gone)) => return Ok(UploadOutcome::Gone),
                Err(UploadError::Read(ReadError::Changed)) if version < MAX_VERSIONS => {}
                Err(UploadError::Store(error)) if error.kind == StoreErrorKind::UploadGone => {
                    // Kept before the next attempt looks for an upload.
                    self.keep(StateChange::Gone(path.clone())).await?;
                    if version == MAX_VERSIONS {
                        return Err(error.into());
                    }
                }
                other => return other,
            }
        }
        Err(ReadError::Changed.into())
    }

    async fn upload_version(
        self: &Arc<Self>,
        path: &TreePath,
        planned: u64,
        known: KnownObject,
        credited: &Arc<AtomicU64>,
    ) -> Result<UploadOutcome, UploadError> {
        let is_sent = !matches!(known, KnownObject::Version(_));
        let (source, content) = self.open(path, is_sent).await?;
        let size = source.state().size;
        if let KnownObject::Version(version) = known {
            let of = Arc::clone(&source);
            let sha256 = blocking(move || hash(&of)).await??;
            if sha256 == version.sha256 {
                let (path, synced) = (path.clone(), synced(&source, sha256));
                // If the attributes are the same, the manifest is right as it is.
                self.note(if source.attributes() == version.attributes {
                    StateChange::Refreshed(path, synced)
                } else {
                    StateChange::Synced(path, synced)
                })
                .await?;
                return Ok(UploadOutcome::Same);
            }
        }
        let in_parts = size > self.store.part_size(size) && self.store.takes_parts();
        let sha256 = if in_parts {
            self.send_parts(path, &source, known, credited).await?
        } else if size > self.store.part_size(size) {
            self.send_stream(path, &source, known, credited).await?
        } else {
            self.send_whole(path, &source, content, known, credited)
                .await?
        };
        if self.settings.verify == Verify::ReadBack {
            self.read_back(path, sha256).await?;
        }
        // The version that was sent may differ from the one that was scanned.
        self.progress.resized(planned, size);
        let (path, synced) = (path.clone(), synced(&source, sha256));
        self.note(if in_parts {
            StateChange::Completed(path, synced)
        } else {
            StateChange::Synced(path, synced)
        })
        .await?;
        Ok(UploadOutcome::Sent)
    }

    /// Notes that the store may have another content under the key of a file from
    /// now on. So a process that is killed before it notes the new content leaves no
    /// wrong state.
    async fn replacing(&self, path: &TreePath, known: KnownObject) -> Result<(), StateError> {
        if known == KnownObject::Nothing {
            return Ok(());
        }
        self.keep(StateChange::Replacing(vec![path.clone()])).await
    }

    /// Checks that the store returns the content that was sent.
    async fn read_back(&self, path: &TreePath, sha256: [u8; 32]) -> Result<(), UploadError> {
        let key = self.key(path);
        let read = || async {
            let mut hash = Sha256::new();
            let mut content = self.store.get(&key, None, self.store.context()).await?;
            while let Some(piece) = content.try_next().await? {
                hash.update(&piece);
            }
            Ok::<_, StoreError>(hash.finalize())
        };
        if self.store.with_retry(read).await?[..] == sha256 {
            return Ok(());
        }
        let message = format!("{key} reads back as something else than was sent");
        Err(StoreError::new(StoreErrorKind::Integrity, message).into())
    }

    /// Opens a file. A small file to be sent is read at once: changing threads twice
    /// takes longer than that.
    async fn open(
        &self,
        path: &TreePath,
        is_sent: bool,
    ) -> Result<(Arc<SourceFile>, Option<Hashed>), UploadError> {
        let (root, path) = (self.settings.source.clone(), path.clone());
        let opened = blocking(move || {
            let source = SourceFile::open(&root, &path)?;
            let size = source.state().size;
            let content =
                (is_sent && size <= MAX_READ_AT_OPEN).then(|| read_hashed(&source, 0, size));
            Ok::<_, ReadError>((Arc::new(source), content.transpose()?))
        });
        Ok(opened.await??)
    }

    /// Sends a small file in one request and returns its SHA-256. `ready` is its
    /// content if it has been read already.
    async fn send_whole(
        &self,
        path: &TreePath,
        source: &Arc<SourceFile>,
        mut ready: Option<Hashed>,
        known: KnownObject,
        credited: &AtomicU64,
    ) -> Result<[u8; 32], UploadError> {
        let (key, size) = (&self.key(path), source.state().size);
        self.replacing(path, known).await?;
        let admission = self.store.admit(size).await;
        let sent = self.store.with_retry_admitted(admission, || {
            let ready = ready.take();
            async move {
                // Read once admitted: content that waits is not in memory.
                let (content, sha256) = match ready {
                    Some(ready) => ready,
                    None => read(source, 0, size).await?,
                };
                let request = self.store.begin_request(size);
                let put = self
                    .store
                    .put(key, content, PutMode::Replace, request.context());
                put.await?;
                request.finish();
                credited.fetch_add(size, Ordering::Relaxed);
                Ok(sha256)
            }
        });
        sent.await
    }
}

fn synced(source: &SourceFile, sha256: [u8; 32]) -> Synced {
    Synced {
        attributes: source.attributes(),
        kind: SyncedKind::File {
            state: source.state(),
            sha256,
        },
    }
}

/// How much is read at once to compute a hash, bytes.
const PIECE: u64 = 1024 * 1024;

fn hash(source: &SourceFile) -> Result<[u8; 32], ReadError> {
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

async fn check(source: &Arc<SourceFile>) -> Result<(), UploadError> {
    let source = Arc::clone(source);
    Ok(blocking(move || source.check()).await??)
}

/// Content, and its SHA-256.
type Hashed = (Bytes, [u8; 32]);

async fn read(source: &Arc<SourceFile>, offset: u64, length: u64) -> Result<Hashed, UploadError> {
    let source = Arc::clone(source);
    Ok(blocking(move || read_hashed(&source, offset, length)).await??)
}

fn read_hashed(source: &SourceFile, offset: u64, length: u64) -> Result<Hashed, ReadError> {
    let content = source.read(offset, length as usize)?;
    let sha256 = Sha256::digest(&content).into();
    Ok((Bytes::from(content), sha256))
}
