use dalbe::deadline::{Deadline, Demand};
use dalbe::weight::ControllerPolicy;

use super::*;

/// What the path carries, byte/s.
const CAPACITY: f64 = 10e6;

const W_MIN: f64 = 0.02;

const SECOND: Duration = Duration::from_secs(1);

/// Of a lane whose flows a lever holds at this weight, if any does.
fn held(w_min: Option<f64>) -> WeightSource {
    held_by(ControllerPolicy::Share, w_min)
}

fn held_by(controller: ControllerPolicy, w_min: Option<f64>) -> WeightSource {
    let settings = LaneSettings {
        weight: w_min.unwrap_or(W_MIN),
        is_held: w_min.is_some(),
        controller,
        ..LaneSettings::new(1)
    };
    settings.weight_source()
}

/// A lane on a link beside so many best-effort flows: flows of weight w take w
/// parts where each of the others takes one, and leave gaps of a twentieth.
struct Run {
    controller: RateController,
    now: Duration,
    others: f64,
    /// What the server gives to each connection, byte/s.
    limit: f64,
    last: ControlSample,
}

impl Run {
    fn new(w_min: Option<f64>) -> Self {
        Self::of(held(w_min), w_min.unwrap_or(1.0))
    }

    /// Flows weigh so much at first.
    fn of(weight: WeightSource, w: f64) -> Self {
        Self {
            controller: RateController::by_deadline(
                1,
                4,
                Some(Duration::from_secs(60)),
                weight,
                BacklogPolicy::paced(),
            )
            .unwrap(),
            now: Duration::ZERO,
            others: 0.0,
            limit: f64::INFINITY,
            last: ControlSample {
                n: 0.0,
                m: 1.0,
                w,
                rate: 0.0,
            },
        }
    }

    fn rate(&self) -> f64 {
        let weight = self.last.w * self.last.m;
        let share = weight / (weight + self.others);
        (CAPACITY * share.max(0.05)).min(self.limit * self.last.m)
    }

    fn second(&mut self, demand: Option<Demand>) -> ControlSample {
        let bytes = self.rate() / 10.0;
        let in_use = self.controller.connections();
        self.controller.active(self.now, in_use);
        for _ in 0..10 {
            self.now += SECOND / 10;
            self.controller.moved(self.now, bytes as u64, true);
        }
        self.sample(demand)
    }

    fn sample(&mut self, demand: Option<Demand>) -> ControlSample {
        let load = Load {
            inactive: 1000,
            demand,
            chunk_len: NonZeroU64::new(4_000_000).unwrap(),
            tolerated: u32::MAX,
            time_left: demand.map(|_| Duration::from_secs(60)),
            rtt: None,
        };
        self.last = self.controller.sample(self.now, &load);
        self.last
    }

    /// So many seconds in which the deadlines ask for a share of the link.
    fn wanting(&mut self, share: f64, seconds: u32) -> Vec<ControlSample> {
        (0..seconds).map(|_| self.second(asks_for(share))).collect()
    }
}

fn asks_for(share: f64) -> Option<Demand> {
    Some(Demand {
        zeta: share * CAPACITY,
        remaining: 1 << 40,
        overdue: 0,
    })
}

#[test]
fn nothing_is_wanted_without_a_deadline() {
    let mut run = Run::new(Some(W_MIN));
    for others in [0.0, 1.0, 5.0] {
        run.others = others;
        for _ in 0..20 {
            let sample = run.second(None);
            assert_eq!((sample.w, sample.m, sample.n), (W_MIN, 1.0, 0.0));
        }
    }
    assert!((run.last.rate - 0.05 * CAPACITY).abs() < 100.0);
    assert_eq!(run.controller.connections(), 1);
}

#[test]
fn w_rises_for_what_is_not_met_and_m_stays() {
    let mut run = Run::new(Some(W_MIN));
    run.wanting(0.3, 5);
    assert_eq!(run.last.w, W_MIN, "an idle link gives it anyway");
    run.others = 1.0;
    let samples = run.wanting(0.3, 60);
    assert!(samples[20].w > 5.0 * W_MIN, "{:?}", samples[20]);
    assert!(
        samples.iter().all(|s| s.m == 1.0 || s.w == 1.0),
        "{samples:?}"
    );
    assert_eq!(run.controller.connections(), 1);
    // And no more than is wanted.
    let last = &samples[40..];
    assert!(last.iter().all(|s| s.w < 1.0), "{last:?}");
    let mean = last.iter().map(|s| s.rate).sum::<f64>() / last.len() as f64;
    assert!((0.3..0.45).contains(&(mean / CAPACITY)), "{mean}");
}

#[test]
fn m_rises_only_when_the_full_weight_falls_short_and_both_fall_back() {
    let mut run = Run::new(Some(W_MIN));
    run.wanting(0.6, 5);
    run.others = 1.0;
    let samples = run.wanting(0.6, 60);
    let full = samples
        .iter()
        .position(|s| s.w == 1.0)
        .expect("it saturates");
    let more = samples.iter().position(|s| s.m > 1.0).expect("more flows");
    assert!(full < more, "w {full}, m {more}");
    let settled = &samples[30..];
    let mean = |of: fn(&ControlSample) -> f64| settled.iter().map(of).sum::<f64>() / 30.0;
    let (rate, m) = (mean(|s| s.rate), mean(|s| s.m));
    assert!(
        rate > 0.55 * CAPACITY && m > 1.1,
        "{rate}, {m}: {settled:?}"
    );
    // The others are gone.
    run.others = 0.0;
    run.wanting(0.3, 15);
    assert_eq!((run.last.w, run.last.m), (W_MIN, 1.0), "{:?}", run.last);
    assert_eq!(run.controller.connections(), 1);
}

#[test]
fn with_every_controller_w_and_m_rise_for_a_deadline_and_fall_back() {
    for controller in ControllerPolicy::ALL {
        let mut run = Run::of(held_by(controller, Some(W_MIN)), W_MIN);
        run.others = 1.0;
        run.wanting(0.3, 120);
        let ControlSample { w, m, rate, .. } = run.last;
        assert_eq!(m, 1.0, "{controller:?}: one is enough");
        assert!((0.3..0.7).contains(&w), "{controller:?}: {w}");
        assert!(
            (0.27..0.4).contains(&(rate / CAPACITY)),
            "{controller:?}: {rate}"
        );
        run.wanting(0.6, 120);
        assert!(run.last.m > 1.1, "{controller:?}: {:?}", run.last);
        run.others = 0.0;
        run.wanting(0.3, 60);
        let ControlSample { w, m, .. } = run.last;
        assert_eq!((w, m), (W_MIN, 1.0), "{controller:?}: both fall back");
    }
}

/// A server that gives a quarter of the link to each connection, and a demand that falls.
#[test]
fn m_stays_while_fewer_connections_would_not_carry_enough() {
    let mut run = Run::new(Some(W_MIN));
    run.limit = 0.25 * CAPACITY;
    run.wanting(0.9, 60);
    assert!(run.last.m > 3.5, "{:?}", run.last);
    for sample in run.wanting(0.7, 40) {
        assert!(sample.rate > 0.69 * CAPACITY, "{sample:?}");
    }
    run.wanting(0.2, 30);
    assert!(run.last.m < 1.5, "{:?}", run.last);
}

#[test]
fn m_ends_at_its_limit_when_nothing_helps() {
    let mut run = Run::new(Some(W_MIN));
    run.others = 1.0;
    run.wanting(2.0, 120);
    assert_eq!((run.last.w, run.last.m), (1.0, 4.0));
    assert_eq!(run.controller.connections(), 4);
}

#[test]
fn m_keeps_to_what_the_servers_tolerate() {
    let mut run = Run::new(Some(W_MIN));
    run.others = 1.0;
    run.wanting(2.0, 60);
    let load = Load {
        inactive: 1000,
        demand: asks_for(2.0),
        chunk_len: NonZeroU64::new(4_000_000).unwrap(),
        tolerated: 2,
        time_left: Some(Duration::from_secs(60)),
        rtt: None,
    };
    let sample = run.controller.sample(run.now + SECOND, &load);
    assert!(sample.m <= 2.0, "{sample:?}");
    assert!(run.controller.connections() <= 2);
}

#[test]
fn without_a_brake_w_is_1_and_m_works_all_the_same() {
    let mut run = Run::new(None);
    run.others = 1.0;
    let samples = [run.wanting(0.3, 30), run.wanting(0.75, 60)].concat();
    assert!(samples.iter().all(|s| s.w == 1.0), "{samples:?}");
    assert!(samples[..30].iter().all(|s| s.m == 1.0), "{samples:?}");
    assert!(run.last.m > 2.0, "{:?}", run.last);
    run.others = 0.0;
    run.wanting(0.3, 60);
    assert_eq!((run.last.w, run.last.m), (1.0, 1.0));
}

#[test]
fn a_flow_that_never_yields_keeps_its_full_weight() {
    let mut run = Run::new(Some(1.0));
    for (others, share) in [(0.0, 0.1), (1.0, 0.4), (1.0, 0.1)] {
        run.others = others;
        assert!(run.wanting(share, 20).iter().all(|s| s.w == 1.0));
    }
    assert_eq!(run.second(None).w, 1.0);
}

/// As when the machine sleeps: time passes and nothing moves.
fn gap(run: &mut Run, seconds: u32, share: f64) -> ControlSample {
    run.now += SECOND * seconds;
    run.sample(asks_for(share))
}

#[test]
fn a_gap_between_samples_is_not_a_rate_of_nothing() {
    let mut run = Run::new(Some(W_MIN));
    run.wanting(0.3, 5);
    run.others = 1.0;
    let before = *run.wanting(0.3, 60).last().unwrap();
    let after = gap(&mut run, 300, 0.3);
    assert_eq!((after.w, after.m), (before.w, before.m));
    for sample in run.wanting(0.3, 20) {
        assert!((sample.w - before.w).abs() < 0.15, "{sample:?}, {before:?}");
        assert_eq!(sample.m, 1.0, "{sample:?}");
    }
}

#[test]
fn a_gap_at_full_weight_is_no_shortfall() {
    let longest = |asleep: u32| {
        let mut run = Run::new(Some(W_MIN));
        run.wanting(0.65, 5);
        run.others = 1.0;
        run.wanting(0.65, 4);
        assert_eq!((run.last.w, run.last.n), (1.0, 0.0), "{:?}", run.last);
        if asleep > 0 {
            gap(&mut run, asleep, 0.65);
        }
        let samples = run.wanting(0.65, 5);
        samples.iter().map(|sample| sample.n).fold(0.0, f64::max)
    };
    let (awake, asleep) = (longest(0), longest(300));
    assert!(awake > 0.0 && asleep < 2.0 * awake, "{awake}, {asleep}");
}

#[test]
fn an_infinite_demand_is_one_best_effort_flow() {
    let mut run = Run::new(Some(W_MIN));
    run.others = 1.0;
    let unknown = Some(Demand {
        zeta: f64::INFINITY,
        remaining: 0,
        overdue: 0,
    });
    for _ in 0..30 {
        run.second(unknown);
    }
    assert_eq!((run.last.w, run.last.m), (1.0, 1.0));
    // Then the size is known, and it was not that urgent.
    run.wanting(0.2, 20);
    assert!(run.last.w < 0.6 && run.last.m == 1.0, "{:?}", run.last);
}

#[test]
fn a_transfer_beside_one_flow_ends_before_its_deadline_without_haste() {
    let deadline = Deadline::new(Duration::ZERO, Duration::from_secs(60));
    let mut run = Run::new(Some(W_MIN));
    run.others = 1.0;
    let mut left = 0.3 * CAPACITY * 60.0;
    let mut weights = Vec::new();
    while left > 0.0 {
        left -= run.rate();
        let demand = Demand::of(run.now + SECOND, [(deadline, left.max(0.0) as u64)]);
        let sample = run.second(demand);
        weights.push(sample.w);
        assert!(
            run.now < Duration::from_secs(60),
            "{left} left: {weights:?}"
        );
        assert!(sample.m == 1.0, "one connection is enough: {sample:?}");
    }
    assert!(run.now > Duration::from_secs(40), "{:?}", run.now);
}

#[test]
fn chunks_are_shorter_near_the_end_and_never_tiny() {
    let natural = NonZeroU64::new(8_000_000).unwrap();
    let mut run = Run::new(Some(W_MIN));
    let length =
        |controller: &RateController, pending| controller.chunk_length(natural, pending).get();
    // Nobody waits for a connection, and no deadline presses.
    let calm =
        RateController::by_deadline(1, 4, None, held(Some(W_MIN)), BacklogPolicy::paced()).unwrap();
    assert_eq!(
        length(&calm, 1 << 40),
        CHUNKS_OF_A_LONE_CONNECTION.get() * natural.get()
    );
    // A deadline does before the first sample. It is near, and cuts no chunk.
    assert_eq!(length(&run.controller, 1 << 40), natural.get());
    assert_eq!(length(&run.controller, 1_000_000), 1_000_000);
    assert_eq!(length(&run.controller, 1), MIN_CHUNK);
    // With four connections each has work until the end.
    run.others = 1.0;
    run.wanting(2.0, 120);
    assert!(length(&run.controller, 4_000_000) <= 1_000_000);
    assert_eq!(length(&run.controller, 1 << 40), natural.get());
    let small = NonZeroU64::new(1000).unwrap();
    assert_eq!(run.controller.chunk_length(small, 1 << 40), small);
}

#[test]
fn one_upload_is_weighed_as_its_connection_would_be_alone() {
    let limit = Some(3e6);
    let mut alone = FlowWeightController::new(ControllerPolicy::Share, W_MIN, limit);
    let weight = FlowWeightController::new(ControllerPolicy::Share, W_MIN, limit);
    let mut controller = RateController::of_connection(weight).unwrap();
    let load = |zeta| Load {
        inactive: 0,
        demand: Some(Demand {
            zeta,
            remaining: 1 << 30,
            overdue: 0,
        }),
        chunk_len: MIN_UNIT,
        tolerated: 1,
        time_left: Some(SECOND * 60),
        rtt: None,
    };
    let closed = controller.sample(SECOND, &load(1e6));
    assert_eq!((closed.rate, closed.w, closed.m), (0.0, W_MIN, 1.0));
    assert!(!controller.is_measuring());
    let mut now = SECOND;
    controller.connected(now);
    alone.begin(now);
    for second in 0..60 {
        let share = 1.0 / f64::from(1 + second % 7);
        now += SECOND;
        let bytes = (4e6 * share) as u64;
        controller.moved(now, bytes, true);
        alone.delivered(now, bytes);
        let demand = load(4e6 * f64::from(second % 11) / 10.0);
        let sample = controller.sample(now, &demand);
        assert_eq!(sample.rate, alone.sample(now, demand.demand));
        assert_eq!(controller.flow_target(now), alone.target(now), "{second}");
    }
    controller.disconnected();
    assert_eq!(controller.sample(now + SECOND, &load(1e6)).rate, 0.0);
}

mod recorded;
