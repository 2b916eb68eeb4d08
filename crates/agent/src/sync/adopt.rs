//! Goes on with a place in a store of which nothing is remembered: after a new
//! installation, or a state that was lost, nothing has to be sent again.
//!
//! What is remembered of one place is not true of another, so a job that has another
//! destination begins like a new one.

use tokio::runtime::Handle;

use super::fetched::Fetched;
use super::manifests::Current;
use super::push::{Job, blocking};
use super::report::RunProblem;
use crate::entry::FileState;
use crate::manifest::{ItemContent, ManifestItem};
use crate::state::{JobRecord, ManifestRecord, PlaceRecord, StateChange, Synced, SyncedKind};

impl Job {
    /// What is remembered of the job, after a look at what the store has.
    pub(super) async fn adopt(&self, record: JobRecord) -> Result<JobRecord, RunProblem> {
        let record = self.of_this_place(record).await?;
        let prefix = &self.settings.prefix;
        let current = self.insist(|| Current::read(&self.store, prefix)).await?;
        let known = record.manifest;
        let Some(current) = current else {
            if known.base == 0 {
                return Ok(record);
            }
            // Somebody has emptied it, or it is another store under this name.
            tracing::warn!("the store has nothing of this job any more: all of it is sent again");
            let record = JobRecord {
                manifest: ManifestRecord::default(),
                ..record
            };
            let forgotten = StateChange::Forgotten(record.clone());
            self.writer.keep(self.id, forgotten).await?;
            return Ok(record);
        };
        if known.base > 0 {
            // What was told, or what was about to be remembered as told.
            let is_ours = current.writer == known.writer
                && (current.base, current.last) >= (known.base, known.last);
            return if is_ours {
                Ok(record)
            } else {
                Err(RunProblem::OtherWriter)
            };
        }
        tracing::info!("taking over what the store has");
        let mut fetched = Fetched::fetch(&self.store, prefix, &current).await?;
        let entries = fetched.entries;
        let (writer, id) = (self.writer.clone(), self.id);
        let runtime = Handle::current();
        blocking(move || {
            for item in fetched.items()? {
                let item = item?;
                let path = item.path.clone();
                runtime
                    .block_on(writer.note(id, StateChange::Refreshed(path, taken_over(item))))?;
            }
            Ok::<_, RunProblem>(())
        })
        .await??;
        let record = JobRecord {
            manifest: ManifestRecord {
                writer: current.writer,
                base: current.base,
                base_entries: entries,
                last: current.last,
                delta_entries: 0,
                is_partial: current.is_partial,
            },
            ..record
        };
        self.writer
            .keep(self.id, StateChange::Job(record.clone()))
            .await?;
        Ok(record)
    }

    /// What is remembered, if it is of the place that the job writes to; else that
    /// is forgotten.
    async fn of_this_place(&self, record: JobRecord) -> Result<JobRecord, RunProblem> {
        let here = PlaceRecord {
            store: self.settings.address.clone(),
            path: self.settings.prefix.clone(),
        };
        if record.place.as_ref() == Some(&here) {
            return Ok(record);
        }
        let is_known_store = record
            .place
            .as_ref()
            .is_some_and(|place| place.store == here.store);
        if record.place.is_some() {
            tracing::info!("the job has another destination: what it had at the old one stays");
        }
        let record = JobRecord {
            place: Some(here),
            manifest: ManifestRecord::default(),
            succeeded: None,
            ..record
        };
        let change = if is_known_store {
            let (state, id) = (self.state.clone(), self.id);
            for (path, upload) in blocking(move || state.uploads(id)).await?? {
                self.leave(&path, &upload).await?;
            }
            StateChange::Forgotten(record.clone())
        } else {
            // They are where nobody asks any more: those are for the collector.
            StateChange::Moved(record.clone())
        };
        self.writer.keep(self.id, change).await?;
        Ok(record)
    }
}

/// An entry of which only the store knew: which version of a file it was, is for
/// its content to show.
fn taken_over(item: ManifestItem) -> Synced {
    Synced {
        attributes: item.attributes,
        kind: match item.content {
            ItemContent::File { size, sha256 } => SyncedKind::File {
                state: FileState {
                    size,
                    changed: crate::entry::Moment::default(),
                    inode: 0,
                    device: 0,
                },
                sha256,
            },
            ItemContent::Directory => SyncedKind::Directory,
            ItemContent::Symlink(target) => {
                SyncedKind::Symlink(target.as_encoded_bytes().to_vec().into())
            }
        },
    }
}
