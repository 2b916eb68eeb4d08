//! The API over a real socket, spoken to byte by byte: what a client that knows
//! HTTP would never do. The test plays the daemon.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fairbat::machine::LaneDirection;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::daemon::handle::{DaemonPort, channel};
use crate::status::{AgentStatus, HistorySample, LaneStatus, StreamStatus};

const SHORT_TIMEOUTS: ApiTimeouts = ApiTimeouts {
    idle: Duration::from_secs(1),
    refused: Duration::from_millis(300),
    lines: Duration::from_millis(50),
};

fn status() -> AgentStatus {
    AgentStatus {
        version: "1".to_owned(),
        started: "2026-05-01T00:00:00Z".parse().unwrap(),
        now: "2026-05-01T00:00:01Z".parse().unwrap(),
        lanes: Vec::new(),
        tasks: Vec::new(),
        holds: Vec::new(),
        fleet: None,
        added: None,
    }
}

struct Api {
    directory: TempDir,
    port: DaemonPort,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Api {
    fn start(timeouts: ApiTimeouts) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = listen(&directory.path().join("s"), SocketAccess::Group).unwrap();
        let (handle, port) = channel(status());
        let (stop, stopped) = oneshot::channel();
        let stopped = async { drop(stopped.await) };
        Self {
            directory,
            port,
            stop: Some(stop),
            serving: tokio::spawn(serve_with(
                timeouts,
                listener,
                handle,
                Restorers::default(),
                stopped,
            )),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    async fn connect(&self) -> UnixStream {
        connect(&self.path()).await
    }
}

async fn connect(path: &Path) -> UnixStream {
    UnixStream::connect(path).await.unwrap()
}

/// All that comes until the end, or until the peer breaks it off.
async fn rest(stream: &mut UnixStream) -> String {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all).await;
    String::from_utf8(all).unwrap()
}

/// What comes, until this is in it.
async fn until(stream: &mut UnixStream, text: &str) -> String {
    let mut all = Vec::new();
    while !String::from_utf8_lossy(&all).contains(text) {
        let mut more = [0; 4096];
        let read = stream.read(&mut more).await.unwrap();
        assert!(read > 0, "{text:?} has not come");
        all.extend_from_slice(&more[..read]);
    }
    String::from_utf8(all).unwrap()
}

const GET: &[u8] = b"GET /v1/status HTTP/1.1\r\nHost: agent\r\n\r\n";
const WATCH: &[u8] = b"GET /v1/status?watch HTTP/1.1\r\nHost: agent\r\n\r\n";

#[tokio::test]
async fn who_says_nothing_is_left() {
    let api = Api::start(SHORT_TIMEOUTS);
    let mut silent = api.connect().await;
    let mut halfway = api.connect().await;
    halfway.write_all(&GET[..20]).await.unwrap();
    let mut answered = api.connect().await;
    answered.write_all(GET).await.unwrap();
    let mut owing = api.connect().await;
    let head = b"POST /v1/run HTTP/1.1\r\nHost: agent\r\nContent-Length: 20\r\n\r\n{";
    owing.write_all(head).await.unwrap();
    assert_eq!(rest(&mut silent).await, "");
    assert!(!rest(&mut halfway).await.starts_with("HTTP/1.1 200"));
    let answer = rest(&mut answered).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = rest(&mut owing).await;
    assert!(answer.contains("the body does not come"), "{answer}");
}

#[tokio::test]
async fn who_takes_nothing_is_left() {
    let api = Api::start(SHORT_TIMEOUTS);
    let mut port = status();
    port.version = "v".repeat(100_000);
    api.port.publish(port);
    let mut stream = api.connect().await;
    // Answers that nobody takes, until the next request is not taken either.
    let broken = async {
        loop {
            if stream.write_all(GET).await.is_err() {
                break;
            }
        }
    };
    broken.await;
}

#[tokio::test]
async fn who_watches_is_waited_for_and_hears_of_each_change() {
    let api = Api::start(SHORT_TIMEOUTS);
    let mut watching = api.connect().await;
    watching.write_all(WATCH).await.unwrap();
    until(&mut watching, "\"version\":\"1\"").await;
    // Longer than who says nothing may stay.
    tokio::time::sleep(SHORT_TIMEOUTS.idle * 2).await;
    for version in ["2", "3"] {
        let mut next = status();
        next.version = version.to_owned();
        api.port.publish(next);
        until(&mut watching, &format!("\"version\":\"{version}\"")).await;
    }
}

#[tokio::test]
async fn who_watches_hears_the_last_of_many_changes() {
    let timeouts = ApiTimeouts {
        lines: Duration::from_millis(500),
        ..SHORT_TIMEOUTS
    };
    let api = Api::start(timeouts);
    let mut watching = api.connect().await;
    watching.write_all(WATCH).await.unwrap();
    until(&mut watching, "\"version\":\"1\"").await;
    for version in 2..=40 {
        let mut next = status();
        next.version = version.to_string();
        api.port.publish(next);
    }
    let lines = until(&mut watching, "\"version\":\"40\"").await;
    assert_eq!(lines.matches("\"version\"").count(), 1, "{lines}");
}

#[tokio::test]
async fn watching_ends_with_the_daemon_and_with_the_api() {
    let api = Api::start(SHORT_TIMEOUTS);
    let mut watching = api.connect().await;
    watching.write_all(WATCH).await.unwrap();
    until(&mut watching, "\"version\":\"1\"").await;
    drop(api.port);
    // The last chunk: it ends as it should, and is not broken off.
    until(&mut watching, "0\r\n\r\n").await;

    let mut api = Api::start(SHORT_TIMEOUTS);
    let mut watching = api.connect().await;
    watching.write_all(WATCH).await.unwrap();
    until(&mut watching, "\"version\":\"1\"").await;
    drop(api.stop.take());
    until(&mut watching, "0\r\n\r\n").await;
    api.serving.await.unwrap();
    let refused = UnixStream::connect(&api.directory.path().join("s")).await;
    assert!(refused.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_command_under_way_is_answered_when_the_api_stops() {
    let mut api = Api::start(SHORT_TIMEOUTS);
    let mut stream = api.connect().await;
    let command =
        b"POST /v1/run HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n\r\n{\"job\":\"home\"}";
    stream.write_all(command).await.unwrap();
    let (_, answer) = api.port.next_command().await.unwrap();
    drop(api.stop.take());
    let accepted = crate::daemon::handle::CommandAccepted {
        id: "home".to_owned(),
    };
    answer.send(Ok(accepted)).unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.ends_with("{\"id\":\"home\"}\n"), "{answer}");
    api.serving.await.unwrap();
}

#[tokio::test]
async fn of_too_many_some_are_told_so_and_room_comes_back() {
    let api = Api::start(ApiTimeouts::default());
    let mut open = Vec::new();
    for _ in 0..MAX_OF_USER {
        let mut stream = api.connect().await;
        stream.write_all(WATCH).await.unwrap();
        until(&mut stream, "\"version\"").await;
        open.push(stream);
    }
    let mut another = api.connect().await;
    another.write_all(GET).await.unwrap();
    let answer = rest(&mut another).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("too many connections"), "{answer}");
    drop(open.pop());
    // The end of a connection is noticed, not told: a few tries.
    for _ in 0..100 {
        let mut stream = api.connect().await;
        stream.write_all(GET).await.unwrap();
        let answer = until(&mut stream, "\r\n").await;
        if answer.starts_with("HTTP/1.1 200") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no room comes back");
}

#[tokio::test]
async fn the_history_has_the_samples_of_its_lane() {
    let api = Api::start(SHORT_TIMEOUTS);
    let sample = |t| HistorySample {
        t,
        n: 0.0,
        m: 1.0,
        active: 1,
        w: 0.02,
        zeta: None,
        rate: 5.0,
        rtt_s: None,
        queue_s: None,
        stream_n: None,
        stream_m: None,
    };
    for t in [1.0, 2.0] {
        let lane = LaneStatus {
            direction: LaneDirection::Pull,
            lever: "none".to_owned(),
            can_yield: false,
            sample: sample(t),
            stream: StreamStatus::default(),
            window: None,
            g_ms: None,
            foreseen: None,
            yielded_s: 0.0,
            guests: 0,
            bytes: 0,
        };
        let mut next = status();
        next.lanes.push(lane);
        api.port.publish(next);
    }
    for (lane, expected) in [("pull", vec![sample(1.0), sample(2.0)]), ("push", vec![])] {
        let mut stream = api.connect().await;
        let request = format!("GET /v1/history/{lane} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = until(&mut stream, "]\n").await;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let samples: Vec<HistorySample> = serde_json::from_str(body).unwrap();
        assert_eq!(samples, expected, "{lane}");
    }
}
