use dalbe::weight::ControllerPolicy;

use super::*;
use crate::matrix::Variant;
use crate::report::select::rows;
use crate::report::tests::deadlines::{changes, deadlines, line};

#[test]
fn a_page_sets_the_contenders_side_by_side() {
    let (page, _) = page(&deadlines());
    let small = &page[page.find("## small").unwrap()..];
    let ours = line(small, "| fairbat get | cubic |");
    assert_eq!(
        ours,
        "| fairbat get | cubic | 5 of 5 | 0.0, most of 5 | 58.0 (57.0\u{2013}59.0) | 75 | 5.0 | 1.50 | \
         1.40 |"
    );
    let curl = line(small, "| curl | cubic |");
    assert!(curl.ends_with("| 50 | 30.0 | 3.00 | 2.00 |"), "{curl}");
    assert!(
        page.contains("needs 1.00 Mbit/s, 30 % of a fair share: feasible"),
        "{page}"
    );
    assert!(
        page.contains("150 % of a fair share: not feasible"),
        "{page}"
    );
    assert!(page.contains("](deadlines.svg)"));
    assert!(page.contains("median over 5 seeds"));
}

#[test]
fn without_anybody_alone_there_is_no_harm_and_no_picture() {
    let matrix = changes();
    let (page, draw) = page(&matrix);
    assert!(draw.is_none());
    assert!(!page.contains("greedy kept"), "{page}");
    assert!(!page.contains(".svg"), "{page}");
    assert!(page.contains("| w, mean |"), "{page}");
}

#[test]
fn each_controller_is_judged_by_itself() {
    let mut matrix = deadlines();
    matrix
        .runs
        .retain(|run| ["fairbat", ALONE].contains(&run.contender.as_str()));
    let other = matrix.runs.clone().into_iter().map(|mut run| {
        run.controller = Some(ControllerPolicy::Pid);
        run.variant = Some("PID".to_owned());
        run
    });
    let other: Vec<_> = other.collect();
    for run in &mut matrix.runs {
        run.controller = Some(ControllerPolicy::Share);
    }
    matrix.runs.extend(other);
    let (page, _) = page(&matrix);
    let required = &page[page.find("## What is required").unwrap()..];
    let (share, pid) = required.split_once("--controller pid").unwrap();
    assert!(share.contains("--controller share"), "{page}");
    for own in [share, pid] {
        assert!(line(own, "| at least 95 %").contains("feasible"), "{page}");
    }
    assert!(page.contains("| fairbat get, PID |"), "{page}");
}

#[test]
fn a_variant_on_another_path_has_a_section_of_its_own() {
    let mut matrix = deadlines();
    for run in &mut matrix.runs {
        run.variant = Some("slow".to_owned());
    }
    let slow = Variant {
        name: "slow".to_owned(),
        path: Some("5,100,1,codel".parse().unwrap()),
        ..Variant::default()
    };
    let text = of(&on_paths(&matrix, &[slow]), "small, slow");
    let path = "\n5 Mbit/s, 50 ms one way, queue 1 BDP, codel;";
    assert!(text.contains(path), "{text}");
    // As much of the link as at 10 Mbit/s.
    assert!(text.contains("needs 0.50 Mbit/s"), "{text}");
}

fn of(matrix: &MatrixRecord, name: &str) -> String {
    let scenario = &matrix.scenarios[name];
    section(name, scenario, &rows(matrix, name), has_alone(matrix))
}

#[test]
fn what_is_not_there_at_the_end_is_at_least_so_late() {
    let text = of(&deadlines(), "large");
    let ours = line(&text, "| fairbat get | bbr |");
    assert!(
        ours.starts_with(
            "| fairbat get | bbr | 0 of 5 | \u{2265} 30.0, most of 5 | \u{2265} 78.0 |"
        )
    );
    let alone = line(&text, "| none |");
    assert!(alone.starts_with("| none | \u{2013} | \u{2013} | \u{2013} | \u{2013} | 100 | 0.0 |"));
}

#[test]
fn the_loop_is_told_of_with_its_floors() {
    let text = of(&changes(), "halves");
    assert_eq!(
        line(&text, "| fairbat get | cubic | 0."),
        "| fairbat get | cubic | 0.40 | 0.050 | 2 | 1.80 | 6.0 (4.0\u{2013}8.0), never in 1 of \
         3 | 20.0 |"
    );
}

#[test]
fn what_goes_wrong_at_a_site_is_told_with_the_time_to_recover() {
    let text = of(&changes(), "three");
    assert_eq!(
        line(&text, "| fairbat get | cubic | 4 |"),
        "| fairbat get | cubic | 4 | 1.5 (0.0\u{2013}4.2) | 1 | 5 |"
    );
}

#[test]
fn each_of_several_transfers_is_told_of() {
    let text = of(&changes(), "three");
    assert_eq!(
        line(&text, "| fairbat get | cubic | 1 |"),
        "| fairbat get | cubic | 1 | in time (20), 41.5 (40), not there (60) | \
         of the deadlines | at 3.5 s: 18 s late |"
    );
    let other = line(&text, "| fairbat get | cubic | 2 |");
    assert!(other.contains("| file-3, file-2 | \u{2013} |"), "{other}");
}
