//! A matrix about deadlines as a page and a picture: whether they were met, and
//! what that did to people.

mod late;
mod picture;
mod pushed;
mod required;
mod sections;
mod served;
mod together;

use std::fmt::Write;

pub(super) use self::picture::{draw, has_picture};
use super::rows::rows;
use super::words::{head, how, seeds, title};
use super::{ALONE, MatrixRecord, OURS, PUSHING, RunSummary};
use crate::deadline::DeadlineFigures;
use crate::scenario::Scenario;

/// A run that did not fail, and had a deadline.
struct Outcome<'a> {
    run: &'a RunSummary,
    scenario: &'a Scenario,
    figures: &'a DeadlineFigures,
    /// The foreground alone, with the same seed.
    alone: Option<&'a RunSummary>,
}

impl Outcome<'_> {
    fn is_of(&self, contender: &str) -> bool {
        self.run.contender == contender
    }

    fn is_feasible(&self) -> bool {
        self.scenario.is_feasible() == Some(true)
    }

    /// Whether it is feasible, and was with the foreground that really came;
    /// what is not known is taken for what was meant.
    fn was_feasible(&self) -> bool {
        let came = self.alone.and_then(|run| {
            self.scenario
                .is_feasible_beside(&run.summary.foreground_mbit)
        });
        self.is_feasible() && came != Some(false)
    }

    /// Whether this differs from the other in nothing but the contender.
    fn is_beside(&self, other: &Self) -> bool {
        let key = |run: &'_ RunSummary| {
            let server = run.congestion_control.clone();
            (run.scenario.clone(), server, run.variant.clone(), run.seed)
        };
        key(self.run) == key(other.run)
    }
}

/// All runs to be judged, in their order.
fn outcomes(matrix: &MatrixRecord) -> Vec<Outcome<'_>> {
    let sound = matrix.runs.iter().filter(|run| run.failure.is_none());
    let outcomes = sound.filter_map(|run| {
        Some(Outcome {
            run,
            scenario: matrix.scenarios.get(&run.scenario)?,
            figures: run.summary.deadline.as_ref()?,
            alone: matrix.runs.iter().find(|other| {
                other.contender == ALONE
                    && other.failure.is_none()
                    && (&other.scenario, other.seed, &other.variant)
                        == (&run.scenario, run.seed, &run.variant)
            }),
        })
    });
    outcomes.collect()
}

/// The page.
pub(super) fn page(matrix: &MatrixRecord) -> String {
    let mut text = head(matrix);
    text.push_str(&reading(matrix));
    let outcomes = outcomes(matrix);
    text.push_str(&required(matrix, &outcomes));
    text.push_str(&together::section(&outcomes));
    for (name, scenario) in &matrix.scenarios {
        let rows = rows(matrix, name);
        if !rows.is_empty() {
            text.push_str(&sections::section(matrix, name, scenario, &rows));
            text.push_str(&pushed::table(scenario, &rows));
        }
    }
    text.push_str(&how(matrix));
    text
}

/// What is required, and what of it holds, under a heading: of ours by itself,
/// whether it fetches or pushes, and where there are some that are held back at both ends, of these by themselves and
/// beside the others.
fn required(matrix: &MatrixRecord, outcomes: &[Outcome<'_>]) -> String {
    let heading = "\n## What is required\n";
    let Some(beside) = served::section(matrix, outcomes) else {
        let tables = [OURS, PUSHING].map(|who| required::table(outcomes, who));
        let tables = tables.into_iter().flatten();
        let text: String = tables.map(|table| format!("\n{table}")).collect();
        return if text.is_empty() {
            text
        } else {
            format!("{heading}{text}")
        };
    };
    let mut text = heading.to_owned();
    for contender in [OURS, served::SERVED] {
        let of = format!("Of \u{201c}{}\u{201d}", title(contender));
        let table = required::table(outcomes, contender);
        text.push_str(&match table {
            Some(table) => format!("\n{of}:\n\n{table}"),
            None => format!("\n{of}: **not measured**.\n"),
        });
    }
    text.push_str(&beside);
    text
}

/// How the tables are to be read.
fn reading(matrix: &MatrixRecord) -> String {
    let mut text = String::new();
    let count = seeds(matrix).len();
    if count > 1 {
        let _ = write!(
            text,
            "Each figure is the median over {count} seeds (least\u{2013}most). "
        );
    }
    text.push_str(
        "A transfer is feasible when it needs at most 80 % of a fair share: of (1 - L)/(g + 1) of \
         the link's payload beside web traffic of load L and g greedy flows. Lateness is in per \
         cent of the time that there was; p95 of fewer than 20 runs is that of the latest of them; \
         what was not there when the run ended counts with the \
         time of that end (\u{2265}). ",
    );
    if matrix.has_alone() {
        let _ = write!(
            text,
            "`{ALONE}` is the foreground alone, and what is relative is relative to its run of the \
             same seed. Harm is that from the beginning until the deadline, whatever of the \
             transfer falls into it; greedy flows lose bytes that the background takes, and what \
             they lose beyond these is the harm. "
        );
    }
    text.push_str("Figures of runs that failed are left out, and the runs listed.\n");
    if has_picture(matrix) {
        let _ = writeln!(
            text,
            "\n![When each transfer was there, and what the foreground kept]({}.svg)",
            matrix.name
        );
    }
    text
}

#[cfg(test)]
mod synthetic;

#[cfg(test)]
mod tests {
    use super::synthetic::{changes, deadlines, line};
    use super::*;

    #[test]
    fn a_page_sets_the_contenders_side_by_side() {
        let page = page(&deadlines());
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
        assert!(!has_picture(&matrix));
        let page = page(&matrix);
        assert!(!page.contains("greedy kept"), "{page}");
        assert!(!page.contains(".svg"), "{page}");
        assert!(page.contains("| w, mean |"), "{page}");
    }
}
