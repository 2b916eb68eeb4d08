//! Uploads that are slow, and those that never end.

use std::fs;
use std::io::Write;

use fairbat::serve::{Patience, UploadLimits};

use crate::{LONG, PATIENT, SHORT, Serving, rest, serve_on};

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
