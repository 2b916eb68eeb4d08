mod greedy;
mod link;
mod others;
mod pause;
mod state;

use proptest::prelude::*;

use self::link::{Link, SEGMENT, info, nothing};
use super::*;

const PATHS: [(f64, u64); 4] = [(10.0, 20), (10.0, 100), (50.0, 40), (200.0, 150)];

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn yielding(link: &Link) -> FlowTarget {
    FlowTarget {
        w: MIN_WEIGHT,
        capacity: link.capacity,
    }
}

fn weight(w: f64, capacity: f64) -> FlowTarget {
    FlowTarget { w, capacity }
}

/// The base that a brake has.
fn least(limiter: &ReceiveWindowLimiter) -> Option<Duration> {
    limiter.delays.base().map(|(_, least)| least)
}

#[test]
fn an_idle_link_is_filled_with_a_short_queue() {
    for (mbit, base) in PATHS {
        let (mut link, mut limiter) = (
            Link::new(mbit, base),
            ReceiveWindowLimiter::new(ReceiverPolicy::Delay),
        );
        let order = yielding(&link);
        link.run(&mut limiter, order, 20);
        let settled = link.run(&mut limiter, order, 20);
        println!("{mbit} Mbit/s, {base} ms: {settled:?}");
        assert!(settled.share > 0.9, "{mbit} Mbit/s, {base} ms: {settled:?}");
        assert!(
            settled.queueing < ms(10),
            "{mbit} Mbit/s, {base} ms: {settled:?}"
        );
    }
}

#[test]
fn a_flow_yields_to_a_standing_queue_and_comes_back() {
    for (mbit, base) in PATHS {
        let (mut link, mut limiter) = (
            Link::new(mbit, base),
            ReceiveWindowLimiter::new(ReceiverPolicy::Delay),
        );
        let order = yielding(&link);
        link.run(&mut limiter, order, 20);
        link.is_contended = true;
        link.run(&mut limiter, order, 10);
        let beside = link.run(&mut limiter, order, 10);
        link.is_contended = false;
        link.run(&mut limiter, order, 20);
        let after = link.run(&mut limiter, order, 10);
        println!(
            "{mbit} Mbit/s, {base} ms ({:.0} segments): {beside:?}, {after:?}",
            link.segments()
        );
        assert!(beside.window < 12.0, "{mbit}, {base}: {beside:?}");
        assert!(after.share > 0.9, "{mbit}, {base}: {after:?}");
    }
}

#[test]
fn a_weight_gets_its_share_beside_any_traffic() {
    let (mut link, mut limiter) = (
        Link::new(20.0, 50),
        ReceiveWindowLimiter::new(ReceiverPolicy::Delay),
    );
    let order = weight(0.25, link.capacity);
    link.run(&mut limiter, order, 5);
    link.is_contended = true;
    link.run(&mut limiter, order, 10);
    let beside = link.run(&mut limiter, order, 10);
    // The window swings, and swings less far up than down (bottleneck.rs).
    assert!((0.17..=0.21).contains(&beside.share), "{beside:?}");
}

#[test]
fn a_new_connection_beside_a_full_queue_learns_the_base_from_others() {
    let mut link = Link::new(10.0, 40);
    link.is_contended = true;
    let order = yielding(&link);
    let run = |mut limiter: ReceiveWindowLimiter| {
        let mut link = link.clone();
        link.run(&mut limiter, order, 5);
        (least(&limiter), link.run(&mut limiter, order, 5).window)
    };
    let mut taught = ReceiveWindowLimiter::new(ReceiverPolicy::Delay);
    taught.delays.learn(Duration::ZERO, link.base);
    assert_eq!(least(&taught), Some(link.base));
    let (base, window) = run(taught);
    let (wrong, _) = run(ReceiveWindowLimiter::new(ReceiverPolicy::Delay));
    assert_eq!(base, Some(link.base));
    assert!(
        wrong > Some(link.base.mul_f64(1.7)),
        "it takes the queue for the path: {wrong:?}"
    );
    assert!(window < 3.0, "{window}");
}

#[test]
fn a_connection_that_came_beside_the_queue_of_the_others_sees_the_path_as_they_do() {
    let group = WindowGroup::default();
    let connect = |handshake: u64| {
        let mut limiter = ReceiveWindowLimiter::joining(ReceiverPolicy::Delay, &group);
        let seen = TcpInfo {
            min_rtt: Some(ms(handshake)),
            ..info(ms(42), 1000, 0)
        };
        limiter.update(ms(5), &seen, FlowTarget::YIELD, None);
        limiter
    };
    // By the kernel's coarse measure, both are 42 ms long.
    let first = connect(41);
    let second = connect(44);
    assert_eq!(least(&first), Some(ms(42)));
    assert_eq!(least(&second), Some(ms(42)));
    drop((first, second));
    let alone = connect(44);
    assert_eq!(least(&alone), Some(ms(44)), "nobody knows better");
}

#[test]
fn no_window_is_set_before_the_first_measurement() {
    let mut limiter = ReceiveWindowLimiter::new(ReceiverPolicy::Delay);
    let known = info(ms(30), 1000, 0);
    for seen in [
        nothing(),
        TcpInfo {
            rcv_rtt: None,
            ..known
        },
        TcpInfo {
            bytes_received: None,
            ..known
        },
    ] {
        for order in [FlowTarget::YIELD, FlowTarget::FREE] {
            assert_eq!(limiter.update(ms(5), &seen, order, None), None);
        }
    }
    assert_eq!(least(&limiter), None);
    let handshake = TcpInfo {
        rcv_rtt: None,
        rtt: Some(ms(30)),
        ..known
    };
    assert!(
        limiter
            .update(ms(5), &handshake, FlowTarget::YIELD, None)
            .is_some()
    );
    // Its packets are smaller than segments: the path may take longer.
    assert_eq!(least(&limiter), None);
    limiter.update(ms(25), &known, FlowTarget::YIELD, None);
    assert_eq!(least(&limiter), Some(ms(30)));
}

#[test]
fn the_window_never_limits_a_flow_of_weight_1() {
    // A sender in slow start, and then at 40 times the initial window.
    let (mut limiter, rtt) = (ReceiveWindowLimiter::new(ReceiverPolicy::Delay), ms(50));
    let mut bytes = 0.0;
    for look in 0..800_u64 {
        let rounds = look as f64 / 8.0;
        let flight = 10.0 * SEGMENT * rounds.min(9.0).exp2();
        bytes += flight / 8.0;
        let now = rtt * u32::try_from(look).unwrap() / 8;
        let seen = info(rtt, bytes as u64, 0);
        let window = limiter
            .update(now, &seen, FlowTarget::FREE, Some(0))
            .unwrap();
        let window = f64::from(window);
        assert!(
            window >= flight,
            "{window} of {flight} after {rounds} rounds"
        );
        if rounds > 14.0 {
            assert!(window >= 2.0 * flight, "{window}, {flight} are used");
        }
    }
}

#[test]
fn the_next_response_at_weight_1_is_not_limited_either() {
    let mut link = Link::new(10.0, 100);
    let mut limiter = ReceiveWindowLimiter::new(ReceiverPolicy::Delay);
    link.is_contended = true;
    limiter.delays.learn(link.now, link.base);
    link.run(&mut limiter, yielding(&link), 20);
    limiter.restart(link.received as u64);
    // The path has become fast, and time presses.
    (link.capacity, link.is_contended) = (50e6, false);
    link.most = link.capacity * link.base.as_secs_f64();
    link.run(&mut limiter, FlowTarget::FREE, 5);
    let free = link.run(&mut limiter, FlowTarget::FREE, 10);
    assert!(free.share > 0.99, "{free:?}");
}

#[test]
fn a_lower_weight_within_a_response_does_not_restart_its_opening() {
    let (mut link, mut limiter, order) = at_speed();
    let before = link.run(&mut limiter, order, 5);
    limiter.restart(link.received as u64);
    link.most = before.window * SEGMENT;
    link.run(&mut limiter, FlowTarget::FREE, 5);
    let seen = info(link.base, link.received as u64, 0);
    let window = limiter.update(link.now, &seen, order, None).unwrap();
    let window = f64::from(window) / SEGMENT;
    assert!(window > before.window / 2.0, "{window} after {before:?}");
}

#[test]
fn a_loss_narrows_the_window_of_a_flow_that_yields() {
    let (mut limiter, rtt) = (ReceiveWindowLimiter::new(ReceiverPolicy::Delay), ms(50));
    let look = |limiter: &mut ReceiveWindowLimiter, round: u64, out_of_order| {
        // So little that the window is not what limits it: it stays.
        let seen = info(rtt, 1000 * round, out_of_order);
        let now = rtt * u32::try_from(round).unwrap() * 3;
        limiter.update(now, &seen, FlowTarget::YIELD, None).unwrap()
    };
    let before = (0..5)
        .map(|round| look(&mut limiter, round, 0))
        .last()
        .unwrap();
    assert!(f64::from(before) > 20.0 * SEGMENT);
    let overtaken = look(&mut limiter, 5, 2);
    assert_eq!(overtaken, before, "two have been overtaken");
    let after = look(&mut limiter, 6, 5);
    // There is no queue: perhaps it was only noise.
    let (most, least) = (before / 10 * 9, before / 2);
    assert!((least..most).contains(&after), "{before}, then {after}");
    let later = look(&mut limiter, 7, 5);
    assert_eq!(later, after, "once for each");
}

/// A brake whose window fills a fast path, and the link.
fn at_speed() -> (Link, ReceiveWindowLimiter, FlowTarget) {
    let (mut link, mut limiter) = (
        Link::new(100.0, 40),
        ReceiveWindowLimiter::new(ReceiverPolicy::Delay),
    );
    let order = yielding(&link);
    link.run(&mut limiter, order, 30);
    (link, limiter, order)
}

#[test]
fn the_next_response_opens_from_a_part_and_doubles_with_each_round_trip() {
    let (link, mut limiter, order) = at_speed();
    let bytes = link.received as u64;
    let mut look = |now, bytes| {
        let seen = info(link.base, bytes, link.out_of_order);
        f64::from(limiter.update(now, &seen, order, None).unwrap())
    };
    let _ = look(link.now, bytes);
    // The window opens in the course of a round trip.
    let full = look(link.now + 2 * link.base, bytes);
    limiter.restart(bytes);
    let mut look = |now, bytes| {
        let seen = info(link.base, bytes, link.out_of_order);
        f64::from(limiter.update(now, &seen, order, None).unwrap())
    };
    for wait in 0..20 {
        let window = look(link.now + link.base * wait, bytes);
        assert!(
            (window - full / 4.0).abs() < 2.0,
            "no data has come: it waits with {window} of {full}"
        );
    }
    let began = link.now + link.base * 20;
    let mut expected = full / 4.0;
    assert!(
        expected > 10.0 * SEGMENT,
        "a small one opens from ten segments"
    );
    for round in 0..12 {
        let window = look(began + link.base * round, bytes + 1);
        assert!(
            (window - expected.min(full)).abs() < 2.0,
            "{window} after {round}, {expected} of {full}"
        );
        expected *= 2.0;
    }
}

#[test]
fn the_window_near_the_end_of_a_response_covers_only_the_rest() {
    let (link, mut limiter, order) = at_speed();
    let bytes = link.received as u64;
    let mut look = |order, remaining| {
        let seen = info(link.base, bytes, 0);
        let window = limiter.update(link.now, &seen, order, remaining);
        f64::from(window.unwrap())
    };
    let full = look(order, None);
    assert_eq!(look(order, Some(u64::MAX)), full);
    for remaining in [0, 1, 5_000, 50_000] {
        let window = look(order, Some(remaining));
        assert_eq!(window, remaining as f64 + 10.0 * SEGMENT);
    }
    assert!(
        look(FlowTarget::FREE, Some(0)) >= full,
        "a free flow has no limiter"
    );
}

#[test]
fn the_share_is_0_at_the_smallest_weight_and_unlimited_at_1() {
    for capacity in [0.0, 1.0, 1e9] {
        assert_eq!(weight(MIN_WEIGHT, capacity).share(), 0.0);
        assert_eq!(weight(0.0, capacity).share(), 0.0);
    }
    // Beside one best-effort flow: Kelly, Maulloo and Tan 1998.
    assert!((weight(0.25, 100.0).share() - 20.0).abs() < 1e-9);
    assert!(weight(1.0, 100.0).share() > 1e12);
}

/// Whatever the kernel may say, within what fits a connection.
fn any_info() -> impl Strategy<Value = TcpInfo> {
    (
        prop_oneof![0_u32..70_000, any::<u32>()],
        prop::option::weighted(0.9, prop_oneof![0_u32..500_000, any::<u32>()]),
        prop::option::weighted(0.9, any::<u32>()),
        prop::option::weighted(0.95, prop_oneof![0_u64..10_000_000, any::<u64>()]),
        prop::option::weighted(0.9, prop_oneof![0_u32..3, any::<u32>()]),
    )
        .prop_map(|(rcv_mss, rcv_rtt, rtt, bytes_received, rcv_ooopack)| {
            let micros = |us: u32| Duration::from_micros(us.into());
            TcpInfo {
                rcv_mss,
                rcv_rtt: rcv_rtt.map(micros),
                rtt: rtt.map(micros),
                bytes_received,
                rcv_ooopack,
                ..nothing()
            }
        })
}

/// A weight, with its two ends as likely as all the rest.
fn any_weight() -> impl Strategy<Value = f64> {
    prop_oneof![
        1 => Just(MIN_WEIGHT),
        4 => MIN_WEIGHT..=1.0_f64,
        1 => 0.99..1.0_f64,
        1 => Just(1.0),
    ]
}

#[derive(Debug, Clone)]
enum Op {
    Look(Box<TcpInfo>, f64, f64, Option<u64>),
    Restart(u64),
    Learn(u32),
}

/// A connection that behaves: it moves at what is offered, more or less.
fn steady() -> impl Strategy<Value = Vec<Op>> {
    let looks = prop::collection::vec((20_u32..60, 0_u32..80_000, 0_u32..10, any_weight()), 1..80);
    (looks, 1e5..1e8_f64).prop_map(|(looks, capacity)| {
        let (mut bytes, mut lost) = (0, 0);
        let look = |(rtt, more, luck, w): (u32, u32, u32, f64)| {
            bytes += u64::from(more);
            lost += u32::from(luck == 0);
            let seen = info(Duration::from_millis(rtt.into()), bytes, lost);
            Op::Look(Box::new(seen), w, capacity, None)
        };
        looks.into_iter().map(look).collect()
    })
}

fn anything() -> impl Strategy<Value = Vec<Op>> {
    let capacity = prop_oneof![Just(0.0), 0.0..1e10_f64, any::<f64>()];
    let op = prop_oneof![
        8 => (any_info(), any_weight(), capacity, prop::option::of(any::<u64>()))
            .prop_map(|(seen, w, capacity, left)| Op::Look(Box::new(seen), w, capacity, left)),
        1 => any::<u64>().prop_map(Op::Restart),
        1 => any::<u32>().prop_map(Op::Learn),
    ];
    prop::collection::vec(op, 1..40)
}

/// The brake after these, and the moment. No window is less than two of the
/// largest segments that have come.
fn after(ops: &[Op], gap: Duration) -> (ReceiveWindowLimiter, Duration) {
    let (mut limiter, mut now) = (
        ReceiveWindowLimiter::new(ReceiverPolicy::Delay),
        Duration::ZERO,
    );
    let mut segment = MIN_SEGMENT;
    for op in ops {
        now += gap;
        match *op {
            Op::Look(ref seen, w, capacity, remaining) => {
                let window = limiter.update(now, seen, weight(w, capacity), remaining);
                if let Some(window) = window {
                    segment = segment.max(seen.rcv_mss);
                    let least = 2 * u64::from(segment);
                    assert!(u64::from(window) >= least.min(u32::MAX.into()), "{window}");
                }
            }
            Op::Restart(bytes) => limiter.restart(bytes),
            Op::Learn(us) => limiter.delays.learn(now, Duration::from_micros(us.into())),
        }
    }
    (limiter, now + gap)
}

proptest! {
    #[test]
    fn the_window_is_monotone_in_w_after_any_history(
        ops in prop_oneof![steady(), anything()],
        gap in prop_oneof![1_u64..200, 1_u64..100_000],
        last in any_info(),
        capacity in prop_oneof![Just(0.0), 0.0..1e10_f64],
        remaining in prop::option::of(prop_oneof![0_u64..1_000_000, any::<u64>()]),
        weights in (any_weight(), any_weight()),
    ) {
        let (limiter, now) = after(&ops, ms(gap));
        // Most of the time what went before goes on.
        let last = match ops.last() {
            Some(Op::Look(seen, ..)) if gap % 4 != 0 => TcpInfo {
                bytes_received: seen.bytes_received.map(|bytes| bytes.saturating_add(50_000)),
                ..**seen
            },
            _ => last,
        };
        let window = |w| limiter.clone().update(now, &last, weight(w, capacity), remaining);
        let (low, high) = (weights.0.min(weights.1), weights.0.max(weights.1));
        prop_assert!(window(low) <= window(high), "{:?} and {:?}", window(low), window(high));
    }

    #[test]
    fn a_window_has_at_least_two_segments_after_any_input(
        ops in anything(),
        gap in 0_u64..1_000_000,
    ) {
        after(&ops, ms(gap));
    }

    #[test]
    fn the_share_grows_with_w_and_without_jumps(
        w in MIN_WEIGHT..1.0_f64,
        other in MIN_WEIGHT..=1.0_f64,
        capacity in 1.0..1e10_f64,
    ) {
        let share = |w| weight(w, capacity).share();
        prop_assert_eq!(share(w) <= share(other), w <= other || share(w) == share(other));
        // Towards w = 1 it grows without limit, so that steps are as small as
        // the distance to it is.
        let next = share(w + (1.0 - w) * 1e-6);
        let step = next - share(w);
        prop_assert!((0.0..=1e-4 * next).contains(&step) || w < MIN_WEIGHT + 1e-6, "{step} of {next}");
        let first = share(MIN_WEIGHT + 1e-9);
        prop_assert!(first <= MIN_WEIGHT * capacity, "{first}");
    }
}
