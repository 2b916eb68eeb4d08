//! The listener of metrics and page, over real connections.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use fairbat_tests::poll::wait_until;

use crate::scene::{Serving, night, status};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends these bytes, and reads until the connection is closed.
fn exchange(serving: &Serving, request: &str) -> String {
    let mut stream = TcpStream::connect(serving.address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

fn ask(serving: &Serving, method: &str, path: &str, host: &str) -> String {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    exchange(serving, &head)
}

fn get(serving: &Serving, path: &str) -> String {
    ask(serving, "GET", path, &serving.address.to_string())
}

/// The body of an answer that must be a good one.
fn body(answer: &str) -> &str {
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    answer.split_once("\r\n\r\n").expect("a head").1
}

fn serving_night() -> Serving {
    let (handle, port) = night();
    Serving::begin(handle, port)
}

#[test]
fn there_are_four_documents_each_of_its_type_and_for_nobody_else() {
    let serving = serving_night();
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ("/status.json", "application/json"),
        ("/history.json", "application/json"),
    ] {
        let answer = get(&serving, path);
        assert!(!body(&answer).is_empty());
        let head = answer.split_once("\r\n\r\n").expect("a head").0;
        assert!(
            head.contains(&format!("content-type: {kind}\r\n")),
            "{head}"
        );
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
        assert!(head.contains("cache-control: no-store"), "{head}");
        let lower = head.to_ascii_lowercase();
        for absent in ["access-control", "set-cookie", "server:"] {
            assert!(!lower.contains(absent), "{head}");
        }
    }
    for path in [
        "/favicon.ico",
        "/metrics/",
        "//",
        "/../etc/passwd",
        "/index.html",
    ] {
        let answer = get(&serving, path);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
    }
}

#[test]
fn head_is_get_without_a_body_and_nothing_else_is_allowed() {
    let serving = serving_night();
    let host = serving.address.to_string();
    for path in ["/", "/metrics", "/status.json", "/history.json"] {
        let answer = ask(&serving, "HEAD", path, &host);
        assert_eq!(body(&answer), "", "{path}");
        assert!(answer.contains("content-length: "), "{answer}");
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            let answer = ask(&serving, method, path, &host);
            assert!(
                answer.starts_with("HTTP/1.1 405 "),
                "{method} {path}: {answer}"
            );
            assert!(answer.contains("allow: GET, HEAD\r\n"), "{answer}");
        }
    }
}

#[test]
fn who_calls_it_by_a_name_is_refused_and_learns_nothing() {
    let serving = serving_night();
    for path in ["/", "/metrics", "/status.json", "/history.json", "/nothing"] {
        for host in ["rebound.example", "localhost.rebound.example:9797"] {
            let answer = ask(&serving, "GET", path, host);
            assert!(answer.starts_with("HTTP/1.1 421 "), "{host}: {answer}");
            assert!(!answer.contains("home"), "{answer}");
        }
    }
    for host in ["localhost:1", "127.0.0.1", "[::1]:9797"] {
        assert!(!body(&ask(&serving, "GET", "/", host)).is_empty());
    }
    let answer = exchange(&serving, "GET / HTTP/1.0\r\n\r\n");
    assert!(answer.contains(" 400 "), "{answer}");
}

#[test]
fn the_history_has_the_hour_that_was_told() {
    let serving = serving_night();
    let answer = get(&serving, "/history.json");
    let history: serde_json::Value = serde_json::from_str(body(&answer)).expect("JSON");
    assert_eq!(history["step"], 10.0);
    for (lane, keys) in [("push", 9), ("pull", 9)] {
        let lane = history[lane].as_object().expect("a lane");
        assert_eq!(lane.len(), keys);
        for key in [
            "rate", "zeta", "w", "n", "m", "stream_n", "stream_m", "queue",
        ] {
            assert_eq!(lane[key].as_array().expect("points").len(), 360, "{key}");
        }
        assert!(lane["rate"][359].as_f64().expect("a rate") > 1e5);
    }
    // The download has begun later.
    assert_eq!(history["pull"]["zeta"][0], serde_json::Value::Null);
    assert_eq!(history["push"]["start"], 1_774_401_250.0 - 3_600.0);
}

#[test]
fn the_status_has_the_zone_and_all_that_the_page_shows() {
    let serving = serving_night();
    let answer = get(&serving, "/status.json");
    let mut told: serde_json::Value = serde_json::from_str(body(&answer)).expect("JSON");
    let members = told.as_object_mut().expect("an object");
    assert_eq!(members.remove("zone"), Some("Europe/Berlin".into()));
    assert_eq!(members.remove("offset"), Some(3_600.into()));
    let expected = serde_json::to_string(&status(0)).expect("a status");
    let mut expected: serde_json::Value = serde_json::from_str(&expected).expect("JSON");
    // Every local user can read it, so it names no file.
    expected["tasks"][0]["check"]["damaged_files"] = serde_json::json!([]);
    let failed = &mut expected["tasks"][1]["last"];
    failed["failures"] = serde_json::json!([]);
    failed["problem"] = failed["summary"].take();
    failed["hint"] = "`fairbat status mail` says more".into();
    assert_eq!(told, expected);
}

#[test]
fn what_is_published_is_told_at_once() {
    let serving = serving_night();
    assert!(body(&get(&serving, "/status.json")).contains("\"mail\""));
    let mut later = status(0);
    later.tasks.truncate(1);
    serving.port.publish(later);
    assert!(!body(&get(&serving, "/status.json")).contains("\"mail\""));
}

#[test]
fn the_page_is_the_same_for_everybody_and_makes_markup_of_no_text() {
    let serving = serving_night();
    let answer = get(&serving, "/");
    let page = body(&answer);
    assert!(!page.contains("mail"), "no status is in the page itself");
    assert_eq!(page.matches("<script>").count(), 1);
    for sink in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "createContextualFragment",
        "document.write",
        "DOMParser",
        "srcdoc",
        "eval(",
        "Function(",
    ] {
        assert!(!page.contains(sink), "{sink}");
    }
    let head = answer.split_once("\r\n\r\n").expect("a head").0;
    assert!(
        head.contains("default-src 'none'; style-src 'sha256-"),
        "{head}"
    );
}

#[test]
fn more_connections_than_there_may_be_wait_for_their_turn() {
    let serving = serving_night();
    let mut idle: Vec<_> = (0..64)
        .map(|_| TcpStream::connect(serving.address).expect("it listens"))
        .collect();
    let mut waiting = TcpStream::connect(serving.address).expect("the queue has room");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    waiting.write_all(request.as_bytes()).expect("it is queued");
    let short = Some(Duration::from_millis(300));
    waiting.set_read_timeout(short).expect("a timeout");
    assert!(waiting.read(&mut [0; 1]).is_err(), "it is not answered yet");
    drop(idle.pop());
    waiting.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).expect("it is answered");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[test]
fn it_stops_though_clients_are_idle() {
    let mut serving = serving_night();
    let mut idle = TcpStream::connect(serving.address).expect("it listens");
    idle.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    idle.write_all(request).expect("it reads");
    idle.read_exact(&mut [0; 1]).expect("it answers");
    serving.stop();
    idle.read_to_end(&mut Vec::new()).expect("it is closed");
    // A process that another test begins has the listener for a moment, too.
    wait_until("nobody to listen", PATIENCE, || {
        TcpStream::connect(serving.address).is_err()
    });
}
