//! What the evidence of a flow over synthetic bottlenecks says.

use super::*;

const BASE: Duration = Duration::from_millis(50);
const SEGMENT: f64 = 1448.0;
/// Of most paths here, byte/s: 21 segments in a round trip.
const RATE: f64 = 625_000.0;

/// A flow, sampled every 10 ms.
#[derive(Default)]
struct Flow {
    evidence: BottleneckEvidence,
    now: Duration,
    bytes: f64,
    out_of_order: u32,
}

impl Flow {
    /// A time with this queueing delay and rate.
    fn goes(&mut self, ms: u64, queueing_ms: f64, rate: f64) -> &mut Self {
        for _ in 0..ms / 10 {
            self.now += Duration::from_millis(10);
            self.bytes += 0.01 * rate;
            let sample = ConnectionSample {
                rtt: BASE + Duration::from_secs_f64(queueing_ms * 1e-3),
                base: BASE,
                queueing: Some(queueing_ms * 1e-3),
                segment: SEGMENT,
                bytes: self.bytes as u64,
                out_of_order: self.out_of_order,
                excess: 0.0,
            };
            self.evidence.update(self.now, &sample, true);
        }
        self
    }

    /// A loss with this queueing delay, and its repair.
    fn loses(&mut self, queueing_ms: f64) -> &mut Self {
        self.goes(200, queueing_ms, RATE);
        self.out_of_order += 20;
        self.goes(600, 0.6 * queueing_ms, RATE)
    }

    fn kind(&self) -> Option<BottleneckKind> {
        self.evidence.kind()
    }
}

#[test]
fn losses_of_a_full_queue_tell_how_deep_it_is() {
    let mut deep = Flow::default();
    deep.goes(2000, 20.0, RATE).loses(60.0);
    assert_eq!(deep.kind(), None, "a single loss does not tell");
    deep.loses(58.0);
    assert_eq!(deep.kind(), Some(BottleneckKind::DeepQueue));
    let mut short = Flow::default();
    short.goes(2000, 5.0, RATE).loses(12.0).loses(12.0);
    assert_eq!(short.kind(), None);
    short.loses(11.0);
    assert_eq!(short.kind(), Some(BottleneckKind::ShortQueue));
    let findings = short.evidence.findings().unwrap();
    assert!((findings.rate / RATE - 1.0).abs() < 0.02, "{findings:?}");
    assert_eq!(findings.base, BASE);
    assert!((findings.longest_queue.as_secs_f64() - 0.012).abs() < 1e-6);
}

#[test]
fn a_short_queue_of_three_packets_may_be_a_managed_one() {
    let mut flow = Flow::default();
    let three = 3.0 * 1e3 * SEGMENT / RATE;
    flow.goes(2000, 3.0, RATE);
    flow.loses(three).loses(three).loses(three).loses(three);
    assert_eq!(flow.kind(), None);
    // No managed queue drops at so short a delay, however many packets that is.
    let mut shorter = Flow::default();
    shorter.goes(2000, 2.0, RATE);
    shorter.loses(3.0).loses(3.0).loses(3.0).loses(3.0);
    assert_eq!(shorter.kind(), Some(BottleneckKind::ShortQueue));
}

#[test]
fn losses_far_below_the_longest_delay_are_of_a_managed_queue() {
    let mut flow = Flow::default();
    flow.loses(70.0).loses(6.0).loses(6.5);
    assert_eq!(flow.kind(), None);
    flow.loses(6.0);
    assert_eq!(flow.kind(), Some(BottleneckKind::ManagedQueue));
    // No managed queue drops that early.
    let mut early = Flow::default();
    early.loses(70.0).loses(2.0).loses(2.0).loses(2.0);
    assert_eq!(early.kind(), None);
}

#[test]
fn losses_without_any_delay_are_of_no_queue() {
    let mut flow = Flow::default();
    flow.goes(2000, 0.2, RATE).loses(0.2).loses(0.1);
    assert_eq!(flow.kind(), None);
    flow.loses(0.3);
    assert_eq!(flow.kind(), Some(BottleneckKind::LossWithoutQueue));
    // So short a delay may be both.
    flow.goes(200, 1.0, RATE);
    assert_eq!(flow.kind(), None);
}

#[test]
fn the_first_losses_of_a_burst_do_not_count_against_a_full_queue() {
    let mut flow = Flow::default();
    flow.loses(0.0).goes(2000, 30.0, RATE).loses(60.0);
    flow.loses(60.0).loses(60.0);
    assert_eq!(flow.kind(), Some(BottleneckKind::DeepQueue));
}

#[test]
fn a_rate_that_swings_while_data_waits_varies() {
    let mut radio = Flow::default();
    let mut slow = Flow::default();
    for step in 0_u32..60 {
        // From 0.4 to 1 of it, in each round trip far from the one before.
        let share = 0.4 + 0.6 * f64::from(step * 7 % 10) / 9.0;
        radio.goes(100, 40.0, share * RATE);
        let share = 0.4 + 0.6 * f64::from(step) / 59.0;
        slow.goes(300, 40.0, share * RATE);
    }
    assert_eq!(radio.kind(), Some(BottleneckKind::VaryingRate));
    assert_eq!(slow.kind(), None, "another flow may have left slowly");
}

#[test]
fn a_flow_without_queue_and_losses_is_limited_by_its_sender() {
    let mut flow = Flow::default();
    flow.goes(7000, 0.1, RATE);
    assert_eq!(flow.kind(), None, "it may still grow");
    flow.goes(3000, 0.1, RATE);
    assert_eq!(flow.kind(), Some(BottleneckKind::SenderLimited));
    let mut growing = Flow::default();
    for step in 0..20 {
        growing.goes(500, 0.1, RATE * (1.0 + 0.1 * f64::from(step)));
    }
    assert_eq!(growing.kind(), None);
}

#[test]
fn evidence_is_forgotten_after_some_minutes() {
    let mut flow = Flow::default();
    flow.loses(60.0)
        .goes(1000, 20.0, RATE)
        .loses(60.0)
        .loses(60.0);
    assert_eq!(flow.kind(), Some(BottleneckKind::DeepQueue));
    flow.goes(310_000, 5.0, RATE);
    assert_eq!(flow.kind(), Some(BottleneckKind::DeepQueue));
    flow.goes(310_000, 5.0, RATE);
    assert_eq!(flow.kind(), None);
}

#[test]
fn a_sender_that_pauses_makes_no_queue() {
    let mut flow = Flow::default();
    for _ in 0..40 {
        // The delay of what comes after a pause is that of the pause.
        flow.goes(100, 20.0, 2.0 * RATE).goes(200, 20.0, 0.0);
    }
    assert_eq!(flow.kind(), Some(BottleneckKind::SenderLimited));
}
