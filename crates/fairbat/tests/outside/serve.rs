//! How a server treats peers that say or take nothing, or say more than it
//! listens to, with times short enough to wait for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod behind;
mod crowd;
mod ending;
mod slow;
mod uploads;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use dalbe::sender::SenderPolicy;
use fairbat::serve::{Patience, ServeSettings, Server, UploadLimits};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// More than the buffers of two sockets hold.
const LARGE: usize = 64_000_000;

const SHORT: Duration = Duration::from_millis(500);

/// Nothing here takes as long unless it hangs.
const LONG: Duration = Duration::from_secs(60);

/// Never takes longer than it must.
const PATIENT: Patience = Patience {
    idle: LONG,
    sending: LONG,
    closing: LONG,
    parts: LONG,
};

struct Serving {
    address: SocketAddr,
    directory: TempDir,
    _runtime: Runtime,
}

fn serve(patience: Patience) -> Serving {
    serve_on(patience, None)
}

fn serve_on(patience: Patience, uploads: Option<UploadLimits>) -> Serving {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("large"), vec![7; LARGE]).unwrap();
    fs::write(directory.path().join("small"), "small").unwrap();
    let settings = ServeSettings {
        directory: directory.path().to_owned(),
        listen: "127.0.0.1:0".parse().unwrap(),
        background: false,
        sender: SenderPolicy::default(),
        max_connections: 8,
        max_per_peer: 4,
        allowed_hosts: Vec::new(),
        token: None,
        tls: None,
        http3: false,
        patience,
        uploads,
    };
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(Server::bind(&settings)).unwrap();
    let address = server.address();
    runtime.spawn(server.run());
    Serving {
        address,
        directory,
        _runtime: runtime,
    }
}

impl Serving {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }
}

/// Everything until the server closes the connection, in whichever way.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "not closed");
    }
    bytes
}

#[test]
fn who_asks_for_nothing_is_closed() {
    let server = serve(Patience {
        idle: SHORT,
        sending: LONG * 10,
        closing: LONG,
        ..PATIENT
    });
    let mut silent = server.connect();
    let mut nothing = Vec::new();
    // A reset could take from a client what it has not read yet.
    silent.read_to_end(&mut nothing).expect("not reset");
    assert_eq!(nothing, b"");

    let mut half = server.connect();
    half.write_all(b"GET /small HTTP/1.1\r\nHo").unwrap();
    assert_eq!(rest(&mut half), b"");

    // However long it goes on: nothing of it is answered.
    let mut endless = server.connect();
    endless.write_all(b"GET /small HTTP/1.1\r\n").unwrap();
    let is_closed = (0..200).any(|_| {
        std::thread::sleep(SHORT / 10);
        endless.write_all(b"X: y\r\n").is_err()
    });
    assert!(is_closed, "a request without end is listened to");

    let mut idle = server.connect();
    idle.write_all(b"GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    idle.read_to_end(&mut answer).expect("not reset");
    assert!(answer.ends_with(b"\r\n\r\nsmall"));
}

/// A client with a small window that asks for more than fits into it, and for
/// less than the kernel takes of the server at once.
fn ask_with_a_small_window(server: &Serving, fields: &str) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&server.address.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
        .write_all(
            format!(
                "GET /large HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-59999\r\n{fields}\r\n"
            )
            .as_bytes(),
        )
        .unwrap();
    stream
}

#[test]
fn the_end_of_a_response_has_the_time_of_a_response() {
    let server = serve(Patience {
        idle: SHORT,
        ..PATIENT
    });
    let mut stream = ask_with_a_small_window(&server, "");
    std::thread::sleep(SHORT * 4);
    stream.read_exact(&mut vec![0; 60_000]).expect("not closed");

    // Also of the last one on a connection, though there is more to drop.
    let server = serve(Patience {
        closing: SHORT,
        ..PATIENT
    });
    let mut stream = ask_with_a_small_window(&server, "Connection: close\r\n");
    std::thread::sleep(SHORT * 4);
    stream.write_all(b"more").unwrap();
    stream.read_exact(&mut vec![0; 60_000]).expect("not reset");

    let server = serve(Patience {
        sending: SHORT,
        ..PATIENT
    });
    let mut stream = ask_with_a_small_window(&server, "");
    std::thread::sleep(SHORT * 4);
    assert!(rest(&mut stream).len() < 60_000);
}

#[test]
fn who_takes_nothing_is_closed_and_who_takes_a_little_is_not() {
    let server = serve(Patience {
        idle: LONG * 10,
        sending: SHORT * 2,
        closing: LONG,
        ..PATIENT
    });
    let ask = || {
        let mut stream = server.connect();
        stream
            .write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        stream
    };
    let mut stalled = ask();
    let mut slow = ask();
    let mut piece = vec![0; 4_000_000];
    for _ in 0..12 {
        slow.read_exact(&mut piece).unwrap();
        std::thread::sleep(SHORT / 2);
    }
    let mut rest_of_slow = vec![0; LARGE - 12 * piece.len()];
    slow.read_exact(&mut rest_of_slow).unwrap();
    assert!(rest(&mut stalled).len() < LARGE);
}

#[test]
fn a_response_that_yields_comes_whole_though_its_end_is_slow_to_go() {
    let server = serve(Patience {
        idle: SHORT,
        sending: LONG,
        closing: LONG,
        ..PATIENT
    });
    let mut stream = server.connect();
    stream
        .write_all(
            b"GET /large HTTP/1.1\r\nHost: localhost\r\nPriority: u=7\r\nRange: bytes=0-4999999\r\n\r\n",
        )
        .unwrap();
    let answer = rest(&mut stream);
    let head = answer
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .unwrap();
    assert_eq!(answer.len() - head - 4, 5_000_000);
}
