//! What must hold for any request to the agent's API.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use fairbat_agent::api;
use fairbat_agent::daemon::handle::{
    CommandAccepted, CommandError, DaemonPort, TaskCommand, channel,
};
use fairbat_agent::status::AgentStatus;
use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;

/// Longer than any answer takes here, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the status is watched that somebody asks for.
const WATCHED: Duration = Duration::from_millis(100);

/// Shorter secrets may be part of any sentence.
const MIN_SECRET: usize = 8;

/// The commands, by the digit that is the first byte of the input.
const COMMANDS: [&str; 6] = ["run", "pause", "resume", "cancel", "add", "restore"];

/// Panics if a body is not answered with a document, if a command could not have been
/// meant, or if an answer quotes a password.
///
/// The first byte of the input chooses the command, the rest is the body. Without a
/// command, the rest is all that a client sends.
pub(crate) fn check(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let scene = SCENE.lock().unwrap_or_else(PoisonError::into_inner);
    let command = choice.checked_sub(b'0').map(usize::from);
    let Some(command) = command.and_then(|command| COMMANDS.get(command)) else {
        let (answer, commands) = scene.exchange(rest, End::OfClient);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."));
        commands.iter().for_each(check_command);
        return;
    };
    let head = format!(
        "POST /v1/{command} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        rest.len()
    );
    let (answer, commands) = scene.exchange(&[head.as_bytes(), rest].concat(), End::OfAnswer);
    commands.iter().for_each(check_command);
    let text = String::from_utf8(answer).expect("an answer is text");
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
    let status = head.split(' ').nth(1).expect("a status");
    let document: Value = serde_json::from_str(body).expect("an answer is a document");
    match (status, commands.as_slice()) {
        ("200", [_]) => assert!(document["id"].is_string()),
        // Whoever watches in vain is one too many for a while.
        ("503", []) => {}
        ("400" | "404" | "409", [] | [_]) => {
            let error = document["error"].as_str().expect("an error");
            for command in &commands {
                check_secret(command, error);
            }
        }
        _ => panic!("{text}: {commands:?}"),
    }
}

fn check_command(command: &TaskCommand) {
    match command {
        TaskCommand::Add { url, to, .. } => {
            assert!(matches!(url.scheme(), "http" | "https") && url.has_host());
            assert!(to.is_absolute() && !to.as_os_str().as_encoded_bytes().contains(&0));
        }
        TaskCommand::Restore { job, to, .. } => {
            assert!(!job.is_empty());
            assert!(to.is_absolute() && !to.as_os_str().as_encoded_bytes().contains(&0));
        }
        TaskCommand::Run { job: id, .. }
        | TaskCommand::Check { job: id }
        | TaskCommand::Pause { id }
        | TaskCommand::Resume { id }
        | TaskCommand::Cancel { id } => assert!(!id.is_empty()),
    }
}

fn check_secret(command: &TaskCommand, error: &str) {
    let TaskCommand::Add { url, .. } = command else {
        return;
    };
    let secret = url.password().unwrap_or_default();
    if secret.len() >= MIN_SECRET {
        assert!(!error.contains(secret), "{error}");
    }
}

/// When a connection ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// The client closes its side when it has sent everything.
    OfClient,
    /// The API closes it after its answer.
    OfAnswer,
}

/// The API, and a daemon behind it that refuses every other command and quotes it.
struct Scene {
    runtime: Runtime,
    directory: TempDir,
    commands: Arc<Mutex<Vec<TaskCommand>>>,
}

static SCENE: LazyLock<Mutex<Scene>> = LazyLock::new(|| {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let commands = Arc::<Mutex<Vec<TaskCommand>>>::default();
    let (handle, port) = channel(status());
    let guard = runtime.enter();
    let listener = api::listen(&directory.path().join("socket"), api::SocketAccess::Group)
        .expect("a free socket");
    drop(guard);
    let restorers = api::Restorers::default();
    runtime.spawn(api::serve(
        listener,
        handle,
        restorers,
        std::future::pending(),
    ));
    runtime.spawn(play(port, Arc::clone(&commands)));
    Mutex::new(Scene {
        runtime,
        directory,
        commands,
    })
});

fn status() -> AgentStatus {
    AgentStatus {
        version: "1".to_owned(),
        started: Timestamp::UNIX_EPOCH,
        now: Timestamp::UNIX_EPOCH,
        lanes: Vec::new(),
        holds: Vec::new(),
        fleet: None,
        tasks: Vec::new(),
        added: None,
    }
}

async fn play(mut port: DaemonPort, commands: Arc<Mutex<Vec<TaskCommand>>>) {
    loop {
        // As in an agent at work: so the API notices clients that are gone.
        port.publish(status());
        let Ok(next) = tokio::time::timeout(WATCHED, port.next_command()).await else {
            continue;
        };
        let Some((command, reply)) = next else { return };
        let answer = match &command {
            TaskCommand::Add { url, .. } => {
                Err(CommandError::Impossible(format!("nobody wants {url}")))
            }
            TaskCommand::Restore { job: id, .. } => Err(CommandError::UnknownTask {
                id: id.clone(),
                nearest: None,
            }),
            TaskCommand::Run { job: id, .. }
            | TaskCommand::Check { job: id }
            | TaskCommand::Pause { id }
            | TaskCommand::Resume { id }
            | TaskCommand::Cancel { id } => Ok(CommandAccepted { id: id.clone() }),
        };
        let mut commands = commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands.push(command);
        drop(commands);
        // The client may be gone.
        let _ = reply.send(answer);
    }
}

impl Scene {
    /// All that the API answers to these bytes, and the commands that came of them.
    fn exchange(&self, request: &[u8], end: End) -> (Vec<u8>, Vec<TaskCommand>) {
        let exchanged = self.runtime.block_on(async {
            let stream = UnixStream::connect(self.directory.path().join("socket")).await;
            let (mut reading, mut writing) = stream.expect("the API listens").into_split();
            let write = async {
                // The API may have answered already, and be gone.
                let _ = writing.write_all(request).await;
                if end == End::OfClient {
                    let _ = writing.shutdown().await;
                }
            };
            let mut answer = Vec::new();
            let read = reading.read_to_end(&mut answer);
            let both = async { tokio::join!(write, read) };
            let patience = match end {
                End::OfClient => WATCHED,
                End::OfAnswer => PATIENCE,
            };
            let _ = tokio::time::timeout(patience, both).await;
            answer
        });
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        (exchanged, std::mem::take(&mut commands))
    }
}
