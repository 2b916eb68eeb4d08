use std::task::{Context, Waker};

use quinn::{Runtime as _, TokioRuntime, UdpPoller};

use super::*;
use crate::quic::pace::PacedPoller;
use crate::quic::pace::tests::Ready;

/// A connection with this smoothed round-trip time.
fn sender(rtt: Duration) -> Box<dyn Controller> {
    let sender = QuicSender::default();
    let rtt_us = u64::try_from(rtt.as_micros()).unwrap();
    sender.0.rtt_us.store(rtt_us, Ordering::Relaxed);
    let factory = Arc::new(SenderFactory {
        sender,
        law: CongestionLaw::Vegas,
        seen: Seen::default(),
    });
    factory.build(TokioRuntime.now(), 1200)
}

#[tokio::test]
async fn full_packets_wait_for_their_time_and_small_ones_do_not() {
    let now = TokioRuntime.now();
    let mut sender = sender(Duration::from_secs(10));
    let mut poller = Box::pin(PacedPoller::new(Box::pin(Ready)));
    let mut leaves = |sender: &mut Box<dyn Controller>, bytes, number| {
        sender.on_sent(now, bytes, number);
        let context = &mut Context::from_waker(Waker::noop());
        poller.as_mut().poll_writable(context).is_ready()
    };
    assert!(leaves(&mut sender, 1200, 0));
    assert!(leaves(&mut sender, 1200, 1), "the second of a pair");
    assert!(leaves(&mut sender, 40, 2), "an acknowledgement");
    // As when the path has changed.
    let mut copy = sender.clone_box();
    assert!(!leaves(&mut copy, 1200, 3));
}
