//! Reads the configuration again while the agent runs. Jobs that have not changed are
//! not disturbed.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Zoned;

use super::core::{BackgroundResult, ConfigLoader, Daemon, NewConfig};
use super::entry::{PreparedJob, TaskEntry, TaskWork};
use super::open::prepare;
use super::schedule::TaskState;
use crate::config::{AgentConfig, Config};
use crate::sync::DamagedFiles;

impl Daemon {
    /// Starts to read the configuration in the background.
    pub(crate) fn reload(&mut self, load: ConfigLoader) {
        tracing::info!("the configuration is read again");
        self.service_manager.reloading();
        self.is_reloading = true;
        let (state, file) = (self.state.clone(), self.file.clone());
        let jobs = self.config.jobs.iter();
        let listed: Vec<_> = jobs.map(|job| job.name.clone()).collect();
        let reading = tokio::task::spawn_blocking(move || {
            let config = load().map_err(|error| error.to_string())?;
            let is_listed = |name: &str| listed.iter().any(|listed| listed == name);
            let jobs = prepare(&state, &file, &config, is_listed);
            let jobs = jobs.map_err(|error| error.to_string())?;
            Ok(Box::new(NewConfig { config, jobs }))
        });
        self.background.spawn(async move {
            let read = reading.await;
            let read = read.unwrap_or_else(|lost| Err(lost.to_string()));
            Some(BackgroundResult::Reloaded(read))
        });
    }

    /// Puts the new configuration in force, or keeps the old one if the new one is
    /// wrong.
    pub(crate) fn reloaded(&mut self, read: Result<Box<NewConfig>, String>) {
        self.is_reloading = false;
        match read {
            Ok(new) => {
                self.config_problem = None;
                self.adopt(*new);
                self.start_due_runs();
            }
            Err(why) => {
                tracing::error!("the new configuration is refused, the old one stays: {why}");
                self.config_problem = Some(why);
            }
        }
        self.notify_ready();
    }

    fn adopt(&mut self, new: NewConfig) {
        let NewConfig { mut config, jobs } = new;
        let mut waiting = keys_for_next_start(&self.config.agent, &config.agent);
        if self.config.fleet != config.fleet {
            waiting.push("[fleet]");
        }
        if !waiting.is_empty() {
            tracing::warn!(
                keys = waiting.join(", "),
                "these settings have changed, and wait for the next start of the agent"
            );
        }
        config.agent = self.config.agent.clone();
        config.fleet = self.config.fleet.clone();
        let before = std::mem::replace(&mut self.config, Arc::new(config));
        let now = self.now();
        let (known, adhoc): (Vec<_>, Vec<_>) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| !matches!(entry.work, TaskWork::AdHoc(..)));
        let known = known.into_iter().map(|entry| (entry.id.clone(), entry));
        let mut known: BTreeMap<_, _> = known.collect();
        for prepared in jobs {
            let entry = match known.remove(&prepared.id()) {
                Some(mut entry) => {
                    if entry.update(&prepared, &now) || self.has_new_store(&before, &entry) {
                        tracing::info!(job = entry.id, "changed, from its next run on");
                    }
                    entry
                }
                None => {
                    tracing::info!(job = prepared.id(), "added");
                    TaskEntry::job(prepared, &now)
                }
            };
            self.entries.push(entry);
        }
        for entry in known.into_values() {
            self.remove(entry);
        }
        self.entries.extend(adhoc);
    }

    /// Removes a job that is not in the configuration any more.
    fn remove(&mut self, mut entry: TaskEntry) {
        tracing::info!(job = entry.id, "removed");
        if entry.active.is_some() {
            entry.stop_run();
            entry.is_removed = true;
            self.entries.push(entry);
        } else {
            // If the job comes back it is still paused, but it has no run to continue.
            let state = TaskState {
                is_paused: entry.schedule.is_paused,
                last: entry.schedule.last.clone(),
                ..TaskState::default()
            };
            drop(self.writer.set_task_state(&entry.id, state.to_json()));
        }
    }

    fn has_new_store(&self, before: &Config, entry: &TaskEntry) -> bool {
        let (TaskWork::Job(job) | TaskWork::Check { job, .. }) = &entry.work else {
            return false;
        };
        let name = &job.course.place().store;
        before.stores.get(name) != self.config.stores.get(name)
    }
}

impl TaskEntry {
    /// Takes over the job as the new configuration has it. Returns whether it has
    /// changed.
    fn update(&mut self, prepared: &PreparedJob, now: &Zoned) -> bool {
        self.is_removed = false;
        if self.place.as_ref() != Some(&prepared.place) {
            self.place = Some(prepared.place.clone());
            // The last success was at another place, and so is what is damaged.
            self.schedule.succeeded = None;
            self.damaged = DamagedFiles::default();
        }
        if let TaskWork::Job(known) | TaskWork::Check { job: known, .. } = &self.work
            && **known == prepared.job
        {
            return false;
        }
        let (timing, due) = prepared.timing();
        self.schedule.change(timing, due, now);
        self.work = prepared.work();
        true
    }
}

/// The keys of `[agent]` that have changed and take effect only at the next start; `stream`
/// stands for the table of this name.
fn keys_for_next_start(before: &AgentConfig, now: &AgentConfig) -> Vec<&'static str> {
    let keys = [
        ("state", before.state != now.state),
        ("socket", before.socket != now.socket),
        ("listen", before.listen != now.listen),
        ("connections", before.connections != now.connections),
        ("min_weight", before.min_weight != now.min_weight),
        ("max_weight", before.max_weight != now.max_weight),
        ("sender", before.sender != now.sender),
        ("controller", before.controller != now.controller),
        ("[stream]", before.stream != now.stream),
        ("limit_rate", before.limit_rate != now.limit_rate),
        ("restore_group", before.restore_group != now.restore_group),
        (
            "restore_owners",
            before.restore_owners != now.restore_owners,
        ),
        ("write_paths", before.write_paths != now.write_paths),
    ];
    let changed = keys.into_iter().filter(|(_, has_changed)| *has_changed);
    changed.map(|(key, _)| key).collect()
}
