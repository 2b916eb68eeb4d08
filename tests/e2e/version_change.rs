//! The file on the server changes while somebody is fetching it: what is in
//! place at the end is one version, the new one, never a mixture.

use std::time::{Duration, SystemTime};

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::front;
use fairbat_tests::message::{Reply, Request};
use fairbat_tests::nginx::{Config, Nginx, long_ago};
use fairbat_tests::version::{LATER_MODIFIED, Version};
use fairbat_tests::workdir::Workdir;

const SIZE: u64 = 6_000_000;
const OLD: Content = Content::new(110, SIZE);
const NEW: Content = Content::new(111, SIZE);
const LONGER: Content = Content::new(112, SIZE + 500_000);
const SHORTER: Content = Content::new(113, SIZE / 2);
const RATE: u64 = 2_000_000;

/// What is resumed has at least this much of the old version.
const BEGUN: u64 = SIZE / 4;

fn later() -> SystemTime {
    long_ago() + Duration::from_secs(31 * 86_400)
}

/// How many connections `-s` asks for.
fn connections(split: &str) -> u64 {
    split.parse().expect("a number")
}

fn get(work: &Workdir, url: &str, split: &str) -> Fairbat {
    work.get()
        .args(["--file-allocation", "none", "-o", "file", "-s", split])
        .arg(url)
}

/// Begins to fetch the old version, is killed, lets `change` make the new one
/// and fetches again: once with one connection and once with three.
fn assert_new_version(config: &Config, resumable: bool, new: &Content, change: impl Fn(&Nginx)) {
    for split in ["1", "3"] {
        let nginx = Nginx::start(&Config {
            limit_rate: Some(RATE / connections(split)),
            ..config.clone()
        });
        nginx.put("file", &OLD);
        let work = Workdir::new();
        let get = get(&work, &nginx.url("file"), split);
        let mut first = get.spawn();
        if resumable {
            first.wait_for_progress(&work.join("file"), BEGUN);
        } else {
            first.wait_for_part(&work.join("file"), BEGUN);
        }
        first.signal("KILL");
        let _ = first.wait();

        change(&nginx);
        let second = get.run();
        second.expect_code(0);
        work.assert_holds(&[("file", new)]);
    }
}

#[test]
fn an_unchanged_file_is_resumed() {
    for split in ["1", "3"] {
        let nginx = Nginx::start(&Config {
            limit_rate: Some(RATE / connections(split)),
            ..Config::default()
        });
        nginx.put("file", &OLD);
        let work = Workdir::new();
        let get = get(&work, &nginx.url("file"), split);
        get.run_until_killed(&work.join("file"), BEGUN);
        let second = get.run();
        second.expect_code(0);
        work.assert_holds(&[("file", &OLD)]);
        assert!(second.resumed_bytes() > 0, "{second}");
        let sent = nginx.sent_bytes();
        let is_enough = sent < SIZE + SIZE / 4 || front::is_there();
        assert!(is_enough, "-s {split}: {sent} bytes sent");
    }
}

#[test]
fn without_continue_everything_is_fetched_again() {
    let nginx = Nginx::start(&Config {
        limit_rate: Some(RATE),
        ..Config::default()
    });
    nginx.put("file", &OLD);
    let work = Workdir::new();
    let get = get(&work, &nginx.url("file"), "1");
    get.run_until_killed(&work.join("file"), BEGUN);
    let second = get.arg("--no-continue").run();
    second.expect_code(0);
    assert_eq!(second.resumed_bytes(), 0, "{second}");
    work.assert_holds(&[("file", &OLD)]);
}

#[test]
fn same_size_and_a_new_etag_give_the_new_version() {
    assert_new_version(&Config::default(), true, &NEW, |nginx| {
        nginx.put_at("file", &NEW, later());
    });
}

#[test]
fn same_size_and_only_a_new_mtime_give_the_new_version() {
    let config = Config {
        etag: false,
        ..Config::default()
    };
    assert_new_version(&config, true, &NEW, |nginx| {
        nginx.put_at("file", &NEW, later());
    });
}

#[test]
fn same_mtime_no_etag_and_more_bytes_give_the_new_version() {
    let config = Config {
        etag: false,
        ..Config::default()
    };
    assert_new_version(&config, true, &LONGER, |nginx| nginx.put("file", &LONGER));
}

#[test]
fn same_mtime_no_etag_and_fewer_bytes_give_the_new_version() {
    let config = Config {
        etag: false,
        ..Config::default()
    };
    assert_new_version(&config, true, &SHORTER, |nginx| nginx.put("file", &SHORTER));
}

fn without_validators() -> Config {
    Config {
        etag: false,
        last_modified: false,
        ..Config::default()
    }
}

#[test]
fn no_validators_and_another_length_give_the_new_version() {
    for new in [LONGER, SHORTER] {
        assert_new_version(&without_validators(), false, &new, |nginx| {
            nginx.put("file", &new);
        });
    }
}

#[test]
fn no_validators_and_the_same_length_give_the_new_version() {
    assert_new_version(&without_validators(), false, &NEW, |nginx| {
        nginx.put("file", &NEW);
    });
}

#[test]
fn an_older_file_put_back_gives_that_version() {
    assert_new_version(&Config::default(), true, &NEW, |nginx| {
        nginx.put_at("file", &NEW, long_ago() - Duration::from_secs(86_400));
    });
}

#[test]
fn a_file_that_shrank_below_what_is_there_gives_the_new_version() {
    let tiny = Content::new(114, 100);
    assert_new_version(&Config::default(), true, &tiny, |nginx| {
        nginx.put_at("file", &tiny, later());
    });
    let empty = Content::new(115, 0);
    assert_new_version(&Config::default(), true, &empty, |nginx| {
        nginx.put_at("file", &empty, later());
    });
}

/// The same on a server whose versions differ in what `old` and `new` say.
fn assert_new_answer(old: &Version, new: &Version, content: &Content) {
    let server = FaultServer::start();
    let serve = |version: &Version| {
        let version = version.clone();
        server.script("/file", move |request| version.answer(request).rate(RATE));
    };
    serve(old);
    let work = Workdir::new();
    let get = get(&work, &server.url("/file"), "1");
    let mut first = get.spawn();
    first.wait_for_part(&work.join("file"), BEGUN);
    first.signal("KILL");
    let _ = first.wait();
    serve(new);
    get.run().expect_code(0);
    work.assert_holds(&[("file", content)]);
}

#[test]
fn an_etag_decides_alone() {
    let old = Version::new(&OLD).etag(Some("\"1\""));
    let new = Version::new(&NEW).etag(Some("\"2\""));
    assert_new_answer(&old, &new, &NEW);
    let (old, new) = (old.last_modified(None), new.last_modified(None));
    assert_new_answer(&old, &new, &NEW);
}

#[test]
fn a_weak_etag_is_no_proof_of_the_same_bytes() {
    let weak = |content| {
        Version::new(content)
            .etag(Some("W/\"1\""))
            .last_modified(None)
    };
    assert_new_answer(&weak(&OLD), &weak(&NEW), &NEW);
}

#[test]
fn an_etag_that_is_kept_for_another_length_is_seen_through() {
    let version = |content| Version::new(content).etag(Some("\"constant\""));
    assert_new_answer(&version(&OLD), &version(&LONGER), &LONGER);
    assert_new_answer(&version(&OLD), &version(&SHORTER), &SHORTER);
}

#[test]
fn validators_that_disappear_give_the_new_version() {
    let new = Version::new(&NEW).etag(None).last_modified(None);
    assert_new_answer(&Version::new(&OLD), &new, &NEW);
}

#[test]
fn a_change_of_if_range_blind_servers_is_seen() {
    // Serves every range it is asked for, whatever the condition says.
    let server = FaultServer::start();
    let blind = |version: Version| {
        move |request: &Request| -> Reply {
            match request.range() {
                Some(range) => version.part(range).rate(RATE),
                None => version.whole().rate(RATE),
            }
        }
    };
    server.script("/file", blind(Version::new(&OLD)));
    let work = Workdir::new();
    let get = get(&work, &server.url("/file"), "1");
    let mut first = get.spawn();
    first.wait_for_part(&work.join("file"), BEGUN);
    first.signal("KILL");
    let _ = first.wait();
    server.script(
        "/file",
        blind(Version::new(&NEW).last_modified(Some(LATER_MODIFIED))),
    );
    get.run().expect_code(0);
    work.assert_holds(&[("file", &NEW)]);
}
