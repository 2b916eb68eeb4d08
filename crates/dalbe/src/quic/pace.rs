//! Packets that leave in pairs at equal intervals, as far as timers go.
//!
//! quinn lets at least ten packets go at once, and the next ten when the time of all of them has
//! passed. A queue that is shorter than that loses some of them each time, and the round-trip time of
//! the tenth is longer by the nine before it. So each packet that is to be spaced has a time here.
//! quinn makes packets, tells its congestion control of them, and asks whether its socket takes them,
//! all in one call: [`SendSchedule::send`] leaves their time where [`PacedPoller`] finds it.
//!
//! quinn counts round-trip times from the moment at which it makes a packet. Of two packets that have
//! one acknowledgement, the second one's time counts, so it leaves with the first.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use quinn::{Runtime as _, TokioRuntime, UdpPoller};
use tokio::time::{Sleep, sleep_until};

/// A window leaves in this part of a round trip, as quinn has it too (RFC 9002, section 7.7).
const WINDOW_TIME: (u32, u32) = (4, 5);

/// What has no more time left than this goes at once: timers are no finer.
const SOON: Duration = Duration::from_millis(1);

/// Up to this, what a timer was late by is made up for, and so is a rest.
const MAX_LATE: Duration = Duration::from_millis(2);

thread_local! {
    /// When the packets that quinn has made are to leave.
    static DUE: Cell<Option<Instant>> = const { Cell::new(None) };

    /// The interval of packets of the connection that made packets last.
    static INTERVAL: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// When the packets of a connection are to leave.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SendSchedule {
    next: Option<Instant>,
}

impl SendSchedule {
    /// Packets of a connection that sends `window` of them in a round trip have been made.
    pub(super) fn send(&mut self, now: Instant, packets: u32, window: u32, rtt: Duration) {
        let interval = rtt * WINDOW_TIME.0 / WINDOW_TIME.1 / window.max(1);
        INTERVAL.set(interval);
        DUE.set(Some(self.take(now, packets, interval) - interval));
    }

    /// Packets of a connection whose packets are not spaced have been made.
    pub(super) fn send_at_once() {
        INTERVAL.set(Duration::ZERO);
    }

    /// When so many packets are to leave.
    fn take(&mut self, now: Instant, packets: u32, interval: Duration) -> Instant {
        let due = self.next.map_or(now, |next| next.max(now - MAX_LATE));
        self.next = Some(due + interval * packets);
        due
    }
}

/// How many packets, up to `most`, may leave at once, of the connection that made packets last in this
/// thread. Where several share a thread, that may be another one than the one that asks, so a slow
/// one may send as many at once as a fast one, and a fast one as few as a slow one.
pub(super) fn at_once(most: usize) -> usize {
    let interval = INTERVAL.get().as_nanos().max(1);
    let packets = usize::try_from(SOON.as_nanos() / interval).unwrap_or(most);
    packets.clamp(1, most.max(1))
}

/// Tells a connection that its socket takes its packets when their time has come.
#[derive(Debug)]
pub(super) struct PacedPoller {
    inner: Pin<Box<dyn UdpPoller>>,
    timer: Pin<Box<Sleep>>,
    waits: bool,
}

impl PacedPoller {
    /// `inner` tells whether the socket takes packets.
    pub(super) fn new(inner: Pin<Box<dyn UdpPoller>>) -> Self {
        Self {
            inner,
            timer: Box::pin(sleep_until(TokioRuntime.now().into())),
            waits: false,
        }
    }
}

impl UdpPoller for PacedPoller {
    fn poll_writable(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(due) = DUE.take()
            && due > TokioRuntime.now() + SOON
        {
            self.timer.as_mut().reset((due - SOON).into());
            self.waits = true;
        }
        if self.waits {
            ready!(self.timer.as_mut().poll(context));
            self.waits = false;
        }
        self.inner.as_mut().poll_writable(context)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_window_leaves_in_pairs_in_four_fifths_of_a_round_trip() {
        let mut pace = SendSchedule::default();
        let now = TokioRuntime.now();
        let due = |pace: &mut SendSchedule, packets| {
            pace.send(now, packets, 20, ms(100));
            DUE.take().map(|due| due.saturating_duration_since(now))
        };
        assert_eq!(due(&mut pace, 1), Some(ms(0)));
        assert_eq!(due(&mut pace, 1), Some(ms(0)));
        assert_eq!(due(&mut pace, 4), Some(ms(4)));
        assert_eq!(due(&mut pace, 1), Some(ms(20)));
        assert_eq!(at_once(10), 1);
        pace.send(now, 1, 200, ms(50));
        assert_eq!(at_once(10), 5);
        assert_eq!(at_once(3), 3);
    }

    #[test]
    fn little_of_what_was_late_or_of_a_rest_is_made_up_for() {
        let mut pace = SendSchedule::default();
        let now = TokioRuntime.now();
        assert_eq!(pace.take(now, 1, ms(5)), now);
        assert_eq!(pace.take(now + ms(6), 1, ms(5)), now + ms(5));
        assert_eq!(pace.take(now + ms(1000), 1, ms(5)), now + ms(998));
        assert_eq!(pace.take(now + ms(1000), 1, ms(5)), now + ms(1003));
    }

    /// A socket that takes everything.
    #[derive(Debug)]
    pub(in crate::quic) struct Ready;

    impl UdpPoller for Ready {
        fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn packets_wait_for_their_time() {
        let mut pace = SendSchedule::default();
        let mut poller = Box::pin(PacedPoller::new(Box::pin(Ready)));
        let began = TokioRuntime.now();
        for number in 0..5 {
            pace.send(TokioRuntime.now(), 1, 10, ms(100));
            std::future::poll_fn(|context| poller.as_mut().poll_writable(context))
                .await
                .unwrap();
            assert!(TokioRuntime.now() >= began + (ms(8) * number).saturating_sub(ms(8) + SOON));
        }
        // Nothing was made since.
        let context = &mut Context::from_waker(std::task::Waker::noop());
        assert!(poller.as_mut().poll_writable(context).is_ready());
    }
}
