//! A large file, in parts. They belong to an upload that outlives this process: the
//! next one goes on with it, as long as the file is the version that it was.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fairbat::lane::Permit;
use md5::Md5;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use super::super::push::Job;
use super::super::source::{Source, is_settled};
use super::super::window::Place;
use super::{FileError, Had, blocking, check, hash, read};
use crate::entry::{FileState, Moment, TreePath};
use crate::state::{StateChange, UploadRecord, UploadedPart};
use crate::store::{self, PartDigest, StoreError, StoreErrorKind};

impl Job {
    /// Sends a file in parts, those that the store does not have yet.
    pub(super) async fn send_parts(
        self: &Arc<Self>,
        path: &TreePath,
        source: &Arc<Source>,
        had: Had,
        credited: &Arc<AtomicU64>,
    ) -> Result<[u8; 32], FileError> {
        let key = self.key(path);
        let (upload, arrived) = match self.resume(path, &key, source).await? {
            Resumed::UnderWay(upload, arrived) => (upload, arrived),
            Resumed::Complete => {
                let (of, size) = (Arc::clone(source), source.state().size);
                let sha256 = blocking(move || hash(&of)).await??;
                self.ledger.found(size);
                credited.fetch_add(size, Ordering::Relaxed);
                return Ok(sha256);
            }
        };
        let upload = Arc::new(upload);
        // Those that wait to be tried again count as well: a store that fails is
        // not asked for ever more of them.
        let most = self.settings.connections as usize;
        let mut whole = Sha256::new();
        let mut names = BTreeMap::new();
        let mut sending = JoinSet::new();
        for (index, range) in parts(source.state().size, upload.part_size) {
            while let Some(sent) = match sending.len() < most {
                true => sending.try_join_next(),
                false => sending.join_next().await,
            } {
                let (index, name) = sent.map_err(|_| FileError::Lost)??;
                names.insert(index, name);
            }
            let length = range.end - range.start;
            if let Some(part) = arrived.get(&index) {
                let (content, sha256) = read(source, range.start, length).await?;
                whole.update(&content);
                if is_of(part.digest, content, sha256).await? {
                    self.ledger.found(length);
                    credited.fetch_add(length, Ordering::Relaxed);
                    names.insert(index, part.name.clone());
                    continue;
                }
            }
            // Before it is read: what waits is not in memory.
            let place = self.window.enter(length).await;
            let permit = self.member.admit().await;
            let (content, sha256) = read(source, range.start, length).await?;
            if !arrived.contains_key(&index) {
                whole.update(&content);
            }
            let part = store::Part {
                index,
                offset: range.start,
                content,
            };
            sending.spawn(Arc::clone(self).send_part(
                (place, permit),
                part,
                Sending {
                    source: Arc::clone(source),
                    path: path.clone(),
                    key: key.clone(),
                    upload: Arc::clone(&upload),
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
        self.replacing(path, had).await?;
        self.complete(path, &upload, names.into_values().collect())
            .await?;
        Ok(whole.finalize().into())
    }

    /// Makes an object of the parts. An answer that was lost leaves an upload
    /// that is not known any more, and the object that it made.
    async fn complete(
        &self,
        path: &TreePath,
        upload: &UploadRecord,
        names: Vec<String>,
    ) -> Result<(), FileError> {
        let mut tries = self.attempts.tries();
        loop {
            let permit = self.member.admit().await;
            let complete = self
                .store
                .complete(&upload.key, &upload.name, names.clone());
            let Err(error) = complete.await else {
                return Ok(());
            };
            drop(permit);
            if error.kind == StoreErrorKind::UploadGone {
                let (version, modified) = (upload.state, upload.modified);
                let marks = [true, false].map(|settled| mark(version, modified, settled));
                if self.has_made(&upload.key, &marks).await? {
                    return Ok(());
                }
            }
            tries.after(&self.member, error.clone()).await?;
            if error.kind == StoreErrorKind::Integrity {
                // What it has is not what it said it has: asking again would not
                // mend that, and so no part counts any more.
                self.leave(path, upload).await?;
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
    ) -> Result<Resumed, FileError> {
        let (state, job, of) = (self.state.clone(), self.id, path.clone());
        let known = blocking(move || state.upload(job, &of)).await??;
        let version = source.state();
        let modified = source.attributes().modified;
        let part_size = self.store.part_size(version.size);
        if let Some((upload, parts)) = known {
            let is_same = (upload.state, upload.modified) == (version, modified)
                && (upload.key.as_str(), upload.part_size) == (key, part_size);
            if !is_same {
                self.leave(path, &upload).await?;
            } else if let Some(arrived) = self.arrived(&upload, parts).await {
                return Ok(Resumed::UnderWay(upload, arrived));
            } else if self.has_made(key, &[mark(version, modified, true)]).await? {
                // Who completed it was killed before the last part was remembered.
                return Ok(Resumed::Complete);
            } else {
                self.note(StateChange::Gone(path.clone())).await?;
            }
        }
        let mark = mark(version, modified, is_settled(version.changed));
        let begun = self.begin::<FileError>(key, &mark).await?;
        let upload = UploadRecord {
            name: begun.name,
            key: key.to_owned(),
            part_size,
            state: version,
            modified,
        };
        let under_way = StateChange::Begun(path.clone(), upload.clone());
        self.writer.keep(self.id, under_way).await?;
        if begun.is_only {
            self.note(StateChange::Certain(key.to_owned())).await?;
        }
        Ok(Resumed::UnderWay(upload, BTreeMap::new()))
    }

    /// The parts of an upload that the store has: those that are remembered, and
    /// those of which nobody heard that they had arrived. `None` if the store does
    /// not know it any more.
    async fn arrived(
        &self,
        upload: &UploadRecord,
        known: BTreeMap<u32, UploadedPart>,
    ) -> Option<BTreeMap<u32, Arrived>> {
        let known = known.into_iter().map(|(index, part)| {
            let UploadedPart { name, sha256 } = part;
            let digest = PartDigest::Sha256(sha256);
            (index, Arrived { name, digest })
        });
        let mut arrived: BTreeMap<_, _> = known.collect();
        let lengths: BTreeMap<_, _> = parts(upload.state.size, upload.part_size)
            .map(|(index, range)| (index, range.end - range.start))
            .collect();
        if arrived.len() == lengths.len() {
            return Some(arrived);
        }
        let permit = self.member.admit().await;
        let listed = self.store.parts(&upload.key, &upload.name).await;
        drop(permit);
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) if error.kind == StoreErrorKind::UploadGone => return None,
            // They are sent again.
            Err(error) => {
                tracing::info!(%error, "it is not known which parts have arrived");
                Vec::new()
            }
        };
        for part in listed {
            // What broke off may have left less; and what does not show what is in
            // it is sent again.
            if lengths.get(&part.index) == Some(&part.size)
                && let Some(digest) = part.digest
            {
                let found = Arrived {
                    name: part.name,
                    digest,
                };
                arrived.entry(part.index).or_insert(found);
            }
        }
        Some(arrived)
    }

    /// Sends a part that has been read and has its place. While it waits to be
    /// tried again it keeps neither: nothing else waits for that.
    async fn send_part(
        self: Arc<Self>,
        admitted: (Place, Permit),
        part: store::Part,
        sending: Sending,
    ) -> Result<(u32, String), FileError> {
        let Sending {
            source,
            path,
            key,
            upload,
            sha256,
            credited,
        } = sending;
        let (index, offset) = (part.index, part.offset);
        let bytes = part.content.len() as u64;
        let (mut admitted, mut part) = (admitted, part);
        let mut tries = self.attempts.tries();
        let name = loop {
            let flight = self.ledger.take_off(bytes, &self.settings.rate_limits);
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
            drop((flight, admitted));
            tries.after(&self.member, error).await?;
            let place = self.window.enter(bytes).await;
            admitted = (place, self.member.admit().await);
            // It is the same version, or an error.
            let (content, _) = read(&source, offset, bytes).await?;
            part = store::Part {
                index,
                offset,
                content,
            };
        };
        let part = UploadedPart {
            name: name.clone(),
            sha256,
        };
        self.note(StateChange::Arrived(path, index, part)).await?;
        Ok((index, name))
    }
}

/// What there is to go on with.
enum Resumed {
    UnderWay(UploadRecord, BTreeMap<u32, Arrived>),
    /// Nothing: the store has made the object of it.
    Complete,
}

/// A part that the store has.
struct Arrived {
    name: String,
    /// Of what it has.
    digest: PartDigest,
}

/// Whether a digest is that of some content, whose SHA-256 is known.
async fn is_of(digest: PartDigest, content: Bytes, sha256: [u8; 32]) -> Result<bool, FileError> {
    match digest {
        PartDigest::Sha256(has) => Ok(has == sha256),
        PartDigest::Md5(has) => blocking(move || Md5::digest(&content)[..] == has).await,
    }
}

/// A part that is being sent.
struct Sending {
    source: Arc<Source>,
    path: TreePath,
    key: String,
    upload: Arc<UploadRecord>,
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

/// By what it is known which version an upload has made an object of. Only one that
/// was `settled` when the upload began is known by that for good: what was read of
/// another may be less than what has the same time now.
fn mark(state: FileState, modified: Moment, settled: bool) -> String {
    let version = postcard::to_stdvec(&(state, modified, settled));
    let version = version.expect("our records can be written down");
    let digest = Sha256::digest(version);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
