//! An agent as a guest in the lane of its site: it tells what its lanes want, and takes what
//! they may do.

use std::num::NonZeroU64;
use std::time::Duration;

use async_nats::Subscriber;
use fairbat::lane::OuterLane;
use fairbat::lane::wire::News;
use futures_util::StreamExt as _;
use tokio::sync::watch;

use super::connection::NatsConnection;
use super::message::{HostDemand, HostGrant, VERSION, demands_of, grants_of};
use crate::clock::uptime;
use crate::config::FleetConfig;
use crate::lane_socket::Lanes;

/// A demand is told again after this time, also without news.
const REPEAT: Duration = Duration::from_secs(2);

/// The same while no grant comes: the next coordinator shall know soon.
const REPEAT_UNHEARD: Duration = Duration::from_millis(500);

/// Whoever has heard no grant for this time has no coordinator. A grant is told every 2 s.
const UNHEARD: Duration = Duration::from_secs(3);

/// Least time between two demands.
const PACE: Duration = Duration::from_millis(100);

/// Changes come in pairs: a connection that is given back is asked for again at once. They are
/// told as one.
const SETTLE: Duration = Duration::from_millis(1);

/// Time before grants are asked for again, after that has failed.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// The last grant of an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard {
    /// When it came, since the start of the machine.
    pub(crate) at: Duration,
    /// Its term.
    pub(crate) term: NonZeroU64,
    /// Whether this host is held.
    pub(crate) held: bool,
}

impl Heard {
    /// Whether it is so new that there is a coordinator.
    pub(crate) fn is_new(&self, now: Duration) -> bool {
        now < self.until()
    }

    /// Until when it is.
    fn until(&self) -> Duration {
        self.at + UNHEARD
    }
}

/// Takes part until it is dropped. Tells `heard` of each grant.
pub(crate) async fn take_part(
    connection: &NatsConnection,
    fleet: &FleetConfig,
    lanes: &Lanes,
    session: u64,
    heard: watch::Sender<Option<Heard>>,
) {
    let mut member = SiteMember {
        connection,
        fleet,
        heard,
        session,
        push: lanes.push.outer(),
        pull: lanes.pull.outer(),
        sent: <[News; 2]>::default(),
        sent_at: None,
        has_warned: false,
    };
    loop {
        let subject = grants_of(&fleet.site, &fleet.host);
        match connection.client.subscribe(subject).await {
            Ok(grants) => member.follow(grants, lanes).await,
            Err(error) => tracing::debug!("no grants of the site: {error}"),
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

struct SiteMember<'a> {
    connection: &'a NatsConnection,
    fleet: &'a FleetConfig,
    session: u64,
    push: OuterLane,
    pull: OuterLane,
    /// What was told last, and when.
    sent: [News; 2],
    sent_at: Option<Duration>,
    heard: watch::Sender<Option<Heard>>,
    /// Whether a message of another version has been told of.
    has_warned: bool,
}

impl SiteMember<'_> {
    /// Tells demands and takes grants, until there can be no more of them.
    async fn follow(&mut self, mut grants: Subscriber, lanes: &Lanes) {
        let mut is_up = self.connection.is_up.clone();
        let (mut push, mut pull) = (lanes.push.changes(), lanes.pull.changes());
        let mut due = uptime();
        loop {
            tokio::select! {
                grant = grants.next() => match grant {
                    Some(grant) => self.take(&grant.payload),
                    None => return,
                },
                _ = push.changed() => due = due.min(self.next_due()),
                _ = pull.changed() => due = due.min(self.next_due()),
                Ok(()) = is_up.changed() => {
                    if !*is_up.borrow_and_update() {
                        self.keep();
                    }
                    self.sent_at = None;
                    due = uptime();
                }
                () = tokio::time::sleep(due.saturating_sub(uptime())) => {
                    due = self.tell().await;
                }
            }
        }
    }

    /// When a demand may be told at the earliest.
    fn next_due(&self) -> Duration {
        let paced = self.sent_at.map_or(Duration::ZERO, |at| at + PACE);
        paced.max(uptime() + SETTLE)
    }

    /// Tells the demand, if there is news or it is time. Returns when to look again.
    async fn tell(&mut self) -> Duration {
        let now = uptime();
        let (Some(push), Some(pull)) = (self.push.demand(), self.pull.demand()) else {
            return now + REPEAT;
        };
        let news = [push.news(), pull.news()];
        let heard = self.heard.borrow().filter(|heard| heard.is_new(now));
        let repeat = heard.map_or(REPEAT_UNHEARD, |_| REPEAT);
        if heard.is_none() {
            self.keep();
        }
        if news != self.sent || self.sent_at.is_none_or(|at| now >= at + repeat) {
            let demand = HostDemand {
                version: VERSION,
                session: self.session,
                push,
                pull,
            };
            let subject = demands_of(&self.fleet.site, &self.fleet.host);
            let Ok(message) = serde_json::to_vec(&demand) else {
                return now + repeat;
            };
            if self.connection.send(subject, message).await.is_err() {
                return now + repeat;
            }
            (self.sent, self.sent_at) = (news, Some(now));
        }
        let declines = [&self.push, &self.pull].map(OuterLane::declines_in);
        let declines = declines.into_iter().flatten().min().unwrap_or(REPEAT);
        let repeat = self.sent_at.map_or(now, |at| at + repeat);
        let due = (now + declines).max(self.next_due()).min(repeat);
        heard.map_or(due, |heard| due.min(heard.until()))
    }

    /// There is nobody who answers: the lanes go on as they are, until their shares are over.
    fn keep(&self) {
        self.push.keep();
        self.pull.keep();
    }

    /// Takes a grant, if it is of this session.
    fn take(&mut self, text: &[u8]) {
        let site = &self.fleet.site;
        let grant = match HostGrant::read(text) {
            Ok(grant) if grant.session == self.session => grant,
            Ok(_) => return,
            Err(why) => return why.tell("a grant of the site", site, &mut self.has_warned),
        };
        let counts = [self.push.take(&grant.push), self.pull.take(&grant.pull)];
        if !counts.contains(&true) {
            return;
        }
        let term = grant.term;
        let heard = Heard {
            at: uptime(),
            term,
            held: grant.held,
        };
        let before = self.heard.send_replace(Some(heard));
        if before.is_none_or(|before| before.term != term) {
            tracing::info!(site, term, "this agent takes part in the lane of the site");
        }
    }
}
