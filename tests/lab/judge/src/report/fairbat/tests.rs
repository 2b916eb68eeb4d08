//! The page of a matrix whose figures are known.

use super::*;
use crate::report::fairbat::group::Group;
use crate::report::fairbat::points::{BASELINE, LEDBAT, LEVERS, PLAIN, Point, RIVALS, UNDAMPED};
use crate::report::tests::fairbat::{SEEDS, evaluation};
use crate::report::tests::synthetic::line;
use crate::report::words::title;
use lab_run::jobs::IdealFigures;
use lab_run::statistics::Interval;

fn at<'a>(matrix: &'a MatrixRecord, words: &str) -> Point<'a> {
    let mut points = Point::all(matrix).into_iter();
    points.find(|point| point.words() == words).unwrap()
}

/// The verdict and what was found of a requirement.
fn required<'a>(page: &'a str, contender: &str, words: &str) -> &'a str {
    let mut lines = page.lines();
    let found = lines.find(|line| {
        line.starts_with("| ") && line.contains(&format!("| {contender}: ")) && line.contains(words)
    });
    found.unwrap_or_else(|| panic!("no {contender}: {words} in\n{page}"))
}

#[test]
fn points_are_what_their_scenarios_say() {
    let matrix = evaluation();
    let words: Vec<_> = Point::all(&matrix).iter().map(Point::words).collect();
    let expected = [
        "k = 0, \u{3c1}b = 0.2",
        "k = 0, \u{3c1}b = 0.6",
        "k = 3, \u{3c1}b = 0.2",
        "k = 3, \u{3c1}b = 0.6",
        "two links, \u{3c1}s = 0.3",
    ];
    assert_eq!(words, expected);
}

#[test]
fn sizes_that_happen_to_be_large_are_taken_out_of_a_mean() {
    let matrix = evaluation();
    let group = Group::of(&matrix, at(&matrix, "k = 3, \u{3c1}b = 0.2"), BASELINE);
    // 5 ms per kB: seeds of even number were 10 kB too large, the others too small.
    let expected = [1.101 + 0.05, 1.202 - 0.05, 1.303 + 0.05, 1.404 - 0.05];
    let expected = Interval::of(&expected).unwrap();
    let delay = group.delay().unwrap();
    assert!((delay.value - expected.mean).abs() < 1e-9);
    assert!(
        (delay.half.unwrap() - expected.half).abs() < 1e-9,
        "{delay:?} {expected:?}"
    );
}

#[test]
fn a_load_that_happens_to_be_high_is_taken_out_of_a_mean_of_many_seeds() {
    let mut matrix = evaluation();
    let mut last = matrix.runs.clone();
    last.retain(|run| run.seed == 1);
    last.iter_mut().for_each(|run| run.seed = 5);
    matrix.runs.extend(last);
    for run in &mut matrix.runs {
        let jobs = run.summary.jobs.as_mut().unwrap();
        let load = 0.8 + 0.08 * run.seed as f64;
        jobs.arrived_share = Some(load);
        jobs.web.moments.mean_x = 300.0;
        jobs.web.moments.mean_y = 2.0 + 3.0 * (load - 1.0);
    }
    let group = Group::of(&matrix, at(&matrix, "k = 3, \u{3c1}b = 0.2"), PLAIN);
    let delay = group.delay().unwrap();
    assert!(
        (delay.value - 2.0).abs() < 1e-9 && delay.half.unwrap() < 1e-9,
        "{delay:?}"
    );
    // What an ideal link makes of the arrivals says more, where it is known.
    for run in &mut matrix.runs {
        let jobs = run.summary.jobs.as_mut().unwrap();
        let mean_s = 0.1 * (run.seed * run.seed) as f64;
        jobs.web.moments.mean_y = 1.0 + 2.0 * mean_s;
        jobs.ideal = Some(IdealFigures {
            mean_s,
            expected_s: 1.5,
            expected_error_s: 0.0,
        });
    }
    let group = Group::of(&matrix, at(&matrix, "k = 3, \u{3c1}b = 0.2"), PLAIN);
    let delay = group.delay().unwrap();
    assert!(
        (delay.value - 4.0).abs() < 1e-9 && delay.half.unwrap() < 1e-9,
        "{delay:?}"
    );
}

#[test]
fn contenders_are_compared_seed_by_seed() {
    let matrix = evaluation();
    let point = at(&matrix, "k = 3, \u{3c1}b = 0.6");
    let [plain, baseline] = [PLAIN, BASELINE].map(|name| Group::of(&matrix, point, name));
    let improvement = plain.improvement(&baseline).unwrap();
    // Seeds differ by a third, the ratio hardly.
    assert!((improvement.value - 20.0).abs() < 0.1, "{improvement:?}");
    assert!(improvement.half.unwrap() < 0.1, "{improvement:?}");
    assert!(baseline.delay().unwrap().half.unwrap() > 0.1);
    assert_eq!(
        plain
            .variance_against(&baseline)
            .map(|it| (it * 10.0).round()),
        Some(8.0)
    );
}

#[test]
fn two_seeds_have_means_and_no_interval() {
    let mut matrix = evaluation();
    matrix.runs.retain(|run| run.seed <= 2);
    let point = at(&matrix, "k = 3, \u{3c1}b = 0.6");
    let [plain, baseline] = [PLAIN, BASELINE].map(|name| Group::of(&matrix, point, name));
    let delay = baseline.delay().unwrap();
    assert!((delay.value - (1.101 + 0.05 + 1.202 - 0.05) / 2.0).abs() < 1e-9);
    assert_eq!(delay.half, None);
    let improvement = plain.improvement(&baseline).unwrap();
    assert!((improvement.value - 20.0).abs() < 0.1, "{improvement:?}");
    assert_eq!(improvement.half, None);
    assert_eq!(plain.active_against(&baseline).unwrap().half, None);
    let page = page(&matrix, Beside::default());
    let web = required(&page, title(PLAIN), "fetches are faster");
    assert!(web.contains("| holds, of 2 seeds |"), "{web}");
    let clearly = required(&page, title(LEVERS), "clearly better");
    assert!(clearly.contains("| **not measured** |"), "{clearly}");
    assert!(line(&page, "|  | The interval").contains("**not measured**"));
}

#[test]
fn failed_runs_are_no_seeds() {
    let mut matrix = evaluation();
    matrix.runs.iter_mut().for_each(|run| {
        if run.seed == 1 {
            run.failure = Some("no route".to_owned());
        }
    });
    let group = Group::of(&matrix, at(&matrix, "k = 0, \u{3c1}b = 0.2"), PLAIN);
    assert_eq!(group.seeds(), SEEDS.count() - 1);
    assert!(page(&matrix, Beside::default()).contains("seed 1: no route"));
}

#[test]
fn the_page_judges_by_the_figures() {
    let matrix = evaluation();
    let page = page(&matrix, Beside::default());
    let holds = |name: &str, words: &str| {
        let line = required(&page, title(name), words);
        assert!(line.contains("| holds |"), "{line}");
    };
    holds(PLAIN, "fetches are faster");
    holds(PLAIN, "every chunk that arrives");
    holds(PLAIN, "by what drained");
    holds(PLAIN, "by what the link carried");
    holds(PLAIN, "the queue is empty");
    holds(LEVERS, "fetches take no longer");
    holds(LEVERS, "clearly better");
    holds(PLAIN, "is within 20 %");
    let stays = required(&page, title(PLAIN), "stay bounded");
    assert!(stays.contains("| holds |"), "{stays}");
    assert!(
        stays.contains("LEDBAT's grow at \u{3c1}b = 0.2 (libtorrent uTP (LEDBAT): 10.0 to 30.0, "),
        "{stays}"
    );
    // 0.8 of the baseline's: the paper has 0.8314 and 0.4679.
    let variance = required(&page, title(PLAIN), "Table I");
    assert!(
        variance.contains("**does not hold** | at 1 of 5 points; not at"),
        "{variance}"
    );
    let joined = required(&page, title(LEVERS), "fetches take no longer");
    assert!(
        joined.contains("; better by the whole interval at 5"),
        "{joined}"
    );
    assert!(page.contains(
        "LEDBAT's connections went from 4 to 30, with a target of 25 ms from 3 to 3, FAIRBAT's over \
         plain TCP from 3 to 3, TCP's from 3 to 3."
    ));
    let undamped = required(&page, title(UNDAMPED), "is within 20 %");
    assert!(undamped.contains("**does not hold**"), "{undamped}");
    assert!(
        undamped.contains("at 0 of 2 points; not at k = 3"),
        "{undamped}"
    );
    assert!(
        undamped.contains("; 0 of 8 single runs were in time"),
        "{undamped}"
    );
    let found = required(&page, title(PLAIN), "is within 20 %");
    assert!(
        found.contains("; 20 of 20 single runs were in time"),
        "{found}"
    );
    assert!(line(&page, "| E | A step in load").contains("**not measured**"));
    // Seeds differ by more than 8 %.
    assert!(line(&page, "|  | The interval").contains("**does not hold**"));
}

#[test]
fn the_page_names_the_papers_contenders_without_runs() {
    let mut matrix = evaluation();
    let missing = "Not measured here: LEDBAT; LEDBAT, target 25 ms; LEDBAT~a; TCP-LP; TCP-LP, as in \
                   Linux.\n";
    let text = page(&matrix, Beside::default());
    assert!(text.contains(missing), "{text}");
    let mut rivals = matrix.runs.clone();
    rivals.retain(|run| run.contender == LEDBAT);
    for name in RIVALS {
        matrix.runs.extend(rivals.iter().cloned().map(|mut run| {
            name.clone_into(&mut run.contender);
            run
        }));
    }
    assert!(!page(&matrix, Beside::default()).contains("Not measured here"));
}

#[test]
fn what_was_not_measured_at_every_point_is_not_said_to_hold() {
    let mut matrix = evaluation();
    matrix
        .runs
        .retain(|run| run.contender != PLAIN || run.scenario != "fairbat-b60-k3");
    let page = page(&matrix, Beside::default());
    let web = required(&page, title(PLAIN), "fetches are faster");
    assert!(web.contains("**not measured** | at 1 of 2 points"), "{web}");
}

#[test]
fn tables_have_the_papers_numbers_beside_ours() {
    let page = page(&evaluation(), Beside::default());
    let paper = line(&page, "| FAIRBAT, paper");
    assert_eq!(
        paper,
        "| FAIRBAT, paper | 0.8314 | 0.7173 | 0.6278 | 0.5763 | 0.4679 |"
    );
    let row = format!("| {} | 0.800, met | \u{2013} |", title(PLAIN));
    let ours = line(&page, &row);
    assert!(ours.ends_with("| 0.800, **missed** |"), "{ours}");
    let row = format!("| k = 3, \u{3c1}b = 0.6 | {} | 90 of 100", title(LEDBAT));
    // Four seeds.
    let row = row.replace("90 of 100", "360 of 400");
    let grown = line(&page, &row);
    assert!(
        grown.contains("| 4.0, 10.0, 20.0, 30.0 | grows with 4 of 4 |"),
        "{grown}"
    );
    let joined = line(&page, "| two links, \u{3c1}s = 0.3 | -2");
    assert!(joined.ends_with("| better |"), "{joined}");
    assert!(!page.contains("NaN") && !page.contains("inf "), "{page}");
}

#[test]
fn each_row_of_table_1_is_followed_by_what_stands_in_its_place() {
    let page = page(&evaluation(), Beside::default());
    let (_, table) = page.split_once("## Table I").unwrap();
    let rows: Vec<_> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    let at = |start: &str| {
        let place = rows.iter().position(|row| row.starts_with(start));
        place.unwrap_or_else(|| panic!("no {start} in {rows:?}"))
    };
    let paper = at("| LEDBAT, paper | 0.99 |");
    assert_eq!(at(&format!("| {} | 1.100 |", title(LEDBAT))), paper + 1);
    let missing = "not measured | not measured | not measured | not measured | not measured |";
    for (paper, ours) in [
        ("| TCP-LP, paper", "| TCP-LP | "),
        ("| LEDBAT~a, paper", "| LEDBAT~a | "),
    ] {
        let row = rows[at(paper) + 1];
        assert_eq!(row, format!("{ours}{missing}"));
    }
}

#[test]
fn a_scale_is_compared_at_the_same_point() {
    let matrix = evaluation();
    let mut other = hardest(&matrix, SCALINGS[0]);
    for scenario in other.scenarios.values_mut() {
        scenario.scale_time(1000.0 / 300.0);
    }
    let page = page(&matrix, scaled(&other));
    for size in ["300", "1000"] {
        let row = format!("| k = 3, \u{3c1}b = 0.6 | {size} | {} |", title(PLAIN));
        assert!(line(&page, &row).contains("| 20.0 \u{b1}"), "{page}");
    }
    let scale = line(&page, "|  | The scale");
    assert!(scale.contains("| holds |"), "{scale}");
    for run in other.runs.iter_mut().filter(|run| run.contender == PLAIN) {
        run.summary.jobs.as_mut().unwrap().web.moments.mean_y *= 0.5;
    }
    let page = tests::page(&matrix, scaled(&other));
    let scale = line(&page, "|  | The scale");
    assert!(scale.contains("**does not hold**"), "{scale}");
    assert!(
        scale.contains("20.0 \u{b1} 0.0 % and with 1000 kB 60.0 \u{b1} 0.0 %, difference 40.0"),
        "{scale}"
    );
}

#[test]
fn every_figure_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let written = write(&[evaluation()], directory.path()).unwrap();
    let names: Vec<_> = written
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect();
    let expected = [
        "fairbat.md",
        "fairbat-fig1.svg",
        "fairbat-fig2.svg",
        "fairbat-fig3.svg",
        "fairbat-fig5.svg",
        "fairbat-flows.svg",
    ];
    assert_eq!(names, expected);
    let page = fs::read_to_string(&written[0]).unwrap();
    for path in &written[1..] {
        let svg = fs::read_to_string(path).unwrap();
        assert!(
            !svg.contains("NaN") && !svg.contains("inf "),
            "{}",
            path.display()
        );
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(page.contains(&format!("]({name})")), "{name}");
    }
    let svg = fs::read_to_string(&written[2]).unwrap();
    assert_eq!(svg.matches(title(LEVERS)).count(), 2);
}

#[test]
fn a_matrix_without_runs_has_a_page() {
    let mut matrix = evaluation();
    matrix.runs.clear();
    let directory = tempfile::tempdir().unwrap();
    let written = write(&[matrix], directory.path()).unwrap();
    assert_eq!(written.len(), 1);
    let page = fs::read_to_string(&written[0]).unwrap();
    assert!(
        page.contains("**not measured**") && !page.contains("| holds"),
        "{page}"
    );
    assert_eq!(write(&[], directory.path()).unwrap(), Vec::<PathBuf>::new());
}

/// The matrix's hardest point as a matrix of its own.
fn hardest(matrix: &MatrixRecord, name: &str) -> MatrixRecord {
    let mut other = matrix.clone();
    other.name = name.to_owned();
    other.scenarios.retain(|name, _| name == "fairbat-b60-k3");
    other.runs.retain(|run| run.scenario == "fairbat-b60-k3");
    other
}

fn scaled(scaling: &MatrixRecord) -> Beside<'_> {
    Beside {
        scalings: SCALINGS.map(|_| Some(scaling)),
        ..Beside::default()
    }
}

fn for_longer(long: &MatrixRecord) -> Beside<'_> {
    Beside {
        long: Some(long),
        ..Beside::default()
    }
}

#[test]
fn a_longer_run_has_its_table_and_is_judged() {
    let matrix = evaluation();
    let mut long = hardest(&matrix, LONG);
    let text = page(&matrix, for_longer(&long));
    assert!(text.contains("With arrivals for 210 s"), "{text}");
    let judged = format!(
        "| B | {}: active chunks stay bounded and LEDBAT's do not",
        title(PLAIN)
    );
    let held = line(&text, &judged);
    assert!(held.contains("| holds |"), "{held}");
    for run in long.runs.iter_mut().filter(|run| run.contender == PLAIN) {
        let active = run.summary.jobs.as_mut().unwrap().active.as_mut();
        active.unwrap().quarters = [4.0, 10.0, 20.0, 30.0];
    }
    let text = page(&matrix, for_longer(&long));
    let broken = line(&text, &judged);
    assert!(broken.contains("**does not hold**"), "{broken}");
    let text = page(&matrix, Beside::default());
    let missing = line(&text, &judged);
    assert!(missing.contains("not measured"), "{missing}");
}

#[test]
fn the_law_as_printed_is_shown_in_longer_runs() {
    let matrix = evaluation();
    let heading = "## The law as printed, in longer runs";
    assert!(!page(&matrix, Beside::default()).contains(heading));
    let other = hardest(&matrix, CONVERGED);
    let beside = Beside {
        converged: Some(&other),
        ..Beside::default()
    };
    let page = page(&matrix, beside);
    let (_, section) = page.split_once(heading).unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let row = format!("| k = 3, \u{3c1}b = 0.6 | {} |", title(UNDAMPED));
    // Its fetches, and its limit.
    assert_eq!(section.matches(&row).count(), 2, "{section}");
}
