//! A store that gives one answer to everything: what the agent says of it, and how long it
//! waits for it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fairbat::printable::is_unsafe;
use fairbat_tests::poll::wait_until;
use jiff::Timestamp;

use crate::round_trip::dir;
use crate::service::{Place, SOON};

/// A server that answers every request alike, and counts them.
struct Store {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Store {
    /// `head` has the status and the fields, each with its line break.
    fn answering(head: &str, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        thread::spawn(move || {
            for mut connection in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                let _ = connection.read(&mut [0; 16 * 1024]);
                let _ = connection.write_all(answer.as_bytes());
                let _ = connection.shutdown(std::net::Shutdown::Write);
                thread::spawn(move || std::io::copy(&mut connection, &mut std::io::sink()));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// An agent with a job `home` to this store, run by hand.
    fn place(&self, source: &tempfile::TempDir) -> Place {
        fs::write(source.path().join("f"), "x").expect("write a file");
        let place = Place::new();
        let keys = place.join("keys");
        fs::write(&keys, "access_key_id = a\nsecret_access_key = b\n").expect("write keys");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&keys, mode).expect("set a mode");
        let store = format!(
            "[stores.s3]\ntype = \"s3\"\nendpoint = \"http://{}\"\nregion = \"r\"\n\
             bucket = \"b\"\ncredentials = {keys:?}\n[[jobs]]\nname = \"home\"\n\
             source = {:?}\ndestination = \"s3:home\"\n",
            self.address,
            source.path()
        );
        place.configure("", &store);
        place
    }
}

#[test]
fn what_a_store_says_cannot_act_on_a_terminal_and_no_hint_is_empty() {
    let document = "<?xml version=\"1.0\"?><Error><Code>Odd\u{202e}Code</Code>\
                    <Message>a\u{202e}b\u{2066}c\u{9b}d</Message></Error>";
    let store = Store::answering("400 Bad Request\r\n", document);
    let source = dir();
    let place = store.place(&source);
    let service = place.start();
    let waited = service.fairbat(&["start", "home", "--wait"]);
    waited.expect_code(1);
    let status = service.fairbat(&["status"]);
    let json = service.fairbat(&["status", "--json"]);
    let log = place.log();
    for shown in [&waited.stderr, &status.stdout, &json.stdout, &log] {
        assert!(shown.contains("Odd"), "{shown}");
        let harmful = |c: char| is_unsafe(c) && c != '\n';
        assert!(!shown.contains(harmful), "{shown:?}");
    }
    assert!(!log.contains("hint=\"\""), "{log}");
}

#[test]
fn a_run_that_a_store_holds_off_is_retrying_and_can_be_woken() {
    let head = "503 Service Unavailable\r\nRetry-After: 604800\r\n";
    let store = Store::answering(head, "");
    let source = dir();
    let place = store.place(&source);
    let service = place.start();
    service.order(&["start", "home"]);
    let is_held_off = |task: &serde_json::Value| task["phase"] == "retrying";
    let task = service.wait_for_task("retrying", "home", is_held_off);
    let next: Timestamp = task["next"].as_str().expect("a moment").parse().unwrap();
    let hour = next.duration_since(Timestamp::now()).as_secs();
    assert!((3500..=3600).contains(&hour), "an hour at most: {task:#}");
    assert!(task["last"].is_null(), "the run goes on: {task:#}");

    let before = store.asked();
    service.order(&["start", "home"]);
    wait_until("another try", SOON, || store.asked() > before);
    service.wait_for_task("retrying again", "home", is_held_off);
}
