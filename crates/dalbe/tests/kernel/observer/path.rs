//! What the statistics say of a path whose queue is known.

use std::ops::Range;

use super::*;
use crate::link::{CLIENT, Link, command, within};

/// A queue of 50 ms: 50 kB at 8 Mbit/s.
const QUEUE: &str = "rate 8mbit burst 3000 limit 50000";
const INTERVAL: Duration = Duration::from_millis(100);

fn leasts(intervals: &[ObservedInterval]) -> impl Iterator<Item = i64> {
    intervals.iter().filter_map(|i| Some(i.delay?.min_us))
}

#[test]
fn a_queue_shows_as_delay_and_the_window_as_bytes_per_round_trip() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let observer = Observer::open().expect("set up");
        let link = Link::new("delay", QUEUE);
        assert_is(40_000..80_000, || queue_of(&observer, &link));
    });
}

/// A queue as it shows, µs. A processor that pauses makes packets late, and none
/// early: the least of some connections says how long it is. One that was disturbed says nothing.
fn assert_is(queue: Range<i64>, shown: impl Fn() -> Result<i64, String>) {
    let mut all = Vec::new();
    for _ in 0..5 {
        let shown = shown();
        if let Ok(shown) = shown {
            assert!(shown >= queue.start, "{shown}");
            if shown < queue.end {
                return;
            }
        }
        all.push(shown);
    }
    panic!("{all:?}");
}

/// The longest that a connection's queue was, as its delay shows it, µs. The error says what else
/// looked wrong; a busy machine can cause that.
fn queue_of(observer: &Observer, link: &Link) -> Result<i64, String> {
    let (mut client, mut server) = link.connection();
    let socket = socket_of(&client);
    observer.watch(&socket, INTERVAL).expect("its own socket");

    // One packet at a time: no queue.
    for _ in 0..50 {
        transfer(&mut server, &mut client, 1_000);
        thread::sleep(Duration::from_millis(10));
    }
    let idle = observed(observer, &socket, 20_000);
    let base = leasts(&idle).min().expect("timestamps");
    let late = leasts(&idle).filter(|least| least - base > 10_000).count();
    if late * 4 > idle.len() {
        return Err(format!("late without a queue: {idle:?}"));
    }

    // As much as the sender may: the queue fills.
    transfer(&mut server, &mut client, 2_000_000);
    let busy = observed(observer, &socket, 1_000_000);
    let queued = busy.iter().filter_map(|i| Some(i.delay?.p90_us - base));
    let longest = queued.max().expect("timestamps");
    // A queue that is full is full for everybody in it.
    let variations: u64 = busy.iter().map(|i| i.piv.count()).sum();
    if variations <= 100 {
        return Err(format!("{variations} variations: {busy:?}"));
    }

    // What comes in a round trip comes at the rate of the link, 8 Mbit/s
    // with headers, as a rule: a sender may pause. And the queue holds 50 kB.
    let is_full = |interval: &&ObservedInterval| interval.bytes > 90_000;
    let full = busy.iter().skip_while(|i| !is_full(i)).skip(1);
    let mut rates: Vec<f64> = full
        .filter(is_full)
        .filter_map(|i| Some(i.cwnd_bytes? as f64 / i.round?.as_secs_f64()))
        .collect();
    rates.sort_by(f64::total_cmp);
    if rates.len() < 5 {
        return Err(format!("few full intervals: {busy:?}"));
    }
    let median = rates[rates.len() / 2];
    if !(0.9e6..1.0e6).contains(&median) {
        return Err(format!("rates: {rates:?}"));
    }
    let window = busy.iter().filter_map(|i| i.cwnd_bytes).max();
    let window = window.expect("round trips");
    assert!((25_000..90_000).contains(&window), "{busy:?}");
    let lost: u32 = busy.iter().map(|i| i.out_of_order + i.holes).sum();
    let info = socket_of(&server).info().expect("TCP_INFO");
    assert!(lost > 0 || info.total_retrans == 0, "{busy:?}");
    Ok(longest)
}

#[test]
fn a_sender_with_microsecond_ticks_is_detected() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let observer = Observer::open().expect("set up");
        let link = Link::new("ticks", QUEUE);
        if !tick_in_microseconds(&link) {
            let _ = writeln!(std::io::stderr(), "SKIPPED: needs Linux 6.7");
            return;
        }
        assert_is(20_000..80_000, || queue_by_microseconds(&observer, &link));
    });
}

/// The queue of a connection whose server ticks in microseconds, µs; panics when
/// that is not found out.
fn queue_by_microseconds(observer: &Observer, link: &Link) -> Result<i64, String> {
    let (mut client, mut server) = link.connection();
    let socket = socket_of(&client);
    observer.watch(&socket, INTERVAL).expect("its own socket");
    transfer(&mut server, &mut client, 1_000_000);
    let intervals = observed(observer, &socket, 800_000);
    let ticks: Vec<Duration> = intervals.iter().map(|i| i.tick).collect();
    assert_eq!(ticks, vec![Duration::from_micros(1); ticks.len()]);
    let delays = || intervals.iter().filter_map(|i| i.delay);
    let least = delays().map(|delay| delay.min_us).min();
    let most = delays().map(|delay| delay.p90_us).max();
    let variations: u64 = intervals.iter().map(|i| i.piv.count()).sum();
    if variations <= 100 {
        return Err(format!("{variations} variations: {intervals:?}"));
    }
    Ok(most.expect("timestamps") - least.expect("timestamps"))
}

/// Has the server's timestamps tick in microseconds (Linux 6.7). False if this
/// kernel does not know how.
fn tick_in_microseconds(link: &Link) -> bool {
    let listed = command("ip", &format!("-n {} -o link show eth0", link.server()));
    let number = listed.split(':').next().and_then(|n| n.parse().ok());
    within(link.server(), || {
        microsecond_route(number.expect("a number"))
    })
}

/// Gives the route to the client, over this interface, the feature
/// `tcp_usec_ts`, which the ip(8) of Debian 12 has no word for
/// (rtnetlink(7); numbers of `linux/rtnetlink.h`).
fn microsecond_route(interface: u32) -> bool {
    const RTM_NEWROUTE: u16 = 24;
    const REQUEST_ACK_CREATE: u16 = 0x1 | 0x4 | 0x400;
    const RTAX_FEATURE_TCP_USEC_TS: u32 = 1 << 4;
    let attribute = |kind: u16, value: &[u8]| {
        let length = u16::try_from(4 + value.len()).expect("short");
        [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat()
    };
    let client: std::net::Ipv4Addr = CLIENT.parse().expect("an address");
    let features = attribute(12, &RTAX_FEATURE_TCP_USEC_TS.to_ne_bytes());
    let body = [
        // IPv4, a host; main table, static, on this link, unicast.
        &[2, 32, 0, 0, 254, 4, 253, 1, 0, 0, 0, 0][..],
        &attribute(1, &client.octets()),
        &attribute(4, &interface.to_ne_bytes()),
        &attribute(8, &features),
    ]
    .concat();
    let length = u32::try_from(16 + body.len()).expect("short");
    let head = [
        &length.to_ne_bytes()[..],
        &RTM_NEWROUTE.to_ne_bytes(),
        &REQUEST_ACK_CREATE.to_ne_bytes(),
        &[0; 8],
    ]
    .concat();
    let netlink = socket2::Socket::new(16.into(), socket2::Type::RAW, None).expect("netlink");
    netlink.send(&[head, body].concat()).expect("sent");
    let mut answer = [0; 64];
    let length = (&netlink).read(&mut answer).expect("answered");
    // An acknowledgement is an error of 0.
    answer[..length].get(16..20) == Some(&[0; 4])
}
