//! Where a contender works, and what it is to move.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, io};

use fairbat_tests::content::Content;
use fairbat_tests::port::Port;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::arrivals;
use crate::arrivals::Arrival;
use crate::contender::Contender;
use crate::contender::process::Over;
use crate::contender::served::{BUCKET, Served, fault, outcomes};
use crate::host::{Class, Host};
use crate::link::{PAYLOAD_SHARE, bytes_per_s};
use crate::machine::Clock;
use crate::samples::{BackgroundRecord, Fetch};
use crate::scenario::{Background, Jobs, Scenario};

/// Where the files are, and where they are moved to.
pub(crate) const ORIGIN: &str = "origin";
pub(crate) const DOWNLOAD: &str = "download";

/// Where a contender works, and what it is to do there.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// Where the data is.
    pub(crate) server: Host,
    /// Where it goes.
    pub(crate) client: Host,
    /// What is asked for.
    pub(crate) background: Background,
    /// Rate of the first link, Mbit/s.
    pub(crate) first_mbit: f64,
    /// Rate of the slowest link, Mbit/s.
    pub(crate) slowest_mbit: f64,
    /// What a flow that never ends gets beside the foreground when all share evenly, payload,
    /// Mbit/s.
    pub(crate) fair_mbit: f64,
    /// All paths as `fairbat get --interface` takes them; `None` where there is one.
    pub(crate) interfaces: Option<String>,
    /// Length of the run, s.
    pub(crate) duration_s: f64,
    /// From when figures are taken, s.
    pub(crate) measure_from_s: f64,
    /// Seed of everything random.
    pub(crate) seed: u64,
    contender: Contender,
    /// The lab's clock.
    pub(crate) clock: Clock,
    /// What is to be moved, in the order in which the contender is told of it.
    pub(crate) served: Vec<Served>,
    /// A directory for whatever is not one of the two below.
    pub(crate) work: PathBuf,
    /// Where the file to be moved is.
    pub(crate) origin: PathBuf,
    /// Where it is moved to.
    pub(crate) download: PathBuf,
    /// When the transfer began, s, once it has.
    pub(crate) began: OnceLock<f64>,
}

/// What is in a file, unless it is holes: real bytes where the file that
/// arrives is kept as it was served.
pub(crate) fn content(contender: Contender, served: &Served) -> Option<Content> {
    let is_kept = contender == Contender::Engine || contender.is_download_tool();
    served.content().filter(|_| is_kept)
}

impl Site {
    /// For what [`Contender::lay_out`] has made.
    pub(crate) fn new(
        contender: Contender,
        scenario: &Scenario,
        hosts: &[Host],
        seed: u64,
        clock: Clock,
        work: &Path,
    ) -> Self {
        let rates = || scenario.link.iter().map(|link| link.rate_mbit);
        Self {
            server: hosts.first().expect("a lab has hosts").clone(),
            client: hosts.last().expect("a lab has hosts").clone(),
            background: scenario.background.clone(),
            first_mbit: rates().next().unwrap_or(f64::INFINITY),
            slowest_mbit: rates().fold(f64::INFINITY, f64::min),
            fair_mbit: scenario.fair_mbit(),
            interfaces: scenario.interfaces(),
            duration_s: scenario.duration_s,
            measure_from_s: scenario.measure_from_s,
            seed,
            contender,
            clock,
            served: Served::all(&scenario.background, seed),
            work: work.to_owned(),
            origin: work.join(ORIGIN),
            download: work.join(DOWNLOAD),
            began: OnceLock::new(),
        }
    }

    /// The part of it that a host of this name has: this transfer, and a directory of its own.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub(crate) fn part(&self, host: &Host, name: &str, served: &Served) -> io::Result<Self> {
        let work = self.work.join(name);
        fs::create_dir_all(&work)?;
        Ok(Self {
            server: host.clone(),
            served: vec![served.clone()],
            work,
            ..self.clone()
        })
    }

    /// What is wrong with the files that have arrived, for people; `None` if
    /// nothing is, or that cannot be known.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.contender.pushes() {
            let bucket = self.download.join(BUCKET);
            let all = self.served.iter();
            return all
                .map(|served| (served.leaves(), bucket.join(&served.name)))
                .find_map(|(leaves, root)| fault(&leaves, &root));
        }
        self.served.iter().find_map(|served| {
            let name = &served.name;
            let content = content(self.contender, served)?;
            match content.first_difference(&self.download.join(name)) {
                Ok(None) => None,
                Ok(Some(difference)) => Some(format!(
                    "the {name} that has arrived is not the one that was served: it has {} bytes, \
                     and is wrong from byte {}",
                    difference.found, difference.offset
                )),
                Err(error) => Some(format!("no {name} has arrived: {error}")),
            }
        })
    }

    /// Where the server is reached.
    pub(crate) fn server_address(&self) -> IpAddr {
        self.address(&self.server)
    }

    /// Where the client is reached.
    pub(crate) fn client_address(&self) -> IpAddr {
        self.address(&self.client)
    }

    /// Where this host is reached for the background's traffic.
    pub(crate) fn address(&self, host: &Host) -> IpAddr {
        if self.background.ipv6 {
            host.background_ipv6().into()
        } else {
            host.address(Class::Background).into()
        }
    }

    /// What there is to move, bytes; `None` if there is no end to it.
    pub(crate) fn end(&self) -> Option<u64> {
        self.served.iter().map(|served| served.bytes).sum()
    }

    /// Size of all files, bytes.
    pub(crate) fn size(&self) -> u64 {
        self.served.iter().map(Served::size).sum()
    }

    /// A port of this host, for a server that cannot choose one by itself.
    pub(crate) fn own_port(&self, host: &Host) -> Port {
        let address = self.address(host);
        host.within(move || Port::own(address))
    }

    /// Waits for the start of the transfer, which is to begin now; false if the
    /// run is over before.
    pub(crate) fn is_time(&self, over: &Over) -> bool {
        let start = Duration::from_secs_f64(self.background.start_s);
        if over.within(start.saturating_sub(self.clock.now())) {
            return false;
        }
        self.began.get_or_init(|| self.clock.seconds());
        true
    }
}

/// Adds to a record what became of each transfer with an end; with several,
/// the contender was done when all of them were. `ended` is when the run was
/// over, s.
pub(crate) fn complete(site: &Site, record: &mut BackgroundRecord, ended: f64) {
    record.began = site.began.get().copied();
    let Some(began) = record.began else {
        return;
    };
    let told = std::mem::take(&mut record.transfers);
    record.transfers = outcomes(&site.served, &told, record.done, began..ended);
    if record.transfers.iter().any(|one| one.done.is_none()) {
        record.done = None;
    }
}

/// Keeps these draws apart from others of the same seed.
const STREAM: u64 = 0x006a_6f62_7300;

/// The scenario's jobs, or without any its one transfer.
pub(crate) fn arrivals(site: &Site) -> Vec<Arrival> {
    let start = Duration::from_secs_f64(site.background.start_s);
    let stop = Duration::from_secs_f64(site.duration_s);
    match site.background.jobs {
        Some(jobs) => draw(jobs, site.first_mbit, (start, stop), site.seed),
        None => vec![Arrival {
            at: start,
            bytes: site.size(),
        }],
    }
}

/// What is recorded at `now`, s, of those that have arrived, each with the
/// moment, s, at which it was over.
pub(crate) fn fetches(arrivals: &[Arrival], ends: &[Option<f64>], now: f64) -> Vec<Fetch> {
    let all = arrivals.iter().zip(ends);
    all.map(|(arrival, end)| (arrival.at.as_secs_f64(), arrival.bytes, end))
        .filter(|(t, ..)| *t <= now)
        .map(|(t, bytes, end)| Fetch {
            t,
            bytes,
            seconds: end.map(|end| end - t),
        })
        .collect()
}

/// All arrivals between two moments, until none arrives any more. Together they
/// are the given share of a link's rate (Mbit/s), headers of full packets included.
fn draw(jobs: Jobs, link_mbit: f64, (start, end): (Duration, Duration), seed: u64) -> Vec<Arrival> {
    let until = jobs.until_s.map(Duration::from_secs_f64);
    let between = (start, until.map_or(end, |until| until.min(end)));
    let mut random = StdRng::seed_from_u64(seed ^ STREAM);
    let mean_bytes = jobs.mean_kb * 1000.0;
    let rate = jobs.load * bytes_per_s(link_mbit) * PAYLOAD_SHARE / mean_bytes;
    arrivals::draw(&mut random, between, rate, mean_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: Jobs = Jobs {
        load: 0.3,
        mean_kb: 300.0,
        until_s: None,
    };

    fn drawn(to_s: u64, seed: u64) -> Vec<Arrival> {
        drawn_of(JOBS, to_s, seed)
    }

    fn drawn_of(jobs: Jobs, to_s: u64, seed: u64) -> Vec<Arrival> {
        let between = (Duration::from_secs(2), Duration::from_secs(to_s));
        draw(jobs, 10.0, between, seed)
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        assert_eq!(drawn(100, 7), drawn(100, 7));
        assert_ne!(drawn(100, 7), drawn(100, 8));
    }

    #[test]
    fn none_arrives_from_the_end_of_arrivals_on() {
        let until = |until_s| Jobs {
            until_s: Some(until_s),
            ..JOBS
        };
        assert_eq!(drawn_of(until(60.0), 100, 7), drawn(60, 7));
        assert_eq!(drawn_of(until(160.0), 100, 7), drawn(100, 7));
    }

    #[test]
    fn what_has_not_arrived_is_not_recorded() {
        let arrivals = [1.0, 2.0, 3.0].map(|at| Arrival {
            at: Duration::from_secs_f64(at),
            bytes: 10,
        });
        let recorded = fetches(&arrivals, &[None, Some(2.25), None], 2.5);
        let seconds: Vec<_> = recorded.iter().map(|job| (job.t, job.seconds)).collect();
        assert_eq!(seconds, [(1.0, None), (2.0, Some(0.25))]);
    }

    #[test]
    fn the_load_is_what_was_asked_for() {
        let drawn = drawn(200_002, 1);
        let bytes: u64 = drawn.iter().map(|arrival| arrival.bytes).sum();
        let load = bytes as f64 * 8.0 / PAYLOAD_SHARE / 1e7 / 200e3;
        assert!((load / 0.3 - 1.0).abs() < 0.02, "{load}");
        let mean = bytes as f64 / drawn.len() as f64;
        assert!((mean / 300e3 - 1.0).abs() < 0.02, "{mean}");
    }
}
