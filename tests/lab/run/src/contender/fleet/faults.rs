//! What goes wrong at a site, again and again at even spacing, with victims by the seed.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;
use std::{fs, io};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::contender::agent::Blow;
use crate::contender::fleet::broker::Broker;
use crate::contender::fleet::hosts::Uplink;
use crate::contender::kind::Fault;
use crate::contender::site::Site;
use crate::samples::FaultRecord;

/// How often it goes wrong.
const TIMES: u32 = 20;

/// Least time from one to the next, s. In a run that is too short, it goes wrong less often.
const LEAST_PERIOD_S: f64 = 15.0;

/// How long something is away, s: less than the lease of a grant (10 s), and more.
const AWAY_S: std::ops::RangeInclusive<f64> = 2.0..=12.0;

/// How long an agent is stopped.
const STOPPED: Duration = Duration::from_secs(4);

/// By how much clocks step, s.
const STEP_S: i32 = 600;

/// Nodes of a cluster.
const NODES: usize = 3;

/// Keeps these draws apart from others of the same seed.
const STREAM: u64 = 0x6661_756c_7473;

/// NATS servers that are needed for it.
pub(crate) fn nodes(fault: Option<Fault>) -> usize {
    match fault {
        Some(Fault::NodeKilled) => NODES,
        _ => 1,
    }
}

/// Where it goes wrong.
pub(crate) struct Scene<'a> {
    pub(crate) broker: &'a Broker,
    pub(crate) uplink: &'a Uplink,
    /// To the agent of each host.
    pub(crate) blows: Vec<&'a Sender<Blow>>,
    /// The clock of each host, where they are not the machine's.
    pub(crate) clocks: &'a [FakeClock],
}

/// What goes wrong, when, and what has.
pub(crate) struct Faults {
    fault: Fault,
    random: StdRng,
    /// When, in order; those to come.
    moments: Vec<Duration>,
    /// Until when, and what is away.
    away: Option<(Duration, Away)>,
    told: Vec<FaultRecord>,
}

/// What is away for a while.
#[derive(Debug, Clone, PartialEq)]
enum Away {
    Node(usize),
    Hosts(Vec<usize>),
    /// The clock of a host, so many seconds beside the right time.
    Clock(usize, i32),
}

impl Faults {
    /// None yet.
    pub(crate) fn new(fault: Fault, site: &Site) -> Self {
        Self {
            fault,
            random: StdRng::seed_from_u64(site.seed ^ STREAM),
            moments: moments(site.background.start_s, site.duration_s),
            away: None,
            told: Vec::new(),
        }
    }

    /// What has gone wrong.
    pub(crate) fn told(self) -> Vec<FaultRecord> {
        self.told
    }

    /// Does what it is time for.
    ///
    /// # Errors
    /// It cannot be done.
    pub(crate) fn step(&mut self, now: Duration, scene: &Scene<'_>) -> Result<(), String> {
        let fault = self.fault;
        let stepped = self.end(now, scene).and_then(|()| self.begin(now, scene));
        stepped.map_err(|error| format!("make {fault:?}: {error}"))
    }

    /// Ends what is over.
    fn end(&mut self, now: Duration, scene: &Scene<'_>) -> io::Result<()> {
        let is_over = |(until, _): &(Duration, Away)| *until <= now;
        if let Some((_, away)) = self.away.take_if(|away| is_over(away)) {
            if let Some(last) = self.told.last_mut() {
                last.until = Some(now.as_secs_f64());
            }
            set_away(&away, false, scene)?;
        }
        Ok(())
    }

    fn begin(&mut self, now: Duration, scene: &Scene<'_>) -> io::Result<()> {
        if self.away.is_some() || self.moments.first().is_none_or(|at| *at > now) {
            return Ok(());
        }
        self.moments.remove(0);
        let count = scene.blows.len();
        let victim = self.random.random_range(0..count);
        let (what, until) = match self.fault {
            Fault::NatsKilled => self.send_away(now, Away::Node(0), scene)?,
            Fault::NodeKilled => {
                let node = self.random.random_range(0..NODES);
                self.send_away(now, Away::Node(node), scene)?
            }
            Fault::Partitioned => {
                let half = half(&mut self.random, count);
                self.send_away(now, Away::Hosts(half), scene)?
            }
            Fault::CoordinatorKilled => {
                let status = scene.broker.status();
                let is_it = |name: &str| {
                    let status = status.as_ref();
                    status.is_some_and(|status| status.coordinator == name)
                };
                let found = scene.uplink.hosts().position(|(_, name)| is_it(name));
                let victim = found.unwrap_or(victim);
                // One that has ended suffers no more.
                let _ = scene.blows[victim].send(Blow::Kill);
                let no = if found.is_some() { "" } else { "no " };
                (format!("host-{}, {no}coordinator", victim + 1), None)
            }
            Fault::Stopped => {
                let _ = scene.blows[victim].send(Blow::Stop(STOPPED));
                let until = now + STOPPED;
                (format!("host-{}", victim + 1), Some(until))
            }
            Fault::Clocks => {
                let offset_s = if self.random.random() {
                    STEP_S
                } else {
                    -STEP_S
                };
                self.send_away(now, Away::Clock(victim, offset_s), scene)?
            }
        };
        self.told.push(FaultRecord {
            t: now.as_secs_f64(),
            until: until.map(|until| until.as_secs_f64()),
            what,
            recovered_s: None,
        });
        Ok(())
    }

    fn send_away(
        &mut self,
        now: Duration,
        away: Away,
        scene: &Scene<'_>,
    ) -> io::Result<(String, Option<Duration>)> {
        set_away(&away, true, scene)?;
        let until = now + Duration::from_secs_f64(self.random.random_range(AWAY_S));
        let what = match &away {
            Away::Node(node) => format!("node {}", node + 1),
            Away::Hosts(hosts) => {
                let names = hosts.iter().map(|host| format!("host-{}", host + 1));
                names.collect::<Vec<_>>().join(", ")
            }
            Away::Clock(host, offset_s) => format!("host-{}, {offset_s:+} s", host + 1),
        };
        self.away = Some((until, away));
        Ok((what, None))
    }
}

fn set_away(away: &Away, is_away: bool, scene: &Scene<'_>) -> io::Result<()> {
    match away {
        Away::Node(node) => {
            scene.broker.set_killed(*node, is_away);
            Ok(())
        }
        Away::Hosts(hosts) => scene.uplink.set_cut_off(hosts, is_away),
        Away::Clock(host, offset_s) => {
            let offset_s = if is_away { *offset_s } else { 0 };
            let clock = scene.clocks.get(*host);
            clock.map_or(Ok(()), |clock| clock.set(offset_s))
        }
    }
}

/// When it goes wrong, in a run from its start to its end, s.
fn moments(start_s: f64, end_s: f64) -> Vec<Duration> {
    let whole = end_s - start_s;
    let most = f64::from(TIMES);
    let times = (whole / LEAST_PERIOD_S).floor().clamp(1.0, most);
    // After the last one there is as much time as after the others.
    let period = whole / (times + 1.0);
    let all = (1..=TIMES).map(f64::from).take_while(|it| *it <= times);
    all.map(|number| Duration::from_secs_f64(start_s + number * period))
        .collect()
}

/// Half of so many, at random, in order.
fn half(random: &mut StdRng, count: usize) -> Vec<usize> {
    let mut all: Vec<_> = (0..count).collect();
    while all.len() > count.div_ceil(2) {
        all.remove(random.random_range(0..all.len()));
    }
    all
}

/// A wall clock of a host's own (libfaketime), which steps when it is told to.
pub(crate) struct FakeClock {
    file: PathBuf,
}

impl FakeClock {
    /// One that is right, with its file in this directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn new(work: &Path) -> io::Result<Self> {
        let clock = Self {
            file: work.join("clock"),
        };
        clock.set(0)?;
        Ok(clock)
    }

    /// The words before a command that is to have it. The clock that counts from the start of the
    /// machine stays.
    pub(crate) fn words(&self) -> Vec<String> {
        let file = format!("FAKETIME_TIMESTAMP_FILE={}", self.file.display());
        let words = [
            "env",
            // The loader knows the directory of libraries.
            "LD_PRELOAD=/usr/$LIB/faketime/libfaketimeMT.so.1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            "FAKETIME_NO_CACHE=1",
            &file,
        ];
        words.map(str::to_owned).to_vec()
    }

    /// Sets it to so many seconds beside the right time.
    fn set(&self, offset_s: i32) -> io::Result<()> {
        // It is read at any time.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{offset_s:+}\n"))?;
        fs::rename(new, &self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_wrong_twenty_times_at_even_spacing_where_there_is_time() {
        let all = moments(10.0, 325.0);
        assert_eq!(all.len(), 20);
        let first = all[0].as_secs_f64();
        assert!((first - 25.0).abs() < 1e-9, "{first}");
        for pair in all.windows(2) {
            assert!(((pair[1] - pair[0]).as_secs_f64() - 15.0).abs() < 1e-6);
        }
        assert_eq!(moments(10.0, 58.0).len(), 3);
        assert_eq!(moments(2.0, 9.0).len(), 1);
    }

    #[test]
    fn half_of_the_hosts_is_another_half_each_time() {
        let mut random = StdRng::seed_from_u64(1);
        let all: Vec<_> = (0..20).map(|_| half(&mut random, 8)).collect();
        assert!(all.iter().all(|half| half.len() == 4 && half.is_sorted()));
        assert!(all.iter().any(|half| *half != all[0]));
    }
}
