//! Carries requests that somebody else has made, and perhaps signed, over
//! connections that follow a lane: what is sent by the sender lever, what comes
//! by the receiver lever.
//!
//! One carrier serves one direction of bulk data; the small requests between
//! (listings, deletions) go the same way. Credentials, retries and what an
//! answer means are the caller's.

mod context;
mod flows;
mod rate_limit;
mod received;
mod sent;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use dalbe::receive_window::ReceiverPolicy;
use dalbe::sender::{SenderLeverKind, SenderLevers, SenderPolicy};
use dalbe::support::{LeverKind, Support};
use http::{Request, Response};
use tokio::sync::mpsc::unbounded_channel;

pub use self::context::RequestContext;
use self::flows::look_after;
pub use self::rate_limit::RateLimit;
pub use self::received::{BrokenOff, Received};
use self::sent::Sent;
use crate::clock::Clock;
use crate::error::TransferError;
use crate::http::{Failure, HttpClient, ReceiveWindow, SendTap};
use crate::lane::Lane;
use crate::settings::HttpSettings;
use crate::window_manager::WindowManager;

/// How often it is looked whether a request whose body has been sent is still
/// waited for.
const LOOK: Duration = Duration::from_secs(1);

/// What holds back the bulk data of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lever {
    /// At this end, which sends.
    Sender(SenderLeverKind),
    /// At this end, which receives.
    Receiver(LeverKind),
}

/// Which levers are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// For what is sent.
    Sender(SenderPolicy),
    /// For what is received.
    Receiver(ReceiverPolicy),
}

impl Wanted {
    /// The best lever that this machine allows.
    #[must_use]
    pub fn best(self) -> Lever {
        match self {
            Self::Sender(policy) => Lever::Sender(SenderLevers::open(policy).rung()),
            Self::Receiver(_) => Lever::Receiver(Support::probe().best_lever()),
        }
    }
}

impl Lever {
    /// Whether it makes flows weigh less than 1.
    #[must_use]
    pub fn holds(self) -> bool {
        match self {
            Self::Sender(rung) => rung != SenderLeverKind::Mark,
            Self::Receiver(rung) => rung.holds_window(),
        }
    }

    /// As it is written in events and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sender(rung) => rung.name(),
            Self::Receiver(rung) => rung.name(),
        }
    }
}

/// See the module. Clones share their connections.
#[derive(Debug, Clone)]
pub struct LaneClient {
    client: HttpClient,
    lane: Lane,
    braking: Option<Arc<WindowManager>>,
    direction: Direction,
    clock: Clock,
    silence: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Sending,
    Receiving,
}

impl LaneClient {
    /// A carrier for a lane, with the best lever that this machine allows. Up
    /// to `connections` connections to one host are kept open.
    ///
    /// # Errors
    /// When the certificate or netrc file cannot be read.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn start(
        settings: &HttpSettings,
        lane: &Lane,
        wanted: Wanted,
        connections: u32,
    ) -> Result<Self, TransferError> {
        let (client, braking, direction) = match wanted {
            Wanted::Sender(policy) => {
                let (opened, connections_opened) = unbounded_channel();
                let levers = Arc::new(SenderLevers::open(policy));
                let tap = SendTap { levers, opened };
                let client = HttpClient::for_many_uploads(settings, tap, connections)?;
                tokio::spawn(look_after(connections_opened, lane.clone()));
                (client, None, Direction::Sending)
            }
            Wanted::Receiver(policy) => {
                let rung = Support::probe().best_lever();
                let window = ReceiveWindow {
                    most: None,
                    is_held: rung.holds_window(),
                };
                // What is not read because it may not be is no silence of the
                // server's: that is told apart where it is read.
                let unhurried = HttpSettings {
                    stall_timeout: None,
                    ..settings.clone()
                };
                let client = HttpClient::new(&unhurried, connections, window)?;
                let order = *lane.order().borrow();
                let braking = WindowManager::open(rung, policy, window, order);
                (client, braking, Direction::Receiving)
            }
        };
        Ok(Self {
            client,
            lane: lane.clone(),
            braking,
            direction,
            clock: Clock::start(),
            silence: settings.stall_timeout,
        })
    }

    /// Sends a request as it is, and returns the answer as it is; redirects are
    /// answers.
    ///
    /// # Errors
    /// [`Failure::Transient`] or [`Failure::Fatal`]: no answer came.
    pub async fn carry<B>(
        &self,
        request: Request<B>,
        passage: RequestContext,
    ) -> Result<Response<Received>, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send + Sync + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let moved = Arc::clone(&passage.moved);
        let paused = Arc::new(AtomicBool::new(false));
        let (sent, received) = match self.direction {
            Direction::Sending => (passage, RequestContext::default()),
            Direction::Receiving => (RequestContext::default(), passage),
        };
        let body = Sent::new(body, sent, self.lane.clone(), Arc::clone(&paused));
        let request = Request::from_parts(parts, reqwest::Body::wrap(body));
        let answer = self.client.carried(request);
        let response = match self.silence {
            Some(limit) => answered(answer, &moved, &paused, limit).await?,
            None => answer.await?,
        };
        Ok(Received::of(response, received, self))
    }
}

/// Waits for an answer for as long as something moves, and when nothing does any
/// more for as long as the limit and all that took: there are servers that
/// pass all of a body on before they answer. While the body is `paused` by us
/// nothing can move.
async fn answered<T>(
    answer: impl Future<Output = Result<T, Failure>>,
    moved: &AtomicU64,
    paused: &AtomicBool,
    limit: Duration,
) -> Result<T, Failure> {
    let mut answer = std::pin::pin!(answer);
    let (mut last, mut waited, mut silent) = (0, Duration::ZERO, Duration::ZERO);
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            () = tokio::time::sleep(LOOK) => {}
        }
        waited += LOOK;
        let now = moved.load(Ordering::Relaxed);
        silent = if now > last || paused.load(Ordering::Relaxed) {
            Duration::ZERO
        } else {
            silent + LOOK
        };
        last = now;
        if silent > limit + (waited - silent) {
            return Err(Failure::network("the server fell silent"));
        }
    }
}

#[cfg(test)]
mod tests;
