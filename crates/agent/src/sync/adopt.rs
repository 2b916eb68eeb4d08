//! Continues a place in a store that the state does not know: after a new
//! installation or a lost state, nothing has to be sent again.
//!
//! State of one place does not hold for another. So a job with a new destination
//! begins like a new job.

use fairbat::blocking::blocking;
use tokio::runtime::Handle;

use super::job::PushJob;
use super::manifest_store::{FetchedManifests, ManifestPointer};
use super::report::RunProblem;
use crate::entry::{FileState, Moment};
use crate::manifest::{ItemContent, ManifestItem};
use crate::state::{JobRecord, ManifestRecord, PlaceRecord, StateChange, Synced, SyncedKind};

impl PushJob {
    /// The record of the job, once it agrees with the store.
    pub(crate) async fn adopt(&self, record: JobRecord) -> Result<JobRecord, RunProblem> {
        let record = self.of_this_place(record).await?;
        let prefix = &self.settings.run.prefix;
        let current = self
            .store
            .with_retry(|| ManifestPointer::read(&*self.store, prefix))
            .await?;
        let known = record.manifest;
        let Some(current) = current else {
            if known.base == 0 {
                return Ok(record);
            }
            // The store was emptied, or is another one under the same name.
            tracing::warn!("the store has nothing of this job any more: all of it is sent again");
            let record = JobRecord {
                manifest: ManifestRecord::default(),
                ..record
            };
            let forgotten = StateChange::Forgotten(record.clone());
            self.keep(forgotten).await?;
            return Ok(record);
        };
        if known.base > 0 {
            // The published manifest, or one whose publication was not noted.
            let is_ours = current.writer == known.writer
                && (current.base, current.last) >= (known.base, known.last);
            return if is_ours {
                Ok(record)
            } else {
                Err(RunProblem::OtherWriter)
            };
        }
        tracing::info!("taking over what the store has");
        let mut fetched = FetchedManifests::fetch(&*self.store, prefix, &current).await?;
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
        self.keep(StateChange::Job(record.clone())).await?;
        Ok(record)
    }

    /// The record, if it is of the place that the job writes to. Otherwise the record
    /// is reset.
    async fn of_this_place(&self, record: JobRecord) -> Result<JobRecord, RunProblem> {
        let here = PlaceRecord {
            store: self.settings.address.clone(),
            path: self.settings.run.prefix.clone(),
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
                self.abandon(&path, &upload).await?;
            }
            StateChange::Forgotten(record.clone())
        } else {
            // The uploads are in a store that this job does not use any more: `collect`
            // aborts them.
            StateChange::Moved(record.clone())
        };
        self.keep(change).await?;
        Ok(record)
    }
}

/// An entry that only the store knew. The version of a file shows when its content is
/// compared.
fn taken_over(item: ManifestItem) -> Synced {
    Synced {
        attributes: item.attributes,
        kind: match item.content {
            ItemContent::File { size, sha256 } => SyncedKind::File {
                state: FileState {
                    size,
                    changed: Moment::default(),
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
