//! TCP_INFO, congestion control and pacing.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

use dalbe::socket::CongestionError;

use crate::{Connection, levers_of};

#[test]
fn received_bytes_are_counted_exactly() {
    let Connection {
        mut client,
        mut server,
    } = Connection::over_ipv4();
    let levers = levers_of(&server);
    let mut total = 0;
    for length in [1, 1_000, 123_457] {
        client.write_all(&vec![7; length]).expect("loopback");
        server.read_exact(&mut vec![0; length]).expect("loopback");
        total += length as u64;
        let info = levers.info().expect("TCP_INFO");
        assert_eq!(info.bytes_received, Some(total));
    }
}

#[test]
fn an_established_connection_reports_its_round_trip() {
    let Connection {
        mut client,
        mut server,
    } = Connection::over_ipv4();
    client.write_all(&[1; 1000]).expect("loopback");
    server.read_exact(&mut [0; 1000]).expect("loopback");
    // The answer carries the acknowledgement.
    server.write_all(&[2]).expect("loopback");
    client.read_exact(&mut [0]).expect("loopback");
    let info = levers_of(&client).info().expect("TCP_INFO");
    let (rtt, min_rtt) = (info.rtt.expect("measured"), info.min_rtt.expect("measured"));
    assert!(min_rtt <= rtt * 2, "minimum {min_rtt:?}, smoothed {rtt:?}");
    assert!(info.snd_cwnd > 0 && info.snd_mss > 0);
    // The answer to the SYN, and to the data.
    let segments = info.segs_in.expect("Linux 4.2");
    assert!((2..10).contains(&segments), "{segments}");
    // 1000 bytes and the SYN.
    assert_eq!(info.bytes_acked, Some(1001));
}

#[test]
fn the_end_of_the_stream_counts_as_one_byte() {
    let Connection { client, mut server } = Connection::over_ipv4();
    client.shutdown(Shutdown::Write).expect("connected");
    assert_eq!(server.read(&mut [0]).expect("end of stream"), 0);
    let info = levers_of(&server).info().expect("TCP_INFO");
    // The FIN.
    assert_eq!(info.bytes_received, Some(1));
}

#[test]
fn the_congestion_control_of_one_connection_can_be_chosen() {
    let connection = Connection::over_ipv4();
    let (one, other) = (levers_of(&connection.client), levers_of(&connection.server));
    let before = other.sender().congestion().expect("read");
    one.sender()
        .set_congestion("reno")
        .expect("reno is built in");
    assert_eq!(one.sender().congestion().expect("read"), "reno");
    assert_eq!(other.sender().congestion().expect("read"), before);
}

#[test]
fn an_unknown_congestion_control_is_named() {
    let connection = Connection::over_ipv4();
    let levers = levers_of(&connection.client);
    let before = levers.sender().congestion().expect("read");
    for name in ["no-such-one", "a-name-longer-than-the-kernel-takes"] {
        let error = levers.sender().set_congestion(name).expect_err("unknown");
        assert!(matches!(error, CongestionError::Unknown { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(levers.sender().set_congestion("").is_err());
    assert_eq!(levers.sender().congestion().expect("read"), before);
}

#[test]
fn a_name_is_not_cut_to_one_that_exists() {
    let connection = Connection::over_ipv4();
    let levers = levers_of(&connection.client);
    assert!(
        levers
            .sender()
            .set_congestion("reno\0and-more-letters")
            .is_err()
    );
}

#[test]
fn a_pacing_limit_beyond_32_bits_is_set_and_lifted() {
    let connection = Connection::over_ipv4();
    let levers = levers_of(&connection.client);
    assert_eq!(levers.sender().max_pacing_rate().expect("read"), None);
    for rate in [125_000, 10_000_000_000] {
        levers
            .sender()
            .set_max_pacing_rate(Some(rate))
            .expect("set");
        let read = levers.sender().max_pacing_rate().expect("read");
        assert_eq!(read, Some(rate));
    }
    let error = levers.sender().set_max_pacing_rate(Some(0));
    assert_eq!(error.expect_err("stops").kind(), ErrorKind::InvalidInput);
    levers.sender().set_max_pacing_rate(None).expect("lifted");
    assert_eq!(levers.sender().max_pacing_rate().expect("read"), None);
}

#[test]
fn the_pacing_limit_holds_for_the_connection() {
    let Connection {
        mut client,
        mut server,
    } = Connection::over_ipv4();
    let levers = levers_of(&client);
    let ceiling = 1_000_000;
    levers
        .sender()
        .set_max_pacing_rate(Some(ceiling))
        .expect("set");
    client.write_all(&[3; 10_000]).expect("loopback");
    server.read_exact(&mut [0; 10_000]).expect("loopback");
    let rate = levers.info().expect("TCP_INFO").pacing_rate.expect("paced");
    assert!(rate <= ceiling, "{rate} byte/s");
}
