//! The connections that a carrier sends over: each one's lever follows the
//! lane, and the lane hears what has arrived.
//!
//! A duplicate of a descriptor keeps a connection open that its owner has
//! closed, so it is let go where nothing has moved for a while, and looked for
//! again by its addresses.

use std::net::SocketAddr;
use std::time::Duration;

use dalbe::receive_window::FlowTarget;
use dalbe::sender::{Carried, SenderLever};
use dalbe::socket::TcpSocket;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::http::Opened;
use crate::lane::Lane;

/// All connections are looked at this often.
const LOOK: Duration = Duration::from_millis(200);

/// Looks at one connection are no nearer to each other than this.
const LOOK_LEAST: Duration = Duration::from_millis(1);

/// A connection on which nothing has moved for so long is let go.
const IDLE: Duration = Duration::from_secs(1);

/// Looks after the connections that are opened, until nobody opens any more and
/// all are gone.
pub(super) async fn look_after(mut opened: UnboundedReceiver<Opened>, lane: Lane) {
    let clock = Clock::start();
    let order = lane.order();
    let mut flows: Vec<Flow> = Vec::new();
    let mut look = tokio::time::interval(LOOK);
    loop {
        let next = flows.iter().filter_map(|flow| flow.look_at).min();
        tokio::select! {
            biased;
            new = opened.recv() => match new {
                Some(new) => flows.extend(Flow::new(new, clock.now())),
                None => break,
            },
            _ = look.tick() => survey(&mut flows, clock.now(), &lane),
            () = crate::download::sleep_until(clock, next) => {}
        }
        follow(&mut flows, clock.now(), &order);
    }
}

/// What has arrived since the last look, over all of them.
fn survey(flows: &mut Vec<Flow>, now: Duration, lane: &Lane) {
    let (mut bytes, mut rtts, mut windows) = (0_u64, Vec::new(), Vec::new());
    flows.retain_mut(|flow| match flow.look(now) {
        Some(seen) => {
            bytes += seen.bytes;
            rtts.extend(seen.rtt);
            windows.extend(seen.window);
            true
        }
        None => false,
    });
    let rtt = (!rtts.is_empty()).then(|| rtts.iter().sum::<Duration>() / rtts.len() as u32);
    lane.moved(bytes, rtt);
    if !windows.is_empty() {
        lane.sees_window(windows.iter().sum::<f64>() / windows.len() as f64);
    }
}

fn follow(flows: &mut [Flow], now: Duration, order: &watch::Receiver<FlowTarget>) {
    let order = *order.borrow();
    for flow in flows {
        if flow.look_at.is_some_and(|at| at <= now) {
            flow.follow(now, order);
        }
    }
}

/// One of them.
#[derive(Debug)]
struct Flow {
    ends: (SocketAddr, SocketAddr),
    /// While something moves.
    socket: Option<TcpSocket>,
    lever: SenderLever,
    carried: Carried,
    moved_at: Duration,
    /// When the lever wants to look at it again; `None` while there is nothing to
    /// look at, or it fails.
    look_at: Option<Duration>,
    /// When it is looked for again.
    search_at: Duration,
}

/// What a look has shown.
struct Seen {
    bytes: u64,
    rtt: Option<Duration>,
    /// The congestion window, bytes.
    window: Option<f64>,
}

impl Flow {
    fn new(opened: Opened, now: Duration) -> Option<Self> {
        let Opened { socket, lever, .. } = opened;
        let ends = (socket.local_addr().ok()?, socket.peer_addr().ok()?);
        let mut carried = Carried::default();
        if let Ok(info) = socket.info() {
            carried.update(&info);
        }
        Some(Self {
            ends,
            socket: Some(socket),
            lever,
            carried,
            moved_at: now,
            look_at: Some(now),
            search_at: now,
        })
    }

    /// `None` when it is gone.
    fn look(&mut self, now: Duration) -> Option<Seen> {
        if self.socket.is_none() {
            if now < self.search_at {
                return Some(Seen {
                    bytes: 0,
                    rtt: None,
                    window: None,
                });
            }
            self.search_at = now + IDLE;
            self.socket = Some(find(self.ends)?);
            self.look_at = Some(now);
        }
        let info = self.socket.as_ref()?.info().ok()?;
        let bytes = self.carried.since_last(&info);
        if bytes > 0 || info.is_owed() {
            self.moved_at = now;
        }
        if now >= self.moved_at + IDLE {
            // Whoever has it closes it in their own time.
            (self.socket, self.look_at) = (None, None);
            self.search_at = now + IDLE;
        }
        Some(Seen {
            bytes,
            rtt: info.rtt.filter(|_| self.socket.is_some()),
            window: self
                .socket
                .is_some()
                .then(|| f64::from(info.snd_cwnd) * f64::from(info.snd_mss)),
        })
    }

    fn follow(&mut self, now: Duration, order: FlowTarget) {
        self.look_at =
            self.socket
                .as_ref()
                .and_then(|socket| match self.lever.update(now, socket, order) {
                    Ok(after) => Some(now + after.max(LOOK_LEAST)),
                    Err(error) => {
                        tracing::debug!(%error, "the lever does not act any more");
                        None
                    }
                });
    }
}

fn find((local, peer): (SocketAddr, SocketAddr)) -> Option<TcpSocket> {
    TcpSocket::find_by_addresses(local, peer).ok().flatten()
}
