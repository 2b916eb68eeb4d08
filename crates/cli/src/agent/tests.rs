use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::*;
use crate::args::tests::{add_from, restore_from};

const NOW: &str = "2026-03-01T14:00:00+01:00[+01:00]";

fn added(words: &[&str]) -> Result<(String, String), String> {
    let now = NOW.parse().expect("a moment");
    let download = download(&add_from(words), &now, Path::new("/home/me"));
    let download = download.map_err(|error| error.to_string())?;
    let text = |name: &str| download[name].as_str().unwrap_or_default().to_owned();
    Ok((text("to"), text("deadline")))
}

#[test]
fn paths_are_absolute_and_directories_end_with_a_slash() {
    for (flags, expected) in [
        (&[][..], "/home/me/"),
        (&["-d", "."], "/home/me/"),
        (&["-d", "iso/"], "/home/me/iso/"),
        (&["-d", "/"], "/"),
        (&["-d", "../you"], "/home/me/../you/"),
        (&["-o", "f"], "/home/me/f"),
        (&["-o", "/srv/f"], "/srv/f"),
        (&["-d", "iso", "-o", "f"], "/home/me/iso/f"),
    ] {
        let words = [flags, &["http://h/f"]].concat();
        assert_eq!(
            added(&words),
            Ok((expected.to_owned(), String::new())),
            "{flags:?}"
        );
    }
}

#[test]
fn deadlines_are_those_of_get() {
    for (text, expected) in [
        ("06:00", "2026-03-02T05:00:00Z"),
        ("4h", "2026-03-01T17:00:00Z"),
        ("2026-03-01T06:00:00Z", "2026-03-01T06:00:00Z"),
    ] {
        let (_, deadline) = added(&["--deadline", text, "http://h/f"]).expect("it is right");
        assert_eq!(deadline, expected);
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (words, expected) in [
        (&["h/f"][..], "https://h/f ?"),
        (&["http:///f"], "empty host"),
        (&["--deadline", "soon", "http://h/f"], "--deadline"),
        (&["-o", "iso/", "http://h/f"], "--output"),
    ] {
        let error = added(words).expect_err(expected);
        assert!(error.contains(expected), "{words:?}: {error}");
    }
    let odd = Path::new(OsStr::from_bytes(b"/srv/\xff"));
    let error = path_text("--to", odd).expect_err("no UTF-8").to_string();
    assert!(error.contains("--to") && error.contains("UTF-8"), "{error}");
}

#[test]
fn mirrors_and_a_digest_are_passed_on() {
    let now = NOW.parse().expect("a moment");
    let digest = format!("sha-256={}", "0".repeat(64));
    let words = [
        "--mirror",
        "http://i/f",
        "--checksum",
        &digest,
        "http://h/f",
    ];
    let body = download(&add_from(&words), &now, Path::new("/srv")).expect("it is right");
    let expected = json!({
        "url": "http://h/f", "to": "/srv/", "deadline": null,
        "mirrors": ["http://i/f"], "checksum": digest,
    });
    assert_eq!(body, expected);
}

#[test]
fn a_restore_has_a_job_and_a_directory() {
    let now = NOW.parse().expect("a moment");
    let args = restore_from(&["home", "--to", "back"]);
    let asked = restoration(&args, &now, Path::new("/home/me")).expect("it is right");
    let expected = json!({"job": "home", "to": "/home/me/back", "deadline": null});
    assert_eq!(asked, expected);
}
