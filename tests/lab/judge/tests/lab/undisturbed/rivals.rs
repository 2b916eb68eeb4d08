//! What the texts of the rivals say of them comes out on a link.

use std::ops::Range;

use lab_run::record::Record;

use crate::turn::alone;
use crate::{is_root, side_by_side};

/// A rival from `start_s` on, at a queue of so many packets; `others` are in the foreground.
fn scenario(queue: u32, duration_s: u32, others: &str, start_s: u32) -> String {
    format!(
        "
        description = 'A rival at one link'
        duration_s = {duration_s}
        measure_from_s = 12
        [[link]]
        rate_mbit = 10
        delay_ms = 10
        queue = {{ packets = {queue} }}
        {others}
        [background]
        start_s = {start_s}
        "
    )
}

/// Alone at a queue of so many packets: 250 hold 300 ms, 4 a quarter of what is on the way.
fn alone_at(queue: u32) -> String {
    scenario(queue, 27, "", 1)
}

/// Beside a flow that fills the queue, from `flow_s` on.
fn beside_greedy(flow_s: u32, start_s: u32) -> String {
    let flow = format!("[[foreground]]\ntraffic = {{ greedy = {{}} }}\nstart_s = {flow_s}");
    scenario(100, 24, &flow, start_s)
}

/// Round-trip time of the links without a queue, s.
const BASE_RTT_S: f64 = 0.02;

/// A packet of 1500 bytes takes so long on the links, s.
const PACKET_S: f64 = 0.0012;

/// Payload of a packet, bytes.
const PAYLOAD: f64 = 1448.0;

/// The queue that a packet meets, s, by the samples between two moments, s.
fn queue(record: &Record, moments: Range<f64>) -> Vec<f64> {
    let samples = &record.links[0].forward.samples;
    let step = samples.interval_ms as f64 * 1e-3;
    let all = samples.queue_packets.iter().enumerate();
    all.filter(|(place, _)| moments.contains(&((*place as f64 + 1.0) * step)))
        .map(|(_, packets)| f64::from(*packets) * PACKET_S)
        .collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What the background got between two moments, Mbit/s of payload.
fn goodput(record: &Record, moments: Range<f64>) -> f64 {
    let samples = &record.links[0].forward.samples;
    let step = samples.interval_ms as f64 * 1e-3;
    let all = samples.background.iter().enumerate();
    let bytes: u64 = all
        .filter(|(place, _)| moments.contains(&((*place as f64 + 1.0) * step)))
        .map(|(_, bytes)| *bytes)
        .sum();
    bytes as f64 * 8e-6 / (moments.end - moments.start)
}

#[test]
fn rivals_do_what_their_texts_say() {
    if !is_root() {
        return;
    }
    // Whoever measures delays of a few milliseconds needs a machine that runs.
    let _turn = alone();
    let (deep, greedy) = (&alone_at(250), &beside_greedy(0, 4));
    let [
        Some(ledbat),
        Some(tuned),
        Some(plus_plus),
        Some(low_priority),
        Some(receiver),
        Some(beside),
    ] = side_by_side([
        (deep, "ledbat"),
        (deep, "ledbat-a"),
        (deep, "ledbat-pp"),
        (deep, "tcp-lp"),
        (deep, "rledbat"),
        (greedy, "tcp-lp"),
    ])
    else {
        return;
    };
    for (record, stem) in [
        (&ledbat, "ledbat_"),
        (&tuned, "ledbat_a_"),
        (&plus_plus, "ledbat_pp_"),
        (&low_priority, "tcp_lp_"),
        (&beside, "tcp_lp_"),
    ] {
        let held_by = record.background[0].held_by.as_deref().unwrap_or_default();
        assert!(held_by.starts_with(stem), "{stem}: {held_by}");
    }
    ledbat_holds_its_target("ledbat", &ledbat);
    ledbat_holds_its_target("ledbat-a", &tuned);
    ledbat_pp_holds_its_target_and_slows_down("ledbat-pp", &plus_plus);
    ledbat_pp_holds_its_target_and_slows_down("rledbat", &receiver);
    tcp_lp_halves_at_its_threshold(&low_priority);
    tcp_lp_infers_others(&beside);
}

/// Its window may be one packet, and it does not stay there for want of a queue that it could
/// tell from a late answer.
#[test]
fn early_ledbat_carries_most_of_a_link_with_a_short_queue() {
    if !is_root() {
        return;
    }
    let _turn = alone();
    // What the queue of a flow that was there before hides is the base delay of LEDBAT (RFC
    // 6817), and what that takes then is chance. So the flow comes later.
    let runs = [beside_greedy(5, 1), alone_at(4)];
    let [Some(beside), Some(alone)] =
        side_by_side(runs.each_ref().map(|run| (&run[..], "ledbat-25")))
    else {
        return;
    };
    let got = goodput(&beside, 12.0..24.0);
    assert!(got < 0.6, "ledbat-25 beside a greedy flow: {got} Mbit/s");
    let got = goodput(&alone, 12.0..24.0);
    assert!(got > 5.0, "ledbat-25 alone: {got} Mbit/s");
}

/// RFC 6817: a queueing delay of TARGET, 100 ms, and a link that is full.
fn ledbat_holds_its_target(name: &str, record: &Record) {
    let median = median(queue(record, 14.0..24.0));
    assert!((0.09..=0.112).contains(&median), "{name}: {median} s");
    let got = goodput(record, 14.0..24.0);
    assert!(got > 9.4, "{name}: {got} Mbit/s");
    assert_eq!(record.links[0].forward.counters.dropped, 0, "{name}");
}

/// The draft: 60 ms, and slowdowns to two packets for two round trips, each nine times
/// as long after the last one as that took.
fn ledbat_pp_holds_its_target_and_slows_down(name: &str, record: &Record) {
    let median = median(queue(record, 5.0..27.0));
    assert!((0.053..=0.068).contains(&median), "{name}: {median} s");
    let slowdowns = slowdowns(record);
    assert!(slowdowns.len() >= 3, "{name}: {slowdowns:?}");
    for slowdown in &slowdowns {
        // The queue drains in the first of two round trips. A receiver takes back none of
        // what it has offered, so there the last of it comes a little later.
        let drained = slowdown.drained + 2.0 * BASE_RTT_S;
        let held = drained..drained + 2.0 * BASE_RTT_S;
        let packets = goodput(record, held) / 8e-6 * BASE_RTT_S / PAYLOAD;
        assert!(
            packets < 3.5,
            "{name}: {packets} in a round trip, {slowdowns:?}"
        );
    }
    // The first one goes back to the window of slow start, which a receiver may have
    // offered without the sender's having used it.
    for pair in slowdowns[1..].windows(2) {
        let took = pair[0].end - pair[0].start;
        let times = (pair[1].start - pair[0].end) / took;
        // The queue tells a few hundredths of a second later, or earlier.
        assert!(
            (8.0..=10.5).contains(&times),
            "{name}: {times}, {slowdowns:?}"
        );
    }
}

/// A slowdown, as the queue tells of it, s.
#[derive(Debug)]
struct Slowdown {
    start: f64,
    /// When the queue was empty.
    drained: f64,
    end: f64,
}

/// Each from when a queue that had been there begins to drain until it is back.
fn slowdowns(record: &Record) -> Vec<Slowdown> {
    const STEP: f64 = 0.01;
    let queue = queue(record, 0.0..27.0);
    let full = 0.9 * median(queue.clone());
    let mut all = Vec::new();
    let (mut last_full, mut empty) = (None, None);
    for (place, length) in queue.into_iter().enumerate() {
        let at = place as f64 * STEP;
        if length >= full {
            if let (Some(start), Some(drained)) = (last_full, empty.take()) {
                all.push(Slowdown {
                    start,
                    drained,
                    end: at,
                });
            }
            last_full = Some(at);
        } else if length <= PACKET_S && last_full.is_some() {
            empty.get_or_insert(at);
        }
    }
    all
}

/// The paper: an early indication at 15 % of the range of delays, at which the window
/// is halved once when nobody else is there, and grows again after the time-out.
fn tcp_lp_halves_at_its_threshold(record: &Record) {
    assert!(record.links[0].forward.counters.dropped > 0, "slow start");
    let range = 250.0 * PACKET_S;
    let late = queue(record, 12.0..24.0);
    let most = late.iter().copied().fold(0.0, f64::max);
    assert!(
        (0.13..=0.22).contains(&(most / range)),
        "{most} s of {range} s"
    );
    let got = goodput(record, 12.0..24.0);
    assert!(got > 8.0, "{got} Mbit/s");
}

/// The paper: beside a flow that keeps the delay above the threshold, one packet.
fn tcp_lp_infers_others(record: &Record) {
    let got = goodput(record, 12.0..24.0);
    assert!(got < 0.6, "{got} Mbit/s");
    let foreground = record.summary.foreground_mbit[0];
    assert!(foreground > 9.0, "{foreground} Mbit/s");
}
