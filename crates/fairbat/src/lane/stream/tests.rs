use proptest::prelude::*;

use super::*;
use crate::tests::{Script, expect_recorded, line};

const SECOND: Duration = Duration::from_secs(1);

const W_MIN: f64 = 0.02;

/// Transfers that come and go, one sample a second.
struct Stream {
    controller: StreamController,
    now: Duration,
}

impl Stream {
    fn new(w_min: Option<f64>) -> Self {
        let law = AdmissionSettings {
            m_min: W_MIN,
            m_max: 64,
            ..AdmissionSettings::stream()
        };
        Self::of(law, w_min)
    }

    /// By the law as it is used, where one connection can yield.
    fn usual() -> Self {
        Self::of(AdmissionSettings::stream(), Some(W_MIN))
    }

    fn of(law: AdmissionSettings, w_min: Option<f64>) -> Self {
        Self {
            controller: StreamController::new(law, w_min).unwrap(),
            now: Duration::ZERO,
        }
    }

    fn sample(&mut self, waiting: u64) -> StreamSample {
        self.now += SECOND;
        self.controller.sample(self.now, waiting, u32::MAX)
    }

    /// Weight and connections of each of the next seconds, in which so many transfers wait
    /// and all connections are in use.
    fn run(&mut self, waiting: u64, seconds: u64) -> Vec<(f64, usize)> {
        let second = |_| {
            let w = self.sample(waiting).w;
            let connections = self.controller.connections();
            self.controller.active(self.now, connections);
            (w, connections)
        };
        (0..seconds).map(second).collect()
    }
}

#[test]
fn one_connection_yields_when_none_is_needed() {
    let mut stream = Stream::new(Some(W_MIN));
    stream.run(0, 3600);
    let idle = stream.run(0, 100);
    assert!(idle.iter().all(|&(_, connections)| connections == 1));
    let yielding = idle.iter().filter(|&&(w, _)| w == W_MIN).count();
    assert!(yielding >= 95, "{yielding} of 100");
    stream.run(100, 120);
    let pressed = stream.run(100, 20);
    assert!(pressed.iter().all(|&(w, _)| w == 1.0), "{pressed:?}");
    assert!(pressed.iter().any(|&(_, connections)| connections > 1));
}

#[test]
fn who_yields_counts_in_n() {
    let mut stream = Stream::new(Some(W_MIN));
    stream.run(0, 3600);
    let n = |stream: &mut Stream, waiting| {
        stream.run(waiting, 200);
        stream.sample(waiting).n
    };
    let alone = n(&mut stream, 0);
    assert!(alone >= 0.9, "it waits for an ordinary connection: {alone}");
    let with_others = n(&mut stream, 3);
    assert!(with_others > 3.0 && with_others <= 4.0, "{with_others}");
}

#[test]
fn a_transfer_that_comes_alone_has_its_share_of_an_ordinary_connection() {
    let mut stream = Stream::usual();
    stream.run(0, 3600);
    let alone = stream.run(0, 1000);
    let ordinary = alone.iter().filter(|&&(w, _)| w == 1.0).count();
    assert!((190..=210).contains(&ordinary), "{ordinary} of 1000");
}

#[test]
fn a_queue_that_shrinks_fast_keeps_an_ordinary_connection_while_it_is_long() {
    let mut stream = Stream::usual();
    stream.run(60, 60);
    stream.run(40, 16);
    // Fewer than before, and more than tau.
    let long = stream.run(15, 40);
    assert!(long.iter().all(|(w, _)| *w == 1.0), "{long:?}");
}

#[test]
fn a_long_transfer_does_not_hold_back_those_that_come_after_it() {
    let mut stream = Stream::usual();
    stream.controller.finished(SECOND * 1800);
    // Two that take half an hour go on while m is a little above one.
    for _ in 0..300 {
        assert!((1.0..2.0).contains(&stream.sample(6).m));
        stream.controller.active(stream.now, 2);
    }
    // What one T has to be worked off.
    stream.run(1, 180);
    let later = stream.run(1, 200);
    let ordinary = later.iter().filter(|&&(w, _)| w == 1.0).count();
    assert!(ordinary >= 100, "{ordinary} of 200");
}

#[test]
fn a_stream_that_was_empty_for_long_begins_anew() {
    // What m comes to while one more waits each second.
    let grown = |stream: &mut Stream| (1..=30).map(|waiting| stream.sample(waiting).m).last();
    let at_first = || {
        let mut stream = Stream::new(Some(W_MIN));
        stream.controller.finished(SECOND * 4);
        stream
    };
    let after = |empty: u64| {
        let mut stream = at_first();
        stream.run(0, 3600);
        stream.controller.active(stream.now, 0);
        for _ in 0..empty {
            stream.sample(0);
        }
        grown(&mut stream).unwrap()
    };
    let (new, long, short) = (grown(&mut at_first()).unwrap(), after(60), after(8));
    // Its periods may begin one sample later.
    assert!(long >= 0.8 * new, "{long} of {new}");
    assert!(short <= 0.5 * new, "{short} of {new}");
}

#[test]
fn without_a_lever_there_is_none_at_times_until_no_more_come() {
    let mut stream = Stream::new(None);
    stream.run(0, 3600);
    let idle = stream.run(0, 100);
    assert!(idle.iter().all(|&(w, _)| w == 1.0));
    let none = idle.iter().filter(|&&(_, connections)| connections == 0);
    assert!(none.count() >= 95, "{idle:?}");
    stream.controller.no_more_come();
    let rest = stream.run(3, 20);
    assert!(rest.iter().all(|&(_, connections)| connections == 1));
}

#[test]
fn a_long_rest_has_more_than_one_connection() {
    for w_min in [None, Some(W_MIN)] {
        let mut stream = Stream::new(w_min);
        stream.controller.no_more_come();
        let rest = stream.run(100, 120);
        assert!(rest.iter().all(|&(w, _)| w == 1.0), "{rest:?}");
        assert!(rest.last().unwrap().1 > 1, "{rest:?}");
        let least = stream.run(1, 120);
        assert!(least.iter().all(|&(w, count)| w == 1.0 && count >= 1));
    }
}

#[test]
fn the_period_is_the_time_that_transfers_take() {
    let changes = |took: u32| {
        let mut stream = Stream::new(None);
        for _ in 0..16 {
            stream.controller.finished(SECOND * took);
        }
        // A queue that grows by one each second moves m with each step.
        let m: Vec<f64> = (1..=120).map(|t| stream.sample(5 + t).m).collect();
        m.windows(2).filter(|pair| pair[0] != pair[1]).count()
    };
    let (short, long) = (changes(2), changes(8));
    assert!(short >= 3 * long && long >= 2, "{short} and {long}");
}

#[test]
fn n_is_a_mean_and_a_time_asleep_does_not_count() {
    let mut stream = Stream::new(None);
    stream.controller.finished(SECOND * 4);
    let n: Vec<f64> = [9, 9, 9, 9, 2, 4, 6, 8]
        .map(|waiting| stream.sample(waiting).n)
        .into();
    assert_eq!((n[3], n[7]), (9.0, 5.0), "{n:?}");
    stream.run(1, 2);
    stream.now += SECOND * 60;
    assert_eq!(stream.sample(7).n, 5.0, "the period begins anew");
    stream.run(7, 3);
    assert_eq!(stream.sample(7).n, 7.0);
}

/// Drives a stream for twenty minutes in which transfers come and go, servers refuse
/// connections and the machine sleeps.
fn drive(out: &mut String, seed: u64, law: AdmissionSettings, w_min: Option<f64>) {
    let mut script = Script::new(seed);
    let mut controller = StreamController::new(law, w_min).unwrap();
    let (mut now, mut waiting, mut tolerated) = (Duration::ZERO, 0_u64, u32::MAX);
    for second in 0..1200_u64 {
        if script.below(70) == 0 {
            tolerated = [1, 2, 5, u32::MAX][script.below(4) as usize];
        }
        if script.below(200) == 0 {
            waiting += 30;
        }
        let active = controller.connections().min(waiting as usize);
        controller.active(now, active);
        let served = (active as f64 * controller.w() * script.share() * 2.0) as u64;
        for _ in 0..served.min(4) {
            controller.finished(Duration::from_millis(500 + script.below(8000)));
        }
        waiting = (waiting + script.below(3)).saturating_sub(served);
        let step = if script.below(300) == 0 { 40 } else { 1 };
        now += SECOND * step;
        if second == 1100 {
            controller.no_more_come();
        }
        let sample = controller.sample(now, waiting, tolerated);
        if second % 5 == 0 {
            let StreamSample { n, m, w, .. } = sample;
            line(out, &[n, m, w, controller.connections() as f64]);
        }
    }
}

#[test]
fn the_same_inputs_give_the_samples_that_were_recorded() {
    let mut out = String::new();
    drive(&mut out, 1, AdmissionSettings::stream(), Some(W_MIN));
    drive(&mut out, 2, AdmissionSettings::stream(), None);
    drive(&mut out, 3, AdmissionSettings::paper(), Some(W_MIN));
    expect_recorded("stream.txt", &out);
}

proptest! {
    #[test]
    fn m_and_w_stay_within_their_bounds_whatever_comes(
        is_held in any::<bool>(),
        m_min in 0.02..3.0,
        m_max in 3..64_u32,
        steps in prop::collection::vec(
            (0..60_000_u64, any::<u64>(), any::<u32>(), any::<u32>(), 0..600_u64, 0..100_u32),
            1..200,
        ),
    ) {
        let law = AdmissionSettings { m_min, m_max, ..AdmissionSettings::stream() };
        let w_min = is_held.then_some(W_MIN);
        let new = || StreamController::new(law, w_min).unwrap();
        let (mut one, mut other) = (new(), new());
        let mut now = Duration::ZERO;
        for (ms, waiting, tolerated, in_use, took, event) in steps {
            now += Duration::from_millis(ms);
            for controller in [&mut one, &mut other] {
                controller.active(now, in_use as usize);
                controller.finished(Duration::from_secs(took));
                if event == 0 {
                    controller.no_more_come();
                }
            }
            let sample = one.sample(now, waiting, tolerated);
            prop_assert_eq!(sample, other.sample(now, waiting, tolerated), "deterministic");
            let most = f64::from(tolerated.clamp(1, m_max));
            prop_assert!(sample.m >= m_min.min(most) && sample.m <= most, "{sample:?}");
            prop_assert!(sample.n >= 0.0 && sample.n.is_finite(), "{sample:?}");
            prop_assert!(sample.w == 1.0 || Some(sample.w) == w_min, "{sample:?}");
            prop_assert!(one.connections() as f64 <= most.ceil(), "{sample:?}");
            prop_assert!(one.connections() > 0 || !is_held, "one yields: {sample:?}");
        }
    }
}
