//! The proxy before a store spoils what it is told to and nothing else.

use std::time::Duration;

use fairbat_tests::content::Content;
use fairbat_tests::expect::{assert_absent, assert_content};
use fairbat_tests::message::{End, Framing, Reply};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::stores::{Dav, DavKind, Fault, FaultProxy, Requests, S3, S3Kind};
use fairbat_tests::workdir::Workdir;

use super::{curl, signed, source, status, words};

const FILE: Content = super::FILE;

/// curl's exit codes (`man curl`).
const NOTHING_GOT: i32 = 52;
const SEND_FAILED: i32 = 55;
const RECEIVE_FAILED: i32 = 56;
const TIMED_OUT: i32 = 28;

/// An nginx that takes uploads, and a proxy before it.
fn nginx() -> (Nginx, FaultProxy) {
    let nginx = Nginx::start(&Config {
        upload_limit: Some(0),
        ..Config::default()
    });
    let address = nginx.url("").replace("http://", "").replace('/', "");
    let proxy = FaultProxy::start(address.parse().expect("an address"));
    (nginx, proxy)
}

fn exit_code(args: &[&str]) -> i32 {
    let output = curl(&[&["-o", "/dev/null"], args].concat());
    output.status.code().expect("it was not killed")
}

#[test]
fn what_is_not_spoiled_passes_as_it_is() {
    let work = Workdir::new();
    let source = source(&work);
    let store = S3::start(S3Kind::S3sFs);
    let proxy = FaultProxy::start(store.address());
    let url = format!("{}/{}/file", proxy.url(), store.bucket());
    let signed = signed(&store, store.secret_key());
    let signed = words(&signed);
    // So long a body curl only sends when it is told to.
    let put = [&signed[..], &["-T", &source, &url]].concat();
    assert_eq!(status(&put), "200");
    let get = [&signed[..], &[&url, &url]].concat();
    let output = curl(&[&get[..], &["-w", "%{stderr} %{num_connects}"]].concat());
    assert!(output.stdout == [FILE.all(), FILE.all()].concat());
    let connects = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(connects, " 1 0", "the connection is kept");
    assert_eq!(status(&[&signed[..], &["-I", &url]].concat()), "200");
    let missing = format!("{url}.not");
    assert_eq!(status(&[&signed[..], &[&missing]].concat()), "404");

    let exchanges = proxy.exchanges();
    let seen = exchanges.iter().map(|exchange| {
        let path = exchange.target.as_str();
        let (method, sent) = (exchange.method.as_str(), exchange.body_bytes);
        (method, path, sent, exchange.status)
    });
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [
            ("PUT", "/bucket/file", 3_000_000, Some(200)),
            ("GET", "/bucket/file", 0, Some(200)),
            ("GET", "/bucket/file", 0, Some(200)),
            ("HEAD", "/bucket/file", 0, Some(200)),
            ("GET", "/bucket/file.not", 0, Some(404)),
        ]
    );
    assert!(exchanges[0].header("X-Amz-Date").is_some());
    assert_eq!(
        (proxy.count("GET"), proxy.body_bytes("PUT")),
        (3, 3_000_000)
    );
}

#[test]
fn chunks_pass_both_ways() {
    let work = Workdir::new();
    let source = source(&work);
    let server = Dav::start(DavKind::Wsgidav);
    let proxy = FaultProxy::start(server.address());
    let url = proxy.url() + "/file";
    let owner = format!("{}:{}", server.user(), server.password());
    let chunked = ["-H", "Transfer-Encoding: chunked", "-u", &owner];
    assert_eq!(
        status(&[&chunked[..], &["-T", &source, &url]].concat()),
        "201"
    );
    assert_content(&server.root().join("file"), &FILE);
    assert_eq!(proxy.body_bytes("PUT"), 3_000_000);

    let nginx = Nginx::start(&Config {
        chunked: true,
        ..Config::default()
    });
    nginx.put("file", &FILE);
    let address = nginx.url("").replace("http://", "").replace('/', "");
    let proxy = FaultProxy::start(address.parse().expect("an address"));
    assert!(curl(&[&(proxy.url() + "/file")]).stdout == FILE.all());
    proxy.on(Requests::all(), Fault::CutResponse(70_000));
    let cut = curl(&[&(proxy.url() + "/file")]);
    assert_eq!(cut.status.code(), Some(RECEIVE_FAILED));
    assert!(cut.stdout == FILE.bytes(0..70_000));
}

#[test]
fn the_nth_request_is_answered_in_the_servers_place() {
    let (nginx, proxy) = nginx();
    let slow_down = Reply::new(503, b"<Error><Code>SlowDown</Code></Error>".to_vec());
    let slow_down = slow_down.header("Retry-After", "7");
    let second = Requests::of("PUT").containing("part=2").nth(1..2);
    proxy.on(second, Fault::Answer(slow_down));
    let put = |name: &str| {
        let url = format!("{}/{name}", proxy.url());
        let output = curl(&["-i", "-X", "PUT", "-d", "text", &url]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(put("a?part=1").starts_with("HTTP/1.1 201"));
    assert!(put("b?part=2").starts_with("HTTP/1.1 201"));
    assert!(put("c?part=1").starts_with("HTTP/1.1 201"));
    let spoiled = put("d?part=2");
    assert!(spoiled.starts_with("HTTP/1.1 503"), "{spoiled}");
    assert!(spoiled.contains("Retry-After: 7") && spoiled.ends_with("</Error>"));
    assert_absent(&nginx.path("d"));
    assert!(put("e?part=2").starts_with("HTTP/1.1 201"));

    let exchanges = proxy.exchanges();
    assert_eq!((exchanges[3].status, exchanges[3].body_bytes), (None, 4));
    assert_eq!((proxy.count("PUT"), proxy.body_bytes("PUT")), (5, 20));

    proxy.on(Requests::of("GET"), Fault::Answer(Reply::status(500)));
    assert_eq!(status(&[&(proxy.url() + "/a")]), "500");
    proxy.heal();
    assert_eq!(status(&[&(proxy.url() + "/a")]), "200");
}

#[test]
fn a_cut_request_reaches_the_server_in_part() {
    let work = Workdir::new();
    let source = source(&work);
    let server = Dav::start(DavKind::Wsgidav);
    let proxy = FaultProxy::start(server.address());
    proxy.on(Requests::of("PUT").nth(0..1), Fault::CutRequest(1_000_000));
    let owner = format!("{}:{}", server.user(), server.password());
    let url = proxy.url() + "/file";
    let put = ["-u", &owner, "-T", &source, &url];
    let code = exit_code(&put);
    assert!([SEND_FAILED, RECEIVE_FAILED].contains(&code), "{code}");
    let exchange = &proxy.exchanges()[0];
    assert_eq!((exchange.status, exchange.body_bytes), (None, 1_000_000));
    fairbat_tests::poll::wait_until("what passed", Duration::from_secs(20), || {
        std::fs::read(server.root().join("file")).is_ok_and(|kept| kept == FILE.bytes(0..1_000_000))
    });
    assert_eq!(status(&put), "204");
    assert_content(&server.root().join("file"), &FILE);
}

#[test]
fn a_cut_or_lost_response_does_not_undo_the_request() {
    let work = Workdir::new();
    let source = source(&work);
    let (nginx, proxy) = nginx();
    proxy.on(Requests::of("PUT").nth(0..1), Fault::LoseResponse);
    proxy.on(Requests::of("GET").nth(0..1), Fault::CutResponse(1000));
    let url = proxy.url() + "/file";
    let code = exit_code(&["-T", &source, &url]);
    assert!([NOTHING_GOT, RECEIVE_FAILED].contains(&code), "{code}");
    assert_content(&nginx.path("file"), &FILE);
    assert_eq!(proxy.exchanges()[0].status, None);

    let cut = curl(&[&url]);
    assert_eq!(cut.status.code(), Some(RECEIVE_FAILED));
    assert!(cut.stdout == FILE.bytes(0..1000));
    assert!(curl(&[&url]).stdout == FILE.all());
}

#[test]
fn a_response_is_delayed_changed_or_never_comes() {
    let (nginx, proxy) = nginx();
    nginx.put("file", &FILE);
    let url = proxy.url() + "/file";
    let heads = Requests::of("HEAD");
    let wrong = Fault::Header("ETag".to_owned(), "\"wrong\"".to_owned());
    proxy.on(heads.clone().nth(0..1), wrong);
    let head = String::from_utf8_lossy(&curl(&["-I", &url]).stdout).into_owned();
    assert_eq!(head.matches("ETag:").count(), 1, "{head}");
    assert!(head.contains("ETag: \"wrong\"") && head.contains("Content-Length: 3000000"));

    proxy.on(
        heads.clone().nth(0..1),
        Fault::Delay(Duration::from_secs(60)),
    );
    assert_eq!(exit_code(&["-I", "-m", "1", &url]), TIMED_OUT);
    assert!(nginx.accesses().len() == 1, "it was not asked yet");
    let silence = Reply::status(200)
        .framing(Framing::Nothing)
        .end(End::Stall(0));
    proxy.on(heads.nth(0..1), Fault::Answer(silence));
    assert_eq!(exit_code(&["-I", "-m", "1", &url]), TIMED_OUT);
    assert_eq!(status(&["-I", &url]), "200");
}

#[test]
fn a_dead_server_is_dead_behind_the_proxy_too() {
    let (mut nginx, proxy) = nginx();
    nginx.put("file", &FILE);
    let url = proxy.url() + "/file";
    nginx.stop();
    let code = exit_code(&[&url]);
    assert!([NOTHING_GOT, RECEIVE_FAILED].contains(&code), "{code}");
    nginx.start_again();
    assert!(curl(&[&url]).stdout == FILE.all());
}
