//! `--writable`: files that are uploaded, whole or not at all, as the request
//! expects.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread::{self, ScopedJoinHandle};

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::repr_digest;
use fairbat_tests::expect::{assert_content, assert_only};
use fairbat_tests::secret::write_secret;
use fairbat_tests::workdir::Workdir;

use super::{Content, FILE, SOON, Serving, curl, value, wait_until};

/// Another version, of the same size.
const OTHER: Content = Content::new(441, FILE.len());

pub(super) fn writable() -> Serving {
    Serving::start(&["--writable"])
}

impl Serving {
    /// A file with this content, for curl to send.
    pub(super) fn body(work: &Workdir, content: &Content) -> String {
        let path = work.join(&format!("body-{content:?}").replace([' ', ':', '{', '}', ','], ""));
        content.write_to(&path).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    }

    /// Sends it by PUT; the status and the head of the answer, in lower case.
    pub(super) fn upload(&self, name: &str, body: &str, flags: &[&str]) -> (u16, String) {
        let url = self.url(name);
        let args = [&["-D", "-", "-T", body, &url][..], flags].concat();
        let output = curl(args);
        let answer = String::from_utf8_lossy(&output.stdout).to_lowercase();
        let last = answer
            .rfind("http/1.")
            .unwrap_or_else(|| panic!("{output:?}"));
        let head = answer[last..].to_owned();
        let code = head["http/1.x ".len()..][..3].parse().expect("a status");
        (code, head)
    }

    /// Sends these at once under one name; the statuses.
    fn upload_all(&self, name: &str, bodies: &[String], flags: &[&str]) -> Vec<u16> {
        thread::scope(|scope| {
            let mut running = Vec::new();
            for body in bodies {
                running.push(scope.spawn(move || self.upload(name, body, flags).0));
            }
            let statuses = running.into_iter().map(ScopedJoinHandle::join);
            statuses.map(|status| status.expect("a status")).collect()
        })
    }

    /// Panics unless nothing unfinished is left.
    #[track_caller]
    pub(super) fn assert_no_scratch(&self) {
        let scratch = self.path(".fairbat-upload");
        wait_until("what was unfinished to be gone", SOON, || {
            fs::read_dir(&scratch).map_or(true, |names| names.count() == 0)
        });
    }
}

#[test]
fn a_file_is_made_and_replaced() {
    let (server, work) = (writable(), Workdir::new());
    let (file, other) = (Serving::body(&work, &FILE), Serving::body(&work, &OTHER));
    let empty = Serving::body(&work, &Content::new(1, 0));
    for (body, flags, expected) in [
        (&file, &[][..], 201),
        (&other, &[], 204),
        (&empty, &[], 204),
        (&file, &["-H", "Transfer-Encoding: chunked"], 204),
        (&other, &["-H", "Expect: 100-continue"], 204),
        (&file, &["--http1.0"], 204),
        (&other, &["-H", "Expect:"], 204),
    ] {
        let (status, head) = server.upload("file", body, flags);
        assert_eq!(status, expected, "{flags:?} {head}");
        assert!(value(&head, "etag").starts_with('"'), "{head}");
        let stored = fs::read(server.path("file")).expect("it is there");
        assert!(stored == fs::read(body).expect("read"), "{flags:?}");
    }
    assert!(curl([&server.url("file")]).stdout == OTHER.all());
    server.assert_no_scratch();
    let mode = fs::metadata(server.path(".fairbat-upload")).expect("made");
    assert_eq!(mode.permissions().mode() & 0o777, 0o700);
    assert_eq!(server.status(&[&server.url(".fairbat-upload/")]), 404);
}

#[test]
fn the_tag_of_an_upload_is_the_one_that_is_served_later() {
    let (server, work) = (writable(), Workdir::new());
    let body = Serving::body(&work, &FILE);
    let (_, head) = server.upload("file", &body, &[]);
    let tag = value(&head, "etag").to_owned();
    wait_until("the file to settle", SOON, || {
        server.headers(&[&server.url("file")]).contains("\netag: ")
    });
    let head = server.headers(&[&server.url("file")]);
    assert_eq!(value(&head, "etag"), tag);
}

#[test]
fn only_the_version_that_is_expected_is_replaced() {
    let (server, work) = (writable(), Workdir::new());
    let (file, other) = (Serving::body(&work, &FILE), Serving::body(&work, &OTHER));
    let status = |body: &str, header: &str| server.upload("file", body, &["-H", header]).0;
    assert_eq!(status(&file, "If-Match: *"), 412);
    assert_eq!(status(&file, "If-Match: \"x\""), 412);
    let (created, head) = server.upload("file", &file, &["-H", "If-None-Match: *"]);
    assert_eq!(created, 201);
    // At once, though it is not served yet.
    let tag = value(&head, "etag").to_owned();
    assert_eq!(status(&other, "If-None-Match: *"), 412);
    assert_eq!(status(&other, &format!("If-None-Match: {tag}")), 412);
    assert_eq!(status(&other, "If-Match: \"x\""), 412);
    let old = "If-Unmodified-Since: Wed, 15 Nov 1995 04:58:08 GMT";
    assert_eq!(status(&other, old), 412);
    assert_content(&server.path("file"), &FILE);
    assert_eq!(status(&other, &format!("If-Match: {tag}")), 204);
    assert_content(&server.path("file"), &OTHER);
    assert_eq!(status(&file, &format!("If-Match: {tag}")), 412);
    assert_eq!(status(&file, "If-Match: *"), 204);
    server.assert_no_scratch();
}

#[test]
fn of_twenty_who_create_one_does() {
    let (server, work) = (writable(), Workdir::new());
    for round in 0..5 {
        let name = format!("file{round}");
        let contents: Vec<_> = (0..20).map(|n| Content::new(500 + n, 100_000)).collect();
        let bodies: Vec<_> = contents.iter().map(|c| Serving::body(&work, c)).collect();
        let statuses = server.upload_all(&name, &bodies, &["-H", "If-None-Match: *"]);
        let winners: Vec<_> = (0..20).filter(|&n| statuses[n] == 201).collect();
        let refused = statuses.iter().filter(|&&status| status == 412).count();
        assert!(winners.len() == 1 && refused == 19, "{statuses:?}");
        assert_content(&server.path(&name), &contents[winners[0]]);
    }
    server.assert_no_scratch();
}

#[test]
fn of_twenty_who_replace_the_same_version_one_does() {
    let (server, work) = (writable(), Workdir::new());
    let (_, head) = server.upload("file", &Serving::body(&work, &FILE), &[]);
    let mut tag = value(&head, "etag").to_owned();
    for round in 0..30 {
        let mut streams: Vec<_> = (0..20).map(|_| server.connect()).collect();
        for (n, stream) in streams.iter_mut().enumerate() {
            let head = format!(
                "PUT /file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nIf-Match: {tag}\r\n\
                 Connection: close\r\n\r\nbody {n:04}"
            );
            stream.write_all(head.as_bytes()).expect("sent");
        }
        let scratch = server.path(".fairbat-upload");
        wait_until("all of them to be taken", SOON, || {
            fs::read_dir(&scratch).is_ok_and(|names| names.count() == 20)
        });
        // All are as they should be so far; now the last byte.
        for stream in &mut streams {
            stream.write_all(b".").expect("sent");
        }
        let answers: Vec<_> = streams
            .iter_mut()
            .map(|stream| {
                let mut answer = String::new();
                stream.read_to_string(&mut answer).expect("an answer");
                answer
            })
            .collect();
        let is = |n: &usize, status: &str| answers[*n].starts_with(status);
        let winners: Vec<_> = (0..20).filter(|n| is(n, "HTTP/1.1 204 ")).collect();
        let refused = (0..20).filter(|n| is(n, "HTTP/1.1 412 ")).count();
        assert_eq!(
            (winners.len(), refused),
            (1, 19),
            "round {round}: {answers:?}"
        );
        let stored = fs::read_to_string(server.path("file")).expect("it is there");
        assert_eq!(stored, format!("body {:04}.", winners[0]));
        tag = value(&answers[winners[0]].to_lowercase(), "etag").to_owned();
    }
}

#[test]
fn of_twenty_who_replace_a_file_one_is_there_whole() {
    let (server, work) = (writable(), Workdir::new());
    let contents: Vec<_> = (0..20)
        .map(|n| Content::new(540 + n, 2_000_000 + n))
        .collect();
    let bodies: Vec<_> = contents.iter().map(|c| Serving::body(&work, c)).collect();
    let server = &server;
    let statuses = thread::scope(|scope| {
        let running = scope.spawn(|| server.upload_all("a/b/file", &bodies, &[]));
        // Who reads meanwhile sees nothing else either.
        while !running.is_finished() {
            let output = curl(["-f", &server.url("a/b/file")]);
            if output.status.success() {
                let is_whole = |content: &Content| output.stdout == content.all();
                assert!(contents.iter().any(is_whole));
            }
        }
        running.join().expect("statuses")
    });
    assert_eq!(
        statuses.iter().filter(|&&s| s == 201).count(),
        1,
        "{statuses:?}"
    );
    assert_eq!(
        statuses.iter().filter(|&&s| s == 204).count(),
        19,
        "{statuses:?}"
    );
    let stored = fs::read(server.path("a/b/file")).expect("it is there");
    assert!(contents.iter().any(|content| stored == content.all()));
    server.assert_no_scratch();
}

#[test]
fn a_body_is_what_its_digest_says() {
    let (server, work) = (writable(), Workdir::new());
    let body = Serving::body(&work, &FILE);
    let (right, wrong) = (repr_digest(&FILE.all()), repr_digest(&OTHER.all()));
    for field in ["Content-Digest", "Repr-Digest"] {
        let (status, head) = server.upload("file", &body, &["-H", &format!("{field}: {wrong}")]);
        assert_eq!(status, 400, "{head}");
        assert!(head.contains("sha-256"), "says what: {head}");
        let garbled = format!("{field}: sha-256=abc");
        assert_eq!(server.upload("file", &body, &["-H", &garbled]).0, 400);
        assert!(!server.path("file").exists());
    }
    for field in ["Content-Digest", "Repr-Digest"] {
        let (status, _) = server.upload(field, &body, &["-H", &format!("{field}: {right}")]);
        assert_eq!(status, 201);
        assert_content(&server.path(field), &FILE);
    }
    // What was computed need not be computed again.
    wait_until("the digest to be told", SOON, || {
        let output = curl(["-I", &server.url("Repr-Digest")]);
        String::from_utf8_lossy(&output.stdout).contains(&right)
    });
    server.assert_no_scratch();
}

#[test]
fn what_is_no_whole_file_for_a_name_is_refused() {
    let (server, work) = (writable(), Workdir::new());
    let body = Serving::body(&work, &FILE);
    fs::create_dir(server.path("directory")).expect("made");
    fs::write(server.path("plain"), "x").expect("written");
    let made = std::process::Command::new("mkfifo")
        .arg(server.path("fifo"))
        .status();
    assert!(made.expect("start mkfifo").success());
    for (name, flags, expected) in [
        ("directory", &[][..], 409),
        ("plain/file", &[], 409),
        ("fifo", &[], 409),
        ("file", &["-H", "Content-Range: bytes 0-299999/300000"], 400),
        ("file", &["-H", "Content-Encoding: gzip"], 415),
        ("a//file", &[], 400),
        (".fairbat-upload/file", &[], 400),
        ("directory/.FAIRBAT-upload", &[], 400),
        (&"x".repeat(300), &[], 400),
    ] {
        let (status, head) = server.upload(name, &body, flags);
        assert_eq!(status, expected, "{name} {head}");
    }
    let url = server.url("directory/");
    let args = ["-X", "PUT", "--data-binary", "x", &url];
    assert_eq!(server.status(&args), 409);
    assert_only(server.directory.path(), &["directory", "fifo", "plain"]);
    assert_eq!(fs::read(server.path("plain")).expect("as before"), b"x");
    let answer = curl(["-X", "PATCH", "-D", "-", &server.url("plain")]);
    let answer = String::from_utf8_lossy(&answer.stdout).to_lowercase();
    assert!(answer.starts_with("http/1.1 405"), "{answer}");
    assert_eq!(
        value(&answer, "allow"),
        "get, head, put, post, delete, move, mkcol"
    );
}

#[test]
fn nothing_is_written_outside_of_the_directory() {
    let (server, work) = (writable(), Workdir::new());
    let outside = Workdir::new();
    fs::write(outside.join("file"), "before").expect("written");
    fs::create_dir(server.path("inner")).expect("made");
    symlink(outside.path(), server.path("out")).expect("a link");
    symlink("inner", server.path("in")).expect("a link");
    symlink(outside.join("file"), server.path("file")).expect("a link");
    symlink("/proc/self/cwd", server.path("magic")).expect("a link");
    let body = Serving::body(&work, &FILE);
    assert_eq!(server.upload("out/file", &body, &[]).0, 403);
    assert_eq!(server.upload("out/new/file", &body, &[]).0, 403);
    assert_eq!(server.upload("magic/file", &body, &[]).0, 403);
    for path in [
        "/../escaped",
        "/inner/../../escaped",
        "/%2e%2e/escaped",
        "/..%2fescaped",
        "/inner/%2e%2e/%2e%2e/escaped",
        "//escaped",
        "/inner%2f..%2f..%2fescaped",
        "/a%00",
    ] {
        for (method, more) in [
            ("PUT", ""),
            ("DELETE", ""),
            ("MKCOL", ""),
            ("MOVE", "Destination: /x\r\n"),
        ] {
            let answer = server.raw(format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: 0\r\n\
                 Connection: close\r\n\r\n"
            ));
            assert!(
                answer.starts_with("HTTP/1.1 400"),
                "{method} {path}: {answer}"
            );
        }
    }
    assert_eq!(server.upload("in/file", &body, &[]).0, 201);
    assert_content(&server.path("inner/file"), &FILE);
    // The link is replaced, and not what it leads to.
    assert_eq!(server.upload("file", &body, &[]).0, 204);
    assert_content(&server.path("file"), &FILE);
    assert_eq!(
        fs::read(outside.join("file")).expect("as before"),
        b"before"
    );
    assert_only(outside.path(), &["file"]);
}

#[test]
fn fairbat_puts_what_fairbat_serves() {
    let server = writable();
    let work = Workdir::new();
    let large = Content::new(442, 20_000_000);
    large.write_to(&work.join("file")).expect("written");
    let (url, create) = (server.url("a/b/"), "--create-only");
    work.put().args([create, "file", &url]).run().expect_code(0);
    assert_content(&server.path("a/b/file"), &large);
    OTHER.write_to(&work.join("file")).expect("written");
    work.put().args([create, "file", &url]).run().expect_code(1);
    assert_content(&server.path("a/b/file"), &large);
    work.put().args(["file", &url]).run().expect_code(0);
    assert_content(&server.path("a/b/file"), &OTHER);
    let got = Workdir::new();
    got.get().arg(server.url("a/b/file")).run().expect_code(0);
    got.assert_holds(&[("file", &OTHER)]);
    server.assert_no_scratch();
}

#[test]
fn a_token_is_asked_for_before_anything_else() {
    let work = Workdir::new();
    let path = work.join("token");
    write_secret(&path, "s3cret");
    let server = Serving::run(|run| {
        run.env("FAIRBAT_TOKEN_FILE", &path)
            .env("FAIRBAT_WRITABLE", "1")
            .env("FAIRBAT_ALLOW_HOST", "nas.example.org,*.example.net")
            .args(["--listen", "0.0.0.0:0"])
    });
    let body = Serving::body(&work, &FILE);
    let url = format!("http://127.0.0.1:{}/file", server.address.port());
    let status = |flags: &[&str]| server.status(&[&["-T", &body, &url], flags].concat());
    assert_eq!(status(&[]), 401);
    assert_eq!(server.status(&["-X", "DELETE", &url]), 401);
    assert!(!server.path("file").exists());
    let shown = "Authorization: Bearer s3cret";
    assert_eq!(status(&["-H", shown]), 201);
    for (host, expected) in [
        ("nas.example.org", 204),
        ("a.example.net:80", 204),
        ("example.org", 421),
    ] {
        let host = format!("Host: {host}");
        assert_eq!(status(&["-H", shown, "-H", &host]), expected, "{host}");
    }
}

#[test]
fn nobody_else_is_let_in_without_a_token() {
    let work = Workdir::new();
    let serve = ["serve", "--writable", "--listen"];
    for address in ["0.0.0.0:0", "[::]:0"] {
        let outcome = Fairbat::new(work.path())
            .args(serve)
            .args([address, "."])
            .run();
        outcome.expect_code(1).expect_said(&["--token-file"]);
    }
    // A page of that name may be another's, with this machine's address.
    let server = writable();
    let body = Serving::body(&work, &FILE);
    for host in ["example.org", "localhost.example.org", "h.local"] {
        let host = format!("Host: {host}");
        let (status, head) = server.upload("file", &body, &["-H", &host]);
        assert_eq!(status, 421, "{head}");
    }
    assert!(!server.path("file").exists());
    assert_eq!(
        server.upload("file", &body, &["-H", "Host: localhost"]).0,
        201
    );
}

#[test]
fn without_writable_nothing_changes() {
    let (server, work) = (Serving::start(&[]), Workdir::new());
    server.put_fresh("file", &FILE);
    let body = Serving::body(&work, &OTHER);
    let (status, head) = server.upload("file", &body, &[]);
    assert_eq!((status, value(&head, "allow")), (405, "get, head"));
    for method in ["DELETE", "MOVE", "MKCOL"] {
        let destination = "Destination: /other";
        let args = ["-X", method, "-H", destination, &server.url("file")];
        assert_eq!(server.status(&args), 405, "{method}");
    }
    let json = ["-H", "Accept: application/json", &server.url("")];
    assert_eq!(server.status(&json), 404);
    assert_only(server.directory.path(), &["file"]);
    assert_content(&server.path("file"), &FILE);
}
