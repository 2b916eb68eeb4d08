//! Other processes in the lanes of an agent: they share them, they go on without it, and what
//! they say does it no harm.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use fairbat_tests::bin::{Fairbat, Running, suffixed};
use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_content;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::wait_until;
use fairbat_tests::ss::connections;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::round_trip::dir;
use crate::service::{Place, SOON};

/// What the server gives each connection, byte/s.
const RATE: u64 = 2_000_000;

/// Some seconds of that.
const FILE: Content = Content::new(7, 12_000_000);

/// A place for an agent with a lane of one connection, and a server to download from.
struct Scene {
    place: Place,
    directory: TempDir,
    server: Nginx,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        place.configure("connections = 1", "");
        Self {
            place,
            directory: dir(),
            server: Nginx::with_file(&FILE, |config| config.limit_rate = Some(RATE)),
        }
    }

    /// A download in the lane of the agent there.
    fn get(&self, name: &str, flags: &[&str]) -> Running {
        Fairbat::get(self.directory.path())
            .env("FAIRBAT_ALONE", "0")
            .env("FAIRBAT_SOCKET", self.place.join("socket"))
            .args([
                "--chunk-size",
                "1M",
                "--file-allocation",
                "none",
                "-o",
                name,
            ])
            .args(flags)
            .arg(self.server.url("file"))
            .spawn()
    }

    /// The same, once it has begun.
    fn begun(&self, name: &str, flags: &[&str]) -> Running {
        let running = self.get(name, flags);
        self.wait_to_begin(name);
        running
    }

    fn wait_to_begin(&self, name: &str) {
        wait_until(&format!("{name} to begin"), SOON, || self.part(name) > 0);
    }

    /// The same, which waits for its turn.
    fn waiting(&self, name: &str) -> Running {
        let running = self.get(name, &[]);
        thread::sleep(Duration::from_millis(500));
        assert_eq!(self.part(name), 0, "it waits for its turn");
        running
    }

    /// Connections to the server now.
    fn in_use(&self) -> usize {
        let port = self.server.address().port();
        let peer = format!(":{port} ");
        let all = connections(port);
        // Each is listed at both of its ends.
        all.lines().filter(|line| line.contains(&peer)).count() / 2
    }

    /// Bytes of a part file that have come.
    fn part(&self, name: &str) -> u64 {
        let part = fs::metadata(self.directory.path().join(format!("{name}.part")));
        part.map_or(0, |part| part.blocks() * 512)
    }

    fn expect_whole(&self, names: &[&str]) {
        for name in names {
            assert_content(&self.directory.path().join(name), &FILE);
        }
    }
}

#[test]
fn what_is_due_first_goes_first_and_the_others_wait() {
    let scene = Scene::new();
    let _agent = scene.place.start();
    let first = scene.begun("free", &[]);
    let late = scene.get("late", &["--deadline", "2h"]);
    let soon = scene.get("soon", &["--deadline", "1h"]);
    wait_until("the one that is due first", SOON, || scene.part("soon") > 0);
    // It ends the chunk that it has begun, and begins no other.
    let had = scene.part("late");
    wait_until("half of it", SOON, || scene.part("soon") > 6_000_000);
    // One more than the limit may begin when it is due before all that are at work.
    assert!(scene.in_use() <= 2, "{}", scene.in_use());
    let seen = scene.part("free");
    assert!(scene.part("late") < had + 2_000_000, "it is due later");
    assert!(!scene.directory.path().join("late").exists());
    soon.wait().expect_code(0);
    assert!(scene.part("free") <= seen + 3_000_000, "it has no deadline");
    late.wait().expect_code(0);
    first.wait().expect_code(0);
    scene.expect_whole(&["free", "late", "soon"]);
}

#[test]
fn without_the_agent_each_goes_on_and_with_it_they_join_again() {
    let scene = Scene::new();
    let agent = scene.place.start();
    let first = scene.begun("first", &[]);
    let second = scene.waiting("second");
    agent.kill();
    scene.wait_to_begin("second");
    let third = scene.begun("third", &[]);
    let _again = scene.place.start();
    // They try every half a second.
    thread::sleep(Duration::from_secs(1));
    let fourth = scene.waiting("fourth");
    for running in [first, second, third, fourth] {
        running.wait().expect_code(0);
    }
    scene.expect_whole(&["first", "second", "third", "fourth"]);
}

#[test]
fn an_agent_that_hangs_is_left() {
    let scene = Scene::new();
    let mut agent = scene.place.start();
    let first = scene.begun("first", &[]);
    let second = scene.waiting("second");
    agent.signal("STOP");
    scene.wait_to_begin("second");
    first.wait().expect_code(0);
    second.wait().expect_code(0);
    agent.signal("CONT");
}

#[test]
fn who_asks_not_to_share_does_not() {
    let scene = Scene::new();
    let _agent = scene.place.start();
    let _first = scene.begun("first", &[]);
    for alone in [&["--alone"][..], &["--weight", "1"]] {
        drop(scene.begun("second", alone));
        let part = scene.directory.path().join("second.part");
        let _ = fs::remove_file(&part);
        let _ = fs::remove_file(suffixed(&part, ".fairbat"));
    }
    assert!(
        scene.part("first") < 12_000_000,
        "the first is still at work"
    );
}

#[test]
fn an_upload_waits_for_its_turn() {
    let (place, directory) = (Place::new(), dir());
    let server = Nginx::start(&Config {
        upload_limit: Some(0),
        ..Config::default()
    });
    place.configure("connections = 1", "");
    let _agent = place.start();
    let file = directory.path().join("file");
    FILE.write_to(&file).expect("written");
    let put = |name: &str| {
        Fairbat::put(directory.path())
            .env("FAIRBAT_ALONE", "0")
            .env("FAIRBAT_SOCKET", place.join("socket"))
            .args(["--limit-rate", "2M", "file", &server.url(name)])
            .spawn()
    };
    let is_control = |event: &Value| event["event"] == "control";
    let done = |event: &Value| event["bytes_done"].as_u64().unwrap_or(0);
    let mut first = put("first");
    first.wait_for_event("bytes", |it| is_control(it) && done(it) > 500_000);
    let mut second = put("second");
    second.wait_for_event("two seconds", |it| {
        is_control(it) && it["t"].as_f64() > Some(1.5)
    });
    let waited = second.events();
    assert!(waited.iter().all(|event| done(event) == 0), "{waited:?}");
    first.wait().expect_code(0);
    second.wait().expect_code(0);
    for name in ["first", "second"] {
        assert_content(&server.path(name), &FILE);
    }
}

#[test]
fn an_agent_that_does_not_share_has_no_such_socket() {
    let place = Place::new();
    place.configure("share_lanes = false", "");
    let _agent = place.start();
    assert!(!place.join("lane.sock").exists());
}

#[test]
fn a_named_socket_at_which_nobody_answers_is_told() {
    let scene = Scene::new();
    let outcome = scene.get("alone", &[]).wait();
    outcome
        .expect_code(0)
        .expect_said(&["no agent answers", "going on alone"]);
    scene.expect_whole(&["alone"]);
}

/// Says this, and returns what is answered until the end.
fn say(place: &Place, text: &[u8]) -> String {
    let mut stream = UnixStream::connect(place.join("lane.sock")).expect("everybody may");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    // It may hang up before all is said.
    let _ = stream.write_all(text);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn what_cannot_be_meant_ends_the_connection_and_nothing_else() {
    let scene = Scene::new();
    let place = &scene.place;
    let _agent = place.start();
    let mode = fs::metadata(place.join("lane.sock"))
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o666);
    let hello = |version: u32| {
        let hello = json!({"version": version, "direction": "pull", "name": "test\u{1b}[2J"});
        format!("{hello}\n")
    };
    assert_eq!(say(place, b"\n"), "");
    assert_eq!(say(place, b"GET / HTTP/1.1\r\n\r\n"), "");
    assert_eq!(say(place, &[0xff; 1 << 20]), "");
    let refused = say(place, hello(99).as_bytes());
    assert!(
        refused.contains("refused") && refused.contains("version 99"),
        "{refused}"
    );
    let demand = |text: &str| {
        let answer = say(place, format!("{}{text}\n", hello(1)).as_bytes());
        assert!(!answer.contains("refused"), "{answer}");
    };
    demand("{}");
    demand(
        r#"{"seq":1,"term":0,"seen":{"others":0,"stream":0},"wants":[],"moved_due":0,"moved_besides":0,"rtt_s":-1.0}"#,
    );
    let want = r#"{"key":1,"service":"scavenge","bytes":1,"inactive":1,"extent":"known","waiting":4000000000,"active":0,"held":0,"weight":0.02}"#;
    demand(&format!(
        r#"{{"seq":1,"term":0,"seen":{{"others":0,"stream":0}},"wants":[{want}],"moved_due":0,"moved_besides":0,"rtt_s":null}}"#
    ));
    // It is as well as before.
    scene.get("file", &[]).wait().expect_code(0);
}
