mod link;

use proptest::prelude::*;

use self::link::{Link, nothing};
use super::*;
use crate::weight::MIN_WEIGHT;

/// Mbit/s and ms.
const PATHS: [(f64, f64); 5] = [
    (10.0, 20.0),
    (10.0, 100.0),
    (50.0, 40.0),
    (100.0, 20.0),
    (200.0, 150.0),
];

fn weight(w: f64, capacity: f64) -> FlowTarget {
    FlowTarget { w, capacity }
}

fn yielding(link: &Link) -> FlowTarget {
    weight(MIN_WEIGHT, link.capacity)
}

#[test]
fn an_idle_link_is_filled_with_a_short_queue() {
    for (mbit, base) in PATHS {
        let (mut link, mut pacer) = (Link::new(mbit, base), Pacer::default());
        let target = yielding(&link);
        link.run(&mut pacer, target, 20.0);
        let settled = link.run(&mut pacer, target, 20.0);
        println!("{mbit} Mbit/s, {base} ms: {settled:?}");
        assert!(settled.share > 0.95, "{mbit}, {base}: {settled:?}");
        assert!(settled.queueing < 0.008, "{mbit}, {base}: {settled:?}");
    }
}

#[test]
fn a_flow_yields_to_a_standing_queue_and_comes_back() {
    for (mbit, base) in PATHS {
        let (mut link, mut pacer) = (Link::new(mbit, base), Pacer::default());
        let target = yielding(&link);
        link.run(&mut pacer, target, 20.0);
        link.is_contended = true;
        link.run(&mut pacer, target, 5.0);
        let beside = link.run(&mut pacer, target, 10.0);
        link.is_contended = false;
        link.run(&mut pacer, target, 3.0);
        let after = link.run(&mut pacer, target, 5.0);
        println!("{mbit} Mbit/s, {base} ms: {beside:?}, {after:?}");
        assert!(beside.share < 0.05, "{mbit}, {base}: {beside:?}");
        assert!(beside.yielding > 0.9, "{mbit}, {base}: {beside:?}");
        assert!(after.share > 0.8, "{mbit}, {base}: {after:?}");
    }
}

#[test]
fn the_limit_on_a_short_path_goes_below_two_segments_per_round_trip() {
    // Two segments in each of these, with the queue, would be 6 %.
    let (mut link, mut pacer) = (Link::new(10.0, 20.0), Pacer::default());
    let target = yielding(&link);
    link.run(&mut pacer, target, 10.0);
    link.is_contended = true;
    link.run(&mut pacer, target, 5.0);
    let beside = link.run(&mut pacer, target, 10.0);
    assert!(beside.share < 0.02, "{beside:?}");
}

#[test]
fn a_weight_gets_its_share_beside_any_traffic() {
    for w in [0.25, 0.5, 0.75] {
        let (mut link, mut pacer) = (Link::new(20.0, 50.0), Pacer::default());
        let target = weight(w, link.capacity);
        link.run(&mut pacer, target, 5.0);
        link.is_contended = true;
        link.run(&mut pacer, target, 5.0);
        let beside = link.run(&mut pacer, target, 20.0);
        let ideal = w / (1.0 + w);
        println!("w {w}: {beside:?}");
        assert!(
            (beside.share / ideal - 1.0).abs() < 0.25,
            "w {w}: {beside:?}"
        );
    }
}

#[test]
fn no_limit_is_set_before_the_first_measurement() {
    let mut pacer = Pacer::default();
    let ms = Duration::from_millis;
    let known = TcpInfo {
        rtt: Some(ms(30)),
        bytes_acked: Some(100_000),
        segs_in: Some(40),
        ..nothing()
    };
    assert_eq!(pacer.update(ms(0), &known, FlowTarget::YIELD), None);
    let later = TcpInfo {
        segs_in: Some(60),
        bytes_acked: Some(160_000),
        ..known
    };
    for lacking in [
        TcpInfo { rtt: None, ..later },
        TcpInfo {
            segs_in: None,
            ..later
        },
    ] {
        assert_eq!(pacer.update(ms(10), &lacking, FlowTarget::YIELD), None);
    }
    let pace = pacer.update(ms(20), &later, FlowTarget::YIELD).unwrap();
    assert!(pace.rate.is_some());
}

#[test]
fn weight_1_has_no_limit() {
    let (mut link, mut pacer) = (Link::new(10.0, 50.0), Pacer::default());
    link.run(&mut pacer, FlowTarget::FREE, 5.0);
    assert_eq!(pacer.state(), ReceiveWindowState::Free);
    // Twice what the path carries, whatever the queue does.
    let free = link.run(&mut pacer, FlowTarget::FREE, 5.0);
    assert!(free.share > 0.99 && free.queueing > 0.04, "{free:?}");
}

/// Whatever the kernel may say.
fn any_info() -> impl Strategy<Value = TcpInfo> {
    (
        prop_oneof![0_u32..70_000, any::<u32>()],
        prop::option::weighted(0.95, prop_oneof![0_u32..500_000, any::<u32>()]),
        prop::option::weighted(0.9, any::<u32>()),
        prop::option::weighted(0.95, prop_oneof![0_u64..10_000_000, any::<u64>()]),
        (
            prop::option::weighted(0.95, prop_oneof![0_u32..1000, any::<u32>()]),
            prop_oneof![0_u32..9000, any::<u32>()],
        ),
        prop_oneof![0_u32..3, any::<u32>()],
    )
        .prop_map(
            |(snd_mss, rtt, min_rtt, bytes_acked, (segs_in, sacked), total_retrans)| {
                let micros = |us: u32| Duration::from_micros(us.into());
                TcpInfo {
                    snd_mss,
                    rtt: rtt.map(micros),
                    min_rtt: min_rtt.map(micros),
                    bytes_acked,
                    segs_in,
                    sacked,
                    total_retrans,
                    ..nothing()
                }
            },
        )
}

/// A connection that behaves.
fn steady() -> impl Strategy<Value = Vec<TcpInfo>> {
    let looks = prop::collection::vec((20_u32..60, 0_u32..80_000, 0_u32..10), 1..80);
    looks.prop_map(|looks| {
        let (mut bytes, mut acks, mut lost) = (0, 20, 0);
        let look = |(rtt, more, luck): (u32, u32, u32)| {
            bytes += u64::from(more);
            acks += more / 2896;
            lost += u32::from(luck == 0);
            TcpInfo {
                rtt: Some(Duration::from_millis(rtt.into())),
                min_rtt: Some(Duration::from_millis(20)),
                bytes_acked: Some(bytes),
                segs_in: Some(acks),
                total_retrans: lost,
                ..nothing()
            }
        };
        looks.into_iter().map(look).collect()
    })
}

fn any_weight() -> impl Strategy<Value = f64> {
    prop_oneof![
        1 => Just(MIN_WEIGHT),
        4 => MIN_WEIGHT..=1.0_f64,
        1 => Just(1.0),
    ]
}

proptest! {
    #[test]
    fn a_limit_is_above_0_and_grows_with_w_after_any_input(
        looks in prop_oneof![steady(), prop::collection::vec(any_info(), 1..40)],
        weights in prop::collection::vec(any_weight(), 80),
        gap in prop_oneof![1_u64..200, 1_u64..100_000],
        capacity in prop_oneof![Just(0.0), 0.0..1e10_f64, any::<f64>()],
        last in (any_weight(), any_weight()),
    ) {
        let (mut pacer, mut now) = (Pacer::default(), Duration::ZERO);
        for (info, &w) in looks.iter().zip(&weights) {
            now += Duration::from_millis(gap);
            let (low, high) = (last.0.min(last.1), last.0.max(last.1));
            let ceiling = |w| {
                let pace = pacer.clone().update(now, info, weight(w, capacity));
                pace.map(|pace| pace.rate.unwrap_or(u64::MAX))
            };
            prop_assert!(
                ceiling(low) <= ceiling(high),
                "{:?} at {low}, {:?} at {high}", ceiling(low), ceiling(high)
            );
            let Some(pace) = pacer.update(now, info, weight(w, capacity)) else {
                continue;
            };
            prop_assert!((MIN_SAMPLE_INTERVAL..=MAX_SAMPLE_INTERVAL).contains(&pace.next));
            prop_assert_eq!(pace.rate.is_none(), w >= 1.0);
            prop_assert!(pace.rate.is_none_or(|rate| rate >= MIN_RATE));
        }
    }
}
