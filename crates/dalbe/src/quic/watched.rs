//! A congestion control as it is, which also passes on the round-trip times that it is told.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

use super::Seen;

/// Makes congestion controls like those of another factory, for one connection that is watched.
pub struct WatchedFactory<F> {
    inner: Arc<F>,
    seen: Seen,
}

impl<F> WatchedFactory<F> {
    /// Congestion controls of `inner`, which tell `seen`.
    #[must_use]
    pub fn new(inner: F, seen: Seen) -> Self {
        Self {
            inner: Arc::new(inner),
            seen,
        }
    }
}

impl<F: ControllerFactory> ControllerFactory for WatchedFactory<F> {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(WatchedController {
            inner: Arc::clone(&self.inner).build(now, current_mtu),
            seen: self.seen.clone(),
        })
    }
}

struct WatchedController {
    inner: Box<dyn Controller>,
    seen: Seen,
}

impl Controller for WatchedController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.seen.smoothed(rtt.get());
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.inner
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.inner
            .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            seen: self.seen.clone(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
