//! Uploads that are slow, and those that never end.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use fairbat::serve::{Patience, UploadLimits};

use super::{LONG, PATIENT, SHORT, Serving, rest, serve_on};

/// Longer than anything here sleeps, on a machine that is busy.
const PARTS: Duration = Duration::from_secs(2);

const HEAD: &[u8] = b"PUT /file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30\r\n\r\n";

fn writable(patience: Patience) -> Serving {
    serve_on(patience, Some(UploadLimits::default()))
}

fn unfinished(server: &Serving) -> usize {
    let scratch = server.directory.path().join(".fairbat-upload");
    fs::read_dir(scratch).map_or(0, Iterator::count)
}

#[test]
fn a_client_that_stops_sending_gets_an_answer_and_is_closed() {
    let server = writable(Patience {
        sending: SHORT,
        idle: LONG * 10,
        closing: SHORT,
        ..PATIENT
    });
    for sent in [&b""[..], b"some bytes"] {
        let mut stream = server.connect();
        stream.write_all(HEAD).unwrap();
        stream.write_all(sent).unwrap();
        let answer = String::from_utf8(rest(&mut stream)).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert_eq!(unfinished(&server), 0);
    }
    assert!(!server.directory.path().join("file").exists());
}

#[test]
fn a_client_that_sends_next_to_nothing_is_refused_and_its_place_is_free() {
    let server = writable(Patience {
        sending: SHORT,
        idle: LONG * 10,
        closing: LONG,
        ..PATIENT
    });
    let mut stream = server.connect();
    stream
        .write_all(b"PUT /file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n")
        .unwrap();
    // Never silent for long.
    stream.set_read_timeout(Some(SHORT / 6)).unwrap();
    let mut status = [0; 13];
    let is_ended =
        (0..200).any(|_| stream.write_all(b"x").is_err() || stream.read_exact(&mut status).is_ok());
    assert!(is_ended, "it goes on for ever");
    if status[0] == 0 {
        stream.read_exact(&mut status).expect("the answer is there");
    }
    assert_eq!(&status, b"HTTP/1.1 408 ");
    assert_eq!(unfinished(&server), 0);

    // A little more is enough.
    let mut stream = server.connect();
    stream
        .write_all(b"PUT /file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n")
        .unwrap();
    for _ in 0..9 {
        std::thread::sleep(SHORT / 6);
        stream.write_all(&[b'x'; 1000]).expect("still open");
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let answer = String::from_utf8(rest(&mut stream)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
}

#[test]
fn a_client_that_sends_slowly_is_not_idle() {
    let server = writable(Patience {
        idle: SHORT,
        ..PATIENT
    });
    let mut stream = server.connect();
    stream.write_all(HEAD).unwrap();
    for _ in 0..30 {
        std::thread::sleep(SHORT / 6);
        stream.write_all(b"x").expect("still open");
    }
    let answer = String::from_utf8(rest(&mut stream)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let stored = fs::read(server.directory.path().join("file")).unwrap();
    assert_eq!(stored, [b'x'; 30]);
}

#[test]
fn an_upload_in_parts_that_nobody_goes_on_with_is_given_up() {
    let server = writable(Patience {
        parts: PARTS,
        ..PATIENT
    });
    let mut stream = BufReader::new(server.connect());
    let mut ask = |request: &str| {
        let fields = "Host: localhost\r\nContent-Length: 0\r\n\r\n";
        let request = format!("{request}\r\n{fields}");
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        answer(&mut stream).to_lowercase()
    };
    let begun = ask("POST /file?parts HTTP/1.1\r\nContent-Range: bytes */30");
    assert!(begun.starts_with("http/1.1 201 "), "{begun}");
    let place = begun
        .lines()
        .find_map(|line| line.strip_prefix("location: "))
        .unwrap();
    let complete = format!("POST /file{place} HTTP/1.1");
    assert_eq!(unfinished(&server), 1);
    // Requests keep it.
    for _ in 0..12 {
        std::thread::sleep(PARTS / 6);
        assert!(ask(&complete).starts_with("http/1.1 409 "));
    }
    let looks = LONG.div_duration_f64(PARTS / 20) as u32;
    let is_gone = (0..looks).any(|_| {
        std::thread::sleep(PARTS / 20);
        unfinished(&server) == 0
    });
    assert!(is_gone, "it is never given up");
    assert!(ask(&complete).starts_with("http/1.1 404 "));
}

/// The next answer, with its body.
fn answer(stream: &mut BufReader<TcpStream>) -> String {
    let mut answer = String::new();
    while !answer.ends_with("\r\n\r\n") {
        let length = stream.read_line(&mut answer).unwrap();
        assert!(length > 0, "the answer breaks off: {answer}");
    }
    let length = answer.lines().find_map(|line| {
        line.to_lowercase()
            .strip_prefix("content-length: ")?
            .parse()
            .ok()
    });
    let mut body = vec![0; length.unwrap_or_default()];
    stream.read_exact(&mut body).unwrap();
    answer + &String::from_utf8(body).unwrap()
}
