//! Content codings (RFC 9110 section 8.4): the file is what is saved, not
//! what a server makes of it on the way.

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{Reply, Request};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(260, 600_000);

#[test]
fn a_server_that_likes_gzip_is_not_asked_for_it() {
    let nginx = Nginx::start(&Config {
        gzip: true,
        ..Config::default()
    });
    nginx.put("file", &FILE);
    let work = Workdir::new();
    work.get().arg(nginx.url("file")).run().expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn every_request_asks_for_the_identity_encoding() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    let work = Workdir::new();
    work.get()
        .args(["--chunk-size", "64K"])
        .arg(server.url("/file"))
        .run()
        .expect_code(0);
    for request in server.requests() {
        assert_eq!(request.header("accept-encoding"), Some("identity"));
    }
}

#[test]
fn what_a_server_gzips_regardless_is_decoded() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/always", {
        let version = version.clone();
        move |_| version.gzipped()
    });
    // Honest to the probe, gzip for the rest.
    server.script("/later", move |request| {
        if request.is_probe() {
            version.answer(request)
        } else {
            version.gzipped()
        }
    });
    for path in ["/always", "/later"] {
        let work = Workdir::new();
        let outcome = work
            .get()
            .args(["--retry", "2"])
            .args(["-o", "file", &server.url(path)])
            .run();
        outcome.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
    }
}

/// Serves a file that is compressed itself and says so as if it were only
/// compressed on the way (Apache's AddEncoding).
fn labelled(coding: &str, ranges: bool) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    let version = Version::new(&FILE);
    let coding = coding.to_owned();
    move |request| {
        let reply = if ranges {
            version.answer(request)
        } else {
            version.whole().without("Accept-Ranges")
        };
        reply.header("Content-Encoding", &coding)
    }
}

#[test]
fn a_compressed_file_that_is_labelled_so_is_saved_as_it_is() {
    for coding in ["x-gzip", "gzip"] {
        for ranges in [true, false] {
            let server = FaultServer::start();
            server.script("/file.tar.gz", labelled(coding, ranges));
            let work = Workdir::new();
            let outcome = work.get().arg(server.url("/file.tar.gz")).run();
            assert_eq!(outcome.code, Some(0), "{coding}: {outcome}");
            work.assert_holds(&[("file.tar.gz", &FILE)]);
            assert_eq!(outcome.event("file")["ranges"], ranges, "{outcome}");
        }
    }
}

#[test]
fn a_compressed_file_that_only_its_name_tells_is_saved_as_it_is() {
    for ranges in [true, false] {
        let server = FaultServer::start();
        let answer = labelled("x-gzip", ranges);
        server.script("/get?id=1", move |request| {
            let disposition = "attachment; filename=\"file.tar.gz\"";
            answer(request).header("Content-Disposition", disposition)
        });
        let work = Workdir::new();
        work.get()
            .args(["--retry", "1"])
            .arg(server.url("/get?id=1"))
            .run()
            .expect_code(0);
        work.assert_holds(&[("file.tar.gz", &FILE)]);
    }
}

#[test]
fn a_compressed_file_that_is_labelled_so_is_resumed() {
    for coding in ["x-gzip", "gzip"] {
        let server = FaultServer::start();
        let answer = labelled(coding, true);
        server.script("/file.tar.gz", move |request| answer(request).rate(150_000));
        let work = Workdir::new();
        let get: Fairbat = work
            .get()
            .args(["--file-allocation", "none", "-x", "1"])
            .arg(server.url("/file.tar.gz"));
        let mut first = get.spawn();
        first.wait_for_part(&work.join("file.tar.gz"), FILE.len() / 3);
        first.signal("INT");
        first.wait().expect_code(130);
        server.script("/file.tar.gz", labelled(coding, true));
        let second = get.run();
        second.expect_code(0);
        work.assert_holds(&[("file.tar.gz", &FILE)]);
        assert!(second.resumed_bytes() >= FILE.len() / 3, "{second}");
    }
}
