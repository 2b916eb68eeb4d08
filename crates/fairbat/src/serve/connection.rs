//! One connection: requests on it are answered, and it is held back as they
//! wish, for as long as somebody is there.
//!
//! Both are parts of one task. A duplicate of the descriptor keeps a
//! connection open, and this one ends with the task; so when either part ends
//! the connection is closed.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use dalbe::sender::SenderLever;
use dalbe::socket::TcpSocket;
use dalbe::weight::FlowTarget;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE};
use http::request::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::answer::{answer, too_many};
use super::body::CHUNK;
use super::flow::{Carried, Flow};
use super::linger::linger;
use super::pace::{Manner, Pace};
use super::write::Stored;
use super::{Patience, Site};

/// Bytes that may wait in the kernel beyond what the congestion control lets
/// out (`TCP_NOTSENT_LOWAT`, tcp(7)): more would be sent at the old weight when
/// a new one comes, and is memory for nothing.
const UNSENT: u32 = 128 * 1024;

/// Bytes that hyper gathers, of requests and of responses: a chunk, and room
/// for the longest head of a request that makes sense.
const BUFFER: usize = CHUNK as usize;

/// After the last byte of a response has been handed to the kernel, or the
/// last acknowledgement: what is on its way is still held back.
const TAIL: Duration = Duration::from_secs(1);

/// How often a connection that nothing holds back is looked at while it
/// carries something.
const LOOK: Duration = Duration::from_secs(1);

/// Serves a connection until it ends; one that is not welcome is only told so.
pub(super) async fn serve(
    site: &Arc<Site>,
    mut stream: TcpStream,
    peer: SocketAddr,
    is_welcome: bool,
) {
    let socket = match prepare(&stream) {
        Ok(socket) => socket,
        Err(error) => return tracing::debug!("{peer}: cannot be served: {error}"),
    };
    let (flow, watched) = Flow::new();
    let answering = Answering {
        site,
        peer,
        flow: is_welcome.then_some(&flow),
    };
    let patience = match is_welcome {
        true => site.patience,
        false => site.patience.with_refused(),
    };
    let carried = async {
        let stream = match &site.tls {
            None => {
                carry(&answering, &mut stream).await;
                stream
            }
            Some(tls) => match tls.accept(stream).into_fallible().await {
                Ok(mut stream) => {
                    carry(&answering, &mut stream).await;
                    stream.into_inner().0
                }
                Err((error, stream)) => {
                    tracing::debug!("{peer}: no TLS: {error}");
                    stream
                }
            },
        };
        // The last answer may have come before the end of its request.
        linger(&stream, &socket, patience.closing).await;
    };
    tokio::select! {
        () = carried => {}
        silence = hold(site, &patience, &socket, watched) => {
            if silence == Some(Silence::Stalled) {
                // The kernel is not to go on offering what nobody takes.
                let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
            }
            tracing::debug!("{peer}: {silence:?} for too long, closed");
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<TcpSocket> {
    stream.set_nodelay(true)?;
    // Needless where the kernel is too old for it.
    let _ = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT);
    Ok(TcpSocket::from_fd(stream.as_fd().try_clone_to_owned()?))
}

/// What answers the requests of a connection.
struct Answering<'a> {
    site: &'a Arc<Site>,
    peer: SocketAddr,
    /// `None` if all that it is told is that there are too many connections.
    flow: Option<&'a Flow>,
}

/// Answers requests until there are no more.
async fn carry(answering: &Answering<'_>, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let Answering { site, peer, flow } = answering;
    let service = service_fn(async |request: Request<Incoming>| {
        let (request, body) = request.into_parts();
        let response = match flow {
            Some(flow) => answer(site, flow, &request, body).await,
            None => too_many(),
        };
        tell(*peer, &request, &response);
        Ok::<_, Infallible>(response)
    });
    let served = http1::Builder::new()
        .max_buf_size(BUFFER)
        // Silence is noticed by `hold`: hyper would also count the time in
        // which a slow client takes the end of a response.
        .header_read_timeout(None)
        // Who has said all that it has to say still waits for the answer.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!("{peer}: a connection broke: {error}");
    }
}

/// A line for each request: who, what, the status, how much, and how it is sent, or
/// how much was stored.
/// Without the query, which nobody here needs and may hold a secret.
fn tell<B>(peer: SocketAddr, request: &Parts, response: &Response<B>) {
    let (method, path) = (&request.method, request.uri.path());
    let headers = response.headers();
    let length = headers
        .get(CONTENT_RANGE)
        .or_else(|| headers.get(CONTENT_LENGTH));
    let length = length.and_then(|value| value.to_str().ok());
    let extensions = response.extensions();
    let manner = extensions.get::<Manner>().map(ToString::to_string);
    let manner = manner.or_else(|| extensions.get::<Stored>().map(ToString::to_string));
    tracing::info!(
        "{peer} {method} {path} {} {} {}",
        response.status().as_u16(),
        length.unwrap_or("-"),
        manner.as_deref().unwrap_or("-"),
    );
}

/// Why nobody waits for a peer any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    /// It does not take what was sent.
    Stalled,
    /// It has taken everything and asks for nothing more.
    Idle,
}

/// Holds the connection back as its responses wish. Returns when the peer has
/// been silent for too long: nothing that we sent was acknowledged.
///
/// Everything that a peer does, other than to read, ends in something that we
/// send: so this sees those who read nothing of a response, those who keep a
/// connection idle, and those who send a request without end. While nothing
/// is left to acknowledge and a response is under way, it is the file that is
/// waited for, which is not the peer's fault. An upload counts as a response: who
/// takes it in sees whether it moves.
async fn hold(
    site: &Site,
    patience: &Patience,
    socket: &TcpSocket,
    mut watched: watch::Receiver<Carried>,
) -> Option<Silence> {
    let mut pace = Pace::new();
    let mut lever = Lever::Unused;
    let (mut begun, mut is_sending) = (0, false);
    let mut arrived = dalbe::sender::DeliveredBytes::default();
    let mut seen = 0;
    let mut heard = site.clock.now();
    let mut wait = Duration::ZERO;
    loop {
        let is_news = tokio::select! {
            changed = watched.changed() => changed.is_ok(),
            () = tokio::time::sleep(wait) => false,
        };
        let now = site.clock.now();
        if is_news {
            let carried = *watched.borrow_and_update();
            if carried.begun > begun {
                pace.begin(now, carried.manner, now < heard + TAIL);
                (begun, heard) = (carried.begun, now);
            }
            is_sending = carried.is_sending;
        }
        // A connection that is gone is noticed by those who write to it.
        let info = socket.info().ok()?;
        let acked = info.bytes_acked.unwrap_or_default();
        if acked != seen {
            (seen, heard) = (acked, now);
        }
        let (most, silence) = match (info.is_owed(), is_sending) {
            (true, _) => (patience.sending, Silence::Stalled),
            (false, true) => {
                heard = now;
                (patience.sending, Silence::Stalled)
            }
            (false, false) => (patience.idle, Silence::Idle),
        };
        let left = (heard + most).saturating_sub(now);
        if left.is_zero() {
            return Some(silence);
        }
        let is_active = silence == Silence::Stalled || now < heard + TAIL;
        wait = if is_active {
            let order = pace.look(now, arrived.since_last(&info));
            lever.follow(site, now, socket, order).min(left)
        } else {
            left
        };
    }
}

/// The sender lever of a connection.
enum Lever {
    /// Every response so far was an ordinary one.
    Unused,
    WindowGuard(SenderLever),
}

impl Lever {
    /// Does what the order asks for, or lets the connection go if there is
    /// none; returns the time until the next look.
    fn follow(
        &mut self,
        site: &Site,
        now: Duration,
        socket: &TcpSocket,
        order: Option<FlowTarget>,
    ) -> Duration {
        if matches!(self, Self::Unused) && order.is_some() {
            *self = Self::WindowGuard(site.levers.take(socket));
        }
        let Self::WindowGuard(lever) = self else {
            return LOOK;
        };
        let done = match order {
            Some(order) => lever.update(now, socket, order),
            None => lever.release(socket).map(|()| LOOK),
        };
        match done {
            Ok(wait) => wait,
            // It goes on as it was told last, and is told again.
            Err(error) => {
                tracing::debug!("a connection cannot be held back or let go: {error}");
                LOOK
            }
        }
    }
}
