//! A pull, or a restore: brings a directory in step with what a job has pushed.
//!
//! A file with the size and time of the manifest is unchanged; any other file is
//! replaced, even if it was changed here. While a push is running, the store may have
//! newer content than the manifest. Such files wait for the next manifest. Until the
//! first push is complete, the manifest is incomplete, and nothing is deleted.

mod delete;
mod fetch;
mod plan;
mod run;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fairbat::blocking::blocking;
use tokio::sync::watch;

pub use self::run::{MANIFEST_PAUSES, PullSettings};
use self::run::{PullRun, disk};
use super::install::{InstallError, Installer, is_temporary};
use super::manifest_store::{FetchedManifests, NO_KEY, ValidManifests, read_key, valid_manifests};
use super::progress::RunProgress;
use super::report::{RunProblem, RunReport};
use super::retry_store::RetryStore;
use super::settings::LaneStore;
use super::stop::{StopOnDrop, until_stopped};
use crate::config::Delete;
use crate::entry::{Attributes, TreePath};
use crate::manifest::ManifestPointer;
use crate::state::{JobRecord, StateError};
use crate::store::part_size;

/// Brings a directory in step with what was pushed to a place in a store. Ends early
/// when `stop` becomes true; the next run fetches the missing files.
pub async fn pull(
    origin: LaneStore,
    settings: PullSettings,
    progress: RunProgress,
    stop: watch::Receiver<bool>,
) -> RunReport {
    let mut report = RunReport::default();
    let run = run(origin, settings, progress.clone(), &mut report);
    let ended = until_stopped(run, stop).await;
    report.end(ended, &progress);
    report
}

async fn run(
    origin: LaneStore,
    settings: PullSettings,
    progress: RunProgress,
    report: &mut RunReport,
) -> Result<(), RunProblem> {
    // The threads of the run end when this is dropped.
    let stop = StopOnDrop::default();
    let service = settings.run.service;
    let store = RetryStore::enter(origin, service, &settings.run, progress.clone());
    let key_file = settings.run.key_file.as_deref();
    let key = read_key(key_file).await?;
    if key.is_none() && key_file.is_some() {
        tracing::warn!("whoever can write to the store may have changed what is fetched: {NO_KEY}");
    }
    let first = valid_manifests(&store, &settings.run.prefix, key.as_ref()).await?;
    if settings.was_filled && first.1.bytes > 0 && is_empty(&settings.to) {
        return Err(RunProblem::EmptyTarget(settings.to));
    }
    let (to, stopped) = (settings.to.clone(), Arc::clone(&stop.0));
    let installer = blocking(move || Installer::new(&to, &|| stopped.load(Ordering::Relaxed)));
    let installer = installer.await?.map_err(|error| match error {
        InstallError::Busy => RunProblem::Busy(settings.to.clone()),
        InstallError::Stopped => RunProblem::Stopped,
        InstallError::Disk(error) => disk(&settings.to, &error),
    })?;
    let run = Arc::new(PullRun {
        settings,
        key,
        store,
        progress,
        installer: Arc::new(installer),
        stopped: Arc::clone(&stop.0),
    });
    tokio::select! {
        done = run.follow(first, report) => done,
        never = run.store.report_backlog(|_| part_size(0)) => match never {},
    }
}

/// What remains after a pass.
struct PassResult {
    fetched: FetchedManifests,
    directories: Vec<(TreePath, Attributes)>,
    /// Files that the store has in a newer version than the manifest.
    newer: u64,
}

impl PullRun {
    async fn follow(
        self: &Arc<Self>,
        first: ValidManifests,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let (mut pointer, mut fetched) = first;
        let mut pauses = self.settings.pauses.iter();
        let passed = loop {
            let passed = self.pass(fetched, !pointer.is_partial, report).await?;
            let is_complete = !pointer.is_partial;
            if is_complete && (passed.newer == 0 || self.is_settled(&pointer).await?) {
                break passed;
            }
            tracing::info!(
                files = passed.newer,
                "a push is under way: waiting for its manifest"
            );
            let Some(renewed) = self.renewed(pointer, &mut pauses).await? else {
                break passed;
            };
            (pointer, fetched) = renewed;
            self.set_directory_attributes(passed.directories, &mut RunReport::default())
                .await?;
        };
        if !pointer.is_partial {
            self.delete(passed.fetched, report).await?;
        }
        // After all changes of their members.
        self.set_directory_attributes(passed.directories, report)
            .await?;
        report.notes = notes(self.installer.take_unowned(), report.setuid_dropped);
        for note in &report.notes {
            tracing::warn!("{note}");
        }
        // The pull is complete only when the disk has it.
        let run = Arc::clone(self);
        let synced = blocking(move || run.installer.sync()).await?;
        synced.map_err(|error| disk(&self.settings.to, &error))?;
        match pointer.is_partial {
            true => Err(RunProblem::FirstPush),
            false => Ok(()),
        }
    }

    /// Brings the directory in step with the manifests, except for files that the
    /// store has in a newer version. Deletes what is in the way if the job and
    /// `may_delete` allow it. The report is that of this pass, except for the numbers
    /// of fetched and deleted files.
    async fn pass(
        self: &Arc<Self>,
        mut fetched: FetchedManifests,
        may_delete: bool,
        report: &mut RunReport,
    ) -> Result<PassResult, RunProblem> {
        self.installer.take_unowned();
        let run = Arc::clone(self);
        let (sorted, fetched) = blocking(move || {
            let mut sorted = run.plan(&mut fetched)?;
            if let Delete::Mirror { max } = run.settings.run.delete
                && may_delete
                && !sorted.blocked.is_empty()
            {
                let made = run.make_room(&mut fetched, max, &sorted.blocked)?;
                sorted.report.deleted += made.deleted;
                sorted.report.add_failures(made);
            }
            let linked = run.link_all(std::mem::take(&mut sorted.links))?;
            sorted.report.add_failures(linked);
            Ok::<_, RunProblem>((sorted, fetched))
        })
        .await??;
        let (sent, deleted) = (report.sent, report.deleted);
        *report = RunReport {
            sent,
            deleted: deleted + sorted.report.deleted,
            // Files of an earlier pass were not there before the run.
            same: sorted.report.same.saturating_sub(sent),
            ..sorted.report
        };
        let (files, bytes) = sorted.wanted;
        self.progress.expect(files, bytes);
        let newer = self.fetch_all(sorted.files, report).await?;
        Ok(PassResult {
            fetched,
            directories: sorted.directories,
            newer,
        })
    }

    /// Deletes what the store does not have, if the job does that.
    async fn delete(
        self: &Arc<Self>,
        mut fetched: FetchedManifests,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let Delete::Mirror { max } = self.settings.run.delete else {
            return Ok(());
        };
        if !report.is_clean() {
            tracing::warn!("nothing is deleted, because not everything could be fetched");
            return Ok(());
        }
        let run = Arc::clone(self);
        let deleted = blocking(move || run.delete_others(&mut fetched, max)).await??;
        report.deleted += deleted.deleted;
        report.add_failures(deleted);
        Ok(())
    }

    /// Sets the attributes of directories.
    async fn set_directory_attributes(
        self: &Arc<Self>,
        directories: Vec<(TreePath, Attributes)>,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let run = Arc::clone(self);
        let done = blocking(move || run.set_all_attributes(directories)).await??;
        report.add_failures(done);
        Ok(())
    }

    /// Whether no push has changed the store since this manifest, as far as this agent can
    /// tell. Then what differs from it is damaged, and no newer manifest will come.
    async fn is_settled(&self, pointer: &ManifestPointer) -> Result<bool, RunProblem> {
        let Some((state, job)) = self.settings.pusher.clone() else {
            return Ok(false);
        };
        let current = (pointer.writer, pointer.base, pointer.last);
        let settled = blocking(move || {
            let (id, _) = state.job(&job)?;
            let is_changing =
                state.untold(id)?.next().is_some() || !state.replacing(id)?.is_empty();
            // Read afterwards: what was published meanwhile is in a later manifest.
            let (_, JobRecord { manifest, .. }) = state.job(&job)?;
            let is_latest = (manifest.writer, manifest.base, manifest.last) == current;
            Ok::<_, StateError>(is_latest && !is_changing)
        });
        Ok(settled.await??)
    }

    /// Waits for other manifests than these. `None` if none come in time.
    async fn renewed(
        &self,
        known: ManifestPointer,
        pauses: &mut (impl Iterator<Item = &Duration> + Send),
    ) -> Result<Option<ValidManifests>, RunProblem> {
        for pause in pauses {
            tokio::time::sleep(*pause).await;
            let prefix = &self.settings.run.prefix;
            let found = valid_manifests(&self.store, prefix, self.key.as_ref()).await?;
            if found.0 != known {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// What a pull has left out: the owners of `unowned` entries, and the set-user-ID and
/// set-group-ID bits of `setuid_dropped` files.
fn notes(unowned: u64, setuid_dropped: u64) -> Vec<String> {
    let owners = format!(
        "owners could not be set for {unowned} of the entries, and nobody else gets rights to \
         them: only an agent that root starts may, with restore_owners = true in [agent], or in \
         a service with the drop-in of install.md, \"Give files their owners back\""
    );
    let set_id = format!(
        "{setuid_dropped} of the files do not get their set-user-ID or set-group-ID bits: setuid \
         = true in the job that pulls, or fairbat restore --setuid, if you trust the store"
    );
    let notes = [(unowned, owners), (setuid_dropped, set_id)].into_iter();
    let notes = notes.filter(|(number, _)| *number > 0);
    notes.map(|(_, note)| note).collect()
}

/// Whether nothing is in a directory, or it is not there.
fn is_empty(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return !directory.exists();
    };
    // Ends at the first name that is not ours.
    entries.flatten().all(|entry| {
        TreePath::root()
            .join(&entry.file_name())
            .is_ok_and(|path| is_temporary(&path))
    })
}
