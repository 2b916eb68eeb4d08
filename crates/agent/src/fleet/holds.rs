//! The hosts of a site that get no more connections until they are released. They are kept in
//! a bucket, so that the next coordinator knows them.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::kv::Store;
use tokio::time::timeout;

use super::bucket;
use crate::config::fleet::is_name;

/// Longest time to read or to write them.
const TRY: Duration = Duration::from_secs(2);

/// Hosts that can be held at once.
const MAX_HELD: usize = 500;

const KEY: &str = "holds";

/// The hosts that are held, by name.
pub(crate) struct Holds {
    store: Store,
    hosts: BTreeSet<String>,
}

impl Holds {
    /// Reads those of a site.
    ///
    /// # Errors
    /// They cannot be read, for people.
    pub(crate) async fn read(context: &Context, site: &str) -> Result<Self, String> {
        let read = async {
            let name = bucket::holds_bucket(site);
            let description = "The hosts of a site of FAIRBAT that are held";
            let store = bucket::open(context, &name, description, Duration::ZERO).await?;
            let text = store.get(KEY).await.map_err(|error| error.to_string())?;
            let hosts: BTreeSet<String> = match text {
                Some(text) => serde_json::from_slice(&text).map_err(|error| error.to_string())?,
                None => BTreeSet::new(),
            };
            match hosts.iter().all(|host| is_name(host)) {
                true => Ok(Self { store, hosts }),
                false => Err("a name that cannot be one".to_owned()),
            }
        };
        let read = timeout(TRY, read).await;
        read.unwrap_or_else(|_| Err("no answer".to_owned()))
            .map_err(|why| format!("which hosts are held is not known: {why}"))
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
    /// It cannot be written down, and is not so.
    pub(crate) async fn set(&mut self, host: &str, held: bool) -> Result<bool, String> {
        if self.has(host) == held {
            return Ok(false);
        }
        let mut hosts = self.hosts.clone();
        match held {
            true => hosts.insert(host.to_owned()),
            false => hosts.remove(host),
        };
        if hosts.len() > MAX_HELD {
            return Err(format!("no more than {MAX_HELD} hosts can be held"));
        }
        let text = serde_json::to_vec(&hosts).map_err(|error| error.to_string())?;
        match timeout(TRY, self.store.put(KEY, text.into())).await {
            Ok(Ok(_)) => {
                self.hosts = hosts;
                Ok(true)
            }
            Ok(Err(error)) => Err(format!("JetStream does not take it: {error}")),
            Err(_) => Err("JetStream does not answer".to_owned()),
        }
    }
}
