//! How a connection ends: such that the last answer arrives.

use std::io::{Read, Write};
use std::net::Shutdown;

use fairbat::serve::Patience;

use super::{LARGE, PATIENT, SHORT, rest, serve};

#[test]
fn an_early_answer_reaches_a_client_that_sends_its_whole_body_first() {
    let server = serve(PATIENT);
    let body = vec![b'x'; 30_000_000];
    for (head, answer) in [
        (
            "PUT /new HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000",
            "405",
        ),
        (
            "POST /small HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked",
            "405",
        ),
        (
            "GET /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000",
            "404",
        ),
        (
            "GET /small HTTP/1.1\r\nHost: localhost\r\nConnection: close",
            "200",
        ),
        ("GET /small", "400"),
        (
            "GET /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: x",
            "400",
        ),
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
        .write_all(b"GET /small HTTP/1.1\r\nHost: localhost\r\nX: ")
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
fn a_client_that_sends_without_end_or_never_closes_is_closed() {
    let server = serve(Patience {
        closing: SHORT,
        ..PATIENT
    });
    let ask = |request: &[u8]| {
        let mut stream = server.connect();
        stream.write_all(request).unwrap();
        stream
    };
    let put = b"PUT /new HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000000\r\n\r\n";
    let mut endless = ask(put);
    let piece = vec![b'x'; 1_000_000];
    let taken = (0..1000).take_while(|_| endless.write_all(&piece).is_ok());
    assert!(taken.count() < 1000, "all of it is taken");

    let mut open = ask(b"GET /small HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(rest(&mut open).ends_with(b"small"));
    let is_closed = (0..200).any(|_| {
        std::thread::sleep(SHORT * 2);
        open.write_all(b"x").is_err()
    });
    assert!(is_closed, "it is listened to for ever");
}

#[test]
fn a_client_that_has_closed_its_side_gets_the_whole_answer() {
    let server = serve(PATIENT);
    let mut stream = server.connect();
    stream
        .write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.len() > LARGE, "{}", answer.len());
}
