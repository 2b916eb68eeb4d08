//! The coordinator of a site: it runs the lane of the site, in which each host is a guest.
//! One task owns all of it, for as long as it holds the office.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Message, SubscribeError, Subscriber};
use fairbat::lane::wire::LaneGrant;
use fairbat::lane::{Guest, InvalidSettings, Lane, LaneSettings};
use futures_util::StreamExt as _;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::connection::NatsConnection;
use super::election::Office;
use super::holds::Holds;
use super::host::SiteHost;
use super::message::{
    self, HostDemand, HostGrant, VERSION, all_demands, grants_of, holds_of, host_of, lane_term,
    status_of,
};
use super::site::{HoldHost, HostHeld};
use super::status::{FleetStatus, HostLane, HostStatus, SiteLane, SiteStatus};
use crate::clock::uptime;
use crate::config::FleetConfig;
use crate::config::fleet::is_name;

/// How long a grant holds without another one.
const LEASE: Duration = Duration::from_secs(10);

/// A host that says nothing for this time is gone, and loses what it has.
const SILENCE: Duration = Duration::from_secs(10);

/// A grant is told at least so often: well within the lease.
const REPEAT: Duration = Duration::from_secs(2);

/// One that is newer is not repeated. A quiet host has an answer to its demand every 2 s.
const RECENT: Duration = Duration::from_millis(1_500);

/// Changes within this time are told together.
const SETTLE: Duration = Duration::from_millis(5);

/// Hosts that take part at once. More of them go on alone.
const MAX_HOSTS: usize = 4_096;

/// Hosts that an answer names.
const MAX_LISTED: usize = 1_000;

/// How long an answer to how the site stands is used again.
const FRESH: Duration = Duration::from_millis(500);

/// Where clients of NATS wait for answers.
const INBOX: &str = "_INBOX.";

/// Largest request to hold a host, bytes.
const MAX_HOLD: usize = 1_024;

/// The lane of the site, and its guests.
pub(crate) struct Coordinator<'a> {
    connection: &'a NatsConnection,
    fleet: &'a FleetConfig,
    office: &'a Office,
    push: Lane,
    pull: Lane,
    hosts: BTreeMap<String, SiteHost>,
    holds: Holds,
    /// The last answer to how the site stands, and when it was made.
    listed: Option<(Duration, Result<Vec<u8>, String>)>,
    /// Where the metrics of this agent find the site.
    status: &'a watch::Sender<FleetStatus>,
    /// Whether a message of another version has been told of.
    has_warned: bool,
    /// Whether a host that is too many has been told of.
    has_refused: bool,
    /// Whether an answer that could not be sent has been told of.
    has_failed: bool,
}

impl<'a> Coordinator<'a> {
    /// Begins with no hosts.
    ///
    /// # Errors
    /// There can be no lanes of these settings.
    pub(crate) fn new(
        connection: &'a NatsConnection,
        fleet: &'a FleetConfig,
        settings: LaneSettings,
        office: &'a Office,
        session: u64,
        holds: Holds,
        status: &'a watch::Sender<FleetStatus>,
    ) -> Result<Self, InvalidSettings> {
        let lane = || {
            let lane = Lane::start(settings)?;
            lane.begin_term(lane_term(office.term(), session));
            Ok(lane)
        };
        Ok(Self {
            connection,
            fleet,
            office,
            push: lane()?,
            pull: lane()?,
            hosts: BTreeMap::new(),
            holds,
            listed: None,
            status,
            has_warned: false,
            has_refused: false,
            has_failed: false,
        })
    }

    /// Serves the hosts until there is no connection any more. Returns what has happened to it.
    pub(crate) async fn serve(mut self) -> String {
        let site = &self.fleet.site;
        let subscribe = |subject| self.connection.client.subscribe(subject);
        let subscribed = async {
            Ok::<[Subscriber; 3], SubscribeError>([
                subscribe(all_demands(site)).await?,
                subscribe(status_of(site)).await?,
                subscribe(holds_of(site)).await?,
            ])
        };
        let [mut demands, mut requests, mut holds] = match subscribed.await {
            Ok(subscribed) => subscribed,
            Err(error) => return error.to_string(),
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
                _ = tick.tick() => {
                    self.drop_silent();
                    self.tell(RECENT).await;
                    let known = Some(Arc::new(self.site_status()));
                    self.status.send_modify(|status| status.known = known);
                }
                () = tokio::time::sleep(wait.unwrap_or(REPEAT)), if wait.is_some() => {
                    tell_at = None;
                    self.tell(Duration::MAX).await;
                }
                Ok(()) = push.changed() => { tell_at.get_or_insert(uptime() + SETTLE); }
                Ok(()) = pull.changed() => { tell_at.get_or_insert(uptime() + SETTLE); }
                // That may take seconds. Few may ask it, and people wait for it.
                Some(request) = holds.next() => {
                    let held = self.hold(&request.payload).await;
                    let held = serde_json::to_vec(&held).map_err(|error| error.to_string());
                    self.listed = None;
                    self.answer(&request, held).await;
                }
                demand = demands.next() => match demand {
                    Some(demand) => {
                        self.hear(&demand);
                        tell_at.get_or_insert(uptime() + SETTLE);
                    }
                    None => return "the connection has ended".to_owned(),
                },
                // Any host may ask that as often as it likes.
                Some(request) = requests.next() => {
                    let listed = self.listed();
                    self.answer(&request, listed).await;
                }
            }
        }
    }

    /// Hears what a host wants.
    fn hear(&mut self, message: &Message) {
        let Some(name) = host_of(&message.subject) else {
            return;
        };
        let now = uptime();
        let demand = match HostDemand::read(&message.payload) {
            Ok(demand) => demand,
            Err(why) => return why.tell("a demand", name, &mut self.has_warned),
        };
        let is_known = self
            .hosts
            .get(name)
            .is_some_and(|host| host.session == demand.session);
        if !is_known {
            // The agent there has been started again.
            self.hosts.remove(name);
            // Its own host has to hear that grants arrive.
            if self.hosts.len() >= MAX_HOSTS && name != self.fleet.host {
                if !self.has_refused {
                    self.has_refused = true;
                    tracing::warn!(
                        site = self.fleet.site,
                        host = name,
                        "there are {MAX_HOSTS} hosts, and more of them go on alone"
                    );
                }
                return;
            }
            let lanes = (self.push.invite(name), self.pull.invite(name));
            let host = SiteHost::new(&demand, lanes, now);
            self.hosts.insert(name.to_owned(), host);
        }
        if let Some(host) = self.hosts.get_mut(name) {
            host.hear(demand, self.holds.has(name), now);
        }
    }

    /// Holds a host or releases it. Its next demand is heard so.
    async fn hold(&mut self, text: &[u8]) -> HostHeld {
        let asked = message::read::<HoldHost>(text, MAX_HOLD).map_err(|why| why.to_string());
        let host = asked.as_ref().map_or(String::new(), |it| it.host.clone());
        let done = match asked {
            Ok(HoldHost { held, .. }) if is_name(&host) => self.holds.set(&host, held).await,
            Ok(_) => Err("that is no name of a host".to_owned()),
            Err(why) => Err(why),
        };
        HostHeld {
            version: VERSION,
            changed: done.as_ref().is_ok_and(|changed| *changed),
            present: self.hosts.contains_key(&host),
            problem: done.err(),
            host,
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

    /// Tells the hosts their grants: those that have changed or answer a demand, and those that
    /// are as old as `old`. What cannot be sent is told the next time.
    async fn tell(&mut self, old: Duration) {
        for (name, host) in &mut self.hosts {
            let grants = host.push.grant(LEASE).zip(host.pull.grant(LEASE));
            let Some((push, pull)) = grants else {
                continue;
            };
            let is_new = |(at, told): &(Duration, [LaneGrant; 2])| {
                let is_same = push.is_same(&told[0]) && pull.is_same(&told[1]);
                !is_same || uptime().saturating_sub(*at) >= old
            };
            if !host.told.as_ref().is_none_or(is_new) {
                continue;
            }
            let grant = HostGrant {
                version: VERSION,
                session: host.session,
                term: self.office.term(),
                push,
                pull,
                held: self.holds.has(name),
            };
            let Ok(message) = serde_json::to_vec(&grant) else {
                continue;
            };
            let subject = grants_of(&self.fleet.site, name);
            if !self.office.is_held() || self.connection.send(subject, message).await.is_err() {
                return;
            }
            host.told = Some((uptime(), [push, pull]));
        }
    }

    /// Answers a request. Who asks says where to, and may write there itself: the rights of this
    /// agent reach further.
    async fn answer(&mut self, request: &Message, answer: Result<Vec<u8>, String>) {
        let Some(reply) = request.reply.as_ref().filter(|it| it.starts_with(INBOX)) else {
            return;
        };
        let sent = match answer {
            Ok(answer) => self.connection.send(reply.to_string(), answer).await,
            Err(why) => Err(why),
        };
        match sent {
            Err(why) if !self.has_failed => {
                self.has_failed = true;
                tracing::warn!(site = self.fleet.site, "a question is not answered: {why}");
            }
            Err(why) => tracing::debug!("a question is not answered: {why}"),
            Ok(()) => {}
        }
    }

    /// The answer to a question how the site stands. Many may ask at once.
    fn listed(&mut self) -> Result<Vec<u8>, String> {
        let now = uptime();
        if let Some((at, listed)) = &self.listed
            && now < *at + FRESH
        {
            return listed.clone();
        }
        let max_bytes = self.connection.client.max_payload();
        let listed = self.site_status().listed(MAX_LISTED, max_bytes);
        self.listed = Some((now, listed.clone()));
        listed
    }

    /// How the site stands, with all its hosts.
    fn site_status(&self) -> SiteStatus {
        let now = uptime();
        let late = [&self.push, &self.pull].map(|lane| {
            let rate = lane.samples().borrow().forecast_rate();
            rate.map(|rate| lane.late_guests(rate))
        });
        let hosts = self.hosts.iter().map(|(name, host)| {
            let silent = now.saturating_sub(host.heard).as_secs_f64();
            let lane = |index: usize, guest: &Guest| {
                let due_s = host.wants[index].due_s.map(|due| due - silent);
                // What is overdue is late, whatever is predicted.
                let overdue = due_s.filter(|due| *due < 0.0).map(|due| -due);
                let late = late[index].as_ref().and_then(|late| late.of(guest));
                HostLane {
                    due_s,
                    late_s: late.or(overdue),
                    ..host.wants[index]
                }
            };
            HostStatus {
                name: name.clone(),
                held: self.holds.has(name),
                heard_s: Some(silent),
                push: lane(0, &host.push),
                pull: lane(1, &host.pull),
            }
        });
        let away = self
            .holds
            .hosts()
            .filter(|name| !self.hosts.contains_key(*name));
        let away = away.map(|name| HostStatus {
            name: name.to_owned(),
            held: true,
            heard_s: None,
            push: HostLane::default(),
            pull: HostLane::default(),
        });
        let mut hosts: Vec<HostStatus> = hosts.chain(away).collect();
        hosts.sort_by(|one, other| one.name.cmp(&other.name));
        let left = |index: usize| {
            let bytes = self.hosts.values().map(|host| host.wants[index].bytes);
            bytes.fold(0, u64::saturating_add)
        };
        SiteStatus {
            version: VERSION,
            site: self.fleet.site.clone(),
            term: self.office.term().get(),
            coordinator: self.fleet.host.clone(),
            push: SiteLane::of(&self.push, left(0)),
            pull: SiteLane::of(&self.pull, left(1)),
            hosts,
            unlisted: 0,
        }
    }
}
