//! All scenarios together: how many of the feasible deadlines were met, and how
//! ours does where none can be, beside curl.

use std::fmt::Write;

use super::super::words::{cell, server, shown, title};
use super::super::{ALONE, OURS};
use super::Outcome;
use super::late::Late;
use crate::statistics::Spread;

/// Who is a plain best-effort flow.
const PLAIN: &str = "curl";

pub(super) fn section(outcomes: &[Outcome<'_>]) -> String {
    let (feasible, beyond): (Vec<_>, Vec<_>) =
        outcomes.iter().partition(|outcome| outcome.is_feasible());
    let mut text = String::new();
    if !feasible.is_empty() {
        text.push_str("\n## All that are feasible\n\n| | server | met | | late, p95, % |\n|---|---|---|---|---|\n");
        for (contender, server_name) in kinds(&feasible) {
            let of = feasible.iter().filter(|outcome| {
                outcome.is_of(contender) && outcome.run.congestion_control.as_deref() == server_name
            });
            let Some(kept) = Kept::of(of.copied()) else {
                continue;
            };
            let (met, all) = (kept.met, kept.all);
            let _ = writeln!(
                text,
                "| {} | {} | {met} of {all} | {:.0} % | {} |",
                cell(title(contender)),
                server(server_name),
                100.0 * met as f64 / all as f64,
                kept.late.words()
            );
        }
    }
    let beside: Vec<_> = servers(&beyond)
        .into_iter()
        .filter_map(|server| Some((server, beside(&beyond, server)?)))
        .collect();
    if !beside.is_empty() {
        text.push_str(
            "\n## All that are not feasible\n\nNobody can do better than best effort there: how \
             long ours took, in times of what curl took in the run of the same seed.\n\n\
             | server | times curl | pairs |\n|---|---|---|\n",
        );
        for (server_name, ratios) in beside {
            let count = ratios.len();
            let spread = shown(Spread::of(&ratios), 2);
            let _ = writeln!(text, "| {} | {spread} | {count} |", server(server_name));
        }
    }
    text
}

/// How deadlines were kept in some runs; of one at least.
pub(super) struct Kept {
    pub(super) met: usize,
    pub(super) all: usize,
    pub(super) late: Late,
}

impl Kept {
    /// `None` without runs.
    pub(super) fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome<'a>>) -> Option<Self> {
        let figures: Vec<_> = outcomes.map(|outcome| outcome.figures).collect();
        Some(Self {
            met: figures.iter().filter(|it| it.met).count(),
            all: figures.len(),
            late: Late::of(&figures)?,
        })
    }
}

/// Contenders with their servers, in the order of their appearance.
fn kinds<'a>(outcomes: &[&'a Outcome<'a>]) -> Vec<(&'a str, Option<&'a str>)> {
    let mut kinds = Vec::new();
    for outcome in outcomes {
        let run = outcome.run;
        let kind = (run.contender.as_str(), run.congestion_control.as_deref());
        if kind.0 != ALONE && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn servers<'a>(outcomes: &[&'a Outcome<'a>]) -> Vec<Option<&'a str>> {
    let ours = kinds(outcomes).into_iter().filter(|kind| kind.0 == OURS);
    ours.map(|kind| kind.1).collect()
}

/// How long ours took in times of what the plain one took, for each pair.
fn beside(outcomes: &[&Outcome<'_>], server: Option<&str>) -> Option<Vec<f64>> {
    let ours = outcomes.iter().filter(|outcome| {
        outcome.is_of(OURS) && outcome.run.congestion_control.as_deref() == server
    });
    let ratios = ours.filter_map(|ours| {
        let mut plain = outcomes.iter().filter(|other| other.is_of(PLAIN));
        let plain = plain.find(|other| other.is_beside(ours))?;
        Some(ours.figures.finish_s / plain.figures.finish_s)
    });
    let ratios: Vec<_> = ratios.collect();
    (!ratios.is_empty()).then_some(ratios)
}

#[cfg(test)]
mod tests {
    use super::super::outcomes;
    use super::super::synthetic::{changes, deadlines, line};
    use super::*;

    #[test]
    fn the_feasible_ones_are_counted_and_the_others_are_compared() {
        let matrix = deadlines();
        let text = section(&outcomes(&matrix));
        assert_eq!(
            line(&text, "| fairbat get | cubic"),
            "| fairbat get | cubic | 5 of 5 | 100 % | 0.0, most of 5 |"
        );
        // Late by 0, 0.6, 1.2, 1.8 and 2.4 s of 60.
        assert_eq!(
            line(&text, "| fairbat get | bbr"),
            "| fairbat get | bbr | 1 of 5 | 20 % | 4.0, most of 5 |"
        );
        // 78 s and more beside 65 s.
        assert_eq!(line(&text, "| bbr |"), "| bbr | 1.20 | 5 |");
        assert!(!text.contains("| none"));
    }

    #[test]
    fn without_curl_nothing_is_compared() {
        let matrix = changes();
        let text = section(&outcomes(&matrix));
        assert!(!text.contains("times curl"), "{text}");
        assert!(text.contains("## All that are feasible"), "{text}");
    }
}
