//! One download: a command is run against the servers of a run, and what becomes of it is seen.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::record::{Fetch, Found};
use super::servers::Mirror;
use fairbat_tests::content::Content;

/// Name under which all contenders save the file.
pub(super) const NAME: &str = "file";

/// What aria2c keeps beside a file that is not complete.
const CONTROL_FILE: &str = "file.aria2";

/// How often it is looked whether the command has ended: a thousandth of the ideal time.
const LOOK: Duration = Duration::from_millis(4);

/// How long servers are watched before it is said which of them send at the same time.
const SPAN: Duration = Duration::from_millis(200);

/// What a server sends in that time at least, if it counts: some answers without a body are less.
const SENDING: u64 = 16 * 1024;

/// Longest message that is kept.
const MAX_SAID: usize = 200;

/// A command, and what it is to fetch.
pub(super) struct Download<'a> {
    pub(super) args: &'a [String],
    /// Where it runs, and leaves the file.
    pub(super) directory: &'a Path,
    pub(super) file: &'a Content,
    pub(super) servers: &'a [Mirror],
    pub(super) limit: Duration,
}

impl Download<'_> {
    /// Runs it to its end, or to the limit.
    pub(super) fn run(&self) -> Fetch {
        let said = tempfile::NamedTempFile::new().expect("a temp file");
        let begin = Instant::now();
        let mut child = self.start(said.as_file());
        let mut watch = Watch::new(self.servers);
        let status = loop {
            if let Some(status) = child.try_wait().expect("wait for it") {
                break Some(status);
            }
            if begin.elapsed() > self.limit {
                break None;
            }
            watch.look();
            std::thread::sleep(LOOK);
        };
        let elapsed = begin.elapsed();
        if status.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let code = status.and_then(|status: ExitStatus| status.code());
        Fetch {
            code,
            is_over_time: status.is_none(),
            seconds: round(elapsed.as_secs_f64(), 1e3),
            found: self.found(),
            has_control_file: self.directory.join(CONTROL_FILE).exists(),
            sent: watch.sent(),
            at_once: round(watch.at_once(), 1e2),
            said: (code != Some(0)).then(|| last_line(said.path())).flatten(),
        }
    }

    fn start(&self, said: &File) -> Child {
        let (program, rest) = self.args.split_first().expect("a program");
        Command::new(program)
            .args(rest)
            .current_dir(self.directory)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.try_clone().expect("another descriptor"))
            .spawn()
            .unwrap_or_else(|error| panic!("start {program}: {error}"))
    }

    /// What has the name of the file now.
    fn found(&self) -> Found {
        let path = self.directory.join(NAME);
        if !path.exists() {
            return Found::Nothing;
        }
        match self.file.first_difference(&path).expect("read the file") {
            None => Found::Right,
            Some(_) => Found::Wrong,
        }
    }
}

fn round(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

/// The last line of what a command said.
fn last_line(path: &Path) -> Option<String> {
    let text = fs::read(path).expect("read what it said");
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(MAX_SAID).collect())
}

/// Counts how many servers send at the same time.
struct Watch<'a> {
    servers: &'a [Mirror],
    since: Instant,
    before: Vec<u64>,
    /// Spans in which one sent at least, and the sum over these of how many did.
    spans: u32,
    sending: u32,
}

impl<'a> Watch<'a> {
    fn new(servers: &'a [Mirror]) -> Self {
        Self {
            servers,
            since: Instant::now(),
            before: vec![0; servers.len()],
            spans: 0,
            sending: 0,
        }
    }

    /// Bytes that each server has sent so far.
    fn sent(&self) -> Vec<u64> {
        let sent = self.servers.iter().map(|mirror| mirror.server.sent_bytes());
        sent.collect()
    }

    fn look(&mut self) {
        if self.since.elapsed() < SPAN {
            return;
        }
        let sent = self.sent();
        let grown = sent.iter().zip(&self.before).map(|(now, then)| now - then);
        let sending = grown.filter(|&bytes| bytes >= SENDING).count() as u32;
        self.spans += u32::from(sending > 0);
        self.sending += sending;
        self.since = Instant::now();
        self.before = sent;
    }

    /// The mean, while at least one sent.
    fn at_once(&self) -> f64 {
        f64::from(self.sending) / f64::from(self.spans.max(1))
    }
}
