//! A run of a job that pulls, and a restore: brings a directory in step with what a
//! job has pushed.
//!
//! A file that is there with the size and the time of the manifest is the same;
//! what differs is replaced, be it that somebody has changed it here. A push may be
//! under way meanwhile: then the store has contents that the manifest does not know
//! yet. They are left, and looked for again once there is a new manifest. Until a
//! first push is through its manifest does not have all: nothing is deleted for that.

mod deleting;
mod fetching;
mod sifting;
mod sorting;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairbat::lane::{Lane, Member};
use fairbat::transport::RateLimit;
use jiff::Timestamp;
use tokio::sync::watch;

use super::attempts::{Attempts, Failing};
use super::fetched::Fetched;
use super::ledger::Progress;
use super::manifests::Current;
use super::placing::{OpenError, Placing, is_unfinished};
use super::push::{StopOnDrop, TELL, blocking};
use super::report::{RunProblem, RunReport};
use crate::config::{Delete, Detect};
use crate::entry::{Attributes, TreePath};
use crate::filter::Filter;
use crate::store::{Store, StoreError, StoreErrorKind};

/// How long a pull waits, each time, before it looks for a new manifest because
/// the store has contents that are not those of the one it knows: a push that is
/// under way tells what it has sent about once a minute. Some four minutes
/// together.
pub const MANIFEST_PAUSES: [Duration; 4] = [
    Duration::from_secs(15),
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(120),
];

/// How often manifests are asked for that are replaced before they are read.
const LOOKS: u32 = 5;

/// What a run is to do.
#[derive(Debug, Clone)]
pub struct PullSettings {
    /// Where in the store; may be empty.
    pub prefix: String,
    /// The directory, which is made if it is not there.
    pub to: PathBuf,
    /// Whether an earlier run has filled this directory: if nothing is in it then,
    /// a disk is not mounted, and nothing is done.
    pub was_filled: bool,
    /// What of it. The rest is neither fetched nor deleted.
    pub filter: Filter,
    /// By what a file is known to be the same.
    pub detect: Detect,
    /// What becomes of files in it that the store does not have.
    pub delete: Delete,
    /// Pauses before the manifest is looked for again while a push is under way;
    /// after the last it is given up. [`MANIFEST_PAUSES`], but for tests.
    pub pauses: Vec<Duration>,
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
}

/// Whence a run fetches.
#[derive(Debug, Clone)]
pub struct PullOrigin {
    /// Where the files are.
    pub store: Arc<Store>,
    /// Whom the store is a host of.
    pub host: String,
    /// What it shares with other jobs.
    pub lane: Lane,
}

struct Run {
    settings: PullSettings,
    store: Arc<Store>,
    member: Member,
    ledger: Progress,
    attempts: Attempts,
    placing: Arc<Placing>,
    stopped: Arc<AtomicBool>,
}

/// Brings a directory in step with what was pushed to a place in a store. Ends
/// early when `stop` becomes true; the next run goes on with the files that are
/// missing.
pub async fn pull(
    origin: PullOrigin,
    settings: PullSettings,
    ledger: Progress,
    stop: watch::Receiver<bool>,
) -> RunReport {
    let mut report = RunReport::default();
    let seen = ledger.clone();
    let run = run(origin, settings, ledger, &mut report);
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
    origin: PullOrigin,
    settings: PullSettings,
    ledger: Progress,
    report: &mut RunReport,
) -> Result<(), RunProblem> {
    let PullOrigin { store, host, lane } = origin;
    // What goes on in other threads ends as well when this is dropped.
    let stop = StopOnDrop::default();
    let member = lane.enter(&host, settings.deadline);
    member.set_weight(settings.weight);
    ledger.joins(&member);
    let attempts = Attempts::new(settings.seed, ledger.clone());
    let first = manifest(&store, &settings.prefix, &attempts, &member).await?;
    if settings.was_filled && first.1.bytes > 0 && is_empty(&settings.to) {
        return Err(RunProblem::EmptyTarget(settings.to));
    }
    let (to, stopped) = (settings.to.clone(), Arc::clone(&stop.0));
    let placing = blocking(move || Placing::new(&to, &|| stopped.load(Ordering::Relaxed)));
    let placing = placing.await?.map_err(|error| match error {
        OpenError::Busy => RunProblem::Busy(settings.to.clone()),
        OpenError::Stopped => RunProblem::Stopped,
        OpenError::Disk(error) => disk(&settings.to, &error),
    })?;
    let run = Arc::new(Run {
        member,
        attempts,
        settings,
        store,
        ledger,
        placing: Arc::new(placing),
        stopped: Arc::clone(&stop.0),
    });
    let telling = tokio::spawn(tell(Arc::downgrade(&run)));
    let done = run.follow(first, report).await;
    telling.abort();
    done
}

/// Which manifests count, and what they say.
type Known = (Current, Fetched);

/// What a pass leaves to be done.
struct Passed {
    fetched: Fetched,
    directories: Vec<(TreePath, Attributes)>,
    /// Files that the store has in another version than the manifest says.
    newer: u64,
}

impl Run {
    async fn follow(
        self: &Arc<Self>,
        first: Known,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let (mut current, mut fetched) = first;
        let mut pauses = self.settings.pauses.iter();
        let passed = loop {
            let passed = self.pass(fetched, !current.is_partial, report).await?;
            if passed.newer == 0 && !current.is_partial {
                break passed;
            }
            tracing::info!(
                files = passed.newer,
                "a push is under way: waiting for its manifest"
            );
            let Some(renewed) = self.renewed(current, &mut pauses).await? else {
                break passed;
            };
            (current, fetched) = renewed;
            self.dress(passed.directories, &mut RunReport::default())
                .await?;
        };
        if !current.is_partial {
            self.delete(passed.fetched, report).await?;
        }
        // After all that changes what is in them.
        self.dress(passed.directories, report).await?;
        report.unowned = self.placing.take_unowned();
        if report.unowned > 0 {
            tracing::warn!(
                entries = report.unowned,
                "owners could not be set: the agent is not root"
            );
        }
        // Only now it is done.
        let run = Arc::clone(self);
        let synced = blocking(move || run.placing.sync()).await?;
        synced.map_err(|error| disk(&self.settings.to, &error))?;
        match current.is_partial {
            true => Err(RunProblem::FirstPush),
            false => Ok(()),
        }
    }

    /// Brings the directory in step with what the manifests say, but for the
    /// files that the store has in another version. Deletes what is in the way, if
    /// that is allowed and `may_delete`. The report is of this pass, but for what
    /// was moved.
    async fn pass(
        self: &Arc<Self>,
        mut fetched: Fetched,
        may_delete: bool,
        report: &mut RunReport,
    ) -> Result<Passed, RunProblem> {
        self.placing.take_unowned();
        let run = Arc::clone(self);
        let (sorted, fetched) = blocking(move || {
            let mut sorted = run.sort(&mut fetched)?;
            if let Delete::Mirror { max } = run.settings.delete
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
            // What an earlier pass has brought was not there before.
            same: sorted.report.same.saturating_sub(sent),
            ..sorted.report
        };
        let (files, bytes) = sorted.wanted;
        self.ledger.expect(files, bytes);
        let newer = self.fetch_all(sorted.files, report).await?;
        Ok(Passed {
            fetched,
            directories: sorted.directories,
            newer,
        })
    }

    /// Deletes what the store does not have, if it is to.
    async fn delete(
        self: &Arc<Self>,
        mut fetched: Fetched,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let Delete::Mirror { max } = self.settings.delete else {
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

    /// Gives directories their attributes.
    async fn dress(
        self: &Arc<Self>,
        directories: Vec<(TreePath, Attributes)>,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let run = Arc::clone(self);
        let dressed = blocking(move || run.dress_all(directories)).await??;
        report.add_failures(dressed);
        Ok(())
    }

    /// The next manifests that differ from these; `None` when none come in time.
    async fn renewed(
        &self,
        known: Current,
        pauses: &mut (impl Iterator<Item = &Duration> + Send),
    ) -> Result<Option<Known>, RunProblem> {
        for pause in pauses {
            tokio::time::sleep(*pause).await;
            let prefix = &self.settings.prefix;
            let found = manifest(&self.store, prefix, &self.attempts, &self.member).await?;
            if found.0 != known {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn check_stopped(&self) -> Result<(), RunProblem> {
        match self.is_stopped() {
            true => Err(RunProblem::Stopped),
            false => Ok(()),
        }
    }
}

impl Failing for RunProblem {
    fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

/// The manifests that count now. What one of them replaces is deleted, perhaps
/// while it is being read.
async fn manifest(
    store: &Store,
    prefix: &str,
    attempts: &Attempts,
    member: &Member,
) -> Result<Known, RunProblem> {
    let mut tries = attempts.tries();
    let mut looks = 0;
    loop {
        let permit = member.admit().await;
        let error = match read(store, prefix).await {
            Ok(known) => return Ok(known),
            Err(error) => error,
        };
        drop(permit);
        looks += 1;
        let is_missing =
            matches!(&error, RunProblem::Store(store) if store.kind == StoreErrorKind::Missing);
        if !is_missing || looks >= LOOKS {
            tries.after(member, error).await?;
        }
    }
}

async fn read(store: &Store, prefix: &str) -> Result<Known, RunProblem> {
    let current = Current::read(store, prefix).await?;
    let current = current.ok_or(RunProblem::NothingPushed)?;
    let fetched = Fetched::fetch(store, prefix, &current).await?;
    Ok((current, fetched))
}

async fn tell(run: std::sync::Weak<Run>) {
    while let Some(run) = run.upgrade() {
        let part = run.store.part_size(0);
        run.member.set_backlog(run.ledger.backlog(part));
        drop(run);
        tokio::time::sleep(TELL).await;
    }
}

/// Whether nothing is in a directory, or it is not there.
fn is_empty(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return !directory.exists();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let is_ours = |name: &std::ffi::OsStr| {
        TreePath::root()
            .join(name)
            .is_ok_and(|path| is_unfinished(&path))
    };
    names.filter(|name| !is_ours(name)).count() == 0
}

fn disk(path: &Path, error: &std::io::Error) -> RunProblem {
    RunProblem::Disk(format!("{}: {error}", path.display()))
}

fn spool(error: &std::io::Error) -> RunProblem {
    RunProblem::Disk(format!("temporary files: {error}"))
}
