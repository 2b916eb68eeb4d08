//! The same program at the same bottlenecks over TCP and over HTTP/3, and beside quinn's CUBIC.

use crate::report::bottlenecks::Section;
use crate::report::bottlenecks::cell::Cell;
use crate::report::bottlenecks::figures::{Figure, Subject};
use crate::report::select::FILLED;
use lab_run::statistics::median;
use lab_run::table::{Table, or_nothing, shown};

/// How the tables are to be read.
const READING: &str = include_str!("../../text/beside-tcp-reading.md");

/// Who holds a download back.
struct End {
    name: &'static str,
    tcp: Subject<'static>,
    http3: Subject<'static>,
}

const ENDS: [End; 2] = [
    End {
        name: "fairbat get",
        tcp: Subject {
            contender: "fairbat-no-deadline",
            server: Some(FILLED),
        },
        http3: Subject {
            contender: "http3-get",
            server: None,
        },
    },
    End {
        name: "fairbat serve",
        tcp: Subject {
            contender: "fairbat-served",
            server: None,
        },
        http3: Subject {
            contender: "http3-served",
            server: None,
        },
    },
];

/// HTTP/3 is to be worse by no more than this, in the unit of the figure.
const NEAR: f64 = 5.0;

/// How HTTP/3 compares, as a part of the page; nothing where it was not measured.
pub(crate) fn comparison(section: &Section<'_>) -> String {
    let figures = Figure::ALL.iter().map(|(_, figure)| *figure);
    let figures: Vec<_> = figures
        .filter(|figure| {
            ENDS.iter()
                .any(|end| !end.worse(*figure, section).is_empty())
        })
        .collect();
    if figures.is_empty() {
        return String::new();
    }
    let near = Table::over(figures)
        .column("", |figure| figure.title().to_owned())
        .columns(
            &ENDS,
            |end| format!("{}, not worse by more than {NEAR:.0}", end.name),
            |figure, end| told(&end.worse(*figure, section), figure.digits()),
        );
    let judged = |end: &End, cell: &Cell| section.judged(Figure::OfQuinn, end.http3, cell);
    let cells = section.cells.iter();
    let cells = cells.filter(|cell| ENDS.iter().any(|end| judged(end, cell).is_some()));
    let alone = Table::over(cells)
        .column("", |cell| cell.name.clone())
        .columns(
            &ENDS,
            |end| end.name.to_owned(),
            |cell, end| {
                or_nothing(judged(end, cell).map(|one| {
                    let text = shown(Some(one.spread), Figure::OfQuinn.digits());
                    one.verdict.marked(&text)
                }))
            },
        );
    format!(
        "\n## HTTP/3 beside TCP\n\n{READING}\n{near}\n### {}\n\n{alone}",
        Figure::OfQuinn.title()
    )
}

impl End {
    /// By how much HTTP/3 is worse than TCP at each bottleneck where both were measured, by
    /// their medians.
    fn worse<'a>(&self, figure: Figure, section: &Section<'a>) -> Vec<(&'a Cell, f64)> {
        let sign = if figure.is_to_be_high() { 1.0 } else { -1.0 };
        let worse = section.cells.iter().filter_map(|cell| {
            let median = |subject| Some(section.judged(figure, subject, cell)?.spread.median);
            Some((*cell, sign * (median(self.tcp)? - median(self.http3)?)))
        });
        worse.collect()
    }
}

/// At how many bottlenecks it is near, the difference in the middle, and where it is not near.
fn told(worse: &[(&Cell, f64)], digits: usize) -> String {
    let Some(middle) = median(&worse.iter().map(|(_, by)| *by).collect::<Vec<_>>()) else {
        return or_nothing(None::<String>);
    };
    let far: Vec<_> = worse
        .iter()
        .filter(|(_, by)| *by > NEAR)
        .map(|(cell, by)| format!("{} ({by:.digits$})", cell.name))
        .collect();
    let near = format!("{} of {}", worse.len() - far.len(), worse.len());
    if far.is_empty() {
        format!("{near}, by {middle:.digits$} in the middle")
    } else {
        format!(
            "**{near}**, by {middle:.digits$} in the middle; not at {}",
            far.join("; ")
        )
    }
}
