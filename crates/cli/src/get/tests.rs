mod lists;
mod stream;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use dalbe::receive_window::ReceiverPolicy;
use dalbe::weight::{ControllerPolicy, MIN_WEIGHT};
use fairbat::settings::RetrySettings;

use super::*;
use crate::args::tests::get_from;

/// Two in the afternoon, so that times of day are unambiguous.
const NOW: &str = "2026-03-01T14:00:00+00:00[UTC]";

/// A process that `fairbat get` could be started in.
#[derive(Default)]
struct Process {
    variables: HashMap<&'static str, &'static str>,
    stdin: &'static str,
}

impl Process {
    fn resolve(&self, words: &[&str]) -> Result<(Settings, Downloads), String> {
        let args = get_from(words).map_err(|error| error.to_string())?;
        let environment = &mut Environment {
            now: &NOW.parse().expect("a moment"),
            variable: &|name| self.variables.get(name).map(OsString::from),
            stdin: &mut self.stdin.as_bytes(),
            seed: 42,
        };
        resolve(&args, environment, Vec::new()).map_err(|error| error.to_string())
    }

    /// What is downloaded without --follow.
    fn batch(&self, words: &[&str]) -> Result<Vec<TransferRequest>, String> {
        match self.resolve(words)?.1 {
            Downloads::Batch(requests) => Ok(requests),
            Downloads::Follow(following) => panic!("{following:?}"),
        }
    }
}

const URL: &str = "https://example.org/f";

fn settings(flags: &[&str]) -> Settings {
    let words = [flags, &[URL]].concat();
    match Process::default().resolve(&words) {
        Ok((settings, _)) => settings,
        Err(error) => panic!("{flags:?}: {error}"),
    }
}

fn requests(words: &[&str]) -> Vec<TransferRequest> {
    match Process::default().batch(words) {
        Ok(requests) => requests,
        Err(error) => panic!("{words:?}: {error}"),
    }
}

fn complaint(words: &[&str]) -> String {
    match Process::default().resolve(words) {
        Ok(_) => panic!("{words:?} was accepted"),
        Err(error) => error,
    }
}

#[test]
fn defaults() {
    let settings = settings(&[]);
    assert_eq!((settings.split, settings.max_connections), (1, 4));
    assert_eq!(settings.weight, MIN_WEIGHT);
    assert_eq!(settings.receiver, ReceiverPolicy::Delay);
    assert_eq!(settings.chunk_size, None);
    assert_eq!(settings.file_allocation, FileAllocation::Falloc);
    assert_eq!(
        settings.retry,
        RetrySettings {
            limit: Some(20),
            limit_before_contact: Some(5),
            base: Duration::from_millis(500),
            cap: Duration::from_secs(30),
            max_retry_after: Duration::from_secs(3600),
        }
    );
    assert_eq!(settings.limit_rate, None);
    assert!(settings.resume);
    assert_eq!(settings.max_time, None);
    assert_eq!(settings.seed, 42);
    assert_eq!(settings.http.connect_timeout, Some(Duration::from_secs(30)));
    assert_eq!(settings.http.stall_timeout, Some(Duration::from_secs(20)));
    assert!(settings.http.headers.is_empty());
    assert!(settings.http.user.is_none());
    assert!(settings.http.netrc.is_none());
    assert!(settings.http.cacert.is_none());
    let requests = requests(&[URL]);
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].url.as_str(), URL);
    assert_eq!(requests[0].target, Target::Directory("".into()));
    assert_eq!(requests[0].deadline, None);
    assert_eq!(requests[0].checksum, None);
}

#[test]
fn split_raises_the_limit_unless_both_are_given() {
    for (flags, split, max) in [
        (&["-s", "3"][..], 3, 4),
        (&["-s", "8"], 8, 8),
        (&["-x", "2"], 1, 2),
        (&["-s", "2", "-x", "2"], 2, 2),
        (&["-s", "2", "-x", "16"], 2, 16),
    ] {
        let settings = settings(flags);
        assert_eq!(
            (settings.split, settings.max_connections),
            (split, max),
            "{flags:?}"
        );
    }
    let error = complaint(&["-s", "8", "-x", "4", URL]);
    assert!(error.contains("--max-connections 4"), "{error}");
    assert!(error.contains("--split 8"), "{error}");
}

#[test]
fn values_are_parsed() {
    let settings = settings(&[
        "--chunk-size",
        "1M",
        "--limit-rate",
        "500K",
        "--max-time",
        "90s",
        "--connect-timeout",
        "5s",
        "--stall-timeout",
        "7s",
        "--file-allocation",
        "none",
        "--cacert",
        "ca.pem",
        "--seed",
        "7",
        "--no-continue",
        "--receiver",
        "vulture",
        "--controller",
        "mbc",
    ]);
    assert_eq!(settings.controller, ControllerPolicy::Mbc);
    assert_eq!(settings.receiver, ReceiverPolicy::Vulture);
    // It goes by what QUIC does not show.
    assert_eq!(settings.http.http3, Http3Policy::Never);
    assert_eq!(settings.chunk_size, Some(1 << 20));
    assert_eq!(settings.limit_rate, Some(500 << 10));
    assert_eq!(settings.max_time, Some(Duration::from_secs(90)));
    assert_eq!(settings.http.connect_timeout, Some(Duration::from_secs(5)));
    assert_eq!(settings.http.stall_timeout, Some(Duration::from_secs(7)));
    assert_eq!(settings.file_allocation, FileAllocation::None);
    assert_eq!(settings.http.cacert.as_deref(), Some(Path::new("ca.pem")));
    assert_eq!(settings.seed, 7);
    assert!(!settings.resume);
}

#[test]
fn zero_is_no_limit() {
    let settings = settings(&[
        "--limit-rate",
        "0",
        "--max-time",
        "0s",
        "--connect-timeout",
        "0s",
        "--stall-timeout",
        "0s",
    ]);
    assert_eq!(settings.limit_rate, None);
    assert_eq!(settings.max_time, None);
    assert_eq!(settings.http.connect_timeout, None);
    assert_eq!(settings.http.stall_timeout, None);
}

#[test]
fn a_weight_is_from_the_least_to_one() {
    for (text, weight) in [("0.02", 0.02), ("0.3", 0.3), ("1", 1.0), ("5e-1", 0.5)] {
        assert_eq!(settings(&["--weight", text]).weight, weight, "{text}");
    }
    for text in ["0", "0.019", "1.01", "-1", "nan", "inf", "0,5", "50%", ""] {
        let error = complaint(&[&format!("--weight={text}"), URL]);
        assert!(error.contains("--weight"), "{error}");
        assert!(error.contains(&format!("'{text}'")), "{error}");
        assert!(
            error.contains("from 0.02") && error.contains("to 1"),
            "{error}"
        );
    }
}

#[test]
fn retries() {
    let limits = |flags: &[&str]| {
        let retry = settings(flags).retry;
        (retry.limit, retry.limit_before_contact)
    };
    assert_eq!(limits(&["--retry", "7"]), (Some(7), Some(7)));
    assert_eq!(limits(&["--retry", "0"]), (Some(0), Some(0)));
    assert_eq!(limits(&["--retry", "inf"]), (None, None));
    let waits = |flags: &[&str]| {
        let retry = settings(flags).retry;
        (retry.base.as_millis(), retry.cap.as_millis())
    };
    assert_eq!(waits(&["--retry-wait", "2s"]), (2000, 30_000));
    assert_eq!(waits(&["--retry-wait", "1m"]), (60_000, 60_000));
    assert_eq!(waits(&["--retry-max-wait", "5s"]), (500, 5000));
    let error = complaint(&["--retry-wait", "9s", "--retry-max-wait", "5s", URL]);
    assert!(error.contains("--retry-max-wait"), "{error}");
}

#[test]
fn vultures_rules_cannot_go_over_http3() {
    let error = complaint(&["--receiver", "vulture", "--http3", "only", URL]);
    assert!(error.contains("--http3 only"), "{error}");
}

#[test]
fn complaints_name_the_flag_and_the_value() {
    for (flag, value) in [
        ("--limit-rate", "fast"),
        ("--chunk-size", "big"),
        ("--max-time", "long"),
        ("--deadline", "soon"),
        ("--connect-timeout", "x"),
        ("--stall-timeout", "x"),
        ("--retry", "often"),
        ("--retry", "-1"),
        ("--retry-wait", "x"),
        ("--retry-max-wait", "x"),
        ("--checksum", "md5=00"),
        ("--checksum", "sha-256=xyz"),
        ("--chunk-size", "0"),
    ] {
        let error = complaint(&[&format!("{flag}={value}"), URL]);
        assert!(error.contains(flag), "{error}");
        assert!(error.contains(value), "{error}");
    }
}

#[test]
fn headers() {
    let settings = settings(&["-H", "X-A:b", "-H", "Cookie:  c=d:e "]);
    let headers: Vec<_> = settings
        .http
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().expect("ASCII")))
        .collect();
    assert_eq!(headers, [("x-a", "b"), ("cookie", "c=d:e")]);
    assert!(
        !format!("{settings:?}").contains("c=d"),
        "values are secret"
    );
    for (line, expected) in [
        ("no colon", "'Name: value'"),
        ("bad name: x", "'bad name'"),
        (": x", "''"),
        ("Range: bytes=0-1", "range"),
        ("ACCEPT-ENCODING: gzip", "accept-encoding"),
        ("If-Range: x", "if-range"),
        ("X-A: sec\u{7f}ret", "x-a"),
    ] {
        let error = complaint(&["-H", line, URL]);
        assert!(error.contains(expected), "{line}: {error}");
        assert!(!error.contains("ret"), "{error}");
    }
}

#[test]
fn users() {
    let user = |text| settings(&["-u", text]).http.user.expect("a user");
    assert_eq!(user("me:a:b").user, "me");
    assert_eq!(user("me:a:b").password, "a:b");
    assert_eq!(user("me:").password, "");
    let error = complaint(&["-u", "secret", URL]);
    assert!(error.contains("USER:PASSWORD"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn netrc_is_where_the_variables_say() {
    let netrc = |variables: &[(&'static str, &'static str)]| {
        let process = Process {
            variables: variables.iter().copied().collect(),
            ..Process::default()
        };
        process
            .resolve(&["-n", URL])
            .map(|(settings, _)| settings.http.netrc.expect("a path"))
    };
    let home = ("HOME", "/home/me");
    assert_eq!(netrc(&[home]), Ok("/home/me/.netrc".into()));
    assert_eq!(netrc(&[home, ("NETRC", "/n")]), Ok("/n".into()));
    assert_eq!(netrc(&[home, ("NETRC", "")]), Ok("/home/me/.netrc".into()));
    assert!(netrc(&[]).is_err());
}

#[test]
fn targets() {
    for (flags, target) in [
        (&["-o", "f"][..], Target::File("f".into())),
        (&["-d", "/d"], Target::Directory("/d".into())),
        (
            &["-d", "/d", "-o", "f"],
            Target::FileIn {
                directory: "/d".into(),
                file: "f".into(),
            },
        ),
        (&["-d", "/d", "-o", "/e/f"], Target::File("/e/f".into())),
    ] {
        let words = [flags, &[URL]].concat();
        assert_eq!(requests(&words)[0].target, target, "{flags:?}");
    }
    for output in ["-", "d/", "..", "/"] {
        let error = complaint(&["-o", output, URL]);
        assert!(error.contains("--output"), "{output}: {error}");
    }
}

#[test]
fn one_url_flags_refuse_several() {
    let sum = format!("sha-256={}", "0".repeat(64));
    for flags in [["-o", "f"], ["--checksum", &sum]] {
        let one = [&flags[..], &[URL]].concat();
        assert_eq!(requests(&one).len(), 1);
        let two = [&flags[..], &[URL, URL]].concat();
        assert!(complaint(&two).contains("there are 2"), "{flags:?}");
    }
    let words = ["--checksum", &sum, URL];
    assert_eq!(requests(&words)[0].checksum, sum.parse().ok());
    assert!(requests(&words)[0].checksum.is_some());
}

#[test]
fn one_deadline_for_all() {
    let requests = requests(&["--deadline", "4h", URL, URL]);
    let six = "2026-03-01T18:00:00Z".parse().expect("a moment");
    assert_eq!(requests[0].deadline, Some(six));
    assert_eq!(requests[1].deadline, Some(six));
}

#[test]
fn a_deadline_that_is_over_does_not_keep_the_job_from_being_finished() {
    let noon = "2026-03-01T12:00:00Z";
    assert_eq!(
        requests(&["--deadline", noon, URL])[0].deadline,
        noon.parse().ok()
    );
}

#[test]
fn urls_are_checked() {
    for (url, expected) in [
        ("example.org/f", "https://example.org/f ?"),
        ("localhost:8080/f", "https://localhost:8080/f ?"),
        ("me:secret@example.org/f", "https://example.org/f ?"),
        ("ftp://me:secret@example.org/f", "ftp is not supported"),
        ("file:///etc/passwd", "file is not supported"),
        ("http://", "http://: not a URL: empty host"),
        ("http:///x", "http:///x: not a URL: empty host"),
        ("https:////x/y", "empty host"),
        ("http://\\x", "empty host"),
        ("http:/x", "two slashes"),
        ("http:x", "two slashes"),
        ("http:///me:secret@h/x", "http:///h/x: "),
        ("http:/me:secret@h/x", "http:/h/x: "),
        ("http:me:secret@h/x", "h/x: "),
        ("https://me:secret@exa mple.org/", "https://exa mple.org/"),
        ("", "not a URL"),
    ] {
        let error = complaint(&[url]);
        assert!(error.contains(expected), "{url}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    assert_eq!(
        requests(&["HTTP://EXAMPLE.org"])[0].url.as_str(),
        "http://example.org/"
    );
}
