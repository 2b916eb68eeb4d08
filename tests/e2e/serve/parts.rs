//! `--writable`: files that come in parts, in any order, and are there when all have come.

use std::fs;
use std::io::{Read, Write};
use std::ops::Range;
use std::thread;

use fairbat_tests::expect::{assert_absent, assert_content};
use fairbat_tests::secret::write_secret;
use fairbat_tests::workdir::Workdir;

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
        let place = value(&answer, "location");
        assert!(place.starts_with("?parts="), "{place}");
        format!("{name}{place}")
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
    // The second one replaces it. Its parts come at once, and one comes again with more.
    let place = server.begin_parts("new/file", &[]);
    thread::scope(|scope| {
        for part in [0..70_000, 70_000..200_000, 200_000..SIZE] {
            let (server, place) = (&server, &place);
            scope.spawn(move || assert_eq!(server.send(place, &part), 204));
        }
    });
    assert_eq!(server.send(&place, &(50_000..250_000)), 204);
    // The client may lose the answer, and ask again.
    for _ in 0..2 {
        assert_eq!(server.request("POST", &place, b"", &[]).0, 204);
        assert_content(&server.path("new/file"), &FILE);
    }
    assert_eq!(server.send(&place, &HALVES[0]), 404, "it is complete");
    let give_up = format!("{place}&give-up");
    assert_eq!(server.request("POST", &give_up, b"", &[]).0, 404);
}

#[test]
fn a_part_that_fails_takes_what_came_there_before() {
    let server = writable();
    let place = server.begin_parts("file", &[]);
    let missing = |ranges: &str| {
        let (status, answer) = server.request("POST", &place, b"", &[]);
        assert_eq!(status, 409);
        assert!(answer.contains(&format!("missing: {ranges}\n")), "{answer}");
    };
    for part in &HALVES {
        assert_eq!(server.send(&place, part), 204);
    }
    // Other bytes come again, and are not those that were meant.
    let range = format!("Content-Range: bytes 1000-1999/{SIZE}");
    let digest = format!("Content-Digest: sha-256=:{}=:", "A".repeat(43));
    let flags = ["-H", &range, "-H", &digest];
    let (status, answer) = server.request("PUT", &place, &[7; 1000], &flags);
    assert!(
        status == 400 && answer.contains("does not count"),
        "{answer}"
    );
    missing("1000-1999");
    // Others break off.
    let mut stream = server.connect();
    let head = format!(
        "PUT /{place} HTTP/1.1\r\nHost: localhost\r\nContent-Range: bytes 5000-5999/{SIZE}\r\n\
         Content-Length: 1000\r\n\r\n12345"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    drop(stream);
    wait_until("the part to break off", SOON, || {
        let (_, answer) = server.request("POST", &place, b"", &[]);
        answer.contains("missing: 1000-1999, 5000-5999\n")
    });
    for part in [1000..2000, 5000..6000] {
        assert_eq!(server.send(&place, &part), 204);
    }
    assert_eq!(server.request("POST", &place, b"", &[]).0, 201);
    assert_content(&server.path("file"), &FILE);
}

#[test]
fn of_two_parts_that_overlap_the_newer_one_counts() {
    let server = writable();
    let place = server.begin_parts("file", &[]);
    let mut older = server.connect();
    let head = format!(
        "PUT /{place} HTTP/1.1\r\nHost: localhost\r\nContent-Range: bytes 0-99999/{SIZE}\r\n\
         Content-Length: 100000\r\nConnection: close\r\n\r\n"
    );
    older.write_all(head.as_bytes()).expect("sent");
    older.write_all(&[7; 50_000]).expect("sent");
    wait_until("it to be written", SOON, || {
        let scratch = fs::read_dir(server.path(".fairbat-upload")).expect("made");
        scratch
            .flatten()
            .any(|file| file.metadata().is_ok_and(|it| it.len() == 50_000))
    });
    for part in &HALVES {
        assert_eq!(server.send(&place, part), 204);
    }
    older.write_all(&[7; 50_000]).expect("sent");
    let mut answer = String::new();
    older.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 409 "), "{answer}");
    assert_eq!(server.request("POST", &place, b"", &[]).0, 201);
    assert_content(&server.path("file"), &FILE);
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
    let place = format!("empty{}", value(&answer, "location"));
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
    // A digest of the whole file would not be checked.
    for digest in ["Repr-Digest: sha-256=:AA==:", "Digest: sha-256=AA=="] {
        let (status, answer) = server.request("POST", &place, b"", &["-H", digest]);
        assert!(status == 400 && answer.contains("each part"), "{answer}");
    }
}

#[test]
fn parts_go_where_the_upload_began_whatever_a_proxy_calls_that() {
    let server = writable();
    let total = ["-H", "Content-Range: bytes */0"];
    let (status, answer) = server.request("POST", "file?k=v&parts&x", b"", &total);
    let place = value(&answer, "location").to_owned();
    assert_eq!(status, 201, "{answer}");
    assert!(place.starts_with("?k=v&parts="), "{place}");
    assert!(place.ends_with("&x"), "{place}");
    let place = format!("file{place}");
    assert_eq!(server.request("POST", &place, b"", &[]).0, 201);
}

#[test]
fn no_request_about_parts_removes_a_file() {
    let server = writable();
    server.put_fresh("file", &FILE);
    let place = server.begin_parts("file", &[]);
    let unknown = "file?parts=1".to_owned();
    for place in ["file?parts", &place, &unknown, &format!("{place}&give-up")] {
        assert_eq!(server.request("DELETE", place, b"", &[]).0, 405, "{place}");
    }
    let give_up = format!("{place}&give-up");
    assert_eq!(server.request("POST", &give_up, b"", &[]).0, 204);
    assert_eq!(server.request("POST", &give_up, b"", &[]).0, 404);
    assert_content(&server.path("file"), &FILE);
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
        let give_up = format!("{wrong}&give-up");
        assert_eq!(server.request("POST", &give_up, b"", &[]).0, 404, "{wrong}");
    }
    assert_eq!(server.request("MOVE", &place, b"", &[]).0, 405);
    // Given up, nothing is left of it.
    let give_up = format!("{place}&give-up");
    assert_eq!(server.request("POST", &give_up, b"", &[]).0, 204);
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
    // Nothing of the upload is lost by that.
    fs::remove_file(server.path("other")).expect("removed");
    assert_eq!(server.request("POST", &place, b"", &[]).0, 201);
    assert_content(&server.path("other"), &FILE);
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
    let give_up = format!("{place}&give-up");
    assert_eq!(server.request("POST", &give_up, b"", &[]).0, 401);
    assert_eq!(server.request("POST", &give_up, b"", &good).0, 204);
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
