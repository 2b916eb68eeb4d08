use super::*;

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
    let law = AdmissionSettings::stream();
    let mut stream = Stream::new(Some(W_MIN));
    stream.controller = StreamController::new(law, Some(W_MIN)).unwrap();
    stream.run(0, 3600);
    let alone = stream.run(0, 1000);
    let ordinary = alone.iter().filter(|&&(w, _)| w == 1.0).count();
    assert!((190..=210).contains(&ordinary), "{ordinary} of 1000");
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
