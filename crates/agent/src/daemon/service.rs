//! The loop of the daemon: it waits for whatever comes next and acts on it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::UnixListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::adhoc;
use super::core::{BackgroundResult, ConfigLoader, Daemon, StartError};
use super::entry::TaskEntry;
use super::handle::DaemonPort;
use crate::config::Config;
use crate::confine::Confinement;
use crate::fleet::{self, Participant, SitePort};
use crate::lane_socket::{self, Lanes};
use crate::status::AgentStatus;

/// Time between two published statuses.
const STATUS_PERIOD: Duration = Duration::from_secs(1);

/// The status before the daemon has started.
#[must_use]
pub fn starting_status(now: Timestamp) -> AgentStatus {
    AgentStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: now,
        now,
        lanes: Vec::new(),
        tasks: Vec::new(),
        holds: Vec::new(),
        fleet: None,
        added: None,
    }
}

/// What the daemon gets from the process it runs in.
pub struct DaemonEnvironment {
    /// Where the process may write.
    pub confinement: Confinement,
    /// Becomes true when the daemon has to end.
    pub stop: watch::Receiver<bool>,
    /// Is notified when the configuration has to be read again.
    pub reload: Arc<Notify>,
    /// Reads it.
    pub load: ConfigLoader,
    /// Where other processes join the lanes.
    pub lane_socket: Option<UnixListener>,
    /// What the rest of the agent asks the site; `None` without one.
    pub site: Option<SitePort>,
}

/// Runs jobs until `environment.stop` becomes true. Then every run ends at once, and
/// keeps what it needs to continue later. `fresh_identity` is a random number of this start.
///
/// # Errors
/// [`StartError`]. Once the daemon has started it does not fail.
pub async fn run(
    config: Config,
    mut port: DaemonPort,
    environment: DaemonEnvironment,
    fresh_identity: u64,
) -> Result<(), StartError> {
    let DaemonEnvironment {
        confinement,
        mut stop,
        reload,
        load,
        lane_socket,
        site,
    } = environment;
    // The disk may be slow.
    let opening =
        tokio::task::spawn_blocking(move || Daemon::open(config, confinement, fresh_identity));
    let mut daemon = tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => return Ok(()),
        opened = opening => match opened {
            Ok(opened) => opened?,
            Err(lost) => std::panic::resume_unwind(lost.into_panic()),
        },
    };
    let lanes = Lanes {
        push: daemon.push.lane.clone(),
        pull: daemon.pull.lane.clone(),
    };
    let (leave, left) = watch::channel(false);
    let mut in_fleet = JoinSet::new();
    daemon.fleet = site.as_ref().map(SitePort::subscribe);
    if let Some((fleet, port)) = daemon.config.fleet.clone().zip(site) {
        let participant = Participant {
            settings: fleet::site_settings(&daemon.config.agent, &fleet),
            fleet,
            lanes: lanes.clone(),
            session: fresh_identity,
            port,
        };
        in_fleet.spawn(participant.take_part(left));
    }
    // It ends with the daemon.
    let mut sharing = JoinSet::new();
    if let Some(listener) = lane_socket {
        sharing.spawn(lane_socket::serve(listener, lanes, std::future::pending()));
    }
    daemon.notify_ready();
    let mut tick = tokio::time::interval(STATUS_PERIOD);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            Some(ended) = daemon.running.join_next(), if !daemon.running.is_empty() => {
                if let Ok((id, report)) = ended {
                    daemon.end_run(&id, &report);
                }
            }
            Some(done) = daemon.background.join_next(), if !daemon.background.is_empty() => {
                match done {
                    Ok(Some(BackgroundResult::Added(added))) => daemon.task_added(*added, &port),
                    Ok(Some(BackgroundResult::Reloaded(config))) => daemon.reloaded(config),
                    Ok(None) | Err(_) => {}
                }
            }
            () = reload.notified(), if !daemon.is_reloading => daemon.reload(Arc::clone(&load)),
            Some((command, reply)) = port.next_command() => {
                daemon.handle_command(command, reply, &port);
            }
            _ = tick.tick() => {
                daemon.start_due_runs();
                daemon.forget_outdated();
                let status = daemon.status();
                let line = daemon.status_line(&status);
                daemon.service_manager.tick(line);
                port.publish(status);
            }
        }
    }
    daemon.stop().await;
    let _ = leave.send(true);
    in_fleet.join_all().await;
    port.publish(daemon.status());
    Ok(())
}

impl Daemon {
    /// Drops ad-hoc tasks that ended too long ago to be listed.
    fn forget_outdated(&mut self) {
        let now = self.now().timestamp();
        let ended = self.entries.iter().filter_map(TaskEntry::ended_adhoc);
        let outdated = adhoc::outdated(ended.collect(), now);
        let is_outdated = |entry: &TaskEntry| {
            let ended = entry.ended_adhoc();
            ended.is_some_and(|(number, _)| outdated.contains(&number))
        };
        while let Some(index) = self.entries.iter().position(is_outdated) {
            self.forget(index);
        }
    }

    async fn stop(&mut self) {
        self.is_stopping = true;
        self.service_manager.stopping();
        for entry in &self.entries {
            entry.stop_run();
        }
        while let Some(ended) = self.running.join_next().await {
            if let Ok((id, report)) = ended {
                self.end_run(&id, &report);
            }
        }
        self.writer.flush().await;
    }
}
