//! The body of an answer on its way in: its connection is held back while it is
//! read, and what comes is counted.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use dalbe::receive_window::FlowTarget;
use dalbe::socket::TcpSocket;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, Sleep};

use super::{LaneClient, RequestContext};
use crate::clock::Clock;
use crate::http::{Failure, socket_of};
use crate::lane::Lane;
use crate::window_manager::{WindowGuard, WindowManager};

/// The receive window is looked after so often: well within a round trip of any
/// path on which it matters.
const LOOK: Duration = Duration::from_millis(20);

/// How an answer ends that breaks off.
#[derive(Debug, thiserror::Error)]
pub enum BrokenOff {
    /// The connection is gone.
    #[error("the connection broke off in the middle of the answer")]
    Gone(#[source] reqwest::Error),
    /// Nothing came any more.
    #[error("the server fell silent in the middle of the answer")]
    Silent,
}

impl From<BrokenOff> for Failure {
    fn from(broken: BrokenOff) -> Self {
        match broken {
            BrokenOff::Gone(error) => error.into(),
            BrokenOff::Silent => Self::network(broken.to_string()),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Received {
    body: reqwest::Body,
    passage: RequestContext,
    lane: Lane,
    clock: Clock,
    held: Option<Held>,
    /// Until the next read, as ceilings and brake have it.
    pause: Option<Pin<Box<Sleep>>>,
    /// How long the server may say nothing while it is listened to.
    silence: Option<Duration>,
    /// Until it has said nothing for so long.
    silent: Option<Pin<Box<Sleep>>>,
}

/// A connection that is held back.
#[derive(Debug)]
struct Held {
    braking: Arc<WindowManager>,
    brake: WindowGuard,
    socket: Arc<TcpSocket>,
    order: watch::Receiver<FlowTarget>,
    look: Interval,
    /// Between two reads.
    pause: Option<Duration>,
}

impl Received {
    pub(super) fn of(
        response: reqwest::Response,
        passage: RequestContext,
        carrier: &LaneClient,
    ) -> Response<Self> {
        let (lane, clock) = (carrier.lane.clone(), carrier.clock);
        let held = carrier.braking.as_ref().and_then(|braking| {
            let socket = Arc::new(socket_of(&response)?);
            let brake = braking.engage(clock.now(), &socket)?;
            let mut look = tokio::time::interval(LOOK);
            look.set_missed_tick_behavior(MissedTickBehavior::Delay);
            Some(Held {
                braking: Arc::clone(braking),
                brake,
                socket,
                order: lane.order(),
                look,
                pause: None,
            })
        });
        let (parts, body) = Response::<reqwest::Body>::from(response).into_parts();
        let received = Self {
            body,
            passage,
            lane,
            clock,
            held,
            pause: None,
            silence: carrier.silence,
            silent: None,
        };
        Response::from_parts(parts, received)
    }

    /// Resolves when the server has said nothing for too long.
    fn silence(&mut self, context: &mut Context<'_>) -> Poll<BrokenOff> {
        let Some(limit) = self.silence else {
            return Poll::Pending;
        };
        let silent = self
            .silent
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        silent.as_mut().poll(context).map(|()| BrokenOff::Silent)
    }

    fn took(&mut self, bytes: usize) {
        self.passage.count(bytes as u64, &self.lane);
        let rtt = self.held.as_ref().and_then(|held| {
            let info = held.socket.info().ok()?;
            info.path_rtt()
        });
        self.lane.moved(bytes as u64, rtt);
        let window = self.held.as_ref().map(|held| held.socket.receiver());
        if let Some(Ok(window)) = window.map(|receiver| receiver.window_clamp()) {
            self.lane.sees_window(window.into());
        }
        let held = self.held.as_ref().and_then(|held| held.pause);
        let wait = self.passage.reserve(bytes).max(held.unwrap_or_default());
        self.pause = (!wait.is_zero()).then(|| Box::pin(tokio::time::sleep(wait)));
    }
}

impl Held {
    /// Looks after the window when it is time.
    fn poll(&mut self, context: &mut Context<'_>, now: Duration, remaining: Option<u64>) {
        while self.look.poll_tick(context).is_ready() {
            self.braking.order(*self.order.borrow());
            self.pause = self.brake.update(now, remaining);
        }
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = &mut *self;
        if let Some(held) = &mut this.held {
            held.poll(context, this.clock.now(), this.body.size_hint().upper());
        }
        if let Some(pause) = &mut this.pause {
            ready!(pause.as_mut().poll(context));
            this.pause = None;
        }
        let frame = match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let silent = ready!(this.silence(context));
                return Poll::Ready(Some(Err(silent)));
            }
        };
        this.silent = None;
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            let bytes = data.len();
            this.took(bytes);
        }
        if !matches!(frame, Some(Ok(_))) {
            // The connection may be used again at once.
            this.held = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BrokenOff::Gone)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
