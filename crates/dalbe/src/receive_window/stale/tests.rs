use super::*;

const SEGMENT: f64 = 1448.0;
const RTT: u64 = 100;
/// A window that fills the path, segments.
const FULL: f64 = 83.0;
const MUCH: u64 = 100_000_000;

/// A connection looked at every 20 ms, and what is said of it in the end.
#[derive(Default)]
struct Flow {
    stale: StaleSender,
    now: Duration,
    bytes: f64,
    lost: u32,
}

impl Flow {
    /// So many round trips under a window of which so many segments come,
    /// both multiplied by `growth` with each; a queue of so many ms.
    fn pass(&mut self, trips: u32, window: f64, comes: f64, growth: f64, queue_ms: f64) {
        for trip in 0..trips {
            let factor = growth.powi(trip as i32);
            for _ in 0..5 {
                self.now += Duration::from_millis(RTT / 5);
                self.bytes += comes * factor * SEGMENT / 5.0;
                let sample = ConnectionSample {
                    rtt: Duration::from_millis(RTT),
                    base: Duration::from_millis(RTT),
                    queueing: (comes > 0.0).then_some(queue_ms * 1e-3),
                    segment: SEGMENT,
                    bytes: self.bytes as u64,
                    out_of_order: self.lost,
                    excess: 0.0,
                };
                self.stale
                    .update(self.now, &sample, window * factor * SEGMENT);
            }
        }
    }

    /// Carries all there is, then yields.
    fn yielded() -> Self {
        let mut flow = Self::default();
        flow.pass(50, FULL, FULL, 1.0, 0.0);
        flow.pass(30, 2.0, 2.0, 1.0, 40.0);
        flow
    }

    /// Segments per round trip that are too few.
    fn verdict(&self) -> Option<f64> {
        let rate = self.stale.rate(self.now, MUCH)?;
        Some((rate * RTT as f64 * 1e-3 / SEGMENT).round())
    }
}

#[test]
fn a_sender_that_stays_behind_after_a_yield_is_stale() {
    let mut flow = Flow::yielded();
    flow.pass(2, FULL, 40.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), None, "too early to tell");
    flow.pass(6, FULL, 40.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), Some(40.0));
    flow.pass(1, FULL, 40.0, 1.0, 30.0);
    assert_eq!(flow.verdict(), None, "there is a queue again");
}

#[test]
fn a_sender_that_grows_by_a_quarter_in_eight_round_trips_is_stale() {
    let mut flow = Flow::yielded();
    flow.pass(6, 8.0, 3.0, 1.25_f64.powf(1.0 / 8.0), 0.0);
    assert_eq!(flow.verdict(), Some(3.0));
}

#[test]
fn a_sender_that_doubles_is_not_stale() {
    let mut flow = Flow::yielded();
    for comes in [2.0, 4.0, 8.0, 16.0, 32.0] {
        flow.pass(1, FULL, comes, 1.0, 0.0);
        assert_eq!(flow.verdict(), None, "{comes}");
    }
}

#[test]
fn a_sender_that_fills_its_window_is_not_stale() {
    let mut flow = Flow::yielded();
    flow.pass(10, 20.0, 17.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), None);
    // What a wider window brings comes one round trip later.
    let mut flow = Flow::yielded();
    flow.pass(6, 4.0, 2.0, 2.0, 0.0);
    assert_eq!(flow.verdict(), None);
}

#[test]
fn a_slow_sender_without_a_yield_is_not_stale() {
    let mut flow = Flow::default();
    flow.pass(50, FULL, FULL, 1.0, 0.0);
    flow.pass(30, FULL, 30.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), None);
    // A small window without a queue is no yield.
    let mut flow = Flow::default();
    flow.pass(30, 10.0, 10.0, 1.0, 0.0);
    flow.pass(10, FULL, 30.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), None);
}

#[test]
fn a_yield_long_ago_does_not_make_a_sender_stale() {
    let mut flow = Flow::yielded();
    flow.pass(90, FULL, 40.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), Some(40.0));
    flow.pass(15, FULL, 40.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), None);
}

#[test]
fn a_sender_at_its_usual_rate_is_not_stale() {
    let mut flow = Flow::default();
    flow.pass(50, FULL, 40.0, 1.0, 0.0);
    flow.pass(30, 2.0, 2.0, 1.0, 40.0);
    flow.pass(10, FULL, 40.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), None);
    // Others over the path may have carried more.
    let rate = FULL * SEGMENT / (RTT as f64 * 1e-3);
    let mut flow = Flow::default();
    flow.stale.learn(flow.now, rate);
    flow.pass(50, FULL, 40.0, 1.0, 0.0);
    flow.pass(30, 2.0, 2.0, 1.0, 40.0);
    flow.pass(10, FULL, 40.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), Some(40.0));
}

#[test]
fn a_sender_with_losses_is_not_stale() {
    let mut flow = Flow::yielded();
    for _ in 0..10 {
        flow.lost += 1;
        flow.pass(6, FULL, 40.0, 1.0, 0.0);
        assert_eq!(flow.verdict(), None);
    }
    flow.pass(6, FULL, 40.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), Some(40.0));
}

#[test]
fn a_sender_near_the_end_of_a_file_is_not_stale() {
    let mut flow = Flow::yielded();
    flow.pass(10, FULL, 40.0, 1.0, 0.0);
    let enough = (MIN_REMAINING_WINDOWS * FULL * SEGMENT) as u64 * 21 / 20;
    assert!(flow.stale.rate(flow.now, enough).is_some());
    assert!(flow.stale.rate(flow.now, enough * 9 / 10).is_none());
}

#[test]
fn a_pause_does_not_count_as_slowness() {
    let mut flow = Flow::yielded();
    flow.pass(20, FULL, 0.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), None);
    // Awaiting a response neither: what is known stays.
    let mut flow = Flow::yielded();
    flow.pass(3, FULL, 40.0, 1.0, 0.0);
    flow.now += Duration::from_millis(300);
    flow.stale.pause(flow.bytes as u64);
    flow.pass(5, FULL, 40.0, 1.0, 0.0);
    assert_eq!(flow.verdict(), Some(40.0));
}
