//! QUIC connections (quinn): what is to be seen of them, and their receive window.
//!
//! Both ends of QUIC's control are in user space, so the laws need neither Linux nor root here.
//!
//! - [`QuicReceiver`]: a connection that receives. Its receive window is the credit of the
//!   connection (RFC 9000, section 4.1).
//! - [`QuicSender`]: what a connection that sends is to do.
//! - `credit`: what a sender is granted.
//! - `pace`: when packets are to leave.
//! - `path_state`: what a sender has under way.
//! - `watched`: a congestion control that also tells round-trip times.
//! - `socket`: a UDP socket: tells what arrives, and when; keeps what leaves until its time.
//!
//! What is seen is how long the path takes: from a grant of credit to the data that needed it, and
//! from a packet to its acknowledgement, for QUIC tells how long that was held back. Datagrams that
//! quinn takes to have come at another time than they have tell nothing. What the other end's process
//! takes is part of the path: that makes times of packets less exact than TCP's.
//! Unlike TCP's timestamps, QUIC's packets do not tell when they left. So there is no one-way
//! delay, and a queue on the way to the server looks like one on the way from it. Vulture's
//! variations of packet intervals cannot be told.

mod credit;
mod pace;
mod path_state;
mod sender;
mod socket;
mod watched;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::credit::Credit;
pub use self::sender::QuicSender;
pub use self::socket::{ArrivalRuntime, ArrivalSocket};
pub use self::watched::WatchedFactory;
use crate::socket::TcpInfo;

/// Bytes of a packet of data that are not data: its header, its authentication tag, and the header
/// of a frame.
const OVERHEAD: u64 = 40;

/// The window of a connection that nothing holds back, bytes: 1 Gbit/s over half a second.
pub const FREE_WINDOW: u32 = 64 << 20;

/// Bytes that the kernel should keep until they are read: 30 ms at 1 Gbit/s.
pub const RECEIVE_BUFFER: usize = 4 << 20;

/// The window that quinn is told of, to grant so many bytes.
fn window_of(bytes: u64) -> quinn::VarInt {
    quinn::VarInt::from_u64(credit::LEAST + bytes).unwrap_or(quinn::VarInt::MAX)
}

#[allow(
    clippy::disallowed_methods,
    reason = "when something is read no argument can tell"
)]
fn now() -> Instant {
    Instant::now()
}

/// What a connection has seen. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    /// Bytes of data that have arrived.
    arrived: AtomicU64,
    /// Packets that carried data.
    packets: AtomicU32,
    /// The largest of them, bytes of data.
    largest: AtomicU32,
    /// Pieces that have arrived beyond a hole.
    out_of_order: AtomicU32,
    /// Whether what was read last has come at another time than quinn takes it to have.
    is_inexact: AtomicBool,
    rtts: Mutex<Rtts>,
}

/// Round-trip times of packets.
#[derive(Debug, Default)]
struct Rtts {
    /// By the smoothed one.
    smoothed: LatestRtt,
    /// The least since it was last asked for.
    least: Option<Duration>,
    /// The latest that was given.
    latest: Option<Duration>,
    /// The least of data, and the least of acknowledgements.
    bases: [Option<Duration>; 2],
    /// Whether what was read when the smoothed one was taken last tells nothing.
    was_inexact: bool,
}

/// What connections take for the round-trip time before the first one. RFC 9002, section 6.2.2,
/// has 333 ms: then a first packet that is lost is sent again after a second, which is too late
/// where TCP waits in reserve. On a longer path than this, it is sent twice.
pub const INITIAL_RTT: Duration = Duration::from_millis(100);

/// The latest round-trip time, without the time for which an acknowledgement was held back: quinn
/// tells only the smoothed one, which moves by an eighth of the way to it (RFC 9002, section 5.3).
#[derive(Debug, Clone, Copy, Default)]
struct LatestRtt(Option<Duration>);

impl LatestRtt {
    /// Takes the smoothed one. To be called after each update. `None` if there was none.
    fn update(&mut self, smoothed: Duration) -> Option<Duration> {
        let before = self.0.replace(smoothed)?;
        match before {
            // The first one is taken as it is.
            INITIAL_RTT => Some(smoothed).filter(|_| smoothed != INITIAL_RTT),
            before if before == smoothed => None,
            before => Some((8 * smoothed).saturating_sub(7 * before)),
        }
    }
}

impl Seen {
    /// Datagrams of this size have come, `bytes` together.
    fn datagrams(&self, bytes: usize, size: usize) {
        let (mut left, size) = (bytes, size.max(1));
        while left > 0 {
            self.datagram(left.min(size) as u64);
            left = left.saturating_sub(size);
        }
    }

    /// Whether what this process reads now has come when quinn takes it to have.
    fn read(&self, are_exact: bool) {
        self.0.is_inexact.store(!are_exact, Ordering::Relaxed);
    }

    /// Whether what this process reads now tells nothing of the path, as its time is not known.
    fn is_inexact(&self) -> bool {
        self.0.is_inexact.load(Ordering::Relaxed)
    }

    fn datagram(&self, bytes: u64) {
        let Some(data) = bytes.checked_sub(OVERHEAD).filter(|&data| data > 0) else {
            return;
        };
        self.0.arrived.fetch_add(data, Ordering::Relaxed);
        self.0.packets.fetch_add(1, Ordering::Relaxed);
        let data = u32::try_from(data).unwrap_or(u32::MAX);
        self.0.largest.fetch_max(data, Ordering::Relaxed);
    }

    /// From now on, the smoothed round-trip time moves from this one.
    fn begin(&self, smoothed: Duration) {
        *self.rtts() = Rtts {
            smoothed: LatestRtt(Some(smoothed)),
            ..Rtts::default()
        };
    }

    fn rtts(&self) -> MutexGuard<'_, Rtts> {
        let rtts = self.0.rtts.lock();
        rtts.unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the smoothed round-trip time as it is now. A congestion control hears of
    /// acknowledgements before this time does, so it may be that of those before.
    fn smoothed(&self, now: Duration) {
        let is_inexact = self.is_inexact();
        let mut rtts = self.rtts();
        let was_inexact = std::mem::replace(&mut rtts.was_inexact, is_inexact);
        let latest = rtts.smoothed.update(now);
        if let Some(latest) = latest.filter(|_| !is_inexact && !was_inexact) {
            rtts.least = Some(rtts.least.map_or(latest, |least| least.min(latest)));
        }
    }

    /// The round-trip time of data since this was last asked. A sender that has to wait for a grant
    /// shows it by the data (`granted`). One that does not shows it by what it acknowledges, which
    /// is by the time of a packet shorter: an acknowledgement is small.
    fn take_rtt(&self, granted: Option<Duration>) -> Option<Duration> {
        let mut rtts = self.rtts();
        let acknowledged = rtts.least.take();
        for (base, rtt) in [(0, granted), (1, acknowledged)] {
            rtts.bases[base] = rtts.bases[base].into_iter().chain(rtt).min();
        }
        let [data, small] = rtts.bases.map(Option::unwrap_or_default);
        let packet = data.saturating_sub(small);
        let acknowledged = acknowledged.map(|rtt| rtt + packet);
        let rtt = granted.into_iter().chain(acknowledged).min();
        rtts.latest = rtt.or(rtts.latest);
        rtt
    }
}

/// A QUIC connection that receives. Clones are the same connection.
#[derive(Debug, Clone)]
pub struct QuicReceiver {
    connection: quinn::Connection,
    local: SocketAddr,
    seen: Seen,
    /// The round-trip time of the handshake; `None` if it was not over yet.
    handshake: Option<Duration>,
    credit: Arc<Mutex<Credit>>,
    has_lost: Arc<AtomicBool>,
    opened: Instant,
}

impl QuicReceiver {
    /// A connection that was opened just now, or is being opened, with this receive window, bytes. Its
    /// socket and congestion control tell `seen`.
    ///
    /// # Errors
    /// Its socket has no address.
    pub fn new(
        connection: quinn::Connection,
        endpoint: &quinn::Endpoint,
        seen: Seen,
        window: u32,
    ) -> io::Result<Self> {
        seen.begin(connection.rtt());
        // From now on, all that is read counts towards what was granted before.
        connection.set_receive_window(window_of(0));
        let credit = Credit::new(window.into(), window < FREE_WINDOW);
        Ok(Self {
            local: endpoint.local_addr()?,
            handshake: Some(connection.rtt()).filter(|&rtt| rtt != INITIAL_RTT),
            connection,
            seen,
            credit: Arc::new(Mutex::new(credit)),
            has_lost: Arc::default(),
            opened: now(),
        })
    }

    /// The address of this end, and that of the other one.
    #[must_use]
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.local, self.connection.remote_address())
    }

    /// The connection itself.
    #[must_use]
    pub fn connection(&self) -> &quinn::Connection {
        &self.connection
    }

    /// The window on offer, bytes.
    #[must_use]
    pub fn window(&self) -> u32 {
        u32::try_from(self.credit().window()).unwrap_or(u32::MAX)
    }

    /// Since it was opened.
    fn now(&self) -> Duration {
        now().saturating_duration_since(self.opened)
    }

    fn credit(&self) -> MutexGuard<'_, Credit> {
        self.credit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece has been read from a stream of the connection, in its order or not.
    pub fn read(&self, bytes: usize, in_order: bool) {
        if !in_order {
            self.seen.0.out_of_order.fetch_add(1, Ordering::Relaxed);
        }
        let tells_rtt = in_order && !self.seen.is_inexact();
        let now = self.now();
        self.grant(|credit| credit.read(now, bytes as u64, tells_rtt));
    }

    /// Nobody reads the rest of a stream that has not ended. How much of it comes is not known then,
    /// so the connection is not one for further streams.
    pub fn lose(&self) {
        self.has_lost.store(true, Ordering::Relaxed);
        let now = self.now();
        self.grant(|credit| credit.lose(now));
    }

    /// Whether [`Self::lose`] was called.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.has_lost.load(Ordering::Relaxed)
    }

    /// Sets the window, bytes. The sender may use what it was granted before. Each grant is
    /// acknowledged, which tells the round-trip time.
    pub(crate) fn set_window(&self, bytes: u32, is_held: bool) {
        let now = self.now();
        self.grant(|credit| credit.set_window(now, bytes.into(), is_held));
    }

    /// quinn tells a larger window at once, and takes a smaller one back out of what is read. Of two
    /// grants at the same time, it would tell only the larger one.
    fn grant(&self, change: impl FnOnce(&mut Credit) -> u64) {
        let mut credit = self.credit();
        let bytes = change(&mut credit);
        if bytes > 0 {
            self.connection.set_receive_window(window_of(bytes));
            self.connection.set_receive_window(window_of(0));
        }
    }

    /// Lets the sender send as much as it likes.
    pub(crate) fn release(&self) {
        self.set_window(FREE_WINDOW, false);
    }

    /// What the kernel would report of a TCP connection.
    #[must_use]
    pub fn info(&self) -> TcpInfo {
        let seen = &self.seen.0;
        let (rtt, small) = {
            let rtts = self.seen.rtts();
            (rtts.latest, rtts.bases[1])
        };
        TcpInfo {
            rcv_mss: seen.largest.load(Ordering::Relaxed),
            rtt: self.handshake,
            rcv_rtt: rtt,
            min_rtt: small,
            bytes_received: Some(seen.arrived.load(Ordering::Relaxed)),
            data_segs_in: Some(seen.packets.load(Ordering::Relaxed)),
            rcv_ooopack: Some(seen.out_of_order.load(Ordering::Relaxed)),
            rcv_wnd: Some(self.window()),
            ..TcpInfo::NOTHING
        }
    }

    /// The round-trip time of what has arrived since this was last asked; `None` if nothing tells it.
    pub(crate) fn take_rtt(&self) -> Option<Duration> {
        self.seen.smoothed(self.connection.rtt());
        self.seen.take_rtt(self.credit().take_rtt())
    }
}
