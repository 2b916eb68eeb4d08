//! The connection to NATS. It is tried again for ever, and nothing waits for it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use tokio::sync::watch;

use crate::config::FleetConfig;
use crate::config::credentials::{SecretText, read_private};

/// Time between two tries to read the credentials.
const READ_AGAIN: Duration = Duration::from_secs(10);

/// Longest time between two tries to connect.
const MAX_DELAY: Duration = Duration::from_secs(2);

/// A server that has not answered two of these has been lost.
const PING: Duration = Duration::from_secs(2);

/// Messages of one subscription that wait: each of 4,096 hosts has told something twice. Later
/// ones are dropped, and told again soon.
const MAX_QUEUED: usize = 8_192;

/// A message that cannot be handed over in this time is dropped: the next one says it all again.
const HAND_OVER: Duration = Duration::from_millis(100);

/// The way to NATS.
pub(crate) struct NatsConnection {
    pub(crate) client: Client,
    /// Whether it is there.
    pub(crate) is_up: watch::Receiver<bool>,
    credentials: Option<SecretText>,
    reporter: Arc<Reporter>,
}

impl NatsConnection {
    /// Opens it, in the background. Waits only for credentials that can be read, and tells why it
    /// waits.
    pub(crate) async fn open(fleet: &FleetConfig, tell: impl Fn(&str)) -> Self {
        let mut has_complained = false;
        loop {
            match Self::try_open(fleet).await {
                Ok(connection) => return connection,
                Err(why) => {
                    tell(&why);
                    if !std::mem::replace(&mut has_complained, true) {
                        tracing::error!(
                            site = fleet.site,
                            "not in the lane of the site, trying again: {why}"
                        );
                    }
                }
            }
            tokio::time::sleep(READ_AGAIN).await;
        }
    }

    /// Waits until there are other credentials than those with which the connection is tried in
    /// vain.
    pub(crate) async fn has_new_credentials(&self, fleet: &FleetConfig) {
        loop {
            tokio::time::sleep(READ_AGAIN).await;
            if *self.is_up.borrow() {
                continue;
            }
            if credentials(fleet)
                .await
                .is_ok_and(|read| read != self.credentials)
            {
                tracing::info!(site = fleet.site, "there are new credentials for NATS");
                return;
            }
        }
    }

    async fn try_open(fleet: &FleetConfig) -> Result<Self, String> {
        let mut options = ConnectOptions::new()
            .name(format!("fairbat-agent {}", fleet.host))
            .ping_interval(PING)
            .reconnect_delay_callback(delay)
            .subscription_capacity(MAX_QUEUED)
            // Servers of a cluster are told without a scheme.
            .require_tls(fleet.cacert.is_some() || fleet.url.scheme() == "tls")
            .retry_on_initial_connect();
        let credentials = credentials(fleet).await?;
        if let Some((path, text)) = fleet.credentials.as_ref().zip(credentials.as_ref()) {
            options = with_credentials(options, path, text)?;
        }
        if let Some(path) = fleet.cacert.clone() {
            options = options.add_root_certificates(path);
        }
        let (sender, is_up) = watch::channel(false);
        let reporter = Arc::new(Reporter {
            url: fleet.url.to_string(),
            is_up: sender,
            is_encrypted: fleet.cacert.is_some() || fleet.url.scheme() == "tls",
            has_complained: AtomicBool::new(false),
            is_refusal_told: AtomicBool::new(false),
            refused: Mutex::new(None),
        });
        let told = Arc::clone(&reporter);
        options = options.event_callback(move |event| {
            told.report(&event);
            std::future::ready(())
        });
        let server = ServerAddr::from_url(fleet.url.clone()).map_err(|error| error.to_string())?;
        let client = options.connect(server).await;
        let client = client.map_err(|error| format!("{}: {error}", fleet.url))?;
        Ok(Self {
            client,
            is_up,
            credentials,
            reporter,
        })
    }

    /// Whether NATS has last refused this subject to this agent.
    pub(crate) fn is_refused(&self, subject: &str) -> bool {
        let refused = self.reporter.refused();
        refused.as_ref().is_some_and(|text| {
            text.to_lowercase()
                .contains(&format!("{subject:?}").to_lowercase())
        })
    }

    /// What NATS has last refused to this agent.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.reporter.refused().clone()
    }

    /// Hands a message over.
    ///
    /// # Errors
    /// There is no connection, it does not take the message in time, or the message is too long.
    pub(crate) async fn send(&self, subject: String, message: Vec<u8>) -> Result<(), String> {
        if !*self.is_up.borrow() {
            return Err("there is no connection to NATS".to_owned());
        }
        let sent = self.client.publish(subject, message.into());
        let sent = tokio::time::timeout(HAND_OVER, sent).await;
        let sent = sent.map_err(|_| "the connection to NATS is too slow")?;
        sent.map_err(|error| error.to_string())
    }
}

/// Whether NATS can be asked with the credentials of an agent, as far as their file shows. Blocks.
///
/// # Errors
/// Why not, for people.
pub fn check_credentials(fleet: &FleetConfig) -> Result<(), String> {
    let Some(path) = &fleet.credentials else {
        return Ok(());
    };
    let text = read_private(path).map_err(|error| error.to_string())?;
    with_credentials(ConnectOptions::new(), path, &text).map(drop)
}

fn with_credentials(
    options: ConnectOptions,
    path: &Path,
    text: &SecretText,
) -> Result<ConnectOptions, String> {
    // The error could show a part of the file.
    let used = options.credentials(text.expose());
    used.map_err(|_| format!("{}: these are no credentials for NATS", path.display()))
}

/// The credentials of an agent, if it has any.
async fn credentials(fleet: &FleetConfig) -> Result<Option<SecretText>, String> {
    let Some(path) = fleet.credentials.clone() else {
        return Ok(None);
    };
    // The disk may be slow.
    let read = tokio::task::spawn_blocking(move || read_private(&path));
    let read = read.await.map_err(|lost| lost.to_string())?;
    read.map(Some).map_err(|error| error.to_string())
}

/// Time before a try to connect.
fn delay(attempts: usize) -> Duration {
    let doubled = u32::try_from(attempts).unwrap_or(u32::MAX).min(8);
    Duration::from_millis(20)
        .saturating_mul(2_u32.pow(doubled))
        .min(MAX_DELAY)
}

/// Says once that the connection is lost, and once that it is back.
struct Reporter {
    url: String,
    is_up: watch::Sender<bool>,
    is_encrypted: bool,
    has_complained: AtomicBool,
    is_refusal_told: AtomicBool,
    /// The last refusal.
    refused: Mutex<Option<String>>,
}

/// Whether NATS says that this agent may not do something, or may not connect.
fn is_refusal(text: &str) -> bool {
    let text = text.to_lowercase();
    [
        "permissions violation",
        "authorization violation",
        "authentication",
    ]
    .iter()
    .any(|refusal| text.contains(refusal))
}

/// What to do about a refusal.
fn advice(text: &str) -> &'static str {
    match text.to_lowercase().contains("kv_fairbat_coordinator") {
        true => {
            "it may not coordinate the site: write coordinate = false in [fleet], or make its \
             credentials with --coordinate"
        }
        false => "see docs/fleet.md for the rights that an agent needs",
    }
}

impl Reporter {
    fn refused(&self) -> MutexGuard<'_, Option<String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, event: &Event) {
        let url = &self.url;
        match event {
            Event::Connected => {
                if !self.is_up.send_replace(true) {
                    tracing::info!("connected to NATS at {url}");
                }
                self.has_complained.store(false, Ordering::Relaxed);
                self.is_refusal_told.store(false, Ordering::Relaxed);
                *self.refused() = None;
            }
            Event::Disconnected => {
                self.has_complained.store(true, Ordering::Relaxed);
                if self.is_up.send_replace(false) {
                    tracing::warn!("the connection to NATS at {url} is lost; trying again");
                }
            }
            Event::ClientError(_) | Event::ServerError(_) => {
                let text = event.to_string();
                let is_refusal = is_refusal(&text);
                if is_refusal {
                    *self.refused() = Some(text.clone());
                }
                let is_new = !self.has_complained.swap(true, Ordering::Relaxed);
                if is_refusal && !self.is_refusal_told.swap(true, Ordering::Relaxed) {
                    let advice = advice(&text);
                    tracing::warn!("NATS at {url} refuses this agent: {text}; {advice}");
                } else if is_new && !*self.is_up.borrow() {
                    let hint = match self.is_encrypted {
                        true => {
                            "; see whether it runs there, and whether its certificate is for that \
                             name and by an authority of `cacert` in [fleet]"
                        }
                        false => "; see whether it runs there",
                    };
                    tracing::warn!("no connection to NATS at {url}, trying again: {text}{hint}");
                } else {
                    tracing::debug!("NATS at {url}: {text}");
                }
            }
            _ => tracing::debug!("NATS at {url}: {event}"),
        }
    }
}
