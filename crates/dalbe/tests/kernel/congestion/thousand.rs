//! Many sockets, each with parameters of its own.

use std::os::fd::AsRawFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;

const SOCKETS: usize = 1_000;

/// A weight that no other socket has.
fn weight(nth: usize) -> f64 {
    MIN_WEIGHT + (1.0 - MIN_WEIGHT) * nth as f64 / (SOCKETS - 1) as f64
}

fn law(nth: usize) -> CongestionLaw {
    CongestionLaw::ALL[nth % CongestionLaw::ALL.len()]
}

/// What the kernel's side has kept of a socket's last round trip: the law, and
/// the weight that [`CongestionLaw::Vegas`] went by.
fn followed(state: &MapHandle, socket: &TcpSocket) -> [u32; 2] {
    let entry = entry(state, socket.as_fd().as_raw_fd()).expect("its own");
    let entry = entry.expect("under control");
    // struct state, ../../src/bpf/flow.h: `seen.law`, and `w_q16`, after which
    // come three more numbers.
    [number(&entry, 4), number(&entry, entry.len() - 16)]
}

/// The numbers of `enum law`, ../../src/bpf/congestion.h.
fn number_of(law: CongestionLaw) -> u32 {
    match law {
        CongestionLaw::Vegas => 1,
        CongestionLaw::VegasPaper => 2,
        CongestionLaw::Cdg => 3,
        CongestionLaw::CdgPaper => 4,
        CongestionLaw::CubicPhantom => 5,
        CongestionLaw::CubicBeta => 6,
    }
}

#[test]
fn a_thousand_sockets_follow_their_own_parameters() {
    in_own_namespace(|| {
        // Two descriptors for each stream, and one that duplicates it.
        let limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.map_or(8_192, |most| most.min(8_192));
        let raised = Rlimit {
            current: Some(wanted.max(limit.current.unwrap_or(0))),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, raised).expect("within the limit");
        set_up(EbpfPart::CongestionControls);
        without_slow_start(|| as_nobody(follow));
    });
}

fn follow() {
    let congestion = WeightedCongestion::open().expect("everybody may");
    let state = readable("state");
    let mut streams: Vec<_> = (0..SOCKETS).map(|_| loopback()).collect();
    let sockets: Vec<TcpSocket> = streams.iter().map(|(c, _)| socket_of(c)).collect();
    let mut run = |law: fn(usize) -> CongestionLaw| {
        for (nth, socket) in sockets.iter().enumerate() {
            let parameters = of_weight(law(nth), weight(nth));
            congestion.set(socket, &parameters).expect("its own");
        }
        for (client, server) in &mut streams {
            send(client, server);
        }
    };

    run(law);
    for (nth, socket) in sockets.iter().enumerate() {
        let [followed, _] = followed(&state, socket);
        assert_eq!(followed, number_of(law(nth)), "{nth}");
        let name = congestion.name(law(nth));
        assert_eq!(socket.sender().congestion().expect("TCP"), name);
    }

    // The weight is told by one of them.
    run(|_| CongestionLaw::Vegas);
    for (nth, socket) in sockets.iter().enumerate() {
        let expected = (weight(nth) * 65_536.0).round() as u32;
        assert_eq!(followed(&state, socket), [1, expected], "{nth}");
        let seen = congestion.state(socket).expect("TCP").expect("as above");
        assert!(seen.cwnd > 0 && seen.packets > 0, "{nth}: {seen:?}");
    }
    for (nth, (_, server)) in streams.iter().enumerate() {
        let other_end = congestion.state(&socket_of(server)).expect("TCP");
        assert_eq!(other_end, None, "{nth}");
    }
}
