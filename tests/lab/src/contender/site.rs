//! Where a contender works, and what it is to move.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, io};

use fairbat_tests::content::Content;
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::arrivals;
use crate::arrivals::Arrival;
use crate::contender::Contender;
use crate::contender::process::Over;
use crate::contender::servers;
use crate::contender::servers::BUCKET;
use crate::host::{Class, Host};
use crate::link::{PAYLOAD_SHARE, bytes_per_s};
use crate::machine::Clock;
use crate::record::{BackgroundRecord, Fetch, TransferRecord};
use crate::scenario::{Background, Jobs, Scenario};

/// Name of the file that is moved, at both ends, when it is the only one.
pub(crate) const FILE: &str = "file";

/// Where the files are, and where they are moved to.
const ORIGIN: &str = "origin";
const DOWNLOAD: &str = "download";

/// Where a contender works, and what it is to do there.
#[derive(Debug)]
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

/// Makes the files to be moved: bytes that no other file has, or zeros and
/// nothing but holes where that would be too many. Takes its time.
pub(crate) fn lay_out(
    contender: Contender,
    background: &Background,
    seed: u64,
    work: &Path,
) -> io::Result<()> {
    let origin = work.join(ORIGIN);
    fs::create_dir_all(&origin)?;
    fs::create_dir_all(work.join(DOWNLOAD))?;
    let all = Served::all(background, seed);
    for served in &all {
        let path = origin.join(&served.name);
        if contender.pushes() {
            write(&served.leaves(), &path)?;
            continue;
        }
        match content(contender, served) {
            Some(content) => content.write_to(&path)?,
            None => File::create(&path)?.set_len(served.size())?,
        }
    }
    if contender == Contender::FairbatServed {
        let names = all.iter().map(|served| served.name.as_str());
        servers::settle(&origin, names, work)?;
    }
    Ok(())
}

/// What is in a file, unless it is holes: real bytes where the file that
/// arrives is kept as it was served.
fn content(contender: Contender, served: &Served) -> Option<Content> {
    let is_kept = match contender {
        // Both ends of a torrent know it beforehand, by its hashes.
        Contender::Utp(_) => false,
        // They move directories.
        Contender::Agent | Contender::RclonePush => false,
        Contender::None
        | Contender::Iperf3(_)
        | Contender::Tcp
        | Contender::TcpReno
        | Contender::Queue(_)
        | Contender::Sender(_) => false,
        Contender::Engine
        | Contender::Fairbat
        | Contender::FairbatServed
        | Contender::FairbatNoDeadline(_)
        | Contender::Curl
        | Contender::Aria2
        | Contender::Rclone => true,
    };
    served.content().filter(|_| is_kept)
}

impl Site {
    /// For what [`lay_out`] has made.
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

    /// What is wrong with the files that have arrived, for people; `None` if
    /// nothing is, or nobody can know.
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
    pub(crate) fn server_address(&self) -> Ipv4Addr {
        self.server.address(Class::Background)
    }

    /// Where the client is reached.
    pub(crate) fn client_address(&self) -> Ipv4Addr {
        self.client.address(Class::Background)
    }

    /// What there is to move, bytes; `None` if there is no end to it.
    pub(crate) fn end(&self) -> Option<u64> {
        self.served.iter().map(|served| served.bytes).sum()
    }

    /// Size of all files, bytes.
    pub(crate) fn size(&self) -> u64 {
        self.served.iter().map(Served::size).sum()
    }

    /// A port at which nobody listens on this host, for a server that cannot
    /// choose one by itself.
    pub(crate) fn free_port(&self, host: &Host) -> io::Result<u16> {
        let address = host.address(Class::Background);
        host.within(move || Ok(TcpListener::bind((address, 0))?.local_addr()?.port()))
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

/// Size of the file that stands for a transfer without an end, bytes: more
/// than any run moves.
const ENDLESS: u64 = 8_000_000_000;

/// Size of the largest file that is made of real bytes, bytes: it is made when
/// the run has begun.
const LARGEST_REAL: u64 = 200_000_000;

/// A file to be moved, or a directory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Served {
    /// Its name, at both ends.
    pub(crate) name: String,
    /// Its size, bytes; `None` if there is no end to it.
    pub(crate) bytes: Option<u64>,
    /// Seconds after the start by which it should be there.
    pub(crate) deadline_s: Option<f64>,
    /// Of what is in it.
    seed: u64,
}

impl Served {
    /// All that a scenario asks for, in its order.
    pub(crate) fn all(background: &Background, seed: u64) -> Vec<Self> {
        if background.transfer.is_empty() {
            return vec![Self {
                name: FILE.to_owned(),
                bytes: background.size_mb.map(bytes),
                deadline_s: background.deadline_s,
                seed,
            }];
        }
        let several = background.transfer.iter().zip(1..);
        let served = several.map(|(transfer, number)| Self {
            name: format!("{FILE}-{number}"),
            bytes: Some(bytes(transfer.size_mb)),
            deadline_s: Some(transfer.deadline_s),
            // No file is like another.
            seed: seed ^ (number << 32),
        });
        served.collect()
    }

    /// Size of the file, bytes.
    pub(crate) fn size(&self) -> u64 {
        self.bytes.unwrap_or(ENDLESS)
    }

    /// What is in it; `None` if that would be too much to make.
    pub(crate) fn content(&self) -> Option<Content> {
        let size = self.bytes.filter(|size| *size <= LARGEST_REAL)?;
        Some(Content::new(self.seed, size))
    }

    /// The files in it, when it is a directory that is pushed; it has an end.
    pub(crate) fn leaves(&self) -> Vec<Leaf> {
        leaves(self.size(), self.seed)
    }

    /// What says to `fairbat get -i` that it is wanted, with its deadline or
    /// without.
    pub(crate) fn line(&self, url: &str, has_deadline: bool) -> String {
        match self.deadline_s.filter(|_| has_deadline) {
            Some(deadline) => format!("{url} deadline={deadline:.3}s\n"),
            None => format!("{url}\n"),
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a scenario's sizes are positive"
)]
fn bytes(size_mb: f64) -> u64 {
    ((size_mb * 1e6).round() as u64).max(1)
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

/// What became of each. `told` is what the contender said of those that were
/// done, in any order; one that says nothing was `done` with all of it at
/// once.
fn outcomes(
    served: &[Served],
    told: &[TransferRecord],
    done: Option<f64>,
    run: std::ops::Range<f64>,
) -> Vec<TransferRecord> {
    let moment = |served: &Served| {
        let told = told.iter().find(|told| told.name == served.name);
        match told {
            Some(told) => told.done,
            None if served.name == FILE => done,
            None => None,
        }
    };
    let moments: Vec<_> = served.iter().map(moment).collect();
    let place = |done: f64| {
        let before = moments.iter().flatten().filter(|other| **other < done);
        before.count() + 1
    };
    let of = |(served, done): (&Served, &Option<f64>)| {
        let due = served.deadline_s.map(|deadline| run.start + deadline);
        let met = due.and_then(|due| match done {
            Some(done) => Some(*done <= due),
            // What might still have become of it nobody knows.
            None => (run.end > due).then_some(false),
        });
        Some(TransferRecord {
            name: served.name.clone(),
            bytes: served.bytes?,
            deadline_s: served.deadline_s,
            done: *done,
            met,
            late_s: due.filter(|_| met.is_some()).map(|due| {
                let there = done.unwrap_or(run.end);
                (there - due).max(0.0)
            }),
            took_s: done.map(|done| done - run.start),
            place: done.map(place),
        })
    };
    served.iter().zip(&moments).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn background(text: &str) -> Background {
        toml::from_str(text).unwrap()
    }

    fn three() -> Vec<Served> {
        let text = "transfer = [{ size_mb = 3.0, deadline_s = 30.0 }, \
                    { size_mb = 1.5, deadline_s = 10.0 }, { size_mb = 2.0, deadline_s = 20.0 }]";
        Served::all(&background(text), 7)
    }

    fn told(name: &str, done: f64) -> TransferRecord {
        TransferRecord {
            name: name.to_owned(),
            done: Some(done),
            ..TransferRecord::default()
        }
    }

    #[test]
    fn files_are_as_the_scenario_lists_them() {
        let three = three();
        let names: Vec<_> = three.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["file-1", "file-2", "file-3"]);
        assert_eq!(three[1].bytes, Some(1_500_000));
        assert_ne!(three[0].seed, three[1].seed);
        let line = three[1].line("http://10.78.0.2/file-2", true);
        assert_eq!(line, "http://10.78.0.2/file-2 deadline=10.000s\n");
        let line = three[1].line("http://10.78.0.2/file-2", false);
        assert_eq!(line, "http://10.78.0.2/file-2\n");
        let endless = Served::all(&background("deadline_s = 5.0"), 7);
        assert_eq!((endless.len(), endless[0].bytes), (1, None));
    }

    #[test]
    fn each_has_a_moment_a_verdict_and_a_place() {
        let told = [told("file-3", 21.0), told("file-2", 12.5)];
        let got = outcomes(&three(), &told, Some(21.0), 2.0..60.0);
        let of = |index: usize| (got[index].done, got[index].met, got[index].place);
        let late: Vec<_> = got.iter().map(|one| one.late_s).collect();
        assert_eq!(late, [Some(28.0), Some(0.5), Some(0.0)]);
        assert_eq!(of(0), (None, Some(false), None));
        assert_eq!(of(1), (Some(12.5), Some(false), Some(1)));
        assert_eq!(of(2), (Some(21.0), Some(true), Some(2)));
        // It was not due yet when the run ended.
        let got = outcomes(&three(), &told, None, 2.0..25.0);
        assert_eq!((got[0].met, got[0].bytes), (None, 3_000_000));
    }

    #[test]
    fn one_that_moves_a_single_file_need_not_name_it() {
        let served = Served::all(&background("size_mb = 2.0\ndeadline_s = 9.0"), 7);
        let [one] = &outcomes(&served, &[], Some(10.9), 2.0..60.0)[..] else {
            panic!("it is one");
        };
        assert_eq!(
            (one.done, one.met, one.place),
            (Some(10.9), Some(true), Some(1))
        );
        let free = Served::all(&background("size_mb = 2.0"), 7);
        assert_eq!(outcomes(&free, &[], Some(10.9), 2.0..60.0)[0].met, None);
        let endless = Served::all(&background(""), 7);
        assert_eq!(outcomes(&endless, &[], None, 2.0..60.0), []);
    }
}

/// Size of the smallest file, bytes, but for what is left over.
const LEAST: u64 = 4_000;

/// The largest is so much of the whole at most: what people keep is a few large
/// files and many small ones.
const LARGEST: f64 = 1.0 / 3.0;

/// Files in a directory.
const IN_DIRECTORY: usize = 10;

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Below the root, with slashes.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) content: Content,
}

/// Files of so many bytes together. The logarithm of their sizes is of uniform
/// distribution.
pub(crate) fn leaves(bytes: u64, seed: u64) -> Vec<Leaf> {
    let mut rng = StdRng::seed_from_u64(seed);
    let ratio = (bytes as f64 * LARGEST / LEAST as f64).max(1.0);
    let mut left = bytes;
    let mut leaves = Vec::new();
    while left > 0 {
        let drawn = LEAST as f64 * ratio.powf(rng.random::<f64>());
        let size = (drawn as u64).clamp(1, left);
        let index = leaves.len();
        leaves.push(Leaf {
            path: format!("{:02}/{index:04}.bin", index / IN_DIRECTORY),
            content: Content::new(rng.random(), size),
        });
        left -= size;
    }
    leaves
}

/// Makes them in this directory.
///
/// # Errors
/// Whatever the file system says.
pub(crate) fn write(leaves: &[Leaf], root: &Path) -> io::Result<()> {
    for leaf in leaves {
        let path = root.join(&leaf.path);
        fs::create_dir_all(path.parent().expect("it is in a directory"))?;
        leaf.content.write_to(&path)?;
    }
    Ok(())
}

/// What is wrong with them in this directory, for people; `None` if nothing is.
pub(crate) fn fault(leaves: &[Leaf], root: &Path) -> Option<String> {
    leaves.iter().find_map(|leaf| {
        let path = &leaf.path;
        match leaf.content.first_difference(&root.join(path)) {
            Ok(None) => None,
            Ok(Some(difference)) => Some(format!(
                "the {path} in the store is not the one that was pushed: it has {} bytes, and is \
                 wrong from byte {}",
                difference.found, difference.offset
            )),
            Err(error) => Some(format!("there is no {path} in the store: {error}")),
        }
    })
}

#[cfg(test)]
mod tree_tests {
    use super::*;

    #[test]
    fn a_seed_makes_files_of_mixed_sizes_and_all_the_bytes() {
        for (bytes, seed) in [(36_200_000, 1), (7_240_000, 2), (5_000, 3), (1, 4)] {
            let leaves = leaves(bytes, seed);
            let sizes: Vec<_> = leaves.iter().map(|leaf| leaf.content.len()).collect();
            assert_eq!(sizes.iter().sum::<u64>(), bytes, "seed {seed}");
            assert_eq!(leaves, crate::contender::site::leaves(bytes, seed));
            assert_ne!(leaves, crate::contender::site::leaves(bytes, seed + 10));
            if bytes > 1_000_000 {
                assert!(sizes.iter().any(|size| *size > bytes / 20), "{sizes:?}");
                assert!(sizes.iter().any(|size| *size < 100_000), "{sizes:?}");
                assert!(sizes.iter().all(|size| *size <= bytes / 3), "{sizes:?}");
            }
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_found() {
        let root = tempfile::tempdir().unwrap();
        let leaves = leaves(200_000, 7);
        write(&leaves, root.path()).unwrap();
        assert_eq!(fault(&leaves, root.path()), None);
        let last = root.path().join(&leaves[leaves.len() - 1].path);
        fs::write(&last, "other").unwrap();
        assert!(fault(&leaves, root.path()).unwrap().contains("wrong from"));
        fs::remove_file(&last).unwrap();
        assert!(fault(&leaves, root.path()).unwrap().contains("there is no"));
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
mod jobs_tests {
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
