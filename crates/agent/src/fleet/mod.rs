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

mod connection;
mod coordinator;
mod election;
mod member;
pub mod message;

use fairbat::lane::LaneSettings;

use self::connection::Connection;
use self::coordinator::Coordinator;
use self::election::Election;
use crate::config::{Agent, Fleet};
use crate::lane_socket::Lanes;

/// Lets the agent take part in the lane of its site, until it is dropped. `session` is a random
/// number of the agent's start.
pub async fn take_part(fleet: Fleet, lanes: Lanes, settings: LaneSettings, session: u64) {
    let connection = Connection::open(&fleet).await;
    let member = member::take_part(&connection, &fleet, &lanes, session);
    if !fleet.coordinate {
        return member.await;
    }
    tokio::join!(
        member,
        run_for_office(&connection, &fleet, settings, session)
    );
}

/// The settings of the site's lanes, from those of an agent. A limit on the rate is that of the
/// agent alone.
#[must_use]
pub fn site_settings(agent: &Agent, fleet: &Fleet) -> LaneSettings {
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

/// Becomes the coordinator whenever there is no other one.
async fn run_for_office(
    connection: &Connection,
    fleet: &Fleet,
    settings: LaneSettings,
    session: u64,
) {
    let site = &fleet.site;
    let election = Election::new(connection, fleet, session);
    loop {
        let office = election.win().await;
        let term = office.term();
        let coordinator = match Coordinator::new(connection, fleet, settings, &office) {
            Ok(coordinator) => coordinator,
            Err(error) => {
                tracing::error!(site, "this agent cannot coordinate the site: {error}");
                return;
            }
        };
        tracing::info!(site, term, "this agent coordinates the site");
        let why = coordinator.serve().await;
        tracing::warn!(
            site,
            term,
            "this agent no longer coordinates the site: {why}"
        );
    }
}
