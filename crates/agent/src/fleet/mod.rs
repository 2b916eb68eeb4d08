//! The lane of a site: the agents of all machines behind one uplink share it, over NATS.
//!
//! Each agent tells what its two lanes want. One of them, the coordinator, runs the same lane
//! for the site, in which each agent is a guest, and answers with grants. Grants are leases:
//! without NATS or without a coordinator they end, and each agent goes on alone.
//!
//! - `connection`: the way to NATS, lost and found again
//! - `message`: what passes, and under which subjects
//! - `member`: an agent as a guest of the site
//! - `election`: which agent is the coordinator
//! - `coordinator`: the lane of the site
//! - `host`: a host, as the coordinator knows it
//! - `holds`: the hosts that get no connections
//! - `bucket`: where JetStream keeps what lasts
//! - `site`: questions of the rest of the agent to the coordinator
//! - [`status`]: what there is to know of a site

mod bucket;
mod connection;
mod coordinator;
mod election;
mod holds;
mod host;
mod member;
pub mod message;
mod site;
pub mod status;

use std::num::NonZeroU64;
use std::time::Duration;

use async_nats::jetstream;
use fairbat::lane::LaneSettings;
use tokio::sync::watch;

use self::connection::NatsConnection;
pub use self::connection::check_credentials;
use self::coordinator::Coordinator;
use self::election::{Election, Office, pause_after};
use self::holds::Holds;
use self::member::Heard;
pub use self::site::{HostHeld, NoAnswer, SiteHandle, SitePort, channel};
use self::status::FleetStatus;
use crate::clock::uptime;
use crate::config::{AgentConfig, FleetConfig};
use crate::lane_socket::Lanes;

/// Time between two looks at how this agent takes part.
const LOOK: Duration = Duration::from_millis(500);

/// An office without a grant that is heard lasts no longer. A grant is told every 2 s.
const UNHEARD_OFFICE: Duration = Duration::from_secs(6);

/// An agent that takes part in the lane of its site.
pub struct Participant {
    /// The site.
    pub fleet: FleetConfig,
    /// The agent's own lanes.
    pub lanes: Lanes,
    /// The settings of the site's lanes.
    pub settings: LaneSettings,
    /// A random number of the agent's start.
    pub session: u64,
    /// For the rest of the agent.
    pub port: SitePort,
}

/// The settings of the site's lanes, from those of an agent. A limit on the rate is that of the
/// agent alone.
#[must_use]
pub fn site_settings(agent: &AgentConfig, fleet: &FleetConfig) -> LaneSettings {
    LaneSettings {
        max_connections: fleet.connections,
        weight: agent.min_weight,
        max_weight: agent.max_weight,
        limit_rate: None,
        is_held: true,
        controller: agent.controller,
        stream: agent.stream,
    }
}

impl Participant {
    /// Takes part until `leave` becomes true. An office is given up then.
    pub async fn take_part(self, leave: watch::Receiver<bool>) {
        while self.take_part_with_credentials(leave.clone()).await {}
    }

    /// Takes part with the credentials that there are. Returns whether there are new ones.
    async fn take_part_with_credentials(&self, mut leave: watch::Receiver<bool>) -> bool {
        let connection = tokio::select! {
            connection = NatsConnection::open(&self.fleet, |why| {
                self.port.status.send_modify(|status| status.problem = Some(why.to_owned()));
            }) => connection,
            () = site::pass_on(None, &self.fleet, &self.port) => return false,
            _ = leave.wait_for(|leave| *leave) => return false,
        };
        let (heard_sender, heard) = watch::channel(None);
        let Self {
            fleet,
            lanes,
            session,
            ..
        } = self;
        let member = member::take_part(&connection, fleet, lanes, *session, heard_sender);
        let office = async {
            if fleet.coordinate {
                self.run_for_office(&connection, heard.clone(), leave).await;
            } else {
                let _ = leave.wait_for(|leave| *leave).await;
            }
        };
        let status = &self.port.status;
        tokio::select! {
            () = member => false,
            () = office => false,
            () = look(&connection, lanes, heard.clone(), status) => false,
            () = site::pass_on(Some(&connection), fleet, &self.port) => false,
            () = connection.has_new_credentials(fleet) => true,
        }
    }

    /// Becomes the coordinator whenever there is no other one.
    async fn run_for_office(
        &self,
        connection: &NatsConnection,
        heard: watch::Receiver<Option<Heard>>,
        mut leave: watch::Receiver<bool>,
    ) {
        let Self { fleet, port, .. } = self;
        let site = &fleet.site;
        let context = jetstream::new(connection.client.clone());
        let election = Election::new(&context, connection, fleet, self.session, heard.clone());
        let mut pause = Duration::ZERO;
        loop {
            let won = async {
                tokio::time::sleep(pause).await;
                election.win().await
            };
            let (office, holds) = tokio::select! {
                won = won => won,
                _ = leave.wait_for(|leave| *leave) => return,
            };
            let (began, term) = (uptime(), office.term());
            let lost = tokio::select! {
                why = self.coordinate(connection, &office, holds) => Some(why),
                why = office.hold() => Some(why),
                why = lose_grants(connection, &heard, term) => Some(why),
                _ = leave.wait_for(|leave| *leave) => None,
            };
            port.status.send_modify(|status| {
                (status.coordinator, status.known) = (false, None);
            });
            let over = "this agent no longer coordinates the site";
            match lost {
                Some(why) => tracing::warn!(site, term, "{over}: {why}"),
                None => tracing::info!(site, term, "{over}: it ends"),
            }
            office.resign().await;
            pause = pause_after(uptime().saturating_sub(began), pause);
        }
    }

    /// Runs the lane of the site. Returns why it no longer does.
    async fn coordinate(
        &self,
        connection: &NatsConnection,
        office: &Office,
        holds: Holds,
    ) -> String {
        let Self { fleet, port, .. } = self;
        let coordinator = Coordinator::new(
            connection,
            fleet,
            self.settings,
            office,
            self.session,
            holds,
            &port.status,
        );
        let coordinator = match coordinator {
            Ok(coordinator) => coordinator,
            Err(error) => return error.to_string(),
        };
        let term = office.term();
        tracing::info!(site = fleet.site, term, "this agent coordinates the site");
        port.status.send_modify(|status| status.coordinator = true);
        coordinator.serve().await
    }
}

/// Waits until an agent that coordinates in this term has not heard its own grants for a while,
/// though NATS is within reach: then no other host hears them either. Returns that for people.
async fn lose_grants(
    connection: &NatsConnection,
    heard: &watch::Receiver<Option<Heard>>,
    term: NonZeroU64,
) -> String {
    let mut last = uptime();
    while uptime() < last + UNHEARD_OFFICE {
        tokio::time::sleep(LOOK).await;
        let own = heard.borrow().filter(|heard| heard.term == term);
        last = match *connection.is_up.borrow() {
            true => own.map_or(last, |heard| heard.at.max(last)),
            false => uptime(),
        };
    }
    "its own grants do not come back; it may lack rights, see docs/fleet.md".to_owned()
}

/// Tells again and again how the agent takes part.
async fn look(
    connection: &NatsConnection,
    lanes: &Lanes,
    heard: watch::Receiver<Option<Heard>>,
    status: &watch::Sender<FleetStatus>,
) {
    loop {
        let heard = *heard.borrow();
        status.send_modify(|status| {
            status.connected = *connection.is_up.borrow();
            status.member = lanes.push.outer().is_shared() || lanes.pull.outer().is_shared();
            status.term = heard.map(|heard| heard.term.get());
            status.held = status.member && heard.is_some_and(|heard| heard.held);
            status.problem = connection.refusal().filter(|_| !status.member);
            status.heard_s = heard.map(|heard| uptime().saturating_sub(heard.at).as_secs_f64());
        });
        tokio::time::sleep(LOOK).await;
    }
}
