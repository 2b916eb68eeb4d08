use std::path::PathBuf;

use dalbe::receive_window::ReceiverPolicy;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::clock::Clock;
use crate::download::Regime;
use crate::download::part::Store;
use crate::download::queue::{TransferId, Work};
use crate::download::worker::Shared;
use crate::error::ErrorKind;
use crate::event::{Control, TimedEvent};
use crate::ranges::RangeSet;
use crate::settings::{
    FileAllocation, HttpSettings, RetrySettings, Settings, Target, TransferRequest,
};
use crate::transport::{HttpClient, ReceiveWindow};

const START: &str = "2026-03-01T12:00:00Z";

const MIB: u64 = 1 << 20;

fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn settings() -> Settings {
    Settings {
        http: HttpSettings::default(),
        split: 1,
        max_connections: 4,
        weight: 0.02,
        receiver: ReceiverPolicy::default(),
        chunk_size: None,
        file_allocation: FileAllocation::None,
        retry: RetrySettings {
            limit: None,
            limit_before_contact: None,
            base: secs(1),
            cap: secs(60),
        },
        limit_rate: None,
        resume: true,
        max_time: None,
        seed: 1,
    }
}

/// A lane at its start, with a transfer for each deadline, in s from then.
fn lane(deadlines: &[Option<i64>]) -> (Lane, UnboundedReceiver<TimedEvent>) {
    lane_of(&settings(), deadlines)
}

fn lane_of(
    settings: &Settings,
    deadlines: &[Option<i64>],
) -> (Lane, UnboundedReceiver<TimedEvent>) {
    let start: jiff::Timestamp = START.parse().unwrap();
    let requests = deadlines.iter().enumerate().map(|(index, by)| {
        let url = format!("http://127.0.0.1:1/{index}");
        TransferRequest {
            url: url.parse().unwrap(),
            target: Target::File(PathBuf::from("unused")),
            deadline: by.map(|s| start + SignedDuration::from_secs(s)),
            checksum: None,
        }
    });
    let window = ReceiveWindow {
        most: None,
        is_held: false,
    };
    let shared = Shared {
        client: HttpClient::new(&settings.http, 4, window).unwrap(),
        store: Store::new(true, FileAllocation::None),
        clock: Clock::starting_at(start),
        ceilings: Vec::new(),
        braking: None,
        messages: unbounded_channel().0,
    };
    let (events, listener) = unbounded_channel();
    let lane = Lane::new(settings, requests.collect(), shared, events, Regime::Own).unwrap();
    (lane, listener)
}

/// A lane with transfers of known sizes.
fn sized(transfers: &[(Option<i64>, u64)]) -> (Lane, UnboundedReceiver<TimedEvent>) {
    let deadlines: Vec<_> = transfers.iter().map(|&(by, _)| by).collect();
    let (mut lane, events) = lane(&deadlines);
    for (transfer, &(_, bytes)) in lane.transfers.iter_mut().zip(transfers) {
        transfer.total = Some(bytes);
    }
    (lane, events)
}

fn due(by: u64) -> Deadline {
    Deadline::new(Duration::ZERO, secs(by))
}

#[test]
fn the_line_is_even_from_its_beginning_to_the_aim() {
    let line = Line {
        from: secs(100),
        bytes: 1000,
    };
    for (now, left) in [(100, 1000.0), (200, 750.0), (400, 250.0), (500, 0.0)] {
        assert_eq!(line.remaining(secs(now), secs(500)), left, "{now}");
    }
    assert_eq!(line.remaining(secs(0), secs(500)), 1000.0, "not more");
    assert_eq!(line.remaining(secs(501), secs(500)), 0.0, "not less");
    for aim in [0, 100] {
        assert_eq!(line.remaining(secs(100), secs(aim)), 0.0, "no time at all");
    }
}

#[test]
fn the_demand_is_that_of_the_unfinished_transfers_with_deadlines() {
    let (lane, _) = lane(&[None]);
    assert_eq!(lane.demand(), None);
    let (mut lane, _) = sized(&[
        (Some(1000), 900),
        (None, 7_777),
        (Some(500), 600),
        (Some(100), 300),
    ]);
    lane.transfers[0].done = 200;
    lane.transfers[3].phase = Phase::Ended(crate::download::Outcome::Failed(ErrorKind::Other));
    lane.now = secs(50);
    let expected = Demand::of(secs(50), [(due(1000), 700), (due(500), 600)]);
    assert_eq!(lane.demand(), expected);
    assert_eq!(lane.time_left(), Some(secs(450)));
    lane.transfers[2].phase = Phase::Finishing;
    assert_eq!(lane.demand().map(|demand| demand.remaining), Some(700));
    lane.now = secs(501);
    assert_eq!(lane.time_left(), Some(secs(499)), "of those to come");
}

#[test]
fn a_transfer_of_unknown_size_counts_with_the_mean_of_the_others() {
    let (mut lane, _) = sized(&[(Some(100), 100), (Some(200), 500), (Some(300), 0)]);
    lane.transfers[0].done = 40;
    lane.transfers[2].total = None;
    let expected = Demand::of(
        Duration::ZERO,
        [(due(100), 60), (due(200), 500), (due(300), 300)],
    );
    assert_eq!(lane.demand(), expected);
}

#[test]
fn before_any_size_is_known_nothing_is_asked_for() {
    let (mut lane, _) = lane(&[Some(100), Some(200), None]);
    // Without a deadline it says nothing of the others.
    lane.transfers[2].total = Some(10);
    let demand = lane.demand().unwrap();
    assert_eq!((demand.zeta, demand.remaining), (0.0, 0));
    lane.transfers[0].total = Some(10);
    let demand = lane.demand().unwrap();
    assert!(demand.zeta.is_finite());
    assert_eq!(demand.remaining, 20);
}

#[test]
fn the_lag_is_what_is_missing_to_an_even_pace() {
    let (mut lane, _) = sized(&[(Some(1000), 980), (None, 100), (Some(2000), 0)]);
    lane.transfers[2].total = None;
    assert_eq!(lane.lag(), Some(0.0));
    lane.now = secs(490);
    assert_eq!(lane.lag(), Some(490.0), "aimed at is 980 s");
    lane.transfers[0].done = 500;
    assert_eq!(lane.lag(), Some(-10.0));
    // A pace begins when the size is known.
    lane.transfers[2].total = Some(50);
    assert_eq!(lane.lag(), Some(-10.0));
    lane.now = secs(2000);
    assert_eq!(lane.lag(), Some(480.0 + 50.0), "all is due");
    let (mut without, _) = sized(&[(None, 10)]);
    assert_eq!(without.lag(), None);
}

#[test]
fn when_the_clock_is_set_all_deadlines_are_planned_anew() {
    let (mut lane, _) = sized(&[(Some(3600), 10), (None, 10), (Some(900), 10)]);
    for transfer in &lane.transfers {
        let work = Work::Ranges(RangeSet::from(0..10));
        lane.queue
            .insert(transfer.id, transfer.deadline, work)
            .unwrap();
    }
    lane.lag();
    lane.transfers[0].is_foretold = true;
    lane.now = secs(100);
    let by = |lane: &Lane| {
        let deadlines = lane.transfers.iter();
        deadlines
            .map(|transfer| Some(transfer.deadline?.by().as_secs()))
            .collect::<Vec<_>>()
    };
    let queued = |lane: &Lane| {
        let due = lane.queue.due();
        due.map(|(due, _)| due.by().as_secs()).collect::<Vec<_>>()
    };
    // Adjusted, as NTP does it: not a jump, however often.
    for ms in [300, 900, -900, 0] {
        lane.plan_anew_if_off(SignedDuration::from_millis(ms));
        assert_eq!(by(&lane), [Some(3600), None, Some(900)]);
        assert!(lane.transfers[0].is_foretold);
    }
    // Ten minutes forward: so much less time is left.
    lane.plan_anew_if_off(SignedDuration::from_secs(600));
    assert_eq!(by(&lane), [Some(3000), None, Some(300)]);
    assert_eq!(queued(&lane), [300, 3000]);
    assert_eq!(
        lane.transfers[0].deadline,
        Some(Deadline::new(secs(100), secs(3000))),
        "with the margin of the time that is left"
    );
    assert!(!lane.transfers[0].is_foretold, "it may be said again");
    assert_eq!(lane.lag(), Some(0.0), "an even pace from now on");
    // What goes on drifting slowly is noticed once it matters.
    for (ms, first) in [(600_400, 3000), (600_900, 3000), (601_300, 2998)] {
        lane.plan_anew_if_off(SignedDuration::from_millis(ms));
        assert_eq!(by(&lane)[0], Some(first), "{ms} ms");
    }
    // Back again, and further.
    lane.plan_anew_if_off(SignedDuration::ZERO);
    assert_eq!(by(&lane), [Some(3600), None, Some(900)]);
    lane.plan_anew_if_off(SignedDuration::from_hours(-1));
    assert_eq!(by(&lane), [Some(7200), None, Some(4500)]);
    lane.plan_anew_if_off(SignedDuration::from_hours(1));
    assert_eq!(by(&lane), [Some(0), None, Some(0)], "both are over");
    assert_eq!(lane.time_left(), None);
    assert_eq!(lane.demand().map(|demand| demand.overdue), Some(20));
}

/// Takes a sample of the flows each second, and returns the forecasts.
fn forecasts(
    lane: &mut Lane,
    events: &mut UnboundedReceiver<TimedEvent>,
    seconds: u64,
    w: f64,
    rate: f64,
) -> Vec<(String, f64)> {
    for _ in 0..seconds {
        lane.now += secs(1);
        lane.admission.moved(lane.now, rate as u64, true, || None);
        let zeta = lane.demand().map_or(0.0, |demand| demand.zeta);
        let sample = PaceSample {
            n: 0.0,
            m: 1.0,
            w,
            rate,
        };
        lane.forecast(&sample, zeta);
    }
    std::iter::from_fn(|| events.try_recv().ok())
        .filter_map(|timed| match timed.event {
            Event::Forecast { url, late_s, .. } => Some((url, late_s)),
            _ => None,
        })
        .collect()
}

#[test]
fn what_will_be_late_is_foretold_once_when_the_flows_have_shown_what_they_can() {
    // 100 MiB in 100 s ask for 1 MiB/s.
    let (mut lane, mut events) = sized(&[(Some(100), 100 * MIB)]);
    lane.most_connections = 1;
    let half = 0.5 * MIB as f64;
    let mut seen = |seconds, w, rate| forecasts(&mut lane, &mut events, seconds, w, rate);
    assert_eq!(seen(20, 0.9, half), [], "it can still do more");
    assert_eq!(seen(4, 1.0, half), [], "too short to tell");
    assert_eq!(seen(1, 0.9, half), [], "it could do more after all");
    assert_eq!(seen(4, 1.0, half), []);
    let said = seen(10, 1.0, half);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].0.ends_with("/0"), "{said:?}");
    // 200 s are needed (nothing is done yet), and some 70 are left.
    assert!((125.0..135.0).contains(&said[0].1), "{said:?}");
    assert_eq!(seen(20, 1.0, half), [], "only once");
}

#[test]
fn nothing_is_foretold_of_what_will_be_in_time_nor_while_nothing_moves() {
    let (mut lane, mut events) = sized(&[(Some(200), 50 * MIB), (None, 1 << 40)]);
    let said = forecasts(&mut lane, &mut events, 50, 1.0, MIB as f64);
    assert_eq!(said, []);
    let (mut lane, mut events) = sized(&[(Some(200), 50 * MIB)]);
    assert_eq!(forecasts(&mut lane, &mut events, 50, 1.0, 0.0), []);
}

#[test]
fn of_several_transfers_those_are_foretold_that_the_earlier_ones_leave_no_time_for() {
    // Together they need 250 s of the path, the first two 100.
    let (mut lane, mut events) = sized(&[
        (Some(180), 150 * MIB),
        (Some(60), 20 * MIB),
        (Some(120), 80 * MIB),
    ]);
    lane.most_connections = 1;
    let said = forecasts(&mut lane, &mut events, 10, 1.0, MIB as f64);
    let urls: Vec<_> = said.iter().map(|(url, _)| &url[url.len() - 2..]).collect();
    assert_eq!(urls, ["/0"], "{said:?}");
    // A path half as fast: then the other two are late as well.
    let said = forecasts(&mut lane, &mut events, 40, 1.0, 0.4 * MIB as f64);
    assert!(said.iter().any(|(url, _)| url.ends_with("/2")), "{said:?}");
    assert!(!said.iter().any(|(url, _)| url.ends_with("/0")), "once");
}

#[test]
fn the_transfers_of_the_lane_are_those_of_the_queue() {
    let (mut lane, _) = sized(&[(Some(60), 10)]);
    let id = TransferId(0);
    lane.queue
        .insert(id, lane.transfers[0].deadline, Work::Stream(Some(10)))
        .unwrap();
    lane.plan_anew_if_off(SignedDuration::from_secs(-60));
    assert_eq!(
        lane.queue.due().next().map(|(due, _)| due.by()),
        Some(secs(120))
    );
}

mod recorded;
