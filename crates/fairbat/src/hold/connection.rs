//! One connection of another program: what it moves, and its levers.

use std::io;
use std::net::IpAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use dalbe::receive_window::{ArrivalWatch, ReceiveWindowState, WindowLever};
use dalbe::sender::{SenderCoupling, SenderLever, SenderLevers};
use dalbe::socket::{TcpInfo, TcpSocket};
use dalbe::weight::FlowTarget;
use jiff::Timestamp;

use super::connecting::Connecting;
use super::handle::Handle;
use super::scope::FoundSocket;
use crate::clock::Clock;
use crate::lane::places::Place;

/// Time between two updates while something moves.
const PERIOD: Duration = Duration::from_millis(20);

/// The same of a connection on which nothing moves.
const REST_PERIOD: Duration = Duration::from_millis(100);

/// Without movement for this time, a connection rests. What comes next is another response.
const REST: Duration = Duration::from_secs(1);

/// Whoever has more segments unacknowledged than a request takes is sending.
const SENDING_SEGMENTS: u32 = 4;

/// The moment of the next sample of what is received. It is the same for all connections: what
/// each of them carries in a round trip adds up only if they are counted at the same time.
fn next_sample(now: Duration) -> Duration {
    let samples = now.div_duration_f64(PERIOD) as u32;
    PERIOD * samples.saturating_add(1)
}

/// What a connection has moved since the last update.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moved {
    pub(super) received: u64,
    pub(super) sent: u64,
    /// Round-trip time, if anything has moved.
    pub(super) rtt: Option<Duration>,
}

/// A connection under control.
#[derive(Debug)]
pub(super) struct ForeignConnection {
    pub(super) peer: IpAddr,
    /// The number of its group.
    pub(super) group: usize,
    handle: Handle,
    pub(super) receive: Option<WindowLever>,
    send: Option<SenderLever>,
    place: Place,
    received: u64,
    sent: u64,
    moved_at: Duration,
    received_at: Duration,
    sent_at: Duration,
    send_at: Duration,
    watch: Option<JoinHandle<ArrivalWatch>>,
    pub(super) update_at: Duration,
}

impl ForeignConnection {
    /// `receive` is its lever on what it receives, if there is one.
    pub(super) fn new(
        now: Duration,
        peer: IpAddr,
        connecting: Connecting,
        receive: Option<WindowLever>,
        place: Place,
    ) -> Self {
        Self {
            peer,
            group: connecting.group,
            handle: connecting.handle,
            receive,
            send: None,
            place,
            received: 0,
            sent: 0,
            moved_at: now,
            received_at: now,
            sent_at: now,
            send_at: now,
            watch: None,
            update_at: now,
        }
    }

    /// What it has moved so far was before it was held.
    pub(super) fn forget_past(&mut self) {
        if let Some(info) = self.handle.socket().and_then(|socket| socket.info().ok()) {
            self.count(&info);
        }
    }

    /// Whether it is this socket.
    pub(super) fn is(&self, socket: &TcpSocket) -> bool {
        socket.cookie().ok() == Some(self.handle.cookie)
    }

    /// It was found there too.
    pub(super) fn found(&mut self, found: &FoundSocket) {
        self.handle.add(found);
    }

    /// Whether it is not where it was.
    pub(super) fn is_gone(&mut self) -> bool {
        self.handle.socket().is_none()
    }

    /// Its work is due at this moment from now on.
    pub(super) fn work_for(&mut self, due: Timestamp) {
        self.place.work_for(due);
    }

    /// What its receive window does; `None` while nothing comes.
    pub(super) fn state(&self, now: Duration) -> Option<ReceiveWindowState> {
        let receive = self.receive.as_ref()?;
        (now < self.received_at + REST).then(|| receive.state())
    }

    /// Whether it yields to other traffic.
    pub(super) fn is_yielding(&self, now: Duration) -> bool {
        let receives = self.state(now) == Some(ReceiveWindowState::Yielding);
        let sends = self
            .send
            .as_ref()
            .is_some_and(|lever| now < self.moved_at + REST && lever.is_yielding() == Some(true));
        receives || sends
    }

    /// Whether it sends more than requests.
    pub(super) fn sends(&self, now: Duration) -> bool {
        self.send.is_some() && now < self.sent_at + REST
    }

    /// So many connections, this one among them, send to the same host.
    pub(super) fn set_senders(&mut self, connections: u32) {
        if let Some(lever) = &mut self.send {
            lever.set_connections(connections);
        }
    }

    /// Takes a sample and updates the levers; `None` if the socket is not where it was. It weighs
    /// at most so much.
    ///
    /// # Errors
    /// A lever fails: the connection cannot be held.
    pub(super) fn update(
        &mut self,
        now: Duration,
        clock: Clock,
        levers: &SenderLevers,
        most: f64,
    ) -> io::Result<Option<Moved>> {
        let Some(socket) = self.handle.socket() else {
            return Ok(None);
        };
        let info = socket.info()?;
        let moved = self.count(&info);
        if moved.sent > 0 || info.is_owed() {
            self.sent_at = now;
        }
        if moved.received > 0 || self.sent_at == now {
            self.moved_at = now;
        }
        if moved.received + moved.sent == 0 && now >= self.moved_at + REST {
            self.update_at = now + REST_PERIOD;
            return Ok(Some(moved));
        }
        let place = self.place.target(now);
        let target = FlowTarget {
            w: place.w.min(most),
            ..place
        };
        if moved.received > 0 || now < self.received_at + REST {
            self.receive(now, clock, &socket, target, moved.received > 0)?;
        }
        self.send(now, &socket, &info, target, levers)?;
        self.update_at = next_sample(now).min(self.send_at.max(now));
        Ok(Some(moved))
    }

    fn count(&mut self, info: &TcpInfo) -> Moved {
        let received = info.bytes_received.unwrap_or(0);
        let sent = info.bytes_acked.unwrap_or(0);
        let moved = Moved {
            received: received.saturating_sub(self.received),
            sent: sent.saturating_sub(self.sent),
            rtt: None,
        };
        (self.received, self.sent) = (received, sent);
        let rtt = if moved.sent > moved.received {
            info.rtt
        } else {
            info.path_rtt()
        };
        Moved {
            rtt: rtt.filter(|_| moved.received + moved.sent > 0),
            ..moved
        }
    }

    /// Updates the lever on what it receives. Without new data too: the law counts time.
    fn receive(
        &mut self,
        now: Duration,
        clock: Clock,
        socket: &TcpSocket,
        target: FlowTarget,
        is_new: bool,
    ) -> io::Result<()> {
        let Some(lever) = &mut self.receive else {
            return Ok(());
        };
        if now >= self.received_at + REST {
            lever.restart(socket)?;
        }
        if is_new {
            self.received_at = now;
        }
        lever.update(now, socket, target, None)?;
        if self.watch.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(Ok(watch)) = self.watch.take().map(JoinHandle::join)
        {
            lever.take_watch(now, &watch);
        }
        if self.watch.is_none() && lever.begin_watch(now) {
            self.watch = self.handle.watch(clock);
        }
        Ok(())
    }

    /// Updates the lever on what it sends, once it sends more than requests.
    fn send(
        &mut self,
        now: Duration,
        socket: &TcpSocket,
        info: &TcpInfo,
        target: FlowTarget,
        levers: &SenderLevers,
    ) -> io::Result<()> {
        let is_sending = info.unacked > SENDING_SEGMENTS || info.notsent_bytes > Some(0);
        if self.send.is_none() && is_sending {
            self.send = Some(levers.take(socket, SenderCoupling::EQUAL));
            self.send_at = now;
        }
        match &mut self.send {
            Some(lever) if now >= self.send_at => {
                self.send_at = now + lever.update(now, socket, target)?;
            }
            Some(_) => {}
            None => self.send_at = now + PERIOD,
        }
        Ok(())
    }

    /// Lets it go: it is as free as any other connection.
    pub(super) fn release(mut self) {
        let Some(socket) = self.handle.socket() else {
            return;
        };
        if self.receive.is_some() {
            WindowLever::release(&socket);
        }
        if let Some(Err(error)) = self.send.as_mut().map(|lever| lever.release(&socket)) {
            tracing::debug!(%error, "a connection was not let go whole");
        }
    }
}
