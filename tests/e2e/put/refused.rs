//! What servers say to uploads: refusals with what to do about them, early
//! answers, redirects, credentials, conditions.

use fairbat_tests::content::{Content, base64};
use fairbat_tests::expect::{assert_absent, assert_content};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::Reply;
use fairbat_tests::nginx::{Config, Nginx};

use super::{FILE, assert_done, serve, with};

#[test]
fn a_file_that_is_too_large_is_refused_while_it_comes() {
    let nginx = Nginx::start(&Config {
        upload_limit: Some(1_000_000),
        ..Config::default()
    });
    let work = with(&FILE);
    let outcome = work.put().args(["file", &nginx.url("f")]).run();
    outcome.expect_code(1).expect_said(&["413"]);
    assert_ne!(outcome.event("error")["hint"], "", "{outcome}");
    assert!(outcome.events_named("retry").is_empty(), "{outcome}");
    assert_absent(&nginx.path("f"));
}

#[test]
fn an_answer_before_the_connection_breaks_off_is_heard() {
    let server = FaultServer::start();
    // The body stays unread, so the kernel resets what comes of it.
    server.script("/f", |_| Reply::status(413));
    let work = with(&FILE);
    for _ in 0..10 {
        let put = work.put().args(["--retry", "0"]);
        let outcome = put.args(["file", &server.url("/f")]).run();
        outcome.expect_code(1).expect_said(&["413"]);
    }
}

#[test]
fn every_refusal_ends_the_run_and_says_what_to_do() {
    let server = FaultServer::start();
    let work = with(&FILE);
    for (status, code, hint) in [
        (400, 1, "check the URL"),
        (401, 1, "-u"),
        (403, 1, "credentials"),
        (404, 1, "directory"),
        (405, 1, "only GET, HEAD"),
        (409, 1, "create it first"),
        (411, 1, "proxy"),
        (412, 1, "--create-only"),
        (413, 1, "limit"),
        (423, 1, "locked"),
        (501, 1, "WebDAV"),
        (507, 5, "free space"),
    ] {
        let path = format!("/{status}.iso");
        server.script(&path, move |_| {
            Reply::status(status)
                .header("Allow", "GET, HEAD")
                .after_body()
        });
        let outcome = work.put().args(["file", &server.url(&path)]).run();
        outcome.expect_code(code);
        let error = outcome.event("error");
        let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
        assert!(text("message").contains(&status.to_string()), "{outcome}");
        assert!(text("hint").contains(hint), "{status}: {outcome}");
        assert_eq!(server.requests_for(&path).len(), 1, "{outcome}");
    }
}

#[test]
fn a_url_that_may_be_a_directory_is_asked_about() {
    let server = FaultServer::start();
    let work = with(&FILE);
    for (path, is_asked) in [("/backups", true), ("/backups/", false), ("/a/file", false)] {
        for path in [path, "/backups/file"] {
            server.script(path, |_| Reply::status(405).after_body());
        }
        let outcome = work.put().args(["file", &server.url(path)]).run();
        outcome.expect_code(1).expect_said(&["405"]);
        let said = outcome.said().contains("a directory's URL ends with /");
        assert_eq!(said, is_asked, "{outcome}");
    }
}

#[test]
fn an_error_of_the_moment_is_waited_out() {
    let server = FaultServer::start();
    server.script("/f", |request| match request.nth {
        0 => Reply::status(503).header("Retry-After", "1").after_body(),
        1 => Reply::status(429).after_body(),
        2 => Reply::status(502).after_body(),
        _ => Reply::status(202).after_body(),
    });
    let work = with(&FILE);
    let url = server.url("/f");
    let outcome = work.put().args(["file", &url]).run();
    assert_done(&outcome, &url, &FILE);
    assert_eq!(outcome.event("done")["status"], 202);
    outcome.expect_said(&["will store it later"]);
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    let waited = requests[1].at - requests[0].at;
    assert!(waited.as_millis() >= 1000, "Retry-After was 1: {waited:?}");
}

#[test]
fn a_server_that_only_ever_fails_gets_the_file_three_times() {
    let server = FaultServer::start();
    server.script("/f", |_| Reply::status(500).after_body());
    let work = with(&Content::new(194, 1000));
    let outcome = work.put().args(["file", &server.url("/f")]).run();
    outcome.expect_code(5).expect_said(&["directory"]);
    assert_eq!(server.requests().len(), 3, "{outcome}");
}

#[test]
fn a_success_before_the_file_is_there_is_none() {
    let server = FaultServer::start();
    server.script("/f", |_| Reply::status(201));
    let work = with(&FILE);
    let outcome = work
        .put()
        .args(["--retry", "0", "file", &server.url("/f")])
        .run();
    outcome.expect_code(5);
    assert!(outcome.events_named("done").is_empty(), "{outcome}");
}

#[test]
fn credentials_open_the_door_and_are_not_shown() {
    let server = FaultServer::start();
    let right = format!("Basic {}", base64(b"me:s3cret"));
    server.script("/f", move |request| {
        if request.header("authorization") == Some(right.as_str()) {
            Reply::status(201).after_body()
        } else {
            Reply::status(401)
                .header("WWW-Authenticate", "Basic realm=\"test\"")
                .after_body()
        }
    });
    let work = with(&FILE);
    let url = server.url("/f");
    work.put()
        .args(["file", &url])
        .run()
        .expect_code(1)
        .expect_said(&["401"]);
    let in_url = url.replace("http://", "http://me:s3cret@");
    for args in [vec!["-u", "me:s3cret", "file", &url], vec!["file", &in_url]] {
        let outcome = work.put().args(args).run();
        assert_done(&outcome, &url, &FILE);
        let shown = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!shown.contains("s3cret"), "{outcome}");
    }
}

#[test]
fn redirects_that_keep_the_method_are_followed_with_the_whole_file() {
    for status in [307, 308] {
        let nginx = Nginx::start(&Config {
            upload_limit: Some(0),
            directives: format!("location = /old {{ return {status} /new; }}"),
            ..Config::default()
        });
        let work = with(&FILE);
        let url = nginx.url("old");
        let outcome = work.put().args(["file", &url]).run();
        assert_done(&outcome, &url, &FILE);
        assert_content(&nginx.path("new"), &FILE);
        assert_absent(&nginx.path("old"));
    }
}

#[test]
fn redirects_that_mean_something_else_are_not_followed() {
    let server = FaultServer::start();
    let work = with(&FILE);
    for status in [301, 302, 303] {
        let path = format!("/{status}");
        server.script(&path, move |_| {
            Reply::redirect(status, "/elsewhere").after_body()
        });
        let outcome = work.put().args(["file", &server.url(&path)]).run();
        outcome.expect_code(1).expect_said(&["/elsewhere"]);
    }
    assert!(server.requests_for("/elsewhere").is_empty());
    server.script("/circle", |_| Reply::redirect(307, "/circle").after_body());
    let outcome = work.put().args(["file", &server.url("/circle")]).run();
    outcome.expect_code(1).expect_said(&["circle"]);
}

#[test]
fn another_host_does_not_see_the_credentials() {
    let (first, second) = (FaultServer::start(), FaultServer::start());
    let there = second.url_by_name("/g");
    first.script("/f", move |_| Reply::redirect(307, &there).after_body());
    second.script("/g", |_| Reply::status(204).after_body());
    let work = with(&FILE);
    let outcome = work
        .put()
        .args(["-u", "me:s3cret", "-H", "X-Token: t0ken"])
        .args(["file", &first.url("/f")])
        .run();
    outcome.expect_code(0);
    assert!(first.requests()[0].header("authorization").is_some());
    let seen = &second.requests()[0];
    assert_eq!(seen.body_length(), FILE.len());
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.header("x-token"), None);
}

#[test]
fn create_only_replaces_nothing() {
    let nginx = serve();
    let old = Content::new(195, 5000);
    nginx.put("f", &old);
    let work = with(&FILE);
    let put = |url: &str| work.put().args(["--create-only", "file", url]).run();
    put(&nginx.url("f"))
        .expect_code(1)
        .expect_said(&["already"]);
    assert_content(&nginx.path("f"), &old);
    put(&nginx.url("g")).expect_code(0);
    assert_content(&nginx.path("g"), &FILE);

    // Somebody came in between, and the server knows the condition.
    let server = FaultServer::start();
    server.script("/f", |request| match request.method.as_str() {
        "HEAD" => Reply::status(404),
        _ if request.header("if-none-match") == Some("*") => Reply::status(412).after_body(),
        _ => Reply::status(201).after_body(),
    });
    put(&server.url("/f"))
        .expect_code(1)
        .expect_said(&["already"]);
}

#[test]
fn the_length_is_told_and_nothing_else_of_the_file() {
    let server = FaultServer::start();
    server.script("/f", |_| Reply::status(200).after_body());
    let work = with(&FILE);
    let url = server.url("/f");
    let outcome = work
        .put()
        .args(["-H", "Content-Type: a/b", "file", &url])
        .run();
    assert_done(&outcome, &url, &FILE);
    let request = &server.requests()[0];
    assert_eq!(request.method, "PUT");
    assert_eq!(request.body_length(), FILE.len());
    assert_eq!(request.header("transfer-encoding"), None);
    assert_eq!(request.header("content-range"), None);
    assert_eq!(request.header("if-none-match"), None);
    assert_eq!(request.header("content-type"), Some("a/b"));
}
