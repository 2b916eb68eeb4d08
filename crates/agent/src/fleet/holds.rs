//! The hosts of a site that get no more connections until they are released. They are kept in
//! a bucket, so that the next coordinator knows them.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::kv::{Operation, Store};
use tokio::time::timeout;

use super::bucket;
use crate::config::fleet::is_name;

/// Longest time to find and to read them at first.
const OPEN: Duration = Duration::from_secs(2);

/// Longest time to change them: whoever asks waits for it.
const CHANGE: Duration = Duration::from_secs(3);

/// Longest time of each step of a change.
const TRY: Duration = Duration::from_secs(1);

/// Writes that a change may take. The first one may be late, or have been so.
const WRITES: usize = 2;

const NO_ANSWER: &str = "JetStream does not answer, so what is held is not certain; try again";

/// Hosts that can be held at once.
const MAX_HELD: usize = 500;

const KEY: &str = "holds";

/// The hosts that are held, by name.
pub(crate) struct Holds {
    store: Store,
    hosts: BTreeSet<String>,
    /// That of the key with them; 0 before there is one.
    revision: u64,
}

impl Holds {
    /// Reads those of a site.
    ///
    /// # Errors
    /// They cannot be read, for people.
    pub(crate) async fn read(context: &Context, site: &str) -> Result<Self, String> {
        let name = bucket::holds_bucket(site);
        let read = async {
            let description = "The hosts of a site of FAIRBAT that are held";
            let store = bucket::open(context, &name, description, Duration::ZERO).await?;
            let mut holds = Self {
                store,
                hosts: BTreeSet::new(),
                revision: 0,
            };
            holds.read_again().await?;
            Ok(holds)
        };
        let read = timeout(OPEN, read).await;
        read.unwrap_or_else(|_| Err("no answer".to_owned()))
            .map_err(|why| format!("which hosts are held is not known: {name}: {why}"))
    }

    /// Whether this host is held.
    pub(crate) fn has(&self, host: &str) -> bool {
        self.hosts.contains(host)
    }

    /// All of them.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(String::as_str)
    }

    /// Holds a host, or releases it. Returns whether that is a change.
    ///
    /// # Errors
    /// It is not so, or that is not certain.
    pub(crate) async fn set(&mut self, host: &str, held: bool) -> Result<bool, String> {
        let changed = timeout(CHANGE, self.change(host, held)).await;
        changed.unwrap_or_else(|_| Err(NO_ANSWER.to_owned()))
    }

    async fn change(&mut self, host: &str, held: bool) -> Result<bool, String> {
        let mut problem = None;
        for _ in 0..WRITES {
            // What is stored counts, also if its writer had no answer.
            self.read_again().await?;
            if self.has(host) == held {
                return Ok(problem.is_some());
            }
            let mut hosts = self.hosts.clone();
            match held {
                true => hosts.insert(host.to_owned()),
                false => hosts.remove(host),
            };
            if hosts.len() > MAX_HELD {
                return Err(format!("no more than {MAX_HELD} hosts can be held"));
            }
            match self.write(hosts).await {
                Ok(()) => return Ok(true),
                Err(why) => problem = Some(why),
            }
        }
        Err(problem.unwrap_or_default())
    }

    /// Learns what is stored.
    async fn read_again(&mut self) -> Result<(), String> {
        let entry = timeout(TRY, self.store.entry(KEY)).await;
        let entry = entry.map_err(|_| NO_ANSWER)?;
        let entry = entry.map_err(|error| error.to_string())?;
        let revision = entry.as_ref().map_or(0, |entry| entry.revision);
        let hosts: BTreeSet<String> = match entry {
            Some(entry) if entry.operation == Operation::Put => names(&entry.value),
            _ => BTreeSet::new(),
        };
        (self.hosts, self.revision) = (hosts, revision);
        Ok(())
    }

    /// Stores these, unless something else has been stored since they were read.
    async fn write(&mut self, hosts: BTreeSet<String>) -> Result<(), String> {
        let text = serde_json::to_vec(&hosts).map_err(|error| error.to_string())?;
        let written = self.store.update(KEY, text.into(), self.revision);
        let written = timeout(TRY, written).await.map_err(|_| NO_ANSWER)?;
        let revision = written.map_err(|error| format!("JetStream does not take it: {error}"))?;
        (self.hosts, self.revision) = (hosts, revision);
        Ok(())
    }
}

/// The names of hosts that are stored. What cannot be read holds nobody, and the next change
/// replaces it: without a coordinator nobody could.
fn names(stored: &[u8]) -> BTreeSet<String> {
    let names = serde_json::from_slice::<BTreeSet<String>>(stored);
    match names {
        Ok(names) if names.iter().all(|host| is_name(host)) => names,
        _ => {
            tracing::error!(
                "what is stored of the hosts that are held cannot be read: none is held"
            );
            BTreeSet::new()
        }
    }
}
