//! `--writable`: what is in a directory, for programs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use fairbat_tests::workdir::Workdir;
use serde_json::Value;

use super::uploads::writable;
use super::{FILE, Serving, curl, value, wait_until};

const JSON: &str = "Accept: application/json";

impl Serving {
    /// The entries of a listing.
    fn list(&self, name: &str) -> Vec<Value> {
        let output = curl(["-f", "-H", JSON, &self.url(name)]);
        assert!(output.status.success(), "{name}: {output:?}");
        serde_json::from_slice(&output.stdout).expect("a JSON array")
    }
}

fn names(entries: &[Value]) -> Vec<&str> {
    let name = |entry: &'_ Value| entry["name"].as_str().is_some();
    assert!(entries.iter().all(name), "{entries:?}");
    entries
        .iter()
        .filter_map(|entry| entry["name"].as_str())
        .collect()
}

#[test]
fn what_is_served_is_listed() {
    let server = writable();
    assert!(server.list("").is_empty());
    let work = Workdir::new();
    server.upload("uploaded", &Serving::body(&work, &FILE), &[]);
    fs::create_dir_all(server.path("directory/below")).expect("made");
    server.put("file", &FILE);
    symlink("file", server.path("link")).expect("a link");
    symlink("directory", server.path("linked")).expect("a link");
    symlink("/etc/passwd", server.path("out")).expect("a link");
    symlink("none", server.path("dangling")).expect("a link");
    symlink("../file", server.path("directory/up")).expect("a link");
    let made = std::process::Command::new("mkfifo")
        .arg(server.path("fifo"))
        .status();
    assert!(made.expect("start mkfifo").success());
    let entries = server.list("");
    assert_eq!(
        names(&entries),
        ["directory", "file", "link", "linked", "uploaded"]
    );
    let kinds: Vec<_> = entries.iter().map(|entry| entry["type"].as_str()).collect();
    let (file, directory) = (Some("file"), Some("directory"));
    assert_eq!(kinds, [directory, file, file, directory, file]);
    assert!(entries[0]["size"].is_null() && entries[0]["etag"].is_null());
    assert_eq!(entries[1]["size"], FILE.len());
    let head = server.headers(&[&server.url("file")]);
    assert_eq!(entries[1]["etag"], value(&head, "etag"));
    assert_eq!(entries[2]["etag"], entries[1]["etag"]);
    let modified = fs::metadata(server.path("file")).and_then(|file| file.modified());
    let since = modified
        .expect("a time")
        .duration_since(std::time::UNIX_EPOCH);
    let told = entries[1]["mtime"].as_f64().expect("a number");
    assert!((told - since.expect("after 1970").as_secs_f64()).abs() < 1e-5);
    assert_eq!(names(&server.list("directory/")), ["below", "up"]);
    assert_eq!(names(&server.list("linked")), ["below", "up"]);

    let head = server.headers(&["-H", JSON, &server.url("")]);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(value(&head, "content-type"), "application/json");
    // Nobody else, and nothing else.
    for (name, expected) in [("", 404), ("directory", 404), ("file", 200)] {
        assert_eq!(server.status(&[&server.url(name)]), expected, "{name}");
    }
    let status = |name: &str| server.status(&["-H", JSON, &server.url(name)]);
    assert_eq!(status("none"), 404);
    assert_eq!(status("file/"), 404);
    assert_eq!(status("out"), 404);
    assert_eq!(status(".fairbat-upload/"), 404);
    assert_eq!(status("?limit=0"), 400);
    assert!(curl(["-H", JSON, &server.url("file")]).stdout == FILE.all());
    let tag = entries[4]["etag"].clone();
    wait_until("the tag to be told", super::SOON, || {
        server.list("")[4]["etag"].is_string()
    });
    assert!(tag.is_null() || tag == server.list("")[4]["etag"]);
}

#[test]
fn odd_names_are_told_exactly() {
    let server = writable();
    let made: [&[u8]; 8] = [
        b"\xff\xfe",
        b"%FF%FE",
        b"a b+c",
        b"line\nbreak\t\"quoted\"\\",
        b"100%",
        "\u{e4}\u{20ac}\u{1f600}".as_bytes(),
        b"-._~ \x80",
        b"...",
    ];
    for name in made {
        fs::write(server.directory.path().join(OsStr::from_bytes(name)), "x").expect("written");
    }
    let entries = server.list("");
    let mut told: Vec<Vec<u8>> = entries
        .iter()
        .map(|entry| {
            let name = entry["name"].as_str().expect("a text");
            match entry.get("percent_encoded") {
                None => name.as_bytes().to_vec(),
                Some(flag) => {
                    assert_eq!(flag, true);
                    // It can be asked for as it stands there.
                    assert_eq!(server.status(&[&server.url(name)]), 200, "{name}");
                    decoded(name)
                }
            }
        })
        .collect();
    assert!(told.is_sorted(), "in the order of their bytes");
    let mut expected: Vec<_> = made.iter().map(|name| name.to_vec()).collect();
    expected.sort();
    told.sort();
    assert_eq!(told, expected);
    let page = server.list("?limit=1&after=a%20b%2bc");
    assert_eq!(names(&page), ["line\nbreak\t\"quoted\"\\"]);
    let last = server.list("?limit=2&after=%c3%a4%e2%82%ac%f0%9f%98%80");
    assert_eq!(names(&last), ["%FF%FE"]);
    assert_eq!(last[0]["percent_encoded"], true);
    assert!(server.list("?after=%ff%fe").is_empty());
}

fn decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = if first == '%' { 3 } else { 1 };
        let (word, behind) = rest.split_at(length);
        bytes.push(match word.strip_prefix('%') {
            Some(hex) => u8::from_str_radix(hex, 16).expect("two digits"),
            None => word.as_bytes()[0],
        });
        rest = behind;
    }
    bytes
}

#[test]
fn many_names_are_told_at_once_or_page_by_page() {
    let server = writable();
    let many = 100_000;
    let directory = server.path("many");
    fs::create_dir(&directory).expect("made");
    for n in 0..many {
        fs::File::create(directory.join(format!("{n:06}"))).expect("made");
    }
    // What is not listed does not make a page shorter.
    for n in 0..50 {
        symlink("none", directory.join(format!("000500-{n}"))).expect("a link");
    }
    let expected: Vec<_> = (0..many).map(|n| format!("{n:06}")).collect();
    let all = server.list("many");
    assert!(names(&all) == expected);
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.list(&format!("many?limit=9999&after={after}"));
        seen.extend(names(&page).into_iter().map(str::to_owned));
        after = seen.last().cloned().unwrap_or_default();
        if page.len() < 9999 {
            break;
        }
    }
    assert!(seen == expected);
    let page = server.list("many?limit=600&after=000450");
    assert!(names(&page) == expected[451..1051]);
}
