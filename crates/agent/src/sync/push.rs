//! A push: scan, send, delete, publish.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fairbat::blocking::blocking;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::job::{PushContext, PushJob, PushSettings};
use super::plan::{Plan, PlanError, PushTask, SourceOptions, is_empty, plan};
use super::progress::Progress;
use super::publisher::{ManifestPublisher, PublishReason, now};
use super::report::{EntryFailure, RunProblem, RunReport, check_deletions};
use super::retry_store::{RetryStore, Window};
use super::source::ReadError;
use super::stop::{StopOnDrop, until_stopped};
use super::upload::{KnownObject, UploadError, UploadOutcome};
use crate::config::{Delete, Detect};
use crate::entry::TreePath;
use crate::scan::{MountPoint, Scan, ScanOptions};
use crate::state::{JobRecord, StateChange, Synced, SyncedKind};

/// Files are due this share of the remaining time before the deadline, which leaves
/// time for the manifest, ...
const MANIFEST_SHARE: i32 = 50;
/// ... but at most this long before it.
const MAX_MANIFEST_TIME: SignedDuration = SignedDuration::from_secs(30);

/// Files that are open beyond the number of connections. When an upload ends, the
/// next one begins without a gap.
const FILES_AHEAD: usize = 2;

/// Most keys of one delete request (Amazon S3 DeleteObjects).
const MAX_KEYS_PER_DELETE: usize = 1_000;

/// A file, its length in the plan (bytes), and how its upload ended.
type EndedUpload = (TreePath, u64, Result<UploadOutcome, UploadError>);

/// Brings the store in step with a directory. Ends early when `stop` becomes true;
/// the next run continues. `progress` shows how far it is meanwhile.
pub async fn push(
    context: PushContext,
    name: &str,
    settings: PushSettings,
    progress: Progress,
    stop: watch::Receiver<bool>,
) -> RunReport {
    let mut report = RunReport::default();
    let run = run(context, name, settings, progress.clone(), &mut report);
    let problem = until_stopped(run, stop).await.err();
    report.end(problem, &progress);
    report
}

async fn run(
    context: PushContext,
    name: &str,
    settings: PushSettings,
    progress: Progress,
    report: &mut RunReport,
) -> Result<(), RunProblem> {
    let PushContext {
        state,
        writer,
        store,
        host,
        lane,
    } = context;
    let (id, record) = {
        let (state, name) = (state.clone(), name.to_owned());
        blocking(move || state.job(&name)).await??
    };
    let due = settings.deadline.map(|deadline| files_due(deadline, now()));
    let member = lane.enter(&host, due);
    member.set_weight(settings.weight);
    let window = match settings.deadline {
        Some(_) => Window::unlimited(),
        None => Window::limited(),
    };
    let limits = settings.rate_limits.clone();
    let store = RetryStore::new(
        store,
        member,
        window,
        progress.clone(),
        limits,
        settings.seed,
    );
    let job = Arc::new(PushJob {
        id,
        settings,
        state,
        writer,
        store,
        progress,
    });
    let record = job.adopt(record).await?;
    let mut publisher = ManifestPublisher::new(Arc::clone(&job), record);
    // Also what an earlier run that was killed has sent.
    publisher.publish(PublishReason::During).await?;
    let plan = job.plan(&publisher.record).await?;
    let totals = &plan.totals;
    tracing::info!(
        entries = totals.entries,
        files = totals.files,
        bytes = totals.bytes,
        removed = totals.removed,
        "scanned"
    );
    totals.fill(report);
    job.progress.expect(totals.files, totals.bytes);
    tokio::select! {
        done = job.follow(plan, &mut publisher, report) => done,
        never = job.store.report_backlog(|bytes| job.store.part_size(bytes)) => match never {},
    }
}

impl PushJob {
    async fn plan(&self, record: &JobRecord) -> Result<Plan, RunProblem> {
        let source = SourceOptions {
            source: self.settings.source.clone(),
            filter: self.settings.filter.clone(),
            one_file_system: self.settings.one_file_system,
            by_content: self.settings.detect == Detect::Content,
        };
        let (state, id, record) = (self.state.clone(), self.id, record.clone());
        // A dropped run also ends its scan.
        let stop = StopOnDrop::default();
        let stopped = Arc::clone(&stop.0);
        let planned = blocking(move || {
            let stop = || stopped.load(Ordering::Relaxed);
            plan(&source, &state, id, &record, &stop)
        });
        Ok(planned.await??)
    }

    async fn follow(
        self: &Arc<Self>,
        plan: Plan,
        publisher: &mut ManifestPublisher,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        self.refuse_to_empty(&plan)?;
        for (path, upload) in &plan.abandoned {
            self.abandon(path, upload).await?;
        }
        report.orphans = self.abort_orphans().await?;
        let (gone, known) = (plan.totals.removed_files, plan.totals.known_files);
        let may_delete = match self.settings.delete {
            Delete::Mirror { max } => check_deletions(gone, known, max),
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
        record.mounts = plan
            .mounts
            .into_iter()
            .map(|mount| (mount.path.as_bytes().to_vec(), mount.device))
            .collect();
        let record = StateChange::Job(record.clone());
        self.keep(record).await?;
        // Published before anything is deleted: if the rest fails, the new files can
        // be pulled.
        publisher.publish(PublishReason::End).await?;
        may_delete?;
        if matches!(self.settings.delete, Delete::Never) {
            return Ok(());
        }
        if !report.is_clean() {
            tracing::warn!("nothing is deleted, because not everything could be sent");
            return Ok(());
        }
        self.remove(plan.removed, publisher, report).await?;
        publisher.publish(PublishReason::End).await
    }

    /// Refuses to delete everything because the source is empty.
    fn refuse_to_empty(&self, plan: &Plan) -> Result<(), RunProblem> {
        let is_mirror = matches!(self.settings.delete, Delete::Mirror { .. });
        if is_mirror && plan.totals.known_files > 0 && is_empty(&self.settings.source) {
            return Err(RunProblem::EmptySource(self.settings.source.clone()));
        }
        Ok(())
    }

    /// Checks that files are gone for another reason than a source that is gone.
    async fn refuse_to_lose(&self, mounted: Vec<MountPoint>) -> Result<(), RunProblem> {
        let (source, filter) = (self.settings.source.clone(), self.settings.filter.clone());
        let options = ScanOptions {
            mounted,
            ..ScanOptions::default()
        };
        let opened = blocking(move || Scan::open(&source, filter, options).map(drop));
        opened.await?.map_err(|error| PlanError::from(error).into())
    }

    /// Sends files, several at once.
    async fn send(
        self: &Arc<Self>,
        tasks: impl Iterator<Item = std::io::Result<PushTask>>,
        publisher: &mut ManifestPublisher,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let max = self.settings.connections as usize + FILES_AHEAD;
        let mut running = JoinSet::new();
        for task in tasks {
            let (path, size, known) = match task.map_err(PlanError::Spool)? {
                PushTask::Note(path, entry) => {
                    self.note(StateChange::Synced(path, entry)).await?;
                    report.noted += 1;
                    continue;
                }
                PushTask::Send {
                    path,
                    size,
                    replaces: false,
                } => (path, size, KnownObject::Nothing),
                PushTask::Send { path, size, .. } => (path, size, KnownObject::Something),
                PushTask::Examine { path, size, had } => (path, size, KnownObject::Version(had)),
            };
            while running.len() >= max {
                self.one_ends(&mut running, publisher, report).await?;
            }
            let job = Arc::clone(self);
            running.spawn(async move {
                let done = job.upload(&path, size, known).await;
                (path, size, done)
            });
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
                ended = running.join_next() => return self.ended(ended, report),
                () = publisher.due() => publisher.publish(PublishReason::During).await?,
            }
        }
    }

    fn ended(
        &self,
        ended: Option<Result<EndedUpload, JoinError>>,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let Some(ended) = ended else { return Ok(()) };
        let (path, size, done) = ended.map_err(|_| RunProblem::Lost)?;
        match done {
            Ok(UploadOutcome::Sent) => {
                self.progress.file_done(0);
                report.sent += 1;
            }
            Ok(UploadOutcome::Same) => {
                self.progress.file_done(size);
                report.same += 1;
            }
            Ok(UploadOutcome::Gone) => {
                self.progress.file_done(size);
                report.gone += 1;
            }
            Err(UploadError::State(error)) => return Err(error.into()),
            Err(UploadError::Lost) => return Err(RunProblem::Lost),
            Err(UploadError::Store(error)) if error.is_of_store() => return Err(error.into()),
            Err(UploadError::Store(error)) => {
                self.progress.file_done(size);
                tracing::warn!(file = %path, %error, "not sent");
                report.failed(path, EntryFailure::Store(error));
            }
            Err(UploadError::Read(error)) => {
                self.progress.file_done(size);
                tracing::warn!(file = %path, %error, "not sent");
                report.failed(
                    path,
                    match error {
                        ReadError::Changed => EntryFailure::Changed,
                        other => EntryFailure::Unreadable(other.to_string()),
                    },
                );
            }
        }
        Ok(())
    }

    /// Handles entries whose place another entry has taken. If the job may delete,
    /// their objects are deleted before the new ones are sent. Otherwise the store
    /// keeps them, though no pull restores them.
    async fn displace(
        &self,
        displaced: impl Iterator<Item = std::io::Result<(TreePath, Synced)>>,
        may_delete: bool,
        publisher: &mut ManifestPublisher,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        if may_delete && matches!(self.settings.delete, Delete::Mirror { .. }) {
            return self.remove(displaced, publisher, report).await;
        }
        for item in displaced {
            let (path, _) = item.map_err(PlanError::Spool)?;
            tracing::warn!(%path, "something else is in its place; the store keeps what it was");
            self.note(StateChange::Removed(path)).await?;
        }
        Ok(())
    }

    /// Deletes the objects of files that are gone.
    async fn remove(
        &self,
        removed: impl Iterator<Item = std::io::Result<(TreePath, Synced)>>,
        publisher: &mut ManifestPublisher,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let mut gathered = VecDeque::new();
        let mut removed = removed.peekable();
        while let Some(item) = removed.next() {
            gathered.push_back(item.map_err(PlanError::Spool)?);
            if gathered.len() >= MAX_KEYS_PER_DELETE || removed.peek().is_none() {
                self.delete(std::mem::take(&mut gathered), report).await?;
                publisher.publish_if_due().await?;
            }
        }
        Ok(())
    }

    async fn delete(
        &self,
        gone: VecDeque<(TreePath, Synced)>,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let files = gone.iter().filter(|(_, entry)| is_file(entry));
        let keys: Vec<_> = files.map(|(path, _)| self.key(path)).collect();
        let count = keys.len() as u64;
        if !keys.is_empty() {
            // While the outcome is unknown, none of them counts as stored.
            let paths = gone.iter().map(|(path, _)| path.clone()).collect();
            self.writer
                .keep(self.id, StateChange::Replacing(paths))
                .await?;
            self.store
                .with_retry(|| self.store.delete(keys.clone()))
                .await?;
        }
        for (path, _) in gone {
            self.note(StateChange::Removed(path)).await?;
        }
        report.deleted += count;
        Ok(())
    }
}

fn is_file(entry: &Synced) -> bool {
    matches!(entry.kind, SyncedKind::File { .. })
}

/// When the files are due: the manifest follows them.
fn files_due(deadline: Timestamp, now: Timestamp) -> Timestamp {
    let left = deadline.duration_since(now).max(SignedDuration::ZERO);
    deadline - (left / MANIFEST_SHARE).min(MAX_MANIFEST_TIME)
}

impl From<PlanError> for RunProblem {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::State(error) => error.into(),
            PlanError::Stopped => Self::Stopped,
            other => Self::Scan(other.to_string()),
        }
    }
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
