//! The coordinator of a site: it runs the lane of the site, in which each host is a guest.
//! One task owns all of it, for as long as it holds the office.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use fairbat::lane::wire::{LaneDemand, LaneGrant};
use fairbat::lane::{Guest, InvalidSettings, Lane, LaneSample, LaneSettings};
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::time::MissedTickBehavior;

use super::connection::Connection;
use super::election::Office;
use super::message::{
    HostDemand, HostGrant, Ignored, VERSION, all_demands, grants_of, host_of, status_of,
};
use crate::config::Fleet;
use crate::daemon::clock::uptime;

/// How long a grant holds without another one.
const LEASE: Duration = Duration::from_secs(10);

/// A host that says nothing for this time is gone, and loses what it has.
const SILENCE: Duration = Duration::from_secs(10);

/// A grant is told at least this often: well within the lease.
const REPEAT: Duration = Duration::from_secs(2);

/// Changes within this time are told together.
const SETTLE: Duration = Duration::from_millis(5);

/// Hosts that take part at once. More of them go on alone.
const MAX_HOSTS: usize = 4_096;

/// Hosts that a status names.
const MAX_LISTED: usize = 1_000;

/// The lane of the site, and its guests.
pub(crate) struct Coordinator<'a> {
    connection: &'a Connection,
    fleet: &'a Fleet,
    office: &'a Office,
    push: Lane,
    pull: Lane,
    hosts: BTreeMap<String, Host>,
    /// Whether a message of another version has been told of.
    has_warned: bool,
}

/// A host that takes part.
struct Host {
    session: u64,
    push: Guest,
    pull: Guest,
    /// Permits that it says it uses, of what it sends and receives.
    active: [u32; 2],
    heard: Duration,
    /// The grants that were told last.
    told: Option<(LaneGrant, LaneGrant)>,
}

impl<'a> Coordinator<'a> {
    /// Begins with no hosts.
    pub(crate) fn new(
        connection: &'a Connection,
        fleet: &'a Fleet,
        settings: LaneSettings,
        office: &'a Office,
    ) -> Result<Self, InvalidSettings> {
        let lane = || {
            let lane = Lane::start(settings)?;
            lane.begin_term(office.term());
            Ok(lane)
        };
        Ok(Self {
            connection,
            fleet,
            office,
            push: lane()?,
            pull: lane()?,
            hosts: BTreeMap::new(),
            has_warned: false,
        })
    }

    /// Serves the hosts until the office is over. Returns why it is.
    pub(crate) async fn serve(mut self) -> String {
        let site = &self.fleet.site;
        let client = &self.connection.client;
        let subscribed = async {
            let demands = client.subscribe(all_demands(site)).await?;
            let requests = client.subscribe(status_of(site)).await?;
            Ok::<(Subscriber, Subscriber), async_nats::SubscribeError>((demands, requests))
        };
        let mut held = std::pin::pin!(self.office.hold());
        let (mut demands, mut requests) = tokio::select! {
            why = &mut held => return why,
            subscribed = subscribed => match subscribed {
                Ok(subscribed) => subscribed,
                Err(error) => return error.to_string(),
            },
        };
        let (mut push, mut pull) = (self.push.changes(), self.pull.changes());
        let mut tick = tokio::time::interval(REPEAT);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // When the changes are told, if there are any.
        let mut tell_at = None::<Duration>;
        loop {
            let wait = tell_at.map(|at| at.saturating_sub(uptime()));
            tokio::select! {
                biased;
                why = &mut held => return why,
                _ = tick.tick() => {
                    self.drop_silent();
                    self.tell(true).await;
                }
                () = tokio::time::sleep(wait.unwrap_or(REPEAT)), if wait.is_some() => {
                    tell_at = None;
                    self.tell(false).await;
                }
                Ok(()) = push.changed() => { tell_at.get_or_insert(uptime() + SETTLE); }
                Ok(()) = pull.changed() => { tell_at.get_or_insert(uptime() + SETTLE); }
                demand = demands.next() => match demand {
                    Some(demand) => self.hear(&demand),
                    None => return "the connection has ended".to_owned(),
                },
                Some(request) = requests.next() => self.answer(&request).await,
            }
        }
    }

    /// Hears what a host wants.
    fn hear(&mut self, message: &Message) {
        let Some(name) = host_of(&message.subject) else {
            return;
        };
        let demand = match HostDemand::read(&message.payload) {
            Ok(demand) => demand,
            Err(why @ Ignored::Version(_)) if !self.has_warned => {
                self.has_warned = true;
                tracing::warn!(
                    host = name,
                    "its demand is ignored: {why}; update the older one"
                );
                return;
            }
            Err(why) => {
                tracing::debug!(host = name, "its demand is ignored: {why}");
                return;
            }
        };
        let is_known = self
            .hosts
            .get(name)
            .is_some_and(|host| host.session == demand.session);
        if !is_known {
            // The agent there has been started again.
            self.hosts.remove(name);
            if self.hosts.len() >= MAX_HOSTS {
                return;
            }
            let host = Host {
                session: demand.session,
                push: self.push.invite(name),
                pull: self.pull.invite(name),
                active: [0; 2],
                heard: Duration::ZERO,
                told: None,
            };
            self.hosts.insert(name.to_owned(), host);
        }
        if let Some(host) = self.hosts.get_mut(name) {
            host.heard = uptime();
            host.active = [&demand.push, &demand.pull].map(active);
            host.push.hear(&demand.push);
            host.pull.hear(&demand.pull);
        }
    }

    fn drop_silent(&mut self) {
        let now = uptime();
        self.hosts.retain(|name, host| {
            let is_there = now < host.heard + SILENCE;
            if !is_there {
                tracing::debug!(host = name, "it is silent, and no longer takes part");
            }
            is_there
        });
    }

    /// Tells the hosts their grants: `all` of them, or those whose grants have changed.
    async fn tell(&mut self, all: bool) {
        for (name, host) in &mut self.hosts {
            let grants = host.push.grant(LEASE).zip(host.pull.grant(LEASE));
            let Some((push, pull)) = grants else {
                continue;
            };
            let is_same =
                |told: (LaneGrant, LaneGrant)| push.is_same(&told.0) && pull.is_same(&told.1);
            if !all && host.told.is_some_and(is_same) {
                continue;
            }
            let grant = HostGrant {
                version: VERSION,
                session: host.session,
                term: self.office.term(),
                push,
                pull,
            };
            let Ok(message) = serde_json::to_vec(&grant) else {
                continue;
            };
            let subject = grants_of(&self.fleet.site, name);
            if !self.office.is_held() || !self.connection.send(subject, message).await {
                return;
            }
            host.told = Some((push, pull));
        }
    }

    /// Answers with the status of the site.
    async fn answer(&self, request: &Message) {
        let Some(reply) = &request.reply else {
            return;
        };
        let now = uptime();
        let hosts = self.hosts.iter().take(MAX_LISTED);
        let status = SiteStatus {
            version: VERSION,
            term: self.office.term().get(),
            coordinator: &self.fleet.host,
            push: LaneFigures::of(&self.push),
            pull: LaneFigures::of(&self.pull),
            hosts: hosts
                .map(|(name, host)| HostStatus {
                    name,
                    push_active: host.active[0],
                    pull_active: host.active[1],
                    heard_s: now.saturating_sub(host.heard).as_secs_f64(),
                })
                .collect(),
        };
        if let Ok(message) = serde_json::to_vec(&status) {
            self.connection.send(reply.to_string(), message).await;
        }
    }
}

/// Permits that a demand says are used.
fn active(demand: &LaneDemand) -> u32 {
    let active = demand.wants.iter().map(|want| want.active);
    active.fold(0, u32::saturating_add)
}

/// The site, for people and programs.
#[derive(Serialize)]
struct SiteStatus<'a> {
    version: u32,
    term: u64,
    /// The host whose agent is the coordinator.
    coordinator: &'a str,
    push: LaneFigures,
    pull: LaneFigures,
    /// In the order of their names.
    hosts: Vec<HostStatus<'a>>,
}

/// The last sample of a lane.
#[derive(Serialize)]
struct LaneFigures {
    n: f64,
    m: f64,
    w: f64,
    active: usize,
    waiting: usize,
    /// What the deadlines ask for, byte/s.
    zeta: Option<f64>,
    /// byte/s.
    rate: f64,
    /// byte/s.
    capacity: f64,
}

impl LaneFigures {
    fn of(lane: &Lane) -> Self {
        let LaneSample {
            n,
            m,
            w,
            active,
            waiting,
            zeta,
            rate,
            capacity,
            ..
        } = *lane.samples().borrow();
        Self {
            n,
            m,
            w,
            active,
            waiting,
            zeta,
            rate,
            capacity,
        }
    }
}

#[derive(Serialize)]
struct HostStatus<'a> {
    name: &'a str,
    /// Permits in use for what it sends.
    push_active: u32,
    /// The same for what it receives.
    pull_active: u32,
    /// Time since it was heard, s.
    heard_s: f64,
}
