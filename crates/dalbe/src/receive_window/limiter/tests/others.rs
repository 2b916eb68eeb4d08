//! Whose queue it is, and what becomes of the window then.

use super::link::{SEGMENT, info};
use super::*;
use crate::receive_window::PacketArrivals;

const BASE: Duration = Duration::from_millis(100);

/// Segments that fill the path: 10 Mbit/s and 100 ms.
const FULL: f64 = 83.0;

/// A connection that uses all of its window, looked at every 20 ms.
struct Flow {
    limiter: ReceiveWindowLimiter,
    now: Duration,
    received: f64,
    out_of_order: u32,
    /// Queueing delay that others make, s.
    others: f64,
    /// What others leave of the path, segments per base round-trip time.
    left: f64,
    /// Delay of the way back, s.
    way_back: f64,
    /// Whether there is an observer.
    is_observed: bool,
    /// Windows on their way to the sender.
    under_way: std::collections::VecDeque<f64>,
}

impl Flow {
    fn new() -> Self {
        Self {
            limiter: ReceiveWindowLimiter::new(ReceiverPolicy::Delay),
            now: Duration::ZERO,
            received: 0.0,
            out_of_order: 0,
            others: 0.0,
            left: FULL,
            way_back: 0.0,
            is_observed: false,
            under_way: std::iter::repeat_n(10.0, 5).collect(),
        }
    }

    /// One look; returns the window, segments.
    fn look(&mut self) -> f64 {
        let window = self.under_way.pop_front().unwrap();
        let bare = BASE.as_secs_f64() + self.way_back;
        let carried = self.left * bare / BASE.as_secs_f64();
        let own = (window - carried).max(0.0) * 0.0012;
        let rtt = bare + own + self.others;
        let rate = (window / rtt).min(self.left / BASE.as_secs_f64());
        self.now += ms(20);
        self.received += rate * 0.02 * SEGMENT;
        let seen = info(
            Duration::from_secs_f64(rtt),
            self.received as u64,
            self.out_of_order,
        );
        if self.is_observed {
            let arrivals = PacketArrivals {
                delay_us: Some(((own + self.others) * 1e6) as i64 - 4_000_000),
                ..PacketArrivals::default()
            };
            self.limiter.arrived(self.now, &arrivals);
        }
        let window = self
            .limiter
            .update(self.now, &seen, FlowTarget::YIELD, None);
        let window = f64::from(window.unwrap()) / SEGMENT;
        self.under_way.push_back(window);
        window
    }

    /// Windows of so many seconds.
    fn run(&mut self, seconds: f64) -> Vec<f64> {
        let looks = (seconds / 0.02) as usize;
        (0..looks).map(|_| self.look()).collect()
    }
}

fn mean(windows: &[f64]) -> f64 {
    windows.iter().sum::<f64>() / windows.len() as f64
}

#[test]
fn a_flow_yields_to_new_traffic_within_two_round_trips() {
    let mut flow = Flow::new();
    let before = mean(&flow.run(20.0)[900..]);
    assert!((before - FULL).abs() < 5.0, "{before}");
    flow.others = 0.020;
    flow.left = 0.9 * FULL;
    let after = flow.run(0.2);
    let last = after.last().unwrap();
    assert!(*last <= 0.55 * before, "{last} after {before}");
    let later = flow.run(2.0);
    assert!(later.last().unwrap() < &4.0, "{:?}", later.last());
}

#[test]
fn a_flow_does_not_yield_to_its_own_queue() {
    let mut flow = Flow::new();
    flow.run(20.0);
    // The path has become narrower: what it fills is too much at first.
    flow.left = 0.7 * FULL;
    // It asks whether others take what it leaves, and comes back when nobody does.
    let after = flow.run(15.0);
    let settled = mean(&after[500..]);
    assert!((settled - flow.left).abs() < 0.1 * FULL, "{settled}");
}

#[test]
fn a_flow_soon_regains_its_former_rate() {
    let mut flow = Flow::new();
    flow.run(20.0);
    (flow.others, flow.left) = (0.050, 0.5 * FULL);
    let beside = flow.run(3.0);
    assert!(*beside.last().unwrap() <= 2.5, "{:?}", beside.last());
    (flow.others, flow.left) = (0.0, FULL);
    let windows = flow.run(2.0);
    let full = windows.iter().position(|&window| window > 0.85 * FULL);
    assert!(full.is_some_and(|look| look < 75), "{windows:?}");
}

#[test]
fn the_capacity_of_a_path_that_was_always_shared_is_found() {
    let mut flow = Flow::new();
    (flow.others, flow.left) = (0.0, 6.0);
    flow.run(10.0);
    flow.left = FULL;
    let windows = flow.run(12.0);
    assert!(*windows.last().unwrap() > 0.85 * FULL, "{windows:?}");
}

/// A flow that yields.
fn yielding() -> Flow {
    let mut flow = Flow::new();
    flow.run(20.0);
    (flow.others, flow.left) = (0.050, 0.5 * FULL);
    flow.run(3.0);
    flow
}

/// The windows of this second beside a queue of about this length, s.
fn beside(flow: &mut Flow, queue: f64, second: u32) -> Vec<f64> {
    // A queue that never changes would be a longer path.
    flow.others = queue + 0.001 * f64::from(second % 2);
    flow.run(1.0)
}

fn is_knock(window: f64) -> bool {
    window > 3.0
}

#[test]
fn a_flow_knocks_at_a_short_queue_and_yields_again() {
    let minute = |queue| {
        let mut flow = yielding();
        (0..60)
            .flat_map(|second| beside(&mut flow, queue, second))
            .collect::<Vec<_>>()
    };
    let windows = minute(0.004);
    let knocking = windows.iter().filter(|&&window| is_knock(window)).count();
    // After 5, 10, 20 s, for 1.4 s each.
    assert!((100..300).contains(&knocking), "{knocking} of 3000");
    let most = windows.iter().copied().fold(0.0, f64::max);
    assert!((0.25 * FULL..0.35 * FULL).contains(&most), "{most}");
    let long = minute(0.015);
    assert!(!long.iter().any(|&window| is_knock(window)), "{long:?}");
}

#[test]
fn a_flow_grows_when_its_knock_is_answered() {
    let mut flow = yielding();
    let has_knocked =
        (0..20).any(|second| beside(&mut flow, 0.004, second).into_iter().any(is_knock));
    assert!(has_knocked);
    (flow.others, flow.left) = (0.0, FULL);
    let windows = flow.run(2.0);
    assert!(*windows.last().unwrap() > 0.85 * FULL, "{windows:?}");
}

#[test]
fn an_unused_window_does_not_grow_and_shows_no_queue() {
    let mut flow = Flow::new();
    flow.run(10.0);
    let mut grown = 0.0_f64;
    for _ in 0..500 {
        // The server sends little, and late.
        flow.left = 10.0;
        flow.under_way.iter_mut().for_each(|window| *window = 10.0);
        grown = grown.max(flow.look());
    }
    assert!(grown < 1.3 * FULL, "{grown}");
}

#[test]
fn a_slow_server_beside_a_short_queue_keeps_the_threshold() {
    let mut flow = Flow::new();
    flow.run(20.0);
    flow.others = 0.004;
    let mut window = 0.0;
    for _ in 0..500 {
        flow.left = 10.0;
        flow.under_way.iter_mut().for_each(|window| *window = 10.0);
        window = flow.look();
    }
    // What the server might add to that queue is taken from it ...
    assert!((10.0..0.5 * FULL).contains(&window), "{window}");
    // ... but what the path bears is remembered.
    (flow.others, flow.left) = (0.0, FULL);
    let windows = flow.run(1.0);
    let last = *windows.last().unwrap();
    assert!(last > 0.85 * FULL, "{windows:?}");
}

#[test]
fn a_full_queue_at_the_first_step_belongs_to_other_traffic() {
    let mut flow = Flow::new();
    flow.limiter.delays.learn(ms(0), BASE);
    (flow.others, flow.left) = (0.050, 10.0);
    let windows = flow.run(0.8);
    assert!(*windows.last().unwrap() < 6.0, "{windows:?}");
}

#[test]
fn a_window_on_hold_does_not_grow() {
    let mut flow = Flow::new();
    flow.run(20.0);
    (flow.others, flow.left) = (0.020, 0.9 * FULL);
    let halved = *flow.run(0.2).last().unwrap();
    flow.others = 0.004;
    let after = flow.run(0.2);
    assert!(
        after.iter().all(|&window| window <= halved + 1e-9),
        "{halved}: {after:?}"
    );
}

#[test]
fn the_window_shrinks_now_and_then_to_measure_the_base() {
    let mut flow = Flow::new();
    flow.run(20.0);
    // Somebody keeps a short queue, too short to be yielded to.
    flow.others = 0.0015;
    let windows = flow.run(60.0);
    let dips = windows.windows(2).filter(|two| {
        let (before, after) = (two[0], two[1]);
        (0.8..0.9).contains(&(after / FULL)) && after < 0.92 * before
    });
    let dips = dips.count();
    assert!((1..=8).contains(&dips), "{dips}");
    assert!(mean(&windows) > 0.95 * FULL, "{}", mean(&windows));
}

#[test]
fn the_observers_delay_counts_before_the_round_trip_time() {
    let mut flow = Flow::new();
    flow.is_observed = true;
    flow.run(10.0);
    flow.way_back = 0.030;
    let unmoved = flow.run(2.0);
    assert!(*unmoved.last().unwrap() > 0.9 * FULL, "{unmoved:?}");
    (flow.others, flow.left) = (0.030, 0.5 * FULL);
    let windows = flow.run(2.0);
    assert!(*windows.last().unwrap() < 4.0, "{windows:?}");
}

#[test]
fn a_longer_route_is_not_taken_for_a_queue() {
    let mut flow = Flow::new();
    flow.run(20.0);
    flow.way_back = 0.025;
    let windows = flow.run(30.0);
    assert!(
        windows.iter().any(|&window| window < 4.0),
        "first it yields"
    );
    let longer = 1.25 * FULL;
    let last = windows.last().unwrap();
    assert!(*last > 0.85 * longer, "{last}: {windows:?}");
}
