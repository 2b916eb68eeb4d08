//! Which agent of a site is its coordinator.
//!
//! There is one key in a bucket of JetStream. Whoever creates it is the coordinator, in a term
//! that is the key's revision, so a later term has a higher number. The coordinator renews the
//! key; without that it is gone after [`LEASE`], and somebody else creates it. The coordinator
//! counts its lease from the moment at which it asked for it, so it ends before the key does.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream::kv::{CreateErrorKind, Operation, Store};
use async_nats::jetstream::stream::{self, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use tokio::sync::watch;
use tokio::time::timeout;

use super::connection::Connection;
use crate::config::Fleet;
use crate::daemon::clock::uptime;

/// How long a coordinator is one without a renewal.
const LEASE: Duration = Duration::from_secs(6);

/// Time between two renewals.
const RENEW: Duration = Duration::from_secs(2);

/// Time between two tries to become the coordinator, without the part that differs from one
/// agent to another.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// Largest part that differs, ms.
const MAX_JITTER_MS: u64 = 1_000;

/// A try that takes longer has failed.
const TRY: Duration = Duration::from_secs(3);

/// So many tries have to fail before that is told.
const TOLD_FAILURES: u32 = 5;

const KEY: &str = "coordinator";

/// An agent that wants to be the coordinator.
pub(crate) struct Election {
    context: Context,
    is_up: watch::Receiver<bool>,
    bucket: String,
    host: String,
    pause: Duration,
}

/// Somebody else is the coordinator, or it is not known.
enum NotWon {
    Taken,
    Failed(String),
}

impl Election {
    pub(crate) fn new(connection: &Connection, fleet: &Fleet, session: u64) -> Self {
        Self {
            context: jetstream::new(connection.client.clone()),
            is_up: connection.is_up.clone(),
            bucket: format!("fairbat_{}", fleet.site),
            host: fleet.host.clone(),
            pause: TRY_AGAIN + Duration::from_millis(session % MAX_JITTER_MS),
        }
    }

    /// Waits until this agent is the coordinator.
    pub(crate) async fn win(&self) -> Office {
        let mut store = None;
        let mut failures = 0_u32;
        let mut is_up = self.is_up.clone();
        loop {
            // What is asked without a connection is asked later, all at once.
            if is_up.wait_for(|is_up| *is_up).await.is_err() {
                tokio::time::sleep(self.pause).await;
                continue;
            }
            let asked = uptime();
            let tried = timeout(TRY, self.try_once(&mut store)).await;
            match tried.unwrap_or_else(|_| Err(NotWon::Failed("no answer".to_owned()))) {
                Ok(office) if uptime() < asked + LEASE => {
                    office.extend(asked);
                    return office;
                }
                Ok(_) | Err(NotWon::Taken) => failures = 0,
                Err(NotWon::Failed(why)) => {
                    store = None;
                    failures = failures.saturating_add(1);
                    // One that fails while the server starts is none to tell of.
                    if failures == TOLD_FAILURES {
                        tracing::warn!(bucket = self.bucket, "no election of a coordinator: {why}");
                    }
                }
            }
            tokio::time::sleep(self.pause).await;
        }
    }

    async fn try_once(&self, known: &mut Option<Store>) -> Result<Office, NotWon> {
        let store = match known {
            Some(store) => store,
            None => known.insert(self.open().await?),
        };
        // This is one question, and a try to create is two.
        let failed = |error: &dyn std::error::Error| NotWon::Failed(error.to_string());
        let entry = store.entry(KEY).await.map_err(|error| failed(&error))?;
        if entry.is_some_and(|entry| entry.operation == Operation::Put) {
            return Err(NotWon::Taken);
        }
        let created = store.create(KEY, self.host.clone().into()).await;
        let revision = created.map_err(|error| match error.kind() {
            CreateErrorKind::AlreadyExists => NotWon::Taken,
            _ => failed(&error),
        })?;
        let term = NonZeroU64::new(revision);
        Ok(Office {
            store: store.clone(),
            host: self.host.clone(),
            term: term.ok_or_else(|| NotWon::Failed("a revision of 0".to_owned()))?,
            until_ms: AtomicU64::new(0),
        })
    }

    /// Opens the bucket, and makes it if there is none.
    async fn open(&self) -> Result<Store, NotWon> {
        let failed = |error: &dyn std::error::Error| NotWon::Failed(error.to_string());
        if let Ok(store) = self.context.get_key_value(&self.bucket).await {
            return Ok(store);
        }
        // A bucket is a stream of this kind. The stream is made by itself, because the client
        // makes buckets only on servers from 2.10 on.
        let config = stream::Config {
            name: format!("KV_{}", self.bucket),
            description: Some("The coordinator of a site of FAIRBAT".to_owned()),
            subjects: vec![format!("$KV.{}.>", self.bucket)],
            max_messages_per_subject: 1,
            max_age: LEASE,
            max_message_size: 1_024,
            max_bytes: 1 << 20,
            // Revisions go on after a restart.
            storage: StorageType::File,
            num_replicas: 1,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            ..stream::Config::default()
        };
        let made = self.context.create_stream(config).await;
        made.map_err(|error| failed(&error))?;
        let opened = self.context.get_key_value(&self.bucket).await;
        opened.map_err(|error| failed(&error))
    }
}

/// The office of the coordinator, for as long as it is renewed.
pub(crate) struct Office {
    store: Store,
    host: String,
    term: NonZeroU64,
    /// Its end on the clock that counts from the start of the machine.
    until_ms: AtomicU64,
}

impl Office {
    /// Its number. Later ones have higher numbers.
    pub(crate) fn term(&self) -> NonZeroU64 {
        self.term
    }

    /// Whether this agent is still the coordinator.
    pub(crate) fn is_held(&self) -> bool {
        uptime() < self.until()
    }

    fn until(&self) -> Duration {
        Duration::from_millis(self.until_ms.load(Ordering::Relaxed))
    }

    fn extend(&self, asked: Duration) {
        let until = u64::try_from((asked + LEASE).as_millis()).unwrap_or(u64::MAX);
        self.until_ms.store(until, Ordering::Relaxed);
    }

    /// Renews it for as long as that goes well. Returns why it is over.
    pub(crate) async fn hold(&self) -> String {
        let mut revision = self.term.get();
        loop {
            let left = self.until().saturating_sub(uptime());
            tokio::time::sleep(RENEW.min(left)).await;
            let asked = uptime();
            let left = self.until().saturating_sub(asked);
            let host = self.host.clone().into();
            let renewed = self.store.update(KEY, host, revision);
            match timeout(left, renewed).await {
                Ok(Ok(next)) => {
                    revision = next;
                    self.extend(asked);
                }
                Ok(Err(error)) => return error.to_string(),
                Err(_) => return "it could not be renewed in time".to_owned(),
            }
        }
    }
}
