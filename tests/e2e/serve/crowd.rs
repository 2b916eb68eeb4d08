//! Many clients, slow ones, and those who say nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use fairbat_tests::poll::wait_until;

use super::{Content, FILE, SOON, Serving, curl, value};

const LARGE: Content = Content::new(420, 64_000_000);
const GET: &[u8] = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Asks for the large file, and reads no more than the first byte.
fn begin(server: &Serving) -> TcpStream {
    let mut stream = server.connect();
    stream.write_all(GET).expect("sent");
    stream.read_exact(&mut [0]).expect("it begins");
    stream
}

#[test]
fn two_hundred_idle_connections_do_not_stop_others() {
    let server = Serving::start(&["--max-connections-per-peer", "300"]);
    server.put_fresh("file", &FILE);
    let idle: Vec<_> = (0..200).map(|_| server.connect()).collect();
    let half: Vec<_> = (0..50)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"GET /file HTTP/1.1\r\nHo").expect("sent");
            stream
        })
        .collect();
    for _ in 0..5 {
        assert!(curl([&server.url("file")]).stdout == FILE.all());
    }
    drop((idle, half));
}

#[test]
fn slow_readers_hold_nobody_up() {
    let server = Serving::start(&[]);
    server.put_fresh("large", &LARGE);
    server.put_fresh("file", &FILE);
    let slow: Vec<_> = (0..20).map(|_| begin(&server)).collect();
    assert!(curl([&server.url("file")]).stdout == FILE.all());
    assert!(curl([&server.url("large")]).stdout == LARGE.all());
    drop(slow);
}

#[test]
fn beyond_the_limit_connections_wait_and_are_not_refused() {
    let server = Serving::start(&["--max-connections", "1"]);
    server.put_fresh("large", &LARGE);
    server.put_fresh("file", &FILE);
    let first = begin(&server);
    let mut second = server.connect();
    second
        .write_all(b"GET /file HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("sent");
    second
        .set_read_timeout(Some(Duration::from_millis(300)))
        .expect("a time");
    let waiting = second.read(&mut [0]).expect_err("nobody answers yet");
    assert_eq!(waiting.kind(), std::io::ErrorKind::WouldBlock);
    drop(first);
    second.set_read_timeout(Some(SOON)).expect("a time");
    let mut answer = Vec::new();
    second.read_to_end(&mut answer).expect("answered at last");
    assert!(answer.ends_with(&FILE.all()));
}

#[test]
fn one_peer_cannot_take_all_there_are() {
    let server = Serving::start(&[]);
    server.put_fresh("file", &FILE);
    let url = server.url("file");
    let held: Vec<_> = (0..64).map(|_| server.connect()).collect();
    let refused = curl(["-D", "-", "-o", "/dev/null", &url]);
    let head = String::from_utf8_lossy(&refused.stdout).to_lowercase();
    assert!(head.starts_with("http/1.1 503"), "{head}");
    assert_eq!(value(&head, "retry-after"), "10");
    assert!(curl(["--interface", "127.0.0.2", &url]).stdout == FILE.all());
    drop(held);
    wait_until("it to be welcome again", SOON, || {
        server.status(&[&url]) == 200
    });
    let outcome = server.end();
    outcome
        .expect_said(&["warning: 127.0.0.1 has 64 connections"])
        .expect_said(&["--max-connections-per-peer"]);
}

#[test]
fn however_many_connections_one_peer_opens_others_are_served() {
    // Fewer than one peer may have by itself, and as many as descriptors allow.
    for (limit, flags) in [(1024, &["--max-connections", "20"][..]), (64, &[])] {
        let server = Serving::run(|run| run.open_files(limit).args(flags));
        server.put_fresh("file", &FILE);
        let url = server.url("file");
        let held: Vec<_> = (0..100).map(|_| server.connect()).collect();
        for _ in 0..3 {
            let fetched = curl(["--interface", "127.0.0.2", &url]);
            assert!(fetched.stdout == FILE.all(), "{limit}: {fetched:?}");
        }
        drop(held);
        wait_until("it to be welcome again", SOON, || {
            server.status(&[&url]) == 200
        });
    }
}

#[test]
fn beyond_those_that_are_told_connections_are_closed() {
    let server = Serving::start(&["--max-connections-per-peer", "1"]);
    let held: Vec<_> = (0..5).map(|_| server.connect()).collect();
    let mut beyond = server.connect();
    assert_eq!(beyond.read(&mut [0]).expect("closed, and not reset"), 0);
    for mut told in held.into_iter().skip(1) {
        told.write_all(GET).expect("sent");
        let mut answer = Vec::new();
        told.read_to_end(&mut answer).expect("answered");
        assert!(answer.starts_with(b"HTTP/1.1 503 "));
    }
}

#[test]
fn few_descriptors_mean_few_connections_and_no_failure() {
    let server = Serving::run(|run| run.open_files(64));
    server.put_fresh("file", &FILE);
    let url = server.url("file");
    for _ in 0..3 {
        let crowd: Vec<_> = (0..100).map(|_| server.connect()).collect();
        drop(crowd);
        wait_until("the crowd to be gone", SOON, || {
            curl([&url]).stdout == FILE.all()
        });
    }
    let outcome = server.end();
    outcome.expect_said(&["limit on open files"]);
}

#[test]
fn many_clients_get_exact_files_at_once() {
    let server = Serving::start(&["--background"]);
    server.put_fresh("file", &FILE);
    let url = server.url("file");
    std::thread::scope(|scope| {
        for _ in 0..30 {
            scope.spawn(|| assert!(curl([&url]).stdout == FILE.all()));
        }
    });
}

#[test]
fn requests_without_sense_are_refused_and_forgotten() {
    let server = Serving::start(&[]);
    server.put_fresh("file", &FILE);
    let long = format!(
        "GET /file HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(200_000)
    );
    let many = format!(
        "GET /file HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X: y\r\n".repeat(5000)
    );
    for request in [
        &long,
        &many,
        "\0\0\0\0\r\n\r\n",
        "GET /file HTTP/9.9\r\n\r\n",
        "GET /file HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    ] {
        let mut stream = server.connect();
        // It may be refused before all of it is sent.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains(" 200 "), "{answer}");
    }
    // A body that nobody asked for, and two requests on one connection.
    let url = server.url("file");
    assert!(curl(["-X", "GET", "-d", "body", &url]).stdout == FILE.all());
    assert!(curl([&url, &url]).stdout == [FILE.all(), FILE.all()].concat());
    wait_until("the server to be well", SOON, || {
        server.status(&[&url]) == 200
    });
}
