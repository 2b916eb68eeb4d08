//! A finished download is byte for byte what the server has, whatever the
//! size and however the server frames it.

use std::time::Duration;

use fairbat_tests::content::Content;
use fairbat_tests::expect::{assert_content, names_in};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{End, Framing};
use fairbat_tests::nginx::{Config, Nginx, long_ago};
use fairbat_tests::poll::wait_until;
use fairbat_tests::version::{LAST_MODIFIED, Version};
use fairbat_tests::workdir::Workdir;

const CHUNK: u64 = 64 * 1024;
const FILE: Content = Content::new(2, 300_000);
const LARGE: Content = Content::new(3, 200_000_000);

#[test]
fn sizes_around_the_chunk_length_are_exact() {
    let nginx = Nginx::start(&Config::default());
    for size in [0, 1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7] {
        let content = Content::new(size, size);
        nginx.put("file", &content);
        for split in ["1", "4"] {
            let work = Workdir::new();
            let outcome = work
                .get()
                .args(["--chunk-size", "64K", "-s", split])
                .arg(nginx.url("file"))
                .run();
            outcome.expect_code(0);
            work.assert_holds(&[("file", &content)]);
            assert_eq!(outcome.event("done")["bytes"], size, "{outcome}");
        }
    }
}

#[test]
fn a_file_of_200_mb_is_exact() {
    let nginx = Nginx::start(&Config::default());
    nginx.put("large", &LARGE);
    let work = Workdir::new();
    work.get().arg(nginx.url("large")).run().expect_code(0);
    work.assert_holds(&[("large", &LARGE)]);
}

#[test]
fn a_file_of_200_mb_over_4_connections_is_exact() {
    let nginx = Nginx::start(&Config::default());
    nginx.put("large", &LARGE);
    let work = Workdir::new();
    work.get()
        .args(["-s", "4"])
        .arg(nginx.url("large"))
        .run()
        .expect_code(0);
    work.assert_holds(&[("large", &LARGE)]);
}

#[test]
fn every_byte_is_fetched_once() {
    let nginx = Nginx::start(&Config::default());
    let content = Content::new(4, 20_000_000);
    nginx.put("file", &content);
    // The probe may bring its one byte a second time. One that yields may leave a connection for a
    // better one, with what is on its way.
    for (flags, more) in [(&["--weight", "1"][..], 1), (&[], content.len() / 20)] {
        for split in ["1", "4"] {
            let before = nginx.sent_bytes();
            let work = Workdir::new();
            let get = work.get().args(flags).args(["-s", split]);
            get.arg(nginx.url("file")).run().expect_code(0);
            work.assert_holds(&[("file", &content)]);
            let sent = nginx.sent_bytes() - before;
            assert!(
                sent <= content.len() + more,
                "{flags:?} -s {split}: {sent} bytes sent"
            );
        }
    }
}

#[test]
fn a_server_without_ranges_serves_exactly() {
    let nginx = Nginx::start(&Config {
        ranges: false,
        ..Config::default()
    });
    nginx.put("file", &FILE);
    for split in ["1", "4"] {
        let work = Workdir::new();
        let run = work.get().args(["-s", split]).arg(nginx.url("file")).run();
        run.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        assert_eq!(run.event("file")["ranges"], false, "{run}");
    }
}

#[test]
fn a_chunked_response_without_length_is_exact() {
    let nginx = Nginx::start(&Config {
        chunked: true,
        ..Config::default()
    });
    for size in [0, 1, FILE.len()] {
        let content = Content::new(5, size);
        nginx.put("file", &content);
        let work = Workdir::new();
        let outcome = work.get().arg(nginx.url("file")).run();
        outcome.expect_code(0);
        work.assert_holds(&[("file", &content)]);
    }
}

#[test]
fn an_unknown_length_is_told_as_null() {
    let nginx = Nginx::start(&Config {
        chunked: true,
        ..Config::default()
    });
    nginx.put("file", &FILE);
    let work = Workdir::new();
    let outcome = work.get().arg(nginx.url("file")).run();
    outcome.expect_code(0);
    assert!(outcome.event("file")["bytes"].is_null(), "{outcome}");
    assert_eq!(outcome.event("done")["bytes"], FILE.len(), "{outcome}");
}

#[test]
fn a_response_that_ends_with_the_connection_is_exact() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |_| {
        version
            .whole()
            .without("Accept-Ranges")
            .framing(Framing::UntilClose)
    });
    let work = Workdir::new();
    work.get().arg(server.url("/file")).run().expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn connections_closed_after_each_response_do_not_matter() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| {
        version
            .answer(request)
            .header("Connection", "close")
            .end(End::Close(u64::MAX))
    });
    let work = Workdir::new();
    work.get()
        .args(["--chunk-size", "64K"])
        .arg(server.url("/file"))
        .run()
        .expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn the_limit_on_connections_holds() {
    let content = Content::new(6, 4_000_000);
    for (args, most) in [(["-s", "3", "-x", "3"], 3), (["-s", "1", "-x", "1"], 1)] {
        let server = FaultServer::start();
        let version = Version::new(&content);
        server.script("/file", move |request| {
            version.answer(request).rate(500_000)
        });
        let work = Workdir::new();
        let run = work
            .get()
            .args(["--chunk-size", "256K"])
            .args(args)
            .arg(server.url("/file"))
            .spawn();
        if most > 1 {
            wait_until(
                "all connections to be in use",
                Duration::from_secs(20),
                || server.most_active() == most,
            );
        }
        run.wait().expect_code(0);
        work.assert_holds(&[("file", &content)]);
        assert_eq!(server.most_active(), most, "{args:?}");
    }
}

#[test]
fn the_file_gets_the_servers_modification_time() {
    let nginx = Nginx::start(&Config::default());
    nginx.put("file", &FILE);
    let work = Workdir::new();
    work.get().arg(nginx.url("file")).run().expect_code(0);
    let metadata = work.join("file").metadata().expect("the file is there");
    assert_eq!(metadata.modified().expect("it has an mtime"), long_ago());
}

#[test]
fn names_come_from_the_urls_path_decoded() {
    let server = FaultServer::start();
    for (path, name) in [
        ("/dir/plain.bin?signature=a/b&x=..", "plain.bin"),
        ("/with%20space.bin", "with space.bin"),
        ("/%C3%A4.bin#fragment", "ä.bin"),
    ] {
        let asked = path.split('#').next().expect("never empty");
        server.serve(asked, Version::new(&FILE));
        let work = Workdir::new();
        work.get().arg(server.url(path)).run().expect_code(0);
        work.assert_holds(&[(name, &FILE)]);
    }
}

#[test]
fn a_url_without_a_name_still_gives_one_exact_file() {
    let server = FaultServer::start();
    server.serve("/", Version::new(&FILE).last_modified(Some(LAST_MODIFIED)));
    let work = Workdir::new();
    work.get().arg(server.url("/")).run().expect_code(0);
    let names = names_in(work.path());
    assert_eq!(names.len(), 1, "{names:?}");
    assert_content(&work.join(&names[0]), &FILE);
}
