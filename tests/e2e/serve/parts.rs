//! `--writable`: files that come in parts, in any order, and are there when all have come.

use std::fs;
use std::io::Write;
use std::ops::Range;
use std::thread;

use fairbat_tests::expect::{assert_absent, assert_content};
use fairbat_tests::workdir::{Workdir, write_secret};

use super::uploads::writable;
use super::{Content, FILE, SOON, Serving, curl, value, wait_until};

const SIZE: u64 = FILE.len();

/// Two parts of [`FILE`].
const HALVES: [Range<u64>; 2] = [0..100_000, 100_000..SIZE];

impl Serving {
    /// Sends a request with this body; the status and all of the answer, in lower case.
    fn request(&self, method: &str, path: &str, body: &[u8], flags: &[&str]) -> (u16, String) {
        let work = Workdir::new();
        let file = work.join("body");
        fs::write(&file, body).expect("written");
        let sent = format!("@{}", file.display());
        let url = self.url(path);
        let mut args = vec!["-i", "-X", method, &url];
        if !body.is_empty() {
            args.extend(["--data-binary", &sent, "-H", "Content-Type:"]);
        }
        args.extend(flags);
        let answer = String::from_utf8_lossy(&curl(args).stdout).to_lowercase();
        let code = answer["http/1.x ".len()..][..3].parse().expect("a status");
        (code, answer)
    }

    /// Begins an upload of [`FILE`]; where its parts go.
    fn begin_parts(&self, name: &str, flags: &[&str]) -> String {
        let total = format!("Content-Range: bytes */{SIZE}");
        let flags = [&["-H", &total], flags].concat();
        let (status, answer) = self.request("POST", &format!("{name}?parts"), b"", &flags);
        assert_eq!(status, 201, "{answer}");
        let place = value(&answer, "location").to_owned();
        assert!(place.starts_with(&format!("/{name}?parts=")), "{place}");
        place[1..].to_owned()
    }

    /// Sends these bytes as that range.
    fn send_part(&self, place: &str, body: &[u8], range: &str) -> (u16, String) {
        self.request(
            "PUT",
            place,
            body,
            &["-H", &format!("Content-Range: {range}")],
        )
    }

    /// Sends a part of [`FILE`].
    fn send(&self, place: &str, part: &Range<u64>) -> u16 {
        let range = format!("bytes {}-{}/{SIZE}", part.start, part.end - 1);
        self.send_part(place, &FILE.bytes(part.clone()), &range).0
    }
}

#[test]
fn parts_come_in_any_order_and_more_than_once() {
    let server = writable();
    let head = server.headers(&[&server.url("absent")]);
    assert_eq!(value(&head, "fairbat"), "1;parts", "{head}");
    let place = server.begin_parts("new/file", &[]);
    for part in [&HALVES[1], &HALVES[1], &HALVES[0]] {
        assert_absent(&server.path("new"));
        assert_eq!(server.send(&place, part), 204);
    }
    let (status, answer) = server.request("POST", &place, b"", &[]);
    assert_eq!(status, 201, "{answer}");
    assert!(value(&answer, "etag").starts_with('"'), "{answer}");
    assert_content(&server.path("new/file"), &FILE);
    server.assert_no_scratch();
    // The second one replaces it. Its parts come at once, and overlap.
    let place = server.begin_parts("new/file", &[]);
    thread::scope(|scope| {
        for part in [0..70_000, 60_000..200_000, 150_000..SIZE, 0..SIZE] {
            let (server, place) = (&server, &place);
            scope.spawn(move || assert_eq!(server.send(place, &part), 204));
        }
    });
    assert_eq!(server.request("POST", &place, b"", &[]).0, 204);
    assert_content(&server.path("new/file"), &FILE);
    assert_eq!(
        server.request("POST", &place, b"", &[]).0,
        404,
        "it is complete"
    );
}

#[test]
fn a_file_is_complete_when_nothing_is_missing() {
    let server = writable();
    let place = server.begin_parts("file", &[]);
    assert_eq!(server.send(&place, &HALVES[1]), 204);
    let (status, answer) = server.request("POST", &place, b"", &[]);
    assert_eq!(status, 409);
    assert!(answer.contains("missing: 0-99999\n"), "{answer}");
    assert_absent(&server.path("file"));
    assert_eq!(server.send(&place, &HALVES[0]), 204);
    assert_eq!(server.request("POST", &place, b"", &[]).0, 201);
    // A file of no bytes needs no part.
    let none = ["-H", "Content-Range: bytes */0"];
    let (_, answer) = server.request("POST", "empty?parts", b"", &none);
    let place = value(&answer, "location")[1..].to_owned();
    assert_eq!(server.request("POST", &place, b"", &[]).0, 201);
    assert_content(&server.path("empty"), &Content::new(1, 0));
}

#[test]
fn what_is_no_part_of_the_file_is_refused() {
    let server = writable();
    let place = server.begin_parts("file", &[]);
    let body = FILE.bytes(0..10);
    for range in [
        "bytes 0-8/300000",
        "bytes 0-10/300000",
        "bytes 0-9/300001",
        "bytes 0-9/*",
        "bytes 299995-300004/300000",
        "bytes */300000",
        "items 0-9/300000",
    ] {
        let (status, answer) = server.send_part(&place, &body, range);
        assert_eq!(status, 400, "{range} {answer}");
    }
    assert_eq!(server.request("PUT", &place, &body, &[]).0, 400);
    let wrong = [
        "-H",
        "Content-Range: bytes 0-9/300000",
        "-H",
        "Content-Digest: sha-256=:AA==:",
    ];
    assert_eq!(server.request("PUT", &place, &body, &wrong).0, 400);
    // A body that says nothing of its length, and is too long or too short.
    for length in ["0-8", "0-10"] {
        let range = format!("Content-Range: bytes {length}/300000");
        let chunked = ["-H", &range, "-H", "Transfer-Encoding: chunked"];
        assert_eq!(
            server.request("PUT", &place, &body, &chunked).0,
            400,
            "{length}"
        );
    }
    // Nothing of a part that breaks off.
    let mut stream = server.connect();
    let head = format!(
        "PUT /{place} HTTP/1.1\r\nHost: localhost\r\nContent-Range: bytes 0-99999/{SIZE}\r\n\
         Content-Length: 100000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(&FILE.bytes(0..50_000)).expect("sent");
    drop(stream);
    let (status, answer) = server.request("POST", &place, b"", &[]);
    assert_eq!(status, 409);
    assert!(answer.contains("missing: 0-299999\n"), "{answer}");
}

#[test]
fn unknown_uploads_and_other_names_are_not_found() {
    let mut server = writable();
    let place = server.begin_parts("file", &[]);
    let (_, id) = place.split_once('=').expect("an ID");
    for wrong in [
        format!("other?parts={id}"),
        format!("file?parts={id}0"),
        "file?parts=".to_owned(),
    ] {
        assert_eq!(server.send(&wrong, &HALVES[0]), 404, "{wrong}");
        assert_eq!(server.request("POST", &wrong, b"", &[]).0, 404, "{wrong}");
        assert_eq!(server.request("DELETE", &wrong, b"", &[]).0, 404, "{wrong}");
    }
    assert_eq!(server.request("DELETE", "file?parts", b"", &[]).0, 405);
    assert_eq!(server.request("MOVE", &place, b"", &[]).0, 405);
    // Given up, nothing is left of it.
    assert_eq!(server.request("DELETE", &place, b"", &[]).0, 204);
    server.assert_no_scratch();
    assert_eq!(server.send(&place, &HALVES[0]), 404);
    // After a kill, the next server removes what is left.
    let place = server.begin_parts("file", &[]);
    assert_eq!(server.send(&place, &HALVES[0]), 204);
    server.kill();
    let unfinished = || {
        fs::read_dir(server.path(".fairbat-upload"))
            .expect("made")
            .count()
    };
    assert_eq!(unfinished(), 1);
    let again = Serving::of(server.directory.path(), |run| run.arg("--writable"));
    assert_eq!(unfinished(), 0);
    assert_eq!(again.send(&place, &HALVES[1]), 404);
    // When a server ends in good order, it removes that itself.
    let place = again.begin_parts("file", &[]);
    assert_eq!(again.send(&place, &HALVES[0]), 204);
    again.end();
    assert_eq!(unfinished(), 0);
}

#[test]
fn an_upload_in_parts_begins_under_the_rules_of_put() {
    let server = Serving::start(&["--writable", "--max-upload", "300001"]);
    let begin = |name: &str, header: &str| server.request("POST", name, b"", &["-H", header]).0;
    let (size, more) = (
        "Content-Range: bytes */300000",
        "Content-Range: bytes */300002",
    );
    assert_eq!(begin("file?parts", more), 413);
    assert_eq!(begin("file?parts", "X-Length: 300000"), 400);
    assert_eq!(begin("file?parts", "Content-Range: bytes 0-1/2"), 400);
    assert_eq!(begin("a/../b?parts", size), 400);
    fs::create_dir(server.path("directory")).expect("made");
    assert_eq!(begin("directory?parts", size), 409);
    assert_eq!(begin("file", size), 405, "POST is for uploads in parts");
    assert_eq!(
        server.request("POST", "file?parts", b"x", &["-H", size]).0,
        415
    );
    server.put_fresh("file", &FILE);
    let create = ["-H", size, "-H", "If-None-Match: *"];
    assert_eq!(server.request("POST", "file?parts", b"", &create).0, 412);
    // The condition still holds when it is complete.
    let place = server.begin_parts("other", &create[2..]);
    assert_eq!(server.send(&place, &(0..SIZE)), 204);
    server.put_fresh("other", &Content::new(2, 10));
    assert_eq!(server.request("POST", &place, b"", &[]).0, 412);
    assert_content(&server.path("other"), &Content::new(2, 10));
    server.assert_no_scratch();
    // Uploads at once are bounded, those in parts as well.
    let begun: Vec<u16> = (0..40).map(|_| begin("x?parts", size)).collect();
    assert_eq!(
        begun.iter().filter(|&&status| status == 201).count(),
        32,
        "{begun:?}"
    );
    assert!(begun[32..].iter().all(|&status| status == 503), "{begun:?}");
}

#[test]
fn only_who_has_the_token_sends_parts() {
    let work = Workdir::new();
    let token = work.join("token");
    write_secret(&token, "0123456789abcdef0123456789abcdef");
    let token = token.to_str().expect("UTF-8");
    let server = Serving::start(&["--writable", "--token-file", token]);
    let good = [
        "-H",
        "Authorization: Bearer 0123456789abcdef0123456789abcdef",
    ];
    let place = server.begin_parts("file", &good);
    assert_eq!(server.send(&place, &HALVES[0]), 401);
    assert_eq!(server.request("POST", "file?parts", b"", &[]).0, 401);
    assert_eq!(
        server
            .request("POST", &place, b"", &["-H", "Authorization: Bearer 1"])
            .0,
        401
    );
    assert_eq!(server.request("DELETE", &place, b"", &good).0, 204);
    // One that takes no changes does not say that it takes parts.
    let reader = Serving::start(&[]);
    let head = reader.headers(&[&reader.url("x")]);
    assert_eq!(value(&head, "fairbat"), "1", "{head}");
    assert_eq!(reader.request("POST", "x?parts", b"", &[]).0, 405);
    wait_until("nothing to be left", SOON, || {
        fs::read_dir(server.path(".fairbat-upload"))
            .expect("made")
            .count()
            == 0
    });
}
