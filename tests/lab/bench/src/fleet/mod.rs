//! The lane of a site with very many agents: messages, what the coordinator and NATS cost, and how
//! long a grant takes, by the number of agents.
//!
//! NATS is a cluster of three servers on this machine. The coordinator is the real program. The
//! other agents are in this process: of each of them, what takes part in the lane of the site is
//! the real code, over a connection of its own, and its transfers are simulated.

mod coordinator;
mod hosts;
pub mod page;
mod paper;
pub mod record;
mod uses;
mod watch;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::IteratorRandom as _;
use serde_json::Value;

use self::coordinator::Coordinator;
use self::hosts::Hosts;
use self::record::{Cost, Quantiles, Record, Series, Traffic};
use self::uses::Uses;
use self::watch::Watch;
use super::machine;
use super::measure::kilobytes;
use fairbat_tests::bin::agent_binary;
use fairbat_tests::cpu::cpu_s;
use fairbat_tests::environment::first_line;
use fairbat_tests::nats::{self, Nats};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// So many agents, and whether each of them may become the coordinator.
    pub sizes: &'static [(usize, bool)],
    /// How long each is measured.
    pub duration: Duration,
}

/// Some seven minutes.
pub const FULL: Extent = Extent {
    sizes: &[(10, false), (100, false), (1_000, false), (1_000, true)],
    duration: Duration::from_secs(60),
};

/// To see whether it works.
pub const QUICK: Extent = Extent {
    sizes: &[(10, false), (100, false), (100, true)],
    duration: Duration::from_secs(15),
};

/// Determines what the transfers are like.
const SEED: u64 = 1;

/// Servers of NATS.
const SERVERS: usize = 3;

/// m_max of each direction of the site: the most that can be configured.
const CONNECTIONS: u32 = 64;

const SITE: &str = "scale";

/// Time between the begin of the transfers and that of the measurement.
const WARM_UP: Duration = Duration::from_secs(15);

/// How long the agents may take to take part.
const JOIN: Duration = Duration::from_secs(60);

/// Hosts whose messages are timed, at most: what is watched is sent once more.
const WATCHED: usize = 100;

/// A connection of each agent, and what a process has besides.
const DESCRIPTORS: u64 = 4_096;

/// Measures everything, saying on standard error what is going on. `command` is what the user
/// typed.
///
/// # Panics
/// When a tool fails, or the agents do not take part.
#[must_use]
pub fn run(extent: &Extent, command: &str) -> Record {
    // The servers inherit it.
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit of descriptors");
    if soft < DESCRIPTORS {
        setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS.min(hard), hard).expect("raise the limit");
    }
    let mut machine = machine::describe();
    let agent = agent_binary().to_str().expect("a path in UTF-8");
    machine.versions = vec![
        first_line(&[agent, "--version"]),
        first_line(&[nats::program(), "--version"]),
    ];
    Record {
        command: command.to_owned(),
        seed: SEED,
        machine,
        connections: CONNECTIONS,
        series: extent
            .sizes
            .iter()
            .map(|&(agents, are_candidates)| measure(agents, are_candidates, extent.duration))
            .collect(),
    }
}

/// One size, from the start of NATS to its end.
fn measure(agents: usize, are_candidates: bool, duration: Duration) -> Series {
    let servers = Nats::start_cluster(Ipv4Addr::LOCALHOST.into(), SERVERS);
    let coordinator = Coordinator::start(&servers[0].url());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut random = StdRng::seed_from_u64(SEED + agents as u64);
    let urls: Vec<_> = servers.iter().map(Nats::url).collect();
    let hosts = runtime.block_on(Hosts::join(&urls, agents, are_candidates));
    let begin = Instant::now();
    while hosts_of(&status(&servers)) <= agents as u64 {
        assert!(begin.elapsed() < JOIN, "not all agents take part");
        std::thread::sleep(Duration::from_millis(500));
    }
    eprintln!(
        "{agents} agents take part, {:.1} s later",
        begin.elapsed().as_secs_f64()
    );
    let uses = [(); 2].map(|()| Arc::new(Uses::default()));
    runtime.block_on(hosts.begin_transfers(&uses, &mut random));
    let watched = (0..agents).sample(&mut random, WATCHED);
    let watch = runtime.block_on(Watch::begin(&urls[1], &watched));
    std::thread::sleep(WARM_UP);

    let before = Reading::take(&servers, &coordinator);
    watch.start_anew();
    uses.iter().for_each(|uses| uses.start_anew());
    let begin = Instant::now();
    std::thread::sleep(duration);
    let elapsed = begin.elapsed();
    let answers = watch.answers();
    let (waits, used) = uses::told(&uses);
    let after = Reading::take(&servers, &coordinator);
    let told = status(&servers);
    coordinator.expect_in_office();
    runtime.shutdown_background();

    let series = Series {
        agents,
        are_candidates,
        seconds: elapsed.as_secs_f64(),
        published: after.published.since(before.published),
        delivered: after.delivered.since(before.delivered),
        coordinator: after.coordinator.since(before.coordinator),
        servers: std::iter::zip(after.servers, before.servers)
            .map(|(after, before)| after.since(before))
            .collect(),
        agents_cpu_s: after.own_cpu_s - before.own_cpu_s,
        watched: watched.len(),
        answers: Quantiles::of(answers),
        waits: Quantiles::of(waits),
        used,
        m: ["push", "pull"].map(|lane| told[lane]["m"].as_f64().unwrap_or_default()),
    };
    eprintln!("{series:?}");
    series
}

fn status(servers: &[Nats]) -> Value {
    let told = servers[0].request(&fairbat_agent::fleet::message::status_of(SITE));
    let told = told.and_then(|told| serde_json::from_str(&told).ok());
    told.unwrap_or_default()
}

fn hosts_of(status: &Value) -> u64 {
    let listed = status["hosts"].as_array().map_or(0, Vec::len);
    listed as u64 + status["unlisted"].as_u64().unwrap_or_default()
}

/// What everything has used and moved so far.
struct Reading {
    published: Traffic,
    delivered: Traffic,
    coordinator: Cost,
    servers: Vec<Cost>,
    own_cpu_s: f64,
}

impl Reading {
    /// What the observer causes is left out.
    fn take(servers: &[Nats], coordinator: &Coordinator) -> Self {
        let (mut published, mut delivered) = (Traffic::default(), Traffic::default());
        for server in servers {
            let told = server.monitor("connz?limit=4096").expect("connz");
            let all = told["connections"].as_array().expect("connections");
            for connection in all.iter().filter(|it| it["name"] != watch::NAME) {
                let number = |key: &str| connection[key].as_u64().unwrap_or_default();
                published.add(number("in_msgs"), number("in_bytes"));
                delivered.add(number("out_msgs"), number("out_bytes"));
            }
        }
        Self {
            published,
            delivered,
            coordinator: cost_of(coordinator.id()),
            servers: servers.iter().map(|server| cost_of(server.id())).collect(),
            own_cpu_s: cost_of(std::process::id()).cpu_s,
        }
    }
}

fn cost_of(process: u32) -> Cost {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    Cost {
        cpu_s: cpu_s(process).expect("it runs"),
        rss: kilobytes(&status, "VmRSS:") * 1024,
    }
}
