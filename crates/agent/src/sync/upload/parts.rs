//! A large file, in parts. The upload outlives its process: the next process
//! continues it, as long as the file is the same version.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fairbat::blocking::blocking;
use fairbat::checksum::to_hex;
use md5::Md5;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use super::{check, hash, read};
use crate::entry::{FileState, Moment, TreePath};
use crate::state::{StateChange, UploadRecord, UploadedPart};
use crate::store::{Part, PartDigest, StoreError, StoreErrorKind, part_size};
use crate::sync::job::PushJob;
use crate::sync::plan::KnownObject;
use crate::sync::report::{RunProblem, TransferError};
use crate::sync::retry_store::AdmittedRequest;
use crate::sync::source::{SourceFile, is_settled};

impl PushJob {
    /// Sends the parts of a file that the store does not have yet.
    pub(super) async fn send_parts(
        self: &Arc<Self>,
        path: &TreePath,
        source: &Arc<SourceFile>,
        known: KnownObject,
        credited: &Arc<AtomicU64>,
    ) -> Result<[u8; 32], TransferError> {
        let key = self.key(path);
        let (upload, arrived) = match self.resume(path, &key, source).await? {
            Resumption::UnderWay(upload, arrived) => (upload, arrived),
            Resumption::Complete => {
                let (of, size) = (Arc::clone(source), source.state().size);
                let sha256 = blocking(move || hash(&of)).await??;
                self.progress.found(size);
                credited.fetch_add(size, Ordering::Relaxed);
                return Ok(sha256);
            }
        };
        let upload = Arc::new(upload);
        // Parts that wait for a retry count as well: a failing store gets no
        // further ones.
        let most = self.settings.connections as usize;
        let mut whole = Sha256::new();
        let mut names = BTreeMap::new();
        let mut sending = JoinSet::new();
        for (index, range) in parts(source.state().size, upload.part_size) {
            while let Some(sent) = match sending.len() < most {
                true => sending.try_join_next(),
                false => sending.join_next().await,
            } {
                let (index, name) = sent.map_err(RunProblem::from)??;
                names.insert(index, name);
            }
            let length = range.end - range.start;
            if let Some(part) = arrived.get(&index) {
                let (content, sha256) = read(source, range.start, length).await?;
                whole.update(&content);
                if is_of(part.digest, content, sha256).await? {
                    self.progress.found(length);
                    credited.fetch_add(length, Ordering::Relaxed);
                    names.insert(index, part.name.clone());
                    continue;
                }
            }
            // Admitted before it is read: content that waits is not in memory.
            let admission = self.store.admit(length).await;
            let (content, sha256) = read(source, range.start, length).await?;
            if !arrived.contains_key(&index) {
                whole.update(&content);
            }
            let part = Part {
                index,
                offset: range.start,
                content,
            };
            sending.spawn(Arc::clone(self).send_part(
                admission,
                part,
                PartUpload {
                    source: Arc::clone(source),
                    path: path.clone(),
                    record: Arc::clone(&upload),
                    sha256,
                    credited: Arc::clone(credited),
                },
            ));
        }
        while let Some(sent) = sending.join_next().await {
            let (index, name) = sent.map_err(RunProblem::from)??;
            names.insert(index, name);
        }
        check(source).await?;
        self.replacing(path, known).await?;
        self.complete(path, &upload, names.into_values().collect())
            .await?;
        Ok(whole.finalize().into())
    }

    /// Makes an object of the parts. If an answer was lost, the upload may be gone
    /// because it has made the object.
    async fn complete(
        &self,
        path: &TreePath,
        upload: &UploadRecord,
        names: Vec<String>,
    ) -> Result<(), TransferError> {
        let mut retries = self.store.retries();
        loop {
            let admission = self.store.admit(0).await;
            let complete = self
                .store
                .complete(&upload.key, &upload.name, names.clone());
            let Err(error) = complete.await else {
                return Ok(());
            };
            admission.failed(&error);
            if error.kind == StoreErrorKind::UploadGone {
                let (version, modified) = (upload.state, upload.modified);
                let marks = [true, false].map(|settled| mark(version, modified, settled));
                if self.was_made_by(&upload.key, &marks).await? {
                    return Ok(());
                }
            }
            retries.after(error.clone()).await?;
            if error.kind == StoreErrorKind::Integrity {
                // The store has other parts than it said. A retry cannot cure
                // that: all parts are sent again.
                self.abandon(path, upload).await?;
                let kind = StoreErrorKind::UploadGone;
                return Err(StoreError { kind, ..error }.into());
            }
        }
    }

    /// Finds the upload of this version, with the parts that the store has, or
    /// begins one.
    async fn resume(
        &self,
        path: &TreePath,
        key: &str,
        source: &Arc<SourceFile>,
    ) -> Result<Resumption, TransferError> {
        let (state, job, of) = (self.state.clone(), self.id, path.clone());
        let known = blocking(move || state.upload(job, &of)).await??;
        let version = source.state();
        let modified = source.attributes().modified;
        let part_size = part_size(version.size);
        if let Some((upload, parts)) = known {
            let is_same = (upload.state, upload.modified) == (version, modified)
                && (upload.key.as_str(), upload.part_size) == (key, part_size);
            if !is_same {
                self.abandon(path, &upload).await?;
            } else if let Some(arrived) = self.arrived(&upload, parts).await {
                return Ok(Resumption::UnderWay(upload, arrived));
            } else if self
                .was_made_by(key, &[mark(version, modified, true)])
                .await?
            {
                // An earlier process completed it and was killed before it noted that.
                return Ok(Resumption::Complete);
            } else {
                self.note(StateChange::Gone(path.clone())).await?;
            }
        }
        let mark = mark(version, modified, is_settled(version.changed));
        let begun = self.begin::<TransferError>(key, &mark).await?;
        let upload = UploadRecord {
            name: begun.name,
            key: key.to_owned(),
            part_size,
            state: version,
            modified,
        };
        self.keep(StateChange::Begun(path.clone(), upload.clone()))
            .await?;
        if begun.is_only {
            self.note(StateChange::Certain(key.to_owned())).await?;
        }
        Ok(Resumption::UnderWay(upload, BTreeMap::new()))
    }

    /// The parts that the store has: those in the state, and those whose answer was
    /// lost. `None` if the store does not know the upload any more.
    async fn arrived(
        &self,
        upload: &UploadRecord,
        known: BTreeMap<u32, UploadedPart>,
    ) -> Option<BTreeMap<u32, StoredPart>> {
        let known = known.into_iter().map(|(index, part)| {
            let UploadedPart { name, sha256 } = part;
            let digest = PartDigest::Sha256(sha256);
            (index, StoredPart { name, digest })
        });
        let mut arrived: BTreeMap<_, _> = known.collect();
        let lengths: BTreeMap<_, _> = parts(upload.state.size, upload.part_size)
            .map(|(index, range)| (index, range.end - range.start))
            .collect();
        if arrived.len() == lengths.len() {
            return Some(arrived);
        }
        let admission = self.store.admit(0).await;
        let listed = self.store.parts(&upload.key, &upload.name).await;
        drop(admission);
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) if error.kind == StoreErrorKind::UploadGone => return None,
            // The parts are sent again.
            Err(error) => {
                tracing::info!(%error, "it is not known which parts have arrived");
                Vec::new()
            }
        };
        for part in listed {
            // A request that broke off may have left a shorter part. A part
            // without a digest is sent again.
            if lengths.get(&part.index) == Some(&part.size)
                && let Some(digest) = part.digest
            {
                let found = StoredPart {
                    name: part.name,
                    digest,
                };
                arrived.entry(part.index).or_insert(found);
            }
        }
        Some(arrived)
    }

    /// Sends a part that has been admitted and read. It is read again for each
    /// retry.
    async fn send_part(
        self: Arc<Self>,
        admission: AdmittedRequest,
        part: Part,
        upload: PartUpload,
    ) -> Result<(u32, String), TransferError> {
        let Part {
            index,
            offset,
            content,
        } = part;
        let bytes = content.len() as u64;
        let (job, upload) = (&self, &upload);
        let mut content = Some(content);
        let sent = self.store.with_retry_admitted(admission, || {
            let content = content.take();
            async move {
                // The same version, or an error.
                let content = match content {
                    Some(content) => content,
                    None => read(&upload.source, offset, bytes).await?.0,
                };
                let part = Part {
                    index,
                    offset,
                    content,
                };
                let request = job.store.begin_request(bytes);
                let record = &upload.record;
                let put = job
                    .store
                    .put_part(&record.key, &record.name, part, request.context());
                let name = put.await?;
                request.finish();
                upload.credited.fetch_add(bytes, Ordering::Relaxed);
                Ok::<_, TransferError>(name)
            }
        });
        let part = UploadedPart {
            name: sent.await?,
            sha256: upload.sha256,
        };
        let name = part.name.clone();
        self.note(StateChange::Arrived(upload.path.clone(), index, part))
            .await?;
        Ok((index, name))
    }
}

/// Where an upload continues.
enum Resumption {
    UnderWay(UploadRecord, BTreeMap<u32, StoredPart>),
    /// The store has made the object already.
    Complete,
}

/// A part that the store has.
struct StoredPart {
    name: String,
    /// Digest of its content.
    digest: PartDigest,
}

/// Whether a digest matches the content, whose SHA-256 is known.
async fn is_of(
    digest: PartDigest,
    content: Bytes,
    sha256: [u8; 32],
) -> Result<bool, TransferError> {
    match digest {
        PartDigest::Sha256(has) => Ok(has == sha256),
        PartDigest::Md5(has) => Ok(blocking(move || Md5::digest(&content)[..] == has).await?),
    }
}

/// Where a part comes from and goes to.
struct PartUpload {
    source: Arc<SourceFile>,
    path: TreePath,
    record: Arc<UploadRecord>,
    sha256: [u8; 32],
    /// Bytes of this version that count as moved.
    credited: Arc<AtomicU64>,
}

/// The parts of a file of this size: their numbers and ranges.
fn parts(size: u64, part_size: u64) -> impl Iterator<Item = (u32, Range<u64>)> {
    let starts = (0..size).step_by(part_size as usize);
    let ranges = starts.map(move |start| start..(start + part_size).min(size));
    (0..).zip(ranges)
}

/// Identifies the version of a file, so that its object can be recognised. Only a
/// version that was `settled` when the upload began is identified for good: another
/// one may have changed since without a new time.
fn mark(state: FileState, modified: Moment, settled: bool) -> String {
    let version = postcard::to_stdvec(&(state, modified, settled));
    let version = version.expect("our records can be written down");
    to_hex(&Sha256::digest(version))
}
