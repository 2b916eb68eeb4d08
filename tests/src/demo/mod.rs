//! The demo: a real file by a deadline, from a real server, killed in the
//! middle.
//!
//! The server gives each connection so little that one connection would be
//! late. So `fairbat` has to notice, and to open more; it is killed
//! (SIGKILL), started again, has to go on with what it had, and still be in
//! time with exactly the server's file.

pub mod picture;
pub mod recording;
mod table;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::bin::{Fairbat, Running, fairbat_binary};
use crate::content::Content;
use crate::nginx::{Config, Nginx};
use recording::{Recording, Run, Sample};
pub use table::summary;

/// What the demo asks for.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    /// Determines the bytes of the file.
    pub seed: u64,
    /// Size of the file, bytes.
    pub size: u64,
    /// What the server gives each connection, byte/s.
    pub rate_per_connection: u64,
    /// From the start of the first run to the deadline.
    pub deadline: Duration,
    /// From the start of the first run to its end by SIGKILL.
    pub kill: Duration,
}

/// Every so many seconds a line is printed.
const LINE_EVERY: f64 = 5.0;

/// Pieces shorter than the default, which lasts four seconds: the limit on
/// connections acts between pieces, and the whole demo is short.
const CHUNK_SIZE: &str = "512K";

/// Plays the script, saying what happens on standard output, and returns what
/// happened. The file is downloaded into `directory`, and removed.
///
/// # Panics
/// When the server does not start or `fairbat` fails.
#[must_use]
pub fn play(script: &Script, directory: &Path) -> Recording {
    // Built now, if need be, and not on the time of the first run.
    let _ = fairbat_binary();
    let nginx = Nginx::start(&Config {
        limit_rate: Some(script.rate_per_connection),
        ..Config::default()
    });
    nginx.put("file", &Content::new(script.seed, script.size));
    let work = tempfile::tempdir_in(directory).expect("a directory to download into");
    let stage = Stage {
        script,
        url: nginx.url("file"),
        work: work.path(),
        begin: Instant::now(),
    };
    let first = stage.run(Some(script.kill));
    println!(
        "{:5.1} s  killed (SIGKILL); the same again, with the time left:",
        first.end
    );
    let second = stage.run(None);
    println!("{:5.1} s  complete\n", second.end);
    Recording {
        size: script.size,
        rate_per_connection: script.rate_per_connection,
        deadline: script.deadline.as_secs_f64(),
        runs: vec![first, second],
        sent: nginx.sent_bytes(),
        served_sha256: sha256sum(&nginx.path("file")),
        saved_sha256: sha256sum(&work.path().join("file")),
    }
}

/// Where and since when the script is played.
struct Stage<'a> {
    script: &'a Script,
    url: String,
    work: &'a Path,
    begin: Instant,
}

impl Stage<'_> {
    fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// One run, killed at `kill` after the beginning, or to its end.
    fn run(&self, kill: Option<Duration>) -> Run {
        let start = self.now();
        let left = format!("{:.1}s", self.script.deadline.as_secs_f64() - start);
        let args = [
            "get",
            "--json",
            "--deadline",
            &left,
            "--chunk-size",
            CHUNK_SIZE,
            &self.url,
        ];
        let command = format!("fairbat {}", args.join(" "));
        println!("$ {command}");
        let mut running = Fairbat::new(self.work)
            .args(args)
            .timeout(3 * self.script.deadline)
            .spawn();
        self.watch(&mut running, start, kill);
        if kill.is_some() {
            assert!(running.is_running(), "over before it could be killed");
            running.signal("KILL");
        }
        let events = running.events();
        let outcome = running.wait();
        let end = self.now();
        if kill.is_none() {
            outcome.expect_code(0);
        }
        let file = events.iter().find(|event| event["event"] == "file");
        Run {
            command,
            start,
            end,
            resumed: file
                .and_then(|event| event["resumed_bytes"].as_u64())
                .unwrap_or(0),
            samples: events
                .iter()
                .filter_map(|event| Sample::of(event, start))
                .collect(),
        }
    }

    /// Prints how it goes until it ends or `until` has come.
    fn watch(&self, running: &mut Running, start: f64, until: Option<Duration>) {
        let mut seen = 0;
        let mut next_line = (start / LINE_EVERY).floor() * LINE_EVERY + LINE_EVERY;
        while running.is_running() && until.is_none_or(|until| self.begin.elapsed() < until) {
            let events = running.events();
            for event in &events[seen..] {
                match Sample::of(event, start) {
                    Some(sample) if sample.t >= next_line - 0.5 => {
                        next_line += LINE_EVERY;
                        self.print(&sample);
                    }
                    _ => {}
                }
                if event["event"] == "file" && event["resumed_bytes"] != 0 {
                    let had = event["resumed_bytes"].as_f64().unwrap_or(0.0) / 1e6;
                    println!("{start:5.1} s  goes on: {had:.1} MB are here");
                }
            }
            seen = events.len();
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn print(&self, sample: &Sample) {
        println!(
            "{:5.1} s  {:5.1} MB of {:.0} MB, {:.2} MB/s, needs {:.2} MB/s: m = {:.2}, {} in use",
            sample.t,
            sample.done / 1e6,
            self.script.size as f64 / 1e6,
            sample.rate / 1e6,
            sample.zeta.unwrap_or(0.0) / 1e6,
            sample.m,
            sample.active,
        );
    }
}

/// The SHA-256 of a file, by a program that is not ours.
fn sha256sum(path: &Path) -> String {
    let output = Command::new("sha256sum")
        .arg(path)
        .output()
        .expect("start sha256sum");
    let text = String::from_utf8_lossy(&output.stdout);
    let digest = text.split_whitespace().next();
    digest
        .unwrap_or_else(|| panic!("sha256sum {}: {output:?}", path.display()))
        .to_owned()
}
