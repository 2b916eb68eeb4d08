//! The page of matrices whose figures are known.

use super::*;
use crate::report::bottlenecks::cell::Kind;
use crate::report::bottlenecks::picture::Dot;
use crate::report::tests::synthetic::{self, line};
use crate::results::RunSummary;
use lab_run::record::CallFigures;
use lab_run::yielding::YieldFigures;

const GET: &str = "fairbat-no-deadline";

/// What a contender did to a greedy flow of 9 Mbit/s at a bottleneck, and to all
/// others in proportion.
struct Told {
    contender: &'static str,
    /// Mbit/s that the flow kept, by seed.
    greedy: [f64; 3],
    /// Mbit/s that a stream of 6 kept.
    stream: f64,
    used: f64,
    queue_ms: f64,
}

const ALONE_THERE: Told = Told {
    contender: ALONE,
    greedy: [9.0; 3],
    stream: 6.0,
    used: 0.0,
    queue_ms: 0.0,
};

const CURL_THERE: Told = Told {
    contender: CURL,
    greedy: [4.5, 4.4, 4.6],
    stream: 4.8,
    used: 0.95,
    queue_ms: 30.0,
};

fn variant(name: &str, path: &str) -> Variant {
    Variant {
        name: name.to_owned(),
        why: Some(format!("{name} is common.")),
        path: Some(path.parse().unwrap()),
        ..Variant::default()
    }
}

fn chosen() -> Vec<Cell> {
    cells(&[
        variant("plain", "10,100,1"),
        variant("CoDel", "10,20,4,codel"),
        variant("fq", "10,100,4,fq_codel"),
    ])
}

fn runs(cell: &str, told: &Told) -> Vec<RunSummary> {
    let mut all = Vec::new();
    for (seed, greedy) in (1..).zip(told.greedy) {
        let run = |scenario: &str, foreground: &[f64]| {
            let mut run = synthetic::run(scenario, told.contender, seed, foreground);
            run.variant = Some(cell.to_owned());
            let harm = 1.0 - greedy / 9.0;
            run.summary.background_mbit = 9.5 * told.used;
            run.summary.yielding = Some(YieldFigures {
                spare_used: told.used,
                queue_median_ms: told.queue_ms,
                ..YieldFigures::default()
            });
            run.summary.fetch_mean_s = Some(0.5 + harm);
            run.summary.calls = [1.0, 2.0]
                .map(|times| CallFigures {
                    delay_median_ms: Some(50.0),
                    delay_p99_ms: Some(60.0 + times * told.queue_ms),
                    loss: times * harm / 100.0,
                })
                .to_vec();
            run
        };
        all.push(run("bottleneck-greedy", &[greedy]));
        all.push(run("bottleneck-stream", &[told.stream, 0.08]));
        all.push(run("bottleneck-web", &[3.0]));
        if told.contender != ALONE {
            all.push(run("bottleneck-alone", &[]));
        }
    }
    all
}

fn ours(greedy: [f64; 3]) -> Told {
    Told {
        contender: GET,
        greedy,
        stream: 5.97,
        used: 0.945,
        queue_ms: 4.0,
    }
}

fn matrix(name: &str, runs: Vec<RunSummary>) -> MatrixRecord {
    let mut matrix = synthetic::matrix();
    matrix.name = name.to_owned();
    matrix.runs = runs;
    matrix
}

/// At each of the cells alone, curl and ours, with what a greedy flow keeps beside
/// ours.
fn measured_at(cells: &[(&str, [f64; 3])]) -> MatrixRecord {
    let all = cells.iter().flat_map(|(cell, greedy)| {
        let told = [ALONE_THERE, CURL_THERE, ours(*greedy)];
        told.iter()
            .flat_map(|told| runs(cell, told))
            .collect::<Vec<_>>()
    });
    matrix(NAME, all.collect())
}

/// Ours keep all to a greedy flow at one, not at the next, and what curl leaves at the
/// last.
fn three() -> MatrixRecord {
    measured_at(&[
        ("plain", [8.9, 8.91, 9.0]),
        ("CoDel", [4.0, 3.9, 4.2]),
        ("fq", [4.5, 4.45, 4.6]),
    ])
}

#[test]
fn the_page_says_where_each_line_holds() {
    let page = page(&[three()], &chosen(), &[]);
    assert!(page.contains("## The bottlenecks: at how many of 3 each line holds"));
    assert_eq!(
        line(&page, "| A | a greedy CUBIC flow keeps, %"),
        "| A | a greedy CUBIC flow keeps, % | **0 of 3** | **2 of 3** |"
    );
    assert_eq!(
        line(&page, "| A | a live stream keeps, %"),
        "| A | a live stream keeps, % | **0 of 3** | 3 of 3 |"
    );
    // 95 % of the rest at the plain one, 60 and 80 elsewhere.
    assert_eq!(
        line(&page, "| A | used of what the stream leaves, %"),
        "| A | used of what the stream leaves, % | 3 of 3 | **2 of 3** |"
    );
    assert_eq!(
        line(&page, "| A | a greedy BBR flow keeps, %"),
        "| A | a greedy BBR flow keeps, % | \u{2013} | \u{2013} |"
    );
    assert!(page.contains("- plain: plain is common.\n"));
}

#[test]
fn the_page_begins_with_the_median_bottleneck_and_the_worst() {
    let page = page(&[three()], &chosen(), &[]);
    let (_, table) = page
        .split_once("## The bottlenecks: the median of up to 3 (the worst)")
        .unwrap();
    assert_eq!(
        line(table, "| a greedy CUBIC flow keeps, % |"),
        "| a greedy CUBIC flow keeps, % | 50.0 (50.0) | 50.0 (44.4) |"
    );
    assert_eq!(
        line(table, "| a greedy CUBIC flow keeps, %, without"),
        "| a greedy CUBIC flow keeps, %, without fair queueing | 50.0 (50.0) | 71.7 (44.4) |"
    );
    // The longest is the worst.
    assert_eq!(
        line(table, "| web fetches take longer by, %"),
        "| web fetches take longer by, % | 100.0 (100.0) | 100.0 (111.1) |"
    );
}

#[test]
fn a_table_has_the_bound_of_each_bottleneck() {
    let page = page(&[three()], &chosen(), &[]);
    let (_, greedy) = page
        .split_once("### A: a greedy CUBIC flow keeps, %")
        .unwrap();
    assert_eq!(
        line(greedy, "| | bound"),
        "| | bound | curl, cubic | fairbat get, no deadline, cubic |"
    );
    assert_eq!(
        line(greedy, "| plain"),
        "| plain | \u{2265} 97 | **50.0 (48.9\u{2013}51.1)** | 99.0 (98.9\u{2013}100.0) |"
    );
    assert_eq!(
        line(greedy, "| CoDel"),
        "| CoDel | \u{2265} 90 | **50.0 (48.9\u{2013}51.1)** | **44.4 (43.3\u{2013}46.7)** |"
    );
    // There a receiver may take what curl takes at worst.
    assert_eq!(
        line(greedy, "| fq"),
        "| fq | \u{2265} 90, \u{2265} 48.9 | **50.0 (48.9\u{2013}51.1)** | \
         50.0 (49.4\u{2013}51.1) |"
    );
    let (_, queue) = page.split_once("### B: standing queue alone, ms").unwrap();
    assert_eq!(
        line(queue, "| plain"),
        "| plain | \u{2264} 10 | 30.0 | 4.0 |"
    );
    // The other direction of the call is the worse one.
    let (_, call) = page.split_once("### A: 99 % of a call's packets").unwrap();
    assert_eq!(
        line(call, "| plain"),
        "| plain | \u{2264} 10 | **60.0** | 8.0 |"
    );
}

#[test]
fn curl_is_not_judged_by_itself() {
    let page = page(&[three()], &chosen(), &[]);
    assert_eq!(
        line(&page, "| B | carried alone"),
        "| B | carried alone, % of what curl carries | \u{2013} | 3 of 3 |"
    );
    assert_eq!(
        line(&page, "| B | standing queue alone"),
        "| B | standing queue alone, ms | \u{2013} | 3 of 3 |"
    );
    let (_, table) = page.split_once("### B: carried alone").unwrap();
    let row = line(table, "| plain");
    assert!(row.contains("| \u{2013} | 99.5 |"), "{row}");
}

#[test]
fn a_bound_taken_from_one_seed_of_curls_is_no_surer() {
    let mut matrix = three();
    matrix
        .runs
        .retain(|run| run.contender != CURL || run.seed == 1);
    let page = page(&[matrix], &chosen(), &[]);
    let (_, queue) = page.split_once("### B: standing queue alone, ms").unwrap();
    assert_eq!(
        line(queue, "| plain"),
        "| plain | \u{2264} 10 | 30.0 | 4.0, one seed |"
    );
    assert_eq!(
        line(&page, "| B | standing queue alone"),
        "| B | standing queue alone, ms | \u{2013} | 3 of 3, 3 by one seed |"
    );
    // What others keep is beside the foreground alone, of which there are three.
    let kept = line(&page, "| A | a live stream keeps, %");
    assert!(
        kept.ends_with("| **0 of 3**, 3 unsure | 3 of 3 |"),
        "{kept}"
    );
}

#[test]
fn more_harm_than_curl_is_said_where_every_seed_shows_it() {
    let page = page(&[three()], &chosen(), &[]);
    let said = line(&page, "- fairbat get, no deadline, cubic does");
    assert!(
        said.contains("**more harm than curl** at 1 of 3 bottlenecks: CoDel (a greedy CUBIC flow,"),
        "{said}"
    );
    assert!(!said.contains("plain"), "{said}");
    assert!(!said.contains("fq"), "{said}");
    // One seed of three is no worse than curl's worst.
    let chance = measured_at(&[("CoDel", [4.0, 3.9, 4.45])]);
    let page = super::page(&[chance], &chosen(), &[]);
    let said = line(&page, "- fairbat get, no deadline, cubic does");
    assert!(
        said.ends_with("does more harm than curl nowhere."),
        "{said}"
    );
}

#[test]
fn seeds_that_disagree_are_unsure() {
    let matrix = measured_at(&[("plain", [8.7, 8.6, 9.0])]);
    let page = page(&[matrix], &chosen(), &[]);
    assert_eq!(
        line(&page, "| A | a greedy CUBIC flow keeps, %"),
        "| A | a greedy CUBIC flow keeps, % | **0 of 1** | **0 of 1**, 1 unsure |"
    );
    let row = line(&page, "| plain | \u{2265} 97");
    assert!(row.ends_with("| **96.7 (95.6\u{2013}100.0)**? |"), "{row}");
}

#[test]
fn drawn_bottlenecks_have_a_section_with_more_room() {
    let drawn = cells(&[variant("drawn", "10,100,1")]);
    let mut unseen = measured_at(&[("drawn", [7.9, 7.9, 7.95])]);
    unseen.name = UNSEEN.to_owned();
    let page = page(&[three(), unseen], &chosen(), &drawn);
    let (_, section) = page.split_once("## Drawn by a seed, within 10 %").unwrap();
    assert_eq!(
        line(section, "| drawn | \u{2265} 87.3"),
        "| drawn | \u{2265} 87.3 | **50.0 (48.9\u{2013}51.1)** | 87.8 (87.8\u{2013}88.3) |"
    );
    assert!(!page.contains("## More ways"));
}

#[test]
fn others_are_compared_with_the_runs_of_the_first_matrix() {
    let mut more: Vec<_> = runs("plain", &ours([8.1, 8.1, 8.1]));
    for run in &mut more {
        run.congestion_control = Some("bbr".to_owned());
    }
    let page = page(&[three(), matrix("bottlenecks-bbr", more)], &chosen(), &[]);
    let (_, section) = page
        .split_once("## More ways to yield: at how many of")
        .unwrap();
    assert_eq!(
        line(section, "| A | a greedy CUBIC flow keeps, %"),
        "| A | a greedy CUBIC flow keeps, % | **0 of 1** |"
    );
    assert_eq!(
        line(section, "| B | carried alone"),
        "| B | carried alone, % of what curl carries | 1 of 1 |"
    );
}

#[test]
fn http3_is_compared_with_tcp_and_with_quinn() {
    let over = |contender, greedy, used| {
        let told = Told {
            contender,
            greedy,
            used,
            ..ours([9.0; 3])
        };
        ["plain", "CoDel", "fq"]
            .map(|cell| runs(cell, &told))
            .concat()
    };
    let all = [
        over("http3", [9.0; 3], 1.0),
        over("http3-get", [4.5; 3], 0.98),
        over("http3-served", [4.5; 3], 0.96),
    ];
    let mut http3 = matrix("bottlenecks-http3", all.concat());
    for run in &mut http3.runs {
        run.congestion_control = None;
    }
    let page = page(&[three(), http3], &chosen(), &[]);
    let (_, part) = page.split_once("## HTTP/3 beside TCP").unwrap();
    // Medians of 99, 43 and 50 % over TCP, and of 50 % over HTTP/3.
    assert_eq!(
        line(part, "| a greedy CUBIC flow keeps, %"),
        "| a greedy CUBIC flow keeps, % | **2 of 3**, by 0.0 in the middle; not at plain (49.0) | \
         \u{2013} |"
    );
    assert_eq!(
        line(part, "| used of what the stream leaves, %"),
        "| used of what the stream leaves, % | 3 of 3, by -3.5 in the middle | \u{2013} |"
    );
    let (_, alone) = part.split_once("### carried alone").unwrap();
    assert_eq!(line(alone, "| CoDel"), "| CoDel | 98.0 | **96.0** |");
}

#[test]
fn a_dot_is_what_others_lose_and_what_is_used() {
    let matrix = three();
    let runs = Runs::of([&matrix]);
    let chosen = chosen();
    let dot = |contender, cells: &[&Cell]| {
        let server = Some("cubic");
        Dot::of(Subject { contender, server }, cells, &runs).unwrap()
    };
    let curl = dot(CURL, &[&chosen[0]]);
    // Half of the greedy flow, a fifth of the stream.
    assert!((curl.harm.median - 35.0).abs() < 1e-9, "{curl:?}");
    assert!((curl.used.median - 95.0).abs() < 1e-9, "{curl:?}");
    // In the median a per cent of the greedy flow, and half a per cent of the stream.
    let ours = dot(GET, &[&chosen[0]]);
    assert!((ours.harm.median - 0.75).abs() < 1e-9, "{ours:?}");
    let both = dot(GET, &[&chosen[0], &chosen[1]]);
    assert!(both.harm.least < 1.0 && both.harm.most > 27.0, "{both:?}");
    assert_eq!(chosen[1].kind, Kind::Codel);
}

#[test]
fn a_picture_is_drawn_of_what_was_measured() {
    let directory = tempfile::tempdir().unwrap();
    let matrix = three();
    let path = directory.path().join("picture.svg");
    let subjects = subjects([&matrix].into_iter());
    draw(&Runs::of([&matrix]), &subjects, &chosen(), &path).unwrap();
    let picture = fs::read_to_string(&path).unwrap();
    for words in ["CoDel", "fq_codel", "long queue, drop-tail", "curl"] {
        assert!(picture.contains(words), "{words}");
    }
    assert!(!picture.contains("policer"), "nothing was measured there");
}
