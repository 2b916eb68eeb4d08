//! Vulture within a brake: weights, and what is said of it.

use std::time::Duration;

use proptest::prelude::*;

use super::{RTT, any_seen, ms, variations};
use crate::ebpf::PivCounts;
use crate::receive_window::PacketArrivals;
use crate::receive_window::{ReceiveWindowLimiter, ReceiveWindowState, ReceiverPolicy};
use crate::socket::TcpInfo;
use crate::weight::{FlowTarget, MIN_WEIGHT};

/// What the kernel says of such a connection.
fn info(segment: u32, rtt: Duration, bytes: u64, out_of_order: u32) -> TcpInfo {
    TcpInfo {
        rcv_mss: segment,
        rcv_rtt: Some(rtt),
        bytes_received: Some(bytes),
        rcv_ooopack: Some(out_of_order),
        ..TcpInfo::parse(&[0; 240]).unwrap()
    }
}

proptest! {
    #[test]
    fn the_window_is_monotone_in_w(
        all in prop::collection::vec(any_seen(), 1..40),
        capacity in prop_oneof![Just(0.0), 0.0..1e9_f64],
        weights in (MIN_WEIGHT..=1.0_f64, prop_oneof![MIN_WEIGHT..=1.0_f64, Just(1.0)]),
        history in MIN_WEIGHT..=1.0_f64,
    ) {
        let mut limiter = ReceiveWindowLimiter::new(ReceiverPolicy::Vulture);
        let (mut now, mut bytes) = (Duration::ZERO, 0);
        for seen in &all {
            now += seen.gap;
            bytes += seen.more;
            if let Some(arrivals) = &seen.arrivals {
                limiter.arrived(now, arrivals);
            }
            if seen.how == 1 {
                limiter.restart(bytes);
            }
            let seen = info(seen.segment, seen.rtt, bytes, seen.out_of_order);
            let window = |w| limiter.clone().update(now, &seen, FlowTarget { w, capacity }, None).unwrap();
            let (low, high) = (weights.0.min(weights.1), weights.0.max(weights.1));
            prop_assert!(window(low) <= window(high), "{} and {}", window(low), window(high));
            limiter.update(now, &seen, FlowTarget { w: history, capacity }, None);
        }
    }
}

/// The look of this number, one every 20 ms, after so many bytes, at a
/// connection whose packets say this; returns the window.
fn look(
    limiter: &mut ReceiveWindowLimiter,
    number: u64,
    bytes: u64,
    each: PivCounts,
    order: FlowTarget,
) -> Option<u32> {
    let arrivals = PacketArrivals {
        intervals: each,
        ..PacketArrivals::default()
    };
    limiter.arrived(ms(20 * number), &arrivals);
    limiter.update(ms(20 * number), &info(1000, RTT, bytes, 0), order, None)
}

/// A brake after 3 s at 10 Mbit/s and 100 ms, whose packets say this.
fn limited(order: FlowTarget, each: PivCounts) -> (ReceiveWindowLimiter, Option<u32>) {
    let mut limiter = ReceiveWindowLimiter::new(ReceiverPolicy::Vulture);
    let mut window = None;
    for number in 1..=150 {
        window = look(&mut limiter, number, 25_000 * number, each, order);
    }
    (limiter, window)
}

#[test]
fn a_weight_gets_its_share_beside_any_queue() {
    let high = variations(4, 25);
    let (_, least) = limited(FlowTarget::YIELD, high);
    assert_eq!(least, Some(2000), "two segments");
    let capacity = 1.25e6;
    // Half of a best-effort flow: a third of 125,000 bytes.
    let (limiter, window) = limited(FlowTarget { w: 0.5, capacity }, high);
    assert_eq!(window, Some(41_666));
    assert_eq!(
        limiter.state(),
        ReceiveWindowState::Filling,
        "it carries what it did"
    );
    let (limiter, window) = limited(FlowTarget::FREE, high);
    assert!(window >= Some(4 * 125_000), "{window:?}");
    assert_eq!(limiter.state(), ReceiveWindowState::Free);
}

#[test]
fn a_flow_yields_to_traffic_that_it_detects() {
    let mut limiter = ReceiveWindowLimiter::new(ReceiverPolicy::Vulture);
    let (mut bytes, mut number) = (0, 0);
    let mut run = |more: u64, each: PivCounts| {
        for _ in 0..100 {
            number += 1;
            bytes += more;
            look(&mut limiter, number, bytes, each, FlowTarget::YIELD);
        }
        limiter.state()
    };
    assert_eq!(run(25_000, variations(4, 4)), ReceiveWindowState::Filling);
    assert_eq!(run(5_000, variations(4, 25)), ReceiveWindowState::Yielding);
    assert_eq!(run(25_000, variations(4, 4)), ReceiveWindowState::Filling);
}
