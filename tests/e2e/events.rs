//! What a run says: `--json` for programs, stderr for people.

use std::process::Command;

use fairbat_tests::bin::{Fairbat, fairbat_binary};
use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::Reply;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;
use serde_json::Value;

const FILE: Content = Content::new(160, 500_000);

fn serve() -> FaultServer {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    server
}

#[track_caller]
fn assert_fields(event: &Value, fields: &[&str]) {
    let object = event.as_object().expect("an object");
    for field in fields {
        assert!(object.contains_key(*field), "no {field} in {event}");
    }
}

#[test]
fn every_json_line_is_an_event_with_its_time() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/slow", move |request| match request.nth {
        0 => Reply::status(503),
        _ => version.answer(request).rate(200_000),
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args([server.url("/slow"), server.url("/missing")])
        .run();
    outcome.expect_code(3);

    let events = outcome.events();
    let mut last = 0.0;
    for event in &events {
        assert!(event["event"].is_string(), "{event}");
        let t = event["t"].as_f64().expect("t is a number");
        assert!(t >= last, "{event} comes after {last}");
        last = t;
    }
    assert_eq!(events[0]["event"], "start", "{outcome}");

    let only = |name| outcome.event(name);
    assert_fields(&only("start"), &["urls", "lever", "receiver", "controller"]);
    assert_fields(
        &only("file"),
        &["url", "path", "bytes", "resumed_bytes", "ranges"],
    );
    assert_fields(&only("retry"), &["url", "reason", "after_s", "attempt"]);
    assert_fields(
        &only("done"),
        &[
            "url",
            "path",
            "bytes",
            "elapsed_s",
            "sha256",
            "deadline_met",
        ],
    );
    assert_fields(&only("error"), &["url", "kind", "message", "hint"]);
    assert!(only("done")["deadline_met"].is_null(), "{outcome}");
    assert!(only("done")["sha256"].is_null(), "{outcome}");

    // 2.5 s at the server's rate: at least two samples, one a second.
    let samples = outcome.events_named("control");
    assert!((2..=10).contains(&samples.len()), "{outcome}");
    for sample in &samples {
        let numbers = ["n", "m", "active", "w", "rate", "bytes_done"];
        for field in numbers {
            assert!(sample[field].is_number(), "{field} in {sample}");
        }
        let fields = [
            "window",
            "brake",
            "g_ms",
            "zeta",
            "lag",
            "rtt_ms",
            "bytes_total",
        ];
        assert_fields(sample, &fields);
        let w = sample["w"].as_f64();
        assert!(w.is_some_and(|w| (0.02..=1.0).contains(&w)), "{sample}");
        for field in ["zeta", "lag"] {
            assert!(sample[field].is_null(), "without a deadline: {sample}");
        }
        assert!(
            sample["files"].is_null(),
            "not part of the interface: {sample}"
        );
    }
    let first = samples[0]["bytes_done"].as_u64();
    let last = samples[samples.len() - 1]["bytes_done"].as_u64();
    assert!(first <= last, "{outcome}");
}

#[test]
fn without_json_stdout_is_empty_and_stderr_is_plain() {
    let server = serve();
    let work = Workdir::new();
    let outcome = Fairbat::new(work.path())
        .args(["get", &server.url("/file")])
        .run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert_eq!(outcome.stdout, "", "{outcome}");
    // No terminal: no progress bars, no colours.
    assert!(!outcome.stderr.contains(['\u{1b}', '\r']), "{outcome}");
}

#[test]
fn errors_are_for_people_on_stderr_too() {
    let server = serve();
    let work = Workdir::new();
    for json in [&["--json"][..], &[]] {
        let outcome = Fairbat::new(work.path())
            .arg("get")
            .args(json)
            .arg(server.url("/missing"))
            .run();
        outcome.expect_code(1);
        let url = server.url("/missing");
        assert!(outcome.stderr.contains("404"), "{outcome}");
        assert!(outcome.stderr.contains(&url), "{outcome}");
        assert!(!outcome.stderr.contains("panicked"), "{outcome}");
    }
}

#[test]
fn quiet_says_nothing_about_success_and_something_about_failure() {
    let server = serve();
    let work = Workdir::new();
    let run = |path: &str| {
        Fairbat::new(work.path())
            .args(["get", "-q", &server.url(path)])
            .run()
    };
    let outcome = run("/file");
    outcome.expect_code(0);
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""));
    let outcome = run("/missing");
    outcome.expect_code(1);
    assert!(outcome.stderr.contains("404"), "{outcome}");
}

#[test]
fn a_terminal_sees_progress_and_no_color_is_respected() {
    for (no_color, colours_allowed) in [(None, true), (Some("1"), false)] {
        let server = FaultServer::start();
        let version = Version::new(&FILE);
        server.script("/file", move |request| {
            version.answer(request).rate(400_000)
        });
        let work = Workdir::new();
        let command = format!("{} get {}", fairbat_binary().display(), server.url("/file"));
        let mut script = Command::new("script");
        script
            .args(["-q", "-e", "-c", &command, "/dev/null"])
            .current_dir(work.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TERM", "xterm-256color");
        if let Some(value) = no_color {
            script.env("NO_COLOR", value);
        }
        let output = script.output().expect("start script");
        let screen = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{screen}");
        work.assert_holds(&[("file", &FILE)]);
        // A line that is redrawn.
        assert!(
            screen.contains('\r') || screen.contains("\u{1b}["),
            "{screen:?}"
        );
        let coloured = screen.split("\u{1b}[").skip(1).any(|sequence| {
            let end = sequence.find(|c: char| c.is_ascii_alphabetic());
            end.is_some_and(|end| {
                &sequence[end..=end] == "m" && !["", "0"].contains(&&sequence[..end])
            })
        });
        assert!(colours_allowed || !coloured, "{screen:?}");
    }
}

#[test]
fn a_reader_of_the_events_that_goes_away_does_no_harm() {
    let server = serve();
    let work = Workdir::new();
    let output = Command::new("sh")
        .args(["-c", "\"$0\" get --json \"$1\" | head -n 1"])
        .arg(fairbat_binary())
        .arg(server.url("/file"))
        .current_dir(work.path())
        .output()
        .expect("start sh");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
}
