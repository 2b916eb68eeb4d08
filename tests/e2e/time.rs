//! Deadlines, hard limits, rates, signals and runs that meet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::wait_until;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(180, 600_000);

/// Three seconds of one response.
const SLOW: u64 = 200_000;

fn serve(rate: u64) -> FaultServer {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| version.answer(request).rate(rate));
    server
}

/// One connection, a part file that grows, a name.
fn get(work: &Workdir, server: &FaultServer) -> Fairbat {
    work.get()
        .args(["--file-allocation", "none", "-x", "1", "-o", "file"])
        .arg(server.url("/file"))
}

#[test]
fn a_deadline_that_is_met_is_reported() {
    let server = serve(100_000_000);
    for deadline in [
        "60s",
        "45m",
        "4h",
        "2099-01-01T00:00:00Z",
        "2099-01-01T00:00:00+02:00",
    ] {
        let work = Workdir::new();
        let outcome = get(&work, &server)
            .args(["--fail-late", "--deadline", deadline])
            .run();
        outcome.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        assert_eq!(
            outcome.event("done")["deadline_met"],
            true,
            "{deadline}: {outcome}"
        );
    }
}

#[test]
fn a_deadline_by_the_clock_is_today_or_tomorrow() {
    let server = serve(100_000_000);
    for deadline in ["00:00", "23:59"] {
        let work = Workdir::new();
        let outcome = get(&work, &server).args(["--deadline", deadline]).run();
        outcome.expect_code(0);
        assert!(
            outcome.event("done")["deadline_met"].is_boolean(),
            "{outcome}"
        );
    }
}

#[test]
fn a_deadline_that_is_missed_is_reported_and_the_file_is_there() {
    for (fail_late, code) in [(&[][..], 0), (&["--fail-late"], 11)] {
        let server = serve(SLOW);
        let work = Workdir::new();
        let outcome = get(&work, &server)
            .args(["--deadline", "1s"])
            .args(fail_late)
            .run();
        outcome.expect_code(code);
        work.assert_holds(&[("file", &FILE)]);
        assert_eq!(outcome.event("done")["deadline_met"], false, "{outcome}");
    }
}

#[test]
fn a_run_behind_its_deadline_takes_more_connections_up_to_its_limit() {
    // One connection would need a minute; the deadline is in 20 s.
    let content = Content::new(181, 12_000_000);
    let server = FaultServer::start();
    let version = Version::new(&content);
    let rate = Arc::new(AtomicU64::new(SLOW));
    server.script("/file", {
        let rate = Arc::clone(&rate);
        move |request| version.answer(request).rate(rate.load(Ordering::SeqCst))
    });
    let work = Workdir::new();
    let run = work
        .get()
        .args(["--chunk-size", "64K", "-x", "3", "--deadline", "20s"])
        .args(["-o", "file", &server.url("/file")])
        .spawn();
    wait_until("a second connection", Duration::from_secs(50), || {
        server.most_active() >= 2
    });
    rate.store(100_000_000, Ordering::SeqCst);
    let outcome = run.wait();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &content)]);
    assert!(server.most_active() <= 3, "{outcome}");
    let zeta = outcome.events_named("control")[0]["zeta"].as_f64();
    // At least 12 MB in 20 s.
    assert!(zeta.is_some_and(|zeta| zeta > 500_000.0), "{outcome}");
}

#[test]
fn a_run_without_a_deadline_stays_with_one_connection() {
    let server = serve(SLOW);
    let work = Workdir::new();
    work.get()
        .args(["--chunk-size", "64K", "-o", "file"])
        .arg(server.url("/file"))
        .run()
        .expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert_eq!(server.most_active(), 1);
}

#[test]
fn max_time_ends_the_run_and_the_next_one_resumes() {
    let server = serve(SLOW / 3);
    let work = Workdir::new();
    let outcome = get(&work, &server).args(["--max-time", "4s"]).run();
    outcome.expect_code(10);
    assert!(outcome.elapsed >= Duration::from_secs(4), "{outcome}");
    assert_eq!(outcome.event("error")["kind"], "max_time", "{outcome}");
    assert!(!work.join("file").exists());
    let again = get(&work, &server).run();
    again.expect_code(0);
    assert!(again.resumed_bytes() > 0, "{again}");
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn a_signal_leaves_a_state_to_resume_and_exits_130() {
    for signal in ["INT", "TERM"] {
        let server = serve(SLOW / 2);
        let work = Workdir::new();
        let mut run = get(&work, &server).spawn();
        run.wait_for_part(&work.join("file"), FILE.len() / 4);
        run.signal(signal);
        let outcome = run.wait();
        outcome.expect_code(130);
        assert_eq!(outcome.event("error")["kind"], "interrupted", "{outcome}");
        assert!(!work.join("file").exists());
        let again = get(&work, &server).run();
        again.expect_code(0);
        // What was on disk before the signal is never fetched again.
        assert!(again.resumed_bytes() >= FILE.len() / 4, "{again}");
        work.assert_holds(&[("file", &FILE)]);
    }
}

#[test]
fn the_limit_on_the_rate_is_kept() {
    let nginx = Nginx::start(&Config::default());
    let content = Content::new(182, 3 << 20);
    nginx.put("file", &content);
    for split in ["1", "3"] {
        let work = Workdir::new();
        let outcome = work
            .get()
            .args(["--limit-rate", "1M", "-s", split, &nginx.url("file")])
            .run();
        outcome.expect_code(0);
        work.assert_holds(&[("file", &content)]);
        // 3 s, less what may be let through at once at the beginning.
        assert!(outcome.elapsed >= Duration::from_secs(2), "{outcome}");
    }
}

#[test]
fn a_second_run_on_the_same_file_is_refused() {
    let server = serve(SLOW / 2);
    let work = Workdir::new();
    let mut first = get(&work, &server).spawn();
    first.wait_for_part(&work.join("file"), FILE.len() / 4);
    let second = get(&work, &server).run();
    assert!(first.is_running(), "the first run ended too soon to tell");
    assert!(second.code.is_some_and(|code| code != 0), "{second}");
    second.expect_said(&["another", "in use", "locked", "already", "running"]);
    let first = first.wait();
    first.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}
