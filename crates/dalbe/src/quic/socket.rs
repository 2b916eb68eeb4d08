//! A UDP socket that counts what arrives, and tells when it did. What leaves waits for its time
//! (`pace`).
//!
//! quinn asks for the time, and takes it for that of all datagrams that it reads next. It is too late
//! for one that the kernel had for long because this process had no processor, and too early for one
//! that came after the question. Then round-trip times are too long or too short, and so are the
//! times for which acknowledgements are said to be held back. So [`ArrivalRuntime`] notes what quinn
//! was told. The socket makes it ask again where that is long ago, and compares the rest with what
//! the kernel tells.

use std::cell::Cell;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessageOwned as Message, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use tokio::io::Interest;

use super::Seen;
use super::pace::{PacedPoller, at_once};

/// A datagram that has come so much before the time that quinn was told tells nothing. What is off
/// by less counts as no queue anyway.
const MAX_EARLIER: Duration = Duration::from_millis(1);

/// The same of one that has come after it. The least round-trip time counts for long, and must not
/// be too short.
const MAX_LATER: Duration = Duration::from_micros(200);

thread_local! {
    /// The time that quinn was told last. It reads in the thread in which it has asked.
    static TOLD: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The tokio runtime for endpoints with an [`ArrivalSocket`].
#[derive(Debug)]
pub struct ArrivalRuntime;

impl Runtime for ArrivalRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        let now = TokioRuntime.now();
        TOLD.set(Some(now));
        now
    }
}

/// Whether quinn was told the time long ago.
fn is_stale() -> bool {
    let told = TOLD.get();
    told.is_some_and(|told| TokioRuntime.now().saturating_duration_since(told) > MAX_LATER)
}

/// Whether a datagram that the kernel has had for so long has come when quinn takes it to have.
fn is_exact(waited: Duration) -> bool {
    let (now, told) = (TokioRuntime.now(), TOLD.get());
    told.is_none_or(|told| {
        let since = now.saturating_duration_since(told);
        waited.saturating_sub(since) <= MAX_EARLIER && since.saturating_sub(waited) <= MAX_LATER
    })
}

/// The socket of an endpoint.
#[derive(Debug)]
pub struct ArrivalSocket {
    /// Sends, and has set what is to be told of each datagram.
    inner: Arc<dyn AsyncUdpSocket>,
    /// The same socket, to read from.
    reader: tokio::net::UdpSocket,
    seen: Seen,
}

impl ArrivalSocket {
    /// This socket; what arrives is told to `seen`.
    ///
    /// # Errors
    /// Those of dup(2), and of the options that QUIC needs.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(socket: std::net::UdpSocket, seen: Seen) -> io::Result<Self> {
        let reader = socket.try_clone()?;
        let inner = TokioRuntime.wrap_udp_socket(socket)?;
        // Without the kernel's times, a datagram counts as read when it arrived.
        let _ = setsockopt(&reader, sockopt::ReceiveTimestampns, &true);
        Ok(Self {
            inner,
            reader: tokio::net::UdpSocket::from_std(reader)?,
            seen,
        })
    }

    /// Reads what the kernel has: one datagram, or several of one size that it has put together.
    fn read(&self, buffer: &mut IoSliceMut<'_>) -> io::Result<(RecvMeta, Option<Duration>)> {
        // With room for more than what is asked for.
        let mut space = cmsg_space!([TimeSpec; 4], [libc::in6_pktinfo; 2], i32, i32);
        let mut parts = [IoSliceMut::new(buffer)];
        let received = recvmsg::<SockaddrStorage>(
            self.reader.as_raw_fd(),
            &mut parts,
            Some(&mut space),
            MsgFlags::empty(),
        )?;
        let from = received.address.as_ref().and_then(address);
        // This kind of error does not end quinn's endpoint.
        let from = from.ok_or(io::ErrorKind::ConnectionReset)?;
        let mut meta = RecvMeta {
            addr: from,
            len: received.bytes,
            stride: received.bytes,
            ecn: None,
            dst_ip: None,
        };
        let mut waited = None;
        // Without them, several datagrams look like one, which nobody can decrypt.
        for message in received.cmsgs().into_iter().flatten() {
            match message {
                Message::ScmTimestampns(at) => waited = waited_since(at),
                Message::UdpGroSegments(size) => {
                    meta.stride = usize::try_from(size).unwrap_or(meta.len);
                }
                Message::Ipv4Tos(bits) => meta.ecn = EcnCodepoint::from_bits(bits),
                Message::Ipv6TClass(bits) => {
                    meta.ecn = u8::try_from(bits).ok().and_then(EcnCodepoint::from_bits);
                }
                Message::Ipv4PacketInfo(info) => {
                    let octets = info.ipi_addr.s_addr.to_ne_bytes();
                    meta.dst_ip = Some(IpAddr::from(octets));
                }
                Message::Ipv6PacketInfo(info) => {
                    meta.dst_ip = Some(IpAddr::from(info.ipi6_addr.s6_addr));
                }
                _ => {}
            }
        }
        Ok((meta, waited))
    }
}

fn address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address
        .as_sockaddr_in()
        .map(|it| SocketAddr::V4((*it).into()));
    let v6 = || {
        address
            .as_sockaddr_in6()
            .map(|it| SocketAddr::V6((*it).into()))
    };
    v4.or_else(v6)
}

/// The time from then, by the wall clock, until now. None if that was set meanwhile.
fn waited_since(then: TimeSpec) -> Option<Duration> {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).ok()?;
    Duration::from(now).checked_sub(Duration::from(then))
}

impl AsyncUdpSocket for ArrivalSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        let inner = Arc::clone(&self.inner).create_io_poller();
        Box::pin(PacedPoller::new(inner))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.inner.try_send(transmit)
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.reader.poll_recv_ready(context))?;
            if is_stale() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let (mut count, mut are_exact) = (0, true);
            let read = self.reader.try_io(Interest::READABLE, || {
                for (buffer, meta) in bufs.iter_mut().zip(meta.iter_mut()) {
                    if count > 0 && is_stale() {
                        break;
                    }
                    let waited;
                    (*meta, waited) = match self.read(buffer) {
                        Ok(read) => read,
                        Err(error) if count == 0 => return Err(error),
                        // What is left is read, or fails, the next time.
                        Err(_) => break,
                    };
                    count += 1;
                    are_exact &= waited.is_none_or(is_exact);
                    self.seen.datagrams(meta.len, meta.stride);
                }
                self.seen.read(are_exact);
                Ok(())
            });
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(|()| count)),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        at_once(self.inner.max_transmit_segments())
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}
