//! The configuration, read again: what has changed is changed, and what has not
//! goes on undisturbed.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Zoned;

use super::entry::{Entry, Work};
use super::open::{Prepared, prepare};
use super::service::{Chore, Daemon, Load};
use super::standing::Standing;
use crate::config::{Agent, Config};

/// A configuration that can be taken.
pub(super) struct Loaded {
    config: Config,
    jobs: Vec<Prepared>,
}

impl Daemon {
    /// Begins to read it.
    pub(super) fn reload(&mut self, load: Load) {
        tracing::info!("the configuration is read again");
        self.manager.reloading();
        self.is_reloading = true;
        let (state, file) = (self.state.clone(), self.file.clone());
        let known: Vec<_> = self
            .config
            .jobs
            .iter()
            .map(|job| job.name.clone())
            .collect();
        let reading = tokio::task::spawn_blocking(move || {
            let config = load().map_err(|error| error.to_string())?;
            let is_known = |name: &str| known.iter().any(|known| known == name);
            let jobs = prepare(&state, &file, &config, is_known);
            let jobs = jobs.map_err(|error| error.to_string())?;
            Ok(Box::new(Loaded { config, jobs }))
        });
        self.chores.spawn(async move {
            let read = reading.await;
            Some(Chore::Loaded(
                read.unwrap_or_else(|lost| Err(lost.to_string())),
            ))
        });
    }

    /// It was read, or is wrong: then the old one stays.
    pub(super) fn loaded(&mut self, loaded: Result<Box<Loaded>, String>) {
        self.is_reloading = false;
        match loaded {
            Ok(loaded) => {
                self.refused = None;
                self.adopt(*loaded);
                self.start_what_is_due();
            }
            Err(why) => {
                tracing::error!("the new configuration is refused, the old one stays: {why}");
                self.refused = Some(why);
            }
        }
        self.tell_ready();
    }

    fn adopt(&mut self, loaded: Loaded) {
        let Loaded { mut config, jobs } = loaded;
        let waiting = for_a_start(&self.config.agent, &config.agent);
        if !waiting.is_empty() {
            tracing::warn!(
                keys = waiting.join(", "),
                "these keys of [agent] have changed, and wait for the next start of the agent"
            );
        }
        // So all that is in force is of one piece.
        config.agent = self.config.agent.clone();
        let before = std::mem::replace(&mut self.config, Arc::new(config));
        let now = self.now();
        let (known, added): (Vec<_>, Vec<_>) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| matches!(entry.work, Work::Job(_)));
        let known = known.into_iter().map(|entry| (entry.id.clone(), entry));
        let mut known: BTreeMap<_, _> = known.collect();
        for job in jobs {
            let entry = match known.remove(&job.job.name) {
                Some(mut entry) => {
                    if entry.take(job, &now) || self.has_another_store(&before, &entry) {
                        tracing::info!(job = entry.id, "changed, from its next run on");
                    }
                    entry
                }
                None => {
                    tracing::info!(job = job.job.name, "added");
                    Entry::job(job, &now)
                }
            };
            self.entries.push(entry);
        }
        for entry in known.into_values() {
            self.dismiss(entry);
        }
        self.entries.extend(added);
    }

    /// A job that is not wanted any more.
    fn dismiss(&mut self, mut entry: Entry) {
        tracing::info!(job = entry.id, "removed");
        match &entry.active {
            Some(active) => {
                let _ = active.stop.send(true);
                entry.leaves = true;
                self.entries.push(entry);
            }
            None => {
                // If it comes back it is still paused, but has nothing to go on with.
                let standing = Standing {
                    is_paused: entry.task.is_paused,
                    last: entry.task.last.clone(),
                    ..Standing::default()
                };
                drop(self.writer.set_standing(&entry.id, standing.written()));
            }
        }
    }

    fn has_another_store(&self, before: &Config, entry: &Entry) -> bool {
        let Work::Job(job) = &entry.work else {
            return false;
        };
        let name = &job.0.course.place().store;
        before.stores.get(name) != self.config.stores.get(name)
    }
}

impl Entry {
    /// It is to be as the configuration has it now; returns whether that is
    /// anything new.
    fn take(&mut self, prepared: Prepared, now: &Zoned) -> bool {
        let Prepared {
            job, filter, place, ..
        } = prepared;
        self.leaves = false;
        if self.place.as_ref() != Some(&place) {
            self.place = Some(place);
            // That was elsewhere.
            self.task.succeeded = None;
        }
        if matches!(&self.work, Work::Job(known) if known.0 == job) {
            return false;
        }
        self.task.change(job.timing.clone(), job.due, now);
        self.work = Work::Job(Box::new((job, filter)));
        true
    }
}

/// The keys that have changed and are only looked at when the agent starts.
fn for_a_start(before: &Agent, now: &Agent) -> Vec<&'static str> {
    let keys = [
        ("state", before.state != now.state),
        ("socket", before.socket != now.socket),
        ("listen", before.listen != now.listen),
        ("connections", before.connections != now.connections),
        ("min_weight", before.min_weight != now.min_weight),
        ("limit_rate", before.limit_rate != now.limit_rate),
    ];
    let changed = keys.into_iter().filter(|(_, has_changed)| *has_changed);
    changed.map(|(key, _)| key).collect()
}
