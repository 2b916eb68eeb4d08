//! Publishes manifests: what has changed since the last one, or a whole new base when
//! the changes have become many. At the end of a run, and during it as well, so that
//! the manifest is never far behind the store.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairbat::blocking::blocking;
use fairbat::checksum::to_hex;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep_until};

use super::adopt::Adopted;
use super::job::PushJob;
use super::manifest_store::{MAX_STORED, base_key, delta_key, key_failed, keys, write_pointer};
use super::report::RunProblem;
use crate::entry::TreePath;
use crate::manifest::{
    Digest256, ItemContent, JobKey, MAX_DELTAS, ManifestHeader, ManifestItem, ManifestKind,
    ManifestLine, ManifestPointer, ManifestWriteError, ManifestWriter,
};
use crate::state::{JobId, JobRecord, StateChange, StateDatabase, Synced, SyncedKind};
use crate::store::{StoreErrorKind, UploadPart, part_size, parts};

/// Least time between manifests during a run. A pull refuses objects that were
/// replaced after the manifest, or fetches them later.
pub const PUBLISH_INTERVAL: Duration = Duration::from_secs(60);

/// At most this fraction (1 in 10) of the time goes into publishing. A manifest of a
/// million entries takes long over a slow link.
const PUBLISH_SHARE: u32 = 10;

/// Entries that all deltas together may have before a new base is due, ...
const MIN_DELTA_ENTRIES: u64 = 1_000;
/// ... or this fraction of the entries of the base, if that is more. A pull reads all
/// of them.
const DELTA_FRACTION: u64 = 4;
/// How much of a manifest is read at once to hash it, bytes.
const PIECE: usize = 256 * 1024;

/// Why a manifest is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublishReason {
    /// Files are being sent. Later ones are in the next manifest.
    During,
    /// The run ends. Afterwards a manifest exists, even without changes.
    End,
}

/// The manifests of a running push.
#[derive(Debug)]
pub(crate) struct ManifestPublisher {
    job: Arc<PushJob>,
    /// The state of the job, with the manifests that are in the store.
    pub(crate) record: JobRecord,
    /// The pointer in the store, if it can be continued. Otherwise a new base is due.
    pointer: Option<ManifestPointer>,
    /// What the manifests are authenticated with.
    key: Option<JobKey>,
    /// When the next manifest is due.
    next: Instant,
}

impl ManifestPublisher {
    /// The first manifest is due at once.
    pub(crate) fn new(job: Arc<PushJob>, adopted: Adopted, key: Option<JobKey>) -> Self {
        Self {
            job,
            record: adopted.record,
            pointer: adopted.pointer,
            key,
            next: instant(),
        }
    }

    /// Resolves when a manifest is due.
    pub(crate) async fn due(&self) {
        sleep_until(self.next).await;
    }

    /// Publishes a manifest if one is due.
    pub(crate) async fn publish_if_due(&mut self) -> Result<(), RunProblem> {
        if self.next <= instant() {
            self.publish(PublishReason::During).await?;
        }
        Ok(())
    }

    /// Publishes what has changed since the last manifest.
    pub(crate) async fn publish(&mut self, reason: PublishReason) -> Result<(), RunProblem> {
        let began = instant();
        self.publish_changes(reason).await?;
        let took = instant() - began;
        self.next = instant() + pause(self.job.settings.publish_interval, took);
        Ok(())
    }

    async fn publish_changes(&mut self, reason: PublishReason) -> Result<(), RunProblem> {
        let (job, id, known) = (&self.job, self.job.id, self.record.manifest);
        // Changes noted before this are in the manifest; later ones stay
        // unpublished.
        job.keep(StateChange::Telling).await?;
        let state = job.state.clone();
        let changes = blocking(move || state.untold(id).map(Iterator::count)).await?? as u64;
        // A run that succeeds completes what an earlier one began.
        let was_partial = known.is_partial || known.base == 0;
        let is_partial = was_partial && reason == PublishReason::During;
        // Without a delta in between that the state does not know.
        let continued = self.pointer.filter(|pointer| {
            (pointer.writer, pointer.base, pointer.last) == (known.writer, known.base, known.last)
        });
        let is_lost = known.base > 0 && continued.is_none();
        if changes == 0 && was_partial == is_partial && !is_lost {
            return Ok(());
        }
        let max_entries = MIN_DELTA_ENTRIES.max(known.base_entries / DELTA_FRACTION);
        let writer = job.settings.identity;
        // Deltas continue a base of the same writer.
        let is_base = continued.is_none()
            || known.writer != writer
            || known.delta_entries + changes > max_entries
            || known.last - known.base >= MAX_DELTAS;
        let header = ManifestHeader {
            kind: match is_base {
                true => ManifestKind::Base,
                false => ManifestKind::Delta,
            },
            // No manifest is replaced that the pointer in the store may name.
            sequence: 1 + self
                .pointer
                .map_or(known.last, |pointer| pointer.last.max(known.last)),
            created: now(),
        };
        let state = job.state.clone();
        let (file, entries) = blocking(move || write(&state, id, header)).await??;
        let prefix = &job.settings.run.prefix;
        let mut record = self.record.clone();
        let manifest = &mut record.manifest;
        manifest.writer = writer;
        manifest.is_partial = is_partial;
        manifest.last = header.sequence;
        let key = if is_base {
            (manifest.base, manifest.base_entries) = (header.sequence, entries);
            manifest.delta_entries = 0;
            base_key(prefix, writer, header.sequence)
        } else {
            manifest.delta_entries += entries;
            delta_key(prefix, writer, header.sequence)
        };
        let mut pointer = ManifestPointer::from(&*manifest);
        let sha256 = job.send_manifest(&key, file).await?;
        if let Some(key) = &self.key {
            let before = continued.and_then(|pointer| pointer.manifests);
            let before = before.filter(|_| !is_base);
            pointer = pointer.signed(Digest256::and_then(before, sha256), key);
        }
        let written = || write_pointer(&pointer, &*job.store, prefix);
        job.store.with_retry(written).await?;
        job.keep(StateChange::Told(record.clone())).await?;
        self.pointer = Some(pointer);
        if is_base {
            job.keep(StateChange::Intact(TreePath::root())).await?;
        }
        if is_base && known.base > 0 {
            // The old manifests are not valid any more.
            let old = keys(&ManifestPointer::from(&known), prefix);
            if let Err(error) = job.store.delete(old).await {
                tracing::warn!(%error, "old manifests stay");
            }
        }
        self.record = record;
        Ok(())
    }
}

/// Makes the key of a job and keeps it in a file.
pub(crate) async fn make_key(file: PathBuf) -> Result<JobKey, RunProblem> {
    let made = blocking(move || {
        let key = JobKey::generate();
        let written = key.write(&file);
        written.map_err(|error| key_failed(&file, &error))?;
        tracing::info!(
            file = %file.display(),
            "a key was made for the manifests of the job; keep a copy of it elsewhere"
        );
        Ok(key)
    });
    made.await?
}

impl PushJob {
    /// Sends a manifest, in parts if it is large. Returns its SHA-256.
    async fn send_manifest(&self, key: &str, file: File) -> Result<[u8; 32], RunProblem> {
        let file = Arc::new(file);
        let size = file.metadata().map_err(manifest_failed)?.len();
        if size > MAX_STORED / 2 {
            // Its deltas need room as well.
            let what = "the manifest is too large: split the job into several";
            return Err(RunProblem::Manifest(what.to_owned()));
        }
        let sha256 = hash(&file).await?;
        if size <= part_size(size) || !self.store.takes_parts() {
            let content = read(&file, 0..size).await?;
            let put = || self.store.put(key, content.clone(), self.store.context());
            self.store.with_retry(put).await?;
            return Ok(sha256);
        }
        let mark = to_hex(&sha256);
        let begun = self.begin::<RunProblem>(key, &mark).await?;
        let sent = self.send_parts_of(key, &begun.name, &mark, &file).await;
        let is_over = match &sent {
            Ok(()) => true,
            // If it cannot be aborted now, the next run finds it.
            Err(_) => self.store.abort(key, &begun.name).await.is_ok(),
        };
        if is_over && begun.is_only {
            self.note(StateChange::Certain(key.to_owned())).await?;
        }
        sent.map(|()| sha256)
    }

    async fn send_parts_of(
        &self,
        key: &str,
        upload: &str,
        mark: &str,
        file: &Arc<File>,
    ) -> Result<(), RunProblem> {
        let size = file.metadata().map_err(manifest_failed)?.len();
        let mut names = Vec::new();
        for (index, range) in parts(size, part_size(size)) {
            let offset = range.start;
            let content = read(file, range).await?;
            let name = self.store.with_retry(|| {
                let part = UploadPart {
                    index,
                    offset,
                    content: content.clone(),
                };
                self.store.put_part(key, upload, part, self.store.context())
            });
            names.push(name.await?);
        }
        let completed = self
            .store
            .with_retry(|| self.store.complete(key, upload, names.clone()));
        let Err(error) = completed.await else {
            return Ok(());
        };
        // If the answer was lost, the upload may be gone because it succeeded.
        let is_gone = error.kind == StoreErrorKind::UploadGone;
        if is_gone && self.was_made_by(key, &[mark.to_owned()]).await? {
            return Ok(());
        }
        Err(error.into())
    }
}

async fn hash(file: &Arc<File>) -> Result<[u8; 32], RunProblem> {
    let of = Arc::clone(file);
    let digest = blocking(move || {
        let (mut hash, mut offset) = (Sha256::new(), 0);
        let mut piece = vec![0; PIECE];
        loop {
            match of.read_at(&mut piece, offset)? {
                0 => return Ok(hash.finalize().into()),
                length => {
                    hash.update(&piece[..length]);
                    offset += length as u64;
                }
            }
        }
    });
    digest.await?.map_err(manifest_failed)
}

async fn read(file: &Arc<File>, range: Range<u64>) -> Result<Bytes, RunProblem> {
    let file = Arc::clone(file);
    let read = blocking(move || {
        let mut content = vec![0; (range.end - range.start) as usize];
        file.read_exact_at(&mut content, range.start)?;
        Ok(Bytes::from(content))
    });
    read.await?.map_err(manifest_failed)
}

/// Writes a manifest to a temporary file. Returns the file and its number of
/// entries.
fn write(
    state: &StateDatabase,
    job: JobId,
    header: ManifestHeader,
) -> Result<(File, u64), RunProblem> {
    let file = tempfile::tempfile().map_err(manifest_failed)?;
    let failed = |error: ManifestWriteError| RunProblem::Manifest(error.to_string());
    let mut writer = ManifestWriter::new(BufWriter::new(file), header).map_err(failed)?;
    let mut entries = 0;
    let mut put = |record: ManifestLine| match writer.write(&record) {
        Ok(()) => {
            entries += 1;
            Ok(())
        }
        Err(error @ ManifestWriteError::Refused { .. }) => {
            tracing::warn!(%error, "a pull will not bring it back");
            Ok(())
        }
        Err(error) => Err(failed(error)),
    };
    match header.kind {
        ManifestKind::Base => {
            for entry in state.entries(job)? {
                let (path, entry) = entry?;
                put(ManifestLine::Item(item(path, entry)))?;
            }
        }
        ManifestKind::Delta => {
            for entry in state.untold(job)? {
                let (path, entry) = entry?;
                put(match entry {
                    Some(entry) => ManifestLine::Item(item(path, entry)),
                    None => ManifestLine::Removed(path),
                })?;
            }
        }
    }
    let mut output = writer.finish().map_err(failed)?;
    output.flush().map_err(manifest_failed)?;
    let file = output
        .into_inner()
        .map_err(|error| manifest_failed(error.into_error()))?;
    Ok((file, entries))
}

fn item(path: TreePath, entry: Synced) -> ManifestItem {
    ManifestItem {
        path,
        attributes: entry.attributes,
        content: match entry.kind {
            SyncedKind::File { state, sha256 } => ItemContent::File {
                size: state.size,
                sha256,
            },
            SyncedKind::Directory => ItemContent::Directory,
            SyncedKind::Symlink(target) => ItemContent::Symlink(OsStr::from_bytes(&target).into()),
        },
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn manifest_failed(error: io::Error) -> RunProblem {
    RunProblem::Manifest(format!("the manifest cannot be written: {error}"))
}

/// How long to wait after publishing, which `took` so long.
fn pause(every: Duration, took: Duration) -> Duration {
    every.max(took * (PUBLISH_SHARE - 1))
}

#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
fn instant() -> Instant {
    Instant::now()
}

/// The current time.
#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telling_takes_a_tenth_of_the_time_at_most() {
        let s = Duration::from_secs;
        assert_eq!(pause(s(60), s(0)), s(60));
        assert_eq!(pause(s(60), s(6)), s(60));
        assert_eq!(pause(s(60), s(20)), s(180));
    }
}
