//! Peers with too many connections.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use fairbat::serve::Patience;
use socket2::{Domain, Socket, Type};

use super::{PATIENT, SHORT, rest, serve};

#[test]
fn a_peer_with_too_many_connections_gets_503_and_others_are_served() {
    let server = serve(PATIENT);
    let get = b"GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut held: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for stream in &mut held {
        stream.write_all(get).unwrap();
        // Answered: so it counts by now.
        stream.read_exact(&mut [0]).unwrap();
    }
    // Whatever is asked for, and however much comes with it.
    let mut fifth = server.connect();
    let put = b"PUT /new HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n";
    fifth.write_all(put).unwrap();
    fifth.write_all(&vec![b'x'; 9_000_000]).unwrap();
    fifth.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    fifth.read_to_string(&mut answer).unwrap();
    let answer = answer.to_lowercase();
    assert!(answer.starts_with("http/1.1 503 "), "{answer}");
    for field in ["retry-after: 10", "connection: close", "content-length: 0"] {
        assert!(answer.contains(field), "{answer}");
    }

    let other = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let address: SocketAddr = "127.0.0.2:0".parse().unwrap();
    other.bind(&address.into()).unwrap();
    other.connect(&server.address.into()).unwrap();
    let mut other = TcpStream::from(other);
    other.write_all(get).unwrap();
    let mut served = [0; 13];
    other.read_exact(&mut served).unwrap();
    assert_eq!(&served, b"HTTP/1.1 200 ");

    held.pop();
    // As soon as the server has seen that.
    let is_welcome = (0..600).any(|_| {
        std::thread::sleep(SHORT / 5);
        let mut again = server.connect();
        again.write_all(get).unwrap();
        let mut status = [0; 13];
        again.read_exact(&mut status).unwrap();
        &status == b"HTTP/1.1 200 "
    });
    assert!(is_welcome, "it is never welcome again");
}

#[test]
fn a_refused_connection_is_closed_soon() {
    let server = serve(Patience {
        closing: SHORT,
        ..PATIENT
    });
    let held: Vec<_> = (0..4).map(|_| server.connect()).collect();
    let mut fifth = server.connect();
    assert_eq!(rest(&mut fifth), b"");
    drop(held);
}
