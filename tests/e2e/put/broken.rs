//! Uploads that break: killed, interrupted, servers that go away or fall
//! silent. The same command, or the next try, brings the right file.

use std::time::Duration;

use fairbat_tests::content::Content;
use fairbat_tests::expect::{assert_absent, assert_content};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{End, Framing, Reply};

use super::{FILE, assert_done, serve, slowly, wait_until_under_way, with};

#[test]
fn a_killed_upload_leaves_the_old_file_and_runs_again() {
    let nginx = serve();
    let old = Content::new(192, 5000);
    nginx.put("f", &old);
    let work = with(&FILE);
    let url = nginx.url("f");
    let mut run = slowly(&work, &url).spawn();
    wait_until_under_way(&mut run);
    run.signal("KILL");
    assert_eq!(run.wait().code, None);
    // The connection has ended, so nginx has seen a body that is too short.
    let _ = nginx.settled_accesses();
    assert_content(&nginx.path("f"), &old);

    let outcome = work.put().args(["file", &url]).run();
    assert_done(&outcome, &url, &FILE);
    assert_content(&nginx.path("f"), &FILE);
}

#[test]
fn a_server_that_restarts_gets_the_file_all_the_same() {
    let mut nginx = serve();
    let work = with(&FILE);
    let url = nginx.url("f");
    let mut run = work
        .put()
        .args(["--limit-rate", "2M", "--retry-max-wait", "1s", "file", &url])
        .spawn();
    wait_until_under_way(&mut run);
    nginx.stop();
    run.wait_for_event("a retry", |event| event["event"] == "retry");
    nginx.start_again();
    let outcome = run.wait();
    assert_done(&outcome, &url, &FILE);
    assert_content(&nginx.path("f"), &FILE);
}

#[test]
fn an_interrupted_upload_exits_130_and_leaves_nothing() {
    let nginx = serve();
    let work = with(&FILE);
    for signal in ["INT", "TERM"] {
        let mut run = slowly(&work, &nginx.url("f")).spawn();
        wait_until_under_way(&mut run);
        run.signal(signal);
        let outcome = run.wait();
        outcome
            .expect_code(130)
            .expect_said(&["starts the upload over"]);
        assert_eq!(outcome.event("error")["kind"], "interrupted", "{outcome}");
        assert!(outcome.events_named("done").is_empty(), "{outcome}");
        let _ = nginx.settled_accesses();
        assert_absent(&nginx.path("f"));
    }
}

#[test]
fn max_time_ends_it_with_10() {
    let nginx = serve();
    let work = with(&FILE);
    let outcome = slowly(&work, &nginx.url("f"))
        .args(["--max-time", "2s"])
        .run();
    outcome.expect_code(10);
    assert_eq!(outcome.event("error")["kind"], "max_time", "{outcome}");
    let _ = nginx.settled_accesses();
    assert_absent(&nginx.path("f"));
}

#[test]
fn a_connection_that_is_reset_is_tried_again() {
    let server = FaultServer::start();
    server.script("/f", |request| match request.nth {
        // With all of the body unread: a reset.
        0 => Reply::status(200).framing(Framing::Nothing),
        _ => Reply::status(201).after_body(),
    });
    let work = with(&FILE);
    let url = server.url("/f");
    let outcome = work.put().args(["file", &url]).run();
    assert_done(&outcome, &url, &FILE);
    assert_eq!(outcome.events_named("retry").len(), 1, "{outcome}");
    assert_eq!(outcome.event("done")["status"], 201);
}

#[test]
fn a_server_that_falls_silent_is_given_up() {
    let server = FaultServer::start();
    let silent = Reply::status(200)
        .framing(Framing::Nothing)
        .end(End::Stall(0));
    let patient = silent.clone().after_body();
    server.script("/takes-nothing", move |_| silent.clone());
    server.script("/takes-all", move |_| patient.clone());
    let work = with(&FILE);
    for (path, said) in [
        ("/takes-nothing", "no more data"),
        ("/takes-all", "does not answer"),
    ] {
        let outcome = work
            .put()
            .args(["--stall-timeout", "1s", "--retry", "0"])
            .args(["file", &server.url(path)])
            .run();
        outcome.expect_code(5).expect_said(&[said]);
    }
}

#[test]
fn a_reader_slower_than_the_stall_timeout_is_no_silence() {
    let nginx = serve();
    let content = Content::new(193, 4096);
    let work = with(&content);
    // Pieces of 1 KiB, one in two seconds.
    let outcome = work
        .put()
        .args([
            "--limit-rate",
            "512",
            "--stall-timeout",
            "1s",
            "--retry",
            "0",
        ])
        .args(["file", &nginx.url("f")])
        .run();
    outcome.expect_code(0);
    assert_content(&nginx.path("f"), &content);
}

#[test]
fn a_host_that_is_not_there_is_given_up_soon() {
    let work = with(&FILE);
    let outcome = work
        .put()
        .args(["--retry-max-wait", "50ms", "file", "http://127.0.0.1:1/f"])
        .timeout(Duration::from_secs(30))
        .run();
    outcome.expect_code(5).expect_said(&["refused"]);
    assert_eq!(outcome.events_named("retry").len(), 5, "{outcome}");
}
