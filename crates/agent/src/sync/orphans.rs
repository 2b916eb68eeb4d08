//! Uploads that nobody goes on with: of versions that are gone, of processes that
//! were killed before they heard what an upload is called, and those that could
//! not be given up when it was time to.
//!
//! What is ours is remembered before a store is asked for it, so uploads of other
//! jobs and other agents stay. A store is asked once: what it does not do now is
//! left to the next run, for a run is there to send files.

use std::collections::HashSet;

use super::push::{Job, blocking};
use super::report::RunProblem;
use crate::entry::TreePath;
use crate::state::{JobId, StateChange, StateDatabase, StateError, StateWriter, UploadRecord};
use crate::store::{PendingUpload, Store, StoreError};

/// Gives up the uploads of a job that nobody will go on with, and those below its
/// place that this agent does not remember: an agent whose state was lost has begun
/// them. Returns how many. Where a place is all of a bucket, only the former are
/// looked for.
///
/// # Errors
/// The state, or the store: what could not be given up is remembered.
pub async fn collect(
    state: &StateDatabase,
    writer: &StateWriter,
    job: &str,
    store: &Store,
    prefix: &str,
) -> Result<u64, RunProblem> {
    let (known, job) = (state.clone(), job.to_owned());
    let (id, _) = blocking(move || known.job(&job)).await??;
    let place = Place {
        state,
        writer,
        id,
        store,
        prefix,
    };
    let (given_up, failed) = place.give_up(true).await?;
    writer.flush().await;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(given_up),
    }
}

impl Job {
    /// Nobody will go on with an upload: gives it up, now or, where the store does
    /// not do that now, in a later run.
    pub(super) async fn leave(
        &self,
        path: &TreePath,
        upload: &UploadRecord,
    ) -> Result<(), StateError> {
        self.writer
            .keep(self.id, StateChange::Left(path.clone()))
            .await?;
        let permit = self.member.admit().await;
        let aborted = self.store.abort(&upload.key, &upload.name).await;
        drop(permit);
        match aborted {
            Ok(()) => self.note(StateChange::Aborted(upload.name.clone())).await,
            Err(error) => {
                tracing::warn!(%error, "an upload is left to a later run");
                Ok(())
            }
        }
    }

    /// Gives up what earlier runs have left; returns how many uploads.
    pub(super) async fn give_up_orphans(&self) -> Result<u64, RunProblem> {
        let place = Place {
            state: &self.state,
            writer: &self.writer,
            id: self.id,
            store: &self.store,
            prefix: &self.settings.prefix,
        };
        // Small objects that broke off are not remembered one by one.
        let is_swept = self.store.stores_aside();
        let permit = self.member.admit().await;
        let (given_up, failed) = place.give_up(is_swept).await?;
        drop(permit);
        if let Some(error) = failed {
            tracing::warn!(%error, "uploads are left to a later run");
        }
        Ok(given_up)
    }
}

/// Where a job keeps its files.
struct Place<'a> {
    state: &'a StateDatabase,
    writer: &'a StateWriter,
    id: JobId,
    store: &'a Store,
    prefix: &'a str,
}

impl Place<'_> {
    /// Returns how many uploads were given up, and why others could not be.
    async fn give_up(&self, is_swept: bool) -> Result<(u64, Option<StoreError>), RunProblem> {
        let (state, id) = (self.state.clone(), self.id);
        let suspicion = blocking(move || Suspicion::of(&state, id)).await??;
        let is_swept = is_swept && !self.store.is_shared_by_all(self.prefix);
        let listed = if is_swept || !suspicion.beginning.is_empty() {
            self.store.pending(self.prefix).await
        } else {
            Ok(Vec::new())
        };
        let is_listed = listed.is_ok();
        let (mut given_up, mut failed) = (0, None);
        let pending = listed.unwrap_or_else(|error| {
            tracing::warn!(%error, "unfinished uploads cannot be listed");
            // Some stores never tell.
            failed = error.may_pass().then_some(error);
            Vec::new()
        });
        for orphan in suspicion.orphans(pending, is_swept) {
            match self.store.abort(&orphan.key, &orphan.upload).await {
                Ok(()) => {
                    given_up += 1;
                    let aborted = StateChange::Aborted(orphan.upload);
                    self.writer.note(self.id, aborted).await?;
                }
                Err(error) => {
                    // Nor would it do the others.
                    let is_of_store = error.is_of_store();
                    failed = Some(error);
                    if is_of_store {
                        break;
                    }
                }
            }
        }
        if is_listed && failed.is_none() {
            for key in suspicion.beginning {
                self.writer.note(self.id, StateChange::Certain(key)).await?;
            }
        }
        Ok((given_up, failed))
    }
}

/// What is remembered of uploads.
#[derive(Debug, Default)]
struct Suspicion {
    /// Names of those that are gone on with, by whichever job.
    known: HashSet<String>,
    /// Those of the job that are to be given up: key and name.
    left: Vec<(String, String)>,
    /// Keys for which there may be one that nobody knows.
    beginning: HashSet<String>,
}

impl Suspicion {
    fn of(state: &StateDatabase, id: JobId) -> Result<Self, StateError> {
        Ok(Self {
            known: state.upload_names()?,
            left: state.left(id)?,
            beginning: state.beginning(id)?,
        })
    }

    /// What is to be given up, given what is pending; all that is not known if
    /// `is_swept`.
    fn orphans(&self, pending: Vec<PendingUpload>, is_swept: bool) -> Vec<PendingUpload> {
        let left = self.left.iter().map(|(key, upload)| PendingUpload {
            key: key.clone(),
            upload: upload.clone(),
        });
        let is_left = |pending: &PendingUpload| {
            let mut left = self.left.iter();
            left.any(|(_, upload)| *upload == pending.upload)
        };
        let unknown = pending.into_iter().filter(|pending| {
            (is_swept || self.beginning.contains(&pending.key))
                && !self.known.contains(&pending.upload)
                && !is_left(pending)
        });
        left.chain(unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_ours_is_given_up() {
        let suspicion = Suspicion {
            known: HashSet::from(["under way".to_owned()]),
            left: vec![("a".to_owned(), "left".to_owned())],
            beginning: HashSet::from(["home/b".to_owned()]),
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
        let own = suspicion.orphans(pending().into(), false);
        assert_eq!(names(own), ["left", "unheard"]);
        let all = suspicion.orphans(pending().into(), true);
        assert_eq!(names(all), ["left", "unheard", "of somebody else"]);
    }
}
