//! The stores that other tests write to, seen by a client that is not ours:
//! curl.

#[path = "stores/proxy.rs"]
mod proxy;

use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output, Stdio};

use fairbat_tests::content::Content;
use fairbat_tests::stores::{Dav, DavKind, S3, S3Kind};
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(90, 3_000_000);

/// Tells a run of this program that it is to leave a server behind.
const ABANDON: &str = "FAIRBAT_TESTS_ABANDON";

/// curl with these arguments; the status of the answer follows what it got.
fn curl(args: &[&str]) -> Output {
    Command::new("curl")
        .args(["-q", "-sS", "--max-time", "20", "--noproxy", "*"])
        .args(["-w", "%{stderr}%{http_code}"])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("start curl: is the package `curl` installed?")
}

/// The status of the answer to curl with these arguments.
fn status(args: &[&str]) -> String {
    let output = curl(&[&["-o", "/dev/null"], args].concat());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// curl's arguments that sign a request.
fn signed(store: &S3, secret: &str) -> [String; 6] {
    [
        // Signatures of S3 want it, and curl does not always think of it.
        "-H".to_owned(),
        "x-amz-content-sha256: UNSIGNED-PAYLOAD".to_owned(),
        "--aws-sigv4".to_owned(),
        format!("aws:amz:{}:s3", store.region()),
        "--user".to_owned(),
        format!("{}:{secret}", store.access_key()),
    ]
}

fn words(owned: &[String]) -> Vec<&str> {
    owned.iter().map(String::as_str).collect()
}

/// A file with the content, and its path.
fn source(work: &Workdir) -> String {
    let path = work.join("source");
    FILE.write_to(&path).expect("write a file");
    path.to_str().expect("UTF-8").to_owned()
}

/// Panics unless nobody listens there.
fn assert_gone(address: SocketAddr) {
    let error = TcpStream::connect(address).expect_err("nobody is to listen");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn an_s3_store_gives_back_what_it_took() {
    for kind in S3Kind::ALL {
        let work = Workdir::new();
        let source = source(&work);
        let store = S3::start(kind);
        let url = format!("{}/{}/dir/file", store.endpoint(), store.bucket());
        let signed = signed(&store, store.secret_key());
        let signed = words(&signed);
        let put = [&signed[..], &["-T", &source, &url]].concat();
        assert_eq!(status(&put), "200", "{kind:?}");
        assert_eq!(
            curl(&[&signed[..], &[&url]].concat()).stdout,
            FILE.all(),
            "{kind:?}"
        );
        let part = curl(&[&signed[..], &["-r", "7-9", &url]].concat());
        assert_eq!(part.stdout, FILE.bytes(7..10), "{kind:?}");
        let again = [&put[..], &["-H", "If-None-Match: *"]].concat();
        assert_eq!(status(&again), "412", "{kind:?}");
        if let Some(directory) = store.bucket_directory() {
            let kept = std::fs::read(directory.join("dir/file")).expect("a file");
            assert_eq!(kept, FILE.all());
        }
        let address = store.address();
        drop(store);
        assert_gone(address);
    }
}

#[test]
fn an_s3_store_knows_strangers_as_far_as_it_says() {
    for (kind, wrong_keys) in [(S3Kind::S3sFs, "403"), (S3Kind::Moto, "200")] {
        let store = S3::start(kind);
        let url = format!("{}/{}/file", store.endpoint(), store.bucket());
        let right = signed(&store, store.secret_key());
        let put = ["-X", "PUT", "-d", "text", &url];
        assert_eq!(status(&[&words(&right)[..], &put].concat()), "200");
        let wrong = signed(&store, "wrong");
        let get = [&words(&wrong)[..], &[&url]].concat();
        assert_eq!(status(&get), wrong_keys, "{kind:?}");
        assert_eq!(status(&[&url]), "403", "{kind:?}");
    }
}

#[test]
fn a_killed_s3_store_comes_back_where_it_was() {
    for (kind, afterwards) in [(S3Kind::S3sFs, "200"), (S3Kind::Moto, "404")] {
        let mut store = S3::start(kind);
        let url = format!("{}/{}/file", store.endpoint(), store.bucket());
        let signed = signed(&store, store.secret_key());
        let signed = words(&signed);
        let put = [&signed[..], &["-X", "PUT", "-d", "text", &url]].concat();
        assert_eq!(status(&put), "200");
        store.kill();
        assert_gone(store.address());
        store.restart();
        let get = [&signed[..], &[&url]].concat();
        assert_eq!(status(&get), afterwards, "{kind:?}");
        assert_eq!(status(&put), "200", "{kind:?}: the bucket is there");
    }
}

#[test]
fn a_webdav_server_gives_back_what_it_took() {
    for kind in DavKind::ALL {
        let work = Workdir::new();
        let source = source(&work);
        let mut server = Dav::start(kind);
        let owner = format!("{}:{}", server.user(), server.password());
        let (directory, url) = (server.url() + "/dir/", server.url() + "/dir/file");
        let make = ["-u", &owner, "-X", "MKCOL", &directory];
        assert_eq!(status(&make), "201", "{kind:?}");
        let put = ["-u", &owner, "-T", &source, &url];
        assert_eq!(status(&put), "201", "{kind:?}");
        let kept = std::fs::read(server.root().join("dir/file")).expect("a file");
        assert_eq!(kept, FILE.all(), "{kind:?}");
        server.kill();
        assert_gone(server.address());
        server.restart();
        assert_eq!(curl(&["-u", &owner, &url]).stdout, FILE.all(), "{kind:?}");
        // What is put there by other means shows at once.
        std::fs::write(server.root().join("dir/other"), "text").expect("write a file");
        let other = server.url() + "/dir/other";
        assert_eq!(curl(&["-u", &owner, &other]).stdout, b"text", "{kind:?}");

        let stranger = format!("{}:wrong", server.user());
        for words in [
            &["-u", &stranger, &url][..],
            &["-u", &stranger, "-T", &source, &url],
            &[&url],
        ] {
            assert_eq!(status(words), "401", "{kind:?}: {words:?}");
        }
        let address = server.address();
        drop(server);
        assert_gone(address);
    }
}

#[test]
fn a_server_ends_with_the_process_that_started_it() {
    let run = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "stores::leave_a_server_behind", "--ignored"])
        .args(["--nocapture", "--test-threads", "1"])
        .env(ABANDON, "1")
        .output()
        .expect("start this program");
    assert!(!run.status.success(), "it was to be aborted: {run:?}");
    let said = String::from_utf8_lossy(&run.stderr);
    let (_, address) = said.split_once("left behind: ").expect("an address");
    let address = address.lines().next().expect("a line");
    let address: SocketAddr = address.parse().expect("an address");
    fairbat_tests::poll::wait_until(
        "the kernel to kill the server",
        std::time::Duration::from_secs(20),
        || TcpStream::connect(address).is_err(),
    );
}

#[test]
#[ignore = "a_server_ends_with_the_process_that_started_it runs it"]
fn leave_a_server_behind() {
    if std::env::var_os(ABANDON).is_none() {
        return;
    }
    let store = S3::start(S3Kind::S3sFs);
    TcpStream::connect(store.address()).expect("it listens");
    eprintln!("left behind: {}", store.address());
    // Nothing is dropped.
    std::process::abort();
}
