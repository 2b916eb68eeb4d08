//! The harness itself, seen by a client that is not ours: curl.

use std::process::{Command, Output};

use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{End, Framing, Reply};
use fairbat_tests::netns::{Link, SERVER};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::peers::{self, Peer};
use fairbat_tests::proxy::ForwardProxy;
use fairbat_tests::tls::Identity;
use fairbat_tests::tmpfs::TmpFs;
use fairbat_tests::version::Version;

const FILE: Content = Content::new(1, 300_000);

/// curl's exit codes (`man curl`).
const PARTIAL: Option<i32> = Some(18);
const TIMED_OUT: Option<i32> = Some(28);
const RECEIVE_FAILED: Option<i32> = Some(56);
const UNTRUSTED: Option<i32> = Some(60);

fn curl(args: &[&str]) -> Output {
    Command::new("curl")
        .args(["-sS", "--max-time", "20"])
        .args(args)
        .env_remove("http_proxy")
        .env_remove("https_proxy")
        .output()
        .expect("start curl: is the package `curl` installed?")
}

fn header_block(args: &[&str]) -> String {
    let output = curl(&[&["-D", "-", "-o", "/dev/null"], args].concat());
    String::from_utf8_lossy(&output.stdout).to_lowercase()
}

#[test]
fn nginx_serves_files_ranges_and_a_log() {
    let nginx = Nginx::start(&Config::default());
    nginx.put("file", &FILE);
    assert!(curl(&[&nginx.url("file")]).stdout == FILE.all());
    let part = curl(&["-r", "5-9", "-H", "If-Range: \"x\"", &nginx.url("file")]);
    assert!(part.stdout == FILE.all(), "a wrong If-Range gives it all");
    let part = curl(&["-r", "5-9", &nginx.url("file")]);
    assert!(part.stdout == FILE.bytes(5..10));

    let accesses = nginx.settled_accesses();
    let seen: Vec<_> = accesses
        .iter()
        .map(|a| {
            (
                a.status,
                a.body_bytes,
                a.range.as_str(),
                a.if_range.as_str(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (200, 300_000, "-", "-"),
            (200, 300_000, "bytes=5-9", "\"x\""),
            (206, 5, "bytes=5-9", "-"),
        ]
    );
    assert_eq!(accesses[0].path, "/file");
    assert_eq!(nginx.sent_bytes(), 600_005);
}

#[test]
fn nginx_options_do_what_they_say() {
    let start = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        let nginx = Nginx::start(&config);
        nginx.put("file", &FILE);
        nginx
    };
    let nginx = start(|_| ());
    let headers = header_block(&[&nginx.url("file")]);
    assert!(headers.contains("etag: ") && headers.contains("content-length: 300000"));
    assert!(headers.contains("last-modified: wed, 01 jan 2020 00:00:00 gmt"));

    let nginx = start(|config| config.etag = false);
    let headers = header_block(&[&nginx.url("file")]);
    assert!(!headers.contains("etag") && headers.contains("last-modified"));

    let nginx = start(|config| {
        config.etag = false;
        config.last_modified = false;
    });
    let headers = header_block(&[&nginx.url("file")]);
    assert!(!headers.contains("etag") && !headers.contains("last-modified"));
    assert!(headers.contains("accept-ranges: bytes"));

    let nginx = start(|config| config.ranges = false);
    let headers = header_block(&["-r", "0-0", &nginx.url("file")]);
    assert!(headers.starts_with("http/1.1 200"));

    let nginx = start(|config| config.chunked = true);
    let headers = header_block(&["-r", "0-0", &nginx.url("file")]);
    assert!(headers.starts_with("http/1.1 200") && headers.contains("chunked"));
    assert!(!headers.contains("content-length"));
    assert!(curl(&[&nginx.url("file")]).stdout == FILE.all());

    let nginx = start(|config| config.gzip = true);
    let headers = header_block(&["-H", "Accept-Encoding: gzip", &nginx.url("file")]);
    assert!(headers.contains("content-encoding: gzip"));
    assert!(curl(&["--compressed", &nginx.url("file")]).stdout == FILE.all());

    let nginx = start(|config| config.limit_rate = Some(200_000));
    let begin = std::time::Instant::now();
    assert!(curl(&[&nginx.url("file")]).stdout == FILE.all());
    assert!(begin.elapsed().as_millis() > 700, "{:?}", begin.elapsed());
}

#[test]
fn certificates_are_good_for_those_who_trust_them() {
    let dir = tempfile::tempdir().expect("a temp dir");
    let identity = Identity::issue(dir.path(), &["localhost", "127.0.0.1"], 2099);
    let authority = identity.authority.to_str().expect("UTF-8").to_owned();
    let nginx = Nginx::start(&Config {
        tls: Some(identity),
        ..Config::default()
    });
    nginx.put("file", &FILE);
    for url in [nginx.url("file"), nginx.url_by_name("file")] {
        let output = curl(&["--cacert", &authority, &url]);
        assert!(output.stdout == FILE.all(), "{output:?}");
        assert_eq!(curl(&[&url]).status.code(), UNTRUSTED);
    }
}

#[test]
fn the_fault_server_answers_honestly_unless_told_otherwise() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE).etag(Some("\"v1\"")));
    let url = server.url("/file");
    assert!(curl(&[&url, &url]).stdout == [FILE.all(), FILE.all()].concat());
    assert!(curl(&["-r", "9-", &url]).stdout == FILE.bytes(9..300_000));
    let good = curl(&["-r", "9-19", "-H", "If-Range: \"v1\"", &url]);
    assert!(good.stdout == FILE.bytes(9..20));
    assert!(header_block(&["-r", "300000-", &url]).starts_with("http/1.1 416"));
    assert!(header_block(&[&server.url("/other")]).starts_with("http/1.1 404"));
    assert!(header_block(&["-I", &url]).contains("content-length: 300000"));

    let requests = server.requests_for("/file");
    assert_eq!(requests.len(), 6);
    assert_eq!(requests[0].connection, requests[1].connection, "kept alive");
    assert_eq!(requests[3].header("IF-RANGE"), Some("\"v1\""));
    assert_eq!(
        (requests[3].nth, requests[3].range()),
        (3, Some((9, Some(19))))
    );
    assert!(requests[2].at <= requests[3].at);
}

#[test]
fn the_fault_server_ends_bodies_as_told() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    for (path, framing, end, code) in [
        ("/fin", Framing::Length, End::Close(1000), PARTIAL),
        ("/rst", Framing::Length, End::Reset(1000), RECEIVE_FAILED),
        ("/chunked-fin", Framing::Chunked, End::Close(1000), PARTIAL),
        ("/chunked", Framing::Chunked, End::KeepAlive, Some(0)),
        ("/until-close", Framing::UntilClose, End::KeepAlive, Some(0)),
        (
            "/until-rst",
            Framing::UntilClose,
            End::Reset(1000),
            RECEIVE_FAILED,
        ),
        (
            "/longer",
            Framing::ClaimedLength(300_001),
            End::Close(u64::MAX),
            PARTIAL,
        ),
        ("/stall", Framing::Length, End::Stall(1000), TIMED_OUT),
    ] {
        let version = version.clone();
        server.script(path, move |_| version.whole().framing(framing).end(end));
        let most = if code == TIMED_OUT { "5" } else { "20" };
        let output = curl(&["--max-time", most, &server.url(path)]);
        assert_eq!(output.status.code(), code, "{path}: {output:?}");
        let expected = if code == Some(0) || path == "/longer" {
            300_000
        } else {
            1000
        };
        assert_eq!(output.stdout.len(), expected, "{path}");
        assert!(output.stdout == FILE.bytes(0..expected as u64), "{path}");
    }
}

#[test]
fn the_fault_server_counts_and_slows_down() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| match request.active {
        1 => version.answer(request).rate(60_000),
        _ => Reply::status(429).header("Retry-After", "1"),
    });
    let url = server.url("/file");
    let output = curl(&[
        "-Z",
        "--parallel-immediate",
        "-o",
        "/dev/null",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code} ",
        &url,
        &url,
    ]);
    let codes = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(codes.contains("200") && codes.contains("429"), "{codes}");
    assert_eq!(server.most_active(), 2);
}

#[test]
fn a_gzipped_reply_is_gzip() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |_| version.gzipped());
    assert!(curl(&["--compressed", &server.url("/file")]).stdout == FILE.all());
}

#[test]
fn the_proxy_forwards_and_records() {
    let dir = tempfile::tempdir().expect("a temp dir");
    let identity = Identity::issue(dir.path(), &["127.0.0.1"], 2099);
    let authority = identity.authority.to_str().expect("UTF-8").to_owned();
    let nginx = Nginx::start(&Config {
        tls: Some(identity),
        ..Config::default()
    });
    nginx.put("file", &FILE);
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    let proxy = ForwardProxy::start();
    for url in [server.url("/file"), nginx.url("file")] {
        let output = curl(&["-x", &proxy.url(), "--cacert", &authority, &url]);
        assert!(output.stdout == FILE.all(), "{output:?}");
    }
    let requests = proxy.requests();
    assert_eq!(requests[0].target, server.url("/file"));
    assert_eq!(requests[1].method, "CONNECT");
}

#[test]
fn a_link_carries_and_can_be_cut() {
    let Some(link) = Link::new("80mbit") else {
        return;
    };
    let nginx = Nginx::start(&Config {
        namespace: Some(link.server().to_owned()),
        address: SERVER.parse().expect("an address"),
        ..Config::default()
    });
    nginx.put("file", &FILE);
    let fetch = |seconds: &str| {
        Command::new("ip")
            .args(["netns", "exec", link.client(), "curl", "-sS", "-m", seconds])
            .arg(nginx.url("file"))
            .output()
            .expect("start ip")
    };
    assert!(fetch("20").stdout == FILE.all());
    link.down();
    assert!(!fetch("2").status.success());
    link.up();
    assert!(fetch("20").stdout == FILE.all());
}

#[test]
fn a_small_file_system_fills_up() {
    let Some(disk) = TmpFs::mount(1 << 20) else {
        return;
    };
    assert_eq!(disk.free(), 1 << 20);
    let path = disk.path().join("file");
    FILE.write_to(&path).expect("fits");
    assert_content(&path, &FILE);
    assert!(
        Content::new(2, 1 << 20)
            .write_to(&disk.path().join("more"))
            .is_err()
    );
    disk.make_read_only();
    assert!(FILE.write_to(&path).is_err());
}

#[test]
fn peers_fetch_exactly() {
    let nginx = Nginx::start(&Config::default());
    nginx.put("file", &FILE);
    for peer in Peer::ALL {
        let dir = tempfile::tempdir().expect("a temp dir");
        let args = peer.continue_args(&nginx.url("file"), "out");
        let status = peers::finish(&mut peers::start(&args, dir.path()));
        assert!(status.success(), "{peer:?}: {status}");
        assert_content(&dir.path().join("out"), &FILE);
    }
}
