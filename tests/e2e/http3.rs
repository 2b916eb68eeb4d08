//! HTTP/3: with servers and clients of others, from an offer on, and back to TCP where it does not
//! work.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;

use fairbat_tests::bin::{Fairbat, Running};
use fairbat_tests::caddy::Caddy;
use fairbat_tests::content::Content;
use fairbat_tests::expect::{assert_content, assert_only};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::port::Port;
use fairbat_tests::scripted::Scripted;
use fairbat_tests::served::{serving, settle, started};
use fairbat_tests::target::python;
use fairbat_tests::tls::Identity;
use fairbat_tests::workdir::Workdir;

mod links;

const FILE: Content = Content::new(310, 6_000_000);

/// An authority, and a certificate for servers of this machine.
fn identity(directory: &Workdir) -> Identity {
    Identity::issue(directory.path(), &["localhost", "127.0.0.1"], 2099)
}

fn get(work: &Workdir, identity: &Identity, when: &str, url: &str) -> Fairbat {
    work.get()
        .args(["--http3", when, "-o", "file", "--cacert"])
        .arg(&identity.authority)
        .arg(url)
}

/// Panics unless the file came over this protocol.
#[track_caller]
fn assert_came_over(outcome: &Outcome, work: &Workdir, protocol: &str) {
    outcome.expect_code(0);
    assert_eq!(outcome.event("done")["protocol"], protocol, "{outcome}");
    assert_content(&work.join("file"), &FILE);
}

/// Repeats downloads that may go over TCP until all came over HTTP/3: on a busy machine, a handshake
/// may take longer than a request waits for it.
#[track_caller]
fn assert_come_over_http3<const N: usize>(mut fetch: impl FnMut() -> [(Outcome, Workdir); N]) {
    let is_over_http3 = (0..5).any(|_| {
        let fetched = fetch();
        for (outcome, work) in &fetched {
            outcome.expect_code(0);
            assert_content(&work.join("file"), &FILE);
        }
        let protocols = fetched.map(|(outcome, _)| outcome.event("done")["protocol"].clone());
        protocols.iter().all(|protocol| protocol == "h3")
    });
    assert!(is_over_http3, "all that was offered is left");
}

fn caddy(directory: &Workdir, identity: &Identity) -> Caddy {
    FILE.write_to(&directory.join("file")).expect("a file");
    let root = directory.path().display();
    Caddy::start(
        directory.path(),
        identity,
        &format!("root * {root}\nfile_server"),
    )
}

/// `fairbat serve --http3` with these words besides, and its URL.
fn serve(directory: &Path, identity: &Identity, words: &[&str]) -> (Running, String) {
    let listen = ["--listen", "127.0.0.1:0"];
    started(&serving(directory, identity).args(listen).args(words))
}

/// One of our scripts for aioquic.
fn script(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/e2e/http3")).join(name)
}

/// One of our clients of aioquic, for this URL of a server with this identity.
fn aioquic(script: &str, url: &str, identity: &Identity) -> Command {
    let mut client = Command::new(python());
    client
        .arg(self::script(script))
        .arg(url)
        .arg(&identity.authority);
    client
}

#[test]
fn caddy_serves_exactly_over_http3() {
    let site = Workdir::new();
    let identity = identity(&site);
    let caddy = caddy(&site, &identity);
    for split in ["1", "3"] {
        let work = Workdir::new();
        let outcome = get(&work, &identity, "only", &caddy.url("file"))
            .args(["--chunk-size", "512K", "-s", split])
            .run();
        assert_came_over(&outcome, &work, "h3");
    }
}

#[test]
fn what_is_offered_is_taken_at_once_and_in_the_next_run() {
    let site = Workdir::new();
    let identity = identity(&site);
    let caddy = caddy(&site, &identity);
    let fetch = |cache: &Workdir| {
        let work = Workdir::new();
        let get = get(&work, &identity, "auto", &caddy.url("file"));
        let outcome = get.env("XDG_CACHE_HOME", cache.path()).run();
        (outcome, work)
    };
    assert_come_over_http3(|| {
        let cache = Workdir::new();
        [fetch(&cache), fetch(&cache)]
    });
    let work = Workdir::new();
    let outcome = get(&work, &identity, "never", &caddy.url("file")).run();
    assert_came_over(&outcome, &work, "http/1.1");
}

#[test]
fn where_udp_is_blocked_everything_goes_over_tcp_and_that_is_remembered() {
    let keys = Workdir::new();
    let identity = identity(&keys);
    // It takes packets and never answers, as a firewall does.
    let port = Port::own(Ipv4Addr::LOCALHOST.into());
    let blocked = port.address();
    let silent = UdpSocket::bind(blocked).expect("a free port");
    silent.set_nonblocking(true).expect("a socket");
    let nginx = Nginx::start(&Config {
        tls: Some(identity.clone()),
        directives: format!("add_header Alt-Svc 'h3=\":{}\"; ma=3600';", blocked.port()),
        ..Config::default()
    });
    nginx.put("file", &FILE);
    let cache = Workdir::new();
    // By how many sockets.
    let asked = || {
        let mut packet = [0; 2048];
        let from = std::iter::from_fn(|| Some(silent.recv_from(&mut packet).ok()?.1));
        from.collect::<BTreeSet<_>>().len()
    };
    let fetch = |cache: &Workdir, split| {
        let work = Workdir::new();
        let outcome = get(&work, &identity, "auto", &nginx.url("file"))
            .args(["--chunk-size", "512K", "-s", split])
            .env("XDG_CACHE_HOME", cache.path())
            .run();
        assert_came_over(&outcome, &work, "http/1.1");
        assert_eq!(outcome.events_named("retry").len(), 0, "{outcome}");
    };
    fetch(&cache, "1");
    assert_eq!(asked(), 1, "HTTP/3 is tried once");
    fetch(&cache, "1");
    assert_eq!(asked(), 0, "it is tried again in the same network");
    fetch(&Workdir::new(), "8");
    assert_eq!(asked(), 1, "who waits for a try makes none");

    let work = Workdir::new();
    let only = get(&work, &identity, "only", &nginx.url("file"))
        .args(["--connect-timeout", "1s", "--retry", "1"])
        .run();
    only.expect_code(5).expect_said(&["UDP may be blocked"]);
}

#[test]
fn a_server_that_is_full_for_now_is_asked_over_http3_again() {
    let site = Workdir::new();
    let identity = identity(&site);
    FILE.write_to(&site.join("file")).expect("a file");
    let two = ["--max-connections-per-peer", "2"];
    let (_server, url) = serve(site.path(), &identity, &two);
    let url = format!("{url}file");
    let cache = Workdir::new();
    let fetch = |when| {
        let work = Workdir::new();
        let outcome = get(&work, &identity, when, &url)
            .args(["--retry", "0"])
            .env("XDG_CACHE_HOME", cache.path())
            .run();
        (outcome, work)
    };
    let (known, work) = fetch("auto");
    assert_came_over(&known, &work, "h3");

    let works = [Workdir::new(), Workdir::new()];
    let slow = works.each_ref().map(|work| {
        let mut running = get(work, &identity, "only", &url)
            .args(["--limit-rate", "200K"])
            .spawn();
        running.wait_for_event("bytes", |event| event["event"] == "control");
        running
    });
    let (only, _) = fetch("only");
    only.expect_code(5)
        .expect_said(&["no more connections now"]);
    // What it says over TCP depends on how many requests there are at that moment.
    let _ = fetch("auto");
    for mut running in slow {
        running.signal("TERM");
        let _ = running.wait();
    }
    // The server may hear of their end after the next connection. Another cache, so that this
    // says nothing to the last download.
    let work = Workdir::new();
    get(&work, &identity, "only", &url)
        .args(["--retry", "20"])
        .run()
        .expect_code(0);
    let (later, work) = fetch("auto");
    assert_came_over(&later, &work, "h3");
}

#[test]
fn an_answer_that_comes_before_its_request_has_ended_is_taken() {
    let site = Workdir::new();
    let identity = identity(&site);
    let (_server, url) = serve(site.path(), &identity, &[]);
    // Of the first requests of connections, it is one in fifty; of the others, one in a thousand.
    let names: Vec<_> = (0..500).map(|number| format!("small-{number}")).collect();
    for name in &names {
        std::fs::write(site.join(name), name).expect("a file");
    }
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--http3", "only", "--retry", "0", "--cacert"])
        .arg(&identity.authority)
        .args(names.iter().map(|name| format!("{url}{name}")))
        .run();
    outcome.expect_code(0);
}

#[test]
fn who_ends_leaves_no_connection_behind() {
    let site = Workdir::new();
    let identity = identity(&site);
    FILE.write_to(&site.join("file")).expect("a file");
    let (_server, url) = serve(site.path(), &identity, &["--max-connections-per-peer", "1"]);
    settle();
    for _ in 0..60 {
        let work = Workdir::new();
        let outcome = get(&work, &identity, "only", &format!("{url}file"))
            .args(["--retry", "5"]) // The end of the last one may be heard of late.
            .run();
        assert_came_over(&outcome, &work, "h3");
    }
}

#[test]
fn http3_alone_says_where_it_cannot_be() {
    let nginx = Nginx::start(&Config::default());
    let keys = Workdir::new();
    let identity = identity(&keys);
    let work = Workdir::new();
    let plain = format!("http://{}/file", nginx.address());
    let outcome = get(&work, &identity, "only", &plain).run();
    outcome.expect_code(1).expect_said(&["over TLS only"]);
    let outcome = get(&work, &identity, "only", "https://127.0.0.1:1/file")
        .env("https_proxy", "http://127.0.0.1:9")
        .run();
    outcome.expect_code(1).expect_said(&["through a proxy"]);
}

#[test]
fn a_server_that_cannot_prove_who_it_is_gives_nothing() {
    let site = Workdir::new();
    let own = identity(&site);
    let caddy = caddy(&site, &own);
    let keys = Workdir::new();
    let stranger = identity(&keys);
    for when in ["only", "auto"] {
        let work = Workdir::new();
        let outcome = get(&work, &stranger, when, &caddy.url("file")).run();
        outcome.expect_code(1).expect_said(&["certificate"]);
        work.assert_holds(&[]);
    }
}

#[test]
fn hypercorn_serves_exactly_over_http3() {
    let site = Workdir::new();
    let identity = identity(&site);
    FILE.write_to(&site.join("file")).expect("a file");
    let port = Port::own(Ipv4Addr::LOCALHOST.into());
    let address = port.address();
    let bound = address.to_string();
    let hypercorn = Scripted::start(
        site.path(),
        |command| {
            command
                .args(["-m", "hypercorn", "--workers", "0", "--quic-bind"])
                .args([&bound, "--bind", &bound, "--certfile"])
                .arg(&identity.certificate)
                .arg("--keyfile")
                .arg(&identity.key)
                .arg(script("files.py:app"))
        },
        // TCP comes before it.
        |said| said.contains("(QUIC)"),
    );
    let url = format!("https://{address}/file");
    let fetch = |when| {
        let work = Workdir::new();
        (get(&work, &identity, when, &url).run(), work)
    };
    let (only, work) = fetch("only");
    assert_came_over(&only, &work, "h3");
    assert_come_over_http3(|| [fetch("auto")]);
    drop(hypercorn);
}

/// A server of aioquic that closes each connection after three answers, and takes these tickets.
fn closing_server(
    site: &Workdir,
    identity: &Identity,
    tickets: &str,
    port: &Port,
) -> (Scripted, String) {
    FILE.write_to(&site.join("file")).expect("a file");
    let address = port.address();
    let server = Scripted::start(
        site.path(),
        |command| {
            command
                .arg(script("early.py"))
                .args([address.ip().to_string(), address.port().to_string()])
                .args([&identity.certificate, &identity.key])
                .args(["3", tickets])
        },
        |said| said.contains("ready"),
    );
    (server, format!("https://{address}/file"))
}

#[test]
fn requests_leave_early_only_if_the_user_says_so_and_lose_nothing() {
    for (tickets, flags, expected) in [
        ("all", &["--early-data"][..], &["late", "early"][..]),
        ("all", &[], &["late"]),
        // What was refused once is not tried again.
        ("none", &["--early-data"], &["late", "refused", "late"]),
    ] {
        let site = Workdir::new();
        let identity = identity(&site);
        let port = Port::own(Ipv4Addr::LOCALHOST.into());
        let (server, url) = closing_server(&site, &identity, tickets, &port);
        let work = Workdir::new();
        let outcome = get(&work, &identity, "only", &url)
            .args([
                "--chunk-size",
                "512K",
                "--retry",
                "20",
                "--retry-wait",
                "100ms",
            ])
            .args(flags)
            .run();
        let log = server.stop();
        assert_came_over(&outcome, &work, "h3");
        // A client that was slow has said nothing of a request before its connection was open.
        let is_told = |&line: &&str| line != "ready" && (flags.is_empty() || line != "accepted");
        let mut said: Vec<_> = log.lines().filter(is_told).collect();
        assert!(said.len() > 2, "too few connections: {log}");
        said.dedup();
        // A slow client's request may leave too late to be early.
        let is_early = expected.ends_with(&["early"]);
        let is_expected = match is_early {
            true => said.starts_with(expected) && !said.contains(&"refused"),
            false => said == expected,
        };
        assert!(is_expected, "{log}");
    }
}

#[test]
fn aioquic_fetches_exactly_what_is_served() {
    let site = Workdir::new();
    let identity = identity(&site);
    FILE.write_to(&site.join("file")).expect("a file");
    let (_server, url) = serve(site.path(), &identity, &[]);
    let work = Workdir::new();
    let output = aioquic("fetch.py", &format!("{url}file"), &identity)
        .arg(work.join("file"))
        .arg("1000000-1000009")
        .output()
        .expect("start Python");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_content(&work.join("file"), &FILE);
    let part: String = FILE
        .bytes(1_000_000..1_000_010)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(said.trim(), format!("200 6000000 206 {part}"));
}

#[test]
fn a_body_is_taken_as_it_was_announced() {
    let site = Workdir::new();
    let keys = Workdir::new();
    let identity = identity(&keys);
    let (_server, url) = serve(site.path(), &identity, &["--writable"]);
    let status = |method: &str, path: &str, rest: &[&str]| {
        let output = aioquic("send.py", &format!("{url}{path}"), &identity)
            .arg(method)
            .args(rest)
            .output()
            .expect("start Python");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(status("PUT", "short", &["10", "1000"]), "400");
    assert_eq!(status("PUT", "long", &["1000", "10"]), "400");
    // What the server keeps unfinished uploads in.
    let own = ".fairbat-upload";
    assert_only(site.path(), &[own]);
    assert_eq!(status("PUT", "file", &["10", "10"]), "201");
    assert_eq!(status("PUT", "other", &["10"]), "201");
    assert_eq!(status("PUT", "empty", &["0"]), "201");
    // What has no body comes without a length.
    assert_eq!(status("MKCOL", "directory", &["0"]), "201");
    assert_eq!(status("MKCOL", "full", &["10"]), "415");
    assert_only(site.path(), &[own, "directory", "empty", "file", "other"]);
    // It has no body, as it should be, but names no length of the file.
    assert_eq!(status("POST", "parts?parts", &["0"]), "400");
}

#[test]
fn serve_and_get_and_put_speak_http3_with_each_other() {
    let site = Workdir::new();
    let keys = Workdir::new();
    let identity = identity(&keys);
    let (_server, url) = serve(site.path(), &identity, &["--writable"]);
    let source = Workdir::new();
    FILE.write_to(&source.join("file")).expect("a file");
    for (when, name) in [("only", "one"), ("never", "two")] {
        let outcome = source
            .put()
            .args(["--http3", when, "--cacert"])
            .arg(&identity.authority)
            .args(["file", &format!("{url}{name}")])
            .run();
        outcome.expect_code(0);
        let expected = if when == "only" { "h3" } else { "http/1.1" };
        assert_eq!(outcome.event("done")["protocol"], expected, "{outcome}");
        assert_content(&site.join(name), &FILE);
    }
    let fetch = |when| {
        let work = Workdir::new();
        let outcome = get(&work, &identity, when, &format!("{url}one")).run();
        (outcome, work)
    };
    let (only, work) = fetch("only");
    assert_came_over(&only, &work, "h3");
    assert_come_over_http3(|| [fetch("auto")]);
}

#[test]
fn half_an_upload_over_http3_is_never_a_file() {
    let site = Workdir::new();
    let keys = Workdir::new();
    let identity = identity(&keys);
    let (_server, url) = serve(site.path(), &identity, &["--writable"]);
    let source = Workdir::new();
    FILE.write_to(&source.join("file")).expect("a file");
    let put = |rate: &str| {
        source
            .put()
            .args(["--http3", "only", "--limit-rate", rate, "--cacert"])
            .arg(&identity.authority)
            .args(["file", &format!("{url}file")])
    };
    for signal in ["KILL", "INT"] {
        let mut running = put("1M").spawn();
        running.wait_for_event("half a megabyte", |event| {
            event["bytes_done"]
                .as_u64()
                .is_some_and(|bytes| bytes > 500_000)
        });
        running.signal(signal);
        let _ = running.wait();
        assert!(!site.join("file").exists(), "{signal} leaves a file");
    }
    put("0").run().expect_code(0);
    assert_content(&site.join("file"), &FILE);
}

#[test]
fn an_upload_that_is_stopped_leaves_no_connection_behind() {
    let site = Workdir::new();
    let keys = Workdir::new();
    let identity = identity(&keys);
    // An upload may ask over a connection of its own.
    let words = ["--writable", "--max-connections-per-peer", "2"];
    let (_server, url) = serve(site.path(), &identity, &words);
    let source = Workdir::new();
    FILE.write_to(&source.join("file")).expect("a file");
    let large = File::create(source.join("large")).expect("a file");
    large.set_len(4 << 30).expect("a hole");
    let put = |name: &str| {
        source
            .put()
            .args(["--http3", "only", "--retry", "5", "--retry-wait", "50ms"])
            .arg("--cacert")
            .arg(&identity.authority)
            .args([name, &format!("{url}{name}")])
    };
    for _ in 0..3 {
        let mut running = put("large").spawn();
        running.wait_for_event("to be under way", |event| event["event"] == "control");
        running.signal("INT");
        let _ = running.wait();
        put("file").run().expect_code(0);
    }
}
