//! A run of a job that pushes: scan, send, delete, tell.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairbat::carrier::Ceiling;
use fairbat::lane::{Lane, Member};
use jiff::Timestamp;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::attempts::Attempts;
use super::ledger::Ledger;
use super::plan::{Looking, Plan, PlanError, Todo, is_empty, plan};
use super::report::{Failure, Problem, Report};
use super::source::ReadError;
use super::upload::{Done, FileError};
use crate::config::{Delete, Detect, MaxDelete, Verify};
use crate::entry::TreePath;
use crate::filter::Filter;
use crate::scan::{MountPoint, Options, Scan};
use crate::state::{Change, JobId, JobRecord, State, StateError, Synced, SyncedKind, Writer};
use crate::store::{Store, StoreError};

/// How often the lane is told what is left.
pub(super) const TELL: Duration = Duration::from_secs(1);

/// Files that are open at once beyond the connections there may be: so that one
/// that ends leaves no gap.
const AHEAD: usize = 2;

/// Objects that are deleted in one request.
const DELETED_AT_ONCE: usize = 1_000;

/// What a run is to do.
#[derive(Debug, Clone)]
pub struct PushSettings {
    /// The directory.
    pub source: PathBuf,
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
    pub ceilings: Vec<Arc<Ceiling>>,
    /// Most connections.
    pub connections: u32,
    /// Seed of the delays between tries.
    pub seed: u64,
    /// Names this agent among those that may push to a store; not 0.
    pub identity: u64,
}

/// What a run works with.
#[derive(Debug, Clone)]
pub struct Context {
    /// What is remembered.
    pub state: State,
    /// What writes that.
    pub writer: Writer,
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
    pub(super) state: State,
    pub(super) writer: Writer,
    pub(super) store: Arc<Store>,
    pub(super) member: Member,
    pub(super) ledger: Ledger,
    pub(super) attempts: Attempts,
    /// Parts that may be on their way at once: one without a deadline, for one
    /// connection carries large files as well as several, and what is on its way
    /// when the process is killed has to be sent again.
    pub(super) bulk: Arc<Semaphore>,
}

/// Brings the store in step with a directory. Ends early, with everything to be
/// continued, when `stop` becomes true. How it stands is in `ledger` meanwhile.
pub async fn push(
    context: Context,
    name: &str,
    settings: PushSettings,
    ledger: Ledger,
    stop: watch::Receiver<bool>,
) -> Report {
    let mut report = Report::default();
    let seen = ledger.clone();
    let run = run(context, name, settings, ledger, &mut report);
    let mut stopped = stop;
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stop| *stop) => report.problem = Some(Problem::Stopped),
        result = run => if let Err(problem) = result {
            report.problem = Some(problem);
        },
    }
    report.count(&seen.standing());
    report
}

async fn run(
    context: Context,
    name: &str,
    settings: PushSettings,
    ledger: Ledger,
    report: &mut Report,
) -> Result<(), Problem> {
    let Context {
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
    let member = lane.enter(&host, settings.deadline);
    member.set_weight(settings.weight);
    ledger.joins(&member);
    let bulk = match settings.deadline {
        Some(_) => settings.connections as usize,
        None => 1,
    };
    let job = Arc::new(Job {
        bulk: Arc::new(Semaphore::new(bulk)),
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
    let plan = job.plan(&record).await?;
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
    let done = job.follow(plan, record, report).await;
    telling.abort();
    done
}

impl Job {
    async fn plan(&self, record: &JobRecord) -> Result<Plan, Problem> {
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
        mut record: JobRecord,
        report: &mut Report,
    ) -> Result<(), Problem> {
        self.refuse_to_empty(&plan)?;
        let prefix = &self.settings.prefix;
        report.orphans = give_up_orphans(&self.state, self.id, &self.store, prefix).await?;
        let (gone, known) = (plan.totals.removed_files, plan.totals.known_files);
        let may_delete = match self.settings.delete {
            Delete::Mirror { max } => check_deletions(gone, known, max),
            Delete::Never => Ok(()),
        };
        // A directory needs the place of what was a file, as a new version does.
        self.remove(plan.replaced, report).await?;
        self.displace(plan.displaced, may_delete.is_ok(), report)
            .await?;
        self.send(plan.todos, report).await?;
        if report.gone > 0 {
            self.refuse_to_lose(plan.mounts.clone()).await?;
        }
        record.scanned = Some(plan.began);
        record.mounts = plan
            .mounts
            .into_iter()
            .map(|mount| (mount.path.as_bytes().to_vec(), mount.device))
            .collect();
        self.writer
            .keep(self.id, Change::Job(record.clone()))
            .await?;
        // First what has come: whatever becomes of the rest, it can be pulled.
        let record = self.tell(record, now()).await?;
        may_delete?;
        if matches!(self.settings.delete, Delete::Never) {
            return Ok(());
        }
        if !report.is_clean() {
            tracing::warn!("nothing is deleted, because not everything could be sent");
            return Ok(());
        }
        self.remove(plan.removed, report).await?;
        self.tell(record, now()).await?;
        Ok(())
    }

    /// What something else has taken the place of has no path any more. Where
    /// deleting is allowed it goes from the store as well, before what is in its
    /// place comes; else the store keeps it, though no pull brings it back.
    async fn displace(
        &self,
        displaced: impl Iterator<Item = std::io::Result<(TreePath, Synced)>>,
        may_delete: bool,
        report: &mut Report,
    ) -> Result<(), Problem> {
        if may_delete && matches!(self.settings.delete, Delete::Mirror { .. }) {
            return self.remove(displaced, report).await;
        }
        for item in displaced {
            let (path, _) = item.map_err(PlanError::Spool)?;
            tracing::warn!(%path, "something else is in its place; the store keeps what it was");
            self.note(Change::Removed(path))?;
        }
        Ok(())
    }

    /// Whether this would be deleting everything because nothing is there.
    fn refuse_to_empty(&self, plan: &Plan) -> Result<(), Problem> {
        let is_mirror = matches!(self.settings.delete, Delete::Mirror { .. });
        if is_mirror && plan.totals.known_files > 0 && is_empty(&self.settings.source) {
            return Err(Problem::EmptySource(self.settings.source.clone()));
        }
        Ok(())
    }

    /// Whether files are gone because the source itself is.
    async fn refuse_to_lose(&self, mounted: Vec<MountPoint>) -> Result<(), Problem> {
        let (source, filter) = (self.settings.source.clone(), self.settings.filter.clone());
        let options = Options {
            mounted,
            ..Options::default()
        };
        let opened = blocking(move || Scan::open(&source, filter, options).map(drop));
        opened.await?.map_err(|error| PlanError::from(error).into())
    }

    /// Sends what there is to send, some files at once.
    async fn send(
        self: &Arc<Self>,
        todos: impl Iterator<Item = std::io::Result<Todo>>,
        report: &mut Report,
    ) -> Result<(), Problem> {
        let most = self.settings.connections as usize + AHEAD;
        let mut running = JoinSet::new();
        for todo in todos {
            let (path, size, known) = match todo.map_err(PlanError::Spool)? {
                Todo::Note(path, entry) => {
                    self.note(Change::Synced(path, entry))?;
                    report.noted += 1;
                    continue;
                }
                Todo::Send { path, size } => (path, size, None),
                Todo::Examine { path, size, sha256 } => (path, size, Some(sha256)),
            };
            while running.len() >= most {
                self.ended(running.join_next().await, report)?;
            }
            let job = Arc::clone(self);
            running.spawn(async move {
                let done = job.bring(&path, size, known).await;
                (path, size, done)
            });
        }
        while !running.is_empty() {
            self.ended(running.join_next().await, report)?;
        }
        Ok(())
    }

    fn ended(&self, ended: Option<Ended>, report: &mut Report) -> Result<(), Problem> {
        let Some(ended) = ended else { return Ok(()) };
        let (path, size, done) = ended.map_err(|_| Problem::Lost)?;
        match done {
            Ok(Done::Sent) => {
                self.ledger.file_done(0);
                report.sent += 1;
            }
            Ok(Done::Same) => {
                self.ledger.file_done(size);
                report.same += 1;
            }
            Ok(Done::Gone) => {
                self.ledger.file_done(size);
                report.gone += 1;
            }
            Err(FileError::State(error)) => return Err(error.into()),
            Err(FileError::Lost) => return Err(Problem::Lost),
            Err(FileError::Store(error)) if error.is_of_store() => return Err(error.into()),
            Err(FileError::Store(error)) => {
                self.ledger.file_done(size);
                tracing::warn!(file = %path, %error, "not sent");
                report.failed(path, Failure::Store(error));
            }
            Err(FileError::Read(error)) => {
                self.ledger.file_done(size);
                tracing::warn!(file = %path, %error, "not sent");
                report.failed(
                    path,
                    match error {
                        ReadError::Changed => Failure::Changed,
                        other => Failure::Unreadable(other.to_string()),
                    },
                );
            }
        }
        Ok(())
    }

    /// Deletes what is gone.
    async fn remove(
        &self,
        removed: impl Iterator<Item = std::io::Result<(TreePath, Synced)>>,
        report: &mut Report,
    ) -> Result<(), Problem> {
        let mut gathered = VecDeque::new();
        let mut removed = removed.peekable();
        while let Some(item) = removed.next() {
            gathered.push_back(item.map_err(PlanError::Spool)?);
            if gathered.len() >= DELETED_AT_ONCE || removed.peek().is_none() {
                self.delete(std::mem::take(&mut gathered), report).await?;
            }
        }
        Ok(())
    }

    async fn delete(
        &self,
        gone: VecDeque<(TreePath, Synced)>,
        report: &mut Report,
    ) -> Result<(), Problem> {
        let files = gone.iter().filter(|(_, entry)| is_file(entry));
        let keys: Vec<_> = files.map(|(path, _)| self.key(path)).collect();
        let count = keys.len() as u64;
        let mut tries = self.attempts.tries();
        while !keys.is_empty() {
            let permit = self.member.admit().await;
            let Err(error) = self.store.delete(keys.clone()).await else {
                break;
            };
            drop(permit);
            tries.after(&self.member, error).await?;
        }
        for (path, _) in gone {
            self.note(Change::Removed(path))?;
        }
        report.deleted += count;
        Ok(())
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a manifest says when it was made"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

type Ended = Result<(TreePath, u64, Result<Done, FileError>), tokio::task::JoinError>;

/// Gives up uploads below a job's place that nobody remembers: of a process that
/// was killed before it could. Returns how many.
///
/// # Errors
/// The state, or the store.
pub async fn collect(
    state: &State,
    job: &str,
    store: &Store,
    prefix: &str,
) -> Result<u64, Problem> {
    let (state, job) = (state.clone(), job.to_owned());
    let known = state.clone();
    let (id, _) = blocking(move || known.job(&job)).await??;
    give_up_orphans(&state, id, store, prefix).await
}

async fn give_up_orphans(
    state: &State,
    id: JobId,
    store: &Store,
    prefix: &str,
) -> Result<u64, Problem> {
    let state = state.clone();
    let known = blocking(move || state.uploads(id)).await??;
    let pending = match store.pending(prefix).await {
        Ok(pending) => pending,
        Err(error) if error.may_pass() => return Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "unfinished uploads cannot be listed");
            return Ok(0);
        }
    };
    let mut given_up = 0;
    for orphan in pending {
        let is_known = known.iter().any(|(_, upload)| upload.name == orphan.upload);
        if !is_known {
            store.abort(&orphan.key, &orphan.upload).await?;
            given_up += 1;
        }
    }
    Ok(given_up)
}

pub(super) fn is_file(entry: &Synced) -> bool {
    matches!(entry.kind, SyncedKind::File { .. })
}

pub(super) fn check_deletions(gone: u64, known: u64, most: MaxDelete) -> Result<(), Problem> {
    let allowed = match most {
        MaxDelete::Files(files) => files,
        MaxDelete::Share(share) => (known as f64 * share) as u64,
    };
    if gone > allowed {
        Err(Problem::TooManyDeletions { gone, allowed })
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
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::Lost)
}

impl From<StateError> for Problem {
    fn from(error: StateError) -> Self {
        Self::State(error.to_string())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<PlanError> for Problem {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::State(error) => error.into(),
            PlanError::Stopped => Self::Stopped,
            other => Self::Scan(other.to_string()),
        }
    }
}
