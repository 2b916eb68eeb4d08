//! A server that answers once in a while with the whole file in place of a
//! range, as content networks do while they fill their caches: nothing that
//! is on disk is thrown away for that.

use std::sync::atomic::{AtomicUsize, Ordering};

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::Request;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const SIZE: u64 = 2_000_000;
const FILE: Content = Content::new(220, SIZE);
const RATE: u64 = 400_000;

fn get(work: &Workdir, server: &FaultServer) -> Fairbat {
    work.get()
        .args(["--file-allocation", "none", "-x", "1", "-o", "file"])
        .arg(server.url("/file"))
}

/// Bytes that the requests for ranges asked for.
fn asked_bytes(requests: &[Request]) -> u64 {
    let ranges = requests.iter().filter_map(Request::range);
    ranges
        .map(|(first, last)| last.map_or(SIZE, |last| last + 1) - first)
        .sum()
}

#[test]
fn one_whole_file_in_answer_to_the_probe_throws_nothing_away() {
    let version = Version::new(&FILE);
    for version in [version.clone().etag(None), version] {
        let server = FaultServer::start();
        let work = Workdir::new();
        let slow = version.clone();
        server.script("/file", move |request| slow.answer(request).rate(RATE));
        let mut first = get(&work, &server).spawn();
        first.wait_for_part(&work.join("file"), SIZE / 2);
        first.signal("INT");
        first.wait().expect_code(130);

        let before = server.requests().len();
        let asked = AtomicUsize::new(0);
        server.script("/file", move |request| {
            match asked.fetch_add(1, Ordering::SeqCst) {
                0 => version.whole(),
                _ => version.answer(request),
            }
        });
        let second = get(&work, &server).run();
        second.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        let files = second.events_named("file");
        let resumed = files.last().and_then(|file| file["resumed_bytes"].as_u64());
        assert!(resumed >= Some(SIZE / 2), "{second}");
        let after = &server.requests()[before..];
        let asked = asked_bytes(after);
        assert!(
            asked < SIZE * 3 / 4,
            "asked for {asked} bytes, though half were there: {second}"
        );
    }
}

/// Fetches in ranges of 64 KiB, of which the data requests with these numbers
/// are answered with the whole file.
fn assert_nothing_thrown_away(etag: &str, strays: &'static [usize]) {
    let server = FaultServer::start();
    let version = Version::new(&FILE).etag(Some(etag));
    server.script("/file", move |request| {
        if !request.is_probe() && strays.contains(&request.nth_data) {
            version.whole()
        } else {
            version.answer(request)
        }
    });
    let work = Workdir::new();
    let outcome = get(&work, &server).args(["--chunk-size", "64K"]).run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    for retry in outcome.events_named("retry") {
        let reason = retry["reason"].as_str().expect("a reason");
        assert!(!reason.contains("starting over"), "{etag}: {outcome}");
    }
    let requests = server.requests();
    let without_range = requests.iter().filter(|r| r.range().is_none()).count();
    assert_eq!(without_range, 0, "{etag}: asked for all of it: {outcome}");
    let asked = asked_bytes(&requests);
    let most = SIZE + (strays.len() as u64 + 2) * 65_536;
    assert!(asked <= most, "{etag}: asked for {asked} bytes: {outcome}");
}

#[test]
fn whole_files_far_apart_throw_nothing_away() {
    // Nothing that could go into If-Range: each one is a refused range.
    assert_nothing_thrown_away("W/\"weak\"", &[5, 20]);
    assert_nothing_thrown_away("W/\"weak\"", &[5, 15, 25]);
}

#[test]
fn whole_files_in_answer_to_a_range_without_condition_throw_nothing_away() {
    // The first of each pair answers the range with If-Range.
    assert_nothing_thrown_away("\"strong\"", &[5, 6, 20, 21]);
}
