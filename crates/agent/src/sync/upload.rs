//! One file on its way to a store: as a whole if it is small, in parts if it is
//! not, or piece by piece in one request where a store takes no parts. What is
//! stored under its key is always one version of it.

mod pieces;
mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fairbat::lane::Permit;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

use super::attempts::Failing;
use super::push::Job;
use super::source::{ReadError, Source};
use crate::config::Verify;
use crate::entry::{FileState, Moment, TreePath};
use crate::object_name;
use crate::state::{Change, Part, StateError, Synced, SyncedKind, Upload};
use crate::store::{self, Put, StoreError, StoreErrorKind};

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
    /// Brings a file to the store, whose content there is perhaps `known`
    /// already. `size` is what the plan counted for it.
    pub(super) async fn bring(
        self: &Arc<Self>,
        path: &TreePath,
        size: u64,
        known: Option<[u8; 32]>,
    ) -> Result<Done, FileError> {
        for version in 1..=VERSIONS {
            let credited = Arc::new(AtomicU64::new(0));
            let done = self.bring_version(path, size, known, &credited).await;
            if done.is_err() {
                self.ledger.lost(credited.load(Ordering::Relaxed));
            }
            match done {
                Err(FileError::Read(ReadError::Gone)) => return Ok(Done::Gone),
                Err(FileError::Read(ReadError::Changed)) if version < VERSIONS => {}
                Err(FileError::Store(error)) if error.kind == StoreErrorKind::UploadGone => {
                    // Before the next version asks what is under way.
                    let given_up = Change::GivenUp(path.clone());
                    self.writer.keep(self.id, given_up).await?;
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
        known: Option<[u8; 32]>,
        credited: &Arc<AtomicU64>,
    ) -> Result<Done, FileError> {
        let (source, content) = self.open(path, known.is_none()).await?;
        let size = source.state().size;
        if let Some(known) = known {
            let of = Arc::clone(&source);
            let sha256 = blocking(move || hash(&of)).await??;
            if sha256 == known {
                self.note(Change::Synced(path.clone(), synced(&source, sha256)))?;
                return Ok(Done::Same);
            }
        }
        let sha256 = if size <= self.store.part_size(size) {
            self.send_whole(path, &source, content).await?
        } else if !self.store.takes_parts() {
            self.send_stream(path, &source, credited).await?
        } else {
            self.send_parts(path, &source, credited).await?
        };
        if self.settings.verify == Verify::ReadBack {
            self.read_back(path, sha256).await?;
        }
        // What it is now has been sent, and not what the scan saw.
        self.ledger.resized(planned, size);
        self.note(Change::Synced(path.clone(), synced(&source, sha256)))?;
        Ok(Done::Sent)
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

    async fn send_whole(
        &self,
        path: &TreePath,
        source: &Arc<Source>,
        mut ready: Option<Hashed>,
    ) -> Result<[u8; 32], FileError> {
        let key = self.key(path);
        let size = source.state().size;
        let mut tries = self.attempts.tries();
        loop {
            let permit = self.member.admit().await;
            // Read once it has a permit: what waits is not in memory.
            let (content, sha256) = match ready.take() {
                Some(ready) => ready,
                None => read(source, 0, size).await?,
            };
            let flight = self.ledger.take_off(size, &self.settings.ceilings);
            let put = self
                .store
                .put(&key, content, Put::Replace, flight.passage());
            let Err(error) = put.await else {
                flight.landed();
                return Ok(sha256);
            };
            drop((flight, permit));
            tries.after(&self.member, error).await?;
        }
    }

    /// Sends a file in parts, those that the store does not have yet.
    async fn send_parts(
        self: &Arc<Self>,
        path: &TreePath,
        source: &Arc<Source>,
        credited: &Arc<AtomicU64>,
    ) -> Result<[u8; 32], FileError> {
        let key = self.key(path);
        let (upload, had) = self.resume(path, &key, source).await?;
        let upload = Arc::new(upload);
        let mut whole = Sha256::new();
        let mut names = BTreeMap::new();
        let mut sending = JoinSet::new();
        for (index, range) in parts(source.state().size, upload.part_size) {
            while let Some(sent) = sending.try_join_next() {
                let (index, name) = sent.map_err(|_| FileError::Lost)??;
                names.insert(index, name);
            }
            if let Some(part) = had.get(&index) {
                let (content, sha256) = read(source, range.start, range.end - range.start).await?;
                whole.update(&content);
                if sha256 == part.sha256 {
                    let bytes = content.len() as u64;
                    self.ledger.found(bytes);
                    credited.fetch_add(bytes, Ordering::Relaxed);
                    names.insert(index, part.name.clone());
                    continue;
                }
            }
            // Before it is read: what waits is not in memory.
            let bulk = Arc::clone(&self.bulk).acquire_owned().await;
            let bulk = bulk.map_err(|_| FileError::Lost)?;
            let permit = self.member.admit().await;
            let (content, sha256) = read(source, range.start, range.end - range.start).await?;
            if !had.contains_key(&index) {
                whole.update(&content);
            }
            let part = store::Part {
                index,
                offset: range.start,
                content,
            };
            sending.spawn(Arc::clone(self).send_part(
                permit,
                Sending {
                    _bulk: bulk,
                    path: path.clone(),
                    key: key.clone(),
                    upload: Arc::clone(&upload),
                    part,
                    sha256,
                    credited: Arc::clone(credited),
                },
            ));
        }
        while let Some(sent) = sending.join_next().await {
            let (index, name) = sent.map_err(|_| FileError::Lost)??;
            names.insert(index, name);
        }
        check(source).await?;
        self.complete(&upload, names.into_values().collect())
            .await?;
        Ok(whole.finalize().into())
    }

    /// Makes an object of the parts. An answer that was lost leaves an upload
    /// that is not known any more, and the object that it made.
    async fn complete(&self, upload: &Upload, names: Vec<String>) -> Result<(), FileError> {
        let mut tries = self.attempts.tries();
        loop {
            let permit = self.member.admit().await;
            let complete = self
                .store
                .complete(&upload.key, &upload.name, names.clone());
            let Err(error) = complete.await else {
                return Ok(());
            };
            if error.kind == StoreErrorKind::UploadGone
                && self.store.mark(&upload.key).await? == Some(mark(upload.state, upload.modified))
            {
                return Ok(());
            }
            drop(permit);
            tries.after(&self.member, error.clone()).await?;
            if error.kind == StoreErrorKind::Integrity {
                // What it has is not what it said it has: asking again would not
                // mend that, and so no part counts any more.
                self.store.abort(&upload.key, &upload.name).await?;
                let kind = StoreErrorKind::UploadGone;
                return Err(StoreError { kind, ..error }.into());
            }
        }
    }

    /// The upload of this version that is under way, with the parts that the
    /// store has, or a new one.
    async fn resume(
        &self,
        path: &TreePath,
        key: &str,
        source: &Arc<Source>,
    ) -> Result<(Upload, BTreeMap<u32, Part>), FileError> {
        let (state, job, of) = (self.state.clone(), self.id, path.clone());
        let known = blocking(move || state.upload(job, &of)).await??;
        let version = source.state();
        let modified = source.attributes().modified;
        let part_size = self.store.part_size(version.size);
        if let Some((upload, parts)) = known {
            let is_same = (upload.state, upload.modified) == (version, modified)
                && (upload.key.as_str(), upload.part_size) == (key, part_size);
            if is_same {
                return Ok((upload, parts));
            }
            self.store.abort(&upload.key, &upload.name).await?;
        }
        let mut tries = self.attempts.tries();
        let name = loop {
            let permit = self.member.admit().await;
            match self.store.begin(key, &mark(version, modified)).await {
                Ok(name) => break name,
                Err(error) => {
                    drop(permit);
                    tries.after(&self.member, error).await?;
                }
            }
        };
        let upload = Upload {
            name,
            key: key.to_owned(),
            part_size,
            state: version,
            modified,
        };
        let begun = Change::Begun(path.clone(), upload.clone());
        self.writer.keep(self.id, begun).await?;
        Ok((upload, BTreeMap::new()))
    }

    async fn send_part(
        self: Arc<Self>,
        permit: Permit,
        sending: Sending,
    ) -> Result<(u32, String), FileError> {
        let Sending {
            path,
            key,
            upload,
            part,
            sha256,
            credited,
            _bulk,
        } = sending;
        let index = part.index;
        let (mut permit, mut tries) = (permit, self.attempts.tries());
        let name = loop {
            let bytes = part.content.len() as u64;
            let flight = self.ledger.take_off(bytes, &self.settings.ceilings);
            let part = part.clone();
            let put = self
                .store
                .put_part(&key, &upload.name, part, flight.passage());
            let error = match put.await {
                Ok(name) => {
                    flight.landed();
                    credited.fetch_add(bytes, Ordering::Relaxed);
                    break name;
                }
                Err(error) => error,
            };
            drop((flight, permit));
            tries.after(&self.member, error).await?;
            permit = self.member.admit().await;
        };
        self.note(Change::Arrived(
            path,
            index,
            Part {
                name: name.clone(),
                sha256,
            },
        ))?;
        Ok((index, name))
    }

    /// The key of a file in the store.
    pub(super) fn key(&self, path: &TreePath) -> String {
        object_name::under(&self.settings.prefix, path)
    }

    pub(super) fn note(&self, change: Change) -> Result<(), StateError> {
        self.writer.note(self.id, change)
    }
}

/// A part that is being sent.
struct Sending {
    _bulk: OwnedSemaphorePermit,
    path: TreePath,
    key: String,
    upload: Arc<Upload>,
    part: store::Part,
    sha256: [u8; 32],
    /// Bytes of the version that count as moved.
    credited: Arc<AtomicU64>,
}

/// The parts of a file of this size: their numbers, and their bytes.
fn parts(size: u64, part_size: u64) -> impl Iterator<Item = (u32, std::ops::Range<u64>)> {
    let starts = (0..size).step_by(part_size as usize);
    let ranges = starts.map(move |start| start..(start + part_size).min(size));
    (0..).zip(ranges)
}

/// By what it is known which version an upload has made an object of.
fn mark(state: FileState, modified: Moment) -> String {
    let bytes = postcard::to_stdvec(&(state, modified)).expect("our records can be written down");
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
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

async fn read(source: &Arc<Source>, offset: u64, length: u64) -> Result<Hashed, FileError> {
    let source = Arc::clone(source);
    Ok(blocking(move || read_hashed(&source, offset, length)).await??)
}

/// Some content, and its SHA-256.
type Hashed = (Bytes, [u8; 32]);

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
