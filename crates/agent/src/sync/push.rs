//! A run of a job that pushes: scan, send, delete, tell.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairbat::lane::{Lane, Member};
use fairbat::transport::RateLimit;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use super::attempts::Attempts;
use super::ledger::Progress;
use super::plan::{Looking, Plan, PlanError, is_empty, plan};
use super::report::{RunProblem, RunReport};
use super::tell::Occasion;
use super::teller::{Teller, now};
use super::window::Window;
use crate::config::{Delete, Detect, MaxDelete, Verify};
use crate::filter::Filter;
use crate::scan::{MountPoint, Scan, ScanOptions};
use crate::state::{JobId, JobRecord, StateChange, StateDatabase, StateError, StateWriter};
use crate::store::{Store, StoreError};

/// How often the lane is told what is left.
pub(super) const TELL: Duration = Duration::from_secs(1);

/// All files are to be there a fiftieth of the time before the deadline, ...
const FILES_EARLIER: i32 = 50;
/// ... but no earlier than so.
const FILES_EARLIER_MOST: SignedDuration = SignedDuration::from_secs(30);

/// What a run is to do.
#[derive(Debug, Clone)]
pub struct PushSettings {
    /// The directory.
    pub source: PathBuf,
    /// Which store it is: what tells it from every other, without credentials.
    pub address: String,
    /// Where in the store; may be empty.
    pub prefix: String,
    /// What of it.
    pub filter: Filter,
    /// Whether other file systems that are mounted below it are left out.
    pub one_file_system: bool,
    /// By what changes are seen.
    pub detect: Detect,
    /// What becomes of what is gone from the source.
    pub delete: Delete,
    /// What is enough to call a file sent.
    pub verify: Verify,
    /// Soft deadline.
    pub deadline: Option<Timestamp>,
    /// w_min of the connections while this has something to move, 0.02 to 1.
    pub weight: f64,
    /// Ceilings on the rate.
    pub rate_limits: Vec<Arc<RateLimit>>,
    /// Most connections.
    pub connections: u32,
    /// Seed of the delays between tries.
    pub seed: u64,
    /// Names this agent among those that may push to a store; not 0.
    pub identity: u64,
    /// How often the store is told during the run what has come:
    /// [`PUBLISH_INTERVAL`](super::PUBLISH_INTERVAL), but for tests.
    pub publish_interval: Duration,
}

/// What a run works with.
#[derive(Debug, Clone)]
pub struct PushContext {
    /// What is remembered.
    pub state: StateDatabase,
    /// What writes that.
    pub writer: StateWriter,
    /// Where files go.
    pub store: Arc<Store>,
    /// Whom the store is a host of.
    pub host: String,
    /// What it shares with other jobs.
    pub lane: Lane,
}

/// A run, as its parts see it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: JobId,
    pub(super) settings: PushSettings,
    pub(super) state: StateDatabase,
    pub(super) writer: StateWriter,
    pub(super) store: Arc<Store>,
    pub(super) member: Member,
    pub(super) ledger: Progress,
    pub(super) attempts: Attempts,
    pub(super) window: Window,
}

/// Brings the store in step with a directory. Ends early, with everything to be
/// continued, when `stop` becomes true. How it stands is in `ledger` meanwhile.
pub async fn push(
    context: PushContext,
    name: &str,
    settings: PushSettings,
    ledger: Progress,
    stop: watch::Receiver<bool>,
) -> RunReport {
    let mut report = RunReport::default();
    let seen = ledger.clone();
    let run = run(context, name, settings, ledger, &mut report);
    let mut stopped = stop;
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stop| *stop) => report.problem = Some(RunProblem::Stopped),
        result = run => if let Err(problem) = result {
            report.problem = Some(problem);
        },
    }
    report.count(&seen.standing());
    report
}

async fn run(
    context: PushContext,
    name: &str,
    settings: PushSettings,
    ledger: Progress,
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
    ledger.joins(&member);
    let job = Arc::new(Job {
        window: Window::new(settings.deadline.is_some()),
        id,
        member,
        attempts: Attempts::new(settings.seed, ledger.clone()),
        ledger,
        settings,
        state,
        writer,
        store,
    });
    let record = job.adopt(record).await?;
    let mut teller = Teller::new(record, job.settings.publish_interval);
    // What a run that was killed has brought.
    teller.tell(&job, Occasion::During).await?;
    let plan = job.plan(&teller.record).await?;
    let totals = &plan.totals;
    tracing::info!(
        entries = totals.entries,
        files = totals.files,
        bytes = totals.bytes,
        removed = totals.removed,
        "scanned"
    );
    report.scanned(totals);
    job.ledger.expect(totals.files, totals.bytes);
    let telling = tokio::spawn(tell(Arc::downgrade(&job)));
    let done = job.follow(plan, &mut teller, report).await;
    telling.abort();
    done
}

impl Job {
    async fn plan(&self, record: &JobRecord) -> Result<Plan, RunProblem> {
        let looking = Looking {
            source: self.settings.source.clone(),
            filter: self.settings.filter.clone(),
            one_file_system: self.settings.one_file_system,
            by_content: self.settings.detect == Detect::Content,
        };
        let (state, id, record) = (self.state.clone(), self.id, record.clone());
        // A run that is dropped ends its scan as well.
        let stop = StopOnDrop::default();
        let stopped = Arc::clone(&stop.0);
        let planned = blocking(move || {
            let stop = || stopped.load(Ordering::Relaxed);
            plan(&looking, &state, id, &record, &stop)
        });
        Ok(planned.await??)
    }

    async fn follow(
        self: &Arc<Self>,
        plan: Plan,
        teller: &mut Teller,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        self.refuse_to_empty(&plan)?;
        for (path, upload) in &plan.left {
            self.leave(path, upload).await?;
        }
        report.orphans = self.give_up_orphans().await?;
        let (gone, known) = (plan.totals.removed_files, plan.totals.known_files);
        let may_delete = match self.settings.delete {
            Delete::Mirror { max } => check_deletions(gone, known, max),
            Delete::Never => Ok(()),
        };
        // A directory needs the place of what was a file, as a new version does.
        self.remove(plan.replaced, teller, report).await?;
        self.displace(plan.displaced, may_delete.is_ok(), teller, report)
            .await?;
        self.send(plan.todos, teller, report).await?;
        if report.gone > 0 {
            self.refuse_to_lose(plan.mounts.clone()).await?;
        }
        let record = &mut teller.record;
        record.scanned = Some(plan.began);
        record.mounts = plan
            .mounts
            .into_iter()
            .map(|mount| (mount.path.as_bytes().to_vec(), mount.device))
            .collect();
        self.writer
            .keep(self.id, StateChange::Job(record.clone()))
            .await?;
        // First what has come: whatever becomes of the rest, it can be pulled.
        teller.tell(self, Occasion::End).await?;
        may_delete?;
        if matches!(self.settings.delete, Delete::Never) {
            return Ok(());
        }
        if !report.is_clean() {
            tracing::warn!("nothing is deleted, because not everything could be sent");
            return Ok(());
        }
        self.remove(plan.removed, teller, report).await?;
        teller.tell(self, Occasion::End).await
    }

    /// Whether this would be deleting everything because nothing is there.
    fn refuse_to_empty(&self, plan: &Plan) -> Result<(), RunProblem> {
        let is_mirror = matches!(self.settings.delete, Delete::Mirror { .. });
        if is_mirror && plan.totals.known_files > 0 && is_empty(&self.settings.source) {
            return Err(RunProblem::EmptySource(self.settings.source.clone()));
        }
        Ok(())
    }

    /// Whether files are gone because the source itself is.
    async fn refuse_to_lose(&self, mounted: Vec<MountPoint>) -> Result<(), RunProblem> {
        let (source, filter) = (self.settings.source.clone(), self.settings.filter.clone());
        let options = ScanOptions {
            mounted,
            ..ScanOptions::default()
        };
        let opened = blocking(move || Scan::open(&source, filter, options).map(drop));
        opened.await?.map_err(|error| PlanError::from(error).into())
    }
}

/// By when the files have to be there: after them comes the manifest, and what the
/// store says to it.
fn files_due(deadline: Timestamp, now: Timestamp) -> Timestamp {
    let left = deadline.duration_since(now).max(SignedDuration::ZERO);
    deadline - (left / FILES_EARLIER).min(FILES_EARLIER_MOST)
}

pub(super) fn check_deletions(gone: u64, known: u64, most: MaxDelete) -> Result<(), RunProblem> {
    let allowed = match most {
        MaxDelete::Files(files) => files,
        MaxDelete::Share(share) => (known as f64 * share) as u64,
    };
    if gone > allowed {
        Err(RunProblem::TooManyDeletions { gone, allowed })
    } else {
        Ok(())
    }
}

async fn tell(job: std::sync::Weak<Job>) {
    while let Some(job) = job.upgrade() {
        let standing = job.ledger.standing();
        let part = job.store.part_size(standing.bytes);
        job.member.set_backlog(job.ledger.backlog(part));
        drop(job);
        tokio::time::sleep(TELL).await;
    }
}

/// Tells the threads that work for a run to end when nobody waits for it any more.
#[derive(Debug, Default)]
pub(super) struct StopOnDrop(pub(super) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RunProblem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| RunProblem::Lost)
}

impl From<StateError> for RunProblem {
    fn from(error: StateError) -> Self {
        Self::State(error.to_string())
    }
}

impl From<StoreError> for RunProblem {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
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
