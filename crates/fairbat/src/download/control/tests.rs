use std::path::PathBuf;

use dalbe::receive_window::{LeverKind, ReceiverPolicy};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use std::time::Duration;

use dalbe::deadline::Demand;
use dalbe::weight::ControllerPolicy;
use jiff::SignedDuration;

use super::*;
use crate::clock::Clock;
use crate::download::part::PartStore;
use crate::download::pieces::ChunkSizer;
use crate::download::run::Action;
use crate::download::run_path::RunPath;
use crate::download::setup::Setup;
use crate::download::worker::{Message, RunContext, WorkerId};
use crate::error::ErrorKind;
use crate::event::{Control, Event, TimedEvent};
use crate::lane::settings::Mode;
use crate::lane::{Lane, LaneSettings};
use crate::settings::{
    FileAllocation, HttpSettings, KnownFile, RetrySettings, Settings, Target, TransferRequest,
};
use crate::tests::set_clock;
use crate::transport::{HttpClient, ReceiveWindow, RequestContext, Tap};

const START: &str = "2026-03-01T12:00:00Z";

const MIB: u64 = 1 << 20;

fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn settings() -> Settings {
    Settings {
        paths: Vec::new(),
        http: HttpSettings::default(),
        split: 1,
        max_connections: 4,
        weight: 0.02,
        max_weight: 1,
        receiver: ReceiverPolicy::default(),
        controller: ControllerPolicy::default(),
        chunk_size: None,
        file_allocation: FileAllocation::None,
        retry: RetrySettings {
            limit: None,
            limit_before_contact: None,
            base: secs(1),
            cap: secs(60),
            max_retry_after: secs(60),
        },
        limit_rate: None,
        max_size: None,
        machine: None,
        resume: true,
        max_time: None,
        seed: 1,
    }
}

/// A run at its start, with a transfer for each deadline, in s from then.
fn run(deadlines: &[Option<i64>]) -> (Run, UnboundedReceiver<TimedEvent>) {
    run_of(&settings(), deadlines)
}

fn run_of(settings: &Settings, deadlines: &[Option<i64>]) -> (Run, UnboundedReceiver<TimedEvent>) {
    let start: jiff::Timestamp = START.parse().unwrap();
    set_clock(Duration::ZERO, SignedDuration::ZERO);
    let requests = deadlines.iter().enumerate().map(|(index, by)| {
        let url = format!("http://127.0.0.1:1/{index}");
        TransferRequest {
            url: url.parse().unwrap(),
            mirrors: Vec::new(),
            target: Target::File(PathBuf::from("unused")),
            deadline: by.map(|s| start + SignedDuration::from_secs(s)),
            checksum: None,
            known: KnownFile::default(),
        }
    });
    let window = ReceiveWindow {
        max_window: None,
        is_held: false,
    };
    let clock = Clock::starting_at(start);
    let mode = Mode::Batch {
        min_connections: settings.split,
        window: deadlines.iter().flatten().min().map(|&by| secs(by as u64)),
    };
    let limits = LaneSettings {
        weight: settings.weight,
        limit_rate: settings.limit_rate,
        ..LaneSettings::new(settings.max_connections)
    };
    let lane = Lane::of_run(limits, mode, clock).unwrap();
    let context = RunContext {
        client: HttpClient::new(&settings.http, 4, Tap::Receive(window)).unwrap(),
        store: Arc::new(PartStore::new(true, FileAllocation::None)),
        clock,
        limits: RequestContext::default(),
        max_size: None,
        window_manager: None,
        messages: unbounded_channel().0,
    };
    let (events, listener) = unbounded_channel();
    let setup = Setup {
        lever: LeverKind::None,
        paths: vec![RunPath::new(
            Arc::new(context),
            lane,
            None,
            ChunkSizer::new(None),
        )],
        is_stream: false,
        place: None,
        requests: requests.collect(),
        arriving: None,
    };
    let (mut run, _) = Run::new(settings, setup, events);
    // There is nobody to ask.
    run.to_ask.clear();
    (run, listener)
}

/// Moves the clocks to `now`, and the wall clock by `drift` besides.
fn at(run: &mut Run, now: u64, drift: SignedDuration) {
    set_clock(secs(now), drift);
    run.now = secs(now);
    run.paths[0].lane.notice_clock();
    run.notice_clock();
}

/// What the lane demands of the run now.
fn demand(run: &Run) -> Option<Demand> {
    run.set_backlogs();
    run.paths[0].lane.with_core(|core, now| core.demand(now))
}

fn time_left(run: &Run) -> Option<Duration> {
    run.set_backlogs();
    run.paths[0].lane.with_core(|core, now| core.time_left(now))
}

/// A run with transfers of known sizes.
fn sized(transfers: &[(Option<i64>, u64)]) -> (Run, UnboundedReceiver<TimedEvent>) {
    let deadlines: Vec<_> = transfers.iter().map(|&(by, _)| by).collect();
    let (mut run, events) = run(&deadlines);
    for (transfer, &(_, bytes)) in run.transfers.iter_mut().zip(transfers) {
        transfer.total = Some(bytes);
    }
    (run, events)
}

fn due(by: u64) -> Deadline {
    Deadline::new(Duration::ZERO, secs(by))
}

#[test]
fn the_demand_is_that_of_the_unfinished_transfers_with_deadlines() {
    let (run, _) = run(&[None]);
    assert_eq!(demand(&run), None);
    let (mut run, _) = sized(&[
        (Some(1000), 900),
        (None, 7_777),
        (Some(500), 600),
        (Some(100), 300),
    ]);
    run.transfers[0].done = 200;
    run.transfers[3].stage = Stage::Ended(crate::download::Outcome::Failed(ErrorKind::Other));
    at(&mut run, 50, SignedDuration::ZERO);
    let expected = Demand::of(secs(50), [(due(1000), 700), (due(500), 600)]);
    assert_eq!(demand(&run), expected);
    assert_eq!(time_left(&run), Some(secs(450)));
    run.transfers[2].stage = Stage::Finishing(None);
    assert_eq!(demand(&run).map(|demand| demand.remaining), Some(700));
    at(&mut run, 501, SignedDuration::ZERO);
    assert_eq!(time_left(&run), Some(secs(499)), "of those to come");
}

#[test]
fn a_transfer_of_unknown_size_counts_with_the_mean_of_the_others() {
    let (mut run, _) = sized(&[(Some(100), 100), (Some(200), 500), (Some(300), 0)]);
    run.transfers[0].done = 40;
    run.transfers[2].total = None;
    let expected = Demand::of(
        Duration::ZERO,
        [(due(100), 60), (due(200), 500), (due(300), 300)],
    );
    assert_eq!(demand(&run), expected);
}

#[test]
fn before_any_size_is_known_nothing_is_asked_for() {
    let (mut run, _) = run(&[Some(100), Some(200), None]);
    // Without a deadline it says nothing of the others.
    run.transfers[2].total = Some(10);
    let asked = demand(&run).unwrap();
    assert_eq!((asked.zeta, asked.remaining), (0.0, 0));
    run.transfers[0].total = Some(10);
    let asked = demand(&run).unwrap();
    assert!(asked.zeta.is_finite());
    assert_eq!(asked.remaining, 20);
}

#[test]
fn the_lag_is_what_is_missing_to_an_even_pace() {
    let (mut run, _) = sized(&[(Some(1000), 900), (None, 100), (Some(2000), 0)]);
    run.transfers[2].total = None;
    assert_eq!(run.lag(), Some(0.0));
    at(&mut run, 450, SignedDuration::ZERO);
    assert_eq!(run.lag(), Some(450.0), "aimed at is 900 s");
    run.transfers[0].done = 500;
    assert_eq!(run.lag(), Some(-50.0));
    // A pace begins when the size is known.
    run.transfers[2].total = Some(50);
    assert_eq!(run.lag(), Some(-50.0));
    at(&mut run, 2000, SignedDuration::ZERO);
    assert_eq!(run.lag(), Some(400.0 + 50.0), "all is due");
    let (mut without, _) = sized(&[(None, 10)]);
    assert_eq!(without.lag(), None);
}

#[test]
fn when_the_clock_is_set_all_deadlines_are_planned_anew() {
    let (mut run, _) = sized(&[(Some(3600), 10), (None, 10), (Some(900), 10)]);
    run.lag();
    let by = |run: &Run| {
        let deadlines = run.transfers.iter();
        deadlines
            .map(|transfer| Some(transfer.deadline?.by().as_secs()))
            .collect::<Vec<_>>()
    };
    // Adjusted, as NTP does it: not a jump, however often.
    for ms in [300, 900, -900, 0] {
        at(&mut run, 100, SignedDuration::from_millis(ms));
        assert_eq!(by(&run), [Some(3600), None, Some(900)]);
        assert!(run.transfers[0].even_pace.is_some());
    }
    // Ten minutes forward: that much less time is left.
    at(&mut run, 100, SignedDuration::from_secs(600));
    assert_eq!(by(&run), [Some(3000), None, Some(300)]);
    assert_eq!(
        run.transfers[0].deadline,
        Some(Deadline::new(secs(100), secs(3000))),
        "with the margin of the time that is left"
    );
    assert_eq!(run.lag(), Some(0.0), "an even pace from now on");
    // What goes on drifting slowly is noticed once it matters.
    for (ms, first) in [(600_400, 3000), (600_900, 3000), (601_300, 2998)] {
        at(&mut run, 100, SignedDuration::from_millis(ms));
        assert_eq!(by(&run)[0], Some(first), "{ms} ms");
    }
    // Back again, and further.
    at(&mut run, 100, SignedDuration::ZERO);
    assert_eq!(by(&run), [Some(3600), None, Some(900)]);
    at(&mut run, 100, SignedDuration::from_hours(-1));
    assert_eq!(by(&run), [Some(7200), None, Some(4500)]);
    at(&mut run, 100, SignedDuration::from_hours(1));
    assert_eq!(by(&run), [Some(0), None, Some(0)], "both are over");
    assert_eq!(time_left(&run), None);
    assert_eq!(demand(&run).map(|demand| demand.overdue), Some(20));
}

mod recorded;

#[test]
fn a_wait_that_ends_between_messages_is_not_lost() {
    let (mut run, _events) = run(&[None]);
    run.in_progress.insert(0);
    let way = run.transfers[0].main_way(0);
    run.transfers[0].way_mut(way).unwrap().tries.not_before = secs(5);
    run.now = secs(4);
    run.dispatch();
    assert_eq!(run.wake, Some(secs(5)));
    // After this message no work is looked for.
    let progress = Message::Progress(WorkerId(0), 0);
    run.apply(secs(6), Action::Message(progress));
    assert_eq!(run.wake, Some(secs(5)));
    // So that the search for work finds none.
    run.is_stopping = true;
    run.dispatch();
    assert_eq!(run.wake, None);
}
