//! Two hosts with paths side by side between them, the servers at one of them, and a file that
//! somebody fetches from there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairbat_tests::content::Content;
use fairbat_tests::nginx::{Config, Nginx};

use crate::multipath::carrier::Carrier;
use crate::multipath::fetch::{Source, Turn};
use crate::multipath::mptcp::MptcpServer;
use crate::multipath::program::{Order, Told};
use crate::multipath::record::Transfer;
use crate::multipath::{fetch, mptcp, program};
use lab_run::host::{Class, Host};
use lab_run::link::{PAYLOAD, counter};
use lab_run::machine::{Clock, Context as _};
use lab_run::samples::LinkRecord;
use lab_run::scenario::{LinkSpec, Scenario};
use lab_run::topology;
use lab_run::topology::Topology;

/// The fetcher asks for more ranges over one connection than nginx answers by default.
const MANY_REQUESTS: &str = "keepalive_requests 1000000;";

/// Packets that a connection begins with (RFC 6928).
const FIRST_WINDOW: f64 = 10.0;

/// Both hosts, with what serves and what lies between.
pub(crate) struct Ground {
    topology: Topology,
    nginx: Nginx,
    mptcp: MptcpServer,
    links: Vec<LinkSpec>,
    devices: Vec<String>,
    interfaces: String,
    work: PathBuf,
    clock: Clock,
}

/// What somebody is to fetch.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// Who.
    pub(crate) carrier: Carrier,
    /// Name of the file.
    pub(crate) name: String,
    /// What is in it.
    pub(crate) content: Content,
    /// Seconds by which it should be there.
    pub(crate) deadline_s: Option<f64>,
    /// How long it may take.
    pub(crate) patience: Duration,
}

impl Ground {
    /// Makes all of it, with working files in `work`.
    ///
    /// # Errors
    /// When the machine lacks something.
    pub(crate) fn start(
        scenario: &Scenario,
        seed: u64,
        sampling: Duration,
        work: &Path,
        clock: Clock,
    ) -> io::Result<Self> {
        let hosts = topology::hosts(scenario)?;
        let topology = Topology::join(scenario, hosts, seed, sampling, clock)?;
        let [server, client] = topology.hosts() else {
            return Err(io::Error::other("paths are between two hosts"));
        };
        let config = Config {
            address: server.address(Class::Background).into(),
            directives: MANY_REQUESTS.to_owned(),
            ..Config::default()
        };
        let nginx = server.run(move || Nginx::start(&config)).join();
        let nginx =
            nginx.map_err(|_| io::Error::other("nginx did not start; see standard error"))?;
        let mptcp = MptcpServer::start(server, nginx.path(""))?;
        let devices = scenario.paths().map(|(device, _)| device.to_owned());
        let devices: Vec<_> = devices.collect();
        mptcp::prepare_client(client, &devices)?;
        fs::create_dir_all(work).doing(format_args!("make {}", work.display()))?;
        Ok(Self {
            nginx,
            mptcp,
            links: scenario.link.clone(),
            devices,
            interfaces: scenario.interfaces().unwrap_or_default(),
            work: work.to_owned(),
            clock,
            topology,
        })
    }

    /// The hosts, the server first.
    pub(crate) fn hosts(&self) -> &[Host] {
        self.topology.hosts()
    }

    /// Has the server serve this.
    pub(crate) fn put(&self, name: &str, content: &Content) {
        self.nginx.put(name, content);
    }

    /// Fetches a file, and looks whether it is the right one. What goes wrong is in the record.
    ///
    /// # Errors
    /// When the devices cannot be read, or the file cannot be looked at.
    pub(crate) fn carry(&self, task: &Task) -> io::Result<Transfer> {
        let before = self.received()?;
        let directory = self.work.join("transfer");
        fs::create_dir(&directory).doing(format_args!("make {}", directory.display()))?;
        let outcome = self.fetch(task, &directory);
        let outcome = outcome.and_then(|(took, told)| match took <= task.patience {
            true => Ok((took, told)),
            false => Err(format!("not done before {:.1} s", took.as_secs_f64())),
        });
        let after = self.received()?;
        fs::remove_dir_all(&directory).doing(format_args!("remove {}", directory.display()))?;
        let by_path = before
            .iter()
            .zip(&after)
            .map(|(before, after)| after - before);
        let by_path = by_path.collect();
        let (took, told, failure) = match outcome {
            Ok((took, told)) => (Some(took.as_secs_f64()), told, None),
            Err(failure) => (None, Told::default(), Some(failure)),
        };
        Ok(Transfer {
            seconds: took,
            foretold_s: told.foretold_s,
            told_s: told.done_s,
            by_path,
            failure,
        })
    }

    fn fetch(&self, task: &Task, directory: &Path) -> Result<(Duration, Told), String> {
        let client = &self.topology.hosts()[1];
        let source = |server| Source {
            server,
            path: format!("/{}", task.name),
            length: task.content.len(),
        };
        let words = |error: io::Error| error.to_string();
        let turn = match task.carrier {
            Carrier::None => return Err("nobody fetches it".to_owned()),
            Carrier::Curl | Carrier::FairbatSingle | Carrier::Fairbat => {
                let order = Order {
                    carrier: task.carrier,
                    url: self.nginx.url(&task.name),
                    interfaces: &self.interfaces,
                    best: &self.devices[best(&self.links, task.content.len())],
                    deadline_s: task.deadline_s,
                };
                let ran = order.run(client, directory, task.patience, self.clock)?;
                let difference = task.content.first_difference(&program::arrived(directory));
                return match difference.map_err(words)? {
                    None => Ok((ran.took, ran.told)),
                    Some(difference) => Err(wrong(difference.offset)),
                };
            }
            Carrier::Mptcp => {
                let began = self.clock.now();
                let source = source(self.mptcp.address());
                let bytes = mptcp::fetch(client, &source, task.patience).map_err(words)?;
                let took = self.clock.now() - began;
                return is_right(&task.content, &bytes).map(|()| (took, Told::default()));
            }
            Carrier::RoundRobin => Turn::RoundRobin,
            Carrier::LowestRttFirst => Turn::LowestRttFirst,
        };
        let source = source(self.nginx.address());
        let devices = &self.devices;
        let fetched = fetch::fetch(client, devices, &source, turn, task.patience, self.clock);
        let fetched = fetched.map_err(words)?;
        is_right(&task.content, &fetched.bytes).map(|()| (fetched.took, Told::default()))
    }

    /// Bytes of packets that the client has received over each path.
    fn received(&self) -> io::Result<Vec<u64>> {
        let client = &self.topology.hosts()[1];
        let devices = self.devices.iter();
        devices.map(|device| counter(client, device, 0)).collect()
    }

    /// Takes it all down, and returns what the paths saw.
    ///
    /// # Errors
    /// When one of them had failed.
    pub(crate) fn finish(self) -> io::Result<Vec<LinkRecord>> {
        self.topology.finish()
    }
}

fn wrong(offset: u64) -> String {
    format!("the file that has arrived is wrong from byte {offset}")
}

fn is_right(content: &Content, bytes: &[u8]) -> Result<(), String> {
    let expected = content.all();
    let same = bytes.iter().zip(&expected).take_while(|(a, b)| a == b);
    match same.count() {
        all if all == expected.len() && all == bytes.len() => Ok(()),
        offset => Err(wrong(offset as u64)),
    }
}

/// The path over which so many bytes should be there first: two round trips until the first
/// comes, one for each time that slow start doubles its window before all has been sent, and the
/// time that all takes on the wire.
fn best(links: &[LinkSpec], bytes: u64) -> usize {
    let packets = bytes as f64 / f64::from(PAYLOAD);
    let seconds = |link: &LinkSpec| {
        let rtt = link.rtt_ms() / 1e3;
        let on_wire = bytes as f64 * 8e-6 / link.rate_mbit;
        let until_full = link.rate_mbit * 1e6 / 8.0 * rtt / f64::from(PAYLOAD);
        let doublings = (packets.min(until_full) / FIRST_WINDOW).max(1.0).log2();
        rtt * (2.0 + doublings.floor()) + on_wire
    };
    let all = links.iter().map(seconds).enumerate();
    all.min_by(|(_, one), (_, other)| one.total_cmp(other))
        .map_or(0, |(path, _)| path)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use fairbat_tests::netns::skipped;
    use tempfile::TempDir;

    use super::*;
    use lab_run::scenario::QueueSpec;

    #[test]
    fn the_best_path_depends_on_the_size() {
        let link = |rate, delay| LinkSpec::plain(rate, delay, QueueSpec::Packets(50));
        let links = [link(2.0, 5.0), link(10.0, 50.0)];
        assert_eq!(best(&links, 15_000), 0);
        assert_eq!(best(&links, 1_000_000), 1);
        // Of two that are alike it is the first.
        assert_eq!(best(&[link(10.0, 5.0), link(10.0, 5.0)], 1_000_000), 0);
    }

    /// Two paths of this scenario are alike, and fast.
    const PAIR: &str = r#"
        description = "two paths"
        duration_s = 60
        measure_from_s = 0
        [[link]]
        path = "a"
        rate_mbit = 20
        delay_ms = 2
        queue = { packets = 50 }
        [[link]]
        path = "b"
        rate_mbit = 20
        delay_ms = 2
        queue = { packets = 50 }
    "#;

    /// The two paths with a file, and where it works; `None` without the right to make networks.
    fn pair() -> Option<(TempDir, Ground, Content)> {
        if Host::new(0).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
            skipped("needs root");
            return None;
        }
        let scenario: Scenario = toml::from_str(PAIR).unwrap();
        let work = tempfile::tempdir().unwrap();
        let sampling = Duration::from_millis(100);
        let ground = Ground::start(&scenario, 1, sampling, work.path(), Clock::start()).unwrap();
        let content = Content::new(1, 3_000_000);
        ground.put("file", &content);
        Some((work, ground, content))
    }

    #[test]
    fn whoever_can_uses_both_paths_and_the_others_one() {
        let Some((_work, ground, content)) = pair() else {
            return;
        };
        for carrier in [
            Carrier::Curl,
            Carrier::Mptcp,
            Carrier::RoundRobin,
            Carrier::LowestRttFirst,
        ] {
            let transfer = ground.carry(&Task {
                carrier,
                name: "file".to_owned(),
                content,
                deadline_s: None,
                patience: Duration::from_secs(30),
            });
            let transfer = transfer.unwrap();
            assert_eq!(transfer.failure, None, "{carrier}");
            let least = transfer.by_path.iter().min().copied().unwrap();
            let is_used = least > content.len() / 10;
            assert_eq!(
                is_used,
                !carrier.is_single(),
                "{carrier}: {:?}",
                transfer.by_path
            );
        }
        ground.finish().unwrap();
    }

    #[test]
    fn what_does_not_come_in_time_or_is_not_there_is_told() {
        let Some((_work, ground, content)) = pair() else {
            return;
        };
        let failure = |carrier, name: &str, patience| {
            let transfer = ground.carry(&Task {
                carrier,
                name: name.to_owned(),
                content,
                deadline_s: None,
                patience,
            });
            let transfer = transfer.unwrap();
            assert_eq!(transfer.seconds, None);
            transfer.failure.unwrap()
        };
        let (short, long) = (Duration::from_millis(300), Duration::from_secs(20));
        assert!(failure(Carrier::Curl, "file", short).starts_with("not done"));
        assert!(failure(Carrier::Curl, "none", long).contains("404"));
        let refused = failure(Carrier::RoundRobin, "none", long);
        assert!(
            refused.contains("the server answered HTTP/1.1 404"),
            "{refused}"
        );
        assert!(!failure(Carrier::Mptcp, "none", long).is_empty());
    }
}
