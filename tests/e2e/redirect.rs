//! Redirects are followed, but secrets do not follow them to other hosts and
//! encryption is never lost on the way.

use fairbat_tests::content::{Content, base64};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::Reply;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::tls::Identity;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(20, 300_000);

#[test]
fn redirects_of_every_kind_are_followed() {
    let server = FaultServer::start();
    server.serve("/dir/file", Version::new(&FILE));
    for status in [301, 302, 303, 307, 308] {
        for location in [server.url("/dir/file"), "/dir/file".into(), "file".into()] {
            server.script("/dir/start", move |_| Reply::redirect(status, &location));
            let work = Workdir::new();
            work.get()
                .args(["--chunk-size", "64K", "-o", "out"])
                .arg(server.url("/dir/start"))
                .run()
                .expect_code(0);
            work.assert_holds(&[("out", &FILE)]);
        }
    }
}

#[test]
fn a_chain_of_redirects_is_followed() {
    let server = FaultServer::start();
    server.serve("/5", Version::new(&FILE));
    for step in 0..5 {
        let next = format!("/{}", step + 1);
        server.script(&format!("/{step}"), move |_| Reply::redirect(302, &next));
    }
    let work = Workdir::new();
    work.get()
        .args(["-o", "out", &server.url("/0")])
        .run()
        .expect_code(0);
    work.assert_holds(&[("out", &FILE)]);
}

#[test]
fn a_loop_of_redirects_ends_with_an_error() {
    let server = FaultServer::start();
    server.script("/a", |_| Reply::redirect(302, "/b"));
    server.script("/b", |_| Reply::redirect(302, "/a"));
    let work = Workdir::new();
    let outcome = work.get().arg(server.url("/a")).run();
    outcome.expect_code(1).expect_said(&["redirect"]);
    work.assert_holds(&[]);
    let requests = server.requests().len();
    assert!(requests <= 50, "{requests} requests");
}

#[test]
fn a_redirect_to_nowhere_is_an_error() {
    let server = FaultServer::start();
    for reply in [
        Reply::status(302),
        Reply::redirect(302, "http://"),
        Reply::redirect(302, "file:///etc/hostname"),
        Reply::redirect(302, "ftp://127.0.0.1/file"),
    ] {
        server.script("/file", move |_| reply.clone());
        let work = Workdir::new();
        let outcome = work
            .get()
            .args(["--retry", "1"])
            .arg(server.url("/file"))
            .run();
        assert_ne!(outcome.code, Some(0), "{outcome}");
        assert!(!outcome.stderr.is_empty(), "{outcome}");
        work.assert_holds(&[]);
    }
}

#[test]
fn credentials_and_headers_do_not_follow_to_another_host() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    let elsewhere = server.url_by_name("/file");
    server.script("/start", move |_| Reply::redirect(302, &elsewhere));
    let netrc = Workdir::new();
    let entry = "machine 127.0.0.1 login me password secret\n";
    std::fs::write(netrc.join("netrc"), entry).expect("written");
    let with_user = server.url("/start").replace("http://", "http://me:secret@");
    for (args, url) in [
        (vec!["-u", "me:secret"], server.url("/start")),
        (vec!["-n"], server.url("/start")),
        (vec![], with_user),
    ] {
        let before = server.requests().len();
        let work = Workdir::new();
        work.get()
            .args(["--chunk-size", "64K", "-o", "out"])
            .args(["-H", "X-Token: 42", "-H", "Cookie: a=b"])
            .args(["-H", "Authorization-Extra: 1"])
            .args(&args)
            .env("NETRC", netrc.join("netrc"))
            .arg(&url)
            .run()
            .expect_code(0);
        work.assert_holds(&[("out", &FILE)]);

        let secret = format!("Basic {}", base64(b"me:secret"));
        let requests = &server.requests()[before..];
        let of = |path| requests.iter().filter(move |r| r.target == path);
        assert!(of("/start").count() > 0 && of("/file").count() > 0);
        for request in of("/start") {
            assert_eq!(
                request.header("authorization"),
                Some(secret.as_str()),
                "{args:?}"
            );
            assert_eq!(request.header("x-token"), Some("42"));
        }
        for request in of("/file") {
            for name in ["authorization", "x-token", "cookie", "authorization-extra"] {
                assert_eq!(request.header(name), None, "{args:?}");
            }
        }
    }
}

#[test]
fn a_redirect_does_not_fetch_credentials_from_netrc() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    server.script("/sent", |_| Reply::status(201).after_body());
    for (path, status, to) in [("/start", 302, "/file"), ("/send", 307, "/sent")] {
        let elsewhere = server.url_by_name(to);
        server.script(path, move |_| {
            Reply::redirect(status, &elsewhere).after_body()
        });
    }
    let work = Workdir::new();
    FILE.write_to(&work.join("in")).expect("written");
    for entry in ["machine localhost", "default"] {
        let netrc =
            format!("machine 127.0.0.1 login me password own\n{entry} login me password theirs\n");
        std::fs::write(work.join("netrc"), netrc).expect("written");
        let before = server.requests().len();
        let get = work.get().args(["-o", "out", &server.url("/start")]);
        let put = work.put().args(["in", &server.url("/send")]);
        for run in [get, put] {
            let run = run.arg("-n").env("NETRC", work.join("netrc"));
            run.run().expect_code(0);
        }
        let own = format!("Basic {}", base64(b"me:own"));
        for request in &server.requests()[before..] {
            let is_named = request.target.starts_with("/s") && request.target != "/sent";
            let expected = is_named.then_some(own.as_str());
            assert_eq!(
                request.header("authorization"),
                expected,
                "{entry}: {} {}",
                request.method,
                request.target
            );
        }
        std::fs::remove_file(work.join("out")).expect("saved");
    }
}

#[test]
fn credentials_and_headers_stay_on_the_same_host() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    server.script("/start", |_| Reply::redirect(302, "/file"));
    let work = Workdir::new();
    work.get()
        .args(["-u", "me:secret", "-H", "X-Token: 42", "-o", "out"])
        .arg(server.url("/start"))
        .run()
        .expect_code(0);
    for request in server.requests_for("/file") {
        assert!(request.header("authorization").is_some());
        assert_eq!(request.header("x-token"), Some("42"));
    }
}

#[test]
fn https_is_never_given_up_for_http() {
    let plain = FaultServer::start();
    plain.serve("/file", Version::new(&FILE));
    let keys = Workdir::new();
    let identity = Identity::issue(keys.path(), &["localhost", "127.0.0.1"], 2099);
    let nginx = Nginx::start(&Config {
        tls: Some(identity.clone()),
        directives: format!("location /start {{ return 302 {}; }}", plain.url("/file")),
        ..Config::default()
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .arg("--cacert")
        .arg(&identity.authority)
        .arg(nginx.url("start"))
        .run();
    outcome
        .expect_code(1)
        .expect_said(&["redirect"])
        .expect_said(&["https"]);
    work.assert_holds(&[]);
    assert!(plain.requests().is_empty(), "it asked over http");
}

#[test]
fn http_may_become_https() {
    let keys = Workdir::new();
    let identity = Identity::issue(keys.path(), &["localhost", "127.0.0.1"], 2099);
    let nginx = Nginx::start(&Config {
        tls: Some(identity.clone()),
        ..Config::default()
    });
    nginx.put("file", &FILE);
    let plain = FaultServer::start();
    let location = nginx.url("file");
    plain.script("/start", move |_| Reply::redirect(301, &location));
    let work = Workdir::new();
    work.get()
        .arg("--cacert")
        .arg(&identity.authority)
        .args(["-o", "out", &plain.url("/start")])
        .run()
        .expect_code(0);
    work.assert_holds(&[("out", &FILE)]);
}
