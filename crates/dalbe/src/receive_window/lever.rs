//! Sets the window of a [`ReceiveWindowLimiter`] on a socket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::arrivals::ObservedConnection;
use super::pause::PROBE_SEGMENTS;
use super::shutter::Shutter;
use super::{
    ArrivalWatch, INITIAL_WINDOW, PathFindings, PathMemory, ReceiveWindowLimiter,
    ReceiveWindowState, ReceiverPolicy, WindowGroup,
};
use crate::ebpf::Observer;
use crate::socket::{ReceiverSocket, TcpInfo, TcpSocket};
use crate::weight::FlowTarget;
#[cfg(feature = "quic")]
use {super::PacketArrivals, crate::quic::QuicReceiver};

/// The buffer gets room for this many times the window, so that it changes
/// seldom.
const BUFFER_PER_WINDOW: f64 = 2.0;

/// Room in the buffer while reads are paused, segments. With a probe in the
/// buffer no other segment fits, and the window closes.
const PAUSED_BUFFER_SEGMENTS: f64 = PROBE_SEGMENTS + 0.95;

/// Room of an ordinary buffer, bytes: Linux's first window.
const ORDINARY_BUFFER: u32 = INITIAL_WINDOW as u32;

/// The last segments of a response are not paused: a TLS record (16 KiB) and
/// unread data.
const UNPAUSED_END_SEGMENTS: f64 = 16.0;

/// With a window of at most 4 MiB to expect, the kernel chooses a window scale of 7, and so steps
/// of 128 bytes (RFC 7323, section 2.3).
const FINE_WINDOW: u32 = 4 * 1024 * 1024;

/// Whether the owner does not read, so that the window may be closed. A clamp that is set then
/// would keep it closed. Before Linux 6.2 the kernel does not report the window.
fn may_be_shut(socket: &TcpSocket, info: &TcpInfo) -> bool {
    match info.rcv_wnd {
        Some(offered) => offered == 0,
        None => socket.unread().is_ok_and(|unread| unread > 0),
    }
}

/// How the windows of a lane are controlled.
#[derive(Debug, Clone, Default)]
pub struct WindowSettings {
    /// What decides while a flow yields.
    pub policy: ReceiverPolicy,
    /// Largest window that may be offered, bytes; `None` without a limit.
    pub max_window: Option<u32>,
    /// Sees single packets. Without it, the lever uses the kernel's round-trip
    /// times.
    pub observer: Option<Arc<Observer>>,
    /// Whether a connection is left to the kernel's own tuning until its weight is
    /// below 1 for the first time. This is for flows of which few are ever held back.
    /// From then on the connection is held, whatever its weight.
    ///
    /// If false, the caller holds the connection from the beginning
    /// ([`WindowLever::hold`]), and it never offers more than can soon be taken back.
    /// If true, the caller must not hold it, because then nothing would widen its
    /// window.
    pub holds_on_demand: bool,
    /// Whether another program reads what comes. It keeps no pauses: a window of less than one
    /// segment stands for them.
    pub is_foreign: bool,
}

/// A window in which no segment fits, bytes: the kernel makes it as large as its smallest, about
/// 1 kB. Such a connection carries about 6 kB/s. With a window scale of more than 9 (RFC 7323), a
/// segment fits after all, and it carries 20 kB/s.
const LESS_THAN_A_SEGMENT: u32 = 1;

/// A connection whose window is set.
#[derive(Debug, Clone, Copy)]
pub enum ReceivingConnection<'a> {
    /// By the options of its socket.
    Tcp(&'a TcpSocket),
    /// By its credit.
    #[cfg(feature = "quic")]
    Quic(&'a QuicReceiver),
}

impl<'a> From<&'a TcpSocket> for ReceivingConnection<'a> {
    fn from(socket: &'a TcpSocket) -> Self {
        Self::Tcp(socket)
    }
}

#[cfg(feature = "quic")]
impl<'a> From<&'a QuicReceiver> for ReceivingConnection<'a> {
    fn from(connection: &'a QuicReceiver) -> Self {
        Self::Quic(connection)
    }
}

impl ReceivingConnection<'_> {
    fn info(self) -> io::Result<TcpInfo> {
        match self {
            Self::Tcp(socket) => socket.info(),
            #[cfg(feature = "quic")]
            Self::Quic(connection) => Ok(connection.info()),
        }
    }

    /// Ends the kernel's own tuning of its window.
    fn hold(self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => WindowLever::hold(socket),
            #[cfg(feature = "quic")]
            Self::Quic(_) => Ok(()),
        }
    }
}

/// The receive window of one connection under control.
///
/// Make it as soon as the connection is open, call [`Self::hold`] unless
/// [`WindowSettings::holds_on_demand`] is set, and call [`Self::update`] every
/// few milliseconds while data arrives. It keeps no descriptor: each call gets
/// the socket.
#[derive(Debug, Clone)]
pub struct WindowLever {
    group: WindowGroup,
    limiter: ReceiveWindowLimiter,
    observed: Option<ObservedConnection>,
    settings: WindowSettings,
    /// The window the buffer has room for, bytes; 0 before the first sample.
    room: u32,
    /// Bytes that the connection had received at the last sample.
    received: u64,
    /// Whether the buffer holds no more than a probe.
    is_narrow: bool,
    /// While a foreign connection pauses.
    shutter: Option<Shutter>,
    /// Whether the window is still the kernel's.
    is_kernels: bool,
}

/// The window of a connection, and the pause that its reader must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowOffer {
    /// The window on offer, bytes.
    pub window: u32,
    /// The least time from one read to the next; `None` without any pause.
    /// Between two reads, the window closes. Over TLS, a read takes a whole
    /// record of up to 16 KiB, so the pause is between records.
    pub pause: Option<Duration>,
}

impl WindowLever {
    /// For a new connection of this group.
    #[must_use]
    pub fn new(settings: WindowSettings, group: &WindowGroup) -> Self {
        Self {
            limiter: ReceiveWindowLimiter::joining(settings.policy, group)
                .of_foreign(settings.is_foreign),
            group: group.clone(),
            observed: settings.observer.clone().map(ObservedConnection::new),
            room: 0,
            received: 0,
            is_narrow: false,
            shutter: None,
            is_kernels: settings.holds_on_demand,
            settings,
        }
    }

    /// Prepares a socket that is about to connect, if its lever will be foreign: the steps of its
    /// window will be fine enough to close it. The window stays below 8 MiB from then on.
    ///
    /// # Errors
    /// Not a socket.
    pub fn prepare(socket: &TcpSocket) -> io::Result<()> {
        socket.receiver().set_window_clamp(FINE_WINDOW)
    }

    /// Undoes [`Self::prepare`], as far as it can be: there will be no lever. Errors are ignored,
    /// because nothing could be done about them.
    pub fn forgo(socket: &TcpSocket) {
        let _ = socket.receiver().set_window_clamp(u32::MAX);
    }

    /// Ends the kernel's own tuning of the receive buffer, which would widen
    /// the window. Call it before the first data comes, unless
    /// [`WindowSettings::holds_on_demand`] is set.
    ///
    /// # Errors
    /// A kernel without `SO_BUF_LOCK` (Linux 5.14), or not a socket.
    pub fn hold(socket: &TcpSocket) -> io::Result<()> {
        socket.receiver().hold_receive_buffer(true)
    }

    /// Gives the buffer back to the kernel's own tuning, and with it the
    /// window. Errors are ignored, because nothing could be done about them.
    pub fn release<'a>(connection: impl Into<ReceivingConnection<'a>>) {
        let socket = match connection.into() {
            ReceivingConnection::Tcp(socket) => socket,
            #[cfg(feature = "quic")]
            ReceivingConnection::Quic(connection) => return connection.release(),
        };
        let _ = socket.receiver().make_room(ORDINARY_BUFFER);
        let _ = socket.receiver().hold_receive_buffer(false);
        // The kernel's own tuning widens the clamp as well, when the owner reads again.
        if !socket.info().is_ok_and(|info| may_be_shut(socket, &info)) {
            let _ = socket.receiver().set_window_clamp(u32::MAX);
        }
    }

    /// To be called before the first response that this lever sees, if the connection may have
    /// had one before: what another lever has held is not the kernel's any more.
    pub fn take_over<'a>(&mut self, connection: impl Into<ReceivingConnection<'a>>) {
        let is_held = match connection.into() {
            // A kernel without the option has held nothing.
            ReceivingConnection::Tcp(socket) => socket.receiver().holds_receive_buffer(),
            #[cfg(feature = "quic")]
            ReceivingConnection::Quic(_) => Ok(false),
        };
        let is_held = is_held.unwrap_or(false);
        self.is_kernels &= !is_held;
    }

    /// To be called before the next response. A connection that has received less
    /// than before is a new one between the same addresses: the lever starts over.
    ///
    /// # Errors
    /// Not a TCP socket.
    pub fn restart<'a>(
        &mut self,
        connection: impl Into<ReceivingConnection<'a>>,
    ) -> io::Result<()> {
        let received = connection.into().info()?.bytes_received.unwrap_or(0);
        if received < self.received {
            *self = Self::new(self.settings.clone(), &self.group);
        } else {
            self.limiter.restart(received);
        }
        Ok(())
    }

    /// The response is over or was given up. The next one finds an ordinary
    /// buffer.
    ///
    /// # Errors
    /// Not a TCP socket, or a kernel that lacks an option.
    pub fn rest<'a>(&mut self, connection: impl Into<ReceivingConnection<'a>>) -> io::Result<()> {
        match connection.into() {
            ReceivingConnection::Tcp(socket) => self.widen(socket),
            #[cfg(feature = "quic")]
            ReceivingConnection::Quic(_) => Ok(()),
        }
    }

    /// Ends a pause: the buffer is an ordinary one again.
    fn widen(&mut self, socket: &TcpSocket) -> io::Result<()> {
        if std::mem::take(&mut self.is_narrow) {
            self.room = ORDINARY_BUFFER;
            socket.receiver().make_room(ORDINARY_BUFFER)?;
        }
        Ok(())
    }

    /// What the window does to the flow, as of the last second.
    #[must_use]
    pub fn state(&self) -> ReceiveWindowState {
        self.limiter.state()
    }

    /// Whether the path limits the flow, and not its server, as of the last second.
    #[must_use]
    pub fn is_path_limited(&self) -> bool {
        self.limiter.is_path_limited()
    }

    /// What other connections over the same path have learnt.
    pub fn learn(&mut self, memory: PathMemory) {
        self.limiter.learn(memory);
    }

    /// What there is to learn from this connection.
    #[must_use]
    pub fn memory(&self, now: Duration) -> Option<PathMemory> {
        self.limiter.memory(now)
    }

    /// Bytes that the connection had received at the last sample, and whether
    /// there was a queue.
    #[must_use]
    pub fn progress(&self) -> (u64, bool) {
        (self.received, self.limiter.meets_queue())
    }

    /// The rate of the sender, byte/s, if the path has become free and a new
    /// connection would be faster; else `None`. `remaining` bytes are still to
    /// come. `None` under other policies than the default, and with a limit on
    /// the window.
    #[must_use]
    pub fn stale_rate(&self, now: Duration, remaining: u64) -> Option<f64> {
        let is_wanted =
            self.settings.policy == ReceiverPolicy::Delay && self.settings.max_window.is_none();
        is_wanted.then(|| self.limiter.stale_rate(now, remaining))?
    }

    /// Whether an [`ArrivalWatch`] is due. To be asked after each [`Self::update`] while
    /// none is under way.
    pub fn begin_watch(&mut self, now: Duration) -> bool {
        self.limiter.begin_watch(now)
    }

    /// Takes a watch that is over.
    pub fn take_watch(&mut self, now: Duration, watch: &ArrivalWatch) {
        self.limiter.take_watch(now, watch);
    }

    /// What the connection has seen of its path; `None` before the first round trip.
    #[must_use]
    pub fn findings(&self) -> Option<PathFindings> {
        self.limiter.findings()
    }

    /// Takes a sample of the connection and sets its window; `None` before the
    /// first measurement, or while the window is still the kernel's ([`WindowSettings::holds_on_demand`]).
    /// `remaining` bytes of the response at hand are still to come, if that is known.
    ///
    /// # Errors
    /// Not a TCP socket, or a kernel that lacks an option.
    pub fn update<'a>(
        &mut self,
        now: Duration,
        connection: impl Into<ReceivingConnection<'a>>,
        target: FlowTarget,
        remaining: Option<u64>,
    ) -> io::Result<Option<WindowOffer>> {
        let connection = connection.into();
        let info = connection.info()?;
        self.received = info.bytes_received.unwrap_or(0);
        let arrivals = match connection {
            ReceivingConnection::Tcp(socket) => {
                self.observed.as_mut().and_then(|w| w.arrivals(socket))
            }
            #[cfg(feature = "quic")]
            ReceivingConnection::Quic(connection) => {
                Some(PacketArrivals::of_rtt(connection.take_rtt()))
            }
        };
        if let Some(arrivals) = &arrivals {
            self.limiter.arrived(now, arrivals);
        }
        let Some(window) = self.limiter.update(now, &info, target, remaining) else {
            return Ok(None);
        };
        if self.is_kernels {
            if target.w >= 1.0 {
                return Ok(None);
            }
            connection.hold()?;
            self.is_kernels = false;
        }
        let window = self
            .settings
            .max_window
            .map_or(window, |max| window.min(max));
        let is_near_end = remaining
            .is_some_and(|bytes| (bytes as f64) < UNPAUSED_END_SEGMENTS * self.limiter.segment);
        let pause = self.limiter.pause().filter(|_| !is_near_end);
        let socket = match connection {
            ReceivingConnection::Tcp(socket) => socket,
            #[cfg(feature = "quic")]
            ReceivingConnection::Quic(connection) => {
                connection.set_window(window, target.w < 1.0);
                return Ok(Some(WindowOffer { window, pause }));
            }
        };
        if self.settings.is_foreign {
            let window = if self.is_closed(now, &info, pause) {
                LESS_THAN_A_SEGMENT
            } else {
                window
            };
            if !may_be_shut(socket, &info) {
                self.set_window(socket.receiver(), &info, window)?;
            }
            return Ok(Some(WindowOffer {
                window,
                pause: None,
            }));
        }
        if pause.is_none() {
            self.widen(socket)?;
        }
        let is_narrow = pause.is_some() && self.narrow(socket.receiver(), &info)?;
        if !is_narrow {
            self.set_window(socket.receiver(), &info, window)?;
        }
        let pause = pause.filter(|_| is_narrow);
        Ok(Some(WindowOffer { window, pause }))
    }

    /// Whether the window of a foreign connection is closed for this pause.
    fn is_closed(&mut self, now: Duration, info: &TcpInfo, pause: Option<Duration>) -> bool {
        let Some((pause, rtt)) = pause.zip(info.path_rtt()) else {
            self.shutter = None;
            return false;
        };
        let shutter = self.shutter.get_or_insert(Shutter::new(now, self.received));
        // While others have their turn, nothing is to be seen by a probe.
        !shutter.update(now, self.received, rtt, pause) || self.limiter.waits()
    }

    fn set_window(
        &mut self,
        receiver: ReceiverSocket<'_>,
        info: &TcpInfo,
        window: u32,
    ) -> io::Result<()> {
        if window > self.room && self.settings.max_window.is_none() {
            let room = (f64::from(window) * BUFFER_PER_WINDOW) as u32;
            receiver.make_room(room)?;
            self.room = room;
        }
        // A clamp set while the window is closed would keep it closed.
        if info.rcv_wnd == Some(0) {
            return Ok(());
        }
        receiver.set_window_clamp(window)
    }

    /// Narrows the buffer to one probe, and says whether it is that narrow. It
    /// waits until the window on offer is used up: otherwise the kernel would
    /// drop data that it has offered to take. Before Linux 6.2 the kernel does not
    /// report that window, and the buffer stays as it is.
    fn narrow(&mut self, receiver: ReceiverSocket<'_>, info: &TcpInfo) -> io::Result<bool> {
        let segment = self.limiter.segment;
        let room = (PAUSED_BUFFER_SEGMENTS * segment) as u32;
        let is_used_up = info
            .rcv_wnd
            .is_some_and(|offered| (1..=room).contains(&offered));
        if !self.is_narrow && is_used_up && self.settings.max_window.is_none() {
            receiver.leave_room(room)?;
            receiver.set_window_clamp((PROBE_SEGMENTS * segment) as u32)?;
            self.is_narrow = true;
        }
        Ok(self.is_narrow)
    }
}
