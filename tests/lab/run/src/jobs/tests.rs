//! Figures of runs that are known.

use super::*;
use crate::link::PAYLOAD_SHARE;

/// Chunks arrive for 80 s of 100 s, and figures are of 20 to 80 s.
fn setup(foreground: &str) -> Scenario {
    let text = format!(
        "description = \"a test\"\nduration_s = 100\nmeasure_from_s = 20\nmeasure_until_s = 80\n\
         [[link]]\nrate_mbit = 10\ndelay_ms = 10\nqueue = {{ packets = 100 }}\n\
         {foreground}\n\
         [background]\njobs = {{ load = 0.4, mean_kb = 300, until_s = 80 }}\n"
    );
    toml::from_str(&text).unwrap()
}

fn fetch(t: f64, bytes: u64, seconds: Option<f64>) -> Fetch {
    Fetch { t, bytes, seconds }
}

fn background(jobs: Vec<Fetch>, control: Vec<ControlSample>) -> BackgroundRecord {
    BackgroundRecord {
        jobs,
        control,
        ..BackgroundRecord::default()
    }
}

/// A sample each second of the run.
fn control(state: impl Fn(f64) -> (f64, f64, u32)) -> Vec<ControlSample> {
    let sample = |second: u32| {
        let t = f64::from(second);
        let (n, m, active) = state(t);
        ControlSample {
            t,
            n,
            m,
            active,
            w: 1.0,
            zeta: None,
            rate: 0.0,
        }
    };
    (0..100).map(sample).collect()
}

fn figures(jobs: Vec<Fetch>, control: Vec<ControlSample>) -> JobsFigures {
    JobsFigures::of(&setup(""), &[], &[background(jobs, control)]).unwrap()
}

fn is(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} for {expected}");
}

#[test]
fn a_scenario_without_chunks_has_none_of_it() {
    let mut setup = setup("");
    setup.background.jobs = None;
    assert_eq!(JobsFigures::of(&setup, &[], &[]), None);
}

#[test]
fn fetches_count_by_their_beginning_and_those_without_an_end_as_long_as_they_took() {
    let fetches = [
        fetch(19.9, 1_000_000, Some(50.0)),
        fetch(20.0, 100_000, Some(1.0)),
        fetch(79.0, 300_000, None),
        fetch(80.0, 1_000_000, Some(1.0)),
    ];
    let web = JobsFigures::of(&setup(""), &fetches, &[]).unwrap().web;
    assert_eq!(web.moments.count, 2);
    is(web.moments.mean_x, 200.0);
    is(web.moments.mean_y, 11.0);
    is(web.moments.covariance, 1000.0);
}

#[test]
fn chunks_are_counted_over_the_whole_run_and_offered_in_the_measured_part() {
    let jobs = vec![
        fetch(10.0, 3_000_000, Some(12.0)),
        fetch(30.0, 1_500_000, Some(70.0 - 5.0)),
        fetch(79.0, 1_500_000, None),
    ];
    let chunks = figures(jobs, Vec::new()).chunks;
    assert_eq!((chunks.arrived, chunks.served), (3, 2));
    assert_eq!(
        (chunks.arrived_bytes, chunks.served_bytes),
        (6_000_000, 4_500_000)
    );
    is(chunks.offered_mbit, 24.0 / 60.0);
    is(chunks.mean_s.unwrap(), (65.0 + 21.0) / 2.0);
    let nothing = figures(Vec::new(), Vec::new()).chunks;
    assert_eq!((nothing.arrived_bytes, nothing.on_network_s), (0, None));
}

#[test]
fn without_a_queue_of_ours_whatever_has_arrived_is_on_the_network() {
    // Quarters are of 15 s.
    let jobs = vec![
        fetch(0.0, 1, Some(35.0)),
        fetch(50.0, 1, Some(15.0)),
        fetch(65.0, 1, None),
        fetch(79.0, 1, Some(1.5)),
    ];
    let figures = figures(jobs, Vec::new());
    let active = figures.active.as_ref().unwrap();
    is(active.mean, (15.0 + 15.0 + 15.0 + 1.0) / 60.0);
    let expected = [1.0, 0.0, 1.0, 16.0 / 15.0];
    assert!(
        active
            .quarters
            .iter()
            .zip(expected)
            .all(|(a, b)| (a - b).abs() < 1e-9)
    );
    // Two were done with in the measured part.
    is(figures.chunks.on_network_s.unwrap(), 46.0 / 2.0);
    assert_eq!((figures.waiting, figures.limit), (None, None));
}

#[test]
fn with_a_queue_of_ours_only_what_has_left_it_is_on_the_network() {
    let jobs = (0..30).map(|second| fetch(f64::from(second), 1, Some(30.0)));
    let control = control(|t| {
        let waiting = if t < 50.0 { 0.0 } else { 6.0 };
        (waiting, 3.0, if t < 35.0 { 1 } else { 3 })
    });
    let figures = figures(jobs.collect(), control);
    let active = figures.active.as_ref().unwrap();
    is(active.mean, 2.5);
    assert_eq!(active.quarters, [1.0, 3.0, 3.0, 3.0]);
    let waiting = figures.waiting.unwrap();
    is(waiting.mean, 3.0);
    is(waiting.most, 6.0);
    is(waiting.empty_share, 0.5);
    assert_eq!(waiting.quarters, [0.0, 0.0, 6.0, 6.0]);
    // 30 are done with from 30 to 59 s.
    is(figures.chunks.on_network_s.unwrap(), 2.5 * 60.0 / 30.0);
}

#[test]
fn what_arrived_is_in_parts_of_what_was_to_be_expected() {
    let web = "[[foreground]]\ntraffic = { web = { load = 0.3, mean_kb = 300 } }";
    let share = |fetched: u64, moved: u64| {
        let fetches = [fetch(5.0, fetched, None), fetch(90.0, 1_000_000, None)];
        let background = background(vec![fetch(30.0, moved, None)], Vec::new());
        let figures = JobsFigures::of(&setup(web), &fetches, &[background]);
        figures.unwrap().arrived_share.unwrap()
    };
    // 80 s of fetches and 78 s of chunks, on a link that carries 1.25 MB/s.
    let expected = (0.3 * 80.0 + 0.4 * 78.0) * 1.25e6 * PAYLOAD_SHARE;
    assert!((share(10_000_000, 20_000_000) - 30e6 / expected).abs() < 1e-9);
    is(share(0, 0), 0.0);
}

/// Chunks a second apart, of which one is on the network at a time: a mean chunk
/// time of one second.
fn with_limit(m: impl Fn(f64) -> f64) -> LimitFigures {
    let jobs = (0..80).map(|second| fetch(f64::from(second), 1, Some(1.0)));
    let control = control(|t| (1.0, m(t), 1));
    let figures = figures(jobs.collect(), control);
    is(figures.chunks.on_network_s.unwrap(), 1.0);
    figures.limit.unwrap()
}

#[test]
fn a_limit_has_found_its_value_when_it_stays_there() {
    // It comes near, is off again for a while, and stays from 22 s on: steps are of 0.8 s,
    // and six and a half of them are five chunk times.
    let limit = with_limit(|t| match t {
        ..5.0 => 1.0,
        12.0..22.0 => 1.0,
        _ => 4.0,
    });
    is(limit.value, 4.0);
    is(limit.deviation, 0.0);
    // The last seven steps hold one of before 22 s, and six at 4: a mean of 3.6.
    let Found::After(chunks) = limit.course.found(1.0) else {
        panic!("{limit:?}");
    };
    assert!((26.0..28.0).contains(&chunks), "{chunks}");
    assert_eq!(limit.near_share, Some(1.0));
}

#[test]
fn a_limit_is_not_found_before_it_is_there() {
    // Twice as far as its value until 10 s: what comes afterwards does not count.
    let limit = with_limit(|t| if t < 10.0 { 8.0 } else { 4.0 });
    let Found::After(chunks) = limit.course.found(1.0) else {
        panic!("{limit:?}");
    };
    assert!((13.0..17.0).contains(&chunks), "{chunks}");
    // With chunks of a tenth of a second a step is eight of them.
    let Found::After(chunks) = limit.course.found(0.1) else {
        panic!("{limit:?}");
    };
    assert!((100.0..120.0).contains(&chunks), "{chunks}");
    let at_once = with_limit(|_| 4.0);
    assert_eq!(at_once.course.found(0.8), Found::After(1.0));
}

#[test]
fn a_limit_that_swings_all_the_time_never_finds_its_value() {
    let swing = |t: f64| {
        if ((t / 20.0) as u32).is_multiple_of(2) {
            2.0
        } else {
            6.0
        }
    };
    let limit = with_limit(swing);
    is(limit.value, 4.0);
    is(limit.deviation, 2.0);
    assert_eq!(limit.course.found(1.0), Found::Never);
    assert!(limit.near_share.unwrap() < 0.5, "{limit:?}");
}

#[test]
fn a_run_that_is_too_short_does_not_tell() {
    // 20 chunk times and ten more are 80 s at most.
    let limit = with_limit(|_| 4.0);
    assert!(matches!(limit.course.found(2.6), Found::After(_)));
    assert_eq!(limit.course.found(2.7), Found::TooShort);
    assert_eq!(LimitCourse::default().found(1.0), Found::TooShort);
}

#[test]
fn a_swing_much_later_shows_in_the_share_only() {
    let limit = with_limit(|t| if (60.0..70.0).contains(&t) { 8.0 } else { 4.0 });
    // Where a step has no sample the one before counts.
    assert!((limit.value - 5.0).abs() < 0.1, "{limit:?}");
    // 4 is within 20 % of that.
    assert_eq!(limit.course.found(1.0), Found::After(0.8));
    assert!((0.5..0.9).contains(&limit.near_share.unwrap()), "{limit:?}");
}

#[test]
fn a_course_is_kept_beside_three_long_lived_flows() {
    let greedy =
        |flows: u32| format!("[[foreground]]\ntraffic = {{ greedy = {{ flows = {flows} }} }}");
    let jobs = vec![fetch(10.0, 1, Some(20.0))];
    let course = |flows: u32, control: Vec<ControlSample>| {
        let background = background(jobs.clone(), control);
        let figures = JobsFigures::of(&setup(&greedy(flows)), &[], &[background]);
        figures.unwrap().course
    };
    assert_eq!(course(2, Vec::new()), None);
    let theirs = course(3, Vec::new()).unwrap();
    is(theirs.every_s, 1.0);
    let sum: f64 = theirs.active.iter().flatten().sum();
    is(sum, 20.0);
    assert_eq!((theirs.active.len(), theirs.active[10]), (100, Some(1.0)));
    assert_eq!(theirs.waiting, Vec::new());
    let ours = course(3, control(|t| (t, 1.0, 2))).unwrap();
    assert_eq!((ours.active[50], ours.waiting[50]), (Some(2.0), Some(50.0)));
    // Nothing is known of what was not sampled.
    let mut part = control(|t| (t, 1.0, 2));
    part.retain(|sample| sample.t < 70.0);
    let background = [background(jobs.clone(), part)];
    let part = JobsFigures::of(&setup(&greedy(3)), &[], &background).unwrap();
    let course = part.course.unwrap();
    assert_eq!((course.active[75], course.waiting[75]), (None, None));
    part.active.unwrap();
}

#[test]
fn records_of_an_older_lab_are_read() {
    let chunks: ChunkFigures =
        serde_json::from_str("{\"arrived\": 3, \"served_share\": 1}").unwrap();
    assert_eq!((chunks.arrived, chunks.arrived_bytes), (3, 0));
    let limit: LimitFigures = serde_json::from_str("{\"value\": 3, \"found_chunks\": 8}").unwrap();
    assert_eq!((limit.value, limit.course), (3.0, LimitCourse::default()));
}
