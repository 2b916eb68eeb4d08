//! Runs that meet on one file: each of them owns its part file or leaves it
//! alone, and what stands under the file's name is never wrong.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fairbat_tests::bin::{Fairbat, Running, suffixed};
use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::outcome::Outcome;
use fairbat_tests::poll::wait_until;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(200, 600_000);

/// Three seconds of one response.
const RATE: u64 = 200_000;

/// Serves `content` as `/x`, as fast as the header field `X-Rate` asks.
fn serve(content: &Content) -> FaultServer {
    let server = FaultServer::start();
    let version = Version::new(content);
    server.script("/x", move |request| {
        let rate = request.header("x-rate").and_then(|rate| rate.parse().ok());
        version.answer(request).rate(rate.expect("every run asks"))
    });
    server
}

fn get(work: &Workdir, server: &FaultServer, rate: u64) -> Fairbat {
    work.get()
        .args(["-x", "1", "-o", "x", "-H", &format!("X-Rate: {rate}")])
        .arg(server.url("/x"))
}

fn remove_part(target: &Path) {
    for suffix in [".part", ".part.fairbat"] {
        fs::remove_file(suffixed(target, suffix)).expect("removed");
    }
}

/// Panics unless the run noticed that its part file was taken from it.
#[track_caller]
fn assert_gave_way(outcome: &Outcome) {
    outcome
        .expect_code(6)
        .expect_said(&["no longer", "removed", "replaced", "taken"]);
    let error = outcome.event("error");
    assert_eq!(error["kind"], "disk", "{outcome}");
    // The directory is there: advice to make it would be wrong.
    let hint = error["hint"].as_str().expect("a hint");
    assert!(!hint.contains("mkdir"), "{outcome}");
}

/// Runs that started earlier and later on the same file, the part of the
/// earlier one removed in between; `later` is how fast the later one is.
fn assert_both_end_well(later: u64) {
    let server = serve(&FILE);
    let work = Workdir::new();
    let target = work.join("x");
    let mut first = get(&work, &server, RATE)
        .args(["--file-allocation", "none"])
        .spawn();
    first.wait_for_part(&target, FILE.len() / 3);
    remove_part(&target);
    let mut second = get(&work, &server, later).spawn();
    while first.is_running() || second.is_running() {
        if target.exists() {
            assert_content(&target, &FILE);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    second.wait().expect_code(0);
    assert_gave_way(&first.wait());
    work.assert_holds(&[("x", &FILE)]);
}

#[test]
fn a_run_whose_part_was_taken_does_not_finish_with_that_of_a_slower_one() {
    assert_both_end_well(RATE / 2);
}

#[test]
fn a_run_whose_part_was_taken_does_not_finish_after_a_faster_one() {
    assert_both_end_well(100 * RATE);
}

#[test]
fn a_run_whose_part_was_removed_says_so_and_the_next_one_starts_over() {
    let server = serve(&FILE);
    let work = Workdir::new();
    let target = work.join("x");
    let mut first = get(&work, &server, RATE)
        .args(["--file-allocation", "none"])
        .spawn();
    first.wait_for_part(&target, FILE.len() / 3);
    remove_part(&target);
    assert_gave_way(&first.wait());
    assert!(!target.exists());
    get(&work, &server, 100 * RATE).run().expect_code(0);
    work.assert_holds(&[("x", &FILE)]);
}

/// The record of a journal, without the lines that are added to it.
fn record(journal: &Path) -> Vec<String> {
    let text = fs::read(journal).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().take(3).map(str::to_owned).collect()
}

/// Waits until the run has received this many bytes, as it says itself.
fn wait_for_bytes(run: &Running, bytes: u64) {
    wait_until("bytes to arrive", Duration::from_secs(20), || {
        let events = run.events();
        let done = events
            .iter()
            .filter_map(|event| event["bytes_done"].as_u64());
        done.max() >= Some(bytes)
    });
}

#[test]
fn a_run_whose_part_was_taken_does_not_write_the_next_ones_journal() {
    // Space is reserved, so that the part is as long as any journal claims.
    let content = Content::new(201, 4_000_000);
    let server = serve(&content);
    let work = Workdir::new();
    let (target, journal) = (work.join("x"), work.join("x.part.fairbat"));
    let mut first = get(&work, &server, RATE).spawn();
    wait_for_bytes(&first, RATE);
    remove_part(&target);
    let second = get(&work, &server, RATE / 10).spawn();
    wait_until("the second run's part", Duration::from_secs(20), || {
        work.join("x.part").exists() && !record(&journal).is_empty()
    });
    let of_second = record(&journal);
    // The first run has bytes to enter in its journal every few seconds.
    let begin = Instant::now();
    while first.is_running() && record(&journal) == of_second {
        assert!(begin.elapsed() < Duration::from_secs(20), "never noticed");
        std::thread::sleep(Duration::from_millis(2));
    }
    for mut run in [first, second] {
        run.signal("KILL");
        let _ = run.wait();
    }
    get(&work, &server, 100 * RATE).run().expect_code(0);
    work.assert_holds(&[("x", &content)]);
}

/// How many runs start at once.
const CROWD: usize = 6;

#[track_caller]
fn assert_found_it_busy(outcome: &Outcome) {
    outcome.expect_code(6).expect_said(&["another process"]);
}

#[track_caller]
fn assert_no_damage(outcome: &Outcome) {
    let said = outcome.said().to_lowercase();
    for word in ["damaged", "not a journal", "starting over"] {
        assert!(!said.contains(word), "said {word:?}: {outcome}");
    }
}

#[test]
fn of_runs_that_start_at_once_each_gets_the_file_or_finds_it_busy() {
    let server = serve(&FILE);
    for round in 0..20 {
        // Short and long enough for the last one to come late or in between.
        let rate = [FILE.len() * 50, FILE.len() * 4][round % 2];
        let work = Workdir::new();
        let get = get(&work, &server, rate).arg("-v");
        let crowd: Vec<_> = (0..CROWD).map(|_| get.spawn()).collect();
        let outcomes: Vec<_> = crowd.into_iter().map(Running::wait).collect();
        let done = outcomes.iter().filter(|outcome| outcome.code == Some(0));
        assert!(done.count() > 0, "round {round}: {}", outcomes[0]);
        for outcome in &outcomes {
            if outcome.code != Some(0) {
                assert_found_it_busy(outcome);
            }
            assert_no_damage(outcome);
        }
        work.assert_holds(&[("x", &FILE)]);
    }
}

#[test]
fn runs_that_find_a_file_busy_leave_its_journal_alone() {
    let server = serve(&FILE);
    for _ in 0..8 {
        let work = Workdir::new();
        let begin = |rate| get(&work, &server, rate).args(["--file-allocation", "none"]);
        // Slow enough for all to find it busy.
        let slow = begin(RATE / 4);
        let mut crowd: Vec<_> = (0..CROWD).map(|_| slow.spawn()).collect();
        wait_until("all but one to give way", Duration::from_secs(20), || {
            crowd
                .iter_mut()
                .map(Running::is_running)
                .filter(|&is| is)
                .count()
                <= 1
        });
        let owner = crowd.iter_mut().position(Running::is_running);
        let mut owner = crowd.swap_remove(owner.expect("one goes on"));
        owner.wait_for_part(&work.join("x"), FILE.len() / 3);
        owner.signal("KILL");
        let _ = owner.wait();
        for run in crowd {
            assert_found_it_busy(&run.wait());
        }
        let next = begin(RATE * 100).arg("-v").run();
        next.expect_code(0);
        assert_no_damage(&next);
        assert!(next.resumed_bytes() > 0, "{next}");
        work.assert_holds(&[("x", &FILE)]);
    }
}
