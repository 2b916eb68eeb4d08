//! Several servers with the same file at once: what they send is joined under a hash, and a server
//! that sends something else is found and left.

use std::fmt::Write as _;

use fairbat_tests::content::{Content, base64, repr_digest, sha256_hex};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{End, Reply, Request};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const SIZE: u64 = 6_000_000;
const FILE: Content = Content::new(320, SIZE);
/// Another version, with the same length.
const STALE: Content = Content::new(321, SIZE);

/// The rate of each server, byte/s.
const RATE: u64 = 3_000_000;

const PIECE: u64 = 256 * 1024;

/// A server with this file, at a limited rate for each request.
fn serve(content: &Content) -> FaultServer {
    serve_bytes(content.all())
}

fn serve_bytes(bytes: Vec<u8>) -> FaultServer {
    let server = FaultServer::start();
    let version = Version::of(bytes).etag(Some("\"same\""));
    server.script("/file", move |request| version.answer(request).rate(RATE));
    server
}

/// The bytes that a server was asked for, probes left out.
fn asked(server: &FaultServer) -> u64 {
    let requests = server.requests_for("/file");
    let ranges = requests.iter().filter_map(Request::range);
    let lengths = ranges.filter_map(|(first, last)| Some(last? + 1 - first));
    lengths.filter(|length| *length > 1).sum()
}

fn checksum() -> String {
    format!("sha-256={}", sha256_hex(&FILE.all()))
}

fn get(work: &Workdir, servers: &[&FaultServer]) -> Outcome {
    get_with(work, servers, &[])
}

fn get_with(work: &Workdir, servers: &[&FaultServer], more: &[&str]) -> Outcome {
    let mirrors = servers[1..].iter();
    let mirrors = mirrors.flat_map(|it| ["--mirror".to_owned(), it.url("/file")]);
    work.get()
        .args(["--checksum", &checksum(), &servers[0].url("/file")])
        .args(mirrors)
        .args(more)
        .run()
}

/// A Metalink of one file with hashes of its pieces.
fn metalink(name: &str, servers: &[&FaultServer]) -> String {
    let bytes = FILE.all();
    let mut text = format!(
        "<?xml version=\"1.0\"?>\n<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\n\
         <file name=\"{name}\"><size>{SIZE}</size>\n<hash type=\"sha-256\">{}</hash>\n\
         <pieces length=\"{PIECE}\" type=\"sha-256\">\n",
        sha256_hex(&bytes)
    );
    for piece in bytes.chunks(PIECE as usize) {
        let _ = writeln!(text, "<hash>{}</hash>", sha256_hex(piece));
    }
    text += "</pieces>\n";
    for server in servers {
        let _ = writeln!(text, "<url>{}</url>", server.url("/file"));
    }
    text + "</file></metalink>\n"
}

/// Downloads by a Metalink, with these arguments besides.
fn get_metalink(work: &Workdir, text: &str, more: &[&str]) -> Outcome {
    std::fs::write(work.join("it.meta4"), text).expect("a Metalink");
    work.get()
        .args(["-M", "it.meta4", "-d", "out"])
        .args(more)
        .run()
}

fn assert_saved(work: &Workdir, name: &str) {
    let saved = work.join("out").join(name);
    assert_eq!(FILE.first_difference(&saved).expect("a file"), None);
}

/// Why servers were left.
fn reasons(outcome: &Outcome) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let events = outcome.events_named("source");
    let reasons = events.iter();
    reasons
        .map(|event| (text(&event["source"]), text(&event["reason"])))
        .collect()
}

#[test]
fn two_servers_share_a_file_under_its_digest() {
    let (first, second) = (serve(&FILE), serve(&FILE));
    let work = Workdir::new();
    let outcome = get(&work, &[&first, &second]);
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    let (first, second) = (asked(&first), asked(&second));
    assert!(first > SIZE / 5 && second > SIZE / 5, "{first} {second}");
    assert_eq!(reasons(&outcome), []);
}

#[test]
fn a_server_with_another_version_is_not_used() {
    let (good, stale) = (serve(&FILE), serve(&STALE));
    let work = Workdir::new();
    let outcome = get(&work, &[&good, &stale]);
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    let [(source, reason)] = &reasons(&outcome)[..] else {
        panic!("{outcome}");
    };
    assert_eq!(*source, stale.url("/file"), "{outcome}");
    assert!(reason.contains("another version"), "{outcome}");
}

#[test]
fn two_servers_outvote_the_first() {
    let (stale, good, other) = (serve(&STALE), serve(&FILE), serve(&FILE));
    let short = serve_bytes(FILE.bytes(0..SIZE - 1000));
    for first in [&stale, &short] {
        let work = Workdir::new();
        let outcome = get(&work, &[first, &good, &other]);
        outcome.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        let left: Vec<String> = reasons(&outcome).into_iter().map(|(it, _)| it).collect();
        assert!(left.contains(&first.url("/file")), "{outcome}");
    }
}

#[test]
fn a_server_that_is_wrong_in_few_bytes_is_named_in_the_end() {
    let mut wrong = FILE.all();
    // So that whatever it sends of the second half is wrong somewhere.
    for byte in wrong.iter_mut().skip(SIZE as usize / 2).step_by(50_000) {
        *byte ^= 1;
    }
    // The bytes to compare are mostly from elsewhere: not all runs come here.
    let mut named = 0;
    for _ in 0..3 {
        let (good, bad) = (serve(&FILE), serve_bytes(wrong.clone()));
        let work = Workdir::new();
        let outcome = get(&work, &[&good, &bad]);
        outcome.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        let reasons = reasons(&outcome);
        named += usize::from(
            reasons
                .iter()
                .any(|(source, _)| *source == bad.url("/file")),
        );
    }
    assert!(named > 0);
}

#[test]
fn of_a_server_that_is_wrong_in_a_stretch_nobody_else_is_blamed() {
    let mut wrong = FILE.all();
    let stretch = SIZE as usize / 2..SIZE as usize * 6 / 10;
    for byte in &mut wrong[stretch] {
        *byte ^= 1;
    }
    for bad_at in 0..3 {
        let servers = [0, 1, 2].map(|index| match index == bad_at {
            true => serve_bytes(wrong.clone()),
            false => serve(&FILE),
        });
        let work = Workdir::new();
        // So the bytes that all are asked for first are none of those.
        let outcome = get_with(&work, &servers.each_ref(), &["--seed", "1"]);
        outcome.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        // Nobody else is blamed.
        let blamed = reasons(&outcome).into_iter().map(|(source, _)| source);
        for source in blamed {
            assert_eq!(source, servers[bad_at].url("/file"), "{outcome}");
        }
    }
}

#[test]
fn hashes_of_pieces_find_a_wrong_server_at_once() {
    let (good, bad, other) = (serve(&FILE), serve(&STALE), serve(&FILE));
    let work = Workdir::new();
    let text = metalink("dir/name.bin", &[&bad, &good, &other]);
    let outcome = get_metalink(&work, &text, &[]);
    outcome.expect_code(0);
    assert_saved(&work, "dir/name.bin");
    let [(source, reason)] = &reasons(&outcome)[..] else {
        panic!("{outcome}");
    };
    assert_eq!(*source, bad.url("/file"), "{outcome}");
    assert!(reason.contains("piece"), "{outcome}");
    let fetched = asked(&bad);
    assert!(fetched <= 3 * PIECE, "{fetched} {outcome}");
}

#[test]
fn a_silent_server_is_not_waited_for() {
    let good = serve(&FILE);
    let silent = FaultServer::start();
    let version = Version::new(&FILE);
    silent.script("/file", move |request| match request.is_probe() {
        true => version.answer(request),
        false => version.answer(request).end(End::Stall(5000)),
    });
    let work = Workdir::new();
    let text = metalink("file", &[&silent, &good]);
    let outcome = get_metalink(&work, &text, &["--max-time", "25s"]);
    outcome.expect_code(0);
    assert_saved(&work, "file");
}

#[test]
fn a_server_that_breaks_off_holds_nobody_up() {
    // It answers, and sends nothing: others begin at once.
    let (good, other) = (serve(&FILE), serve(&FILE));
    let broken = FaultServer::start();
    let version = Version::new(&FILE);
    broken.script("/file", move |request| match request.is_probe() {
        true => version.answer(request),
        false => version.answer(request).end(End::Close(0)),
    });
    let work = Workdir::new();
    let limits = ["--retry-wait", "60s", "--max-time", "25s"];
    let outcome = get_with(&work, &[&broken, &good, &other], &limits);
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert_eq!(reasons(&outcome)[0].0, broken.url("/file"), "{outcome}");
}

#[test]
fn a_file_that_is_wrong_does_not_wait_for_a_server_that_breaks_off() {
    let mut wrong = FILE.all();
    for byte in wrong.iter_mut().step_by(50_000) {
        *byte ^= 1;
    }
    // The first one has half of the file. So it cannot send alone what others have sent wrong.
    let half = FaultServer::start();
    let version = Version::new(&FILE);
    half.script("/file", move |request| {
        let begin = request.range().map_or(0, |(first, _)| first);
        let left = (SIZE / 2).saturating_sub(begin);
        let reply = version.answer(request).rate(RATE);
        match reply.body_bytes().len() as u64 > left {
            true => reply.end(End::Close(left)),
            false => reply,
        }
    });
    for _ in 0..3 {
        let (good, bad) = (serve(&FILE), serve_bytes(wrong.clone()));
        let work = Workdir::new();
        let limits = ["--retry-wait", "1s", "--max-time", "25s"];
        let outcome = get_with(&work, &[&half, &bad, &good], &limits);
        outcome.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
    }
}

#[test]
fn what_was_joined_is_continued_from_any_of_the_servers() {
    let (first, second) = (serve(&FILE), serve(&FILE));
    let work = Workdir::new();
    let text = metalink("file", &[&first, &second]);
    let outcome = get_metalink(&work, &text, &["--max-time", "4s", "--limit-rate", "500K"]);
    outcome.expect_code(10);
    // Now the first one is gone.
    drop(first);
    let outcome = get_metalink(&work, &text, &["--retry", "0"]);
    outcome.expect_code(0);
    assert_saved(&work, "file");
    assert!(outcome.resumed_bytes() > 0, "{outcome}");
}

#[test]
fn a_first_server_that_has_lost_the_end_throws_nothing_away() {
    let (first, second) = (serve(&FILE), serve(&FILE));
    let work = Workdir::new();
    let slowly = ["--max-time", "4s", "--limit-rate", "500K"];
    get_with(&work, &[&first, &second], &slowly).expect_code(10);
    let version = Version::of(FILE.all()[..SIZE as usize / 2].to_vec()).etag(Some("\"short\""));
    first.script("/file", move |request| version.answer(request).rate(RATE));
    let outcome = get(&work, &[&first, &second]);
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert!(outcome.resumed_bytes() > 0, "{outcome}");
}

#[test]
fn names_of_a_metalink_replace_nothing() {
    let server = serve(&FILE);
    let work = Workdir::new();
    std::fs::create_dir(work.join("out")).expect("a directory");
    std::fs::write(work.join("out/file"), "mine").expect("a file");
    let outcome = get_metalink(&work, &metalink("file", &[&server]), &[]);
    outcome.expect_code(0);
    assert_saved(&work, "file.1");
    assert_eq!(
        std::fs::read(work.join("out/file")).expect("a file"),
        b"mine"
    );
    // A name that the user gives counts for more.
    let outcome = get_metalink(&work, &metalink("file", &[&server]), &["-o", "mine"]);
    outcome.expect_code(0);
    assert_saved(&work, "mine");
}

#[test]
fn a_broken_metalink_is_a_clear_error() {
    let work = Workdir::new();
    for (text, said) in [
        ("hello", "XML"),
        ("<html></html>", "no Metalink"),
        (
            "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">",
            "middle",
        ),
    ] {
        let outcome = get_metalink(&work, text, &[]);
        outcome.expect_code(2);
        outcome.expect_said(&["it.meta4", said]);
    }
    let outcome = work.get().args(["-M", "absent.meta4"]).run();
    outcome.expect_code(2);
    outcome.expect_said(&["absent.meta4"]);
}

#[test]
fn a_server_may_name_its_mirrors_and_they_see_no_password() {
    let second = serve(&FILE);
    let first = FaultServer::start();
    let version = Version::new(&FILE);
    let link = format!("<{}>; rel=duplicate; pri=1", second.url("/file"));
    let digest = repr_digest(&FILE.all());
    first.script("/file", move |request| {
        let reply = version.answer(request).rate(RATE);
        reply.header("Link", &link).header("Repr-Digest", &digest)
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args([
            "-u",
            "me:secret",
            "-H",
            "X-Mine: 1",
            &first.url_by_name("/file"),
        ])
        .run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert!(asked(&second) > SIZE / 5, "{outcome}");
    for request in second.requests() {
        assert_eq!(request.header("authorization"), None);
        assert_eq!(request.header("x-mine"), None);
    }
    assert!(
        first
            .requests()
            .iter()
            .all(|it| it.header("x-mine").is_some())
    );
}

#[test]
fn a_metalink_that_describes_a_file_is_used() {
    let second = serve(&FILE);
    let first = FaultServer::start();
    let version = Version::new(&FILE);
    first.script("/file", move |request| {
        let reply = version.answer(request).rate(RATE);
        let link = "</file.meta4>; rel=describedby; type=\"application/metalink4+xml\"";
        reply.header("Link", link)
    });
    let text = metalink("file", &[&first, &second]);
    first.script("/file.meta4", move |_| {
        Reply::new(200, text.clone().into_bytes())
    });
    let work = Workdir::new();
    let outcome = work.get().arg(first.url("/file")).run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert!(asked(&second) > SIZE / 5, "{outcome}");
}

#[test]
fn a_redirect_may_name_mirrors() {
    let (first, second) = (serve(&FILE), serve(&FILE));
    let chooser = FaultServer::start();
    let digest = base64(&hex_bytes(&sha256_hex(&FILE.all())));
    let digest = format!("SHA-256={digest}");
    let (to, other) = (first.url("/file"), second.url("/file"));
    chooser.script("/pub/file", move |_| {
        let reply = Reply::redirect(302, &to);
        let reply = reply.header("Link", &format!("<{other}>; rel=duplicate; pri=1; geo=de"));
        reply.header("Digest", &digest)
    });
    let work = Workdir::new();
    let outcome = work.get().arg(chooser.url("/pub/file")).run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert!(asked(&second) > SIZE / 5, "{outcome}");
}

fn hex_bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    digits.map(byte).collect()
}

#[test]
fn servers_of_a_metalink_see_no_password() {
    let server = serve(&FILE);
    let work = Workdir::new();
    let text = metalink("file", &[&server]);
    let outcome = get_metalink(&work, &text, &["-u", "me:secret", "-H", "X-Mine: 1"]);
    outcome.expect_code(0);
    for request in server.requests() {
        assert_eq!(request.header("authorization"), None);
        assert_eq!(request.header("x-mine"), None);
    }
}

#[test]
fn a_server_that_is_right_is_believed_in_the_end() {
    // Two with an old version against the one whose file has the digest.
    let (good, old, older) = (serve(&FILE), serve(&STALE), serve(&STALE));
    let work = Workdir::new();
    let outcome = get(&work, &[&good, &old, &older]);
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn the_digest_of_the_first_server_holds_for_those_that_it_names() {
    let (stale, other) = (serve(&STALE), serve(&STALE));
    let first = FaultServer::start();
    let version = Version::new(&FILE);
    let link = format!(
        "<{}>; rel=duplicate, <{}>; rel=duplicate",
        stale.url("/file"),
        other.url("/file")
    );
    let digest = repr_digest(&FILE.all());
    first.script("/file", move |request| {
        let reply = version.answer(request).rate(RATE);
        reply.header("Link", &link).header("Repr-Digest", &digest)
    });
    let work = Workdir::new();
    let outcome = work.get().arg(first.url("/file")).run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn what_was_joined_is_not_continued_without_its_hash() {
    let (first, second) = (serve(&FILE), serve(&FILE));
    let work = Workdir::new();
    let url = first.url("/file");
    let mirror = second.url("/file");
    let outcome = work
        .get()
        .args([
            "--checksum",
            &checksum(),
            "--max-time",
            "1s",
            "--limit-rate",
            "2M",
        ])
        .args([url.as_str(), "--mirror", &mirror])
        .run();
    outcome.expect_code(10);
    let outcome = work.get().arg(url).run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert_eq!(outcome.resumed_bytes(), 0, "{outcome}");
}
