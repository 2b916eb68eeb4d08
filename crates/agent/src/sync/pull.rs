//! A run of a job that pulls, and a restore: brings a directory in step with what a
//! job has pushed.

use std::path::PathBuf;
use std::sync::Arc;

use fairbat::carrier::Ceiling;
use fairbat::lane::{Lane, Member};
use futures_util::TryStreamExt;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::attempts::{Attempts, Failing};
use super::fetched::Fetched;
use super::ledger::Ledger;
use super::manifests::Current;
use super::placing::{Aside, Found, Placing, is_unfinished};
use super::push::blocking;
use super::report::{Failure, Problem, Report};
use super::spool::Spool;
use crate::config::{Delete, MaxDelete};
use crate::entry::{Attributes, Kind, TreePath};
use crate::filter::Filter;
use crate::manifest::{Content, Item};
use crate::object_name;
use crate::scan::{Options, Scan};
use crate::store::{Store, StoreError, StoreErrorKind};

/// Files that are open at once beyond the connections there may be.
const AHEAD: usize = 2;

/// What a run is to do.
#[derive(Debug, Clone)]
pub struct PullSettings {
    /// Where in the store; may be empty.
    pub prefix: String,
    /// The directory, which is made if it is not there.
    pub to: PathBuf,
    /// What becomes of files in it that the store does not have.
    pub delete: Delete,
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
}

/// Whence a run fetches.
#[derive(Debug, Clone)]
pub struct Origin {
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
    ledger: Ledger,
    attempts: Attempts,
    placing: Arc<Placing>,
}

/// Why a file is not there.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Disk(#[from] std::io::Error),
    #[error("a task ended without a result")]
    Lost,
}

impl Failing for FileError {
    fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::Disk(_) | Self::Lost => None,
        }
    }
}

/// Brings a directory in step with what was pushed to a place in a store. Ends
/// early when `stop` becomes true; the next run goes on with the files that are
/// missing.
pub async fn pull(
    origin: Origin,
    settings: PullSettings,
    ledger: Ledger,
    stop: watch::Receiver<bool>,
) -> Report {
    let mut report = Report::default();
    let seen = ledger.clone();
    let run = run(origin, settings, ledger, &mut report);
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
    origin: Origin,
    settings: PullSettings,
    ledger: Ledger,
    report: &mut Report,
) -> Result<(), Problem> {
    let Origin { store, host, lane } = origin;
    let current = Current::read(&store, &settings.prefix).await?;
    let current = current.ok_or(Problem::NothingPushed)?;
    let fetched = Fetched::fetch(&store, &settings.prefix, &current).await?;
    let to = settings.to.clone();
    let placing = blocking(move || Placing::new(&to)).await?;
    let placing = Arc::new(placing.map_err(|error| disk(&settings.to, &error))?);
    let member = lane.enter(&host, settings.deadline);
    member.set_weight(settings.weight);
    ledger.joins(&member);
    let run = Arc::new(Run {
        member,
        attempts: Attempts::new(settings.seed, ledger.clone()),
        settings,
        store,
        ledger,
        placing,
    });
    let telling = tokio::spawn(tell(Arc::downgrade(&run)));
    let done = run.follow(fetched, report).await;
    telling.abort();
    run.placing.finish();
    done
}

impl Run {
    async fn follow(
        self: &Arc<Self>,
        mut fetched: Fetched,
        report: &mut Report,
    ) -> Result<(), Problem> {
        // First everything that is no file to fetch, and what there is to fetch.
        let run = Arc::clone(self);
        let (files, directories, totals, fetched) = blocking(move || {
            let mut files = Spool::new();
            let mut directories = Vec::new();
            let mut totals = Totals::default();
            for item in fetched.items()? {
                run.sort(item?, &mut files, &mut directories, &mut totals)?;
            }
            let files = files.finish().map_err(|error| spool(&error))?;
            Ok::<_, Problem>((files, directories, totals, fetched))
        })
        .await??;
        report.entries = totals.entries;
        report.same = totals.same;
        for (path, why) in totals.failures {
            report.failed(path, Failure::Unwritable(why));
        }
        self.ledger.expect(totals.files, totals.bytes);
        self.fetch_all(files, report).await?;
        self.delete(fetched, report).await?;
        let run = Arc::clone(self);
        let failures = blocking(move || run.dress(directories)).await?;
        for (path, why) in failures {
            report.failed(path, Failure::Unwritable(why));
        }
        Ok(())
    }

    /// Makes what has no content, and lists what has. Blocking.
    fn sort(
        &self,
        item: Item,
        files: &mut Spool<Wanted>,
        directories: &mut Vec<(TreePath, Attributes)>,
        totals: &mut Totals,
    ) -> Result<(), Problem> {
        totals.entries += 1;
        let Item {
            path,
            attributes,
            content,
        } = item;
        let done = match content {
            Content::Directory => {
                let made = self.placing.directory(&path);
                directories.push((path.clone(), attributes));
                made
            }
            Content::Symlink(target) => self.placing.link(&path, &target, &attributes),
            Content::File { size, sha256 } => match self.placing.look(&path) {
                Ok(Found::File {
                    size: has,
                    modified,
                    attributes: found,
                }) if (has, modified) == (size, attributes.modified) => {
                    totals.same += 1;
                    if found == attributes {
                        Ok(())
                    } else {
                        self.placing.dress(&path, &attributes)
                    }
                }
                Ok(_) => {
                    totals.files += 1;
                    totals.bytes += size;
                    let wanted = Wanted {
                        path: path.clone(),
                        attributes,
                        size,
                        sha256,
                    };
                    files.push(&wanted)
                }
                Err(error) => Err(error),
            },
        };
        if let Err(error) = done {
            totals.failures.push((path, error.to_string()));
        }
        Ok(())
    }

    async fn fetch_all(
        self: &Arc<Self>,
        files: impl Iterator<Item = std::io::Result<Wanted>>,
        report: &mut Report,
    ) -> Result<(), Problem> {
        let most = self.settings.connections as usize + AHEAD;
        let mut running = JoinSet::new();
        for file in files {
            let file = file.map_err(|error| spool(&error))?;
            while running.len() >= most {
                self.ended(running.join_next().await, report)?;
            }
            let run = Arc::clone(self);
            running.spawn(async move {
                let done = run.fetch(&file).await;
                (file.path, file.size, done)
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
            Ok(()) => {
                self.ledger.file_done(0);
                report.sent += 1;
            }
            Err(FileError::Lost) => return Err(Problem::Lost),
            Err(FileError::Store(error)) if error.is_of_store() => return Err(error.into()),
            Err(error) => {
                self.ledger.file_done(size);
                tracing::warn!(file = %path, %error, "not fetched");
                report.failed(
                    path,
                    match error {
                        FileError::Store(error) => Failure::Store(error),
                        other => Failure::Unwritable(other.to_string()),
                    },
                );
            }
        }
        Ok(())
    }

    async fn fetch(&self, wanted: &Wanted) -> Result<(), FileError> {
        let mut tries = self.attempts.tries();
        loop {
            let permit = self.member.admit().await;
            let flight = self.ledger.take_off(wanted.size, &self.settings.ceilings);
            let Err(error) = self.fetch_once(wanted, flight.passage()).await else {
                flight.landed();
                return Ok(());
            };
            drop((flight, permit));
            tries.after(&self.member, error).await?;
        }
    }

    async fn fetch_once(
        &self,
        wanted: &Wanted,
        passage: fairbat::carrier::Passage,
    ) -> Result<(), FileError> {
        let key = self.key(&wanted.path);
        let mut content = self.store.get(&key, None, passage).await?;
        let placing = Arc::clone(&self.placing);
        let aside = blocking_file(move || placing.begin()).await?;
        let mut writing = Writing {
            placing: Arc::clone(&self.placing),
            aside: Some(aside),
            hash: Sha256::new(),
            bytes: 0,
        };
        while let Some(piece) = content.try_next().await? {
            if writing.bytes + piece.len() as u64 > wanted.size {
                return Err(not_what_was_pushed(&key).into());
            }
            writing = writing.write(piece).await?;
        }
        let (path, attributes) = (wanted.path.clone(), wanted.attributes);
        if (writing.bytes, writing.hash.clone().finalize().into()) != (wanted.size, wanted.sha256) {
            return Err(not_what_was_pushed(&key).into());
        }
        blocking_file(move || {
            let aside = writing.aside.take().ok_or(std::io::ErrorKind::Other)?;
            writing.placing.place(aside, &path, &attributes)
        })
        .await
    }

    /// Deletes what the store does not have, if it is to.
    async fn delete(
        self: &Arc<Self>,
        fetched: Fetched,
        report: &mut Report,
    ) -> Result<(), Problem> {
        let Delete::Mirror { max } = self.settings.delete else {
            return Ok(());
        };
        if !report.is_clean() {
            tracing::warn!("nothing is deleted, because not everything could be fetched");
            return Ok(());
        }
        let run = Arc::clone(self);
        let deleted = blocking(move || run.delete_others(fetched, max)).await??;
        report.deleted = deleted;
        Ok(())
    }

    /// Blocking.
    fn delete_others(&self, mut fetched: Fetched, most: MaxDelete) -> Result<u64, Problem> {
        let to = &self.settings.to;
        let scan = Scan::open(to, Filter::everything(), Options::default());
        let scan = scan.map_err(|error| Problem::Scan(error.to_string()))?;
        let mut wanted = fetched.items()?.peekable();
        let mut others = Spool::new();
        let (mut gone, mut all) = (0_u64, 0_u64);
        for entry in scan {
            let Ok(entry) = entry else { continue };
            if is_unfinished(&entry.path) {
                continue;
            }
            let is_file = matches!(entry.kind, Kind::File(_));
            all += u64::from(is_file);
            while let Some(item) =
                wanted.next_if(|item| item.as_ref().is_ok_and(|item| item.path < entry.path))
            {
                item?;
            }
            // What cannot be read is no reason to delete anything.
            let next = wanted.next_if(Result::is_err).transpose()?;
            let next = next.as_ref().or(match wanted.peek() {
                Some(Ok(item)) => Some(item),
                Some(Err(_)) | None => None,
            });
            if next.is_none_or(|item| item.path != entry.path) {
                gone += u64::from(is_file);
                others.push(&entry.path).map_err(|error| spool(&error))?;
            }
        }
        super::push::check_deletions(gone, all, most)?;
        let others = others.finish().map_err(|error| spool(&error))?;
        let others = others.collect::<Result<Vec<TreePath>, _>>();
        // What is in a directory goes before it.
        for path in others.map_err(|error| spool(&error))?.iter().rev() {
            let removed = self.placing.remove(path);
            removed.map_err(|error| disk(&path.under(to), &error))?;
        }
        Ok(gone)
    }

    /// Gives directories their attributes, the innermost first. Blocking.
    fn dress(&self, directories: Vec<(TreePath, Attributes)>) -> Vec<(TreePath, String)> {
        let mut failures = Vec::new();
        for (path, attributes) in directories.into_iter().rev() {
            if let Err(error) = self.placing.dress(&path, &attributes) {
                failures.push((path, error.to_string()));
            }
        }
        failures
    }

    fn key(&self, path: &TreePath) -> String {
        object_name::under(&self.settings.prefix, path)
    }
}

/// A file that is being fetched. Dropped, it is given up.
struct Writing {
    placing: Arc<Placing>,
    aside: Option<Aside>,
    hash: Sha256,
    bytes: u64,
}

impl Writing {
    async fn write(mut self, piece: bytes::Bytes) -> Result<Self, FileError> {
        blocking_file(move || {
            use std::io::Write;
            self.hash.update(&piece);
            self.bytes += piece.len() as u64;
            if let Some(aside) = &mut self.aside {
                aside.file.write_all(&piece)?;
            }
            Ok(self)
        })
        .await
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            self.placing.abandon(aside);
        }
    }
}

/// A file to fetch.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Wanted {
    path: TreePath,
    attributes: Attributes,
    size: u64,
    sha256: [u8; 32],
}

#[derive(Debug, Default)]
struct Totals {
    entries: u64,
    same: u64,
    files: u64,
    bytes: u64,
    failures: Vec<(TreePath, String)>,
}

type Ended = Result<(TreePath, u64, Result<(), FileError>), tokio::task::JoinError>;

async fn tell(run: std::sync::Weak<Run>) {
    while let Some(run) = run.upgrade() {
        let part = run.store.part_size(0);
        run.member.set_backlog(run.ledger.backlog(part));
        drop(run);
        tokio::time::sleep(super::push::TELL).await;
    }
}

async fn blocking_file<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, FileError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|_| FileError::Lost)??)
}

fn not_what_was_pushed(key: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Integrity,
        format!("{key} in the store is not what was pushed"),
    )
    .with_hint("something else has written there, or the store is damaged")
}

fn disk(path: &std::path::Path, error: &std::io::Error) -> Problem {
    Problem::Disk(format!("{}: {error}", path.display()))
}

fn spool(error: &std::io::Error) -> Problem {
    Problem::Disk(format!("temporary files: {error}"))
}
