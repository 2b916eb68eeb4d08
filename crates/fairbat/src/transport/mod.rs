//! Transport: HTTP requests over connections whose levers follow a lane.
//!
//! | file | what |
//! |---|---|
//! | `client` | sends a request, follows redirects, shows credentials |
//! | `authorities` | the authorities that servers' certificates are checked against |
//! | `http3` | the same over QUIC, where a server offers it |
//! | `remote_file` | a remote file: probe, whole file, ranges of one version |
//! | `coding` | content codings, and gzip undone |
//! | `upload` | one upload request and its answer |
//! | `connection` | what an answer comes over |
//! | `sending` | a connection that sends, under its lever |
//! | `tap` | finds the socket under a connection and prepares it |
//! | `held_connection` | a connection whose window is held |
//! | `window_manager` | puts the receive window that the weight asks for on connections that receive |
//! | `path` | what connections over a path know of it together |
//! | `flows` | puts the weight on connections that send |
//! | `request` | a request's rate limits and counters, and its bodies |
//!
//! [`LaneClient`] sends requests that somebody else made, and perhaps signed. A
//! lane's bulk data goes through it in one direction: the sender lever holds back
//! what is sent, the receiver lever what is received. The small requests between
//! (listings, deletions) go the same way. Credentials, retries and the meaning
//! of an answer are the caller's business.

mod authorities;
mod client;
mod coding;
mod connection;
mod flows;
mod held_connection;
#[cfg_attr(not(feature = "http3"), path = "without_http3.rs")]
mod http3;
mod path;
mod remote_file;
mod request;
mod sending;
mod tap;
#[cfg(test)]
mod tests;
mod upload;
mod window_manager;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use dalbe::capability::Capabilities;
use dalbe::receive_window::LeverKind;
use dalbe::receive_window::ReceiverPolicy;
use dalbe::sender::{SenderLeverKind, SenderLevers, SenderPolicy};
use http::{Request, Response};
use tokio::sync::mpsc::unbounded_channel;

pub(crate) use self::client::MAX_REDIRECTS;
pub use self::client::{HttpClient, SourceUrl};
pub use self::connection::Connection;
pub use self::http3::say_goodbye;
pub(crate) use self::path::Path;
pub(crate) use self::remote_file::AnnouncedSize;
pub use self::remote_file::{Body, Probe, RemoteFile};
pub use self::request::{BrokenOff, RateLimit, Received, RequestContext};
use self::request::{PacedBody, hold};
pub(crate) use self::sending::NewConnection;
pub use self::tap::ReceiveWindow;
pub(crate) use self::tap::{SendTap, Tap};
pub(crate) use self::upload::{Put, PutAnswer, unread_answer};
pub(crate) use self::window_manager::{WindowGuard, WindowManager};
use crate::clock::Clock;
use crate::error::TransferError;
use crate::http::Failure;
use crate::lane::{Lane, Service};
use crate::settings::HttpSettings;

/// Interval at which a request that waits for its answer is checked for
/// silence.
const SILENCE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The lever on the bulk data of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lever {
    /// This end sends.
    Sender(SenderLeverKind),
    /// This end receives.
    Receiver(LeverKind),
}

/// The direction of the bulk data, and the policy for its lever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeverPolicy {
    /// This end sends.
    Sender(SenderPolicy),
    /// This end receives.
    Receiver(ReceiverPolicy),
}

impl LeverPolicy {
    /// The best lever that this machine allows.
    #[must_use]
    pub fn best(self) -> Lever {
        match self {
            Self::Sender(policy) => Lever::Sender(SenderLevers::open(policy).kind()),
            Self::Receiver(_) => Lever::Receiver(Capabilities::probe().best_lever()),
        }
    }
}

impl Lever {
    /// Whether the lever can give flows a weight below 1.
    #[must_use]
    pub fn holds(self) -> bool {
        match self {
            Self::Sender(kind) => kind != SenderLeverKind::Mark,
            Self::Receiver(kind) => kind.holds_window(),
        }
    }

    /// The lever's name in events and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sender(kind) => kind.name(),
            Self::Receiver(kind) => kind.name(),
        }
    }
}

/// Sends requests over connections that follow a lane. Clones share their
/// connections.
#[derive(Debug, Clone)]
pub struct LaneClient {
    client: HttpClient,
    lane: Lane,
    /// How the transfers are served that it works for.
    service: Service,
    /// For connections that receive, where a window can be held.
    windows: Option<Arc<WindowManager>>,
    /// The direction of its bulk data.
    policy: LeverPolicy,
    clock: Clock,
    /// Time that the server may stay silent.
    max_silence: Option<Duration>,
}

impl LaneClient {
    /// A client for a lane, with the best lever that this machine allows. Up to
    /// `connections` idle connections to each host are kept open. They work for transfers
    /// that are served like `service`.
    ///
    /// # Errors
    /// The certificate or netrc file cannot be read.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(
        settings: &HttpSettings,
        lane: &Lane,
        wanted: LeverPolicy,
        connections: u32,
        service: Service,
    ) -> Result<Self, TransferError> {
        let (client, windows) = match wanted {
            LeverPolicy::Sender(policy) => {
                let (opened, connections_opened) = unbounded_channel();
                let levers = Arc::new(SenderLevers::open(policy));
                let tap = Tap::Send(SendTap { levers, opened });
                let client = HttpClient::new(settings, connections, tap)?;
                tokio::spawn(flows::follow_lane(
                    connections_opened,
                    lane.clone(),
                    service,
                ));
                (client, None)
            }
            LeverPolicy::Receiver(policy) => {
                let kind = Capabilities::probe().best_lever();
                let window = ReceiveWindow::new(None, kind, service);
                // Rate limits and levers pause the reader, and the server is not
                // silent then. The body that is read tells the two apart, which
                // reqwest cannot.
                let without_timeout = HttpSettings {
                    stall_timeout: None,
                    ..settings.clone()
                };
                let client = HttpClient::new(&without_timeout, connections, Tap::Receive(window))?;
                let windows = WindowManager::open(kind, policy, window, lane.clone(), service);
                (client, windows)
            }
        };
        Ok(Self {
            client,
            lane: lane.clone(),
            service,
            windows,
            policy: wanted,
            clock: Clock::start(),
            max_silence: settings.stall_timeout,
        })
    }

    /// Counts bytes of a request that its caller has moved by other means than a connection,
    /// as if they had come over one.
    pub fn moved(&self, context: &RequestContext, bytes: u64) {
        context.received(bytes, &self.lane, self.service, None);
    }

    /// Sends a request unchanged, and returns the answer unchanged. A redirect is
    /// an answer.
    ///
    /// # Errors
    /// [`Failure::Transient`] or [`Failure::Fatal`]: there was no answer.
    pub async fn send<B>(
        &self,
        request: Request<B>,
        context: RequestContext,
    ) -> Result<Response<Received>, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send + Sync + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let moved = Arc::clone(&context.moved);
        let is_paused = Arc::new(AtomicBool::new(false));
        let (sent, received) = match self.policy {
            LeverPolicy::Sender(_) => (context, RequestContext::default()),
            LeverPolicy::Receiver(_) => (RequestContext::default(), context),
        };
        let body = PacedBody::new(body, sent, self.lane.clone(), Arc::clone(&is_paused));
        let request = Request::from_parts(parts, reqwest::Body::wrap(body));
        let answer = self.client.send_unchanged(request);
        let response = match self.max_silence {
            Some(limit) => answer_within(limit, answer, &moved, &is_paused).await?,
            None => answer.await?,
        };
        let held = self
            .windows
            .as_ref()
            .and_then(|windows| hold(&response, windows, self.clock));
        Ok(Received::of(
            response,
            received,
            (self.lane.clone(), self.service),
            held,
            self.max_silence,
        ))
    }
}

/// Waits for an answer as long as something moves. When nothing moves any more,
/// waits for `limit` plus the time that the body took: some servers pass the
/// whole body on before they answer. The time in which our own limits pause the
/// body does not count as silence.
async fn answer_within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, Failure>>,
    moved: &AtomicU64,
    is_paused: &AtomicBool,
) -> Result<T, Failure> {
    let mut answer = std::pin::pin!(answer);
    let (mut last, mut waited, mut silent) = (0, Duration::ZERO, Duration::ZERO);
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            () = tokio::time::sleep(SILENCE_CHECK_INTERVAL) => {}
        }
        waited += SILENCE_CHECK_INTERVAL;
        let now = moved.load(Ordering::Relaxed);
        silent = if now > last || is_paused.load(Ordering::Relaxed) {
            Duration::ZERO
        } else {
            silent + SILENCE_CHECK_INTERVAL
        };
        last = now;
        if silent > limit + (waited - silent) {
            return Err(Failure::network("the server fell silent"));
        }
    }
}
