//! Hosts behind one uplink as a contender: each pushes one transfer of the scenario to a store
//! that all of them have in common, at the other end of the link.
//!
//! - `hosts`: their network
//! - `broker`: the NATS servers, where they share the lane of their site
//! - `faults`: what goes wrong meanwhile
//! - `merged`: what all of them did as one record

mod broker;
mod faults;
mod hosts;
mod merged;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::contender::agent::{Agent, Blow, Company, Manner};
use crate::contender::error::{ContenderError, require as require_program};
use crate::contender::fleet::broker::Broker;
use crate::contender::fleet::faults::{FakeClock, Faults, Scene};
use crate::contender::fleet::hosts::Uplink;
use crate::contender::fleet::merged::{merged, note_recovery};
use crate::contender::kind::{Fault, Pushing};
use crate::contender::process::{End, Over};
use crate::contender::servers::Store;
use crate::contender::site::Site;
use crate::contender::tools;
use crate::samples::BackgroundRecord;

/// How often it is looked whether all have ended, or something is to go wrong.
const LOOK: Duration = Duration::from_millis(100);

/// How often the connections of each host are looked at. It is rare because each look is a
/// process, and the hosts are many.
const LOOK_AT_CONNECTIONS: Duration = Duration::from_secs(2);

/// m_max of the site: that of a single agent (`[agent] connections`) by default.
const CONNECTIONS: u32 = 4;

/// How the site is called.
const SITE: &str = "lab";

/// Looks for the programs.
///
/// # Errors
/// One is not installed.
pub(crate) fn require(pushing: Pushing) -> Result<(), ContenderError> {
    let programs: &[(&str, &str)] = match pushing {
        Pushing::Static => &[("rclone", "rclone")],
        Pushing::Alone => &[("ss", "iproute2")],
        Pushing::Despite(Fault::Clocks) => &[
            ("ss", "iproute2"),
            ("nats-server", "nats-server"),
            ("faketime", "faketime"),
        ],
        Pushing::Together | Pushing::Despite(_) => {
            &[("ss", "iproute2"), ("nats-server", "nats-server")]
        }
    };
    let mut all = programs.iter();
    all.try_for_each(|(program, package)| require_program(program, package))
}

/// Hosts that are ready to push; all ends when it is dropped.
pub(crate) struct Fleet {
    uplink: Uplink,
    broker: Option<Broker>,
    members: Vec<Member>,
    clocks: Vec<FakeClock>,
    faults: Option<Faults>,
    store: Arc<Store>,
}

/// What a host is to do.
struct Member {
    part: Site,
    /// The agent there; without one, it is rclone.
    agent: Option<Agent>,
}

impl Fleet {
    /// Makes the hosts and starts what works at them, and waits until those of a site take part.
    ///
    /// # Errors
    /// Something of it does not start.
    pub(crate) fn start(site: &Site, pushing: Pushing) -> io::Result<Self> {
        let store = Arc::new(Store::start(site)?);
        let uplink = Uplink::new(site)?;
        let fault = pushing.fault();
        let nodes = faults::nodes(fault);
        let broker = pushing.has_site().then(|| Broker::start(site, nodes));
        let parts = uplink.hosts().zip(&site.served);
        let parts = parts.map(|((host, name), served)| site.part(host, name, served));
        let parts: Vec<_> = parts.collect::<io::Result<_>>()?;
        let mut clocks = Vec::new();
        if fault == Some(Fault::Clocks) {
            let all = parts.iter().map(|part| FakeClock::new(&part.work));
            clocks = all.collect::<io::Result<_>>()?;
        }
        let manner = |number: usize, name: &str| Manner {
            configuration: broker
                .as_ref()
                .map_or(String::new(), |broker| table(site, broker, name)),
            before: clocks.get(number).map_or(Vec::new(), FakeClock::words),
            look: LOOK_AT_CONNECTIONS,
            has_true_clock: clocks.is_empty(),
        };
        let names = uplink.hosts().map(|(_, name)| name).enumerate();
        let manners: Vec<_> = names.map(|(number, name)| manner(number, name)).collect();
        let members = match pushing.has_agents() {
            true => start_agents(parts, &store, manners)?,
            false => parts
                .into_iter()
                .map(|part| Member { part, agent: None })
                .collect(),
        };
        if let Some(broker) = &broker {
            broker.await_hosts(members.len())?;
        }
        Ok(Self {
            uplink,
            broker,
            members,
            clocks,
            faults: fault.map(|fault| Faults::new(fault, site)),
            store,
        })
    }

    /// Has them push, until all are done or the run is over.
    pub(crate) fn run(self, site: &Site, over: &Over) -> Result<BackgroundRecord, String> {
        if !site.is_time(over) {
            return Ok(BackgroundRecord::default());
        }
        let Self {
            uplink,
            broker,
            members,
            clocks,
            mut faults,
            store,
        } = self;
        let done = Arc::new(AtomicUsize::new(0));
        let count = members.len();
        let has_agents = members.iter().any(|member| member.agent.is_some());
        let mut working: Vec<_> = members
            .into_iter()
            .map(|member| Working::start(member, &store, &done, count))
            .collect();
        let mut failure = None;
        while !over.within(LOOK) && !working.iter().all(Working::is_done) {
            let (Some(faults), Some(broker)) = (&mut faults, &broker) else {
                continue;
            };
            let scene = Scene {
                broker,
                uplink: &uplink,
                blows: working.iter().map(|one| &one.blows).collect(),
                clocks: &clocks,
            };
            let stepped = faults.step(site.clock.now(), &scene);
            failure = failure.or(stepped.err());
        }
        // All of them end at the same time.
        working.iter_mut().for_each(Working::end);
        let records = working.into_iter().map(Working::finish);
        let mut records: Vec<_> = records.collect();
        let sites = records.iter_mut().map(|one| std::mem::take(&mut one.site));
        let sites: Vec<_> = sites.collect();
        let names = uplink.hosts().map(|(_, name)| name);
        let mut record = merged(names.zip(records));
        record.failure = record.failure.or(failure);
        let has_moved = record.bytes.is_some_and(|bytes| bytes > 0);
        if has_agents && has_moved && record.held_by.is_none() && record.failure.is_none() {
            let said = "no connection of the agents has ever been seen with a congestion control \
                        of ours: it was not what held back";
            record.failure = Some(said.to_owned());
        }
        record.faults = faults.map_or(Vec::new(), Faults::told);
        note_recovery(&mut record.faults, &sites);
        Ok(record)
    }
}

/// `[fleet]` of the host of this name.
fn table(site: &Site, broker: &Broker, name: &str) -> String {
    let connections = site.background.connections.unwrap_or(CONNECTIONS);
    format!(
        "[fleet]\nurl = {:?}\nsite = {SITE:?}\nhost = {name:?}\nconnections = {connections}\n",
        broker.url()
    )
}

/// Starts all agents side by side.
fn start_agents(
    parts: Vec<Site>,
    store: &Arc<Store>,
    manners: Vec<Manner>,
) -> io::Result<Vec<Member>> {
    let start = |(part, manner): (Site, Manner)| {
        let store = Arc::clone(store);
        std::thread::spawn(move || {
            let agent = Agent::start(&part, &store, manner)?;
            let agent = Some(agent);
            Ok(Member { part, agent })
        })
    };
    let starting: Vec<_> = parts.into_iter().zip(manners).map(start).collect();
    let started = starting
        .into_iter()
        .map(|one| one.join().expect("starting does not panic"));
    started.collect()
}

/// A host at work.
struct Working {
    thread: JoinHandle<BackgroundRecord>,
    blows: Sender<Blow>,
    /// Until it is to end.
    end: Option<End>,
}

impl Working {
    fn start(member: Member, store: &Arc<Store>, done: &Arc<AtomicUsize>, count: usize) -> Self {
        let (end, over) = Over::pair();
        let (blows, suffered) = channel();
        let company = Company::new(Arc::clone(done), count, suffered);
        let store = Arc::clone(store);
        let Member { part, agent } = member;
        let thread = std::thread::spawn(move || {
            let record = match agent {
                Some(agent) => agent.run(&part, &company, &over),
                None => {
                    let limit_mbit = part.fair_mbit / count as f64;
                    tools::push(&part, &store, Some(limit_mbit), &over)
                }
            };
            record.unwrap_or_else(|failure| BackgroundRecord {
                failure: Some(failure),
                ..BackgroundRecord::default()
            })
        });
        Self {
            thread,
            blows,
            end: Some(end),
        }
    }

    fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Tells it to end.
    fn end(&mut self) {
        self.end = None;
    }

    /// What it did, once it has ended.
    fn finish(self) -> BackgroundRecord {
        let lost = |_| BackgroundRecord {
            failure: Some("the thread that drove it panicked; see standard error".to_owned()),
            ..BackgroundRecord::default()
        };
        self.thread.join().unwrap_or_else(lost)
    }
}
