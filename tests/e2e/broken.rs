//! Connections that break, stall or lie about how much they bring: the run
//! goes on from what it has, and the file is exact in the end.

use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::front;
use fairbat_tests::message::{End, Framing, Reply, Request};
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(40, 1_000_000);

/// Serves `FILE` by this script and fetches it; it must be exact in the end.
fn assert_exact(
    args: &[&str],
    script: impl Fn(&Version, &Request) -> Reply + Send + Sync + 'static,
) -> FaultServer {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| script(&version, request));
    let work = Workdir::new();
    work.get()
        .args(args)
        .arg(server.url("/file"))
        .run()
        .expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    server
}

/// The first byte that each request for data asked for.
fn asked_starts(server: &FaultServer) -> Vec<u64> {
    let requests = server.requests();
    let data = requests.iter().filter(|request| !request.is_probe());
    data.filter_map(|request| Some(request.range()?.0))
        .collect()
}

/// Those of which the client can see that they have broken off.
fn framings() -> Vec<Framing> {
    let mut framings = vec![Framing::Length, Framing::Chunked];
    framings.retain(|framing| matches!(framing, Framing::Length) || !front::is_there());
    framings
}

#[test]
fn bodies_cut_short_are_continued_where_they_ended() {
    for end in [End::Close(150_000), End::Reset(150_000)] {
        for framing in [Framing::Length, Framing::Chunked] {
            let server = assert_exact(&[], move |version, request| {
                version.answer(request).framing(framing).end(end)
            });
            let starts = asked_starts(&server);
            assert!(starts.len() >= 6, "{end:?}: {starts:?}");
            // Progress is kept: no start is asked for again and again.
            assert!(starts.is_sorted_by(|a, b| a < b), "{end:?}: {starts:?}");
        }
    }
}

#[test]
fn bodies_cut_short_over_several_connections_are_continued() {
    for end in [End::Close(20_000), End::Reset(20_000)] {
        assert_exact(
            &["-s", "4", "--chunk-size", "64K"],
            move |version, request| match request.nth_data % 3 {
                2 => version.answer(request),
                _ => version.answer(request).end(end),
            },
        );
    }
}

#[test]
fn connections_that_end_before_any_answer_are_tried_again() {
    assert_exact(&[], |version, request| match request.nth {
        // Closing without a byte: an idle connection timing out looks so.
        0 | 2 => Reply::new(200, Vec::new()).framing(Framing::Nothing),
        _ => version.answer(request),
    });
}

#[test]
fn a_stalled_body_is_given_up_and_continued() {
    let server = assert_exact(&["--stall-timeout", "1s"], |version, request| {
        match (request.is_probe(), request.nth_data) {
            (false, 0 | 1) => version.answer(request).end(End::Stall(200_000)),
            _ => version.answer(request),
        }
    });
    assert!(server.requests().len() >= 3);
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let server = FaultServer::start();
    server.script("/file", |_| {
        Reply::new(200, vec![0; 10])
            .framing(Framing::Nothing)
            .end(End::Stall(0))
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--stall-timeout", "500ms", "--retry", "2"])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(5);
    work.assert_holds(&[]);
}

/// A server without ranges: nothing can be continued, so a broken stream
/// starts from zero.
fn stream(version: &Version) -> Reply {
    version.whole().without("Accept-Ranges")
}

#[test]
fn a_broken_stream_without_ranges_starts_over() {
    for end in [End::Close(700_000), End::Reset(700_000)] {
        for framing in framings() {
            assert_exact(&[], move |version, request| match request.nth {
                0..=2 => stream(version).framing(framing).end(end),
                _ => stream(version).framing(framing),
            });
        }
    }
}

#[test]
fn a_reset_stream_that_only_ends_with_its_connection_is_not_the_file() {
    if front::is_there() {
        return;
    }
    assert_exact(&[], |version, request| match request.nth {
        0 | 1 => stream(version)
            .framing(Framing::UntilClose)
            .end(End::Reset(700_000)),
        _ => stream(version).framing(Framing::UntilClose),
    });
}

#[test]
fn a_stream_that_always_breaks_is_given_up() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |_| stream(&version).end(End::Close(700_000)));
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "3"])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(5);
    assert!(!work.join("file").exists());
    let requests = server.requests().len();
    assert!(requests <= 10, "{requests} requests");
}

#[test]
fn progress_resets_the_count_of_tries() {
    // About 50 failures in all, but each one after some progress.
    assert_exact(
        &["--retry", "2", "--retry-wait", "1ms"],
        |version, request| {
            if request.is_probe() {
                version.answer(request)
            } else {
                version.answer(request).end(End::Close(20_000))
            }
        },
    );
}

#[test]
fn more_bytes_than_asked_for_never_get_into_the_file() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| {
        let reply = version.answer(request);
        if request.is_probe() {
            return reply;
        }
        let mut body = reply.body_bytes().to_vec();
        body.extend_from_slice(&[0xee; 5000]);
        reply.body(body)
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--chunk-size", "64K", "--retry", "2"])
        .arg(server.url("/file"))
        .run();
    work.assert_exact_or_refused(&outcome, "file", &FILE);
}

#[test]
fn honest_but_shorter_ranges_than_asked_for_never_give_a_wrong_file() {
    // RFC 9110 section 15.3.7: a server may send less than was asked for. It
    // is welcome to be refused, as a wrong end is.
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| match request.range() {
        Some((first, last)) if !request.is_probe() => {
            let limit = first + 99_999;
            version.part((first, Some(last.unwrap_or(limit).min(limit))))
        }
        _ => version.answer(request),
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--chunk-size", "256K", "--retry", "3"])
        .arg(server.url("/file"))
        .run();
    work.assert_exact_or_refused(&outcome, "file", &FILE);
}
