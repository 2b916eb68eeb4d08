//! Messages to the service manager, in systemd's protocol (sd_notify(3)): readiness,
//! a status line, and a watchdog message once a second. Without `NOTIFY_SOCKET` in
//! the environment none is sent.

use fairbat::printable::is_unsafe;
use jiff::Zoned;
use sd_notify::NotifyState::{self, MonotonicUsec, Ready, Reloading, Status, Stopping, Watchdog};

use crate::status::{AgentStatus, TaskPhase, TaskStatus};

/// The service manager that started this process.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    /// Whether it expects watchdog messages.
    has_watchdog: bool,
    /// The last status line sent.
    line: String,
}

impl ServiceManager {
    pub(crate) fn from_environment() -> Self {
        Self {
            has_watchdog: sd_notify::watchdog_enabled().is_some(),
            line: String::new(),
        }
    }

    /// The daemon is ready, at first or after a reload.
    pub(crate) fn ready(&mut self, line: String) {
        self.line = line;
        notify(&[Ready, Status(&self.line)]);
    }

    /// A reload has begun. [`ServiceManager::ready`] ends it.
    pub(crate) fn reloading(&mut self) {
        let now = NotifyState::monotonic_usec_now().unwrap_or(MonotonicUsec(0));
        notify(&[Reloading, now]);
    }

    /// The daemon has begun to stop.
    pub(crate) fn stopping(&mut self) {
        self.line = "stopping".to_owned();
        notify(&[Stopping, Status(&self.line)]);
    }

    /// Once per turn of the loop: feeds the watchdog, and sends the status line if it
    /// has changed.
    pub(crate) fn tick(&mut self, line: String) {
        let is_new = line != self.line;
        self.line = line;
        let line = is_new.then(|| Status(&self.line));
        let watchdog = self.has_watchdog.then_some(Watchdog);
        let messages: Vec<_> = watchdog.into_iter().chain(line).collect();
        if !messages.is_empty() {
            notify(&messages);
        }
    }
}

fn notify(messages: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(messages) {
        // systemd itself reports and ends a service whose messages it misses.
        tracing::debug!(%error, "the service manager cannot be notified");
    }
}

/// The status in one line, as `systemctl status` shows it. `config_problem` is why the
/// configuration was refused when it was last read again.
pub(crate) fn status_line(
    status: &AgentStatus,
    config_problem: Option<&str>,
    now: &Zoned,
) -> String {
    let is_busy =
        |task: &&TaskStatus| matches!(task.phase, TaskPhase::Running | TaskPhase::Scanning);
    let busy: Vec<_> = status.tasks.iter().filter(is_busy).collect();
    let rate: f64 = status.lanes.iter().map(|lane| lane.sample.rate).sum();
    let mut parts = Vec::new();
    if let Some(problem) = config_problem {
        parts.push(format!(
            "new configuration refused: {}",
            // A second line would be read as another message.
            problem
                .lines()
                .next()
                .unwrap_or_default()
                .replace(is_unsafe, " ")
        ));
    }
    parts.push(match &busy[..] {
        [] => "nothing runs".to_owned(),
        [one] => format!("{} runs, {:.1} MB/s", one.id, rate / 1e6),
        many => format!("{} run, {:.1} MB/s", many.len(), rate / 1e6),
    });
    let waiting = status
        .tasks
        .iter()
        .filter_map(|task| Some((task.next?, task)));
    if let Some((next, task)) = waiting.min_by_key(|(next, _)| *next) {
        let local = next.to_zoned(now.time_zone().clone());
        let when = match local.date() == now.date() {
            true => local.strftime("%H:%M"),
            false => local.strftime("%F %H:%M"),
        };
        parts.push(format!("next {} at {when}", task.id));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(tasks: &[(&str, &str, Option<&str>)]) -> AgentStatus {
        let outcomes = json!({"same": 0, "moved": 0, "deleted": 0, "changed": 0, "failed": 0});
        let task = |(id, phase, next): &(&str, &str, Option<&str>)| {
            json!({
                "id": id, "kind": "job", "direction": "push", "from": "/", "to": "s:",
                "phase": phase, "next": next, "began": null, "deadline": null,
                "predicted": null, "late_s": null, "files": 0, "files_done": 0, "bytes": 0,
                "bytes_done": 0, "last": null, "succeeded": null,
                "totals": {
                    "bytes": 0, "chunks": 0, "files": outcomes, "succeeded": 0, "failed": 0,
                    "late": 0,
                    "retries": {"network": 0, "server": 0, "busy": 0, "integrity": 0}
                }
            })
        };
        let lane = json!({
            "direction": "push", "lever": "pacing", "can_yield": true, "yielded_s": 0.0,
            "bytes": 0, "sample": {
                "t": 0.0, "n": 0.0, "m": 1.0, "active": 1, "w": 1.0, "zeta": null,
                "rate": 3_140_000.0, "rtt_s": null, "queue_s": null
            }
        });
        let status = json!({
            "version": "0", "started": "2026-03-02T01:00:00Z", "now": "2026-03-02T01:00:00Z",
            "lanes": [lane], "tasks": tasks.iter().map(task).collect::<Vec<_>>()
        });
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn it_says_what_runs_and_what_comes_next() {
        let now: Zoned = "2026-03-02T02:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let said = |tasks: &[_]| status_line(&status(tasks), None, &now);
        assert_eq!(said(&[]), "nothing runs");
        let home = ("home", "running", None);
        let etc = ("etc", "waiting", Some("2026-03-02T21:00:00Z"));
        let mail = ("mail", "retrying", Some("2026-03-02T23:30:00Z"));
        assert_eq!(said(&[home]), "home runs, 3.1 MB/s");
        assert_eq!(
            said(&[home, mail, etc]),
            "home runs, 3.1 MB/s; next etc at 22:00"
        );
        let two = [home, ("b", "scanning", None), mail];
        assert_eq!(said(&two), "2 run, 3.1 MB/s; next mail at 2026-03-03 00:30");
    }

    #[test]
    fn what_was_refused_is_one_line() {
        let now: Zoned = "2026-03-02T02:00:00[UTC]".parse().unwrap();
        let said = status_line(&status(&[]), Some("a:1:2: no\u{1b}[\nREADY=1"), &now);
        assert_eq!(said, "new configuration refused: a:1:2: no [; nothing runs");
    }
}
