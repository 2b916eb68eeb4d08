//! Continues a place in a store that the state does not know: after a new
//! installation or a lost state, nothing has to be sent again.
//!
//! State of one place does not hold for another. So a job with a new destination
//! begins like a new job.

use fairbat::blocking::blocking;
use tokio::runtime::Handle;

use super::job::PushJob;
use super::manifest_store::{FetchedManifests, NO_KEY, base_key, read_pointer, unusable};
use super::report::RunProblem;
use crate::entry::{FileState, Moment, TreePath};
use crate::manifest::{Authenticity, ItemContent, JobKey, ManifestItem, ManifestPointer};
use crate::state::{JobRecord, ManifestRecord, PlaceRecord, StateChange, Synced, SyncedKind};
use crate::store::StoreErrorKind;

/// A job at its place.
pub(crate) struct Adopted {
    /// Its record, which agrees with the store.
    pub(crate) record: JobRecord,
    /// The pointer in the store, if it can be continued.
    pub(crate) pointer: Option<ManifestPointer>,
}

impl PushJob {
    /// The record of the job, once it agrees with the store. `key` is the key that the
    /// job had before, if it authenticates.
    pub(crate) async fn adopt(
        &self,
        record: JobRecord,
        key: Option<&JobKey>,
    ) -> Result<Adopted, RunProblem> {
        let record = self.of_this_place(record).await?;
        let prefix = &self.settings.run.prefix;
        let read = || read_pointer(&*self.store, prefix);
        let current = match self.store.with_retry(read).await? {
            Some(Ok(current)) => current,
            None => return self.without_pointer(record).await,
            // What the state knows is written anew.
            Some(Err(error)) if record.manifest.base > 0 && !error.is_of_later_version() => {
                tracing::warn!(%error, "the pointer to the manifests is damaged, and written anew");
                return Ok(Adopted::without_pointer(record));
            }
            Some(Err(error)) => return Err(unusable(prefix, &error)),
        };
        let authenticity = key.map(|key| current.authenticity(key));
        let key_file = &self.settings.run.key_file;
        let is_genuine = key_file.is_none() || authenticity == Some(Authenticity::Genuine);
        let known = record.manifest;
        let (state, id) = (self.state.clone(), self.id);
        let damaged = blocking(move || state.damaged(id)).await??;
        let is_intact = !damaged.contains(&TreePath::root());
        let pointer = (is_genuine && is_intact).then_some(current);
        if known.base > 0 {
            // The published manifest, or one whose publication was not noted.
            let is_ours = current.writer == known.writer
                && (current.base, current.last) >= (known.base, known.last);
            if !is_ours {
                return Err(RunProblem::OtherWriter);
            }
            if authenticity == Some(Authenticity::Wrong) {
                tracing::warn!("the manifests in the store are not ours, and are written anew");
            }
            return Ok(Adopted { record, pointer });
        }
        tracing::info!("taking over what the store has");
        // A store without authenticators is taken over, and gets one. So is the place of
        // another job: the source decides what is pushed, whatever is there.
        let key = key.filter(|_| authenticity == Some(Authenticity::Genuine));
        if key_file.is_some() && key.is_none() {
            let why = match authenticity {
                Some(Authenticity::Wrong) => "its manifests have the key of another job",
                _ => NO_KEY,
            };
            tracing::warn!("whoever can write to the store may have changed it: {why}");
        }
        let fetched = FetchedManifests::fetch(&*self.store, prefix, &current, key).await?;
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
        Ok(Adopted { record, pointer })
    }

    /// The store has no pointer: nothing was pushed yet, the store was emptied, or the
    /// pointer alone is lost.
    async fn without_pointer(&self, record: JobRecord) -> Result<Adopted, RunProblem> {
        let known = record.manifest;
        if known.base == 0 {
            return Ok(Adopted::without_pointer(record));
        }
        let base = base_key(&self.settings.run.prefix, known.writer, known.base);
        let get = || self.store.get(&base, self.store.context());
        match self.store.with_retry(get).await {
            Ok(_) => {
                tracing::warn!("the pointer to the manifests is missing, and written anew");
                return Ok(Adopted::without_pointer(record));
            }
            Err(error) if error.kind == StoreErrorKind::Missing => {}
            Err(error) => return Err(error.into()),
        }
        // The store was emptied, or is another one under the same name.
        tracing::warn!("the store has nothing of this job any more: all of it is sent again");
        let record = JobRecord {
            manifest: ManifestRecord::default(),
            ..record
        };
        let forgotten = StateChange::Forgotten(record.clone());
        self.keep(forgotten).await?;
        Ok(Adopted::without_pointer(record))
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

impl Adopted {
    fn without_pointer(record: JobRecord) -> Self {
        let pointer = None;
        Self { record, pointer }
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
