//! The command line itself: what it takes, refuses and calls things.

use std::fs;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::expect::names_in;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::outcome::Outcome;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(170, 300_000);
const URL: &str = "http://127.77.77.77:1/file";

fn run(args: &[&str]) -> Outcome {
    let work = Workdir::new();
    let outcome = Fairbat::new(work.path()).args(args).run();
    assert_eq!(names_in(work.path()), [""; 0], "{outcome}");
    outcome
}

#[test]
fn usage_errors_exit_2_and_touch_nothing() {
    for args in [
        &["get"][..],
        &[],
        &["fetch", URL],
        &["get", "--no-such-flag", URL],
        &["get", "-o", "x", URL, URL],
        &["get", "-s", "0", URL],
        &["get", "-x", "0", URL],
        &["get", "-s", "8", "-x", "2", URL],
        &["get", "-s", "many", URL],
        &["get", "--chunk-size", "0", URL],
        &["get", "--chunk-size", "1X", URL],
        &["get", "--limit-rate", "fast", URL],
        &["get", "--file-allocation", "trunc", URL],
        &["get", "--receiver", "ledbat", URL],
        &["get", "--receiver", "", URL],
        &["get", "--retry", "-1", URL],
        &["get", "--retry-wait", "soon", URL],
        &["get", "--max-time", "yesterday", URL],
        &["get", "--deadline", "25:00", URL],
        &["get", "--deadline", "tomorrow", URL],
        &["get", "--deadline", "-5s", URL],
        &["get", "not a url"],
        &["get", "/etc/hostname"],
        &["get", "ftp://127.0.0.1/file"],
        &["get", "file:///etc/hostname"],
        &["get", "http://"],
        &["get", "http:///x"],
        &["put", "/etc/hostname", "http:///x"],
        &["plan", "--deadline=4h", "http:///x"],
    ] {
        let outcome = run(args);
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(
            !outcome.stderr.is_empty() && outcome.stdout.is_empty(),
            "{outcome}"
        );
    }
}

#[test]
fn help_names_every_flag() {
    let outcome = run(&["get", "--help"]);
    outcome.expect_code(0);
    for flag in [
        "-o, --output",
        "-d, --directory",
        "-i, --input-file",
        "-c, --continue",
        "--no-continue",
        "-s, --split",
        "-x, --max-connections",
        "--chunk-size",
        "--file-allocation",
        "-H, --header",
        "-u, --user",
        "-n, --netrc",
        "--cacert",
        "--limit-rate",
        "--checksum",
        "--retry",
        "--retry-wait",
        "--retry-max-wait",
        "--connect-timeout",
        "--stall-timeout",
        "--max-time",
        "--deadline",
        "--weight",
        "--receiver",
        "--fail-late",
        "--json",
        "-q, --quiet",
        "-v, --verbose",
    ] {
        assert!(outcome.stdout.contains(flag), "{flag} is not in {outcome}");
    }
}

#[test]
fn version_says_which() {
    let outcome = run(&["--version"]);
    outcome.expect_code(0);
    assert!(outcome.stdout.starts_with("fairbat "), "{outcome}");
}

#[test]
fn doctor_explains_the_machine_in_words_and_json() {
    let words = run(&["doctor"]);
    words.expect_code(0);
    assert!(words.stdout.lines().count() >= 3, "{words}");
    let json = run(&["doctor", "--json"]);
    json.expect_code(0);
    let value: serde_json::Value =
        serde_json::from_str(&json.stdout).unwrap_or_else(|error| panic!("{error} in {json}"));
    let lever = value["lever"].as_str().expect("the lever in use");
    assert!(words.stdout.contains(lever), "{words}");
    let windows = value["capabilities"].as_array().into_iter().flatten();
    let windows = windows
        .filter(|capability| capability["name"] == "receive-buffer")
        .filter_map(|capability| capability["reason"].as_str());
    for reason in windows {
        assert!(!reason.contains(" 0 KiB"), "{reason}");
    }
    // A run is under the lever that doctor names.
    let work = Workdir::new();
    let get = work.get().args(["--retry", "0", "http://127.0.0.1:1/x"]);
    assert_eq!(get.run().event("start")["lever"], lever);
}

#[test]
fn completions_and_manual_pages_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let outcome = run(&["completions", shell]);
        outcome.expect_code(0);
        assert!(outcome.stdout.contains("fairbat"), "{outcome}");
    }
    run(&["completions", "cmd.exe"]).expect_code(2);

    let page = run(&["man"]);
    page.expect_code(0);
    assert!(page.stdout.contains(".TH"), "{page}");
    let work = Workdir::new();
    Fairbat::new(work.path())
        .args(["man", "--dir", "."])
        .run()
        .expect_code(0);
    let names = names_in(work.path());
    assert!(names.contains(&"fairbat.1".to_owned()), "{names:?}");
    assert!(names.contains(&"fairbat-get.1".to_owned()), "{names:?}");
}

#[test]
fn flags_can_come_from_the_environment_and_the_command_line_wins() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    let work = Workdir::new();
    for name in ["one", "two"] {
        fs::create_dir(work.join(name)).expect("created");
    }
    let get = || {
        Fairbat::new(work.path())
            .args(["get", &server.url("/file")])
            .env("FAIRBAT_DIRECTORY", "one")
            .env("FAIRBAT_JSON", "true")
    };
    let outcome = get().run();
    outcome.expect_code(0);
    let _ = outcome.event("done");
    get().args(["-d", "two"]).run().expect_code(0);
    assert_eq!(names_in(&work.join("one")), ["file"]);
    assert_eq!(names_in(&work.join("two")), ["file"]);

    for (name, value) in [
        ("FAIRBAT_MAX_CONNECTIONS", "0"),
        ("FAIRBAT_SPLIT", "x"),
        ("FAIRBAT_LIMIT_RATE", "x"),
        ("FAIRBAT_CHUNK_SIZE", "x"),
        ("FAIRBAT_RETRY_WAIT", "x"),
        ("FAIRBAT_STALL_TIMEOUT", "x"),
        ("FAIRBAT_DEADLINE", "x"),
        ("FAIRBAT_CHECKSUM", "x"),
        ("FAIRBAT_FILE_ALLOCATION", "x"),
        ("FAIRBAT_RECEIVER", "x"),
    ] {
        let outcome = get().env(name, value).run();
        assert_eq!(outcome.code, Some(2), "{name}={value}: {outcome}");
    }
}

#[test]
fn sizes_and_rates_take_binary_suffixes() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    for (size, bytes) in [
        ("64K", 65_536),
        ("64k", 65_536),
        ("65536", 65_536),
        ("1M", 1 << 20),
    ] {
        let before = server.requests().len();
        let work = Workdir::new();
        work.get()
            .args(["--chunk-size", size, &server.url("/file")])
            .run()
            .expect_code(0);
        for request in &server.requests()[before..] {
            if let Some((first, Some(last))) = request.range() {
                assert!(last - first < bytes, "{size}: {first}-{last}");
            }
        }
    }
}
