//! Digests: what the user or the server promises is checked before a file
//! takes its place.

use fairbat_tests::content::{Content, repr_digest, sha256_hex, sha512_hex};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(100, 300_000);
const OTHER: Content = Content::new(101, 300_000);

fn serve() -> FaultServer {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    server
}

#[test]
fn the_right_checksum_is_accepted() {
    let server = serve();
    let bytes = FILE.all();
    for checksum in [
        format!("sha-256={}", sha256_hex(&bytes)),
        format!("sha-256={}", sha256_hex(&bytes).to_uppercase()),
        format!("sha-512={}", sha512_hex(&bytes)),
    ] {
        for split in ["1", "3"] {
            let work = Workdir::new();
            let outcome = work
                .get()
                .args(["--chunk-size", "64K", "-s", split])
                .args(["--checksum", &checksum, &server.url("/file")])
                .run();
            outcome.expect_code(0);
            work.assert_holds(&[("file", &FILE)]);
            if checksum.starts_with("sha-256") {
                assert_eq!(
                    outcome.event("done")["sha256"],
                    sha256_hex(&bytes),
                    "{outcome}"
                );
            }
        }
    }
}

#[test]
fn the_checksum_of_an_empty_file_is_checked() {
    let server = FaultServer::start();
    let empty = Content::new(0, 0);
    server.serve("/file", Version::new(&empty));
    for (bytes, code) in [(&b""[..], 0), (b"x", 4)] {
        let work = Workdir::new();
        let checksum = format!("sha-256={}", sha256_hex(bytes));
        work.get()
            .args(["--checksum", &checksum, &server.url("/file")])
            .run()
            .expect_code(code);
        let files: &[(&str, &Content)] = if code == 0 { &[("file", &empty)] } else { &[] };
        if code == 0 {
            work.assert_holds(files);
        } else {
            assert!(!work.join("file").exists());
        }
    }
}

#[test]
fn a_wrong_checksum_puts_no_file_in_place() {
    let server = serve();
    let other = OTHER.all();
    for checksum in [
        format!("sha-256={}", sha256_hex(&other)),
        format!("sha-512={}", sha512_hex(&other)),
    ] {
        let work = Workdir::new();
        OTHER.write_to(&work.join("old")).expect("written");
        let get = |output: &str| {
            let outcome = work
                .get()
                .args(["--checksum", &checksum, "-o", output])
                .arg(server.url("/file"))
                .run();
            outcome
                .expect_code(4)
                .expect_said(&["checksum", "sha-256", "sha-512", "digest"]);
            assert_eq!(outcome.event("error")["kind"], "integrity", "{outcome}");
        };
        get("new");
        assert!(!work.join("new").exists());
        // A file that was there stays.
        get("old");
        assert_eq!(
            OTHER.first_difference(&work.join("old")).expect("read"),
            None
        );
    }
}

#[test]
fn after_a_wrong_checksum_the_right_one_still_gets_the_file() {
    let server = serve();
    let work = Workdir::new();
    let get = |bytes: &[u8]| {
        let checksum = format!("sha-256={}", sha256_hex(bytes));
        work.get()
            .args(["--checksum", &checksum, &server.url("/file")])
            .run()
    };
    get(&OTHER.all()).expect_code(4);
    get(&FILE.all()).expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn a_checksum_covers_the_bytes_of_earlier_runs() {
    let server = FaultServer::start();
    let content = Content::new(102, 2_000_000);
    let version = Version::new(&content);
    server.script("/file", move |request| {
        version.answer(request).rate(400_000)
    });
    let work = Workdir::new();
    let checksum = format!("sha-256={}", sha256_hex(&content.all()));
    let get = work
        .get()
        .args(["--file-allocation", "none", "-o", "file"])
        .args(["--checksum", &checksum, &server.url("/file")]);
    get.run_until_killed(&work.join("file"), 500_000);
    let outcome = get.run();
    outcome.expect_code(0);
    assert!(outcome.resumed_bytes() > 0, "{outcome}");
    work.assert_holds(&[("file", &content)]);
}

#[test]
fn a_malformed_checksum_is_a_usage_error() {
    let server = serve();
    let short = "sha-256=abcd".to_owned();
    let no_hex = format!("sha-256={}", "g".repeat(64));
    let unknown = format!("md5={}", "0".repeat(32));
    let wrong_length = format!("sha-512={}", "0".repeat(64));
    for checksum in [short, no_hex, unknown, wrong_length, "sha-256".into()] {
        let work = Workdir::new();
        work.get()
            .args(["--checksum", &checksum, &server.url("/file")])
            .run()
            .expect_code(2);
    }
    assert!(server.requests().is_empty());
}

/// Fetches `FILE` from a server that sends this Repr-Digest with everything.
fn fetch_with_digest(digest: &str) -> (Workdir, fairbat_tests::outcome::Outcome) {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    let digest = digest.to_owned();
    server.script("/file", move |request| {
        version.answer(request).header("Repr-Digest", &digest)
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--chunk-size", "64K", "-o", "file"])
        .arg(server.url("/file"))
        .run();
    (work, outcome)
}

#[test]
fn a_right_digest_from_the_server_is_accepted() {
    let bytes = FILE.all();
    let right = repr_digest(&bytes);
    for digest in [
        right.clone(),
        format!("md5=:AAAAAAAAAAAAAAAAAAAAAA==:, {right}"),
    ] {
        let (work, outcome) = fetch_with_digest(&digest);
        outcome.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        assert_eq!(
            outcome.event("done")["sha256"],
            sha256_hex(&bytes),
            "{outcome}"
        );
    }
}

#[test]
fn a_wrong_digest_from_the_server_puts_no_file_in_place() {
    let (work, outcome) = fetch_with_digest(&repr_digest(&OTHER.all()));
    outcome.expect_code(4).expect_said(&["digest"]);
    assert!(!work.join("file").exists());
}

#[test]
fn a_digest_that_cannot_be_used_is_ignored() {
    for digest in [
        "md5=:AAAAAAAAAAAAAAAAAAAAAA==:",
        "sha-256=abc",
        "sha-256=:not base64!:",
        "sha-256=:AAAA:",
        "",
        "garbage;;",
    ] {
        let (work, outcome) = fetch_with_digest(digest);
        assert_eq!(outcome.code, Some(0), "{digest:?}: {outcome}");
        work.assert_holds(&[("file", &FILE)]);
    }
}
