//! What a direction of a link does with packets, moment by moment.

use super::*;
use crate::host::Class;
use crate::link::packet::Flow;
use crate::samples::Connection;
use crate::scenario::{LinkSpec, QueueSpec};

/// 1500 bytes take 1 ms.
fn settings(limit: Limit, change: impl FnOnce(&mut DirectionSpec)) -> Settings {
    let mut spec = LinkSpec::plain(12.0, 20.0, QueueSpec::Packets(1)).forward();
    change(&mut spec);
    Settings {
        spec,
        limit,
        away: Vec::new(),
        seed: 1,
        sampling: Duration::from_millis(10),
    }
}

fn plain(limit: Limit) -> Bottleneck {
    Bottleneck::new(&settings(limit, |_| {}))
}

fn disciplined(name: &str, ecn: bool) -> Bottleneck {
    Bottleneck::new(&settings(Limit::Packets(100), |spec| {
        spec.discipline = name.parse().unwrap();
        spec.ecn = ecn;
    }))
}

fn packet(class: Class) -> Packet {
    Packet {
        bytes: 1500,
        payload: 1448,
        class: Some(class),
        flow: Flow {
            ports: (80, 1000),
            ..Flow::default()
        },
        ..Packet::default()
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Packets of the foreground at these moments, numbered.
fn arrive(link: &mut Bottleneck, moments: impl IntoIterator<Item = Duration>) {
    for (buffer, moment) in moments.into_iter().enumerate() {
        let packet = packet(Class::Foreground);
        link.arrive(moment, Packet { buffer, ..packet });
    }
}

/// All that comes until a moment.
fn delivered(link: &mut Bottleneck, until: Duration) -> Vec<Arriving> {
    std::iter::from_fn(|| link.deliver(until)).collect()
}

fn moments(delivered: &[Arriving]) -> Vec<Duration> {
    delivered.iter().map(|one| one.arrives).collect()
}

/// How many of 2000 acknowledgements and of 2000 other packets come, where two of a kind are so
/// far apart.
fn thinned(apart: Duration) -> [i32; 2] {
    let settings = settings(Limit::Packets(9), |spec| spec.thinned_acks = 0.75);
    let mut link = Bottleneck::new(&settings);
    for number in 0..2000 {
        for is_ack in [true, false] {
            let packet = packet(Class::Background);
            let packet = Packet { is_ack, ..packet };
            link.arrive(apart * number, packet);
        }
    }
    let mut arrived = [0, 0];
    for arriving in delivered(&mut link, apart * 2100) {
        arrived[usize::from(arriving.packet.is_ack)] += 1;
    }
    arrived
}

#[test]
fn thinned_acknowledgements_leave_all_else_alone() {
    let [others, acks] = thinned(ms(3));
    // Five standard deviations of the binomial distribution are 97.
    assert_eq!(others, 2000);
    assert!((403..597).contains(&acks), "{acks}");
}

#[test]
fn an_acknowledgement_after_which_none_comes_soon_is_not_left_out() {
    assert_eq!(thinned(ms(6)), [2000, 2000]);
}

#[test]
fn packets_leave_one_after_the_other() {
    let mut link = plain(Limit::Packets(10));
    arrive(&mut link, [5, 5, 9].map(ms));
    assert_eq!(link.next_arrival(), Some(ms(26)));
    assert_eq!(link.deliver(ms(25)), None);
    // The wire was idle before the last.
    let came = delivered(&mut link, ms(100));
    assert_eq!(moments(&came), [26, 27, 30].map(ms));
    assert_eq!(link.next_arrival(), None);
}

#[test]
fn a_full_queue_drops_the_last_to_come() {
    let mut link = plain(Limit::Packets(3));
    // At 1 ms the first has left: one place.
    arrive(&mut link, [0, 0, 0, 0, 0, 1, 1].map(ms));
    let dropped: Vec<_> = link.take_dropped().map(|packet| packet.buffer).collect();
    assert_eq!(dropped, [3, 4, 6]);
    let counters = link.finish(ms(1)).counters;
    assert_eq!((counters.arrived, counters.dropped), (7, 3));
    let mut link = plain(Limit::Bytes(3100));
    arrive(&mut link, [ms(0); 5]);
    assert_eq!(link.take_dropped().count(), 3);
}

#[test]
fn a_full_queue_drops_before_pie_decides() {
    let mut link = Bottleneck::new(&settings(Limit::Packets(500), |spec| {
        spec.discipline = "pie".parse().unwrap();
    }));
    // 1.3 times what the link carries for three seconds: PIE drops, and the queue is
    // never full.
    arrive(&mut link, (0..3900).map(|i| Duration::from_micros(769 * i)));
    assert_eq!(link.recorder.counters.dropped, 0);
    let fill = |link: &mut Bottleneck, count| arrive(link, (0..count).map(|_| ms(3000)));
    link.advance(ms(3000));
    while link.has_room(1500) {
        fill(&mut link, 1);
    }
    let before = link.recorder.counters;
    assert!(before.aqm_dropped > 0, "{before:?}");
    fill(&mut link, 200);
    let after = link.recorder.counters;
    assert_eq!(after.dropped - before.dropped, 200);
    assert_eq!(after.aqm_dropped, before.aqm_dropped);
}

#[test]
fn samples_are_exact_however_late_they_are_taken() {
    let mut link = plain(Limit::Packets(100));
    arrive(&mut link, [ms(0); 15]);
    for _ in 0..10 {
        link.arrive(ms(0), packet(Class::Background));
    }
    let record = link.finish(ms(40));
    let connection = Connection {
        ports: (80, 1000),
        from_s: 0,
        payload: vec![14_480],
    };
    assert_eq!(record.connections, [connection]);
    let samples = record.samples;
    assert_eq!(samples.queue_packets, [15, 5, 0, 0]);
    assert_eq!(samples.queue_bytes, [22_500, 7_500, 0, 0]);
    assert_eq!(samples.foreground, [14_480, 7_240, 0, 0]);
    assert_eq!(samples.background, [0, 7_240, 7_240, 0]);
    assert_eq!(samples.carried, [15_000, 15_000, 7_500, 0]);
    assert!(samples.capacity.is_empty());
}

#[test]
fn what_happens_does_not_depend_on_how_often_somebody_asks() {
    for name in ["drop_tail", "codel", "pie", "fair", "fq_codel", "policer"] {
        let run = |looks: bool| {
            let mut link = disciplined(name, false);
            let mut came = Vec::new();
            // 1.4 times what the link carries.
            for number in 0..3000_u64 {
                let now = Duration::from_micros(number * 714);
                let one = packet(Class::Foreground);
                link.arrive(
                    now,
                    Packet {
                        buffer: number as usize,
                        ..one
                    },
                );
                if looks {
                    came.extend(delivered(&mut link, now));
                }
            }
            came.extend(delivered(&mut link, ms(10_000)));
            (came, link.finish(ms(3000)))
        };
        let (often, often_record) = run(true);
        let (once, once_record) = run(false);
        assert_eq!(often, once, "{name}");
        assert_eq!(often_record, once_record, "{name}");
        let counters = once_record.counters;
        let gone = counters.dropped + counters.aqm_dropped;
        assert_eq!(counters.delivered + gone, 3000, "{name}");
        let has_aqm = ["codel", "pie", "fq_codel"].contains(&name);
        assert_eq!(counters.aqm_dropped > 0, has_aqm, "{name}");
    }
}

#[test]
fn with_ecn_packets_are_marked_and_others_dropped() {
    for name in ["codel", "pie", "fq_codel"] {
        for (ecn, is_ect) in [(true, true), (true, false), (false, true)] {
            let mut link = disciplined(name, ecn);
            // A standing queue for a second.
            for number in 0..1050_u64 {
                let now = Duration::from_micros(number * 952);
                let one = packet(Class::Foreground);
                link.arrive(now, Packet { is_ect, ..one });
            }
            let came = delivered(&mut link, ms(5000));
            let marked = came.iter().filter(|one| one.packet.is_marked).count() as u64;
            let counters = link.finish(ms(5000)).counters;
            assert_eq!(counters.marked, marked, "{name}");
            let what = (counters.marked > 0, counters.aqm_dropped > 0);
            let marks = ecn && is_ect;
            assert_eq!(what, (marks, !marks), "{name} {ecn} {is_ect}: {counters:?}");
        }
    }
}

#[test]
fn a_policer_delays_nothing() {
    let mut link = disciplined("policer", false);
    arrive(&mut link, [ms(5); 120]);
    let came = delivered(&mut link, ms(25));
    assert_eq!(moments(&came), vec![ms(25); 100]);
    let record = link.finish(ms(30));
    assert_eq!(record.counters.dropped, 20);
    assert_eq!(record.samples.queue_packets, [0, 0, 0]);
    assert_eq!(record.samples.carried, [150_000, 0, 0]);
}

#[test]
fn what_radio_could_have_carried_is_sampled() {
    let mut link = Bottleneck::new(&settings(Limit::Packets(2000), |spec| {
        spec.radio = Some("20:0.4".parse().unwrap());
    }));
    arrive(&mut link, [ms(0); 1000]);
    let samples = link.finish(ms(500)).samples;
    // A full link carries what it can, to a packet at each end of the interval.
    assert_eq!(samples.capacity.len(), 50);
    for (carried, capacity) in samples.carried.iter().zip(&samples.capacity) {
        assert!(
            carried.abs_diff(*capacity) <= 1500,
            "{carried} of {capacity}"
        );
        assert!((5990..=15_000).contains(capacity), "{capacity}");
    }
}

#[test]
fn nothing_gets_through_an_outage() {
    let mut link = Bottleneck::new(&settings(Limit::Packets(10), |spec| {
        spec.outage = vec![Interval {
            from_s: 0.01,
            until_s: 0.03,
        }];
    }));
    arrive(&mut link, [9, 10, 29, 30].map(ms));
    let came = delivered(&mut link, ms(100));
    let numbers: Vec<_> = came.iter().map(|one| one.packet.buffer).collect();
    assert_eq!(numbers, [0, 3]);
    assert_eq!(link.finish(ms(100)).counters.lost, 2);
}

#[test]
fn losses_are_as_likely_as_asked_and_the_same_for_a_seed() {
    let lost = |seed| {
        let settings = settings(Limit::Packets(10), |spec| spec.loss = 0.1);
        let mut link = Bottleneck::new(&Settings { seed, ..settings });
        arrive(&mut link, (0..10_000).map(|i| ms(2 * i)));
        let lost = link.take_dropped().map(|packet| packet.buffer);
        lost.collect::<Vec<_>>()
    };
    assert_eq!(lost(1), lost(1));
    assert_ne!(lost(1), lost(2));
    // Five standard deviations of the binomial distribution are 150.
    let count = lost(1).len();
    assert!((850..1150).contains(&count), "{count}");
}
