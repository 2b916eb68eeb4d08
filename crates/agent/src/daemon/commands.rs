//! Commands: what the daemon does about each one, and how it answers.
//!
//! Work that waits for a disk runs in the background. A command is answered only
//! after its effect is recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use super::adhoc::{self, AdHocTask, AdHocWork, MAX_UNENDED};
use super::core::{AddedTask, BackgroundResult, Daemon};
use super::entry::{TaskEntry, TaskWork, check_id};
use super::handle::{CommandAccepted, CommandError, CommandReply, DaemonPort, TaskCommand};
use crate::config::{Config, Course};
use crate::confine::Confinement;
use crate::reserved::ReservedPlaces;
use crate::state::CommitHandle;

/// Edit distance up to which an id counts as similar to a mistyped one.
const MAX_TYPO_DISTANCE: usize = 2;

/// The id of the task, and the record that has to be written before the answer.
type Handled = Result<(String, Option<CommitHandle<()>>), CommandError>;

impl Daemon {
    /// Acts on a command. Its answer comes after the status shows its effect.
    pub(crate) fn handle_command(
        &mut self,
        command: TaskCommand,
        reply: CommandReply,
        port: &DaemonPort,
    ) {
        let handled = match command {
            TaskCommand::Run {
                job,
                accept_unmounted,
            } => self.run_now(job, &accept_unmounted),
            TaskCommand::Check { job } => self.check_now(&job),
            TaskCommand::Pause { id } => self.pause(id),
            TaskCommand::Resume { id } => self.resume(id),
            TaskCommand::Cancel { id } => self.cancel(id),
            TaskCommand::Add {
                url,
                mirrors,
                checksum,
                to,
                deadline,
            } => {
                let work = AdHocWork::Download {
                    url,
                    mirrors,
                    checksum: checksum.map(|checksum| checksum.to_string()),
                    to,
                };
                return self.add(work, deadline, reply);
            }
            TaskCommand::Restore {
                job,
                to,
                setuid,
                deadline,
            } => match self.find_job(&job) {
                Ok(_) => {
                    let work = AdHocWork::Restore { job, to, setuid };
                    return self.add(work, deadline, reply);
                }
                Err(error) => Err(error),
            },
        };
        self.start_due_runs();
        if handled.is_ok() {
            port.show(self.status());
        }
        match handled {
            Ok((id, None)) => drop(reply.send(Ok(CommandAccepted { id }))),
            Ok((id, Some(keeping))) => drop(self.background.spawn(async move {
                let kept = keeping.done().await;
                let kept = kept.map_err(|error| not_recorded(&error));
                let _ = reply.send(kept.map(|()| CommandAccepted { id }));
                None
            })),
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    fn run_now(&mut self, job: String, accept_unmounted: &[PathBuf]) -> Handled {
        let now = self.now().timestamp();
        let config = Arc::clone(&self.config);
        let entry = self.find_job(&job)?;
        if let Some(active) = &entry.active {
            // Whoever asks for a run does not want to wait for the next try.
            if accept_unmounted.is_empty() && active.wake() {
                return Ok((job, None));
            }
            return Err(CommandError::NotNow(format!(
                "job {job} is running already"
            )));
        }
        if entry.schedule.is_paused {
            let what = format!("job {job} is paused; resume it first");
            return Err(CommandError::NotNow(what));
        }
        entry.accept_unmounted = accept_unmounted
            .iter()
            .map(|path| mountable(&config, entry, path))
            .collect::<Result<_, _>>()?;
        entry.schedule.run_now(now);
        Ok((job, None))
    }

    /// Begins a check that reads all contents.
    fn check_now(&mut self, job: &str) -> Handled {
        let now = self.now().timestamp();
        self.find_job(job)?;
        let id = check_id(job);
        let Ok(entry) = self.find(&id) else {
            let what = format!("job {job} does not push; the job that pushes checks the store");
            return Err(CommandError::Impossible(what));
        };
        if entry.active.is_some() {
            let what = format!("a check of {job} is running already; wait for its end");
            return Err(CommandError::NotNow(what));
        }
        if let TaskWork::Check { reads_all, .. } = &mut entry.work {
            *reads_all = true;
        }
        entry.schedule.run_now(now);
        Ok((id, None))
    }

    fn pause(&mut self, id: String) -> Handled {
        let entry = self.find(&id)?;
        if entry.schedule.is_over() {
            return Err(CommandError::NotNow(format!("{id} has ended")));
        }
        entry.schedule.pause();
        entry.stop_run();
        let keeping = self.record_task(&id);
        Ok((id, keeping))
    }

    fn resume(&mut self, id: String) -> Handled {
        let entry = self.find(&id)?;
        if !std::mem::replace(&mut entry.schedule.is_paused, false) {
            return Err(CommandError::NotNow(format!("{id} is not paused")));
        }
        let keeping = self.record_task(&id);
        Ok((id, keeping))
    }

    fn cancel(&mut self, id: String) -> Handled {
        let entry = self.find(&id)?;
        entry.stop_run();
        let had_anything = entry.schedule.cancel();
        let TaskWork::AdHoc(number, _) = entry.work else {
            if !had_anything {
                let what = format!("no run of {id} is under way or waits to continue");
                return Err(CommandError::NotNow(what));
            }
            let keeping = self.record_task(&id);
            return Ok((id, keeping));
        };
        entry.is_removed = true;
        if entry.active.is_none()
            && let Some(index) = self.entries.iter().position(|entry| entry.id == id)
        {
            self.forget(index);
        }
        let keeping = self.writer.set_ad_hoc_task(number, None);
        Ok((id, Some(keeping)))
    }

    /// Checks and records a new ad-hoc task in the background.
    fn add(&mut self, work: AdHocWork, deadline: Option<Timestamp>, reply: CommandReply) {
        let task = AdHocTask {
            work,
            deadline,
            is_paused: false,
        };
        let unended = |entry: &&TaskEntry| {
            matches!(entry.work, TaskWork::AdHoc(..))
                && !entry.is_removed
                && entry.ended_adhoc().is_none()
        };
        if self.entries.iter().filter(unended).count() + self.adding >= MAX_UNENDED {
            let what = format!(
                "{MAX_UNENDED} downloads and restores are under way or wait, and no more may; \
                 wait for some of them, or cancel some"
            );
            return drop(reply.send(Err(CommandError::NotNow(what))));
        }
        self.adding += 1;
        let (writer, reserved) = (self.writer.clone(), self.reserved());
        let confinement = Arc::clone(&self.confinement);
        self.background.spawn(async move {
            let number = match check_target(task.work.clone(), reserved, confinement).await {
                Ok(()) => {
                    let added = writer.add_ad_hoc_task(task.to_json()).done().await;
                    added.map_err(|error| not_recorded(&error))
                }
                Err(error) => Err(error),
            };
            Some(BackgroundResult::Added(Box::new(AddedTask {
                task,
                number,
                reply,
            })))
        });
    }

    /// Lists and starts an ad-hoc task that is recorded now.
    pub(crate) fn task_added(&mut self, added: AddedTask, port: &DaemonPort) {
        self.adding -= 1;
        let number = match added.number {
            Ok(number) => number,
            Err(error) => return drop(added.reply.send(Err(error))),
        };
        let now = self.now();
        self.entries
            .push(TaskEntry::adhoc(number, added.task, &now));
        self.start_due_runs();
        port.show(self.status());
        let id = adhoc::id(number);
        let _ = added.reply.send(Ok(CommandAccepted { id }));
    }

    fn record_task(&mut self, id: &str) -> Option<CommitHandle<()>> {
        let index = self.entries.iter().position(|entry| entry.id == id)?;
        let entry = &mut self.entries[index];
        match &mut entry.work {
            TaskWork::Job(_) | TaskWork::Check { .. } => self.record_state(index),
            TaskWork::AdHoc(number, task) => {
                task.is_paused = entry.schedule.is_paused;
                Some(self.writer.set_ad_hoc_task(*number, Some(task.to_json())))
            }
        }
    }

    fn find(&mut self, id: &str) -> Result<&mut TaskEntry, CommandError> {
        let listed = self.entries.iter().filter(|entry| !entry.is_removed);
        let nearest = listed
            .map(|entry| (strsim::damerau_levenshtein(&entry.id, id), &entry.id))
            .filter(|(distance, _)| *distance <= MAX_TYPO_DISTANCE)
            .min()
            .map(|(_, name)| name.clone());
        self.entries
            .iter_mut()
            .find(|entry| entry.id == id && !entry.is_removed)
            .ok_or(CommandError::UnknownTask {
                id: id.to_owned(),
                nearest,
            })
    }

    fn find_job(&mut self, id: &str) -> Result<&mut TaskEntry, CommandError> {
        let entry = self.find(id)?;
        match entry.work {
            TaskWork::Job(_) => Ok(entry),
            TaskWork::Check { .. } | TaskWork::AdHoc(..) => {
                Err(CommandError::Impossible(format!("{id} is not a job")))
            }
        }
    }
}

/// The path, where something may have been mounted that a push needs: in its source, or
/// at or above its local store.
fn mountable(config: &Config, entry: &TaskEntry, path: &Path) -> Result<PathBuf, CommandError> {
    let course = match &entry.work {
        TaskWork::Job(job) => Some(&job.course),
        TaskWork::Check { .. } | TaskWork::AdHoc(..) => None,
    };
    let found = match course {
        Some(Course::Push { from, to }) => {
            let path = from.join(path);
            let is_above = |store: &Path| store.starts_with(&path);
            let is_of_store = config.local_path(&to.store).is_some_and(is_above);
            (is_of_store || path.starts_with(from)).then_some(path)
        }
        Some(Course::Pull { .. }) | None => None,
    };
    found.ok_or_else(|| {
        let what = format!("{} is not in the source of {}", path.display(), entry.id);
        CommandError::Impossible(what)
    })
}

/// Nothing is written where the agent itself writes. And a restore never mixes its files
/// with others: its directory has to be empty.
async fn check_target(
    work: AdHocWork,
    reserved: ReservedPlaces,
    confinement: Arc<Confinement>,
) -> Result<(), CommandError> {
    let is_filled = |to: &Path| {
        let entries = std::fs::read_dir(to);
        // The run creates a missing directory. It reports any other error itself.
        entries.is_ok_and(|mut entries| entries.next().is_some())
    };
    let checking = tokio::task::spawn_blocking(move || {
        let checked = work.check(&reserved, &confinement);
        checked.map_err(|problem| {
            CommandError::Impossible(format!("{problem}; {}", problem.hint()))
        })?;
        match &work {
            AdHocWork::Restore { to, .. } if is_filled(to) => {
                Err(CommandError::Impossible(format!(
                    "{} is not empty; restore into a new or an empty directory",
                    to.display()
                )))
            }
            AdHocWork::Restore { .. } | AdHocWork::Download { .. } => Ok(()),
        }
    });
    checking.await.unwrap_or(Err(CommandError::Stopping))
}

fn not_recorded(error: &dyn std::fmt::Display) -> CommandError {
    CommandError::Impossible(format!("it cannot be recorded: {error}"))
}
