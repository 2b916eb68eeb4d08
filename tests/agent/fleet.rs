//! The lane of a site: agents of several hosts share it over a real NATS server, lose it, and
//! find it again.

mod credentials;
mod faults;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fairbat_tests::bin::{Fairbat, Running};
use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_content;
use fairbat_tests::nats::Nats;
use fairbat_tests::nginx::Nginx;
use fairbat_tests::outcome::Outcome;
use fairbat_tests::poll::wait_until;
use serde_json::Value;

use crate::round_trip::dir;
use crate::service::{Place, SOON};

/// What the server gives each connection, byte/s.
const RATE: u64 = 2_000_000;

/// Some seconds of that.
const FILE: Content = Content::new(7, 12_000_000);

/// Half a minute of that.
const LARGE: Content = Content::new(8, 60_000_000);

fn server(file: &Content) -> Nginx {
    Nginx::with_file(file, |config| config.limit_rate = Some(RATE))
}

/// A place for the agent of a host.
fn host(nats: &Nats, name: &str) -> Place {
    let place = Place::new();
    let fleet = format!(
        "[fleet]\nurl = {:?}\nsite = \"berlin\"\nhost = {name:?}\nconnections = 1",
        nats.url()
    );
    place.configure("connections = 1", &fleet);
    place
}

/// A download in the lane of the agent there.
fn get(place: &Place, directory: &Path, server: &Nginx, name: &str, flags: &[&str]) -> Running {
    Fairbat::get(directory)
        .env("FAIRBAT_ALONE", "0")
        .env("FAIRBAT_SOCKET", place.join("socket"))
        .args(["--chunk-size", "1M", "--file-allocation", "none"])
        .args(["-o", name])
        .args(flags)
        .arg(server.url("file"))
        .spawn()
}

/// Bytes of a part file that have come.
fn part(directory: &Path, name: &str) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let part = fs::metadata(directory.join(format!("{name}.part")));
    part.map_or(0, |part| part.blocks() * 512)
}

/// What the coordinator tells of the site.
fn status(nats: &Nats) -> Value {
    let told = nats.request("fairbat.v1.berlin.status");
    told.map_or(Value::Null, |told| {
        serde_json::from_str(&told).expect("JSON")
    })
}

/// Waits until so many hosts take part; returns the host of the coordinator.
fn wait_for_hosts(nats: &Nats, count: usize, within: Duration) -> String {
    let mut coordinator = None;
    wait_until("the hosts to take part", within, || {
        let told = status(nats);
        let hosts = told["hosts"].as_array().map(Vec::len);
        coordinator = told["coordinator"].as_str().map(str::to_owned);
        hosts == Some(count)
    });
    // Their first grants are on their way.
    thread::sleep(Duration::from_millis(500));
    coordinator.expect("a coordinator")
}

#[test]
fn of_two_hosts_one_moves_at_a_time_and_the_earlier_deadline_goes_first() {
    let (nats, directory, server) = (Nats::start(), dir(), server(&FILE));
    let (a, b) = (host(&nats, "a"), host(&nats, "b"));
    let _agents = (a.start(), b.start());
    wait_for_hosts(&nats, 2, SOON);
    // What cannot be meant, and what is of another version, is ignored.
    for message in [&b"{"[..], b"{\"version\": 2}", &[0xff; 100_000]] {
        nats.publish("fairbat.v1.berlin.demand.a", message);
        nats.publish("fairbat.v1.berlin.grant.a", message);
        nats.publish("fairbat.v1.berlin.demand.C", message);
    }
    let to = directory.path();
    let free = get(&a, to, &server, "free", &[]);
    wait_until("the first to begin", SOON, || part(to, "free") > 0);
    let waits = get(&b, to, &server, "waits", &[]);
    thread::sleep(Duration::from_secs(1));
    wait_until("one to move and one to wait", SOON, || {
        let told = status(&nats);
        let pull = |host: usize, what: &str| told["hosts"][host]["pull"][what].as_u64();
        eprintln!("{told}");
        told["hosts"][0]["name"] == "a"
            && pull(0, "active") == Some(1)
            && pull(1, "active") == Some(0)
            && pull(1, "waiting") == Some(1)
    });
    assert_eq!(part(to, "waits"), 0, "it waits for its turn");
    drop(waits);
    let late = get(&a, to, &server, "late", &["--deadline", "2h"]);
    let soon = get(&b, to, &server, "soon", &["--deadline", "1h"]);
    wait_until("the one that is due first", SOON, || part(to, "soon") > 0);
    // It ends the chunk that it has begun, and begins no other.
    let had = part(to, "late");
    wait_until("half of it", SOON, || part(to, "soon") > 6_000_000);
    let seen = part(to, "free");
    assert!(part(to, "late") < had + 2_000_000, "it is due later");
    assert!(!to.join("late").exists());
    soon.wait().expect_code(0);
    assert!(part(to, "free") <= seen + 3_000_000, "it has no deadline");
    late.wait().expect_code(0);
    free.wait().expect_code(0);
    for name in ["free", "late", "soon"] {
        assert_content(&to.join(name), &FILE);
    }
    for place in [&a, &b] {
        assert_eq!(place.log().matches("connected to NATS").count(), 1);
        assert!(place.log().matches("version 2").count() <= 2, "told once");
    }
}

#[test]
fn without_nats_each_goes_on_and_with_it_they_are_one_lane_again() {
    let (mut nats, directory, server) = (Nats::start(), dir(), server(&LARGE));
    let (a, b) = (host(&nats, "a"), host(&nats, "b"));
    let _agents = (a.start(), b.start());
    wait_for_hosts(&nats, 2, SOON);
    let to = directory.path();
    let first = get(&a, to, &server, "first", &[]);
    wait_until("the first to begin", SOON, || part(to, "first") > 0);
    let second = get(&b, to, &server, "second", &[]);
    thread::sleep(Duration::from_secs(1));
    assert_eq!(part(to, "second"), 0, "it waits for its turn");
    nats.kill();
    let seen = part(to, "first");
    wait_until("the second to go on alone", SOON, || part(to, "second") > 0);
    wait_until("the first to go on alone", SOON, || {
        part(to, "first") > seen + 2_000_000
    });
    nats.start_again();
    wait_for_hosts(&nats, 2, SOON);
    drop((first, second));
    let first = get(&a, to, &server, "third", &[]);
    wait_until("the third to begin", SOON, || part(to, "third") > 0);
    let second = get(&b, to, &server, "fourth", &[]);
    thread::sleep(Duration::from_secs(1));
    assert_eq!(part(to, "fourth"), 0, "it waits for its turn");
    drop((first, second));
    for place in [&a, &b] {
        assert_eq!(place.log().matches("NATS at").count(), 3, "{}", place.log());
    }
}

#[test]
fn the_coordinator_is_replaced() {
    let (nats, directory, server) = (Nats::start(), dir(), server(&FILE));
    let (a, b) = (host(&nats, "a"), host(&nats, "b"));
    let mut agents = [Some(a.start()), Some(b.start())];
    let first = wait_for_hosts(&nats, 2, SOON);
    let lost = usize::from(first == "b");
    let (gone, other) = if lost == 0 { (&a, &b) } else { (&b, &a) };
    let term = status(&nats)["term"].as_u64();
    if let Some(agent) = agents[lost].take() {
        agent.kill();
    }
    wait_until("another coordinator, and a later term", SOON, || {
        let told = status(&nats);
        let is_other = told["coordinator"].as_str().is_some_and(|it| it != first);
        is_other && told["term"].as_u64() > term
    });
    let to = directory.path();
    get(other, to, &server, "file", &[]).wait().expect_code(0);
    // It takes part again when it is back.
    agents[lost] = Some(gone.start());
    wait_for_hosts(&nats, 2, SOON);
    let one = get(gone, to, &server, "one", &[]);
    wait_until("the one to begin", SOON, || part(to, "one") > 0);
    let two = get(other, to, &server, "two", &[]);
    thread::sleep(Duration::from_secs(1));
    assert_eq!(part(to, "two"), 0, "it waits for its turn");
    drop((one, two));
}

#[test]
fn an_agent_starts_and_works_without_nats() {
    let (mut nats, directory, server) = (Nats::start(), dir(), server(&FILE));
    nats.kill();
    let a = host(&nats, "a");
    let _agent = a.start();
    get(&a, directory.path(), &server, "file", &[])
        .wait()
        .expect_code(0);
    nats.start_again();
    wait_for_hosts(&nats, 1, SOON);
}

/// `fairbat fleet` by way of the agent of this place.
fn fleet(place: &Place, words: &[&str]) -> Outcome {
    Fairbat::new(Path::new("/"))
        .arg("fleet")
        .args(words)
        .env("FAIRBAT_SOCKET", place.join("socket"))
        .run()
}

/// What it said, to its end with this exit code.
fn said_by(outcome: &Outcome, code: i32) -> String {
    outcome.expect_code(code);
    outcome.stdout.clone() + &outcome.stderr
}

#[test]
fn a_host_is_held_until_it_is_released_whoever_coordinates() {
    let (nats, directory, server) = (Nats::start(), dir(), server(&FILE));
    let (a, b) = (host(&nats, "a"), host(&nats, "b"));
    let mut agents = [Some(a.start()), Some(b.start())];
    let first = wait_for_hosts(&nats, 2, SOON);
    let said = said_by(&fleet(&b, &["hold", "a", "nobody"]), 0);
    assert!(said.contains("a: held"), "{said}");
    assert!(
        said.contains("nobody: held; it gets no more connections; no host"),
        "{said}"
    );
    let to = directory.path();
    let held = get(&a, to, &server, "held", &["--deadline", "1h"]);
    let other = get(&b, to, &server, "other", &["--deadline", "2h"]);
    other.wait().expect_code(0);
    assert_eq!(part(to, "held"), 0, "it is held");
    // That it moves nothing more is told within a moment of its end.
    let mut shown = String::new();
    wait_until("an idle host", SOON, || {
        shown = said_by(&fleet(&a, &["status"]), 0);
        shown.contains("b       idle")
    });
    for line in [
        "a       held",
        "nobody  held",
        "site berlin, coordinated by",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    // The coordinator ends in good order: the next one knows who is held, and is there at once.
    let ends = usize::from(first == "b");
    let (gone, goes_on) = if ends == 0 { (&a, &b) } else { (&b, &a) };
    if let Some(agent) = agents[ends].take() {
        agent.terminate();
    }
    let over = gone.log();
    let over = over
        .lines()
        .find(|line| line.contains("no longer coordinates"));
    assert!(over.is_some_and(|line| !line.contains("WARN")), "{over:?}");
    let mut now = String::new();
    wait_until("the other coordinator", SOON, || {
        now = fleet(goes_on, &["status"]).stdout;
        now.contains("coordinated by") && !now.contains(&format!("coordinated by {first}"))
    });
    assert!(now.contains("nobody  held"), "{now}");
    let said = said_by(&fleet(goes_on, &["release", "a", "b"]), 0);
    assert!(
        said.contains("a: released") && said.contains("b: was not held"),
        "{said}"
    );
    if ends == 1 {
        held.wait().expect_code(0);
        assert_content(&to.join("held"), &FILE);
    }
    let wrong = said_by(&fleet(goes_on, &["hold", "Not a host"]), 1);
    assert!(wrong.contains("is no name of a host"), "{wrong}");
    drop(nats);
    let away = said_by(&fleet(goes_on, &["status"]), 5);
    assert!(
        away.contains("NATS is out of reach") || away.contains("no coordinator"),
        "{away}"
    );
}

#[test]
fn an_agent_without_a_site_says_so() {
    let place = Place::new();
    place.configure("connections = 1", "");
    let _agent = place.start();
    let said = said_by(&fleet(&place, &["status"]), 1);
    assert!(said.contains("this agent takes part in no site"), "{said}");
    assert!(said.contains("hint: add [fleet]"), "{said}");
}
