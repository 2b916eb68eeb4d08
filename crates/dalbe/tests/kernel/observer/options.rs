//! Timestamps as other systems write them, or none at all: packets put
//! together by hand, into a connection over the loopback interface.

use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

use super::*;

const INTERVAL: Duration = Duration::from_millis(100);
const PAYLOAD: &[u8] = b"forged";

/// The timestamps of a packet (RFC 7323), with these bytes around them.
fn timestamps(before: &[u8], tsval: u32, after: &[u8]) -> Vec<u8> {
    [before, &[8, 10], &tsval.to_be_bytes(), &[0; 4], after].concat()
}

/// A TCP segment with these options (RFC 9293, section 3.1).
fn segment(from: SocketAddr, to: SocketAddr, options: &[u8]) -> Vec<u8> {
    assert_eq!(options.len() % 4, 0, "options end on a word");
    let words = u8::try_from(5 + options.len() / 4).expect("few");
    let mut bytes = [
        &from.port().to_be_bytes()[..],
        &to.port().to_be_bytes(),
        &[0; 8],
        &[words << 4, 0x10, 0xff, 0xff, 0, 0, 0, 0],
        options,
        PAYLOAD,
    ]
    .concat();
    let checksum = checksum(from, to, &bytes);
    bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Of the segment and its pseudo-header.
fn checksum(from: SocketAddr, to: SocketAddr, segment: &[u8]) -> u16 {
    let octets = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => ip.octets(),
        IpAddr::V6(_) => unreachable!("IPv4 loopback"),
    };
    let length = u16::try_from(segment.len()).expect("short");
    let pseudo = [
        &octets(from)[..],
        &octets(to),
        &[0, 6],
        &length.to_be_bytes(),
    ]
    .concat();
    let bytes = [&pseudo, segment].concat();
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("folded")
}

/// Sends packets with these options to a watched connection, 20 ms apart, and
/// tells what was observed of them.
fn observe(options: &[Vec<u8>]) -> Vec<ObservedInterval> {
    set_up(EbpfPart::Observer);
    let observer = Observer::open().expect("set up");
    let (client, _server) = loopback();
    let socket = socket_of(&client);
    observer.watch(&socket, INTERVAL).expect("its own socket");
    let to = client.local_addr().expect("connected");
    let from = client.peer_addr().expect("connected");
    let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP)).expect("root");
    for options in options {
        // The kernel refuses them for their sequence numbers, after the
        // observer has seen them.
        let segment = segment(from, to, options);
        let sent = raw.send_to(&segment, &SocketAddr::new(to.ip(), 0).into());
        assert_eq!(sent.expect("sent"), segment.len());
        thread::sleep(Duration::from_millis(20));
    }
    observed(&observer, &socket, (options.len() * PAYLOAD.len()) as u64)
}

#[test]
fn timestamps_are_found_at_any_position() {
    in_own_namespace(|| {
        let tsval = 1_000_000;
        let intervals = observe(&[
            timestamps(&[1, 1], tsval, &[]),
            timestamps(&[], tsval + 20, &[1, 1]),
            timestamps(&[1], tsval + 40, &[1]),
            timestamps(&[], tsval + 60, &[0, 0]),
            // Behind a selective acknowledgement of one block (RFC 2018).
            timestamps(&[5, 10, 0, 0, 0, 0, 0, 0, 0, 0], tsval + 80, &[]),
        ]);
        let samples = intervals.iter().filter_map(|i| i.delay);
        assert_eq!(samples.map(|delay| delay.samples).sum::<u32>(), 5);
        let ends = |delay: dalbe::ebpf::DelayStatistics| [delay.min_us, delay.p90_us];
        let delays = intervals.iter().filter_map(|i| i.delay).flat_map(ends);
        // As they were sent, so they arrived, but for sleeping too long.
        assert!(delays.max().expect("five") < 1_000_000, "{intervals:?}");
    });
}

#[test]
fn packets_without_valid_timestamps_are_counted_but_not_timed() {
    in_own_namespace(|| {
        let broken: Vec<Vec<u8>> = vec![
            vec![],
            vec![1; 12],
            vec![1; 40],
            // A length of zero, one beyond the end, and no room for it.
            [&[5, 0][..], &timestamps(&[], 7, &[])].concat(),
            [&[5, 200][..], &timestamps(&[], 7, &[])].concat(),
            vec![1, 1, 1, 1, 1, 1, 1, 1, 8, 10, 0, 0],
            // The end of all options before.
            timestamps(&[0, 0], 7, &[]),
        ];
        let intervals = observe(&broken);
        assert!(intervals.iter().all(|i| i.delay.is_none()), "{intervals:?}");
        let packets: u32 = intervals.iter().map(|i| i.packets).sum();
        assert_eq!(packets as usize, broken.len());
    });
}

#[test]
fn timestamps_may_wrap() {
    in_own_namespace(|| {
        let first = u32::MAX - 30;
        let sent = (0..5).map(|i| timestamps(&[1, 1], first.wrapping_add(20 * i), &[]));
        let intervals = observe(&sent.collect::<Vec<_>>());
        let delays: Vec<i64> = intervals
            .iter()
            .filter_map(|i| Some(i.delay?.mean_us))
            .collect();
        assert!(delays.iter().all(|us| us.abs() < 1_000_000), "{delays:?}");
        assert!(!delays.is_empty(), "{intervals:?}");
    });
}
