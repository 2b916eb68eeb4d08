//! One file on its way to a store: whole if it is small, in parts if it is large, or
//! piece by piece in one request where a store takes no parts. The content under a
//! key is always one version of the file.

mod resume;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fairbat::blocking::blocking;
use futures_util::{TryStreamExt, stream};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::job::PushJob;
use super::plan::KnownObject;
use super::report::{EntryFailure, MoveError, RunProblem};
use super::retry_store::AdmittedRequest;
use super::source::{ReadError, SourceFile};
use crate::config::Verify;
use crate::entry::TreePath;
use crate::state::{StateChange, StateError, Synced, SyncedKind, UploadRecord, UploadedPart};
use crate::store::{PieceStream, StoreError, StoreErrorKind, UploadPart, part_size, parts};

/// Attempts for a file that changes while it is read.
const MAX_VERSIONS: usize = 3;

/// Largest file that is read when it is opened, bytes. Such files are in memory while
/// they wait for a permit: at most two more than there are connections.
const MAX_READ_AT_OPEN: u64 = 64 * 1024;

/// How much is read at once to compute a hash or to stream a file, bytes. At most two
/// pieces of a file are in memory.
const PIECE: u64 = 1024 * 1024;

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UploadOutcome {
    /// It was sent.
    Sent,
    /// The store had this content already.
    Same,
}

impl From<ReadError> for MoveError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Gone => Self::Gone,
            ReadError::Changed => Self::Entry(EntryFailure::Changed),
            ReadError::Disk(_) => Self::Entry(EntryFailure::Unreadable(error.to_string())),
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
        mut known: KnownObject,
    ) -> Result<UploadOutcome, MoveError> {
        for version in 1..=MAX_VERSIONS {
            let credited = Arc::new(AtomicU64::new(0));
            let done = self.upload_version(path, size, known, &credited).await;
            // The object may have changed by now.
            known = KnownObject::Something;
            if done.is_err() {
                self.progress.lost(credited.load(Ordering::Relaxed));
            }
            match done {
                Err(MoveError::Entry(EntryFailure::Changed)) if version < MAX_VERSIONS => {}
                Err(MoveError::Entry(EntryFailure::Store(error)))
                    if error.kind == StoreErrorKind::UploadGone =>
                {
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
    ) -> Result<UploadOutcome, MoveError> {
        let is_sent = !matches!(known, KnownObject::Version { .. });
        let (source, content) = self.open(path, is_sent).await?;
        let size = source.state().size;
        if let KnownObject::Version { sha256, attributes } = known {
            let of = Arc::clone(&source);
            if blocking(move || hash(&of)).await?? == sha256 {
                let (path, synced) = (path.clone(), synced(&source, sha256));
                // If the attributes are the same, the manifest is right as it is.
                self.note(if source.attributes() == attributes {
                    StateChange::Refreshed(path, synced)
                } else {
                    StateChange::Synced(path, synced)
                })
                .await?;
                return Ok(UploadOutcome::Same);
            }
        }
        let is_large = size > part_size(size);
        let in_parts = is_large && self.store.takes_parts();
        let sha256 = if in_parts {
            self.send_parts(path, &source, known, credited).await?
        } else if is_large {
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
    async fn read_back(&self, path: &TreePath, sha256: [u8; 32]) -> Result<(), MoveError> {
        let key = self.key(path);
        let read = || async {
            let mut hash = Sha256::new();
            let mut content = self.store.get(&key, self.store.context()).await?;
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
    ) -> Result<(Arc<SourceFile>, Option<Hashed>), MoveError> {
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
    ) -> Result<[u8; 32], MoveError> {
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
                self.store.put(key, content, request.context()).await?;
                request.finish();
                credited.fetch_add(size, Ordering::Relaxed);
                Ok(sha256)
            }
        });
        sent.await
    }

    /// Sends the parts of a large file that the store does not have yet.
    async fn send_parts(
        self: &Arc<Self>,
        path: &TreePath,
        source: &Arc<SourceFile>,
        known: KnownObject,
        credited: &Arc<AtomicU64>,
    ) -> Result<[u8; 32], MoveError> {
        let size = source.state().size;
        let resumed = self.resume(path, &self.key(path), source).await?;
        let Some((record, arrived)) = resumed else {
            let of = Arc::clone(source);
            let sha256 = blocking(move || hash(&of)).await??;
            self.progress.found(size);
            credited.fetch_add(size, Ordering::Relaxed);
            return Ok(sha256);
        };
        let upload = Arc::new(MultipartUpload {
            job: Arc::clone(self),
            path: path.clone(),
            source: Arc::clone(source),
            record,
            credited: Arc::clone(credited),
        });
        // Parts that wait for a retry count as well: a failing store gets no
        // further ones.
        let most = self.settings.run.connections as usize;
        let mut whole = Sha256::new();
        let mut names = BTreeMap::new();
        let mut sending = JoinSet::new();
        for (index, range) in parts(size, upload.record.part_size) {
            while let Some(sent) = match sending.len() < most {
                true => sending.try_join_next(),
                false => sending.join_next().await,
            } {
                names.extend([sent.map_err(RunProblem::from)??]);
            }
            let (offset, length) = (range.start, range.end - range.start);
            if let Some(part) = arrived.get(&index) {
                let (content, sha256) = read(source, offset, length).await?;
                whole.update(&content);
                if part.has(content, sha256).await? {
                    self.progress.found(length);
                    credited.fetch_add(length, Ordering::Relaxed);
                    names.insert(index, part.name.clone());
                    continue;
                }
            }
            // Admitted before it is read: content that waits is not in memory.
            let admission = self.store.admit(length).await;
            let (content, sha256) = read(source, offset, length).await?;
            if !arrived.contains_key(&index) {
                whole.update(&content);
            }
            let part = UploadPart {
                index,
                offset,
                content,
            };
            sending.spawn(Arc::clone(&upload).send_part(admission, part, sha256));
        }
        while let Some(sent) = sending.join_next().await {
            names.extend([sent.map_err(RunProblem::from)??]);
        }
        check(source).await?;
        self.replacing(path, known).await?;
        self.complete(path, &upload.record, names.into_values().collect())
            .await?;
        Ok(whole.finalize().into())
    }

    /// Sends a large file to a store that takes no parts, and places it if it is still
    /// the version that was sent. The request holds its permit throughout.
    async fn send_stream(
        &self,
        path: &TreePath,
        source: &Arc<SourceFile>,
        known: KnownObject,
        credited: &AtomicU64,
    ) -> Result<[u8; 32], MoveError> {
        let (key, size) = (&self.key(path), source.state().size);
        self.replacing(path, known).await?;
        let sent = self.store.with_retry(|| async move {
            let request = self.store.begin_request(size);
            let (end, mut ended) = oneshot::channel();
            let pieces = pieces(Arc::clone(source), end);
            let put = self.store.put_stream(key, size, pieces, request.context());
            match (put.await, ended.try_recv()) {
                (_, Ok(Err(error))) => Err(error.into()),
                (Ok(staged), Ok(Ok(sha256))) => {
                    request.finish();
                    credited.fetch_add(size, Ordering::Relaxed);
                    Ok((staged, sha256))
                }
                // The file was not read to its end.
                (Ok(_), Err(_)) => Err(MoveError::Run(RunProblem::Lost)),
                (Err(error), _) => Err(error.into()),
            }
        });
        let (mut staged, sha256) = sent.await?;
        check(source).await?;
        let mut retries = self.store.retries();
        loop {
            let admission = self.store.admit(0).await;
            let Err(error) = self.store.place(&mut staged).await else {
                return Ok(sha256);
            };
            admission.failed(&error);
            retries.after(error).await?;
        }
    }
}

/// A file that is being sent in parts.
struct MultipartUpload {
    job: Arc<PushJob>,
    path: TreePath,
    source: Arc<SourceFile>,
    record: UploadRecord,
    /// Bytes of this version that count as moved.
    credited: Arc<AtomicU64>,
}

impl MultipartUpload {
    /// Sends a part that has been admitted and read; gives its number and name. It is
    /// read again for each retry.
    async fn send_part(
        self: Arc<Self>,
        admission: AdmittedRequest,
        part: UploadPart,
        sha256: [u8; 32],
    ) -> Result<(u32, String), MoveError> {
        let (store, record) = (&self.job.store, &self.record);
        let (index, offset, bytes) = (part.index, part.offset, part.content.len() as u64);
        let (source, mut ready) = (&self.source, Some(part.content));
        let sent = store.with_retry_admitted(admission, || {
            let ready = ready.take();
            async move {
                let content = match ready {
                    Some(content) => content,
                    // The same version, or an error.
                    None => read(source, offset, bytes).await?.0,
                };
                let part = UploadPart {
                    index,
                    offset,
                    content,
                };
                let request = store.begin_request(bytes);
                let put = store.put_part(&record.key, &record.name, part, request.context());
                let name = put.await?;
                request.finish();
                Ok::<_, MoveError>(name)
            }
        });
        let name = sent.await?;
        self.credited.fetch_add(bytes, Ordering::Relaxed);
        let part = UploadedPart {
            name: name.clone(),
            sha256,
        };
        let arrived = StateChange::Arrived(self.path.clone(), index, part);
        self.job.note(arrived).await?;
        Ok((index, name))
    }
}

/// The SHA-256 of a file that was read to its end, or why it could not be read.
type ReadToEnd = Result<[u8; 32], ReadError>;

/// Where the next piece of a file begins (bytes), the hash of those before it, and the
/// receiver of the outcome.
type Unread = (u64, Sha256, oneshot::Sender<ReadToEnd>);

/// A file, piece by piece, each read when it is asked for. The source is checked after
/// each piece, so all pieces are of one version. `end` learns how the reading ended.
fn pieces(source: Arc<SourceFile>, end: oneshot::Sender<ReadToEnd>) -> PieceStream {
    let size = source.state().size;
    let next = move |unread: Option<Unread>| {
        let source = Arc::clone(&source);
        async move {
            let Some((offset, mut whole, end)) = unread else {
                return Ok(None);
            };
            let length = (size - offset).min(PIECE);
            let read = blocking(move || {
                let piece = source.read(offset, length as usize)?;
                whole.update(&piece);
                Ok::<_, ReadError>((piece, whole))
            });
            let read = read
                .await
                .unwrap_or_else(|lost| Err(ReadError::Disk(lost.into())));
            let (piece, whole) = match read {
                Ok(read) => read,
                Err(error) => {
                    let _ = end.send(Err(error));
                    return Err("the file cannot be read on".into());
                }
            };
            let unread = if offset + length < size {
                Some((offset + length, whole, end))
            } else {
                let _ = end.send(Ok(whole.finalize().into()));
                None
            };
            Ok(Some((Bytes::from(piece), unread)))
        }
    };
    Box::pin(stream::try_unfold(Some((0, Sha256::new(), end)), next))
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

async fn check(source: &Arc<SourceFile>) -> Result<(), MoveError> {
    let source = Arc::clone(source);
    Ok(blocking(move || source.check()).await??)
}

/// Content, and its SHA-256.
type Hashed = (Bytes, [u8; 32]);

async fn read(source: &Arc<SourceFile>, offset: u64, length: u64) -> Result<Hashed, MoveError> {
    let source = Arc::clone(source);
    Ok(blocking(move || read_hashed(&source, offset, length)).await??)
}

fn read_hashed(source: &SourceFile, offset: u64, length: u64) -> Result<Hashed, ReadError> {
    let content = source.read(offset, length as usize)?;
    let sha256 = Sha256::digest(&content).into();
    Ok((Bytes::from(content), sha256))
}
