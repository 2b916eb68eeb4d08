//! One request on a lane: the rate limits that it keeps to, the counters for its
//! bytes, its body on the way out, and the body of its answer on the way in.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use jiff::Timestamp;
use tokio::time::{Interval, MissedTickBehavior, Sleep};

use super::connection::Connection;
use super::window_manager::{WindowGuard, WindowManager};
use crate::clock::Clock;
use crate::http::Failure;
use crate::lane::{Lane, Service};

/// Bytes of a request's body that are handed on in one piece. The connection asks
/// for the next piece when it has room, so all counted bytes but two or three
/// pieces have left.
const PIECE: usize = 64 * 1024;

/// Interval at which a receive window is adjusted: well within a round trip of
/// any path on which the window matters.
const WINDOW_INTERVAL: Duration = Duration::from_millis(20);

/// An idle limit lets this much time's worth of bytes through at once.
const BURST_TIME: Duration = Duration::from_millis(100);

/// A virtual-scheduling rate limiter (ITU-T I.371, GCRA): each reservation moves the moment
/// up to which the rate is used.
#[derive(Debug)]
pub struct RateLimit {
    clock: Clock,
    /// byte/s, at least 1.
    rate: AtomicU64,
    /// The rate is used up to this moment.
    used_until: Mutex<Duration>,
}

impl RateLimit {
    /// A limit of `rate` byte/s, at least 1.
    #[must_use]
    pub fn new(rate: u64) -> Self {
        Self {
            clock: Clock::start(),
            rate: AtomicU64::new(rate.max(1)),
            used_until: Mutex::new(Duration::ZERO),
        }
    }

    /// The rate, byte/s.
    pub(crate) fn rate(&self) -> u64 {
        self.rate.load(Ordering::Relaxed)
    }

    /// Changes the rate for what is counted from now on, byte/s, at least 1.
    pub(crate) fn set_rate(&self, rate: u64) {
        self.rate.store(rate.max(1), Ordering::Relaxed);
    }

    /// Counts `bytes`, and returns the wait before the next ones may move.
    #[must_use]
    pub fn reserve(&self, bytes: usize) -> Duration {
        self.reserve_at(self.clock.now(), bytes)
    }

    fn reserve_at(&self, now: Duration, bytes: usize) -> Duration {
        let used_until = self.used_until.lock();
        let mut used_until = used_until.unwrap_or_else(PoisonError::into_inner);
        let from = (*used_until).max(now.saturating_sub(BURST_TIME));
        *used_until = from + Duration::from_secs_f64(bytes as f64 / self.rate() as f64);
        used_until.saturating_sub(now)
    }
}

/// The limits and counters of one request.
#[derive(Debug, Clone, Default)]
pub struct RequestContext {
    /// The rate limits for the body that goes in the direction of the lane.
    pub rate_limits: Vec<Arc<RateLimit>>,
    /// Bytes of that body so far: handed to the connection, or taken from it.
    pub moved: Arc<AtomicU64>,
    /// Bytes of all such bodies of the same job, including those that had to be
    /// moved again. `None` for requests that move no content of a job's files,
    /// such as listings. The lane does not count those either.
    pub job: Option<Arc<AtomicU64>>,
}

impl RequestContext {
    /// The lowest of its rate limits, byte/s; infinite without any.
    pub(crate) fn lowest_limit(&self) -> f64 {
        let limits = self.rate_limits.iter().map(|limit| limit.rate() as f64);
        limits.fold(f64::INFINITY, f64::min)
    }

    /// Waits until the rate limits let `bytes` through. For bytes that no
    /// [`LaneClient`](super::LaneClient) moves.
    pub async fn wait(&self, bytes: usize) {
        tokio::time::sleep(self.reserve(bytes)).await;
    }

    /// Counts moved bytes for the request, its job and its lane.
    pub fn count(&self, bytes: u64, lane: &Lane) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
        if let Some(job) = &self.job {
            job.fetch_add(bytes, Ordering::Relaxed);
            lane.count_content(bytes);
        }
    }

    /// Counts bytes that came over a connection, and tells the lane of them.
    pub(crate) fn received(
        &self,
        bytes: u64,
        lane: &Lane,
        service: Service,
        connection: Option<&Connection>,
    ) {
        self.count(bytes, lane);
        let rtt = connection.and_then(Connection::path_rtt);
        lane.moved(bytes, rtt, service);
    }

    /// Counts `bytes` on all rate limits, and returns the longest wait.
    pub(crate) fn reserve(&self, bytes: usize) -> Duration {
        let waits = self.rate_limits.iter().map(|limit| limit.reserve(bytes));
        waits.max().unwrap_or_default()
    }
}

type Pause = Option<Pin<Box<Sleep>>>;

/// A pause of this length; `None` for zero.
fn pause(wait: Duration) -> Pause {
    (!wait.is_zero()).then(|| Box::pin(tokio::time::sleep(wait)))
}

/// The body of a request: cut into pieces, within rate limits, counted.
#[derive(Debug)]
pub(crate) struct PacedBody<B> {
    body: B,
    rest: Bytes,
    context: RequestContext,
    lane: Lane,
    /// Whether the rate limits pause the body. Tells [`super::LaneClient`] that
    /// the server's silence is not the server's fault.
    is_paused: Arc<AtomicBool>,
    /// Ends when the rate limits let the next piece through.
    pause: Pause,
}

impl<B> PacedBody<B> {
    pub(crate) fn new(
        body: B,
        context: RequestContext,
        lane: Lane,
        is_paused: Arc<AtomicBool>,
    ) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            context,
            lane,
            is_paused,
            pause: None,
        }
    }
}

impl<B> Drop for PacedBody<B> {
    fn drop(&mut self) {
        self.is_paused.store(false, Ordering::Relaxed);
    }
}

impl<B> Body for PacedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        if let Some(pause) = &mut this.pause {
            let is_over = pause.as_mut().poll(context).is_ready();
            this.is_paused.store(!is_over, Ordering::Relaxed);
            if !is_over {
                return Poll::Pending;
            }
            this.pause = None;
        }
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return Poll::Ready(other),
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE));
        this.context.count(piece.len() as u64, &this.lane);
        this.pause = pause(this.context.reserve(piece.len()));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        match self.body.size_hint().exact() {
            Some(bytes) => SizeHint::with_exact(bytes + rest),
            None => SizeHint::new(),
        }
    }
}

/// Why the body of an answer broke off.
#[derive(Debug, thiserror::Error)]
pub enum BrokenOff {
    /// The connection is gone.
    #[error("the connection broke off in the middle of the answer")]
    Gone(#[source] reqwest::Error),
    /// The server sent nothing for too long.
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

/// The body of an answer: its connection's window follows the lane while it is
/// read, and its bytes are counted.
#[derive(Debug)]
pub struct Received {
    body: reqwest::Body,
    context: RequestContext,
    lane: Lane,
    /// How the transfer is served that it belongs to.
    service: Service,
    held: Option<LaneConnection>,
    /// Ends when rate limits and lever allow the next read.
    pause: Pause,
    /// Time that the server may send nothing while it is read from.
    max_silence: Option<Duration>,
    /// Ends when the server has sent nothing for that time.
    silence: Pause,
}

/// A connection whose receive window follows the lane.
#[derive(Debug)]
pub(crate) struct LaneConnection {
    guard: WindowGuard,
    connection: Connection,
    clock: Clock,
    interval: Interval,
    /// Wait between two reads.
    pause: Option<Duration>,
}

/// Takes the connection of a response under control; `None` if it is gone.
pub(crate) fn hold(
    response: &reqwest::Response,
    windows: &Arc<WindowManager>,
    clock: Clock,
) -> Option<LaneConnection> {
    let connection = Connection::of(response)?;
    // Nobody says here for which member of the lane it is.
    let guard = windows.engage(clock.now(), &connection, Timestamp::MAX)?;
    let mut interval = tokio::time::interval(WINDOW_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Some(LaneConnection {
        guard,
        connection,
        clock,
        interval,
        pause: None,
    })
}

impl LaneConnection {
    /// Adjusts the window when that is due. `remaining` are the bytes that still
    /// come, if known.
    fn poll(&mut self, context: &mut Context<'_>, remaining: Option<u64>) {
        while self.interval.poll_tick(context).is_ready() {
            self.pause = self.guard.update(self.clock.now(), remaining);
        }
    }
}

impl Received {
    pub(crate) fn of(
        response: reqwest::Response,
        context: RequestContext,
        (lane, service): (Lane, Service),
        held: Option<LaneConnection>,
        max_silence: Option<Duration>,
    ) -> Response<Self> {
        let (parts, body) = Response::<reqwest::Body>::from(response).into_parts();
        let received = Self {
            body,
            context,
            lane,
            service,
            held,
            pause: None,
            max_silence,
            silence: None,
        };
        Response::from_parts(parts, received)
    }

    /// Completes when the server has sent nothing for too long.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<BrokenOff> {
        let Some(limit) = self.max_silence else {
            return Poll::Pending;
        };
        let silence = self
            .silence
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        silence.as_mut().poll(context).map(|()| BrokenOff::Silent)
    }

    /// Counts bytes that came, and sets the pause before the next read.
    fn count(&mut self, bytes: usize) {
        let held = self.held.as_ref();
        let connection = held.map(|held| &held.connection);
        self.context
            .received(bytes as u64, &self.lane, self.service, connection);
        if let Some(window) = connection.and_then(Connection::window) {
            self.lane.set_window(window.into(), None);
        }
        let lever_pause = held.and_then(|held| held.pause).unwrap_or_default();
        self.pause = pause(self.context.reserve(bytes).max(lever_pause));
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
            held.poll(context, this.body.size_hint().upper());
        }
        if let Some(pause) = &mut this.pause {
            ready!(pause.as_mut().poll(context));
            this.pause = None;
        }
        let frame = match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let broken = ready!(this.poll_silence(context));
                return Poll::Ready(Some(Err(broken)));
            }
        };
        this.silence = None;
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    this.count(data.len());
                }
            }
            // Another request may use the connection at once.
            Some(Err(_)) | None => this.held = None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_is_the_limit() {
        let limiter = RateLimit::new(1_000_000);
        let mut now = Duration::from_secs(5);
        for _ in 0..1000 {
            now += limiter.reserve_at(now, 10_000);
        }
        let elapsed = (now - Duration::from_secs(5)).as_secs_f64();
        assert!((9.89..=10.0).contains(&elapsed), "10 MB took {elapsed} s");
    }

    #[test]
    fn a_pause_saves_up_no_more_than_the_burst() {
        let limiter = RateLimit::new(1000);
        limiter.reserve_at(Duration::ZERO, 1000);
        let wait = limiter.reserve_at(Duration::from_secs(3600), 1100);
        assert_eq!(wait, Duration::from_secs(1));
    }
}
