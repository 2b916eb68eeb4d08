//! A file is complete already only if `fairbat` made it from this very
//! version of this resource and nobody has changed it since. Size and time
//! alone prove nothing: build systems give every file the same time.

use std::fs::{self, File};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const A: Content = Content::new(230, 300_000);
const B: Content = Content::new(231, 300_000);

/// The Last-Modified of everything.
const DATE: &str = "Thu, 01 Jan 1970 00:00:01 GMT";

fn date() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1)
}

/// Two files of the same name, size and date.
fn serve() -> FaultServer {
    let server = FaultServer::start();
    for (path, content, etag) in [("/a/disk.img", &A, "\"a\""), ("/b/disk.img", &B, "\"b\"")] {
        let version = Version::new(content).etag(Some(etag));
        server.serve(path, version.last_modified(Some(DATE)));
    }
    server
}

const NAMED: &[&str] = &["-o", "disk.img"];
const IN_DIRECTORY: &[&str] = &["-d", "."];

fn get(work: &Workdir, server: &FaultServer, path: &str, to: &[&str]) -> Outcome {
    let outcome = work.get().args(to).arg(server.url(path)).run();
    outcome.expect_code(0);
    outcome
}

/// Panics if the run asks for more than a look at the file.
#[track_caller]
fn assert_fetches_nothing(server: &FaultServer, run: impl FnOnce() -> Outcome) {
    let before = server.requests().len();
    let outcome = run();
    let requests = server.requests();
    let data = requests[before..].iter().filter(|r| !r.asks_for_one_byte());
    assert_eq!(data.count(), 0, "fetched it again: {outcome}");
    let file = outcome.event("file");
    assert_eq!(file["resumed_bytes"], file["bytes"], "{outcome}");
    outcome.event("done");
}

#[test]
fn a_file_that_is_already_there_is_not_fetched_again() {
    let nginx = Nginx::start(&Config::default());
    nginx.put("file", &A);
    for target in [vec!["-o", "file"], vec![]] {
        let work = Workdir::new();
        let run = || {
            let outcome = work.get().args(&target).arg(nginx.url("file")).run();
            outcome.expect_code(0);
            outcome
        };
        run();
        let before = nginx.sent_bytes();
        let outcome = run();
        outcome.event("done");
        work.assert_holds(&[("file", &A)]);
        let again = nginx.sent_bytes() - before;
        assert!(again <= 1, "{target:?}: fetched {again} bytes again");
    }
}

#[test]
fn a_complete_file_of_an_older_version_is_replaced_when_named() {
    let nginx = Nginx::start(&Config::default());
    nginx.put("file", &A);
    let work = Workdir::new();
    let get = || work.get().args(["-o", "file"]).arg(nginx.url("file")).run();
    get().expect_code(0);
    nginx.put_at("file", &B, SystemTime::now() - Duration::from_secs(3600));
    get().expect_code(0);
    work.assert_holds(&[("file", &B)]);
}

#[test]
fn a_new_version_of_the_same_size_and_date_replaces_the_old_one() {
    let server = serve();
    let work = Workdir::new();
    get(&work, &server, "/a/disk.img", NAMED);
    let newer = Version::new(&B).etag(Some("\"a2\""));
    server.serve("/a/disk.img", newer.last_modified(Some(DATE)));
    get(&work, &server, "/a/disk.img", NAMED);
    work.assert_holds(&[("disk.img", &B)]);
}

#[test]
fn another_file_of_the_same_size_and_date_is_not_the_same_when_named() {
    let server = serve();
    let work = Workdir::new();
    get(&work, &server, "/a/disk.img", NAMED);
    work.assert_holds(&[("disk.img", &A)]);
    assert_fetches_nothing(&server, || get(&work, &server, "/a/disk.img", NAMED));
    get(&work, &server, "/b/disk.img", NAMED);
    work.assert_holds(&[("disk.img", &B)]);
    assert_fetches_nothing(&server, || get(&work, &server, "/b/disk.img", NAMED));
    work.assert_holds(&[("disk.img", &B)]);
}

#[test]
fn another_file_of_the_same_size_and_date_gets_another_name() {
    let server = serve();
    for to in [IN_DIRECTORY, &[]] {
        let work = Workdir::new();
        get(&work, &server, "/a/disk.img", to);
        get(&work, &server, "/b/disk.img", to);
        work.assert_holds(&[("disk.img", &A), ("disk.img.1", &B)]);
        for path in ["/a/disk.img", "/b/disk.img"] {
            assert_fetches_nothing(&server, || get(&work, &server, path, to));
        }
        work.assert_holds(&[("disk.img", &A), ("disk.img.1", &B)]);
    }
}

#[test]
fn two_files_of_the_same_name_size_and_date_in_one_run_are_both_fetched() {
    let server = serve();
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["/a/disk.img", "/b/disk.img"].map(|path| server.url(path)))
        .run();
    outcome.expect_code(0);
    for done in outcome.events_named("done") {
        let url = done["url"].as_str().expect("a URL");
        let content = if url.contains("/a/") { &A } else { &B };
        assert_content(&work.join(done["path"].as_str().expect("a path")), content);
    }
}

#[test]
fn a_complete_file_that_was_changed_here_is_not_complete() {
    let server = serve();
    // As long as before, but not the same any more.
    let change = |work: &Workdir| {
        fs::write(work.join("disk.img"), B.all()).expect("written");
    };
    let work = Workdir::new();
    get(&work, &server, "/a/disk.img", NAMED);
    change(&work);
    get(&work, &server, "/a/disk.img", NAMED);
    work.assert_holds(&[("disk.img", &A)]);

    change(&work);
    get(&work, &server, "/a/disk.img", IN_DIRECTORY);
    work.assert_holds(&[("disk.img", &B), ("disk.img.1", &A)]);
}

/// Puts B under A's name with A's date, as any other program could.
fn put_foreign(work: &Workdir) {
    let path = work.join("disk.img");
    B.write_to(&path).expect("written");
    let file = File::options().write(true).open(&path).expect("opened");
    file.set_modified(date()).expect("dated");
}

#[test]
fn a_file_of_the_same_size_and_date_that_others_made_is_not_taken_for_it() {
    let server = serve();
    let work = Workdir::new();
    put_foreign(&work);
    get(&work, &server, "/a/disk.img", NAMED);
    work.assert_holds(&[("disk.img", &A)]);

    let work = Workdir::new();
    put_foreign(&work);
    get(&work, &server, "/a/disk.img", IN_DIRECTORY);
    work.assert_holds(&[("disk.img", &B), ("disk.img.1", &A)]);
}

#[test]
fn without_continue_a_complete_file_is_fetched_again() {
    let server = serve();
    let work = Workdir::new();
    get(&work, &server, "/a/disk.img", NAMED);
    let before = server.requests().len();
    get(
        &work,
        &server,
        "/a/disk.img",
        &["--no-continue", "-o", "disk.img"],
    );
    let requests = server.requests();
    assert!(requests[before..].iter().any(|r| !r.is_probe()));
    work.assert_holds(&[("disk.img", &A)]);
}

#[test]
fn a_file_without_a_version_is_fetched_again_with_a_reason() {
    let server = FaultServer::start();
    let certain = Version::new(&A).last_modified(Some(DATE));
    let uncertain = certain.clone().etag(None).last_modified(None);
    for (first, second) in [(&uncertain, &certain), (&certain, &uncertain)] {
        let work = Workdir::new();
        server.serve("/disk.img", first.clone());
        get(&work, &server, "/disk.img", IN_DIRECTORY);
        server.serve("/disk.img", second.clone());
        let again = get(&work, &server, "/disk.img", IN_DIRECTORY);
        again.expect_said(&["disk.img may be this file, but the server did not say for certain"]);
        work.assert_holds(&[("disk.img", &A), ("disk.img.1", &A)]);
    }
}
