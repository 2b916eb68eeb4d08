//! A connection that was held back, and is not any more.

use std::io::{Read, Write};
use std::time::Duration;

use dalbe::sender::{SenderCoupling, SenderLever, SenderLevers, SenderPolicy};
use dalbe::socket::{LOWER_EFFORT, TcpSocket};
use dalbe::weight::FlowTarget;

use crate::{Connection, levers_of};

/// What is sent between two looks, bytes.
const PIECE: usize = 64 * 1024;

/// What a lever may change: DSCP, congestion control, and ceiling on the rate.
fn state(socket: &TcpSocket) -> (u8, String, Option<u64>) {
    let class = socket.traffic_class().expect("read") & 0xfc;
    let congestion = socket.sender().congestion().expect("read");
    let rate = socket.sender().max_pacing_rate().expect("read");
    (class, congestion, rate)
}

/// Sends some under the lever, which yields.
fn send(connection: &mut Connection, lever: &mut SenderLever, begin: Duration) {
    let socket = levers_of(&connection.client);
    let mut read = vec![0; PIECE];
    for piece in 0..80 {
        connection.client.write_all(&[7; PIECE]).expect("loopback");
        connection.server.read_exact(&mut read).expect("loopback");
        let now = begin + Duration::from_millis(10) * piece;
        lever.update(now, &socket, FlowTarget::YIELD).expect("held");
    }
}

fn is_as_before_when_let_go(mut connection: Connection) {
    let socket = levers_of(&connection.client);
    socket.set_traffic_class(0x28).expect("a class of its own");
    let before = state(&socket);
    assert_eq!((before.0, before.2), (0x28, None));
    let levers = SenderLevers::open(SenderPolicy::default());
    let mut lever = levers.take(&socket, SenderCoupling::EQUAL);
    for round in 0..3 {
        send(&mut connection, &mut lever, Duration::from_secs(round));
        let held = state(&socket);
        assert_eq!(held.0, LOWER_EFFORT, "round {round}");
        assert!(
            (&held.1, held.2) != (&before.1, before.2),
            "round {round}: not held by {:?}",
            levers.kind()
        );
        lever.release(&socket).expect("let go");
        lever.release(&socket).expect("let go already");
        assert_eq!(state(&socket), before, "round {round}");
        assert_eq!(lever.is_yielding(), None);
    }
}

#[test]
fn a_released_connection_has_its_former_options() {
    is_as_before_when_let_go(Connection::over_ipv4());
    let others = [Connection::over_ipv6(), Connection::over_mapped_ipv4()];
    others
        .into_iter()
        .flatten()
        .for_each(is_as_before_when_let_go);
}

#[test]
fn a_replaced_congestion_control_returns_on_release() {
    for name in ["bbr", "reno"] {
        let connection = Connection::over_ipv4();
        let levers = levers_of(&connection.client);
        match levers.sender().set_congestion(name) {
            Ok(()) => is_as_before_when_let_go(connection),
            Err(error) => eprintln!("SKIPPED, {error}"),
        }
    }
}

#[test]
fn an_urgent_connection_is_not_marked() {
    let connection = Connection::over_ipv4();
    let socket = levers_of(&connection.client);
    let mut lever =
        SenderLevers::open(SenderPolicy::default()).take(&socket, SenderCoupling::EQUAL);
    // Near its full weight the mark stays off, once it is.
    let steps = [
        (0.02, true),
        (0.9, true),
        (1.0, false),
        (0.9, false),
        (0.4, true),
        (0.9, true),
    ];
    for (w, is_marked) in steps {
        let order = FlowTarget {
            w,
            ..FlowTarget::YIELD
        };
        lever.update(Duration::ZERO, &socket, order).expect("held");
        let class = if is_marked { LOWER_EFFORT } else { 0 };
        assert_eq!(state(&socket).0, class, "w {w}");
    }
}
