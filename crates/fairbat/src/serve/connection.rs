//! One connection: its requests are answered, and it is held back as they ask,
//! until it ends or its peer is silent for too long.
//!
//! Answering and holding back are two parts of one task. A duplicate of the
//! descriptor keeps a connection open, and this task owns the duplicate. So when
//! either part ends, the connection is closed.

use std::convert::Infallible;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use dalbe::sender::{DeliveredBytes, SenderCoupling, SenderLever};
use dalbe::socket::TcpSocket;
use dalbe::weight::FlowTarget;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE};
use http::request::Parts;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::answer::{answer, too_many_connections};
use super::controller::{ConnectionController, ResponseState, ResponseTracker};
use super::response::{LogNote, MAX_PIECE};
use super::site::{MIN_PROGRESS, Patience, ServedSite};

/// Bytes that may wait in the kernel beyond the congestion window
/// (`TCP_NOTSENT_LOWAT`, tcp(7)). More would be sent at the old weight when a new
/// one comes, and would waste memory.
const MAX_UNSENT: u32 = 128 * 1024;

/// Bytes that hyper buffers of requests and of responses: one piece of a file,
/// and more than the longest sensible head of a request.
const BUFFER: usize = MAX_PIECE as usize;

/// Time after the last byte of a response went to the kernel, or after the last
/// acknowledgement, in which the connection is still held back: bytes are on
/// their way.
pub(crate) const TAIL: Duration = Duration::from_secs(1);

/// Interval at which a connection without a lever is sampled while it carries
/// something.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes that are read from a peer that goes on sending after the last answer.
/// This is more than a receive window holds, and enough for clients that read the
/// answer only after they have sent a body of the usual size.
const MAX_DISCARDED: usize = 64 * 1024 * 1024;

/// Bytes that are discarded in one read.
const DISCARD_PIECE: usize = 32 * 1024;

/// Serves a connection until it ends. Without `is_served`, every request is
/// refused.
pub(crate) async fn serve(
    site: &Arc<ServedSite>,
    mut stream: TcpStream,
    peer: SocketAddr,
    is_served: bool,
) {
    let socket = match prepare(&stream) {
        Ok(socket) => socket,
        Err(error) => return tracing::debug!("{peer}: cannot be served: {error}"),
    };
    let (tracker, responses) = ResponseTracker::new();
    let tracker = is_served.then_some(&tracker);
    let patience = match is_served {
        true => site.patience,
        false => site.patience.for_refused(),
    };
    let answered = async {
        let stream = match &site.tls {
            None => {
                answer_requests(site, peer, tracker, &mut stream).await;
                stream
            }
            Some(tls) => match TlsAcceptor::from(Arc::clone(tls))
                .accept(stream)
                .into_fallible()
                .await
            {
                Ok(mut stream) => {
                    answer_requests(site, peer, tracker, &mut stream).await;
                    stream.into_inner().0
                }
                Err((error, stream)) => {
                    tracing::debug!("{peer}: no TLS: {error}");
                    stream
                }
            },
        };
        // The last answer may have gone out before the end of its request came.
        linger(&stream, &socket, patience.closing).await;
    };
    tokio::select! {
        () = answered => {}
        silence = hold(site, &patience, &socket, responses) => {
            if silence == Some(Silence::Stalled) {
                // The kernel should not keep offering bytes that the peer does
                // not take.
                let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
            }
            tracing::debug!("{peer}: {silence:?} for too long, closed");
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<TcpSocket> {
    stream.set_nodelay(true)?;
    let socket = TcpSocket::from_fd(stream.as_fd().try_clone_to_owned()?);
    // An optimisation: a kernel without the option does without.
    let _ = socket.sender().limit_unsent(MAX_UNSENT);
    Ok(socket)
}

/// Answers the requests of a connection until there are no more. Without a `tracker`,
/// every request is refused.
async fn answer_requests(
    site: &Arc<ServedSite>,
    peer: SocketAddr,
    tracker: Option<&ResponseTracker>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
) {
    let service = service_fn(async |request: Request<Incoming>| {
        let (request, body) = request.into_parts();
        let response = match tracker {
            Some(tracker) => {
                let body = body.map_err(Into::into).boxed();
                answer(site, peer.ip(), tracker, &request, body).await
            }
            None => too_many_connections(),
        };
        log(peer, &request, &response);
        Ok::<_, Infallible>(response)
    });
    let served = http1::Builder::new()
        .max_buf_size(BUFFER)
        // `hold` notices silence. hyper would also count the time in which a
        // slow client takes the end of a response.
        .header_read_timeout(None)
        // A client that has closed its side still waits for the answer.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!("{peer}: a connection broke: {error}");
    }
}

/// Logs a request in one line: peer, method, path, status, length, and how the
/// response is sent or how much was stored. The query is left out, because it may
/// hold a secret.
pub(crate) fn log<B>(peer: SocketAddr, request: &Parts, response: &Response<B>) {
    let (method, path) = (&request.method, request.uri.path());
    let headers = response.headers();
    let length = headers
        .get(CONTENT_RANGE)
        .or_else(|| headers.get(CONTENT_LENGTH));
    let length = length.and_then(|value| value.to_str().ok());
    let note = response.extensions().get::<LogNote>();
    tracing::info!(
        "{peer} {method} {path} {} {} {}",
        response.status().as_u16(),
        length.unwrap_or("-"),
        note.map_or("-", |note| &note.0),
    );
}

/// Why a peer is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    /// It takes none or too few of the bytes that were sent.
    Stalled,
    /// It has taken everything and asks for nothing more.
    Idle,
}

/// Holds the connection back as its responses ask. Returns when the peer has been
/// silent for too long: it acknowledged nothing that we sent, or fewer than
/// [`MIN_PROGRESS`] bytes of a response.
///
/// Everything that a peer does, except reading, makes us send something. So this
/// notices peers that read next to nothing of a response, peers that keep a connection
/// idle, and peers that send a request without end. If nothing is left to
/// acknowledge while a response is under way, the file is slow, not the peer. An
/// upload counts as a response; its receiver notices whether it moves.
async fn hold(
    site: &ServedSite,
    patience: &Patience,
    socket: &TcpSocket,
    mut responses: watch::Receiver<ResponseState>,
) -> Option<Silence> {
    let mut controller = ConnectionController::new();
    let mut lever: Option<SenderLever> = None;
    let (mut begun, mut is_sending) = (0, false);
    let mut coupling = SenderCoupling::default();
    let mut delivered = DeliveredBytes::default();
    let mut acked = 0;
    let mut heard = site.clock.now();
    let mut progress = TakenBytes::begin(heard);
    let mut wait = Duration::ZERO;
    loop {
        let is_news = tokio::select! {
            changed = responses.changed() => changed.is_ok(),
            () = tokio::time::sleep(wait) => false,
        };
        let now = site.clock.now();
        if is_news {
            let response = responses.borrow_and_update().clone();
            if response.begun > begun {
                controller.begin(now, response.mode, now < heard + TAIL);
                (begun, heard) = (response.begun, now);
                progress.since = now;
            }
            is_sending = response.is_sending;
            if response.coupling != coupling
                && let Some(mut old) = lever.take()
                && let Err(error) = old.release(socket)
            {
                tracing::debug!("a connection cannot be let go: {error}");
            }
            coupling = response.coupling;
        }
        // The part that writes notices when the connection is gone.
        let info = socket.info().ok()?;
        let acked_now = info.bytes_acked.unwrap_or_default();
        if acked_now != acked {
            (acked, heard) = (acked_now, now);
        }
        progress.update(now, acked, info.is_owed());
        let (last, limit, silence) = match (info.is_owed(), is_sending) {
            (true, _) => (progress.since, patience.sending, Silence::Stalled),
            (false, true) => {
                heard = now;
                (now, patience.sending, Silence::Stalled)
            }
            (false, false) => (heard, patience.idle, Silence::Idle),
        };
        let left = (last + limit).saturating_sub(now);
        if left.is_zero() {
            return Some(silence);
        }
        let is_active = silence == Silence::Stalled || now < heard + TAIL;
        wait = if is_active {
            let target = controller.update(now, delivered.since_last(&info));
            follow(&mut lever, site, now, socket, target, coupling).min(left)
        } else {
            left
        };
    }
}

/// Tells since when a peer has taken too little of what it is owed. Pure.
#[derive(Debug)]
pub(crate) struct TakenBytes {
    /// The last moment at which it had taken enough.
    pub(crate) since: Duration,
    /// What it had acknowledged then, bytes.
    acked: u64,
}

impl TakenBytes {
    pub(crate) fn begin(now: Duration) -> Self {
        Self {
            since: now,
            acked: 0,
        }
    }

    /// The peer has acknowledged `acked` bytes by now, and others are on their way if it
    /// `is_owed` some.
    pub(crate) fn update(&mut self, now: Duration, acked: u64, is_owed: bool) {
        if !is_owed || acked >= self.acked + MIN_PROGRESS {
            (self.since, self.acked) = (now, acked);
        }
    }
}

/// Puts the target on the connection, or lets the connection go without one.
/// Returns the time until the next sample. The lever is taken for the first
/// target.
fn follow(
    lever: &mut Option<SenderLever>,
    site: &ServedSite,
    now: Duration,
    socket: &TcpSocket,
    target: Option<FlowTarget>,
    coupling: SenderCoupling,
) -> Duration {
    let done = match (target, &mut *lever) {
        (None, None) => return SAMPLE_INTERVAL,
        (None, Some(lever)) => lever.release(socket).map(|()| SAMPLE_INTERVAL),
        (Some(target), lever) => lever
            .get_or_insert_with(|| site.levers.take(socket, coupling))
            .update(now, socket, target),
    };
    done.unwrap_or_else(|error| {
        // The last target stays, and the next sample tries again.
        tracing::debug!("a connection cannot be held back or let go: {error}");
        SAMPLE_INTERVAL
    })
}

/// Closes our side of a connection, and discards what the peer sends until it
/// closes its side, is silent for `silence` with nothing left to acknowledge, or
/// has sent [`MAX_DISCARDED`]. `socket` is the stream's.
///
/// A socket that is closed while the peer still sends is reset, and the peer's
/// kernel may then discard the last answer (RFC 9112, section 9.6).
async fn linger(stream: &TcpStream, socket: &TcpSocket, silence: Duration) {
    // Fails if the connection is gone already.
    if SockRef::from(stream).shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut piece = vec![0; DISCARD_PIECE];
    let mut discarded = 0;
    while discarded < MAX_DISCARDED {
        match tokio::time::timeout(silence, stream.readable()).await {
            Ok(Ok(())) => {}
            Err(_) if socket.info().is_ok_and(|info| info.is_owed()) => continue,
            Ok(Err(_)) | Err(_) => return,
        }
        match stream.try_read(&mut piece) {
            Ok(0) => return,
            Ok(read) => discarded += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a peer is kept that acknowledges `bytes` every `seconds`; at most an hour.
    fn kept(bytes: u64, seconds: u64) -> Duration {
        let mut progress = TakenBytes::begin(Duration::ZERO);
        let mut now = Duration::ZERO;
        for acked in (1..).map(|acks| acks * bytes) {
            let end = progress.since + Patience::default().sending;
            now += Duration::from_secs(seconds);
            if now > end || now > Duration::from_secs(3600) {
                return now.min(end);
            }
            progress.update(now, acked, true);
        }
        unreachable!("acknowledgements do not end")
    }

    #[test]
    fn a_peer_has_to_take_a_little_in_each_minute() {
        for (bytes, seconds) in [(1, 20), (MIN_PROGRESS - 1, 60), (16, 1), (1_000_000, 61)] {
            let minute = Duration::from_secs(60);
            assert_eq!(kept(bytes, seconds), minute, "{bytes} {seconds}");
        }
        for (bytes, seconds) in [(MIN_PROGRESS, 60), (18, 1), (300, 15)] {
            let hour = Duration::from_secs(3600);
            assert!(kept(bytes, seconds) >= hour, "{bytes} {seconds}");
        }
    }

    #[test]
    fn a_peer_that_is_owed_nothing_has_no_time_to_keep() {
        let mut progress = TakenBytes::begin(Duration::ZERO);
        let later = Duration::from_secs(600);
        progress.update(later, 1, false);
        assert_eq!(progress.since, later);
    }
}
