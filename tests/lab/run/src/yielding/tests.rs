use super::*;
use crate::link::PAYLOAD_SHARE;
use crate::samples::{Connection, DirectionRecord, Lateness, Samples};
use crate::statistics::jain;

/// Interval of samples, s.
const INTERVAL: f64 = 0.1;

/// What a link of 12 Mbit/s carries from sample to sample, bytes of packets.
const WHOLE: f64 = 150_000.0;

fn setup(more: &str) -> Scenario {
    let text = format!(
        "description = \"test\"\nduration_s = 40.0\nmeasure_from_s = 12.0\n\
         [[link]]\nrate_mbit = 12.0\ndelay_ms = 50.0\nqueue = {{ packets = 50 }}\n{more}"
    );
    toml::from_str(&text).unwrap()
}

/// A link that carried these shares of what it can at each moment: of the
/// foreground and of the background. Acknowledgements take the hundredth part
/// besides; the queue is 3000 bytes.
fn link(shares: impl Fn(f64) -> (f64, f64)) -> LinkRecord {
    let mut samples = Samples {
        interval_ms: 100,
        ..Samples::default()
    };
    for index in 0..400 {
        let (foreground, background) = shares((f64::from(index) + 0.5) * INTERVAL);
        let payload = |share: f64| (share * WHOLE * PAYLOAD_SHARE).round() as u64;
        samples.queue_packets.push(2);
        samples.queue_bytes.push(3000);
        samples.foreground.push(payload(foreground));
        samples.background.push(payload(background));
        let all = (foreground + background + 0.01) * WHOLE;
        samples.carried.push(all.round() as u64);
    }
    LinkRecord {
        forward: DirectionRecord {
            samples,
            ..DirectionRecord::default()
        },
        backward: DirectionRecord::default(),
        cpu_s: 0.0,
        lateness: Lateness::default(),
    }
}

fn began(began: f64) -> BackgroundRecord {
    BackgroundRecord {
        began: Some(began),
        ..BackgroundRecord::default()
    }
}

fn figures(setup: &Scenario, shares: impl Fn(f64) -> (f64, f64)) -> YieldFigures {
    YieldFigures::of(setup, &[link(shares)], &[began(2.0)]).unwrap()
}

fn same(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-3, "{got} for {expected}");
}

#[test]
fn what_is_left_is_what_others_do_not_carry() {
    // Others leave 0.39, of which 0.3 are taken, and 0.195 before 7 s.
    let got = figures(&setup(""), |t| (0.6, if t < 7.0 { 0.195 } else { 0.3 }));
    same(got.spare_used, 0.3 / 0.39);
    same(
        got.spare_used_whole,
        (5.0 * 0.195 + 33.0 * 0.3) / (38.0 * 0.39),
    );
    // It never had 95 % of it.
    same(got.full_rate_s, 38.0);
    same(got.queue_median_ms, 2.0);
    assert_eq!(
        (got.reaped_s, got.turns, got.recovery_s),
        (None, None, None)
    );
}

#[test]
fn what_radio_could_not_carry_is_not_left() {
    let mut link = link(|_| (0.0, 0.345));
    link.forward.samples.capacity = vec![(0.7 * WHOLE) as u64; 400];
    let got = YieldFigures::of(&setup(""), &[link], &[began(2.0)]).unwrap();
    same(got.spare_used, 0.5);
}

#[test]
fn the_full_rate_is_there_when_the_next_half_second_has_it() {
    let alone = |t: f64| (0.0, if t < 3.2 { 0.0 } else { 0.98 });
    let got = figures(&setup(""), alone);
    same(got.full_rate_s, 1.2);
    same(got.longest_gap_s, 1.2);
    // A transfer that is done leaves nothing unused.
    let done = BackgroundRecord {
        done: Some(10.0),
        cpu_s: Some(0.4),
        ..began(2.0)
    };
    let links = [link(|t| if t < 10.0 { alone(t) } else { (0.0, 0.0) })];
    let got = YieldFigures::of(&setup(""), &links, &[done]).unwrap();
    same(got.spare_used_whole, 0.98 * 6.8 / (0.99 * 8.0));
    same(got.longest_gap_s, 1.2);
    same(got.cores.unwrap(), 0.05);
    same(got.done_s.unwrap(), 8.0);
}

#[test]
fn what_becomes_free_is_reaped() {
    let greedy = "[[foreground]]\ntraffic = { greedy = {} }\nstop_s = 20.0\n";
    let shares = |t: f64| match t {
        ..20.0 => (0.94, 0.05),
        ..22.5 => (0.0, 0.5),
        _ => (0.0, 0.99),
    };
    same(figures(&setup(greedy), shares).reaped_s.unwrap(), 2.5);
    // With another that stays nothing becomes free.
    let two = format!("{greedy}[[foreground]]\ntraffic = {{ greedy = {{}} }}\n");
    assert_eq!(figures(&setup(&two), shares).reaped_s, None);
    let never = |t: f64| if t < 20.0 { shares(t) } else { (0.0, 0.5) };
    same(figures(&setup(greedy), never).reaped_s.unwrap(), 20.0);
}

#[test]
fn turns_and_pauses_are_told_apart() {
    let on_off = "[[foreground]]\ntraffic = { on_off = { on_s = 5.0, off_s = 5.0 } }\n";
    let shares = |t: f64| {
        if t % 10.0 < 5.0 {
            (0.9, 0.1)
        } else {
            (0.0, 0.7)
        }
    };
    // The measured part begins within a turn, which is left out.
    let got = figures(&setup(on_off), |t| {
        if t < 15.0 { (1.0, 0.0) } else { shares(t) }
    });
    let turns = got.turns.unwrap();
    same(turns.off_use, 0.7);
    same(turns.on_share, 0.1);
}

#[test]
fn a_latecomer_has_a_share_of_the_end() {
    let mut links = [link(|_| (0.0, 0.99))];
    let connection = |port, from_s: u64, bytes| Connection {
        ports: (port, 1000),
        from_s,
        payload: vec![bytes; 40 - from_s as usize],
    };
    links[0].forward.connections = vec![connection(81, 8, 1), connection(80, 2, 3)];
    let got = YieldFigures::of(&setup(""), &links, &[began(2.0), began(8.0)]).unwrap();
    same(got.latecomer_share.unwrap(), 0.25);
    let connections = &links[0].forward.connections;
    assert_eq!(fairness(connections, &(12.0..40.0)), jain(&[1.0, 3.0]));
}

#[test]
fn a_disturbance_is_got_over_when_the_rate_is_back() {
    let setup = setup("[background]\nstopped = { from_s = 10.0, until_s = 20.0 }\n");
    let got = figures(&setup, |t| {
        (
            0.0,
            match t {
                ..8.0 => 0.8,
                ..10.0 => 0.9,
                ..21.5 => 0.0,
                ..24.0 => 0.5,
                _ => 0.8,
            },
        )
    });
    // 0.84 before; 0.756 are 90 % of it, and the mean has it a bit sooner.
    same(got.recovery_s.unwrap(), 4.0);
    same(got.longest_gap_s, 1.5);
}

#[test]
fn who_did_not_begin_has_no_figures() {
    let links = [link(|_| (0.5, 0.0))];
    assert_eq!(YieldFigures::of(&setup(""), &links, &[]), None);
    let idle = BackgroundRecord::default();
    assert_eq!(YieldFigures::of(&setup(""), &links, &[idle]), None);
    assert_eq!(YieldFigures::of(&setup(""), &[], &[began(2.0)]), None);
    let empty = LinkRecord {
        forward: DirectionRecord::default(),
        ..links[0].clone()
    };
    assert_eq!(YieldFigures::of(&setup(""), &[empty], &[began(2.0)]), None);
}

fn connection(server: u16, from_s: u64, payload: &[u64]) -> Connection {
    Connection {
        ports: (server, 1),
        from_s,
        payload: payload.to_vec(),
    }
}

#[test]
fn contenders_share_more_or_less_evenly() {
    // Of the span from 4 s: 3 and 1, whatever the connections.
    let all = [
        connection(80, 3, &[9, 1, 1]),
        connection(81, 5, &[1]),
        connection(80, 8, &[1]),
    ];
    assert_eq!(fairness(&all, &(4.0..10.0)), jain(&[3.0, 1.0]));
    assert_eq!(fairness(&all[..1], &(4.0..10.0)), None);
}

#[test]
fn the_last_to_come_is_known_by_its_first_packet() {
    let all = [
        connection(80, 7, &[1, 1]),
        connection(90, 2, &[5, 5, 5, 5, 5, 5, 6]),
        connection(80, 9, &[1, 1]),
    ];
    assert_eq!(share_of_last(&all, &(8.0..12.0)), Some(3.0 / 9.0));
    assert_eq!(share_of_last(&all, &(20.0..30.0)), None);
    assert_eq!(share_of_last(&all[..1], &(0.0..30.0)), None);
}
