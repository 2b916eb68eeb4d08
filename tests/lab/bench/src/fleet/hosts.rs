//! The simulated hosts: real lanes that take part in the lane of the site, and in them transfers
//! that move nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fairbat::lane::{Backlog, Extent, Lane, LaneSettings, Service};
use fairbat_agent::config::FleetConfig;
use fairbat_agent::fleet::{self, Participant};
use fairbat_agent::lane_socket::Lanes;
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;
use url::Url;

use super::uses::Uses;
use super::{CONNECTIONS, SITE};

/// Time between the start of two agents: all at once, they would fill the queues of new
/// connections.
const APART: Duration = Duration::from_millis(2);

/// Most connections of a host.
const OWN_CONNECTIONS: u32 = 4;

/// Bytes of a chunk, which takes some seconds.
const CHUNK: u64 = 4 << 20;

/// The lanes of all hosts, which take part until this is dropped.
pub(super) struct Hosts {
    lanes: Vec<Lanes>,
    _leave: watch::Sender<bool>,
}

/// The name of a host.
pub(super) fn name(index: usize) -> String {
    format!("host-{index}")
}

impl Hosts {
    /// Starts so many agents, which connect to these servers by turns.
    pub(super) async fn join(urls: &[String], agents: usize, are_candidates: bool) -> Self {
        let settings = LaneSettings {
            is_held: true,
            ..LaneSettings::new(OWN_CONNECTIONS)
        };
        let (leave, left) = watch::channel(false);
        let mut hosts = Vec::with_capacity(agents);
        for index in 0..agents {
            let lane = || Lane::start(settings).expect("valid settings");
            let lanes = Lanes {
                push: lane(),
                pull: lane(),
            };
            let fleet = FleetConfig {
                url: Url::parse(&urls[index % urls.len()]).expect("a URL"),
                site: SITE.to_owned(),
                host: name(index),
                credentials: None,
                cacert: None,
                coordinate: are_candidates,
                connections: CONNECTIONS,
            };
            let session = index as u64 + 1;
            let (_, port) = fleet::channel(&fleet);
            let participant = Participant {
                fleet,
                lanes: lanes.clone(),
                settings,
                session,
                port,
            };
            tokio::spawn(participant.take_part(left.clone()));
            hosts.push(lanes);
            tokio::time::sleep(APART).await;
        }
        Self {
            lanes: hosts,
            _leave: leave,
        }
    }

    /// Each host has one or two transfers at a time from now on. `uses` counts the permits of what
    /// is sent and received.
    pub(super) async fn begin_transfers(&self, uses: &[Arc<Uses>; 2], random: &mut StdRng) {
        for lanes in &self.lanes {
            for _ in 0..random.random_range(1..=2) {
                let (lane, uses) = if random.random() {
                    (&lanes.push, &uses[0])
                } else {
                    (&lanes.pull, &uses[1])
                };
                let random = StdRng::seed_from_u64(random.random());
                tokio::spawn(transfer_for_ever(lane.clone(), Arc::clone(uses), random));
            }
        }
    }
}

/// One transfer after another, with a pause between two.
async fn transfer_for_ever(lane: Lane, uses: Arc<Uses>, mut random: StdRng) {
    loop {
        let pause = Duration::from_millis(random.random_range(0..10_000));
        tokio::time::sleep(pause).await;
        let due = Timestamp::now() + Duration::from_secs(random.random_range(600..4 * 3_600));
        let deadline = random.random::<bool>().then_some(due);
        let chunks = random.random_range(2..=10);
        transfer(&lane, &uses, deadline, chunks, &mut random).await;
    }
}

async fn transfer(
    lane: &Lane,
    uses: &Uses,
    deadline: Option<Timestamp>,
    chunks: u64,
    random: &mut StdRng,
) {
    let service = Service::of_batch(deadline);
    let member = lane.enter("store.example:443", service);
    for left in (1..=chunks).rev() {
        member.set_backlog(Backlog {
            bytes: left * CHUNK,
            inactive: left,
            extent: Extent::Known,
        });
        let asked = Instant::now();
        let permit = member.admit().await;
        uses.begin(asked);
        tokio::time::sleep(Duration::from_millis(random.random_range(1_000..5_000))).await;
        lane.moved(CHUNK, Some(Duration::from_millis(20)), service);
        uses.end();
        drop(permit);
    }
}
