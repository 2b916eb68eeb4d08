//! Several ways out of the machine.

use std::time::Duration;

use fairbat_tests::content::Content;
use fairbat_tests::netns::{CLIENT, Link, SERVER};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::workdir::Workdir;
use serde_json::Value;

/// Another address of the client.
const OTHER: &str = "10.77.0.3";

/// Forty seconds at the link's rate: more than two tests of the bottleneck take.
const FILE: Content = Content::new(330, 50_000_000);
const RATE: &str = "10mbit";

/// The link cannot keep this deadline, so both paths press.
const DEADLINE: &str = "25s";

/// Two addresses of the client, as ways out.
fn both() -> String {
    format!("{CLIENT},{OTHER}")
}

/// A server with a file behind this link, and a client with two addresses.
fn serve(link: &Link, content: &Content, limit_rate: Option<u64>) -> Nginx {
    link.add_address(OTHER);
    let nginx = Nginx::start(&Config {
        namespace: Some(link.server().to_owned()),
        address: SERVER.parse().expect("an address"),
        limit_rate,
        ..Config::default()
    });
    nginx.put("file", content);
    nginx
}

fn get(link: &Link, nginx: &Nginx, work: &Workdir) -> Vec<Value> {
    let outcome = work
        .get()
        .namespace(link.client())
        .timeout(Duration::from_secs(180))
        .args(["--interface", &both(), "--deadline", DEADLINE])
        .args(["-o", "file"])
        .arg(nginx.url("file"))
        .run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    let [start] = &outcome.events_named("start")[..] else {
        panic!("{outcome}");
    };
    if start["lever"] == "none" {
        eprintln!("SKIPPED: nothing can hold a connection back here");
        return Vec::new();
    }
    outcome.events()
}

#[test]
fn two_addresses_behind_one_link_turn_out_to_share_it() {
    let Some(link) = Link::with_queue(RATE) else {
        return;
    };
    let nginx = serve(&link, &FILE, None);
    // Processors that pause may hide in one download what the delays have in common.
    let is_found = |events: &Vec<Value>| {
        let is_bottleneck = |event: &Value| event["event"] == "bottleneck";
        events.is_empty() || events.iter().any(is_bottleneck)
    };
    let mut downloads = (0..3).map(|_| get(&link, &nginx, &Workdir::new()));
    let events = downloads.find(is_found).expect("it is found");
    if events.is_empty() {
        return;
    }
    let mut bottlenecks = events.iter().filter(|it| it["event"] == "bottleneck");
    let found = bottlenecks.next().expect("one");
    let mut ends = [&found["interface"], &found["with"]].map(|end| end.as_str().expect("text"));
    ends.sort_unstable();
    assert_eq!(ends, [CLIENT, OTHER]);
    // From then on both have the m and the w of one lane.
    let mut controls = events.iter().filter(|event| event["event"] == "control");
    let last = controls.next_back().expect("a sample");
    let of = |index: usize, key: &str| last["paths"][index][key].as_f64();
    assert_eq!((of(0, "m"), of(0, "w")), (of(1, "m"), of(1, "w")), "{last}");
    assert_eq!(last["m"].as_f64(), of(0, "m"), "{last}");
}

#[test]
fn the_last_bytes_come_though_no_way_seems_better() {
    let Some(link) = Link::new(RATE) else {
        return;
    };
    // The first 256 KiB come over one path, slowly. What is left is less than is worth a request
    // over that one, and nobody knows what the other one carries.
    let content = Content::new(331, 300_000);
    let nginx = serve(&link, &content, Some(250_000));
    let work = Workdir::new();
    let outcome = work
        .get()
        .namespace(link.client())
        .args(["--interface", &both()])
        .args(["--max-time", "20s", "-o", "file"])
        .arg(nginx.url("file"))
        .run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &content)]);
}

#[test]
fn an_answer_that_is_of_no_use_is_not_the_last_of_two_paths() {
    let Some(link) = Link::new(RATE) else {
        return;
    };
    let nginx = serve(&link, &Content::new(332, 300_000), None);
    let work = Workdir::new();
    // Both are asked at once, and the first answer is one that ends a download.
    let outcome = work
        .get()
        .namespace(link.client())
        .args(["--interface", &both()])
        .args(["--max-size", "1K", "-o", "file"])
        .arg(nginx.url("file"))
        .run();
    outcome.expect_code(12);
    work.assert_holds(&[]);
}
