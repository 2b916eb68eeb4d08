//! Interrupted at random moments, a download still ends with the right file and
//! fetches next to nothing twice. A few interruptions run with the other tests, a hundred
//! with `make crash`.

use std::time::{Duration, Instant};

use fairbat_tests::bin::Running;
use fairbat_tests::content::Content;
use fairbat_tests::front;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::workdir::Workdir;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How often a download is interrupted: with the other tests, and in a campaign.
const FEW: u32 = 10;
const MANY: u32 = 100;

const SIZE: u64 = 200_000_000;

/// Rate in byte/s at which one run would take five seconds.
const RATE: u64 = SIZE / 5;

/// When a run is interrupted, in ms after its start.
const MOMENTS: std::ops::Range<u64> = 50..1200;

/// A run either ends by itself before its moment or is interrupted.
fn run_until(mut run: Running, moment: Duration, interrupt: impl Fn(&mut Running)) -> Outcome {
    let begin = Instant::now();
    while begin.elapsed() < moment && run.is_running() {
        std::thread::sleep(Duration::from_millis(1));
    }
    interrupt(&mut run);
    run.wait()
}

fn assert_survives(
    interruptions: u32,
    seed: u64,
    interrupt: impl Fn(&mut Running),
    was_interrupted: impl Fn(&Outcome) -> bool,
) {
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let content = Content::new(seed, SIZE);
    let nginx = Nginx::start(&Config {
        limit_rate: Some(RATE),
        ..Config::default()
    });
    nginx.put("file", &content);
    let (mut interrupted, mut downloads) = (0, 0);
    while interrupted < interruptions {
        let work = Workdir::new();
        let mut resumed = 0;
        let get = work.get().args(["-o", "file"]).arg(nginx.url("file"));
        loop {
            let outcome = if interrupted < interruptions {
                let moment = Duration::from_millis(random.random_range(MOMENTS));
                run_until(get.spawn(), moment, &interrupt)
            } else {
                get.run()
            };
            let had = resumed_bytes(&outcome).unwrap_or(resumed);
            assert!(
                had >= resumed,
                "lost bytes: had {resumed}, resumed {outcome}"
            );
            resumed = had;
            if outcome.code == Some(0) {
                break;
            }
            assert!(was_interrupted(&outcome), "{outcome}");
            interrupted += 1;
        }
        work.assert_holds(&[("file", &content)]);
        downloads += 1;
    }
    let total = downloads * SIZE;
    let twice = nginx.sent_bytes() - total;
    let share = twice as f64 / total as f64;
    eprintln!(
        "{interrupted} interruptions over {downloads} downloads: {twice} bytes fetched twice ({:.2} %)",
        100.0 * share
    );
    assert!(
        share < 0.05 || front::is_there(),
        "{twice} of {total} bytes fetched twice"
    );
}

/// What a run had from earlier ones; `None` when it did not get so far as to
/// say so.
fn resumed_bytes(outcome: &Outcome) -> Option<u64> {
    let whole = outcome
        .stdout
        .lines()
        .find(|line| line.contains("\"resumed_bytes\""))?;
    // The last line of a killed run may be incomplete.
    let event: serde_json::Value = serde_json::from_str(whole).ok()?;
    event["resumed_bytes"].as_u64()
}

fn assert_survives_kills(kills: u32, seed: u64) {
    let kill = |run: &mut Running| run.signal("KILL");
    assert_survives(kills, seed, kill, |outcome| outcome.signal == Some(9));
}

fn assert_survives_interrupts(interrupts: u32, seed: u64) {
    let interrupt = |run: &mut Running| {
        // A shell delivers no Ctrl-C before the program has begun.
        while run.is_running() && run.events().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        run.signal("INT");
    };
    assert_survives(interrupts, seed, interrupt, |outcome| {
        outcome.code == Some(130)
    });
}

#[test]
fn killed_10_times_a_download_of_200_mb_is_exact() {
    assert_survives_kills(FEW, 3);
}

#[test]
fn interrupted_10_times_a_download_of_200_mb_is_exact() {
    assert_survives_interrupts(FEW, 4);
}

#[test]
#[ignore = "takes a minute"]
fn killed_100_times_a_download_of_200_mb_is_exact() {
    assert_survives_kills(MANY, 1);
}

#[test]
#[ignore = "takes a minute"]
fn interrupted_100_times_a_download_of_200_mb_is_exact() {
    assert_survives_interrupts(MANY, 2);
}
