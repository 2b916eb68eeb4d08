//! Transfers in a lane that they share: real files over real connections.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::files::{LENGTH, expect_whole, server, settings};
use fairbat::download::{LanePlace, Outcome, Report, RunMode, Stop, client, run};
use fairbat::lane::{Lane, LaneSettings, Service};
use fairbat::settings::{KnownFile, Target, TransferRequest};
use fairbat::transport::RequestContext;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc::unbounded_channel;

fn lane() -> Lane {
    let lane = Lane::start(LaneSettings::new(1));
    lane.expect("a lane")
}

fn within(seconds: i64) -> Timestamp {
    #[allow(
        clippy::disallowed_methods,
        reason = "a deadline is a moment of the wall clock"
    )]
    let now = Timestamp::now();
    now + SignedDuration::from_secs(seconds)
}

/// A transfer, and what is counted of it.
struct Counted {
    report: Report,
    bytes: u64,
    chunks: u64,
}

async fn fetch(lane: &Lane, url: String, to: &Path, deadline: Option<Timestamp>) -> Counted {
    let settings = settings(300_000);
    let request = TransferRequest {
        url: url.parse().expect("a URL"),
        mirrors: Vec::new(),
        target: Target::File(to.to_owned()),
        deadline,
        checksum: None,
        known: KnownFile::default(),
    };
    let (bytes, chunks) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let place = LanePlace {
        member: lane.enter("host", Service::of_batch(deadline)),
        client: client(
            &settings.http,
            settings.max_connections,
            None,
            Service::Scavenge,
        )
        .expect("a client"),
        context: RequestContext {
            job: Some(Arc::clone(&bytes)),
            ..RequestContext::default()
        },
        chunks: Arc::clone(&chunks),
    };
    let (events, _) = unbounded_channel();
    let report = run(
        settings,
        RunMode::InLane(place, Box::new(request)),
        Stop::default(),
        events,
    )
    .await;
    Counted {
        report: report.expect("it could start"),
        bytes: bytes.load(Ordering::Relaxed),
        chunks: chunks.load(Ordering::Relaxed),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_waits_for_its_turn_and_counts_as_the_lane_does() {
    let (address, asked) = server();
    let directory = tempfile::tempdir().unwrap();
    let lane = lane();
    let other = lane.enter("other", Service::of_batch(None));
    let permit = other.admit().await;
    let file = directory.path().join("file");
    let held = async {
        let mut samples = lane.samples();
        let mut sample = async || {
            samples.changed().await.unwrap();
            *samples.borrow_and_update()
        };
        while sample().await.waiting == 0 {}
        sample().await;
        assert!(
            asked.lock().expect("nobody panicked").is_empty(),
            "it has to wait"
        );
        drop(permit);
    };
    let url = format!("http://{address}/file");
    let (counted, ()) = tokio::join!(fetch(&lane, url, &file, None), held);
    assert!(matches!(
        counted.report.outcomes[..],
        [Outcome::Done { .. }]
    ));
    expect_whole(&file);
    assert_eq!(counted.bytes, LENGTH);
    assert_eq!(lane.bytes(), LENGTH);
    assert_eq!(counted.chunks, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_first_has_the_connection_to_its_end() {
    let (address, asked) = server();
    let directory = tempfile::tempdir().unwrap();
    let lane = lane();
    let other = lane.enter("other", Service::of_batch(Some(within(300))));
    let permit = other.admit().await;
    let fetch = async |name: &str, deadline| {
        let url = format!("http://{address}/{name}");
        fetch(&lane, url, &directory.path().join(name), deadline).await
    };
    let both_wait = async {
        let mut samples = lane.samples();
        samples
            .wait_for(|sample| sample.waiting == 3)
            .await
            .unwrap();
        drop(permit);
    };
    tokio::join!(
        fetch("none", None),
        fetch("late", Some(within(900))),
        fetch("early", Some(within(600))),
        both_wait
    );
    let asked = asked.lock().expect("nobody panicked");
    let mut order = asked.clone();
    order.dedup();
    assert_eq!(order, ["/early", "/late", "/none"], "{asked:?}");
    for name in ["early", "late", "none"] {
        expect_whole(&directory.path().join(name));
    }
    assert_eq!(lane.bytes(), 3 * LENGTH);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_is_overtaken_goes_on_when_it_gets_its_connection_back() {
    let (address, asked) = server();
    let directory = tempfile::tempdir().unwrap();
    let lane = lane();
    let file = directory.path().join("slow");
    let overtaking = async {
        while asked.lock().expect("nobody panicked").is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let other = lane.enter("other", Service::of_batch(Some(within(300))));
        let permit = other.admit().await;
        let mut samples = lane.samples();
        // The transfer waits for its next piece, and has more after that.
        samples
            .wait_for(|sample| sample.waiting == 1)
            .await
            .unwrap();
        drop(permit);
    };
    let url = format!("http://{address}/slow");
    let (counted, ()) = tokio::join!(fetch(&lane, url, &file, None), overtaking);
    assert!(matches!(
        counted.report.outcomes[..],
        [Outcome::Done { .. }]
    ));
    expect_whole(&file);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_counts_from_the_transfer_and_not_from_the_start_of_the_lane() {
    let (address, _) = server();
    let directory = tempfile::tempdir().unwrap();
    let lane = lane();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let other = lane.enter("other", Service::of_batch(Some(within(0))));
    let permit = other.admit().await;
    let file = directory.path().join("file");
    let url = format!("http://{address}/file");
    let held = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        drop(permit);
    };
    let (counted, ()) = tokio::join!(fetch(&lane, url, &file, Some(within(1))), held);
    assert_eq!(
        counted.report.outcomes,
        [Outcome::Done { late: true }],
        "it waited past its deadline"
    );
}
