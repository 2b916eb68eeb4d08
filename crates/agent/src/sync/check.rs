//! A check: compares what a store has with what was sent there.
//!
//! - The manifests are read, and their authenticator is compared.
//! - Names and sizes are compared with a listing of the store.
//! - Contents are read again: all of them, or for each day since the last check so many
//!   bytes. Files are read in an order that is random and always the same. Each check
//!   goes on where the last one ended, so that in time all files are read.
//!
//! What is missing or damaged is noted in the state, and the next push sends it again.
//! A push may go on meanwhile: what it changes does not count as damaged.

use std::sync::Arc;

use fairbat::blocking::blocking;
use futures_util::TryStreamExt;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::differing::DifferingObjects;
use super::job::PushContext;
use super::manifest_store::{read_key, valid_manifests};
use super::progress::RunProgress;
use super::report::{EntryFailure, MoveError, RunProblem, RunReport};
use super::retry_store::RetryStore;
use super::sample::{CheckSample, StoredFile};
use super::settings::RunSettings;
use super::spool::Spool;
use super::stop::until_stopped;
use crate::entry::TreePath;
use crate::object_name;
use crate::state::{
    CheckRecord, JobId, JobRecord, PlaceRecord, StateChange, StateDatabase, StateWriter, Synced,
    SyncedKind,
};
use crate::store::{ListPlace, StoreErrorKind, part_size};

/// Most pages of a listing. A page has some objects at least.
const MAX_PAGES: u64 = 10_000_000;

/// Pages of a listing that wait to be compared.
const PAGES_AHEAD: usize = 4;

/// What a check does.
#[derive(Debug, Clone)]
pub struct CheckSettings {
    /// What any run has.
    pub run: RunSettings,
    /// Identifies the store among all stores, without credentials.
    pub address: String,
    /// Bytes of content to read for each day since the last check, at most for a week.
    /// `None` reads all contents.
    pub bytes_per_day: Option<u64>,
    /// The time now.
    pub now: Timestamp,
}

/// Compares what a job has pushed with what the store has. Ends early when `stop` becomes
/// true.
pub async fn check(
    context: PushContext,
    name: &str,
    settings: CheckSettings,
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
    settings: CheckSettings,
    progress: RunProgress,
    report: &mut RunReport,
) -> Result<(), RunProblem> {
    let (state, name) = (context.state.clone(), name.to_owned());
    let (id, record) = blocking(move || state.job(&name)).await??;
    let here = PlaceRecord {
        store: settings.address.clone(),
        path: settings.run.prefix.clone(),
    };
    if record.place.as_ref() != Some(&here) || record.manifest.base == 0 {
        return Err(RunProblem::NeverPushed);
    }
    let store = RetryStore::enter(
        context.store,
        settings.run.service,
        &settings.run,
        progress.clone(),
    );
    let check = Arc::new(StoreCheck {
        id,
        settings,
        state: context.state,
        writer: context.writer.for_run(),
        store,
        progress,
    });
    tokio::select! {
        done = check.follow(&record, report) => done,
        never = check.store.report_backlog(|_| part_size(0)) => match never {},
    }
}

/// A check under way.
#[derive(Debug)]
struct StoreCheck {
    id: JobId,
    settings: CheckSettings,
    state: StateDatabase,
    writer: StateWriter,
    store: RetryStore,
    progress: RunProgress,
}

impl StoreCheck {
    async fn follow(
        self: &Arc<Self>,
        record: &JobRecord,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let expected = self.compare_sizes().await?;
        let check = Arc::clone(self);
        let chosen = blocking(move || check.choose(&expected)).await??;
        report.entries = chosen.known;
        self.check_manifests(record, report).await?;
        self.progress.expect(chosen.files, chosen.bytes);
        self.read_all(chosen.spool, report).await?;
        let done = StateChange::Checked(chosen.done);
        self.writer.keep(self.id, done).await?;
        report.note_damaged(&self.state, self.id).await
    }

    /// Compares names and sizes with a listing. Returns the objects that differ.
    async fn compare_sizes(self: &Arc<Self>) -> Result<DifferingObjects, RunProblem> {
        let check = Arc::clone(self);
        let (pages, mut listed) = mpsc::channel(PAGES_AHEAD);
        let comparing = blocking(move || {
            let files = check
                .state
                .entries(check.id)?
                .filter_map(|entry| match entry {
                    Ok((path, synced)) => {
                        let file = file_of(path, &synced)?;
                        Some(Ok((check.key(&file.path), file.size)))
                    }
                    Err(error) => Some(Err(error.into())),
                });
            DifferingObjects::find(files, || listed.blocking_recv())
        });
        let listing = async {
            let mut places = vec![ListPlace::of(self.settings.run.prefix.clone())];
            for _ in 0..MAX_PAGES {
                let Some(place) = places.pop() else {
                    drop(pages);
                    return Ok(());
                };
                let page = self.store.with_retry(|| self.store.list(&place)).await?;
                places.extend(page.more);
                if pages.send(page.objects).await.is_err() {
                    // The comparison has failed, and says why.
                    return Ok(());
                }
            }
            Err(RunProblem::Manifest(
                "the listing of the store does not end".to_owned(),
            ))
        };
        let (listed, expected) = tokio::join!(listing, comparing);
        listed?;
        expected?
    }

    /// Reads the manifests. Notes what is wrong with them under the path of the root.
    async fn check_manifests(
        &self,
        record: &JobRecord,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let run = &self.settings.run;
        let key = read_key(run.key_file.as_deref()).await?;
        let found = valid_manifests(&self.store, &run.prefix, key.as_ref()).await;
        let what = match found {
            Ok((pointer, _)) if pointer.writer != record.manifest.writer => {
                return Err(RunProblem::OtherWriter);
            }
            Ok(_) => {
                let intact = StateChange::Intact(TreePath::root());
                return Ok(self.writer.note(self.id, intact).await?);
            }
            Err(RunProblem::NothingPushed) => "the pointer to the manifests is missing".to_owned(),
            Err(problem @ (RunProblem::Manifest(_) | RunProblem::NotGenuine(_))) => {
                problem.to_string()
            }
            Err(RunProblem::Store(error)) if error.kind == StoreErrorKind::Missing => {
                error.to_string()
            }
            Err(problem) => return Err(problem),
        };
        self.found(TreePath::root(), EntryFailure::Manifests(what), report)
            .await
    }

    /// Notes that an entry is damaged.
    async fn found(
        &self,
        path: TreePath,
        failure: EntryFailure,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let damaged = StateChange::Damaged(path.clone());
        self.writer.note(self.id, damaged).await?;
        report.note(path, MoveError::Entry(failure), "damaged in the store")
    }

    /// Chooses the files whose contents are read: those that differ, those that an
    /// earlier check has found damaged, and a sample or all others. Blocking.
    fn choose(&self, differing: &DifferingObjects) -> Result<ChosenFiles, RunProblem> {
        let mut chosen = ChosenFiles::default();
        let record = self.state.check_record(self.id)?;
        let now_s = self.settings.now.as_second();
        let per_day = self.settings.bytes_per_day;
        let is_all = per_day.is_none();
        let per_day = per_day.unwrap_or_default();
        let mut sample = CheckSample::new(per_day, now_s, record, self.settings.run.seed);
        let damaged = self.state.damaged(self.id)?;
        for entry in self.state.entries(self.id)? {
            let (path, synced) = entry?;
            let Some(file) = file_of(path, &synced) else {
                continue;
            };
            chosen.known += 1;
            if is_all
                || damaged.contains(&file.path)
                || differing.contains(&self.key(&file.path))?
            {
                chosen.push(&file)?;
            } else {
                sample.add(file);
            }
        }
        if sample.too_large > 0 {
            tracing::warn!(
                files = sample.too_large,
                "not read, because they are larger than check_bytes_per_day allows at once: \
                 `fairbat-agent check --store` reads them"
            );
        }
        let (nearest, done) = sample.finish();
        chosen.done = done;
        for file in nearest {
            chosen.push(&file)?;
        }
        Ok(chosen)
    }

    fn key(&self, path: &TreePath) -> String {
        object_name::under(&self.settings.run.prefix, path)
    }

    /// Reads files, several at once.
    async fn read_all(
        self: &Arc<Self>,
        files: Spool<StoredFile>,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let mut running = JoinSet::new();
        for file in files.read()? {
            let file = file?;
            if running.len() >= self.settings.run.connections as usize
                && let Some(ended) = running.join_next().await
            {
                self.ended(ended?, report).await?;
            }
            let check = Arc::clone(self);
            running.spawn(async move { (check.read(&file).await, file) });
        }
        while let Some(ended) = running.join_next().await {
            self.ended(ended?, report).await?;
        }
        Ok(())
    }

    async fn ended(
        &self,
        (read, file): (Result<(), MoveError>, StoredFile),
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        self.progress.file_done(match read {
            Ok(()) => 0,
            Err(_) => file.size,
        });
        match read {
            Ok(()) => {
                report.same += 1;
                let intact = StateChange::Intact(file.path);
                Ok(self.writer.note(self.id, intact).await?)
            }
            Err(MoveError::Entry(failure)) if failure.is_of_object() => {
                if self.is_replaced(&file).await? {
                    return Ok(());
                }
                self.found(file.path, failure, report).await
            }
            Err(error) => report.note(file.path, error, "not compared"),
        }
    }

    /// Whether a push has replaced a file since, or is about to.
    async fn is_replaced(&self, file: &StoredFile) -> Result<bool, RunProblem> {
        let (state, id, file) = (self.state.clone(), self.id, file.clone());
        let is_replaced = blocking(move || {
            let is_under_way = state.replacing(id)?.contains(&file.path);
            let now = state.entry(id, &file.path)?;
            let now = now.and_then(|synced| file_of(file.path.clone(), &synced));
            let is_same = now.is_some_and(|now| now.sha256 == file.sha256);
            Ok::<_, RunProblem>(is_under_way || !is_same)
        });
        is_replaced.await?
    }

    /// Compares the content of an object with what was sent.
    async fn read(&self, file: &StoredFile) -> Result<(), MoveError> {
        let key = self.key(&file.path);
        let read = || async {
            let request = self.store.begin_request(file.size);
            let mut content = self.store.get(&key, request.context()).await?;
            let (mut hash, mut size) = (Sha256::new(), 0);
            while let Some(piece) = content.try_next().await? {
                size += piece.len() as u64;
                if size > file.size {
                    break;
                }
                hash.update(&piece);
            }
            let sha256: [u8; 32] = hash.finalize().into();
            if (size, sha256) != (file.size, file.sha256) {
                return Err(MoveError::Entry(EntryFailure::Damaged));
            }
            request.finish();
            Ok(())
        };
        match self.store.with_retry(read).await {
            Err(MoveError::Entry(EntryFailure::Store(error)))
                if error.kind == StoreErrorKind::Missing =>
            {
                Err(MoveError::Entry(EntryFailure::Missing))
            }
            read => read,
        }
    }
}

/// The files whose contents are read.
#[derive(Debug, Default)]
struct ChosenFiles {
    spool: Spool<StoredFile>,
    files: u64,
    bytes: u64,
    /// All files that the store should have.
    known: u64,
    /// How far this check is when all of them are read.
    done: CheckRecord,
}

impl ChosenFiles {
    fn push(&mut self, file: &StoredFile) -> Result<(), RunProblem> {
        self.files += 1;
        self.bytes += file.size;
        self.spool.push(file)
    }
}

/// The file of an entry; `None` for other kinds.
fn file_of(path: TreePath, synced: &Synced) -> Option<StoredFile> {
    match synced.kind {
        SyncedKind::File { state, sha256 } => Some(StoredFile {
            distance: 0,
            path,
            size: state.size,
            sha256,
        }),
        SyncedKind::Directory | SyncedKind::Symlink(_) => None,
    }
}
