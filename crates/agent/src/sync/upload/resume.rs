//! Where an upload in parts continues. It outlives its process: the next process
//! continues it, as long as the file is the same version.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use fairbat::blocking::{LostThread, blocking};
use fairbat::checksum::to_hex;
use md5::Md5;
use sha2::{Digest, Sha256};

use crate::entry::{FileState, Moment, TreePath};
use crate::state::{StateChange, UploadRecord, UploadedPart};
use crate::store::{PartDigest, StoreError, StoreErrorKind, part_size, parts};
use crate::sync::job::PushJob;
use crate::sync::report::MoveError;
use crate::sync::source::{SourceFile, is_settled};

impl PushJob {
    /// Makes an object of the parts. If an answer was lost, the upload may be gone
    /// because it has made the object.
    pub(super) async fn complete(
        &self,
        path: &TreePath,
        upload: &UploadRecord,
        names: Vec<String>,
    ) -> Result<(), MoveError> {
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
    /// begins one. `None` if the store has made the object already.
    pub(super) async fn resume(
        &self,
        path: &TreePath,
        key: &str,
        source: &Arc<SourceFile>,
    ) -> Result<Option<(UploadRecord, StoredParts)>, MoveError> {
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
                return Ok(Some((upload, arrived)));
            } else if self
                .was_made_by(key, &[mark(version, modified, true)])
                .await?
            {
                // An earlier process completed it and was killed before it noted that.
                return Ok(None);
            } else {
                self.note(StateChange::Gone(path.clone())).await?;
            }
        }
        let mark = mark(version, modified, is_settled(version.changed));
        let begun = self.begin::<MoveError>(key, &mark).await?;
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
        Ok(Some((upload, BTreeMap::new())))
    }

    /// The parts that the store has: those in the state, and those whose answer was
    /// lost. `None` if the store does not know the upload any more.
    async fn arrived(
        &self,
        upload: &UploadRecord,
        known: BTreeMap<u32, UploadedPart>,
    ) -> Option<StoredParts> {
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
}

/// The parts that the store has, by number.
pub(super) type StoredParts = BTreeMap<u32, StoredPart>;

/// A part that the store has.
pub(super) struct StoredPart {
    pub(super) name: String,
    /// Digest of its content.
    digest: PartDigest,
}

impl StoredPart {
    /// Whether it has this content, whose SHA-256 is known.
    pub(super) async fn has(&self, content: Bytes, sha256: [u8; 32]) -> Result<bool, LostThread> {
        match self.digest {
            PartDigest::Sha256(digest) => Ok(digest == sha256),
            PartDigest::Md5(digest) => blocking(move || Md5::digest(&content)[..] == digest).await,
        }
    }
}

/// Identifies the version of a file, so that its object can be recognised. Only a
/// version that was `settled` when the upload began is identified for good: another
/// one may have changed since without a new time.
fn mark(state: FileState, modified: Moment, settled: bool) -> String {
    let version = postcard::to_stdvec(&(state, modified, settled));
    let version = version.expect("our records can be written down");
    to_hex(&Sha256::digest(version))
}
