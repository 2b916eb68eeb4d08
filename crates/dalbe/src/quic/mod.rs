//! QUIC connections (quinn): what is to be seen of them, and their receive window.
//!
//! Both ends of QUIC's control are in user space, so the laws need neither Linux nor root here.
//!
//! - [`QuicReceiver`]: a connection that receives. Its receive window is the credit of the
//!   connection (RFC 9000, section 4.1).
//! - [`QuicSender`]: what a connection that sends is to do.
//! - `watched`: a congestion control that also tells round-trip times.
//! - `socket`: a UDP socket that counts what arrives.
//!
//! What arrives is seen when this process reads it, and by how long the path takes: a packet that
//! grants credit is acknowledged, and QUIC tells how long the acknowledgement was held back.
//! Unlike TCP's timestamps, QUIC's packets do not tell when they left. So there is no one-way
//! delay, and a queue on the way to the server looks like one on the way from it. Vulture's
//! variations of packet intervals cannot be told.

mod sender;
mod socket;
mod watched;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use self::sender::{QuicSender, SenderFactory};
pub use self::socket::CountingSocket;
pub use self::watched::WatchedFactory;
use crate::receive_window::PacketArrivals;
use crate::socket::TcpInfo;

/// Bytes of a packet of data that are not data: its header, its authentication tag, and the header
/// of a frame.
const OVERHEAD: u64 = 40;

/// The window of a connection that nothing holds back, bytes: 1 Gbit/s over half a second.
pub const FREE_WINDOW: u32 = 64 << 20;

/// Times are compared with each other only.
const TICK: Duration = Duration::from_micros(1);

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
    rtts: Mutex<Rtts>,
}

/// Round-trip times of packets.
#[derive(Debug, Default)]
struct Rtts {
    /// The smoothed one when it was last looked at.
    smoothed: Option<Duration>,
    /// The least since it was last asked for.
    least: Option<Duration>,
    /// The latest that was given.
    latest: Option<Duration>,
}

impl Seen {
    /// A piece of a stream has arrived before one that comes before it.
    pub fn out_of_order(&self) {
        self.0.out_of_order.fetch_add(1, Ordering::Relaxed);
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
            smoothed: Some(smoothed),
            ..Rtts::default()
        };
    }

    fn rtts(&self) -> MutexGuard<'_, Rtts> {
        let rtts = self.0.rtts.lock();
        rtts.unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the smoothed round-trip time (RFC 9002, section 5.3): it moves by an eighth of the
    /// way to the latest.
    fn smoothed(&self, now: Duration) {
        let mut rtts = self.rtts();
        let Some(before) = rtts.smoothed else {
            return;
        };
        rtts.smoothed = Some(now);
        if before != now {
            let latest = (8 * now).saturating_sub(7 * before);
            rtts.least = Some(rtts.least.map_or(latest, |least| least.min(latest)));
        }
    }

    /// The least since it was last asked for; if there was none, the last one that was given, and
    /// `false`.
    fn take_rtt(&self) -> (Option<Duration>, bool) {
        let mut rtts = self.rtts();
        let fresh = rtts.least.take();
        rtts.latest = fresh.or(rtts.latest);
        (rtts.latest, fresh.is_some())
    }
}

/// A QUIC connection that receives. Clones are the same connection.
#[derive(Debug, Clone)]
pub struct QuicReceiver {
    connection: quinn::Connection,
    local: SocketAddr,
    seen: Seen,
    /// The round-trip time of the handshake.
    handshake: Duration,
    /// The window on offer, bytes.
    window: Arc<AtomicU32>,
}

impl QuicReceiver {
    /// A connection that has just been opened, whose socket and congestion control tell `seen`,
    /// with this receive window, bytes.
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
        Ok(Self {
            local: endpoint.local_addr()?,
            handshake: connection.rtt(),
            connection,
            seen,
            window: Arc::new(AtomicU32::new(window)),
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

    /// What it has seen.
    #[must_use]
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// The window on offer, bytes.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.window.load(Ordering::Relaxed)
    }

    /// Sets the window, bytes. The sender may use what it was granted before. What has been read
    /// of it, quinn grants again in eighths of the window. What it grants here it tells at once,
    /// and the answer tells the round-trip time: so there is always something, if only a byte.
    pub(crate) fn set_window(&self, bytes: u32) {
        let before = self.window.swap(bytes, Ordering::Relaxed);
        if bytes <= before {
            let less = bytes.saturating_sub(1);
            self.connection.set_receive_window(less.into());
        }
        self.connection.set_receive_window(bytes.into());
    }

    /// Lets the sender send as much as it likes.
    pub(crate) fn release(&self) {
        self.set_window(FREE_WINDOW);
    }

    /// What the kernel would report of a TCP connection.
    #[must_use]
    pub fn info(&self) -> TcpInfo {
        let seen = &self.seen.0;
        let (rtt, _) = self.latest_rtt();
        TcpInfo {
            rcv_mss: seen.largest.load(Ordering::Relaxed),
            rtt: Some(self.handshake),
            rcv_rtt: rtt,
            bytes_received: Some(seen.arrived.load(Ordering::Relaxed)),
            data_segs_in: Some(seen.packets.load(Ordering::Relaxed)),
            rcv_ooopack: Some(seen.out_of_order.load(Ordering::Relaxed)),
            rcv_wnd: Some(self.window()),
            ..TcpInfo::NOTHING
        }
    }

    fn latest_rtt(&self) -> (Option<Duration>, bool) {
        let rtts = self.seen.rtts();
        (rtts.least.or(rtts.latest), rtts.least.is_some())
    }

    /// What has arrived since this was last asked.
    pub(crate) fn arrivals(&self) -> PacketArrivals {
        self.seen.smoothed(self.connection.rtt());
        let (rtt, is_fresh) = self.seen.take_rtt();
        let rtt = rtt.filter(|_| is_fresh);
        PacketArrivals {
            delay_us: rtt.map(|rtt| i64::try_from(rtt.as_micros()).unwrap_or(i64::MAX)),
            tick: TICK,
            ..PacketArrivals::default()
        }
    }
}
