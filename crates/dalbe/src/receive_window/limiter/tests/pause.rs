//! When a flow goes below the least window, and when not.

use std::time::Duration;

use super::link::Link;
use super::{weight, yielding};
use crate::receive_window::{ReceiveWindowLimiter, ReceiverPolicy};

/// The pause after some seconds beside a flow that takes all it can get.
fn beside_greedy(mbit: f64, base: u64, w: Option<f64>) -> (ReceiveWindowLimiter, Link) {
    let (mut link, mut limiter) = (
        Link::new(mbit, base),
        ReceiveWindowLimiter::new(ReceiverPolicy::Delay),
    );
    let order = w.map_or(yielding(&link), |w| weight(w, link.capacity));
    link.run(&mut limiter, order, 5);
    assert_eq!(limiter.pause(), None, "alone");
    link.is_contended = true;
    link.run(&mut limiter, order, 10);
    (limiter, link)
}

#[test]
fn a_short_path_is_left_almost_entirely_to_other_traffic() {
    for (mbit, base) in [(10.0, 20), (2.0, 40), (2.0, 100)] {
        let (mut limiter, mut link) = beside_greedy(mbit, base, None);
        let pause = limiter.pause().expect("two segments are much here");
        assert!(pause > 2 * link.base && pause <= Duration::from_millis(500));
        link.is_contended = false;
        let order = yielding(&link);
        link.run(&mut limiter, order, 1);
        assert_eq!(limiter.pause(), None);
    }
}

#[test]
fn two_segments_need_no_pause_on_a_long_path() {
    let (limiter, _) = beside_greedy(10.0, 100, None);
    assert_eq!(limiter.pause(), None);
}

#[test]
fn a_flow_above_the_smallest_weight_never_pauses() {
    let (limiter, _) = beside_greedy(10.0, 20, Some(0.25));
    assert_eq!(limiter.pause(), None);
}
