//! Other processes in the lanes of an agent: they share them, they go on without it, and what
//! they say does it no harm.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fairbat_tests::bin::{Fairbat, Running};
use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_content;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::wait_until;
use fairbat_tests::ss::connections;
use serde_json::{Value, json};

use crate::round_trip::dir;
use crate::service::{Place, SOON};

/// What the server gives each connection, byte/s.
const RATE: u64 = 2_000_000;

/// Some seconds of that.
const FILE: Content = Content::new(7, 12_000_000);

fn server() -> Nginx {
    Nginx::with_file(&FILE, |config| config.limit_rate = Some(RATE))
}

/// A download in the lane of the agent there.
fn get(place: &Place, directory: &Path, server: &Nginx, name: &str, flags: &[&str]) -> Running {
    Fairbat::get(directory)
        .env("FAIRBAT_ALONE", "0")
        .env("FAIRBAT_SOCKET", place.join("socket"))
        .args(["--chunk-size", "1M", "-o", name])
        .args(flags)
        .arg(server.url("file"))
        .spawn()
}

/// Connections to the server now.
fn in_use(server: &Nginx) -> usize {
    let port = server.address().port();
    let peer = format!(":{port} ");
    let all = connections(port);
    // Each is listed at both of its ends.
    all.lines().filter(|line| line.contains(&peer)).count() / 2
}

/// Bytes of a part file that have come.
fn part(directory: &Path, name: &str) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let part = fs::metadata(directory.join(format!("{name}.part")));
    part.map_or(0, |part| part.blocks() * 512)
}

#[test]
fn what_is_due_first_goes_first_and_the_others_wait() {
    let (place, directory, server) = (Place::new(), dir(), server());
    place.configure("connections = 1", "");
    let _agent = place.start();
    let to = directory.path();
    let flags = ["--file-allocation", "none"];
    let first = get(&place, to, &server, "free", &flags);
    wait_until("the first to begin", SOON, || part(to, "free") > 0);
    let late = [&flags[..], &["--deadline", "2h"]].concat();
    let late = get(&place, to, &server, "late", &late);
    let soon = [&flags[..], &["--deadline", "1h"]].concat();
    let soon = get(&place, to, &server, "soon", &soon);
    wait_until("the one that is due first", SOON, || {
        part(to, "soon") > 3_000_000
    });
    // One more than the limit may begin when it is due before all that are at work.
    assert!(in_use(&server) <= 2, "{}", in_use(&server));
    let seen = part(to, "free");
    assert!(part(to, "late") < 2_000_000, "it is due later");
    soon.wait().expect_code(0);
    assert!(part(to, "free") <= seen + 3_000_000, "it has no deadline");
    late.wait().expect_code(0);
    first.wait().expect_code(0);
    for name in ["free", "late", "soon"] {
        assert_content(&to.join(name), &FILE);
    }
}

#[test]
fn without_the_agent_each_goes_on_and_with_it_they_join_again() {
    let (place, directory, server) = (Place::new(), dir(), server());
    place.configure("connections = 1", "");
    let agent = place.start();
    let to = directory.path();
    let flags = ["--file-allocation", "none"];
    let first = get(&place, to, &server, "first", &flags);
    wait_until("the first to begin", SOON, || part(to, "first") > 0);
    let second = get(&place, to, &server, "second", &flags);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(part(to, "second"), 0, "it waits for its turn");
    agent.kill();
    wait_until("the second to begin alone", SOON, || part(to, "second") > 0);
    let third = get(&place, to, &server, "third", &flags);
    wait_until("the third to begin alone", SOON, || part(to, "third") > 0);
    let again = place.start();
    // They try every half a second.
    thread::sleep(Duration::from_secs(1));
    let fourth = get(&place, to, &server, "fourth", &flags);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(part(to, "fourth"), 0, "it waits for its turn");
    for running in [first, second, third, fourth] {
        running.wait().expect_code(0);
    }
    drop(again);
    for name in ["first", "second", "third", "fourth"] {
        assert_content(&to.join(name), &FILE);
    }
}

#[test]
fn an_agent_that_hangs_is_left() {
    let (place, directory, server) = (Place::new(), dir(), server());
    place.configure("connections = 1", "");
    let mut agent = place.start();
    let to = directory.path();
    let flags = ["--file-allocation", "none"];
    let first = get(&place, to, &server, "first", &flags);
    wait_until("the first to begin", SOON, || part(to, "first") > 0);
    let second = get(&place, to, &server, "second", &flags);
    thread::sleep(Duration::from_millis(500));
    agent.signal("STOP");
    wait_until("the second to begin alone", SOON, || part(to, "second") > 0);
    first.wait().expect_code(0);
    second.wait().expect_code(0);
    agent.signal("CONT");
}

#[test]
fn who_asks_not_to_share_does_not() {
    let (place, directory, server) = (Place::new(), dir(), server());
    place.configure("connections = 1", "");
    let _agent = place.start();
    let to = directory.path();
    let flags = ["--file-allocation", "none"];
    let first = get(&place, to, &server, "first", &flags);
    wait_until("the first to begin", SOON, || part(to, "first") > 0);
    for alone in [&["--alone"][..], &["--weight", "1"]] {
        let flags = [&flags[..], alone].concat();
        let second = get(&place, to, &server, "second", &flags);
        wait_until("the second to begin", SOON, || part(to, "second") > 0);
        drop(second);
        let _ = fs::remove_file(to.join("second.part"));
        let _ = fs::remove_file(to.join("second.part.fairbat"));
    }
    assert!(part(to, "first") < 12_000_000, "the first is still at work");
    drop(first);
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
    let (place, directory, server) = (Place::new(), dir(), server());
    place.configure("", "");
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
    assert_eq!(say(&place, b"\n"), "");
    assert_eq!(say(&place, b"GET / HTTP/1.1\r\n\r\n"), "");
    assert_eq!(say(&place, &[0xff; 1 << 20]), "");
    let refused = say(&place, hello(99).as_bytes());
    assert!(
        refused.contains("refused") && refused.contains("version 99"),
        "{refused}"
    );
    let demand = |text: &str| {
        let answer = say(&place, format!("{}{text}\n", hello(1)).as_bytes());
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
    let flags = ["--file-allocation", "none"];
    get(&place, directory.path(), &server, "file", &flags)
        .wait()
        .expect_code(0);
}
