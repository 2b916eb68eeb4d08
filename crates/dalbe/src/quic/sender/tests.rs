use std::pin::Pin;
use std::task::{Context, Waker};

use quinn::{Runtime as _, TokioRuntime, UdpPoller};

use super::*;
use crate::quic::pace::PacedPoller;
use crate::quic::pace::tests::Ready;

/// A connection with this smoothed round-trip time and this target.
fn sender(rtt: Duration, target: Option<FlowTarget>) -> Box<dyn Controller> {
    let sender = QuicSender::default();
    sender.set_target(target);
    let rtt_us = u64::try_from(rtt.as_micros()).unwrap();
    sender.0.rtt_us.store(rtt_us, Ordering::Relaxed);
    let factory = Arc::new(SenderFactory {
        sender,
        law: CongestionLaw::Vegas,
        seen: Seen::default(),
    });
    factory.build(TokioRuntime.now(), 1200)
}

/// Whether a packet of so many bytes leaves at once.
fn leaves(
    sender: &mut dyn Controller,
    poller: &mut Pin<Box<PacedPoller>>,
    now: Instant,
    bytes: u64,
    number: u64,
) -> bool {
    sender.on_sent(now, bytes, number);
    let context = &mut Context::from_waker(Waker::noop());
    poller.as_mut().poll_writable(context).is_ready()
}

#[tokio::test]
async fn full_packets_wait_for_their_time_and_small_ones_do_not() {
    let now = TokioRuntime.now();
    let mut sender = sender(Duration::from_secs(10), None);
    let mut poller = Box::pin(PacedPoller::new(Box::pin(Ready)));
    let mut leaves = |sender: &mut Box<dyn Controller>, bytes, number| {
        leaves(sender.as_mut(), &mut poller, now, bytes, number)
    };
    assert!(leaves(&mut sender, 1200, 0));
    assert!(leaves(&mut sender, 1200, 1), "the second of a pair");
    assert!(leaves(&mut sender, 40, 2), "an acknowledgement");
    // As when the path has changed.
    let mut copy = sender.clone_box();
    assert!(!leaves(&mut copy, 1200, 3));
}

#[tokio::test]
async fn the_first_packets_under_a_law_measure_the_path() {
    let now = TokioRuntime.now();
    let mut sender = sender(Duration::from_secs(10), Some(FlowTarget::YIELD));
    let mut poller = Box::pin(PacedPoller::new(Box::pin(Ready)));
    // What the law is to do is seen with each acknowledgement.
    sender.on_end_acks(now, 0, false, None);
    for number in 0..10 {
        assert!(leaves(sender.as_mut(), &mut poller, now, 1200, number));
    }
    let mut copy = sender.clone_box();
    assert!(leaves(copy.as_mut(), &mut poller, now, 1200, 10));
}

#[tokio::test]
async fn a_loss_that_says_nothing_new_changes_no_pacing() {
    let now = TokioRuntime.now();
    let mut sender = sender(Duration::from_secs(10), Some(FlowTarget::YIELD));
    sender.on_end_acks(now, 0, false, None);
    let later = now + Duration::from_secs(1);
    sender.on_congestion_event(later, now, false, 1200);
    let mut sender = sender.into_any().downcast::<Sender>().unwrap();
    sender.held.as_mut().unwrap().is_paced = true;
    sender.on_congestion_event(later, now, false, 1200);
    assert!(sender.held.unwrap().is_paced);
}
