//! The Lower-Effort mark on each kind of connection.

use dalbe::socket::LOWER_EFFORT;

use crate::{Connection, levers_of};

/// The DSCP without the ECN bits, which the kernel sets by itself when the
/// connection speaks ECN.
const DSCP_MASK: u8 = 0xfc;

fn the_mark_reads_back(connection: &Connection) {
    let (marked, other) = (levers_of(&connection.client), levers_of(&connection.server));
    assert_eq!(marked.traffic_class().expect("read") & DSCP_MASK, 0);
    marked.mark_lower_effort().expect("mark");
    let class = marked.traffic_class().expect("read");
    assert_eq!(class & DSCP_MASK, LOWER_EFFORT);
    assert_eq!(other.traffic_class().expect("read") & DSCP_MASK, 0);
}

#[test]
fn an_ipv4_connection_can_be_marked() {
    the_mark_reads_back(&Connection::over_ipv4());
}

#[test]
fn an_ipv6_connection_can_be_marked() {
    if let Some(connection) = Connection::over_ipv6() {
        the_mark_reads_back(&connection);
    }
}

#[test]
fn an_ipv6_socket_with_an_ipv4_mapped_peer_marks_its_ipv4_packets() {
    let Some(connection) = Connection::over_mapped_ipv4() else {
        return;
    };
    the_mark_reads_back(&connection);
    let socket = socket2::SockRef::from(&connection.client);
    assert_eq!(socket.tos_v4().expect("read") & u32::from(DSCP_MASK), 4);
}
