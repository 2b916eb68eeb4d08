//! What is required of FAIRBAT, and whether it holds: verdicts by the figures of
//! the page. A mean over the seeds decides; where an interval must decide it says so.

mod certain;
mod chunks;
mod gain;
mod judged;
mod settling;
mod web;

use std::fmt::Write;

use super::group::Estimate;
use super::{Beside, LEVERS, PLAIN};
use crate::report::MatrixRecord;
use crate::report::verdict::Verdict;
use crate::report::words::{cell, title};

/// A requirement, and what was found.
struct Line {
    /// Its letter.
    of: &'static str,
    words: String,
    verdict: Verdict,
    found: String,
}

impl Line {
    fn not_measured(of: &'static str, words: String) -> Self {
        Self {
            of,
            words,
            verdict: Verdict::NotMeasured,
            found: String::new(),
        }
    }
}

pub(super) fn section(matrix: &MatrixRecord, beside: Beside<'_>) -> String {
    let ours = [PLAIN, LEVERS];
    let mut lines = Vec::new();
    for name in ours {
        lines.extend(web::lines(matrix, name));
        lines.push(web::bounded_for_longer(beside.long, name));
    }
    for name in ours {
        lines.extend(chunks::lines(matrix, name));
        lines.extend(chunks::for_longer(beside.long, name));
    }
    lines.extend(gain::lines(matrix));
    lines.extend(settling::lines(matrix, beside.steps));
    lines.extend([
        certain::exact(matrix),
        certain::scale(matrix, beside.scaling),
    ]);
    let mut text = "\n## What is required\n\nB is what fetches gain beside three long-lived \
        flows, C what background chunks get, D what the lever adds, E how soon m follows.\n\n\
        | | | | found |\n|---|---|---|---|\n"
        .to_owned();
    for line in lines {
        let verdict = line.verdict.words();
        let _ = writeln!(
            text,
            "| {} | {} | {verdict} | {} |",
            line.of, line.words, line.found
        );
    }
    text.push_str(
        "\nA point of which a run failed or is missing is not whole: nothing holds there for certain. \
         TCP-LP is in no kernel in use, and was not measured.\n",
    );
    text
}

/// A figure in per cent.
fn percent(figure: Estimate) -> String {
    super::cells::estimate(Some(figure), 1) + " %"
}

fn who(name: &str) -> String {
    cell(title(name))
}

#[cfg(test)]
mod tests;
