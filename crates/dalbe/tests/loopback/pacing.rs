//! The plain sender rung on a real connection.

use std::io::{Read, Write};
use std::time::Duration;

use dalbe::capability::Capabilities;
use dalbe::sender::stock::{CongestionOverride, choose_beneath_limit};
use dalbe::sender::{Pacer, PacingTarget};
use dalbe::socket::TcpSocket;
use dalbe::weight::FlowTarget;

use super::{Connection, levers_of};

/// What is sent between two looks, bytes.
const PIECE: usize = 64 * 1024;

/// Sends so many pieces under control, as the pacer sees the time; returns
/// what it said after each.
fn send(
    connection: &mut Connection,
    pacer: &mut Pacer,
    order: FlowTarget,
    pieces: u32,
) -> Vec<PacingTarget> {
    let levers = levers_of(&connection.client);
    let mut paces = Vec::new();
    let mut read = vec![0; PIECE];
    for piece in 0..pieces {
        connection.client.write_all(&[7; PIECE]).expect("loopback");
        connection.server.read_exact(&mut read).expect("loopback");
        let info = levers.info().expect("TCP_INFO");
        let now = Duration::from_millis(10) * piece;
        if let Some(pace) = pacer.update(now, &info, order) {
            set(&levers, pace);
            paces.push(pace);
        }
    }
    paces
}

fn set(levers: &TcpSocket, pace: PacingTarget) {
    levers
        .sender()
        .set_max_pacing_rate(pace.rate)
        .expect("a rate that the kernel takes");
    let read = levers.sender().max_pacing_rate().expect("read");
    assert_eq!(read, pace.rate);
}

#[test]
fn a_yielding_flow_has_a_limit_and_one_of_weight_1_has_none() {
    let (mut connection, mut pacer) = (Connection::over_ipv4(), Pacer::default());
    let first = levers_of(&connection.client).info().expect("TCP_INFO");
    assert_eq!(
        pacer.update(Duration::ZERO, &first, FlowTarget::YIELD),
        None,
        "the handshake says nothing"
    );
    let yielding = send(&mut connection, &mut pacer, FlowTarget::YIELD, 80);
    assert!(yielding.len() > 10, "{} answers", yielding.len());
    assert!(yielding.iter().all(|pace| pace.rate.is_some()));
    let free = send(&mut connection, &mut pacer, FlowTarget::FREE, 5);
    assert!(free.iter().all(|pace| pace.rate.is_none()), "{free:?}");
    assert!(!free.is_empty());
}

#[test]
fn a_rate_based_congestion_control_is_replaced_below_a_limit() {
    let allowed = Capabilities::probe().congestion.allowed;
    let connection = Connection::over_ipv4();
    let levers = levers_of(&connection.client);
    if levers.sender().set_congestion("bbr").is_err() {
        eprintln!("SKIPPED, this user has no bbr");
        return;
    }
    let other = choose_beneath_limit("bbr", &allowed).expect("everybody has reno");
    let mut replaced = CongestionOverride::by(other);
    replaced.hold(&levers, true).expect("allowed");
    assert_eq!(levers.sender().congestion().expect("read"), other);
    replaced.hold(&levers, false).expect("it had it before");
    assert_eq!(levers.sender().congestion().expect("read"), "bbr");
}
