//! A push: scan, send, delete, publish.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fairbat::blocking::blocking;
use fairbat::lane::Service;
use futures_util::stream::{self, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::job::{PushContext, PushJob, PushSettings};
use super::manifest_store::read_key;
use super::plan::{PushPlan, PushTask, is_empty};
use super::progress::RunProgress;
use super::publisher::{ManifestPublisher, PublishReason, make_key, now};
use super::report::{EntryFailure, MoveError, RunProblem, RunReport, check_deletions};
use super::retry_store::RetryStore;
use super::spool::Spool;
use super::stop::{StopOnDrop, until_stopped};
use super::upload::UploadOutcome;
use crate::config::Delete;
use crate::entry::TreePath;
use crate::scan::{MountPoint, Scan, ScanOptions};
use crate::state::{
    JobRecord, StateChange, StateDatabase, StateError, StateWriter, Synced, SyncedKind,
};
use crate::store::part_size;

/// Files are due this share of the remaining time before the deadline, which leaves
/// time for the manifest, ...
const MANIFEST_SHARE: i32 = 50;
/// ... but at most this long before it.
const MAX_MANIFEST_TIME: SignedDuration = SignedDuration::from_secs(30);

/// Files that are open beyond the number of connections. When an upload ends, the
/// next one begins without a gap.
const FILES_AHEAD: usize = 2;

/// Files that are deleted before the state notes it.
const DELETED_AT_A_TIME: usize = 1_000;

/// Requests to delete that are under way.
const DELETED_AT_ONCE: usize = 4;

/// A file, its length in the plan (bytes), and how its upload ended.
type EndedUpload = (TreePath, u64, Result<UploadOutcome, MoveError>);

/// Brings the store in step with a directory. Ends early when `stop` becomes true;
/// the next run continues. `progress` shows how far it is meanwhile.
pub async fn push(
    context: PushContext,
    name: &str,
    settings: PushSettings,
    progress: RunProgress,
    stop: watch::Receiver<bool>,
) -> RunReport {
    let mut report = RunReport::default();
    let run = run(context, name, settings, progress.clone(), &mut report);
    let ended = until_stopped(run, stop).await;
    report.end(ended, &progress);
    report
}

async fn run(
    context: PushContext,
    name: &str,
    settings: PushSettings,
    progress: RunProgress,
    report: &mut RunReport,
) -> Result<(), RunProblem> {
    let PushContext {
        state,
        writer,
        store,
    } = context;
    let (id, record) = {
        let (state, name) = (state.clone(), name.to_owned());
        blocking(move || state.job(&name)).await??
    };
    let service = match settings.run.service {
        Service::ByDeadline(deadline) => Service::ByDeadline(files_due(deadline, now())),
        other => other,
    };
    let mut store = RetryStore::enter(store, service, &settings.run, progress.clone());
    if service.deadline().is_none() {
        store.limit_window();
    }
    let job = Arc::new(PushJob {
        id,
        settings,
        state,
        writer: writer.for_run(),
        store,
        progress,
    });
    let key_file = job.settings.run.key_file.clone();
    let key = read_key(key_file.as_deref()).await?;
    let adopted = job.adopt(record, key.as_ref()).await?;
    let key = match (key, key_file) {
        (None, Some(file)) => Some(make_key(file).await?),
        (key, _) => key,
    };
    let mut publisher = ManifestPublisher::new(Arc::clone(&job), adopted, key);
    // Also what an earlier run that was killed has sent.
    publisher.publish(PublishReason::During).await?;
    let mut plan = job.plan(&publisher.record).await?;
    *report = std::mem::take(&mut plan.report);
    tracing::info!(
        entries = report.entries,
        files = plan.files,
        bytes = plan.bytes,
        removed_files = plan.removed_files,
        "scanned"
    );
    job.progress.expect(plan.files, plan.bytes);
    tokio::select! {
        done = job.follow(plan, &mut publisher, report) => done,
        never = job.store.report_backlog(part_size) => match never {},
    }
}

/// Forgets mount points of a job or of its local `store`, of which it is known that they
/// stay unmounted. The store is not needed for that.
///
/// # Errors
/// Nothing was mounted at one of them. Then none is forgotten.
pub(crate) async fn accept_unmounted(
    state: StateDatabase,
    writer: &StateWriter,
    name: &str,
    source: &Path,
    store: Option<&Path>,
    accepted: &[PathBuf],
) -> Result<(), RunProblem> {
    if accepted.is_empty() {
        return Ok(());
    }
    let (job, disk) = (name.to_owned(), store.map(Path::to_owned));
    let ((id, mut record), disk) = blocking(move || {
        let disk = disk.map(|store| state.store_mount(&store)).transpose()?;
        Ok::<_, StateError>((state.job(&job)?, disk.flatten()))
    })
    .await??;
    let below = |mount: &MountPoint| mount.path.under(source);
    let known: Vec<_> = record
        .mounts
        .iter()
        .map(below)
        .chain(disk.clone())
        .collect();
    if let Some(path) = accepted.iter().find(|path| !known.contains(path)) {
        return Err(RunProblem::NotMounted(path.clone(), known));
    }
    record
        .mounts
        .retain(|mount| !accepted.contains(&below(mount)));
    if let Some(store) = store.filter(|_| disk.is_some_and(|disk| accepted.contains(&disk))) {
        writer.set_store_mount(store, None).done().await?;
    }
    let writer = writer.for_run();
    writer.keep(id, StateChange::Job(record)).await?;
    for path in accepted {
        let path = path.display();
        tracing::warn!(task = name, %path, "is accepted as no mount point");
    }
    Ok(())
}

impl PushJob {
    async fn plan(self: &Arc<Self>, record: &JobRecord) -> Result<PushPlan, RunProblem> {
        let (job, record) = (Arc::clone(self), record.clone());
        // A dropped run also ends its scan.
        let stop = StopOnDrop::default();
        let stopped = Arc::clone(&stop.0);
        let planned = blocking(move || {
            let stop = || stopped.load(Ordering::Relaxed);
            PushPlan::make(&job, &record, &stop)
        });
        planned.await?
    }

    async fn follow(
        self: &Arc<Self>,
        mut plan: PushPlan,
        publisher: &mut ManifestPublisher,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        self.refuse_to_empty(&plan)?;
        for (path, upload) in plan.take_abandoned() {
            self.abandon(&path, &upload).await?;
        }
        report.orphans = self.abort_orphans().await?;
        let may_delete = match self.settings.run.delete {
            Delete::Mirror { max } => check_deletions(plan.removed_files, plan.known_files, max),
            Delete::Never => Ok(()),
        };
        // Deleted first: a directory needs the place of the file.
        self.remove(plan.replaced, publisher, report).await?;
        self.displace(plan.displaced, may_delete.is_ok(), publisher, report)
            .await?;
        self.send(plan.tasks, publisher, report).await?;
        if report.gone > 0 {
            self.refuse_to_lose(plan.mounts.clone()).await?;
        }
        let record = &mut publisher.record;
        record.scanned = Some(plan.began);
        record.mounts = plan.mounts;
        let record = StateChange::Job(record.clone());
        self.keep(record).await?;
        report.note_damaged(&self.state, self.id).await?;
        // Published before anything is deleted: if the rest fails, the new files can
        // be pulled.
        publisher.publish(PublishReason::End).await?;
        may_delete?;
        match self.settings.run.delete {
            Delete::Never => {}
            Delete::Mirror { .. } if !report.is_clean() => {
                tracing::warn!("nothing is deleted, because not everything could be sent");
            }
            Delete::Mirror { .. } => {
                self.remove(plan.removed, publisher, report).await?;
                publisher.publish(PublishReason::End).await?;
                return report.note_damaged(&self.state, self.id).await;
            }
        }
        for path in plan.lost {
            report.note(path, MoveError::Entry(EntryFailure::Lost), "not mended")?;
        }
        Ok(())
    }

    /// Refuses to delete everything because the source is empty.
    fn refuse_to_empty(&self, plan: &PushPlan) -> Result<(), RunProblem> {
        let is_mirror = matches!(self.settings.run.delete, Delete::Mirror { .. });
        if is_mirror && plan.known_files > 0 && is_empty(&self.settings.source) {
            return Err(RunProblem::EmptySource(self.settings.source.clone()));
        }
        Ok(())
    }

    /// Checks that files are gone for another reason than a source that is gone.
    async fn refuse_to_lose(&self, mounted: Vec<MountPoint>) -> Result<(), RunProblem> {
        let (source, filter) = (
            self.settings.source.clone(),
            self.settings.run.filter.clone(),
        );
        let options = ScanOptions {
            mounted,
            ..ScanOptions::default()
        };
        blocking(move || Scan::open(&source, filter, options)).await??;
        Ok(())
    }

    /// Sends files, several at once.
    async fn send(
        self: &Arc<Self>,
        tasks: Spool<PushTask>,
        publisher: &mut ManifestPublisher,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let max = self.settings.run.connections as usize + FILES_AHEAD;
        let mut running = JoinSet::new();
        for task in tasks.read()? {
            match task? {
                PushTask::Note(path, entry) => {
                    self.note(StateChange::Synced(path, entry)).await?;
                    report.noted += 1;
                }
                PushTask::Send { path, size, known } => {
                    while running.len() >= max {
                        self.one_ends(&mut running, publisher, report).await?;
                    }
                    let job = Arc::clone(self);
                    running.spawn(async move {
                        let done = job.upload(&path, size, known).await;
                        (path, size, done)
                    });
                }
            }
        }
        while !running.is_empty() {
            self.one_ends(&mut running, publisher, report).await?;
        }
        Ok(())
    }

    /// Waits for the end of one upload. Publishes a manifest meanwhile if one is due.
    async fn one_ends(
        &self,
        running: &mut JoinSet<EndedUpload>,
        publisher: &mut ManifestPublisher,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        loop {
            tokio::select! {
                ended = running.join_next() => {
                    let Some(ended) = ended else { return Ok(()) };
                    return self.ended(ended?, report);
                }
                () = publisher.due() => publisher.publish(PublishReason::During).await?,
            }
        }
    }

    fn ended(&self, ended: EndedUpload, report: &mut RunReport) -> Result<(), RunProblem> {
        let (path, size, done) = ended;
        // Bytes that were not moved.
        let mut unmoved = size;
        match done {
            Ok(UploadOutcome::Sent) => {
                unmoved = 0;
                report.sent += 1;
            }
            Ok(UploadOutcome::Same) => report.same += 1,
            Err(error) => report.note(path, error, "not sent")?,
        }
        self.progress.file_done(unmoved);
        Ok(())
    }

    /// Handles entries whose place another entry has taken. If the job may delete,
    /// their objects are deleted before the new ones are sent. Otherwise the store
    /// keeps them, though no pull restores them.
    async fn displace(
        &self,
        displaced: Spool<(TreePath, Synced)>,
        may_delete: bool,
        publisher: &mut ManifestPublisher,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        if may_delete && matches!(self.settings.run.delete, Delete::Mirror { .. }) {
            return self.remove(displaced, publisher, report).await;
        }
        for item in displaced.read()? {
            let (path, _) = item?;
            tracing::warn!(%path, "something else is in its place; the store keeps what it was");
            self.note(StateChange::Removed(path)).await?;
        }
        Ok(())
    }

    /// Deletes the objects of files that are gone.
    async fn remove(
        &self,
        removed: Spool<(TreePath, Synced)>,
        publisher: &mut ManifestPublisher,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let mut gathered = Vec::new();
        let mut removed = removed.read()?.peekable();
        while let Some(item) = removed.next() {
            gathered.push(item?);
            if gathered.len() >= DELETED_AT_A_TIME || removed.peek().is_none() {
                self.delete(std::mem::take(&mut gathered), report).await?;
                publisher.publish_if_due().await?;
            }
        }
        Ok(())
    }

    async fn delete(
        &self,
        gone: Vec<(TreePath, Synced)>,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let is_file = |entry: &Synced| matches!(entry.kind, SyncedKind::File { .. });
        let files = gone.iter().filter(|(_, entry)| is_file(entry));
        let keys: Vec<_> = files.map(|(path, _)| self.key(path)).collect();
        let count = keys.len() as u64;
        if !keys.is_empty() {
            // While the outcome is unknown, none of them counts as stored.
            let paths = gone.iter().map(|(path, _)| path.clone()).collect();
            self.keep(StateChange::Replacing(paths)).await?;
            // One at a time is tried again: a store that refuses some of many must not get all
            // of them again.
            let deleting = keys.into_iter().map(|key| async move {
                self.store
                    .with_retry(|| self.store.delete(vec![key.clone()]))
                    .await
            });
            let mut deleting = stream::iter(deleting).buffer_unordered(DELETED_AT_ONCE);
            while let Some(deleted) = deleting.next().await {
                deleted?;
            }
        }
        for (path, _) in gone {
            self.note(StateChange::Removed(path)).await?;
        }
        report.deleted += count;
        Ok(())
    }
}

/// When the files are due: the manifest follows them.
fn files_due(deadline: Timestamp, now: Timestamp) -> Timestamp {
    let left = deadline.duration_since(now).max(SignedDuration::ZERO);
    deadline - (left / MANIFEST_SHARE).min(MAX_MANIFEST_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_due_a_little_before_the_deadline() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        assert_eq!(files_due(at(1_100), at(1_000)), at(1_098));
        assert_eq!(files_due(at(90_000), at(1_000)), at(89_970));
        assert_eq!(files_due(at(900), at(1_000)), at(900), "it is over");
    }
}
