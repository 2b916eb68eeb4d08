//! The connection to NATS. It is tried again for ever, and nothing waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use tokio::sync::watch;

use crate::config::Fleet;
use crate::config::credentials::read_private;

/// Time between two tries to read the credentials.
const READ_AGAIN: Duration = Duration::from_secs(10);

/// Longest time between two tries to connect.
const MAX_DELAY: Duration = Duration::from_secs(2);

/// A server that has not answered two of these has been lost.
const PING: Duration = Duration::from_secs(2);

/// A message that cannot be handed over in this time is dropped: the next one says it all again.
const HAND_OVER: Duration = Duration::from_millis(100);

/// The way to NATS.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// Whether it is there.
    pub(crate) is_up: watch::Receiver<bool>,
}

impl Connection {
    /// Opens it, in the background. Waits only for credentials that can be read.
    pub(crate) async fn open(fleet: &Fleet) -> Self {
        let mut has_complained = false;
        loop {
            match Self::try_open(fleet).await {
                Ok(connection) => return connection,
                Err(why) if !has_complained => {
                    tracing::error!(site = fleet.site, "not in the lane of the site: {why}");
                    has_complained = true;
                }
                Err(_) => {}
            }
            tokio::time::sleep(READ_AGAIN).await;
        }
    }

    async fn try_open(fleet: &Fleet) -> Result<Self, String> {
        let mut options = ConnectOptions::new()
            .name(format!("fairbat-agent {}", fleet.host))
            .ping_interval(PING)
            .reconnect_delay_callback(delay)
            .require_tls(fleet.cacert.is_some())
            .retry_on_initial_connect();
        if let Some(path) = fleet.credentials.clone() {
            // The disk may be slow.
            let read = tokio::task::spawn_blocking(move || {
                let text = read_private(&path).map_err(|error| error.to_string())?;
                Ok::<_, String>((path, text))
            });
            let (path, text) = read.await.map_err(|lost| lost.to_string())??;
            // The error could show a part of the file.
            options = options
                .credentials(text.expose())
                .map_err(|_| format!("{}: these are no credentials for NATS", path.display()))?;
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
        });
        options = options.event_callback(move |event| {
            reporter.report(&event);
            std::future::ready(())
        });
        let server = ServerAddr::from_url(fleet.url.clone()).map_err(|error| error.to_string())?;
        let client = options.connect(server).await;
        let client = client.map_err(|error| format!("{}: {error}", fleet.url))?;
        Ok(Self { client, is_up })
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
}

/// Whether NATS says that this agent may not do something, or may not connect.
fn is_refusal(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    [
        "permissions violation",
        "authorization violation",
        "authentication",
    ]
    .iter()
    .any(|refusal| text.contains(refusal))
}

impl Reporter {
    fn report(&self, event: &Event) {
        let url = &self.url;
        match event {
            Event::Connected => {
                if !self.is_up.send_replace(true) {
                    tracing::info!("connected to NATS at {url}");
                }
                self.has_complained.store(false, Ordering::Relaxed);
            }
            Event::Disconnected => {
                self.has_complained.store(true, Ordering::Relaxed);
                if self.is_up.send_replace(false) {
                    tracing::warn!("the connection to NATS at {url} is lost; trying again");
                }
            }
            Event::ClientError(_) | Event::ServerError(_) => {
                let text = event.to_string();
                let is_new = !self.has_complained.swap(true, Ordering::Relaxed);
                if is_refusal(&text) && !self.is_refusal_told.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "NATS at {url} refuses this agent: {text}; see docs/fleet.md for the rights \
                         that an agent needs"
                    );
                } else if is_new && !*self.is_up.borrow() {
                    let hint = match self.is_encrypted {
                        true => "; it may be its certificate: see `cacert` in [fleet]",
                        false => "",
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
