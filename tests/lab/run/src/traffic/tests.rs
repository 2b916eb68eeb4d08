//! Sources and prober over a real kernel: one host that talks to itself, or
//! two on a wire.

use std::process::Command;
use std::time::Duration;

use super::*;
use crate::host::{Class, Host};
use crate::machine::undisturbed;
use crate::traffic::prober;
use crate::traffic::tcp;
use crate::traffic::tcp::SenderOptions;

/// What goes wrong while the host of a virtual machine has its processors for longer
/// is tried again.
const BEARABLE: Duration = Duration::from_millis(20);

/// A host for both ends, which talk over its loopback.
fn host() -> Option<Host> {
    Host::for_test(0)
}

/// Two hosts, joined by a wire of this rate.
fn wire(rate_mbit: u32) -> Option<[Host; 2]> {
    let hosts = [host()?, Host::new(1).expect("another namespace")];
    hosts[0].wire(&hosts[1], "wire");
    for (host, other) in [(&hosts[0], 1), (&hosts[1], 0)] {
        host.ip(&format!("route add 10.78.{other}.0/24 dev wire"))
            .expect("the interface is up");
        let words = format!("qdisc add dev wire root tbf rate {rate_mbit}mbit burst 16k limit 64k");
        let shaped = host.within(move || Command::new("tc").args(words.split(' ')).status());
        assert!(shaped.expect("tc runs").success());
    }
    Some(hosts)
}

fn scenario(duration_s: f64, foreground: &str) -> Scenario {
    let head = "description = 'test'\nmeasure_from_s = 0.0\n\
        link = [{ rate_mbit = 10.0, delay_ms = 0.0, queue = { packets = 100 } }]\n";
    let scenario: Scenario =
        toml::from_str(&format!("{head}duration_s = {duration_s}\n{foreground}"))
            .expect("a scenario");
    scenario.check().expect("a scenario that can be run");
    scenario
}

fn received(scenario: &Scenario, hosts: &[Host], seed: u64) -> Received {
    let sources = Sources::start(scenario, hosts, seed, Clock::start()).expect("all set up");
    sources.finish().expect("nothing fails")
}

/// What came in each interval.
fn intervals(flow: &FlowRecord) -> Vec<u64> {
    let before = std::iter::once(&0).chain(&flow.received);
    flow.received
        .iter()
        .zip(before)
        .map(|(a, b)| a - b)
        .collect()
}

fn total(flow: &FlowRecord) -> u64 {
    *flow.received.last().expect("some intervals")
}

#[test]
fn a_constant_stream_has_its_rate_from_start_to_stop() {
    undisturbed(BEARABLE, || {
        let Some(host) = host() else { return };
        let scenario = scenario(
            1.6,
            "foreground = [{ start_s = 0.3, stop_s = 1.3, traffic = { constant = { rate_mbit = 8.0 } } }]",
        );
        let flows = received(&scenario, &[host.clone(), host], 1).flows;
        assert_eq!(flows.len(), 1);
        assert_eq!(flows[0].name, "constant");
        assert_eq!(flows[0].received.len(), 16);
        assert_eq!(flows[0].received[2], 0);
        let came = total(&flows[0]);
        // A packet every 1.448 ms, from 0.3 to 1.3 s: none is due later.
        assert!((985_000..=691 * 1448).contains(&came), "{came}");
        assert_eq!(flows[0].received[13], came);
        println!("{:?}", intervals(&flows[0]));
    });
}

#[test]
fn datagrams_have_their_mean_rate_with_gaps_shorter_than_a_timer_resolves() {
    undisturbed(BEARABLE, || {
        let Some(host) = host() else { return };
        let scenario = scenario(
            1.2,
            "foreground = [{ stop_s = 1.0, traffic = { udp = { rate_mbit = 80.0, packet_bytes = 1000 } } }]",
        );
        let flows = received(&scenario, &[host.clone(), host], 1).flows;
        assert_eq!(flows[0].name, "udp");
        let packets = total(&flows[0]) / 972;
        assert_eq!(total(&flows[0]), packets * 972);
        // 10,000 expected; the standard deviation is 100.
        assert!((9_700..10_300).contains(&packets), "{packets}");
    });
}

#[test]
fn every_packet_of_a_call_has_its_delay() {
    undisturbed(BEARABLE, || {
        let Some(host) = host() else { return };
        let scenario = scenario(
            1.5,
            "foreground = [{ start_s = 0.2, stop_s = 1.2, traffic = { call = {} } },
                           { backward = true, stop_s = 0.5, traffic = { call = {} } }]",
        );
        let flows = received(&scenario, &[host.clone(), host], 1).flows;
        let names: Vec<_> = flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["call", "backward call"]);
        let counts = flows.iter().map(|flow| flow.packets.len());
        assert_eq!(counts.collect::<Vec<_>>(), [50, 25]);
        for (packet, number) in flows[0].packets.iter().zip(0u32..) {
            let due = 0.2 + 0.02 * f64::from(number);
            assert!((due..due + 0.03).contains(&packet.t), "{packet:?}");
            assert!(packet.ms.is_some_and(|ms| ms < 20.0), "{packet:?}");
        }
        assert_eq!(total(&flows[0]), 50 * 172);
    });
}

const WEB: &str = "foreground = [
    { start_s = 0.1, stop_s = 0.6, traffic = { web = { load = 4.0, mean_kb = 20.0 } } },
    { traffic = { web = { load = 0.5, mean_kb = 3.0 } }, stop_s = 0.6 },
]";

#[test]
fn fetches_are_those_of_the_seed_and_served_exactly() {
    undisturbed(BEARABLE, || {
        let Some(host) = host() else { return };
        let hosts = [host.clone(), host];
        let scenario = scenario(3.0, WEB);
        let first = received(&scenario, &hosts, 7);
        let names: Vec<_> = first.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["web", "web 2"]);
        // 4.83 MB/s for 0.5 s and 0.6 MB/s for 0.6 s in the mean: 121 each.
        let count = first.fetches.len();
        assert!((180..310).contains(&count), "{count} fetches");
        let asked: u64 = first.fetches.iter().map(|fetch| fetch.bytes).sum();
        let came: u64 = first.flows.iter().map(total).sum();
        assert_eq!(asked, came);
        for fetch in &first.fetches {
            assert!(fetch.seconds.is_some_and(|s| s > 0.0), "{fetch:?}");
            assert!((0.0..0.8).contains(&fetch.t), "{fetch:?}");
        }
        let sizes = |received: &Received| {
            let mut sizes: Vec<_> = received.fetches.iter().map(|fetch| fetch.bytes).collect();
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(sizes(&first), sizes(&received(&scenario, &hosts, 7)));
    });
}

#[test]
fn hundreds_of_fetches_at_a_time_do_not_fail() {
    let Some(hosts) = wire(2) else { return };
    let scenario = scenario(
        1.5,
        "foreground = [{ traffic = { web = { load = 3.0, mean_kb = 5.0 } } }]",
    );
    let received = received(&scenario, &hosts, 3);
    let unfinished = received.fetches.iter().filter(|f| f.seconds.is_none());
    let unfinished = unfinished.count();
    assert!(unfinished > 500, "{unfinished}");
    assert!(unfinished < received.fetches.len());
    // 2 Mbit/s for 1.5 s, and what the bucket held.
    assert!(total(&received.flows[0]) < 400_000);
}

#[test]
fn a_source_with_pauses_is_silent_in_them() {
    undisturbed(BEARABLE, || {
        let Some(hosts) = wire(40) else { return };
        let scenario = scenario(
            5.0,
            "foreground = [{ start_s = 0.2, traffic = { on_off = { on_s = 1.2, off_s = 1.2 } } }]",
        );
        let flows = received(&scenario, &hosts, 1).flows;
        assert_eq!(flows[0].name, "on-off");
        let intervals = intervals(&flows[0]);
        println!("{intervals:?}");
        // Nothing is sent before the start. The wire carries 500 kB in each
        // interval; a busy machine may shift a turn by some of them.
        assert_eq!(intervals[..2], [0, 0], "{intervals:?}");
        let sum = |range: std::ops::Range<usize>| intervals[range].iter().sum::<u64>();
        for (on, off) in [(2..20, 20..26), (26..44, 44..50)] {
            let (on, off) = (sum(on), sum(off));
            assert!(on > 3_000_000 && off < on / 10, "{intervals:?}");
        }
    });
}

#[test]
fn greedy_connections_fill_the_wire_in_their_direction_and_time() {
    undisturbed(BEARABLE, || {
        let Some(hosts) = wire(40) else { return };
        let scenario = scenario(
            3.9,
            "foreground = [
            { start_s = 0.6, stop_s = 2.7, congestion_control = 'reno', traffic = { greedy = { flows = 2 } } },
            { start_s = 0.6, stop_s = 2.1, link = 1, backward = true, traffic = { greedy = {} } },
            { start_s = 2.7, traffic = { greedy = {} } },
            ]",
        );
        let flows = received(&scenario, &hosts, 1).flows;
        let names: Vec<_> = flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(
            names,
            ["greedy 1", "greedy 2", "backward greedy 1", "greedy 3"]
        );
        let intervals: Vec<_> = flows.iter().map(intervals).collect();
        println!("{intervals:?}");
        let between = |flow: usize, from, to| intervals[flow][from..to].iter().sum::<u64>();
        // Of 500 kB each.
        assert!(between(0, 9, 27) + between(1, 9, 27) > 6_000_000);
        assert!(between(2, 9, 21) > 3_600_000);
        assert!(between(3, 30, 39) > 3_000_000);
        for (flow, start, stop) in [(0, 6, 27), (1, 6, 27), (2, 6, 21), (3, 27, 39)] {
            assert_eq!(between(flow, 0, start), 0, "{flow}");
            // An interval later nothing is on its way any more.
            assert_eq!(between(flow, (stop + 1).min(39), 39), 0, "{flow}");
        }
    });
}

#[test]
fn accepted_connections_have_the_congestion_control_asked_for() {
    let Some(host) = host() else { return };
    let options = SenderOptions {
        congestion_control: "reno".to_owned(),
        unsent: Some(16_384),
    };
    let (listener, address) = tcp::listen(&host, options).expect("reno is always there");
    let accepted = host.within(move || {
        let _client = std::net::TcpStream::connect(address).expect("it listens");
        // It may have to be waited for.
        listener.set_nonblocking(false).expect("a socket");
        listener.accept().expect("a connection").0
    });
    let accepted = socket2::SockRef::from(&accepted);
    let name = accepted.tcp_congestion().expect("a name");
    assert!(name.starts_with(b"reno\0"), "{name:?}");
    assert_eq!(accepted.tcp_notsent_lowat().expect("a number"), 16_384);
    assert!(accepted.tcp_nodelay().expect("a flag"));
}

#[test]
fn an_unknown_congestion_control_is_named() {
    let Some(host) = host() else { return };
    let scenario = scenario(
        5.0,
        "foreground = [
            { traffic = { greedy = {} } },
            { congestion_control = 'none_such', traffic = { greedy = {} } },
        ]",
    );
    let started = Sources::start(&scenario, &[host.clone(), host], 1, Clock::start());
    let error = started
        .err()
        .expect("no such congestion control")
        .to_string();
    let expected = "congestion control \"none_such\" is not available: ";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_failure_of_a_source_is_told_at_the_end() {
    let Some(near) = host() else { return };
    let far = Host::new(1).expect("another namespace");
    let scenario = scenario(2.0, "foreground = [{ traffic = { greedy = {} } }]");
    let sources = Sources::start(&scenario, &[near, far], 1, Clock::start());
    let finished = sources.expect("all set up").finish();
    let error = finished.expect_err("there is no wire").to_string();
    assert!(
        error.starts_with("connect from 10.78.1.1 to 10.78.0.1:"),
        "{error}"
    );
}

#[test]
fn probes_come_back_in_the_order_of_sending() {
    undisturbed(BEARABLE, || {
        let Some(hosts) = wire(40) else { return };
        let clock = Clock::start();
        let prober = prober::start(&hosts[1], &hosts[0], clock, Duration::from_secs(1));
        let probes = prober.expect("a wire").finish();
        assert!(probes[0].t < 0.1, "{probes:?}");
        let count = probes.len() as f64;
        let expected = (1.0 - probes[0].t) / 0.02;
        assert!(
            (expected - 2.0..=expected + 2.0).contains(&count),
            "{probes:?}"
        );
        // Nobody waited for those that do not come.
        assert!(clock.seconds() < 3.0);
        assert!(probes.is_sorted_by(|a, b| a.t < b.t));
        for probe in &probes {
            assert!(
                probe.ms.is_some_and(|ms| ms > 0.0 && ms < 500.0),
                "{probe:?}"
            );
        }
        println!(
            "{:?}",
            probes.iter().map(|probe| probe.ms).collect::<Vec<_>>()
        );
    });
}

#[test]
fn probes_that_do_not_come_back_are_lost() {
    let Some(hosts) = wire(40) else { return };
    let clock = Clock::start();
    let prober = prober::start(&hosts[1], &hosts[0], clock, Duration::from_millis(2500));
    let prober = prober.expect("a wire");
    clock.sleep_until(Duration::from_secs(1));
    hosts[0].ip("link set wire down").expect("a wire");
    let probes = prober.finish();
    let answered: Vec<_> = probes.iter().map(|probe| probe.ms.is_some()).collect();
    assert!(answered[..4].iter().all(|&answered| answered), "{probes:?}");
    assert!(!answered[probes.len() - 1], "{probes:?}");
}

#[test]
fn probes_need_a_way() {
    let Some(near) = host() else { return };
    let far = Host::new(1).expect("another namespace");
    let error = prober::start(&far, &near, Clock::start(), Duration::from_secs(1));
    let error = error.expect_err("there is no wire").to_string();
    assert!(
        error.starts_with("a way for probes to 10.78.0.3:"),
        "{error}"
    );
}

#[test]
fn counts_into_the_interval_of_the_moment() {
    let meter = Meter::new(Clock::start(), Duration::from_millis(350));
    for (ms, bytes) in [(0, 1), (99, 2), (100, 4), (299, 8), (300, 16)] {
        meter.count_at(Duration::from_millis(ms), bytes);
    }
    assert_eq!(meter.received(), [3, 7, 15]);
}

#[test]
fn has_as_many_elements_as_whole_intervals() {
    for (seconds, count) in [(0.7, 7), (2.3, 23), (1.1, 11), (30.0, 300), (0.25, 2)] {
        let meter = Meter::new(Clock::start(), Duration::from_secs_f64(seconds));
        assert_eq!(meter.received(), vec![0; count], "{seconds} s");
    }
}

#[test]
fn root_has_the_room_it_asks_for() {
    let Some(host) = Host::for_test(0) else {
        return;
    };
    let address = host.address(Class::Foreground);
    let socket = host.within(move || UdpSocket::bind((address, 0)));
    let socket = socket.expect("an address of the host");
    make_room(&socket, 3 << 20).expect("a socket");
    let room = socket2::SockRef::from(&socket).recv_buffer_size();
    // The kernel says twice as much, for its own needs.
    assert_eq!(room.expect("a number"), 6 << 20);
}
