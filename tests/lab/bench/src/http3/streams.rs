//! Many small files with a close deadline from one host, alone and while a large file with a later
//! one is under way, over HTTP/3 and over HTTP/1.1.
//!
//! Server and client have a link of their own with a queue in it. The cases take turns, and each
//! round begins with another one. Each run has a new server, whose log tells its connections.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::record::{Case, Run, Streams};
use crate::machine::{MEMORY, RESERVE, need_memory};
use crate::measure::in_turns;
use fairbat_tests::bin::{Fairbat, Running};
use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_content;
use fairbat_tests::netns::{Link, SERVER};
use fairbat_tests::served::{serving, settle, started};
use fairbat_tests::tls::Identity;

/// From the server to the client, as `tc` writes it.
const RATE: &str = "50mbit";

/// Size of a small file, bytes.
const SMALL: u64 = 100_000;

/// Reachable, whatever else moves.
const SMALL_DEADLINE: &str = "60s";

/// Size of the large file, bytes: eighty seconds at the rate of the link, more than any list of
/// small files takes.
const LARGE: u64 = 500_000_000;

/// Later than that of the small files, so that these go first.
const LARGE_DEADLINE: &str = "20m";

/// Name of the large file.
const LARGE_NAME: &str = "large";

/// Who has not fetched the small files by then has stalled.
const LIMIT: Duration = Duration::from_secs(180);

/// So much longer a process may take to end.
const GRACE: Duration = Duration::from_secs(20);

/// How often the events of a client are looked at: they carry their time themselves.
const LOOK: Duration = Duration::from_millis(50);

/// Over HTTP/3 without and with the large file, then the same over HTTP/1.1.
const CASES: [(bool, bool); 4] = [(true, false), (true, true), (false, false), (false, true)];

/// Measures all cases so often with so many small files.
pub(super) fn run(files: u32, repetitions: u32, seed: u64) -> Streams {
    need_memory(2 * (LARGE + u64::from(files) * SMALL) + RESERVE);
    let place = Place::new(files, seed);
    let mut cases = CASES.map(|(http3, with_large)| Case {
        http3,
        with_large,
        runs: Vec::new(),
    });
    for (round, index) in in_turns(1..=repetitions, CASES.len()) {
        let case = &mut cases[index];
        let run = place.fetch(case.http3, case.with_large);
        eprintln!(
            "{files} files, round {round} of {repetitions}, {}, {}: 95 % after {:.2} s, {} \
             connections, {} tries again",
            if case.http3 { "HTTP/3" } else { "HTTP/1.1" },
            if case.with_large {
                "with a large one"
            } else {
                "alone"
            },
            run.quantile(0.95),
            run.connections,
            run.retries
        );
        case.runs.push(run);
    }
    Streams {
        rate: RATE.to_owned(),
        files,
        small_bytes: SMALL,
        small_deadline: SMALL_DEADLINE.to_owned(),
        large_bytes: LARGE,
        large_deadline: LARGE_DEADLINE.to_owned(),
        cases: cases.into(),
    }
}

/// The link, and what the server has.
struct Place {
    link: Link,
    identity: Identity,
    /// Holds the files of [`Identity`].
    _keys: TempDir,
    site: TempDir,
    small: Vec<(String, Content)>,
}

impl Place {
    fn new(files: u32, seed: u64) -> Self {
        let link = Link::with_queue(RATE).expect("network namespaces, which need root");
        let directory = || tempfile::tempdir_in(MEMORY).expect("a directory in memory");
        let (keys, site) = (directory(), directory());
        let identity = Identity::issue(keys.path(), &[SERVER], 2099);
        let large = Content::new(seed, LARGE);
        let small: Vec<_> = (1..=files)
            .map(|number| {
                let content = Content::new(seed + u64::from(number), SMALL);
                (format!("small-{number}"), content)
            })
            .collect();
        let all = small.iter().map(|(name, content)| (name.as_str(), content));
        for (name, content) in all.chain([(LARGE_NAME, &large)]) {
            let path = site.path().join(name);
            content.write_to(&path).expect("write a file to serve");
        }
        settle();
        Self {
            link,
            identity,
            _keys: keys,
            site,
            small,
        }
    }

    /// One run, until the last small file is done. What it has fetched is checked and removed.
    fn fetch(&self, http3: bool, with_large: bool) -> Run {
        let (mut server, url) = self.serve();
        let work = tempfile::tempdir_in(MEMORY).expect("a directory in memory");
        let list = self.list(work.path(), &url, with_large);
        let before = self.link.received();
        let mut client = Fairbat::new(work.path())
            .args(["get", "--json", "--http3"])
            .args([if http3 { "only" } else { "never" }, "--cacert"])
            .arg(&self.identity.authority)
            .args(["-d", "out", "--input-file"])
            .arg(list)
            .namespace(self.link.client())
            .timeout(LIMIT + GRACE)
            .spawn();
        self.wait(&mut client);
        let link_bytes = self.link.received() - before;
        if with_large {
            client.signal("TERM");
        }
        let outcome = client.wait();
        if !with_large {
            outcome.expect_code(0);
        }
        server.signal("TERM");
        let server = server.wait();
        server.expect_code(0);
        for (name, content) in &self.small {
            assert_content(&work.path().join("out").join(name), content);
        }
        let events = outcome.events();
        let protocol = if http3 { "h3" } else { "http/1.1" };
        let mut done_s: Vec<_> = small_ones_done(&events)
            .map(|event| {
                assert_eq!(event["protocol"], protocol, "{event}");
                event["t"].as_f64().expect("a time")
            })
            .collect();
        done_s.sort_by(f64::total_cmp);
        Run {
            done_s,
            connections: connections(&server.stderr),
            retries: outcome.events_named("retry").len(),
            link_bytes,
        }
    }

    /// Starts a server, which logs each request.
    fn serve(&self) -> (Running, String) {
        let serving = serving(self.site.path(), &self.identity)
            .args(["-v", "--listen", &format!("{SERVER}:0")])
            .namespace(self.link.server())
            .timeout(2 * (LIMIT + GRACE));
        started(&serving)
    }

    /// Writes the list of URLs, the large file first: it is under way when the small ones come.
    fn list(&self, directory: &Path, url: &str, with_large: bool) -> PathBuf {
        let large = with_large.then(|| format!("{url}{LARGE_NAME} deadline={LARGE_DEADLINE}\n"));
        let mut text = large.unwrap_or_default();
        for (name, _) in &self.small {
            text += &format!("{url}{name} deadline={SMALL_DEADLINE}\n");
        }
        let path = directory.join("list");
        fs::write(&path, text).expect("write a list");
        path
    }

    /// Waits until the small files are done.
    fn wait(&self, client: &mut Running) {
        let begin = Instant::now();
        loop {
            // Looked at first: one that has ended has written all its events.
            let is_running = client.is_running();
            let done = small_ones_done(&client.events()).count();
            if done == self.small.len() {
                return;
            }
            assert!(
                is_running && begin.elapsed() < LIMIT,
                "{done} of {} small files are done after {:?}: {}",
                self.small.len(),
                begin.elapsed(),
                client.stdout()
            );
            std::thread::sleep(LOOK);
        }
    }
}

/// The events of small files that are complete.
fn small_ones_done(events: &[Value]) -> impl Iterator<Item = &Value> {
    let is_large = |event: &Value| {
        let url = event["url"].as_str().unwrap_or_default();
        url.ends_with(&format!("/{LARGE_NAME}"))
    };
    let done = events.iter().filter(|event| event["event"] == "done");
    done.filter(move |event| !is_large(event))
}

/// How many connections the log of a server tells of: each has a port of the client's own.
fn connections(log: &str) -> usize {
    let peers: BTreeSet<_> = log
        .lines()
        .filter_map(|line| line.split_once("serve::connection: ")?.1.split(' ').next())
        .collect();
    peers.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_port_are_one_connection() {
        let log = "https://10.77.0.1:443/ serves site\n\
                   info: fairbat::serve::connection: 10.77.0.2:1 HEAD /a 200 100000 -\n\
                   info: fairbat::serve::connection: 10.77.0.2:2 GET /b 206 bytes 0-0/9 w=0.02\n\
                   info: fairbat::serve::connection: 10.77.0.2:1 GET /a 200 100000 w=0.02\n";
        assert_eq!(connections(log), 2);
    }
}
