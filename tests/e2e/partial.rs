//! Answers to range requests that are not what was asked for, and validators
//! of every kind: never a wrong file.

use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{Reply, Request};
use fairbat_tests::version::{LAST_MODIFIED, Version};
use fairbat_tests::workdir::Workdir;

const SIZE: u64 = 500_000;
const FILE: Content = Content::new(50, SIZE);
const ARGS: [&str; 4] = ["--chunk-size", "64K", "--retry", "3"];

/// Spoils the honest 206 to a request for `first..=last`.
type Spoil = fn(Reply, u64, u64) -> Reply;

fn content_range(reply: Reply, value: &str) -> Reply {
    reply.header("Content-Range", value)
}

const WRONG: [(&str, Spoil); 9] = [
    ("start too late", |reply, first, last| {
        content_range(reply, &format!("bytes {}-{}/{SIZE}", first + 1, last + 1))
    }),
    ("start of the file", |reply, first, last| {
        content_range(reply, &format!("bytes 0-{}/{SIZE}", last - first))
    }),
    ("end too large", |reply, first, last| {
        content_range(reply, &format!("bytes {first}-{}/{SIZE}", last + 100))
    }),
    ("end before the start", |reply, first, last| {
        content_range(reply, &format!("bytes {last}-{first}/{SIZE}"))
    }),
    ("another total", |reply, first, last| {
        content_range(reply, &format!("bytes {first}-{last}/{}", SIZE + 1))
    }),
    ("no Content-Range", |reply, _, _| {
        reply.without("Content-Range")
    }),
    ("another unit", |reply, first, last| {
        content_range(reply, &format!("pages {first}-{last}/{SIZE}"))
    }),
    ("numbers too large", |reply, _, _| {
        content_range(reply, "bytes 99999999999999999999-99999999999999999999/1")
    }),
    ("several parts", |reply, first, last| {
        let part = format!("--X\r\nContent-Range: bytes {first}-{last}/{SIZE}\r\n\r\n");
        let body = [part.as_bytes(), reply.body_bytes(), b"\r\n--X--\r\n"].concat();
        reply
            .without("Content-Range")
            .header("Content-Type", "multipart/byteranges; boundary=X")
            .body(body)
    }),
];

fn spoiled(version: &Version, request: &Request, spoil: Spoil) -> Reply {
    let reply = version.answer(request);
    match request.range() {
        Some((first, last)) if !request.is_probe() => {
            spoil(reply, first, last.unwrap_or(SIZE - 1).min(SIZE - 1))
        }
        _ => reply,
    }
}

#[test]
fn a_single_wrong_206_is_not_used_and_the_file_is_exact() {
    for (what, spoil) in WRONG {
        let server = FaultServer::start();
        let version = Version::new(&FILE);
        server.script("/file", move |request| match request.nth_data {
            2 => spoiled(&version, request, spoil),
            _ => version.answer(request),
        });
        let work = Workdir::new();
        let outcome = work.get().args(ARGS).arg(server.url("/file")).run();
        assert_eq!(outcome.code, Some(0), "{what}: {outcome}");
        work.assert_holds(&[("file", &FILE)]);
    }
}

#[test]
fn wrong_206s_without_end_never_give_a_wrong_file() {
    for (what, spoil) in WRONG {
        let server = FaultServer::start();
        let version = Version::new(&FILE);
        server.script("/file", move |request| spoiled(&version, request, spoil));
        let work = Workdir::new();
        let outcome = work.get().args(ARGS).arg(server.url("/file")).run();
        eprintln!("{what}: {:?}", outcome.code);
        work.assert_exact_or_refused(&outcome, "file", &FILE);
    }
}

#[test]
fn bytes_of_another_place_under_the_right_content_range_need_a_checksum() {
    // Nothing in HTTP gives this server away; only the digest does.
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| match request.nth_data {
        3 => {
            let reply = version.answer(request);
            let length = reply.body_bytes().len() as u64;
            reply.body(FILE.bytes(0..length))
        }
        _ => version.answer(request),
    });
    let work = Workdir::new();
    let digest = fairbat_tests::content::sha256_hex(&FILE.all());
    let outcome = work
        .get()
        .args(ARGS)
        .args(["--checksum", &format!("sha-256={digest}")])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(4);
    assert!(!work.join("file").exists());
}

#[test]
fn a_200_in_place_of_every_206_gives_the_exact_file() {
    for split in ["1", "3"] {
        let server = FaultServer::start();
        let version = Version::new(&FILE);
        // Ranges for the probe only.
        server.script("/file", move |request| {
            if request.is_probe() {
                version.answer(request)
            } else {
                version.whole()
            }
        });
        let work = Workdir::new();
        work.get()
            .args(ARGS)
            .args(["-s", split])
            .arg(server.url("/file"))
            .run()
            .expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
    }
}

#[test]
fn a_single_200_in_place_of_a_206_gives_the_exact_file() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| match request.nth_data {
        2 => version.whole(),
        _ => version.answer(request),
    });
    let work = Workdir::new();
    work.get()
        .args(ARGS)
        .arg(server.url("/file"))
        .run()
        .expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn a_cdn_that_answers_200_to_if_range_gives_the_exact_file() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| match request.header("if-range") {
        Some(_) => version.whole(),
        None => version.answer(request),
    });
    let work = Workdir::new();
    work.get()
        .args(ARGS)
        .arg(server.url("/file"))
        .run()
        .expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

/// Whether an If-Range value is one that RFC 9110 section 13.1.5 allows: a
/// strong quoted ETag or a date.
fn is_proper(if_range: &str) -> bool {
    let quoted = if_range.len() >= 2 && if_range.starts_with('"') && if_range.ends_with('"');
    quoted || if_range.ends_with(" GMT")
}

#[test]
fn validators_of_every_kind_give_the_exact_file() {
    let etags = [
        None,
        Some("\"strong\""),
        Some("W/\"weak\""),
        Some("unquoted"),
        Some("\"half"),
        Some("\"\""),
        Some("\"with \\\"quotes\\\"\""),
        Some(""),
    ];
    let dates = [
        None,
        Some(LAST_MODIFIED),
        Some("yesterday"),
        Some("Fri, 31 Dec 2099 23:59:59 GMT"),
    ];
    for etag in etags {
        for date in dates {
            let server = FaultServer::start();
            let version = Version::new(&FILE).etag(etag).last_modified(date);
            server.serve("/file", version);
            let work = Workdir::new();
            let outcome = work.get().args(ARGS).arg(server.url("/file")).run();
            assert_eq!(outcome.code, Some(0), "{etag:?} {date:?}: {outcome}");
            work.assert_holds(&[("file", &FILE)]);
            for request in server.requests() {
                let sent = request.header("if-range");
                assert!(sent.is_none_or(is_proper), "{etag:?} {date:?}: {sent:?}");
            }
        }
    }
}

#[test]
fn a_strong_etag_guards_every_range_after_the_probe() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE).etag(Some("\"v1\"")));
    let work = Workdir::new();
    work.get()
        .args(ARGS)
        .arg(server.url("/file"))
        .run()
        .expect_code(0);
    for request in server.requests() {
        if request.range().is_some() && !request.is_probe() {
            assert_eq!(request.header("if-range"), Some("\"v1\""));
        }
    }
}
