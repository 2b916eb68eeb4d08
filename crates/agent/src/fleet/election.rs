//! Which agent of a site is its coordinator.
//!
//! There is one key in a bucket of JetStream. Whoever creates it is the coordinator, in a term
//! that is the key's revision, so a later term has a higher number. The coordinator renews the
//! key; without that it is gone after [`LEASE`], and somebody else creates it. The coordinator
//! counts its lease from the moment at which it asked for it, so it ends before the key does.
//! Whoever hears grants knows that there is a coordinator, and does not ask. Whoever cannot read
//! which hosts are held does not create the key.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::kv::{CreateErrorKind, Operation, Store, UpdateErrorKind};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, timeout};

use super::bucket;
use super::connection::NatsConnection;
use super::holds::Holds;
use super::member::Heard;
use crate::clock::uptime;
use crate::config::FleetConfig;

/// How long a coordinator is one without a renewal. With the time to find another one, it is
/// shorter than the lease of a grant, so hosts are not on their own in between.
const LEASE: Duration = Duration::from_secs(5);

/// Time between two renewals, or two tries to renew. No try takes longer.
const RENEW: Duration = Duration::from_secs(1);

/// Time between two tries to become the coordinator, without the part that differs from one
/// agent to another.
const TRY_AGAIN: Duration = Duration::from_millis(750);

/// An office that lasts less has failed: what ended it may end the next one too.
const SHORT_OFFICE: Duration = Duration::from_secs(60);

/// Time out of office after a first short one, and the longest after many of them.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Largest part that differs, ms.
const MAX_JITTER_MS: u64 = 750;

/// Longest time to give the office up.
const RESIGN: Duration = Duration::from_secs(1);

/// A try that takes longer has failed.
const TRY: Duration = Duration::from_secs(3);

/// So many tries have to fail before that is told.
const TOLD_FAILURES: u32 = 5;

const KEY: &str = "coordinator";

/// An agent that wants to be the coordinator.
pub(crate) struct Election {
    context: Context,
    is_up: watch::Receiver<bool>,
    heard: watch::Receiver<Option<Heard>>,
    site: String,
    /// The value of the key while this agent is the coordinator: no other agent writes it, not
    /// even one of the same host.
    value: String,
    pause: Duration,
}

/// Time to stay out of office after one that lasted so long, when it was `before` after the one
/// before it.
pub(crate) fn pause_after(lasted: Duration, before: Duration) -> Duration {
    match lasted < SHORT_OFFICE {
        true => before.saturating_mul(2).clamp(MIN_PAUSE, MAX_PAUSE),
        false => Duration::ZERO,
    }
}

/// Somebody else is the coordinator, or it is not known.
enum NotWon {
    Taken,
    Failed(String),
}

impl Election {
    pub(crate) fn new(
        context: &Context,
        connection: &NatsConnection,
        fleet: &FleetConfig,
        session: u64,
        heard: watch::Receiver<Option<Heard>>,
    ) -> Self {
        Self {
            context: context.clone(),
            is_up: connection.is_up.clone(),
            heard,
            site: fleet.site.clone(),
            value: format!("{} {session:016x}", fleet.host),
            pause: TRY_AGAIN + Duration::from_millis(session % MAX_JITTER_MS),
        }
    }

    /// Waits until this agent is the coordinator. Returns also which hosts are held.
    pub(crate) async fn win(&self) -> (Office, Holds) {
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
            if self.heard.borrow().is_some_and(|heard| heard.is_new(asked)) {
                tokio::time::sleep(self.pause).await;
                continue;
            }
            let tried = timeout(TRY, self.try_once(&mut store)).await;
            match tried.unwrap_or_else(|_| Err(NotWon::Failed("no answer".to_owned()))) {
                Ok((office, holds)) if uptime() < asked + LEASE => {
                    office.extend(asked);
                    return (office, holds);
                }
                Ok(_) | Err(NotWon::Taken) => failures = 0,
                Err(NotWon::Failed(why)) => {
                    store = None;
                    failures = failures.saturating_add(1);
                    // One that fails while the server starts is none to tell of.
                    if failures == TOLD_FAILURES {
                        tracing::warn!(site = self.site, "no election of a coordinator: {why}");
                    }
                }
            }
            tokio::time::sleep(self.pause).await;
        }
    }

    async fn try_once(&self, known: &mut Option<Store>) -> Result<(Office, Holds), NotWon> {
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
        let holds = Holds::read(&self.context, &self.site).await;
        let holds = holds.map_err(NotWon::Failed)?;
        let created = store.create(KEY, self.value.clone().into()).await;
        let revision = created.map_err(|error| match error.kind() {
            CreateErrorKind::AlreadyExists => NotWon::Taken,
            _ => failed(&error),
        })?;
        let term = NonZeroU64::new(revision);
        let office = Office {
            store: store.clone(),
            value: self.value.clone(),
            term: term.ok_or_else(|| NotWon::Failed("a revision of 0".to_owned()))?,
            revision: AtomicU64::new(revision),
            until_ms: AtomicU64::new(0),
        };
        Ok((office, holds))
    }

    /// Opens the bucket, and makes it if there is none.
    async fn open(&self) -> Result<Store, NotWon> {
        let description = "The coordinator of a site of FAIRBAT";
        let name = bucket::coordinator_bucket(&self.site);
        let opened = bucket::open(&self.context, &name, description, LEASE).await;
        opened.map_err(NotWon::Failed)
    }
}

/// The office of the coordinator, for as long as it is renewed.
pub(crate) struct Office {
    store: Store,
    /// That of the key.
    value: String,
    term: NonZeroU64,
    /// That of the key now.
    revision: AtomicU64,
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
        let mut tick = tokio::time::interval(RENEW);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick comes at once.
        tick.tick().await;
        loop {
            tick.tick().await;
            let asked = uptime();
            if !self.is_held() {
                return "it could not be renewed in time".to_owned();
            }
            match timeout(RENEW, self.renew()).await {
                Ok(Ok(())) => self.extend(asked),
                Ok(Err(NotWon::Taken)) => return "another agent has its key, or none".to_owned(),
                // The server may be about to change.
                Ok(Err(NotWon::Failed(why))) => tracing::debug!("the office is not renewed: {why}"),
                Err(_) => tracing::debug!("the office is not renewed: no answer"),
            }
        }
    }

    /// Renews it once. A renewal before it may be stored although nothing was heard of that, so
    /// the key may have a later revision than is known.
    async fn renew(&self) -> Result<(), NotWon> {
        let failed = |error: &dyn std::error::Error| NotWon::Failed(error.to_string());
        loop {
            let revision = self.revision.load(Ordering::Relaxed);
            let renewed = self.store.update(KEY, self.value.clone().into(), revision);
            match renewed.await {
                Ok(next) => {
                    self.revision.store(next, Ordering::Relaxed);
                    return Ok(());
                }
                Err(error) if error.kind() != UpdateErrorKind::WrongLastRevision => {
                    return Err(failed(&error));
                }
                Err(error) => {
                    let entry = self
                        .store
                        .entry(KEY)
                        .await
                        .map_err(|error| failed(&error))?;
                    match entry.filter(|entry| entry.value == self.value) {
                        Some(entry) if entry.revision > revision => {
                            self.revision.store(entry.revision, Ordering::Relaxed);
                        }
                        // A replica that is behind.
                        Some(_) => return Err(failed(&error)),
                        None => return Err(NotWon::Taken),
                    }
                }
            }
        }
    }

    /// Gives it up, so that another agent can have it at once.
    pub(crate) async fn resign(&self) {
        if !self.is_held() {
            return;
        }
        self.until_ms.store(0, Ordering::Relaxed);
        let revision = Some(self.revision.load(Ordering::Relaxed));
        let given_up = self.store.delete_expect_revision(KEY, revision);
        // Otherwise it is over when it is not renewed.
        let _ = timeout(RESIGN, given_up).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_short_offices_the_pause_grows_and_a_long_one_ends_that() {
        let short = Duration::from_secs(6);
        let mut pause = Duration::ZERO;
        for expected in [1, 2, 4, 8, 16, 30, 30] {
            pause = pause_after(short, pause);
            assert_eq!(pause, Duration::from_secs(expected));
        }
        assert_eq!(pause_after(SHORT_OFFICE, pause), Duration::ZERO);
    }
}
