//! A server that is slow after others have gone is asked over a fresh
//! connection: what that costs, and that no byte is lost by it.

use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

use fairbat_tests::content::Content;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::tls::Identity;
use fairbat_tests::workdir::Workdir;
use lab_run::host::{Class, Host};
use lab_run::machine::Clock;
use lab_run::scenario::Scenario;
use lab_run::topology::{Topology, hosts};

use crate::is_root;
use crate::turn::shared;

/// 83 segments fill the path.
const LINK: &str = r#"
description = "a link of 10 Mbit/s and 100 ms"
duration_s = 60
measure_from_s = 0

[[link]]
rate_mbit = 10
delay_ms = 50
queue = { packets = 86 }
"#;

/// What the server allows a response, byte/s: a third of what the link
/// carries.
const LIMIT: u64 = 400_000;

/// Twenty seconds at that rate.
const FILE: Content = Content::new(970, 8_000_000);

/// The server sends in bursts. If they make a queue, the window is what holds
/// the download back, and it needs no fresh connection. In 24 of 39 downloads
/// they did not.
const TRIES: usize = 15;

/// A server at one end of a link, and a client at the other.
struct Site {
    topology: Topology,
    /// Limits the rate of each response.
    nginx: Nginx,
    /// Where others fetch from.
    busy: Nginx,
}

impl Site {
    fn new(tls: Option<Identity>) -> Self {
        let scenario: Scenario = toml::from_str(LINK).expect("a scenario");
        let hosts = hosts(&scenario).expect("two hosts");
        let server = hosts[0].clone();
        let start = |class, limit_rate, tls| {
            let config = Config {
                limit_rate,
                tls,
                address: IpAddr::V4(server.address(class)),
                ..Config::default()
            };
            server.within(move || Nginx::start(&config))
        };
        let nginx = start(Class::Background, Some(LIMIT), tls);
        nginx.put("file", &FILE);
        let busy = start(Class::Foreground, None, None);
        busy.put("large", &Content::new(971, 40_000_000));
        let sampling = Duration::from_millis(100);
        let topology = Topology::join(&scenario, hosts, 1, sampling, Clock::start());
        Self {
            topology: topology.expect("a link"),
            nginx,
            busy,
        }
    }

    fn client(&self) -> &Host {
        &self.topology.hosts()[1]
    }

    /// Downloads the file, with somebody greedy there during the first eight
    /// seconds if `is_busy`.
    fn get(&self, work: &Workdir, is_busy: bool) -> Outcome {
        let url = self.busy.url("large");
        let greedy = is_busy.then(|| {
            self.client().run(move || {
                Command::new("curl")
                    .args(["-sS", "-o", "/dev/null", "-m", "10", &url])
                    .output()
            })
        });
        let get = work
            .get()
            .env("FAIRBAT_LOG", "fairbat=debug")
            .args(
                ["--cacert", "authority.pem"]
                    .iter()
                    .filter(|_| self.is_tls()),
            )
            .arg(self.nginx.url("file"));
        std::thread::sleep(Duration::from_secs(2));
        let outcome = self.client().within(move || get.run());
        if let Some(greedy) = greedy {
            let output = greedy.join().expect("a thread").expect("start curl");
            // 28: its time was up.
            assert_eq!(output.status.code(), Some(28), "{output:?}");
        }
        outcome
    }

    fn is_tls(&self) -> bool {
        self.nginx.url("").starts_with("https")
    }

    /// Responses that were not taken to their end, and the bytes that were
    /// sent in vain.
    fn cut(&self) -> (usize, u64) {
        let accesses = self.nginx.settled_accesses();
        let ranges = accesses.iter().filter(|access| access.status == 206);
        let is_cut = |range: &str, bytes: u64| {
            let ends = range.trim_start_matches("bytes=").split_once('-');
            let (first, last) = ends.expect("a range");
            let number = |text: &str| text.parse::<u64>().expect("an offset");
            bytes < number(last) + 1 - number(first)
        };
        let cut = ranges.filter(|access| is_cut(&access.range, access.body_bytes));
        (
            cut.count(),
            self.nginx.sent_bytes().saturating_sub(FILE.len()),
        )
    }
}

#[test]
fn a_server_that_limits_its_rate_sees_no_fresh_connections() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    let (site, work) = (Site::new(None), Workdir::new());
    site.get(&work, false).expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert_eq!(site.cut().0, 0);
}

#[test]
fn after_a_yield_it_sees_few_and_no_byte_is_lost() {
    some_download_takes_fresh_connections(false);
}

#[test]
fn after_a_yield_it_sees_few_over_tls_and_no_byte_is_lost() {
    some_download_takes_fresh_connections(true);
}

fn some_download_takes_fresh_connections(has_tls: bool) {
    if !is_root() {
        return;
    }
    let _turn = shared();
    let mut cuts = (0..TRIES).map(|_| fresh_connections(has_tls));
    assert!(cuts.any(|cut| cut > 0), "none in {TRIES} downloads");
}

/// How many fresh connections a download takes beside somebody greedy, and
/// what they cost.
fn fresh_connections(has_tls: bool) -> usize {
    let work = Workdir::new();
    let issued = tempfile::tempdir().expect("a temp dir");
    let identity = has_tls.then(|| Identity::issue(issued.path(), &["10.78.0.2"], 2099));
    if let Some(identity) = &identity {
        let here = work.join("authority.pem");
        std::fs::copy(&identity.authority, here).expect("copy a certificate");
    }
    let site = Site::new(identity);
    let outcome = site.get(&work, true);
    outcome.expect_code(0);
    if has_tls {
        std::fs::remove_file(work.join("authority.pem")).expect("remove a certificate");
    }
    work.assert_holds(&[("file", &FILE)]);
    let (cut, in_vain) = site.cut();
    let said = outcome.stderr.matches("over a fresh connection").count();
    println!("{cut} cut, {said} said, {in_vain} bytes in vain");
    assert_eq!(cut, said, "{outcome}");
    // Three that do not help are the most there are.
    assert!(cut <= 3, "{cut} cut: {outcome}");
    // What fills the path and two buffers, each time; and the byte that the
    // first request asks for.
    assert!(
        in_vain <= 1 + 400_000 * cut as u64,
        "{in_vain} bytes sent in vain"
    );
    assert!(outcome.events_named("retry").is_empty(), "{outcome}");
    cut
}
