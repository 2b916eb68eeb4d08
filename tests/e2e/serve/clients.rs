//! Whole files and parts of them, to real clients.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;

use fairbat_tests::content::repr_digest;
use fairbat_tests::poll::wait_until;
use fairbat_tests::secret::write_secret;
use fairbat_tests::tls::Identity;
use fairbat_tests::workdir::Workdir;

use super::{Content, FILE, SOON, Serving, curl, own_address, value};

#[test]
fn curl_gets_files_and_ranges() {
    let server = Serving::start(&[]);
    server.put_fresh("file", &FILE);
    server.put_fresh("empty", &Content::new(1, 0));
    let url = server.url("file");
    assert!(curl([&url]).stdout == FILE.all());
    for (range, expected) in [
        ("0-0", 0..1),
        ("5-9", 5..10),
        ("299990-", 299_990..300_000),
        ("299990-900000", 299_990..300_000),
        ("-7", 299_993..300_000),
        ("65000-200000", 65_000..200_001),
    ] {
        let output = curl(["-D", "/dev/stderr", "-r", range, &url]);
        assert!(output.stdout == FILE.bytes(expected.clone()), "{range}");
        let headers = String::from_utf8_lossy(&output.stderr).to_lowercase();
        assert!(headers.starts_with("http/1.1 206"), "{headers}");
        let content_range = format!("bytes {}-{}/300000", expected.start, expected.end - 1);
        assert_eq!(value(&headers, "content-range"), content_range);
    }
    // Several at once: all of it.
    assert!(curl(["-r", "0-1,5-6", &url]).stdout == FILE.all());
    let beyond = curl(["-D", "-", "-r", "300000-", &url]);
    let headers = String::from_utf8_lossy(&beyond.stdout).to_lowercase();
    assert!(headers.starts_with("http/1.1 416"), "{headers}");
    assert_eq!(value(&headers, "content-range"), "bytes */300000");
    assert!(curl([&server.url("empty")]).stdout.is_empty());
    assert_eq!(server.status(&["-r", "0-0", &server.url("empty")]), 416);
}

#[test]
fn head_tells_what_get_would_and_other_methods_are_refused() {
    let server = Serving::start(&[]);
    server.put_fresh("file", &FILE);
    let url = server.url("file");
    let head = server.headers(&[&url]);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(value(&head, "content-length"), "300000");
    assert_eq!(value(&head, "accept-ranges"), "bytes");
    // A range means nothing to it.
    assert!(
        server
            .headers(&["-r", "0-5", &url])
            .starts_with("http/1.1 200")
    );
    for method in ["OPTIONS", "POST", "PUT", "DELETE", "PROPFIND"] {
        let output = curl(["-X", method, "-D", "-", "-d", "x", &url]);
        let answer = String::from_utf8_lossy(&output.stdout).to_lowercase();
        assert!(answer.starts_with("http/1.1 405"), "{method}: {answer}");
        assert_eq!(value(&answer, "allow"), "get, head");
    }
    assert!(fs::read(server.path("file")).expect("still there") == FILE.all());
}

#[test]
fn curl_resumes_what_was_broken_off() {
    let server = Serving::start(&[]);
    server.put_fresh("file", &FILE);
    let work = Workdir::new();
    let path = work.join("file");
    fs::write(&path, FILE.bytes(0..123_456)).expect("a part");
    let part = path.to_str().expect("UTF-8");
    let output = curl(["-C", "-", "-o", part, &server.url("file")]);
    assert!(output.status.success(), "{output:?}");
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn conditions_hold_for_the_very_version() {
    let server = Serving::start(&[]);
    server.put("file", &FILE);
    let url = server.url("file");
    let head = server.headers(&[&url]);
    let tag = value(&head, "etag").to_owned();
    let status = |header: &str| server.status(&["-H", header, &url]);
    assert_eq!(status(&format!("If-None-Match: {tag}")), 304);
    assert_eq!(status(&format!("If-None-Match: \"x\", W/{tag}")), 304);
    assert_eq!(status("If-None-Match: \"x\""), 200);
    assert_eq!(status(&format!("If-Match: {tag}")), 200);
    assert_eq!(status(&format!("If-Match: W/{tag}")), 412);
    assert_eq!(status("If-Match: \"x\""), 412);
    assert_eq!(
        status("If-Unmodified-Since: Wed, 15 Nov 1995 04:58:08 GMT"),
        412
    );
    assert_eq!(
        status("If-Modified-Since: Wed, 15 Nov 1995 04:58:08 GMT"),
        200
    );
    let part = |tag: &str| {
        let header = format!("If-Range: {tag}");
        curl(["-r", "5-9", "-H", &header, &url]).stdout
    };
    assert!(part(&tag) == FILE.bytes(5..10));
    assert!(part("\"x\"") == FILE.all());
    assert!(part(&format!("W/{tag}")) == FILE.all());

    // Same size and same modification time, but not the same file.
    let modified = fs::metadata(server.path("file")).and_then(|file| file.modified());
    let other = Content::new(401, FILE.len());
    other.write_to(&server.path("file")).expect("written");
    let file = fs::File::options().write(true).open(server.path("file"));
    file.and_then(|file| file.set_modified(modified.expect("a time")))
        .expect("set back");
    assert!(part(&tag) == other.all(), "an old version is not continued");
    assert_eq!(status(&format!("If-Match: {tag}")), 412);
    assert_eq!(status(&format!("If-None-Match: {tag}")), 200);
}

#[test]
fn fairbat_gets_what_fairbat_serves() {
    let server = Serving::start(&[]);
    let large = Content::new(402, 20_000_000);
    server.put("large", &large);
    let url = server.url("large");
    for flags in [
        &["--deadline", "60s", "--chunk-size", "1M"][..],
        &["--weight", "0.5", "-s", "3", "--chunk-size", "256K"],
        &["--weight", "1"],
    ] {
        let work = Workdir::new();
        work.get().args(flags).arg(&url).run().expect_code(0);
        work.assert_holds(&[("large", &large)]);
    }
}

#[test]
fn a_download_goes_on_when_the_server_comes_back() {
    let mut server = Serving::run(|run| run.args(["--listen", &own_address()]));
    let large = Content::new(404, 8_000_000);
    server.put("large", &large);
    let work = Workdir::new();
    let get = work
        .get()
        .args(["--limit-rate", "2M", "--chunk-size", "512K"]);
    let get = get.args(["--file-allocation", "none", "--retry-max-wait", "200ms"]);
    let get = get.args(["--retry", "1000"]);
    let mut get = get.arg(server.url("large")).spawn();
    get.wait_for_progress(&work.join("large"), 1_000_000);
    server.kill();
    get.wait_for_event("the download to notice", |event| event["event"] == "retry");
    let listen = server.address.to_string();
    let _again = Serving::of(server.directory.path(), |run| {
        run.args(["--listen", &listen])
    });
    let outcome = get.wait();
    outcome.expect_code(0);
    work.assert_holds(&[("large", &large)]);
    // Not from the beginning: it is the same version, whoever serves it.
    assert_eq!(outcome.events_named("file").len(), 1, "{outcome}");
}

#[test]
fn a_digest_is_told_once_it_is_known() {
    let server = Serving::start(&[]);
    server.put("file", &FILE);
    let url = server.url("file");
    assert!(
        !server.headers(&[&url]).contains("repr-digest"),
        "nobody asked"
    );
    wait_until("the digest to be known", SOON, || {
        server
            .headers(&["-H", "Want-Repr-Digest: sha-256=5", &url])
            .contains("repr-digest")
    });
    let output = curl(["-D", "-", "-o", "/dev/null", "-r", "0-0", &url]);
    let headers = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(value(&headers, "repr-digest"), repr_digest(&FILE.all()));
    let work = Workdir::new();
    let outcome = work.get().arg(&url).run();
    outcome.expect_code(0);
    assert!(outcome.event("done")["sha256"].is_string(), "{outcome}");
    // Not that of another version.
    server.put("file", &Content::new(403, FILE.len()));
    assert!(!server.headers(&[&url]).contains("repr-digest"));
}

#[test]
fn a_token_is_asked_for() {
    let keys = Workdir::new();
    let path = keys.join("token");
    write_secret(&path, "s3cret-Token=\n");
    let path = path.to_str().expect("UTF-8");
    let server = Serving::run(|run| run.arg("-vvv").env("FAIRBAT_TOKEN_FILE", path));
    server.put_fresh("file", &FILE);
    let url = server.url("file");
    let head = server.headers(&[&url]);
    assert!(head.starts_with("http/1.1 401"), "{head}");
    assert!(value(&head, "www-authenticate").starts_with("bearer"));
    // Nor is anything told of what there is.
    assert_eq!(server.status(&[&server.url("none")]), 401);
    let status = |header: &str| server.status(&["-H", header, &url]);
    assert_eq!(status("Authorization: Bearer s3cret-Token="), 200);
    assert_eq!(status("Authorization: Bearer s3cret-Token"), 401);
    assert_eq!(status("Authorization: Basic s3cret-Token="), 401);
    let work = Workdir::new();
    let get = work.get().arg(&url);
    get.run().expect_code(1);
    get.args(["-H", "Authorization: Bearer s3cret-Token="])
        .run()
        .expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert_eq!(server.status(&[&format!("{url}?key=s3cret")]), 401);
    let outcome = server.end();
    assert!(outcome.stderr.contains("GET /file 401"), "{outcome}");
    assert!(!outcome.stderr.contains("s3cret"), "{outcome}");
}

#[test]
fn https_is_served_by_a_certificate() {
    let keys = Workdir::new();
    let identity = Identity::issue(keys.path(), &["localhost", "127.0.0.1"], 2099);
    let text = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let (certificate, key) = (text(&identity.certificate), text(&identity.key));
    let server = Serving::start(&["--tls-cert", &certificate, "--tls-key", &key]);
    assert!(server.url.starts_with("https://"), "{}", server.url);
    server.put("file", &FILE);
    let (url, authority) = (server.url("file"), text(&identity.authority));
    let output = curl(["--cacert", &authority, "-r", "7-", &url]);
    assert!(output.stdout == FILE.bytes(7..FILE.len()));
    // Plain HTTP is not answered, and does no harm.
    assert!(
        !server
            .raw("GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .contains("HTTP/1.1 200")
    );
    // Nor is it lost that it was not understood.
    let mut stream = server.connect();
    stream
        .write_all(&b"GET /file HTTP/1.1\r\nHost: localhost\r\n".repeat(100_000))
        .expect("taken");
    stream.shutdown(Shutdown::Write).expect("open");
    let mut alert = Vec::new();
    stream.read_to_end(&mut alert).expect("not reset");
    assert_eq!(alert.first(), Some(&21), "no alert of TLS");
    let work = Workdir::new();
    let get = work
        .get()
        .args(["--deadline", "60s", "--chunk-size", "64K"]);
    get.args(["--cacert", &authority, &url])
        .run()
        .expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}
