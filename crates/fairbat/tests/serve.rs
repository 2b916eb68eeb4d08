//! How a server treats peers that say or take nothing, or say more than it
//! listens to, with times short enough to wait for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use dalbe::sender::SenderPolicy;
use dalbe::socket::{LOWER_EFFORT, TcpSocket};
use fairbat::serve::{Patience, ServeSettings, Server};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// More than the buffers of two sockets hold.
const LARGE: usize = 64_000_000;

const SHORT: Duration = Duration::from_millis(500);

/// Nothing here takes as long unless it hangs.
const LONG: Duration = Duration::from_secs(60);

struct Serving {
    address: SocketAddr,
    _directory: TempDir,
    _runtime: Runtime,
}

fn serve(patience: Patience) -> Serving {
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
        token: None,
        tls: None,
        patience,
    };
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(Server::bind(&settings)).unwrap();
    let address = server.address();
    runtime.spawn(server.run());
    Serving {
        address,
        _directory: directory,
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
    idle.write_all(b"GET /small HTTP/1.1\r\nHost: h\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    idle.read_to_end(&mut answer).expect("not reset");
    assert!(answer.ends_with(b"\r\n\r\nsmall"));
}

/// A client with a small window that asks for more than fits into it, and for
/// less than the kernel takes of the server at once.
fn ask_with_a_small_window(server: &Serving) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&server.address.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
        .write_all(b"GET /large HTTP/1.1\r\nHost: h\r\nRange: bytes=0-59999\r\n\r\n")
        .unwrap();
    stream
}

#[test]
fn the_end_of_a_response_has_the_time_of_a_response() {
    let server = serve(Patience {
        idle: SHORT,
        ..PATIENT
    });
    let mut stream = ask_with_a_small_window(&server);
    std::thread::sleep(SHORT * 4);
    stream.read_exact(&mut vec![0; 60_000]).expect("not closed");

    let server = serve(Patience {
        sending: SHORT,
        ..PATIENT
    });
    let mut stream = ask_with_a_small_window(&server);
    std::thread::sleep(SHORT * 4);
    assert!(rest(&mut stream).len() < 60_000);
}

#[test]
fn who_takes_nothing_is_closed_and_who_takes_a_little_is_not() {
    let server = serve(Patience {
        idle: LONG * 10,
        sending: SHORT * 2,
        closing: LONG,
    });
    let ask = || {
        let mut stream = server.connect();
        stream
            .write_all(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
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
    });
    let mut stream = server.connect();
    stream
        .write_all(
            b"GET /large HTTP/1.1\r\nHost: h\r\nPriority: u=7\r\nRange: bytes=0-4999999\r\n\r\n",
        )
        .unwrap();
    let answer = rest(&mut stream);
    let head = answer
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .unwrap();
    assert_eq!(answer.len() - head - 4, 5_000_000);
}

/// Never takes longer than it must.
const PATIENT: Patience = Patience {
    idle: LONG,
    sending: LONG,
    closing: LONG,
};

#[test]
fn an_early_answer_reaches_who_sends_all_of_its_body_first() {
    let server = serve(PATIENT);
    let body = vec![b'x'; 30_000_000];
    for (head, answer) in [
        (
            "PUT /new HTTP/1.1\r\nHost: h\r\nContent-Length: 30000000",
            "405",
        ),
        (
            "POST /small HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked",
            "405",
        ),
        (
            "GET /none HTTP/1.1\r\nHost: h\r\nContent-Length: 30000000",
            "404",
        ),
        ("GET /small HTTP/1.1\r\nHost: h\r\nConnection: close", "200"),
        ("GET /small", "400"),
        ("GET /small HTTP/1.1\r\nHost: h\r\nContent-Length: x", "400"),
    ] {
        let mut stream = server.connect();
        stream
            .write_all(format!("{head}\r\n\r\n").as_bytes())
            .unwrap();
        stream.write_all(&body).expect(head);
        let mut got = Vec::new();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_to_end(&mut got).expect(head);
        let got = String::from_utf8(got).unwrap();
        assert!(
            got.starts_with(&format!("HTTP/1.1 {answer} ")),
            "{head}: {got}"
        );
    }
}

#[test]
fn a_head_that_is_too_long_is_answered() {
    let server = serve(PATIENT);
    let mut stream = server.connect();
    stream
        .write_all(b"GET /small HTTP/1.1\r\nHost: h\r\nX: ")
        .unwrap();
    stream.write_all(&vec![b'x'; 10_000_000]).unwrap();
    let mut got = Vec::new();
    stream.shutdown(Shutdown::Write).unwrap();
    stream.read_to_end(&mut got).unwrap();
    assert!(
        got.starts_with(b"HTTP/1.1 431 "),
        "{}",
        String::from_utf8_lossy(&got)
    );
}

#[test]
fn who_sends_without_end_or_does_not_close_is_closed() {
    let server = serve(Patience {
        closing: SHORT,
        ..PATIENT
    });
    let ask = |request: &[u8]| {
        let mut stream = server.connect();
        stream.write_all(request).unwrap();
        stream
    };
    let put = b"PUT /new HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000000\r\n\r\n";
    let mut endless = ask(put);
    let piece = vec![b'x'; 1_000_000];
    let taken = (0..1000).take_while(|_| endless.write_all(&piece).is_ok());
    assert!(taken.count() < 1000, "all of it is taken");

    let mut open = ask(b"GET /small HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(rest(&mut open).ends_with(b"small"));
    let is_closed = (0..200).any(|_| {
        std::thread::sleep(SHORT * 2);
        open.write_all(b"x").is_err()
    });
    assert!(is_closed, "it is listened to for ever");
}

#[test]
fn who_has_closed_its_own_side_gets_all_of_the_answer() {
    let server = serve(PATIENT);
    let mut stream = server.connect();
    stream
        .write_all(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.len() > LARGE, "{}", answer.len());
}

#[test]
fn a_peer_with_too_many_connections_is_told_and_others_are_served() {
    let server = serve(PATIENT);
    let get = b"GET /small HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut held: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for stream in &mut held {
        stream.write_all(get).unwrap();
        // Answered: so it counts by now.
        stream.read_exact(&mut [0]).unwrap();
    }
    // Whatever is asked for, and however much comes with it.
    let mut fifth = server.connect();
    let put = b"PUT /new HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\n";
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
fn whoever_is_refused_is_not_waited_for() {
    let server = serve(Patience {
        closing: SHORT,
        ..PATIENT
    });
    let held: Vec<_> = (0..4).map(|_| server.connect()).collect();
    let mut fifth = server.connect();
    assert_eq!(rest(&mut fifth), b"");
    drop(held);
}

#[test]
fn an_ordinary_response_is_sent_as_ever_behind_one_that_yielded() {
    let server = serve(PATIENT);
    let mut stream = server.connect();
    let local = stream.local_addr().unwrap();
    // Both ends are this process's own: this is the server's, once it has
    // accepted.
    let socket = (0..600).find_map(|_| {
        std::thread::sleep(SHORT / 50);
        TcpSocket::find_by_addresses(server.address, local).unwrap()
    });
    let socket = socket.unwrap();
    let state = || {
        let sender = socket.sender();
        (
            socket.traffic_class().unwrap() & 0xfc,
            sender.congestion().unwrap(),
            sender.max_pacing_rate().unwrap(),
        )
    };
    let before = state();
    let mut piece = vec![0; 100_000];
    for _ in 0..3 {
        for (wish, yields) in [
            ("Priority: u=7", true),
            ("X: y", false),
            ("Fairbat-Deadline: due=3600, remaining=9000000", true),
            ("Priority: u=3", false),
        ] {
            let range = "Range: bytes=0-9999999";
            let request = format!("GET /large HTTP/1.1\r\nHost: h\r\n{range}\r\n{wish}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            stream.read_exact(&mut piece).unwrap();
            let is_as_asked = (0..600).any(|_| {
                std::thread::sleep(SHORT / 50);
                match yields {
                    true => state().0 == LOWER_EFFORT,
                    false => state() == before,
                }
            });
            assert!(is_as_asked, "{wish}: {:?}, at first {before:?}", state());
            for _ in 1..100 {
                stream.read_exact(&mut piece).unwrap();
            }
        }
    }
}
