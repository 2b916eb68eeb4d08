//! `--writable`: what changes names, and no content.

use std::fs;
use std::os::unix::fs::symlink;

use fairbat_tests::expect::{assert_absent, assert_content, assert_only};
use fairbat_tests::workdir::Workdir;

use super::uploads::writable;
use super::{Content, FILE, Serving, value};

const OTHER: Content = Content::new(461, 1000);

impl Serving {
    /// The status of a request without a body.
    fn ask(&self, method: &str, name: &str, flags: &[&str]) -> u16 {
        let url = self.url(name);
        self.status(&[&["-X", method, &url], flags].concat())
    }

    /// That of a MOVE.
    fn rename(&self, from: &str, to: &str, flags: &[&str]) -> u16 {
        let destination = format!("Destination: {to}");
        self.ask("MOVE", from, &[&["-H", &destination], flags].concat())
    }
}

#[test]
fn files_and_empty_directories_are_deleted() {
    let server = writable();
    fs::create_dir_all(server.path("full/empty")).expect("made");
    server.put_fresh("full/file", &FILE);
    let outside = Workdir::new();
    fs::write(outside.join("file"), "x").expect("written");
    symlink(outside.path(), server.path("out")).expect("a link");
    for (name, expected) in [
        ("none", 404),
        ("none/file", 404),
        ("full/file/x", 404),
        ("full", 409),
        ("full/empty/", 204),
        ("full/file", 204),
        ("full/file", 404),
        ("out/file", 403),
        ("out", 204),
        ("", 409),
    ] {
        assert_eq!(server.ask("DELETE", name, &[]), expected, "{name}");
    }
    // What has become empty stays.
    assert_only(server.directory.path(), &["full"]);
    assert_eq!(server.ask("DELETE", "full", &[]), 204);
    assert_only(outside.path(), &["file"]);
}

#[test]
fn only_the_version_that_is_expected_is_deleted_or_moved() {
    let (server, work) = (writable(), Workdir::new());
    let (_, head) = server.upload("file", &Serving::body(&work, &FILE), &[]);
    let right = format!("If-Match: {}", value(&head, "etag"));
    let wrong = ["-H", "If-Match: \"x\""];
    assert_eq!(server.ask("DELETE", "file", &wrong), 412);
    assert_eq!(server.rename("file", "/other", &wrong), 412);
    assert_content(&server.path("file"), &FILE);
    assert_eq!(server.rename("file", "/other", &["-H", &right]), 201);
    assert_content(&server.path("other"), &FILE);
    assert_eq!(server.ask("DELETE", "file", &["-H", "If-Match: *"]), 412);
}

#[test]
fn files_are_moved() {
    let server = writable();
    server.put_fresh("file", &FILE);
    server.put_fresh("other", &OTHER);
    fs::create_dir(server.path("directory")).expect("made");
    symlink("file", server.path("link")).expect("a link");
    let keep = ["-H", "Overwrite: F"];
    let there = server.url("a/b/moved");
    let elsewhere = there.replace("127.0.0.1", "192.0.2.1");
    for (from, to, flags, expected) in [
        ("none", "/x", &[][..], 404),
        ("directory", "/x", &[], 409),
        ("link", "/x", &[], 409),
        ("file", "/directory", &[], 409),
        ("file", "/other/x", &[], 409),
        ("file", "/file", &[], 403),
        ("file", "/../x", &[], 400),
        ("file", "/.fairbat-upload", &[], 400),
        ("file", &elsewhere, &[], 502),
        ("file", "/other", &keep, 412),
        ("file", "/other", &["-H", "Overwrite: maybe"], 400),
    ] {
        assert_eq!(server.rename(from, to, flags), expected, "{from} {to}");
    }
    assert_eq!(server.ask("MOVE", "file", &[]), 400, "whereto?");
    assert_content(&server.path("file"), &FILE);
    assert_content(&server.path("other"), &OTHER);
    assert_eq!(server.rename("file", &there, &keep), 201);
    assert_content(&server.path("a/b/moved"), &FILE);
    assert_absent(&server.path("file"));
    assert_eq!(server.rename("a/b/moved", "/other", &[]), 204);
    assert_content(&server.path("other"), &FILE);
    // One file under two names becomes one of one name.
    fs::hard_link(server.path("other"), server.path("again")).expect("a link");
    assert_eq!(server.rename("other", "/again", &[]), 204);
    assert_content(&server.path("again"), &FILE);
    assert_absent(&server.path("other"));
}

#[test]
fn directories_are_made_one_at_a_time() {
    let server = writable();
    server.put_fresh("file", &FILE);
    for (name, expected) in [
        ("made", 201),
        ("made/", 405),
        ("made/below/", 201),
        ("none/below", 409),
        ("file", 405),
        ("file/below", 409),
        ("", 405),
        (".fairbat-upload", 400),
    ] {
        assert_eq!(server.ask("MKCOL", name, &[]), expected, "{name}");
    }
    assert_eq!(server.ask("MKCOL", "body", &["-d", "x"]), 415);
    assert_only(server.directory.path(), &["file", "made"]);
    assert!(server.path("made/below").is_dir());
}
