//! Many sockets, each with parameters of its own.

use std::os::fd::AsRawFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;

const SOCKETS: usize = 1_000;

/// A round trip or more each; the first one tells nothing.
const ROUNDS: usize = 8;

/// A weight that no other socket has.
fn weight(nth: usize) -> f64 {
    LEAST_WEIGHT + (1.0 - LEAST_WEIGHT) * nth as f64 / (SOCKETS - 1) as f64
}

fn law(nth: usize) -> Law {
    Law::ALL[nth % Law::ALL.len()]
}

#[test]
fn a_thousand_sockets_keep_what_each_was_told() {
    in_own_namespace(|| {
        // Two descriptors for each stream, and one that duplicates it.
        let limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.map_or(8_192, |most| most.min(8_192));
        let raised = Rlimit {
            current: Some(wanted.max(limit.current.unwrap_or(0))),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, raised).expect("within the limit");
        set_up(Part::CongestionControls);
        as_nobody(|| {
            let congestion = Congestion::open().expect("everybody may");
            let mut streams: Vec<_> = (0..SOCKETS).map(|_| loopback()).collect();
            let sockets: Vec<TcpSocket> = streams.iter().map(|(c, _)| socket_of(c)).collect();
            for (nth, socket) in sockets.iter().enumerate() {
                let parameters = of_weight(law(nth), weight(nth));
                congestion.set(socket, &parameters).expect("its own");
            }
            let parameters = map("parameters");
            for (nth, socket) in sockets.iter().enumerate() {
                let entry = entry(&parameters, socket.as_fd().as_raw_fd());
                let entry = entry.expect("its own").expect("it was set");
                // Law and weight of struct parameters, ../../src/bpf/congestion.h.
                let expected = (weight(nth) * 65_536.0).round() as u32;
                assert_eq!(number(&entry, 4), expected, "{nth}");
                let name = congestion.name(law(nth));
                assert_eq!(socket.sender().congestion().expect("TCP"), name);
            }

            // And each is under control for itself.
            for (client, server) in &mut streams {
                for _ in 0..ROUNDS {
                    transfer(client, server, 5_000);
                }
            }
            for (nth, (socket, (_, server))) in sockets.iter().zip(&streams).enumerate() {
                let state = congestion.state(socket).expect("TCP");
                let state = state.unwrap_or_else(|| panic!("{nth} has none"));
                assert!(state.cwnd > 0 && state.packets > 0, "{nth}: {state:?}");
                let other_end = congestion.state(&socket_of(server)).expect("TCP");
                assert_eq!(other_end, None, "{nth}");
            }
        });
    });
}
