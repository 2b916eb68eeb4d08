//! A server whose answers are the input, and a store that asks it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairbat::lane::{Lane, LaneSettings, Service};
use fairbat::settings::HttpSettings;
use fairbat::transport::{LaneClient, LeverPolicy, RequestContext};
use fairbat_agent::config;
use fairbat_agent::config::credentials::StoreCredentials;
use fairbat_agent::store::{self, Store, StoreError};
use futures_util::TryStreamExt;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Longer than any exchange takes here, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// More requests than any call sends that gets on.
const MAX_REQUESTS: usize = 100;

/// Longest message of an error, characters.
const MAX_MESSAGE: usize = 2_000;

/// A store, and the server behind it.
pub(crate) struct StoreServer {
    runtime: Runtime,
    store: Arc<dyn Store>,
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    answers: Vec<Vec<u8>>,
    requests: usize,
}

impl StoreServer {
    /// Starts a server, and opens the store that `settings` says of its URL.
    pub(crate) fn start(
        settings: impl FnOnce(&str) -> config::StoreConfig,
        credentials: &StoreCredentials,
    ) -> Self {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        let script = Arc::<Mutex<Script>>::default();
        let server = Arc::clone(&script);
        let store = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("an address");
            tokio::spawn(serve(listener, server));
            let lane = Lane::start(LaneSettings {
                weight: 1.0,
                ..LaneSettings::new(4)
            });
            let lane = lane.expect("a lane");
            let policy = LeverPolicy::Receiver(Default::default());
            let client = LaneClient::start(
                &HttpSettings::default(),
                &lane,
                policy,
                4,
                Service::Scavenge,
            );
            let settings = settings(&format!("http://{address}/root"));
            store::open(&settings, credentials, client.expect("a client"))
        });
        Self {
            runtime,
            store: store.expect("a store"),
            script,
        }
    }

    /// Makes a call whose requests get the answers in `script`; further requests get the
    /// last answer again. Panics if the call does not end, or fails with an error that
    /// nobody should print.
    ///
    /// A line `--` ends an answer. An answer is a status code, lines of header fields, an
    /// empty line and a body.
    pub(crate) fn call<T>(
        &self,
        script: &[u8],
        call: impl AsyncFnOnce(&dyn Store) -> Result<T, StoreError>,
    ) -> Option<T> {
        let lines: Vec<_> = script.split_inclusive(|&byte| byte == b'\n').collect();
        let answers = lines.split(|line| *line == b"--\n");
        *self.script() = Script {
            answers: answers.map(|answer| http(&answer.concat())).collect(),
            requests: 0,
        };
        let done = async { tokio::time::timeout(PATIENCE, call(&*self.store)).await };
        let done = self.runtime.block_on(done);
        assert!(
            self.script().requests <= MAX_REQUESTS,
            "it asks without end"
        );
        match done.expect("the call ends") {
            Ok(done) => Some(done),
            Err(error) => {
                check_printable(&error.message);
                check_printable(&error.hint);
                None
            }
        }
    }

    /// Fetches an object to its end. Panics also if more comes than was sent.
    pub(crate) fn get(&self, script: &[u8], key: &str) {
        let fetched = self.call(script, async |store| {
            let content = store.get(key, RequestContext::default()).await?;
            content.try_collect::<Vec<_>>().await
        });
        let length = fetched
            .into_iter()
            .flatten()
            .map(|piece| piece.len())
            .sum::<usize>();
        assert!(length <= script.len());
    }

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_printable(text: &str) {
    assert!(text.chars().count() <= MAX_MESSAGE, "{text}");
    assert!(!text.contains(char::is_control), "{text:?}");
}

/// An answer as it is sent. Fields that say where it ends are left out.
fn http(answer: &[u8]) -> Vec<u8> {
    let end = answer.windows(2).position(|bytes| bytes == b"\n\n");
    let (head, body) = match end {
        Some(end) => (&answer[..end], &answer[end + 2..]),
        None => (answer, &[][..]),
    };
    let mut lines = head.split(|&byte| byte == b'\n');
    let status = lines.next().and_then(|line| std::str::from_utf8(line).ok());
    let status = status.and_then(|text| text.parse().ok());
    let status: u16 = status
        .filter(|code| (200..600).contains(code))
        .unwrap_or(200);
    let mut sent =
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len()).into_bytes();
    let is_framing = |line: &[u8]| {
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
        [&b"content-length"[..], b"transfer-encoding", b"connection"]
            .contains(&&*name.to_ascii_lowercase())
    };
    let is_field = |line: &&[u8]| {
        let is_text = line.iter().all(|&byte| byte >= b' ' && byte != 0x7f);
        line.contains(&b':') && line[0].is_ascii_alphabetic() && is_text && !is_framing(line)
    };
    for line in lines.filter(is_field) {
        sent.extend_from_slice(line);
        sent.extend_from_slice(b"\r\n");
    }
    sent.extend_from_slice(b"\r\n");
    sent.extend_from_slice(body);
    sent
}

async fn serve(listener: TcpListener, script: Arc<Mutex<Script>>) {
    loop {
        let (stream, _) = listener.accept().await.expect("accept a connection");
        stream.set_nodelay(true).expect("set an option");
        let script = Arc::clone(&script);
        tokio::spawn(async move {
            // The client may hang up whenever it likes.
            let _ = answer_all(stream, &script).await;
        });
    }
}

async fn answer_all(mut stream: TcpStream, script: &Mutex<Script>) -> std::io::Result<()> {
    let (reading, mut writing) = stream.split();
    let mut reading = BufReader::new(reading);
    loop {
        let (mut length, mut is_head, mut line) = (0, false, String::new());
        loop {
            line.clear();
            if reading.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            is_head |= line.starts_with("HEAD ");
            match line.to_ascii_lowercase().split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().unwrap_or(0),
                Some(_) => {}
                None if line == "\r\n" => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        reading.read_exact(&mut body).await?;
        let mut answer = {
            let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
            let last = script.answers.len().saturating_sub(1);
            let answer = script.answers.get(script.requests.min(last)).cloned();
            script.requests += 1;
            if script.requests > MAX_REQUESTS {
                return Ok(());
            }
            answer.unwrap_or_default()
        };
        if is_head && let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            answer.truncate(end + 4);
        }
        writing.write_all(&answer).await?;
    }
}
