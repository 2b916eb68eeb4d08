//! The connections that a client sends over: the sender lever of each follows
//! the lane's target, and the lane hears how many bytes have arrived.
//!
//! A duplicate of a descriptor keeps a connection open that its owner has closed.
//! So it is closed when nothing has moved for a while. Later it is looked for
//! again by its addresses.

use std::net::SocketAddr;
use std::time::Duration;

use dalbe::sender::{DeliveredBytes, SenderLever};
use dalbe::socket::TcpSocket;
use tokio::sync::mpsc::UnboundedReceiver;

use super::sending::{NewConnection, SendingEnd, update_lever};
use crate::clock::Clock;
use crate::lane::places::Place;
use crate::lane::{Lane, Service};

/// Interval at which all connections are sampled for the lane.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// Time without movement after which the duplicate of a descriptor is closed, and
/// time between two searches for the connection.
const IDLE: Duration = Duration::from_secs(1);

/// Follows `lane` with the connections that come through `opened`, until no more
/// can come. They work for transfers that are served like `service`.
pub(crate) async fn follow_lane(
    mut opened: UnboundedReceiver<NewConnection>,
    lane: Lane,
    service: Service,
) {
    let clock = Clock::start();
    let mut flows: Vec<SendingConnection> = Vec::new();
    let mut samples = tokio::time::interval(SAMPLE_INTERVAL);
    loop {
        let next = flows.iter().filter_map(|flow| flow.update_at).min();
        tokio::select! {
            biased;
            new = opened.recv() => match new {
                Some(new) => flows.extend(SendingConnection::new(new, lane.take_place(service), clock.now())),
                None => break,
            },
            _ = samples.tick() => sample(&mut flows, clock.now(), &lane, service),
            () = clock.sleep_until(next) => {}
        }
        let now = clock.now();
        for flow in &mut flows {
            if flow.update_at.is_some_and(|at| at <= now) {
                flow.update(now, &lane);
            }
        }
    }
}

/// Tells the lane what all connections together have moved since the last
/// sample, with the means of their round-trip times, congestion
/// windows and back-off scales.
fn sample(flows: &mut Vec<SendingConnection>, now: Duration, lane: &Lane, service: Service) {
    let (mut bytes, mut rtts, mut windows, mut scales) = (0_u64, vec![], vec![], vec![]);
    flows.retain_mut(|flow| match flow.sample(now) {
        Some(sample) => {
            bytes += sample.bytes;
            rtts.extend(sample.rtt);
            windows.extend(sample.congestion_window);
            scales.extend(sample.g_ms);
            true
        }
        None => false,
    });
    let rtt = (!rtts.is_empty()).then(|| rtts.iter().sum::<Duration>() / rtts.len() as u32);
    lane.moved(bytes, rtt, service);
    if let Some(window) = mean(&windows) {
        lane.set_window(window, mean(&scales));
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// One connection.
#[derive(Debug)]
struct SendingConnection {
    local: SocketAddr,
    peer: SocketAddr,
    /// `None` while nothing moves.
    socket: Option<TcpSocket>,
    lever: SenderLever,
    place: Place,
    delivered: DeliveredBytes,
    moved_at: Duration,
    /// The next update of the lever; `None` while there is no socket, or after
    /// the lever has failed.
    update_at: Option<Duration>,
    /// The next search for the connection.
    search_at: Duration,
}

/// What one connection has done since the last sample.
#[derive(Default)]
struct FlowSample {
    bytes: u64,
    rtt: Option<Duration>,
    /// Bytes.
    congestion_window: Option<f64>,
    /// CDG's back-off scale.
    g_ms: Option<f64>,
}

impl SendingConnection {
    fn new(opened: NewConnection, place: Place, now: Duration) -> Option<Self> {
        let (socket, lever) = match opened.end {
            SendingEnd::Tcp { socket, lever } => (socket, lever),
            #[cfg(feature = "http3")]
            SendingEnd::Quic(_) => return None,
        };
        let (local, peer) = (socket.local_addr().ok()?, socket.peer_addr().ok()?);
        let mut delivered = DeliveredBytes::default();
        if let Ok(info) = socket.info() {
            delivered.update(&info);
        }
        Some(Self {
            local,
            peer,
            socket: Some(socket),
            lever,
            place,
            delivered,
            moved_at: now,
            update_at: Some(now),
            search_at: now,
        })
    }

    /// `None` if the connection is gone.
    fn sample(&mut self, now: Duration) -> Option<FlowSample> {
        if self.socket.is_none() {
            if now < self.search_at {
                return Some(FlowSample::default());
            }
            self.search_at = now + IDLE;
            let found = TcpSocket::find_by_addresses(self.local, self.peer);
            self.socket = Some(found.ok().flatten()?);
            self.update_at = Some(now);
        }
        let info = self.socket.as_ref()?.info().ok()?;
        let bytes = self.delivered.since_last(&info);
        if bytes > 0 || info.is_owed() {
            if self.is_resting(now) {
                self.update_at = self.update_at.map(|_| now);
            }
            self.moved_at = now;
        }
        if now >= self.moved_at + IDLE {
            // The owner of the connection may close it now.
            (self.socket, self.update_at) = (None, None);
            self.search_at = now + IDLE;
            return Some(FlowSample {
                bytes,
                ..FlowSample::default()
            });
        }
        Some(FlowSample {
            bytes,
            rtt: info.rtt,
            congestion_window: Some(f64::from(info.snd_cwnd) * f64::from(info.snd_mss)),
            g_ms: self.lever.g().map(|seconds| seconds * 1e3),
        })
    }

    /// Whether nothing has moved for two samples.
    fn is_resting(&self, now: Duration) -> bool {
        now >= self.moved_at + SAMPLE_INTERVAL * 2
    }

    fn update(&mut self, now: Duration, lane: &Lane) {
        if self.is_resting(now) {
            // It loses its place among those that carry weight.
            self.update_at = Some(now + SAMPLE_INTERVAL);
            return;
        }
        let target = self.place.target(lane.now());
        let socket = self.socket.as_ref();
        self.update_at = socket.and_then(|it| update_lever(&mut self.lever, now, it, target));
    }
}
