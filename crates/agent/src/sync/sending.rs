//! The files of a run, some of them under way at once.

use std::sync::Arc;

use tokio::task::{JoinError, JoinSet};

use super::plan::{PlanError, Todo};
use super::push::Job;
use super::report::{EntryFailure, RunProblem, RunReport};
use super::source::ReadError;
use super::tell::Occasion;
use super::teller::Teller;
use super::upload::{Done, FileError, Had};
use crate::entry::TreePath;
use crate::state::StateChange;

/// Files that are open at once beyond the connections there may be: so that one
/// that ends leaves no gap.
const AHEAD: usize = 2;

/// A file, what the plan counted for it, and what has become of it.
type Ended = (TreePath, u64, Result<Done, FileError>);

impl Job {
    /// Sends what there is to send, some files at once.
    pub(super) async fn send(
        self: &Arc<Self>,
        todos: impl Iterator<Item = std::io::Result<Todo>>,
        teller: &mut Teller,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let most = self.settings.connections as usize + AHEAD;
        let mut running = JoinSet::new();
        for todo in todos {
            let (path, size, had) = match todo.map_err(PlanError::Spool)? {
                Todo::Note(path, entry) => {
                    self.note(StateChange::Synced(path, entry)).await?;
                    report.noted += 1;
                    continue;
                }
                Todo::Send {
                    path,
                    size,
                    replaces: false,
                } => (path, size, Had::Nothing),
                Todo::Send { path, size, .. } => (path, size, Had::Something),
                Todo::Examine { path, size, had } => (path, size, Had::This(had)),
            };
            while running.len() >= most {
                self.one_ends(&mut running, teller, report).await?;
            }
            let job = Arc::clone(self);
            running.spawn(async move {
                let done = job.bring(&path, size, had).await;
                (path, size, done)
            });
        }
        while !running.is_empty() {
            self.one_ends(&mut running, teller, report).await?;
        }
        Ok(())
    }

    /// Waits for one of the files, and tells the store meanwhile what it is time to
    /// tell.
    async fn one_ends(
        &self,
        running: &mut JoinSet<Ended>,
        teller: &mut Teller,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        loop {
            tokio::select! {
                ended = running.join_next() => return self.ended(ended, report),
                () = teller.due() => teller.tell(self, Occasion::During).await?,
            }
        }
    }

    fn ended(
        &self,
        ended: Option<Result<Ended, JoinError>>,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let Some(ended) = ended else { return Ok(()) };
        let (path, size, done) = ended.map_err(|_| RunProblem::Lost)?;
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
            Err(FileError::Lost) => return Err(RunProblem::Lost),
            Err(FileError::Store(error)) if error.is_of_store() => return Err(error.into()),
            Err(FileError::Store(error)) => {
                self.ledger.file_done(size);
                tracing::warn!(file = %path, %error, "not sent");
                report.failed(path, EntryFailure::Store(error));
            }
            Err(FileError::Read(error)) => {
                self.ledger.file_done(size);
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
}
