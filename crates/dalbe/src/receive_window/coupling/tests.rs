use super::*;

const SEGMENT: f64 = 1448.0;
const STEP: Duration = Duration::from_millis(20);
const BASE: Duration = Duration::from_millis(100);

/// byte/s
const CAPACITY: f64 = 1.25e6;

/// Connections over one path, and what others have in its queue.
struct Path {
    seats: Vec<Seat>,
    parts: Vec<Part>,
    bytes: Vec<f64>,
    /// The most that each sender sends, byte/s.
    limits: Vec<f64>,
    /// What each takes for the base beyond the path's, s.
    known_base: Vec<f64>,
    /// So many see no queue.
    blind: usize,
    base: Duration,
    /// byte/s
    capacity: f64,
    now: Duration,
}

impl Path {
    fn of(connections: usize) -> Self {
        let group = WindowGroup::default();
        Self {
            seats: (0..connections).map(|_| group.join()).collect(),
            parts: vec![Part::whole(2.0 * SEGMENT); connections],
            bytes: vec![0.0; connections],
            limits: vec![f64::INFINITY; connections],
            known_base: vec![0.0; connections],
            blind: 0,
            base: BASE,
            capacity: CAPACITY,
            now: Duration::from_secs(1),
        }
    }

    /// Each receives what its window and the path allow; others keep this queue, s.
    fn run(&mut self, steps: u32, queue: f64) {
        for _ in 0..steps {
            self.now += STEP;
            let base = self.base.as_secs_f64();
            let offered = |(part, limit): (&Part, &f64)| {
                let time = part.wait.map_or(base, |wait| wait.as_secs_f64());
                let rate = part.window / time;
                rate.min(*limit)
            };
            let rates: Vec<f64> = self.parts.iter().zip(&self.limits).map(offered).collect();
            let all: f64 = rates.iter().sum();
            let queueing = queue + (base * (all / self.capacity - 1.0)).max(0.0);
            for (index, seat) in self.seats.iter().enumerate() {
                let rate = rates[index] * (self.capacity / all).min(1.0);
                self.bytes[index] += rate * STEP.as_secs_f64();
                let own = LeastRtt {
                    base: Some(self.base + Duration::from_secs_f64(self.known_base[index])),
                    handshake: None,
                };
                let path_base = seat.compare(self.now, own).base.unwrap();
                let seen = if index < self.blind { 0.0 } else { queueing };
                let rtt = self.base + Duration::from_secs_f64(seen);
                let sample = ConnectionSample {
                    rtt: self.base + Duration::from_secs_f64(queueing),
                    base: path_base,
                    queueing: Some(rtt.saturating_sub(path_base).as_secs_f64()),
                    segment: SEGMENT,
                    bytes: self.bytes[index] as u64,
                    out_of_order: 0,
                    excess: 0.001,
                };
                self.parts[index] = seat.update(self.now, &sample);
            }
        }
    }

    fn windows(&self) -> Vec<f64> {
        self.parts.iter().map(|part| part.window).collect()
    }
}

#[test]
fn connections_share_the_window_of_one() {
    let (mut one, mut four) = (Path::of(1), Path::of(4));
    one.run(1000, 0.0);
    four.run(1000, 0.0);
    let parts = four.windows();
    assert!(
        parts.iter().all(|each| (each / parts[0] - 1.0).abs() < 0.1),
        "{parts:?}"
    );
    let (all, one): (f64, f64) = (parts.iter().sum(), one.windows()[0]);
    assert!((all / one - 1.0).abs() < 0.1, "{all} and {one}");
    assert!(one > 0.9 * 0.1 * CAPACITY, "{one}");
}

#[test]
fn a_window_is_divided_in_whole_segments() {
    let mut path = Path::of(16);
    path.run(1000, 0.0);
    let segments: Vec<f64> = path.windows().iter().map(|each| each / SEGMENT).collect();
    assert!(
        segments.iter().all(|each| each.fract() < 1e-9),
        "{segments:?}"
    );
    // A sixteenth is less than a segment more than the smallest part.
    let all: f64 = segments.iter().sum();
    assert!(all > 0.9 * 0.1 * CAPACITY / SEGMENT, "{segments:?}");
    assert!(segments.iter().all(|&each| (all / 16.0 - each).abs() < 1.0));
}

#[test]
fn a_queue_that_some_do_not_see_counts() {
    let mut path = Path::of(4);
    path.run(500, 0.0);
    path.blind = 2;
    path.run(300, 0.04);
    assert!(
        path.windows().iter().all(|&each| each == 2.0 * SEGMENT),
        "{:?}",
        path.parts
    );
}

#[test]
fn what_a_connection_leaves_goes_to_the_others() {
    let mut path = Path::of(3);
    path.limits[2] = 50_000.0;
    path.run(1000, 0.0);
    let parts = path.windows();
    assert!((parts[2] / 10_000.0 - 1.0).abs() < 0.1, "{parts:?}");
    let all: f64 = parts[..2].iter().sum();
    assert!(all > 0.8 * 0.1 * CAPACITY, "{parts:?}");
}

#[test]
fn at_the_smallest_window_connections_take_turns() {
    let mut path = Path::of(8);
    path.run(500, 0.0);
    path.run(100, 0.1);
    assert!(path.windows().iter().all(|&each| each == 2.0 * SEGMENT));
    let mut turns = vec![0; 8];
    for _ in 0..2000 {
        path.run(1, 0.1);
        let waits = path.parts.iter().filter(|part| part.wait.is_some());
        assert!(waits.clone().count() >= 6, "{:?}", path.parts);
        assert!(
            waits
                .map(|part| part.wait)
                .all(|wait| wait == Some(8 * WAIT_PER_CONNECTION))
        );
        for (turns, part) in turns.iter_mut().zip(&path.parts) {
            *turns += u32::from(part.wait.is_none());
        }
    }
    assert!(turns.iter().all(|&turns| turns > 100), "{turns:?}");
}

#[test]
fn on_a_short_path_it_yields_and_comes_back() {
    let mut path = Path::of(1);
    path.base = Duration::from_millis(2);
    path.capacity = 5e7;
    path.run(1000, 0.0);
    let filled = path.windows()[0];
    assert!(filled > 0.7 * 0.002 * path.capacity, "{filled}");
    path.run(200, 0.03);
    assert_eq!(path.windows()[0], 2.0 * SEGMENT);
    path.run(1000, 0.0);
    assert!(path.windows()[0] > 0.7 * filled, "{:?}", path.parts);
}

#[test]
fn a_base_that_was_learnt_beside_a_queue_does_not_count() {
    let mut path = Path::of(2);
    path.run(500, 0.0);
    path.known_base[1] = 0.08;
    path.run(300, 0.08);
    assert!(
        path.windows().iter().all(|&each| each == 2.0 * SEGMENT),
        "{:?}",
        path.parts
    );
}

#[test]
fn what_an_idle_connection_does_not_use_goes_to_the_others() {
    let mut path = Path::of(30);
    path.run(200, 0.0);
    path.limits[4..].fill(0.0);
    // Of 86 segments, the four that have something to receive share all.
    path.run(200, 0.0);
    let windows = path.windows();
    let all: f64 = windows[..4].iter().sum();
    assert!(all > 0.8 * 0.1 * CAPACITY, "{windows:?}");
    assert!(path.parts.iter().all(|part| part.wait.is_none()));
    assert!(
        windows[4..]
            .iter()
            .all(|&each| each <= all / 30.0 + SEGMENT)
    );
    // One that goes on has its part at once.
    path.limits[29] = f64::INFINITY;
    path.run(2, 0.0);
    assert!(path.windows()[29] > 0.8 * all / 5.0, "{:?}", path.windows());
}

#[test]
fn a_connection_that_nobody_reads_keeps_its_part_for_a_moment() {
    let mut path = Path::of(3);
    path.run(500, 0.0);
    let _unread = path.seats.remove(0);
    path.bytes.remove(0);
    path.parts.remove(0);
    let before = path.windows()[1];
    path.run(40, 0.0);
    assert!(
        path.windows()[0] < 1.1 * before,
        "it may come back: {:?}",
        path.parts
    );
    path.run(460, 0.0);
    assert!(path.windows()[0] > 1.2 * before, "{:?}", path.parts);
}

#[test]
fn who_comes_later_finds_what_is_known() {
    let mut path = Path::of(1);
    path.run(1000, 0.0);
    let before = path.windows()[0];
    let next = path.seats[0].group.join();
    path.seats[0] = next;
    path.bytes[0] = 0.0;
    path.run(1, 0.0);
    assert!(
        path.windows()[0] > 0.8 * before,
        "{:?} and {before}",
        path.parts
    );
}

#[test]
fn a_copy_is_in_a_group_of_its_own() {
    let mut path = Path::of(1);
    path.run(20, 0.0);
    let copy = path.seats[0].clone();
    let before = copy.rate();
    path.limits[0] = 0.0;
    path.run(50, 0.0);
    assert_eq!(copy.rate(), before);
    assert!(path.seats[0].rate() < before);
}

#[test]
fn the_first_connection_begins_where_others_have_left_off() {
    for (rate, segments) in [(0.5 * CAPACITY, 43.0), (10_000.0, MIN_WINDOW_SEGMENTS)] {
        let mut path = Path::of(1);
        path.seats[0].group.begin_at(rate);
        path.run(1, 0.0);
        let window = path.windows()[0] / SEGMENT;
        assert!((window - segments).abs() < 1.0, "{rate}: {window}");
        // What is known here counts more.
        path.seats[0].group.begin_at(0.1 * CAPACITY);
        path.run(1, 0.0);
        let next = path.windows()[0] / SEGMENT;
        assert!(next >= window, "{rate}: {window}, then {next}");
        path.run(1000, 0.0);
        assert!(
            path.windows()[0] > 0.8 * CAPACITY * 0.1,
            "{rate}: the rest is found"
        );
    }
}
