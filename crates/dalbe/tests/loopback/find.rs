//! Finding a connection by its addresses among the process's descriptors.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dalbe::socket::TcpSocket;

use crate::{Connection, levers_of};

/// One search at a time: a search holds a duplicate of each socket for a
/// moment, and another that runs beside it would find a connection by that
/// duplicate when its owner has already closed it.
fn alone() -> MutexGuard<'static, ()> {
    static SEARCH: Mutex<()> = Mutex::new(());
    SEARCH.lock().unwrap_or_else(PoisonError::into_inner)
}

fn addresses(stream: &std::net::TcpStream) -> (std::net::SocketAddr, std::net::SocketAddr) {
    let local = stream.local_addr().expect("connected");
    (local, stream.peer_addr().expect("connected"))
}

#[test]
fn only_the_two_ends_of_a_connection_are_found() {
    let _alone = alone();
    let connections: Vec<_> = (0..5).map(|_| Connection::over_ipv4()).collect();
    for (index, connection) in connections.iter().enumerate() {
        let (local, peer) = addresses(&connection.client);
        let found = TcpSocket::find_by_addresses(local, peer).expect("/proc");
        let found = found.expect("it is open");
        assert_eq!(found.local_addr().expect("connected"), local);
        assert_eq!(found.peer_addr().expect("connected"), peer);
        // It is that very connection: a setting made here is seen there.
        let clamp = 10_000 + 1_000 * u32::try_from(index).expect("small");
        found.receiver().set_window_clamp(clamp).expect("clamp");
        let seen = levers_of(&connection.client).receiver().window_clamp();
        assert_eq!(seen.expect("read"), clamp);
        let other_end = levers_of(&connection.server).receiver().window_clamp();
        assert_ne!(other_end.expect("read"), clamp);
    }
}

#[test]
fn a_closed_connection_is_not_found() {
    let _alone = alone();
    let connection = Connection::over_ipv4();
    let (local, peer) = addresses(&connection.client);
    let found = |local, peer| TcpSocket::find_by_addresses(local, peer).expect("/proc");
    let mut nowhere = peer;
    nowhere.set_port(1);
    assert!(found(local, nowhere).is_none());
    assert!(found(nowhere, peer).is_none());
    drop(connection);
    assert!(found(local, peer).is_none());
}

#[test]
fn the_connection_stays_open_until_the_duplicate_is_dropped() {
    let _alone = alone();
    let Connection { client, mut server } = Connection::over_ipv4();
    let (local, peer) = addresses(&client);
    let found = TcpSocket::find_by_addresses(local, peer).expect("/proc");
    drop(client);
    server.set_nonblocking(true).expect("a socket");
    server
        .read(&mut [0])
        .expect_err("nothing came, not even the end");
    drop(found);
    server.set_nonblocking(false).expect("a socket");
    assert_eq!(server.read(&mut [0]).expect("end of stream"), 0);
}

#[test]
fn an_ipv4_mapped_connection_is_found_by_either_form() {
    let _alone = alone();
    let Some(connection) = Connection::over_mapped_ipv4() else {
        return;
    };
    let (local, peer) = addresses(&connection.client);
    assert!(local.is_ipv6());
    let plain = |address: std::net::SocketAddr| (address.ip().to_canonical(), address.port());
    for (local, peer) in [(local, peer), (plain(local).into(), plain(peer).into())] {
        let found = TcpSocket::find_by_addresses(local, peer).expect("/proc");
        assert!(found.is_some(), "{local} to {peer}");
    }
}

#[test]
fn an_ipv6_connection_is_found() {
    let _alone = alone();
    if let Some(connection) = Connection::over_ipv6() {
        let (local, peer) = addresses(&connection.client);
        let found = TcpSocket::find_by_addresses(local, peer).expect("/proc");
        assert!(found.is_some());
    }
}

#[test]
fn a_udp_socket_between_the_same_ports_is_not_taken_for_it() {
    let _alone = alone();
    let udp = UdpSocket::bind("127.0.0.1:0").expect("IPv4 loopback");
    let listener = TcpListener::bind("127.0.0.1:0").expect("IPv4 loopback");
    let peer = listener.local_addr().expect("bound");
    udp.connect(peer).expect("UDP connects to anything");
    let local = udp.local_addr().expect("bound");
    let found = TcpSocket::find_by_addresses(local, peer).expect("/proc");
    assert!(found.is_none());
}

#[test]
fn changing_descriptors_do_not_disturb_the_search() {
    let _alone = alone();
    let Connection {
        mut client,
        mut server,
    } = Connection::over_ipv4();
    let (local, peer) = addresses(&client);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                drop(Connection::over_ipv4());
            }
        });
        for _ in 0..500 {
            let found = TcpSocket::find_by_addresses(local, peer);
            assert!(matches!(found, Ok(Some(_))), "{found:?}");
        }
        done.store(true, Ordering::Relaxed);
    });
    client.write_all(b"still works").expect("loopback");
    server.read_exact(&mut [0; 11]).expect("loopback");
}
