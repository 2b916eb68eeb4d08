//! The NATS servers of a site, at the host at the near end of the link, and what its coordinator
//! says through them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairbat_tests::nats::Nats;
use serde::Deserialize;

use crate::contender::fleet::SITE;
use crate::contender::site::Site;
use crate::host::{Class, Host};

/// How long hosts may take to take part, and how often it is asked.
const GRACE: Duration = Duration::from_secs(30);
const ASK: Duration = Duration::from_millis(100);

/// NATS servers at work; they end when it is dropped.
pub(crate) struct Broker {
    host: Host,
    nodes: Arc<Mutex<Vec<Nats>>>,
    url: String,
}

/// What the coordinator says of the site.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct SiteStatus {
    /// The host whose agent it is.
    pub(crate) coordinator: String,
    hosts: Vec<Member>,
}

/// A host that takes part.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Member {}

impl Broker {
    /// Starts one server, or several that are one.
    pub(crate) fn start(site: &Site, count: usize) -> Self {
        let host = site.server.clone();
        let address = host.address(Class::Foreground).into();
        let nodes = host.within(move || match count {
            1 => vec![Nats::start_at(address)],
            _ => Nats::start_cluster(address, count),
        });
        Self {
            host,
            url: nodes[0].url(),
            nodes: Arc::new(Mutex::new(nodes)),
        }
    }

    /// The URL of the first. It names the others.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Kills a server, or starts it again.
    pub(crate) fn set_killed(&self, node: usize, is_killed: bool) {
        self.within(move |nodes| match is_killed {
            true => nodes[node].kill(),
            false => nodes[node].start_again(),
        });
    }

    /// What the coordinator says; `None` when there is none.
    pub(crate) fn status(&self) -> Option<SiteStatus> {
        let subject = format!("fairbat.v1.{SITE}.status");
        let said = self.within(move |nodes| nodes.iter().find_map(|node| node.request(&subject)));
        serde_json::from_str(&said?).ok()
    }

    /// Waits until so many hosts take part.
    ///
    /// # Errors
    /// It takes too long.
    pub(crate) fn await_hosts(&self, count: usize) -> io::Result<()> {
        let mut waited = Duration::ZERO;
        loop {
            let there = self.status().map_or(0, |status| status.hosts.len());
            if there == count {
                return Ok(());
            }
            if waited > GRACE {
                return Err(io::Error::other(format!(
                    "of {count} hosts only {there} take part in the lane of the site: see \
                     fairbat-agent.stderr of the others"
                )));
            }
            std::thread::sleep(ASK);
            waited += ASK;
        }
    }

    fn within<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Vec<Nats>) -> T + Send + 'static,
    ) -> T {
        let nodes = Arc::clone(&self.nodes);
        self.host.within(move || {
            let mut nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner);
            act(&mut nodes)
        })
    }
}
