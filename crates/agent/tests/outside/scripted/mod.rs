//! The agent's API on a real socket, with a daemon behind it that a test plays.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use fairbat_agent::api;
use fairbat_agent::daemon::handle::{CommandAccepted, CommandError, TaskCommand, channel};
use fairbat_agent::status::AgentStatus;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

/// Answers an order.
type Script = dyn FnMut(&TaskCommand) -> Result<CommandAccepted, CommandError> + Send;

/// See the module. Ends when dropped.
pub(crate) struct Agent {
    directory: TempDir,
    orders: Arc<Mutex<Vec<TaskCommand>>>,
    news: mpsc::UnboundedSender<AgentStatus>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    /// One that stands so, and answers orders so.
    pub(crate) fn start(
        status: AgentStatus,
        script: impl FnMut(&TaskCommand) -> Result<CommandAccepted, CommandError> + Send + 'static,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = directory.path().join("agent.sock");
        let orders = Arc::<Mutex<Vec<TaskCommand>>>::default();
        let (news, told) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let (listening, listens) = oneshot::channel();
        let seen = Arc::clone(&orders);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener =
                    api::listen(&socket, api::SocketAccess::Group).expect("a free socket");
                listening.send(()).expect("somebody waits for it");
                play(listener, status, Box::new(script), &seen, told, stopped).await;
            });
        });
        listens.blocking_recv().expect("it listens");
        Self {
            directory,
            orders,
            news,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// One that takes every order; a new task is called `new-1`.
    pub(crate) fn willing(status: AgentStatus) -> Self {
        Self::start(status, |command| {
            let id = match command {
                TaskCommand::Run { job: id, .. }
                | TaskCommand::Check { job: id }
                | TaskCommand::Pause { id }
                | TaskCommand::Resume { id }
                | TaskCommand::Cancel { id } => id.clone(),
                TaskCommand::Add { .. } | TaskCommand::Restore { .. } => "new-1".to_owned(),
            };
            Ok(CommandAccepted { id })
        })
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("agent.sock")
    }

    /// What it was told so far.
    pub(crate) fn orders(&self) -> Vec<TaskCommand> {
        self.orders.lock().expect("nobody panicked").clone()
    }

    /// How it stands from now on.
    pub(crate) fn tell(&self, status: AgentStatus) {
        self.news.send(status).expect("it is running");
    }

    /// Ends it as a signal does.
    pub(crate) fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it has not panicked");
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn play(
    listener: tokio::net::UnixListener,
    status: AgentStatus,
    mut script: Box<Script>,
    seen: &Mutex<Vec<TaskCommand>>,
    mut told: mpsc::UnboundedReceiver<AgentStatus>,
    stopped: oneshot::Receiver<()>,
) {
    let (handle, mut port) = channel(status);
    let restorers = api::Restorers::default();
    let serving = api::serve(listener, handle, restorers, async { drop(stopped.await) });
    let daemon = async {
        loop {
            tokio::select! {
                Some(status) = told.recv() => port.publish(status),
                order = port.next_command() => {
                    let Some((command, answer)) = order else { break };
                    seen.lock().expect("nobody panicked").push(command.clone());
                    // A client may have gone.
                    let _ = answer.send(script(&command));
                }
            }
        }
    };
    tokio::join!(serving, daemon);
}

/// A status with these tasks ([`task`]).
pub(crate) fn status(now: &str, tasks: &[Value]) -> AgentStatus {
    let sample = json!({
        "t": 1.5, "n": 2.0, "m": 1.0, "active": 3, "w": 0.25, "zeta": 1048576.0,
        "rate": 2097152.0, "rtt_s": 0.05, "queue_s": null
    });
    let lane = |direction: &str| {
        json!({
            "direction": direction, "lever": "pacing", "can_yield": true, "sample": sample,
            "yielded_s": 7.0, "bytes": 8
        })
    };
    from(json!({
        "version": "1.2.3", "started": "2026-03-01T00:00:00Z", "now": now,
        "lanes": [lane("push"), lane("pull")], "tasks": tasks
    }))
}

/// A task of this name, with these members in the place of others.
pub(crate) fn task(id: &str, members: &Value) -> Value {
    let none = json!({"same": 0, "moved": 0, "deleted": 0, "changed": 0, "failed": 0});
    let mut task = json!({
        "id": id, "kind": "job", "direction": "push", "from": "/home", "to": "offsite:home",
        "phase": "waiting", "next": null, "began": null, "deadline": null, "predicted": null,
        "late_s": null, "files": 0, "files_done": 0, "bytes": 0, "bytes_done": 0, "last": null,
        "succeeded": null,
        "totals": {
            "bytes": 0, "chunks": 0, "files": none, "succeeded": 0, "failed": 0, "late": 0,
            "retries": {"network": 0, "server": 0, "busy": 0, "integrity": 0}
        }
    });
    for (name, value) in members.as_object().expect("members") {
        task[name] = value.clone();
    }
    task
}

fn from(status: Value) -> AgentStatus {
    serde_json::from_value(status).expect("a status")
}
