//! Aborts abandoned uploads: those of versions that are gone, of processes that were
//! killed before they knew an upload's name, and those that could not be aborted in
//! time.
//!
//! The state knows of an upload before the store is asked to begin it, so uploads of
//! other jobs and agents stay. There are no retries: the next run tries again.

use std::collections::HashSet;

use fairbat::blocking::blocking;

use super::job::PushJob;
use super::report::RunProblem;
use crate::state::{JobId, StateChange, StateDatabase, StateError, StateWriter};
use crate::store::{PendingUpload, Store, StoreError};

/// Aborts the abandoned uploads of a job, and the uploads below its place that the
/// state does not know: an agent whose state was lost has begun them. Returns how
/// many. If the place is a whole bucket, unknown uploads stay.
///
/// # Errors
/// The state or the store failed. A later call continues.
pub async fn collect(
    state: &StateDatabase,
    writer: &StateWriter,
    job: &str,
    store: &dyn Store,
    prefix: &str,
) -> Result<u64, RunProblem> {
    let (known, job) = (state.clone(), job.to_owned());
    let (id, _) = blocking(move || known.job(&job)).await??;
    let (aborted_count, failed) = abort_all(state, writer, id, store, prefix, true).await?;
    writer.flush().await;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(aborted_count),
    }
}

impl PushJob {
    /// Aborts what earlier runs have left. Returns how many uploads.
    pub(crate) async fn abort_orphans(&self) -> Result<u64, RunProblem> {
        // The state does not know single small objects that broke off.
        let is_swept = self.store.stores_aside();
        let (state, prefix) = (&self.state, &self.settings.run.prefix);
        let admission = self.store.admit(0).await;
        let (aborted_count, failed) =
            abort_all(state, &self.writer, self.id, &*self.store, prefix, is_swept).await?;
        drop(admission);
        if let Some(error) = failed {
            tracing::warn!(%error, "uploads are left to a later run");
        }
        Ok(aborted_count)
    }
}

/// Aborts the abandoned uploads of a job at its place: a store, and a path there. With
/// `is_swept`, that includes all unknown ones. Returns how many uploads were aborted,
/// and why others were not.
async fn abort_all(
    state: &StateDatabase,
    writer: &StateWriter,
    id: JobId,
    store: &dyn Store,
    prefix: &str,
    is_swept: bool,
) -> Result<(u64, Option<StoreError>), RunProblem> {
    let known = state.clone();
    let known_uploads = blocking(move || KnownUploads::of(&known, id)).await??;
    let is_swept = is_swept && !store.is_shared_by_all(prefix);
    let listed = if is_swept || !known_uploads.begun.is_empty() {
        store.pending(prefix).await
    } else {
        Ok(Vec::new())
    };
    let is_listed = listed.is_ok();
    let (mut aborted_count, mut failed) = (0, None);
    let pending = listed.unwrap_or_else(|error| {
        tracing::warn!(%error, "unfinished uploads cannot be listed");
        // Some stores cannot list them.
        failed = error.may_pass().then_some(error);
        Vec::new()
    });
    for orphan in known_uploads.orphans(pending, is_swept) {
        match store.abort(&orphan.key, &orphan.upload).await {
            Ok(()) => {
                aborted_count += 1;
                let aborted = StateChange::Aborted(orphan.upload);
                writer.note(id, aborted).await?;
            }
            Err(error) => {
                // It would refuse the others, too.
                let is_of_store = error.is_of_store();
                failed = Some(error);
                if is_of_store {
                    break;
                }
            }
        }
    }
    if is_listed && failed.is_none() {
        for key in known_uploads.begun {
            writer.note(id, StateChange::Certain(key)).await?;
        }
    }
    Ok((aborted_count, failed))
}

/// What the state knows about uploads.
#[derive(Debug, Default)]
struct KnownUploads {
    /// Names of the uploads that continue, of all jobs.
    known: HashSet<String>,
    /// The abandoned uploads of the job.
    left: Vec<PendingUpload>,
    /// Keys that may have an upload of unknown name.
    begun: HashSet<String>,
}

impl KnownUploads {
    fn of(state: &StateDatabase, id: JobId) -> Result<Self, StateError> {
        let left = state.left(id)?.into_iter();
        Ok(Self {
            known: state.upload_names()?,
            left: left
                .map(|(key, upload)| PendingUpload { key, upload })
                .collect(),
            begun: state.beginning(id)?,
        })
    }

    /// The uploads to abort, given the pending ones. With `is_swept`, that includes
    /// all unknown ones.
    fn orphans(&self, pending: Vec<PendingUpload>, is_swept: bool) -> Vec<PendingUpload> {
        let is_left = |pending: &PendingUpload| {
            let mut left = self.left.iter();
            left.any(|left| left.upload == pending.upload)
        };
        let unknown = pending.into_iter().filter(|pending| {
            (is_swept || self.begun.contains(&pending.key))
                && !self.known.contains(&pending.upload)
                && !is_left(pending)
        });
        self.left.iter().cloned().chain(unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unfinished_uploads_of_this_job_are_aborted() {
        let known_uploads = KnownUploads {
            known: HashSet::from(["under way".to_owned()]),
            left: vec![PendingUpload {
                key: "a".to_owned(),
                upload: "left".to_owned(),
            }],
            begun: HashSet::from(["home/b".to_owned()]),
        };
        let pending = || {
            let found = [
                ("a", "left"),
                ("home/b", "under way"),
                ("home/b", "unheard"),
                ("home/c", "of somebody else"),
            ];
            found.map(|(key, upload)| PendingUpload {
                key: key.to_owned(),
                upload: upload.to_owned(),
            })
        };
        let names = |orphans: Vec<PendingUpload>| {
            let names = orphans.into_iter().map(|orphan| orphan.upload);
            names.collect::<Vec<_>>()
        };
        let own = known_uploads.orphans(pending().into(), false);
        assert_eq!(names(own), ["left", "unheard"]);
        let all = known_uploads.orphans(pending().into(), true);
        assert_eq!(names(all), ["left", "unheard", "of somebody else"]);
    }
}
