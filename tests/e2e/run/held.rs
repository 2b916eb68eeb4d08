//! Connections are found in every kind of program, and what they move is counted.

use std::process::Command;
use std::time::Duration;

use fairbat_tests::bin::fairbat_for_all;
use fairbat_tests::content::Content;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::workdir::Workdir;
use serde_json::Value;

use super::{FILE, events, report, run, slow_server};

/// Panics unless so many connections were held and brought about all of [`FILE`] each.
fn assert_held(report: &Value, connections: u64) {
    assert_eq!(report["connections"], connections, "{report}");
    let received = report["bytes_received"].as_u64().expect("a number");
    let all = FILE.len() * connections;
    assert!(received > all * 7 / 10, "{report}");
    assert!(received < all * 12 / 10, "{report}");
}

#[test]
fn connections_of_each_kind_of_program_are_held() {
    let nginx = slow_server();
    let url = nginx.url("file");
    let python = format!("import urllib.request as u; u.urlopen('{url}').read()");
    let threads = format!(
        "import threading, urllib.request as u\n\
         ts = [threading.Thread(target=lambda: u.urlopen('{url}').read()) for _ in range(4)]\n\
         [t.start() for t in ts]; [t.join() for t in ts]"
    );
    let twice_forked = format!(
        "import os, urllib.request as u\n\
         r, w = os.pipe()\n\
         if os.fork() == 0:\n\
         \x20   os.setsid()\n\
         \x20   if os.fork() == 0:\n\
         \x20       u.urlopen('{url}').read()\n\
         \x20   os._exit(0)\n\
         os.wait(); os.close(w); os.read(r, 1)"
    );
    let pipeline = format!("curl -sS {url} | (cat; curl -sS {url}) | wc -c");
    let go = ["rclone", "copyurl", "--config", "/dev/null", &url, "copy"];
    let cases = [
        (&[][..], &["curl", "-sS", "-o", "f", &url][..], 1),
        (&["--no-seccomp"], &["curl", "-sS", "-o", "f", &url], 1),
        (&[], &["python3", "-c", &python], 1),
        (&[], &["python3", "-c", &threads], 4),
        (&[], &["python3", "-c", &twice_forked], 1),
        (&[], &["sh", "-c", &pipeline], 2),
        (&[], &go, 1),
    ];
    std::thread::scope(|scope| {
        for (flags, command, connections) in cases {
            scope.spawn(move || {
                let work = Workdir::new();
                // Whoever yields has much to catch up, perhaps in the last moment, which is not
                // counted.
                let flags = [&["--include-local", "--weight", "1"], flags].concat();
                run(&work, &flags, command).run().expect_code(0);
                assert_held(&report(&work), connections);
            });
        }
    });
}

#[test]
fn connections_that_the_command_accepts_are_held() {
    let work = Workdir::new();
    // More than fits the buffers of both ends.
    let file = Content::new(12, 30_000_000);
    std::fs::write(work.join("file"), file.all()).expect("write a file");
    let serve = "import http.server as h, sys\n\
                 s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n\
                 open('port', 'w').write(str(s.server_port) + '\\n'); s.handle_request()";
    let running = run(&work, &["--include-local"], &["python3", "-c", serve]).spawn();
    let port = fairbat_tests::poll::wait_for("a port", Duration::from_secs(20), || {
        let port = std::fs::read_to_string(work.join("port")).ok()?;
        port.ends_with('\n').then(|| port.trim().to_owned())
    });
    let fetched = Command::new("curl")
        .args([
            "-sS",
            "--limit-rate",
            "1M",
            &format!("http://127.0.0.1:{port}/file"),
        ])
        .output()
        .expect("start curl");
    assert!(fetched.stdout == file.all(), "{:?}", fetched.status);
    running.wait().expect_code(0);
    let report = report(&work);
    assert_eq!(report["connections"], 1, "{report}");
    assert!(
        report["bytes_sent"].as_u64() > Some(file.len() / 2),
        "{report}"
    );
}

#[test]
fn local_connections_are_left_alone_and_counted() {
    let (work, nginx) = (Workdir::new(), slow_server());
    let command = ["curl", "-sS", "-o", "copy", &nginx.url("file")];
    let outcome = run(&work, &[], &command).run();
    outcome.expect_code(0);
    let report = report(&work);
    assert_eq!(
        (&report["connections"], &report["bytes_received"]),
        (&0.into(), &0.into())
    );
    assert_eq!(report["local_connections"], 1, "{report}");
    outcome.expect_said(&["1 connection within this machine"]);
}

#[test]
fn a_thousand_short_connections_all_succeed() {
    let nginx = Nginx::with_file(&Content::new(8, 1000), |_: &mut Config| {});
    let work = Workdir::new();
    let fetch = format!(
        "import urllib.request as u\n\
         for _ in range(1000): assert len(u.urlopen('{}').read()) == 1000",
        nginx.url("file")
    );
    let outcome = run(&work, &["--include-local"], &["python3", "-c", &fetch]).run();
    outcome.expect_code(0);
    assert_eq!(nginx.settled_accesses().len(), 1000);
}

#[test]
fn nobody_needs_a_privilege_and_a_program_that_lacks_its_rights_is_named() {
    if !rustix::process::geteuid().is_root() {
        return fairbat_tests::netns::skipped("becoming nobody takes root");
    }
    let (_directory, binary) = fairbat_for_all();
    let nginx = slow_server();
    let work = tempfile::tempdir_in("/tmp").expect("a directory");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(work.path(), all).expect("let everybody write there");
    let script = format!(
        "curl -sS -o /dev/null {}; su --help > /dev/null",
        nginx.url("file")
    );
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(binary)
        .args([
            "run",
            "--include-local",
            "--events",
            "events",
            "--",
            "sh",
            "-c",
            &script,
        ])
        .current_dir(work.path())
        .output()
        .expect("start setpriv of util-linux");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("/su runs without the rights of its owner"),
        "{said}"
    );
    let events = events(work.path());
    assert_held(events.last().expect("an event"), 1);
    assert_eq!(events[0]["notified"], true, "{}", events[0]);
    let unprivileged = events
        .iter()
        .filter(|event| event["event"] == "unprivileged");
    assert_eq!(unprivileged.count(), 1);
}

#[test]
fn a_run_within_a_run_finds_connections_by_looking() {
    let (work, nginx) = (Workdir::new(), slow_server());
    let binary = fairbat_tests::bin::fairbat_binary().display().to_string();
    let inner = [
        &binary,
        "run",
        "--include-local",
        "--events",
        "inner",
        "--",
        "curl",
        "-sS",
        "-o",
        "f",
        &nginx.url("file"),
    ];
    let outcome = run(&work, &["--include-local"], &inner).run();
    outcome.expect_code(0).expect_said(&["looked for"]);
    let inner = std::fs::read_to_string(work.join("inner")).expect("events of the inner run");
    let last: Value =
        serde_json::from_str(inner.lines().last().expect("a line")).expect("an event");
    assert_held(&last, 1);
}
