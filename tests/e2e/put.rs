//! `fairbat put`: what the server has afterwards is the file, byte for byte,
//! or the run said that it is not.

mod broken;
mod changed;
mod pace;
mod paths;
mod refused;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use fairbat_tests::bin::{Fairbat, Running};
use fairbat_tests::content::Content;
use fairbat_tests::expect::{assert_absent, assert_content};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::proxy::ForwardProxy;
use fairbat_tests::tls::Identity;
use fairbat_tests::workdir::Workdir;

/// Larger than what the buffers on the way hold together.
const FILE: Content = Content::new(190, 20_000_000);

/// Takes uploads of any size.
fn serve() -> Nginx {
    Nginx::start(&Config {
        upload_limit: Some(0),
        ..Config::default()
    })
}

/// A directory with this content as `file`.
fn with(content: &Content) -> Workdir {
    let work = Workdir::new();
    content.write_to(&work.join("file")).expect("written");
    work
}

/// A slow upload of `file` to `url`: ten seconds for [`FILE`].
fn slowly(work: &Workdir, url: &str) -> Fairbat {
    work.put().args(["--limit-rate", "2M", "file", url])
}

/// Waits until a tenth or so of it has arrived.
fn wait_until_under_way(run: &mut Running) {
    run.wait_for_event("bytes to arrive", |event| {
        event["event"] == "control" && event["bytes_done"].as_u64() > Some(1_000_000)
    });
}

/// Panics unless the run said, once and last, that the file is there.
#[track_caller]
fn assert_done(outcome: &Outcome, url: &str, content: &Content) {
    outcome.expect_code(0);
    let done = outcome.event("done");
    assert_eq!(done["url"], url, "{outcome}");
    assert_eq!(done["path"], "file", "{outcome}");
    assert_eq!(done["bytes"], content.len(), "{outcome}");
    assert_eq!(outcome.events().last(), Some(&done), "{outcome}");
}

#[test]
fn files_of_every_size_arrive_byte_for_byte() {
    let nginx = serve();
    for len in [0, 1, 1023, 131_072, 131_073, 1_000_000, FILE.len()] {
        let content = Content::new(191, len);
        let work = with(&content);
        let url = nginx.url("stored");
        let outcome = work.put().args(["file", &url]).run();
        assert_done(&outcome, &url, &content);
        assert_content(&nginx.path("stored"), &content);
        let file = outcome.event("file");
        assert_eq!(
            (&file["path"], &file["bytes"]),
            (&"file".into(), &len.into())
        );
    }
}

#[test]
fn a_url_that_is_a_directory_gets_the_name_of_the_file() {
    let nginx = serve();
    let work = Workdir::new();
    let name = "a b%41 é.bin";
    FILE.write_to(&work.join(name)).expect("written");
    work.put().args([name, &nginx.url("")]).run().expect_code(0);
    assert_content(&nginx.path(name), &FILE);
}

#[test]
fn the_start_tells_the_lever_and_people_read_it() {
    let nginx = serve();
    let work = with(&FILE);
    let outcome = work.put().args(["file", &nginx.url("")]).run();
    outcome.expect_code(0);
    let start = outcome.event("start");
    let lever = start["lever"].as_str().expect("a lever").to_owned();
    assert_eq!(start["controller"], "share", "{outcome}");
    assert!(outcome.stderr.contains(&lever), "{outcome}");
    assert!(outcome.stderr.contains("uploaded file"), "{outcome}");
    let free = work
        .put()
        .args(["--weight=1", "-q", "file", &nginx.url("")]);
    let outcome = free.run();
    outcome.expect_code(0);
    assert!(outcome.event("start")["sender"].is_null(), "{outcome}");
    assert_eq!(outcome.event("start")["weight"], 1.0, "{outcome}");
    assert_eq!(outcome.stderr, "", "{outcome}");
}

#[test]
fn an_upload_goes_over_tls_and_through_proxies() {
    let keys = Workdir::new();
    let identity = Identity::issue(keys.path(), &["127.0.0.1"], 2099);
    let tls = Nginx::start(&Config {
        tls: Some(identity.clone()),
        upload_limit: Some(0),
        ..Config::default()
    });
    let plain = serve();
    let work = with(&FILE);
    let put = |nginx: &Nginx| {
        work.put()
            .arg("--cacert")
            .arg(&identity.authority)
            .args(["file", &nginx.url("f")])
    };
    put(&tls).run().expect_code(0);
    assert_content(&tls.path("f"), &FILE);
    fs::remove_file(tls.path("f")).expect("removed");

    let proxy = ForwardProxy::start();
    for (nginx, variable, method) in [
        (&tls, "https_proxy", "CONNECT"),
        (&plain, "http_proxy", "PUT"),
    ] {
        let outcome = put(nginx).env(variable, proxy.url()).run();
        outcome.expect_code(0);
        assert_content(&nginx.path("f"), &FILE);
        let asked = proxy.requests();
        assert_eq!(asked.last().expect("it was asked").method, method);
    }
    let untrusted = work.put().args(["file", &tls.url("g")]).run();
    untrusted.expect_code(1).expect_said(&["certificate"]);
    assert_absent(&tls.path("g"));
}

#[test]
fn what_cannot_be_read_is_named_and_nothing_is_sent() {
    let nginx = serve();
    let work = with(&FILE);
    fs::create_dir(work.join("directory")).expect("made");
    let made = std::process::Command::new("mkfifo")
        .arg(work.join("pipe"))
        .status();
    assert!(made.expect("start mkfifo").success());
    for (file, said) in [
        ("missing", "No such file"),
        ("directory", "is a directory"),
        ("pipe", "is a pipe"),
        ("/dev/zero", "is a device"),
    ] {
        let outcome = work.put().args([file, &nginx.url("x")]).run();
        outcome.expect_code(6).expect_said(&[said]);
        assert_ne!(outcome.event("error")["hint"], "", "{outcome}");
        // And nothing is told before that.
        let named = format!("error: {file} ");
        assert!(outcome.stderr.starts_with(&named), "{outcome}");
    }
    let closed = fs::Permissions::from_mode(0o000);
    fs::set_permissions(work.join("file"), closed).expect("set");
    // Root may read everything.
    if fs::File::open(work.join("file")).is_err() {
        let outcome = work.put().args(["file", &nginx.url("x")]).run();
        outcome.expect_code(6).expect_said(&["ermission denied"]);
    }
    assert!(nginx.settled_accesses().is_empty());
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let work = with(&FILE);
    for args in [
        &["file"][..],
        &["file", "example.org/x"],
        &["file", "ftp://h/x"],
        &["-", "http://127.0.0.1:9/x"],
        &["--sender=reno", "file", "http://127.0.0.1:9/x"],
        &["--limit-rate=fast", "file", "http://127.0.0.1:9/x"],
    ] {
        let outcome = work.put().args(args).run();
        outcome.expect_code(2);
        assert_eq!(outcome.stdout, "", "{outcome}");
    }
}
