//! Commands: what is done about each, and what is answered.
//!
//! What takes a disk is done off the loop; nothing is answered before it is
//! remembered.

use std::path::PathBuf;

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::entry::{Entry, Work};
use super::extra::{self, Extra, What};
use super::handle::{Accepted, Command, Refused};
use super::service::{Chore, Daemon};
use crate::state::{CommitHandle, StateError};

/// Where an answer goes. Who asked may have gone.
type Answer = oneshot::Sender<Result<Accepted, Refused>>;

/// Something new, and under which number it is remembered.
pub(super) struct Added {
    extra: Extra,
    number: Result<u64, StateError>,
    answer: Answer,
}

/// What a command was about, and what of it is being remembered.
type Followed = Result<(String, Option<CommitHandle<()>>), Refused>;

impl Daemon {
    pub(super) fn obey(&mut self, command: Command, answer: Answer) {
        let followed = match command {
            Command::Run { job } => self.hurry(job),
            Command::Pause { id } => self.pause(id),
            Command::Resume { id } => self.resume(id),
            Command::Cancel { id } => self.cancel(id),
            Command::Add { url, to, deadline } => {
                return self.add(What::Download { url, to }, deadline, answer);
            }
            Command::Restore { job, to, deadline } => match self.find_job(&job) {
                Ok(_) => return self.add(What::Restore { job, to }, deadline, answer),
                Err(refused) => Err(refused),
            },
        };
        self.start_what_is_due();
        match followed {
            Ok((id, None)) => drop(answer.send(Ok(Accepted { id }))),
            Ok((id, Some(keeping))) => drop(self.chores.spawn(async move {
                let kept = keeping.done().await;
                let kept = kept.map_err(|error| not_remembered(&error));
                let _ = answer.send(kept.map(|()| Accepted { id }));
                None
            })),
            Err(refused) => drop(answer.send(Err(refused))),
        }
    }

    fn hurry(&mut self, job: String) -> Followed {
        let now = self.now().timestamp();
        let entry = self.find_job(&job)?;
        if entry.active.is_some() {
            return Err(Refused::NotNow(format!("job {job} is running already")));
        }
        if entry.task.is_paused {
            return Err(Refused::NotNow(format!(
                "job {job} is paused; resume it first"
            )));
        }
        entry.task.hurry(now);
        Ok((job, None))
    }

    fn pause(&mut self, id: String) -> Followed {
        let entry = self.find(&id)?;
        if entry.task.is_over() {
            return Err(Refused::NotNow(format!("{id} is through")));
        }
        entry.task.pause();
        if let Some(active) = &entry.active {
            let _ = active.stop.send(true);
        }
        let keeping = self.remember_task(&id);
        Ok((id, keeping))
    }

    fn resume(&mut self, id: String) -> Followed {
        let entry = self.find(&id)?;
        if !std::mem::replace(&mut entry.task.is_paused, false) {
            return Err(Refused::NotNow(format!("{id} is not paused")));
        }
        let keeping = self.remember_task(&id);
        Ok((id, keeping))
    }

    fn cancel(&mut self, id: String) -> Followed {
        let entry = self.find(&id)?;
        if let Some(active) = &entry.active {
            let _ = active.stop.send(true);
        }
        let had_anything = entry.task.cancel();
        let Work::Extra(number, _) = entry.work else {
            if !had_anything {
                let what = format!("no run of {id} is under way or left to go on");
                return Err(Refused::NotNow(what));
            }
            let keeping = self.remember_task(&id);
            return Ok((id, keeping));
        };
        self.entries.retain(|entry| entry.id != id);
        let keeping = self.writer.set_extra(number, None);
        Ok((id, Some(keeping)))
    }

    /// Something new to do, once it is sure that it can be done.
    fn add(&mut self, what: What, deadline: Option<Timestamp>, answer: Answer) {
        let extra = Extra {
            what,
            deadline,
            is_paused: false,
        };
        let writer = self.writer.clone();
        self.chores.spawn(async move {
            if let What::Restore { to, .. } = &extra.what
                && let Err(refused) = look_at(to.clone()).await
            {
                let _ = answer.send(Err(refused));
                return None;
            }
            let number = writer.add_extra(extra.written()).done().await;
            Some(Chore::Added(Box::new(Added {
                extra,
                number,
                answer,
            })))
        });
    }

    pub(super) fn added(&mut self, added: Added) {
        let Added {
            extra,
            number,
            answer,
        } = added;
        let added = number.map_err(|error| not_remembered(&error));
        let added = added.map(|number| {
            let now = self.now();
            self.entries.push(Entry::extra(number, extra, &now));
            extra::name(number)
        });
        let is_new = added.is_ok();
        let _ = answer.send(added.map(|id| Accepted { id }));
        if is_new {
            self.start_what_is_due();
        }
    }

    fn remember_task(&mut self, id: &str) -> Option<CommitHandle<()>> {
        let index = self.entries.iter().position(|entry| entry.id == id)?;
        let entry = &mut self.entries[index];
        match &mut entry.work {
            Work::Job(_) => self.remember(index),
            Work::Extra(number, extra) => {
                extra.is_paused = entry.task.is_paused;
                Some(self.writer.set_extra(*number, Some(extra.written())))
            }
        }
    }

    fn find(&mut self, id: &str) -> Result<&mut Entry, Refused> {
        let nearest = self
            .entries
            .iter()
            .filter(|entry| !entry.leaves)
            .map(|entry| (strsim::damerau_levenshtein(&entry.id, id), &entry.id))
            .filter(|(distance, _)| *distance <= 2)
            .min()
            .map(|(_, name)| name.clone());
        self.entries
            .iter_mut()
            .find(|entry| entry.id == id && !entry.leaves)
            .ok_or(Refused::Unknown {
                id: id.to_owned(),
                nearest,
            })
    }

    fn find_job(&mut self, id: &str) -> Result<&mut Entry, Refused> {
        let entry = self.find(id)?;
        match entry.work {
            Work::Job(_) => Ok(entry),
            Work::Extra(..) => Err(Refused::Impossible(format!("{id} is no job"))),
        }
    }
}

/// Whether a restore may bring something there: nothing is mixed with what somebody
/// else has put there.
async fn look_at(to: PathBuf) -> Result<(), Refused> {
    let looking = tokio::task::spawn_blocking(move || {
        let is_empty = std::fs::read_dir(&to).map(|mut entries| entries.next().is_none());
        match is_empty {
            Ok(false) => Err(Refused::Impossible(format!(
                "{} is not empty",
                to.display()
            ))),
            // What is missing is made; of anything else the run tells.
            Ok(true) | Err(_) => Ok(()),
        }
    });
    looking.await.unwrap_or(Err(Refused::Stopping))
}

fn not_remembered(error: &dyn std::fmt::Display) -> Refused {
    Refused::Impossible(format!("it cannot be remembered: {error}"))
}
