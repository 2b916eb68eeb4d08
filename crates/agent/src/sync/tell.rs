//! Tells the store what a pull needs to know: a manifest of what has changed, or a
//! whole one when the changes have become many.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use fairbat::transport::RequestContext;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::manifests::{Current, base_key, delta_key};
use super::push::{Job, blocking};
use super::report::RunProblem;
use crate::entry::TreePath;
use crate::manifest::{
    ItemContent, ManifestHeader, ManifestItem, ManifestKind, ManifestWriteError, ManifestWriter,
    Record,
};
use crate::state::{JobId, JobRecord, StateChange, StateDatabase, Synced, SyncedKind};
use crate::store::{Part, PutMode, StoreError, StoreErrorKind};

/// Deltas may have so many entries together before there is a new base, ...
const DELTAS_LEAST: u64 = 1_000;
/// ... or so many of those of the base: whoever reads them reads all.
const DELTAS_SHARE: u64 = 4;
/// So many deltas there may be: each is a request more for who reads them.
const DELTAS_MOST: u64 = 50;

/// What is read of a manifest at once to find its hash, bytes.
const PIECE: usize = 256 * 1024;

/// When the store is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// Files are under way: what comes meanwhile is told the next time.
    During,
    /// There is a manifest afterwards, also where there is nothing to say.
    End,
}

impl Job {
    /// Tells the store what it has not been told yet. Returns what is known of the
    /// job then.
    pub(super) async fn tell(
        &self,
        mut record: JobRecord,
        now: Timestamp,
        occasion: Occasion,
    ) -> Result<JobRecord, RunProblem> {
        let known = record.manifest;
        // What has been noted by now is counted in, and nothing that is noted from
        // now on counts as told.
        self.writer.keep(self.id, StateChange::Telling).await?;
        let (state, id) = (self.state.clone(), self.id);
        let untold =
            blocking(move || Ok::<_, RunProblem>(state.untold(id)?.count() as u64)).await??;
        // A run that gets through makes whole what was begun without one.
        let is_partial = known.is_partial || known.base == 0;
        let is_partial_still = is_partial && occasion == Occasion::During;
        if untold == 0 && is_partial == is_partial_still {
            return Ok(record);
        }
        let most = DELTAS_LEAST.max(known.base_entries / DELTAS_SHARE);
        let writer = self.settings.identity;
        // Deltas go on from a base of the same writer.
        let is_base = known.base == 0
            || known.writer != writer
            || known.delta_entries + untold > most
            || known.last - known.base >= DELTAS_MOST;
        let header = ManifestHeader {
            kind: if is_base {
                ManifestKind::Base
            } else {
                ManifestKind::Delta
            },
            sequence: known.last + 1,
            created: now,
            entries: None,
        };
        let state = self.state.clone();
        let (file, entries) = blocking(move || write(&state, id, header)).await??;
        let prefix = &self.settings.prefix;
        let told = &mut record.manifest;
        told.writer = writer;
        told.is_partial = is_partial_still;
        told.last = header.sequence;
        let key = if is_base {
            (told.base, told.base_entries, told.delta_entries) = (header.sequence, entries, 0);
            base_key(prefix, writer, header.sequence)
        } else {
            told.delta_entries += entries;
            delta_key(prefix, writer, header.sequence)
        };
        self.send_file(&key, file).await?;
        let current = Current::of(told);
        self.insist(|| current.write(&self.store, prefix)).await?;
        self.writer
            .keep(id, StateChange::Told(record.clone()))
            .await?;
        if is_base && known.base > 0 {
            // What does not count any more is only in the way.
            let old = Current::of(&known).keys(prefix);
            if let Err(error) = self.store.delete(old).await {
                tracing::warn!(%error, "old manifests stay");
            }
        }
        Ok(record)
    }

    /// Sends a file of our own making.
    async fn send_file(&self, key: &str, file: File) -> Result<(), RunProblem> {
        let file = Arc::new(file);
        let size = file.metadata().map_err(spool_failed)?.len();
        if size <= self.store.part_size(size) || !self.store.takes_parts() {
            let content = read(&file, 0..size).await?;
            self.insist(|| {
                let content = content.clone();
                self.store
                    .put(key, content, PutMode::Replace, self.passage())
            })
            .await?;
            return Ok(());
        }
        let mark = mark(&file).await?;
        let begun = self.begin::<RunProblem>(key, &mark).await?;
        let sent = self.send_parts_of(key, &begun.name, &mark, &file).await;
        let is_over = match &sent {
            Ok(()) => true,
            // What cannot be given up now is found by the next run.
            Err(_) => self.store.abort(key, &begun.name).await.is_ok(),
        };
        if is_over && begun.is_only {
            self.note(StateChange::Certain(key.to_owned())).await?;
        }
        sent
    }

    async fn send_parts_of(
        &self,
        key: &str,
        upload: &str,
        mark: &str,
        file: &Arc<File>,
    ) -> Result<(), RunProblem> {
        let size = file.metadata().map_err(spool_failed)?.len();
        let part_size = self.store.part_size(size);
        let mut names = Vec::new();
        for (index, offset) in (0..).zip((0..size).step_by(part_size as usize)) {
            let content = read(file, offset..size.min(offset + part_size)).await?;
            let name = self.insist(|| {
                let part = Part {
                    index,
                    offset,
                    content: content.clone(),
                };
                self.store.put_part(key, upload, part, self.passage())
            });
            names.push(name.await?);
        }
        let completed = self.insist(|| self.store.complete(key, upload, names.clone()));
        let Err(error) = completed.await else {
            return Ok(());
        };
        // An answer that was lost leaves an upload that is not known any more.
        let is_gone = error.kind == StoreErrorKind::UploadGone;
        if is_gone && self.has_made(key, &[mark.to_owned()]).await? {
            return Ok(());
        }
        Err(error.into())
    }

    /// Of what is no file of the source.
    pub(super) fn passage(&self) -> RequestContext {
        RequestContext {
            ceilings: self.settings.rate_limits.clone(),
            ..RequestContext::default()
        }
    }

    /// Asks the store until it does what it is asked, or there is no hope.
    pub(super) async fn insist<T, F>(&self, ask: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut tries = self.attempts.tries();
        loop {
            let permit = self.member.admit().await;
            match ask().await {
                Ok(done) => return Ok(done),
                Err(error) => {
                    drop(permit);
                    tries.after(&self.member, error).await?;
                }
            }
        }
    }
}

/// By what it is known that an upload of a file has made an object: its SHA-256.
async fn mark(file: &Arc<File>) -> Result<String, RunProblem> {
    let of = Arc::clone(file);
    let digest = blocking(move || {
        let (mut hash, mut offset) = (Sha256::new(), 0);
        let mut piece = vec![0; PIECE];
        loop {
            match of.read_at(&mut piece, offset)? {
                0 => return Ok(hash.finalize()),
                length => {
                    hash.update(&piece[..length]);
                    offset += length as u64;
                }
            }
        }
    });
    let digest = digest.await?.map_err(spool_failed)?;
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

async fn read(file: &Arc<File>, range: Range<u64>) -> Result<Bytes, RunProblem> {
    let file = Arc::clone(file);
    let read = blocking(move || {
        let mut content = vec![0; (range.end - range.start) as usize];
        file.read_exact_at(&mut content, range.start)?;
        Ok(Bytes::from(content))
    });
    read.await?.map_err(spool_failed)
}

/// Writes a manifest to a file without a name; returns it, and how many entries it
/// has.
fn write(
    state: &StateDatabase,
    job: JobId,
    header: ManifestHeader,
) -> Result<(File, u64), RunProblem> {
    let file = tempfile::tempfile().map_err(spool_failed)?;
    let failed = |error: ManifestWriteError| RunProblem::Manifest(error.to_string());
    let mut writer = ManifestWriter::new(BufWriter::new(file), header).map_err(failed)?;
    let mut entries = 0;
    let mut put = |record: Record| match writer.write(&record) {
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
                put(Record::Item(item(path, entry)))?;
            }
        }
        ManifestKind::Delta => {
            for entry in state.untold(job)? {
                let (path, entry) = entry?;
                put(match entry {
                    Some(entry) => Record::Item(item(path, entry)),
                    None => Record::Removed(path),
                })?;
            }
        }
    }
    let mut output = writer.finish().map_err(failed)?;
    output.flush().map_err(spool_failed)?;
    let file = output
        .into_inner()
        .map_err(|error| spool_failed(error.into_error()))?;
    Ok((file, entries))
}

fn item(path: TreePath, entry: Synced) -> ManifestItem {
    use std::os::unix::ffi::OsStrExt;
    ManifestItem {
        path,
        attributes: entry.attributes,
        content: match entry.kind {
            SyncedKind::File { state, sha256 } => ItemContent::File {
                size: state.size,
                sha256,
            },
            SyncedKind::Directory => ItemContent::Directory,
            SyncedKind::Symlink(target) => {
                ItemContent::Symlink(std::ffi::OsStr::from_bytes(&target).into())
            }
        },
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn spool_failed(error: io::Error) -> RunProblem {
    RunProblem::Manifest(format!("the manifest cannot be written: {error}"))
}
