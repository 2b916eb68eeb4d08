//! What the background does, from time to time.

use std::time::Duration;

use crate::connection::Connection;
use crate::figures::TracePoint;
use crate::packet::SEGMENT;
use crate::receiver::Window;
use lab_run::host::Class;

/// Points of a trace.
pub(crate) struct Trace {
    /// From one to the next.
    pub(crate) every: Duration,
    /// Payload of foreground and background that had come at the last one.
    traced: (u64, u64),
}

impl Trace {
    pub(crate) fn new(every: Duration) -> Self {
        let traced = (0, 0);
        Self { every, traced }
    }

    /// Of the newest connection of the background; `None` without any.
    pub(crate) fn point(
        &mut self,
        now: Duration,
        connections: &[Connection],
    ) -> Option<TracePoint> {
        let received = |class: Class| -> u64 {
            let of_class = connections
                .iter()
                .filter(|one| one.class == class && !one.backward);
            of_class.map(|one| one.receiver.received).sum()
        };
        let come = (received(Class::Foreground), received(Class::Background));
        let mbit = |bytes: u64| bytes as f64 * 8e-6 / self.every.as_secs_f64();
        let rates = (mbit(come.0 - self.traced.0), mbit(come.1 - self.traced.1));
        self.traced = come;
        let mut newest = connections.iter().rev();
        let one = newest.find(|one| one.class == Class::Background)?;
        let pause = match &one.receiver.window {
            Window::Held(held) => held.pause(),
            Window::Tuned(_) => None,
        };
        let offered = one.receiver.edge().saturating_sub(one.receiver.received);
        Some(TracePoint {
            at_s: now.as_secs_f64(),
            congestion_window: one.sender.state.window,
            offered: offered as f64 / SEGMENT as f64,
            pause_ms: pause.map(|pause| pause.as_secs_f64() * 1e3),
            rtt_ms: one.sender.state.rtt * 1e3,
            mbit: rates,
        })
    }
}
