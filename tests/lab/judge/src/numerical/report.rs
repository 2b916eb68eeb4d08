//! All experiments with all seeds: a record, tables, and the pictures.

use std::error::Error;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::numerical::figures::{Figures, Run, SIZES, all, values};
use crate::numerical::headroom;
use crate::numerical::headroom::HeadroomRun;
use crate::numerical::picture;
use crate::numerical::picture::Panel;
use crate::numerical::required::requirements;
use crate::numerical::{Control, Experiment};
use crate::requirement::Requirement;
use lab_run::statistics::Spread;
use lab_run::table::{Table, or_nothing};

/// Name of the record and of the page; figures have their number behind it.
const NAME: &str = "dalbe-numerical";

/// Seeds of the capacity. The pictures show the first.
const SEEDS: RangeInclusive<u64> = 1..=10;

/// One picture.
struct Figure {
    number: u8,
    title: &'static str,
    delay_based: bool,
    controls: &'static [Control],
}

const FIGURES: [Figure; 3] = [
    Figure {
        number: 1,
        title: "DA-LBE beside six greedy sources, all alike (fig. 1)",
        delay_based: false,
        controls: &[Control::Pid, Control::Mbc],
    },
    Figure {
        number: 2,
        title: "The same with the limiter of increases (fig. 2)",
        delay_based: false,
        controls: &[Control::LimitedMbc],
    },
    Figure {
        number: 6,
        title: "DA-LBE with another utility and another price (fig. 6)",
        delay_based: true,
        controls: &[Control::Mbc],
    },
];

/// All of them.
#[derive(Serialize)]
struct Record<'a> {
    name: &'a str,
    command: &'a str,
    commit: &'a str,
    runs: &'a [Run],
    headroom: &'a [HeadroomRun],
}

/// Runs all experiments and writes record, page and pictures into a
/// directory; returns where they are. `command` and `commit` say how to have
/// the same again.
///
/// # Errors
/// When one cannot be written.
pub fn write_all(
    directory: &Path,
    command: &str,
    commit: &str,
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let mut written = Vec::new();
    for figure in &FIGURES {
        let path = directory.join(figure.file_name());
        figure.draw(&path)?;
        written.push(path);
    }
    let runs = all(&SEEDS);
    let record = Record {
        name: NAME,
        command,
        commit,
        runs: &runs,
        headroom: &headroom::all(),
    };
    let path = directory.join(format!("{NAME}.json"));
    fs::write(&path, serde_json::to_vec(&record)?)?;
    written.push(path);
    let path = directory.join(format!("{NAME}.md"));
    fs::write(&path, page(&record))?;
    written.push(path);
    Ok(written)
}

impl Figure {
    fn file_name(&self) -> String {
        format!("dalbe-fig{}.svg", self.number)
    }

    fn draw(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let mut panels = Vec::new();
        for eta in SIZES {
            for &control in self.controls {
                let experiment = Experiment {
                    eta,
                    control,
                    delay_based: self.delay_based,
                    seed: *SEEDS.start(),
                };
                let trace = experiment.run();
                let done = trace
                    .finish
                    .map_or("never".to_owned(), |it| format!("{it:.0} s"));
                let share = eta * 100.0;
                let title = format!(
                    "{}, {share:.0} % of the capacity, deadline 1700 s, done {done}: rates",
                    control.title()
                );
                panels.push(Panel { title, trace });
            }
        }
        let title = format!("{}, seed {}", self.title, SEEDS.start());
        picture::draw(&title, &panels, path)
    }
}

/// What the page says before its tables.
const HEAD: &str = include_str!("../text/numerical-head.md");

/// What the columns mean.
const COLUMNS: &str = include_str!("../text/numerical-columns.md");

fn page(record: &Record<'_>) -> String {
    let sections = [
        (false, "All alike (figs 1 and 2)"),
        (true, "Another price (fig. 6)"),
    ];
    let sections = sections.map(|(delay_based, title)| {
        let figures = FIGURES.iter().filter(|it| it.delay_based == delay_based);
        let figures = figures.map(|it| format!("![{}]({})\n\n", it.title, it.file_name()));
        let tables = SIZES.map(|eta| {
            let table = table(record.runs, delay_based, eta);
            format!("Size {:.0} %:\n\n{table}\n", eta * 100.0)
        });
        let figures: String = figures.collect();
        format!("## {title}\n\n{figures}{}", tables.concat())
    });
    let (first, last) = (SEEDS.start(), SEEDS.end());
    let (command, commit) = (record.command, record.commit);
    format!(
        "# DA-LBE: the paper's numerical experiments\n\n<!-- Made by `{command}`. -->\n\n{HEAD}\n\
         Each figure is the median over the seeds {first} to {last} (least to most); the pictures show\n\
         seed {first}. `{command}`, commit {commit}; every run is in [{NAME}.json]({NAME}.json).\n\n\
         {}{COLUMNS}\n## What is required, and what the paper says\n\n{}\n{REMARKS}\n{}",
        sections.concat(),
        Requirement::table(requirements(record.runs)),
        headroom::section(record.headroom)
    )
}

/// A figure in a table: its name, to how many digits it is shown, in what unit, and
/// where it is.
type Column = (&'static str, usize, f64, fn(&Figures) -> Option<f64>);

const TABLE: [Column; 7] = [
    ("late, %", 1, 100.0, |it| it.late),
    ("largest ratio", 3, 1.0, |it| Some(it.largest_ratio)),
    ("gap, %", 0, 100.0, |it| it.gap),
    ("at its end, %", 0, 100.0, |it| it.gap_end),
    ("gives way, %", 0, 100.0, |it| it.gives_way),
    ("for, s", 0, 1.0, |it| it.gives_way_s),
    ("TCP", 1, 1.0, |it| Some(it.greedy)),
];

fn table(runs: &[Run], delay_based: bool, eta: f64) -> Table<Control> {
    Table::over(Control::ALL)
        .column("", |control| control.title().to_owned())
        .columns(
            TABLE,
            |(name, ..)| (*name).to_owned(),
            |control, &(_, digits, factor, value)| {
                let spread = Spread::of(&values(runs, (delay_based, eta, *control), value));
                or_nothing(spread.map(|it| ends_of(it.times(factor), digits)))
            },
        )
}

/// The median, and from where to where it goes.
fn ends_of(spread: Spread, digits: usize) -> String {
    let scale = 10_f64.powi(digits as i32);
    // No "-0".
    let words = |it: f64| format!("{:.digits$}", (it * scale).round() / scale + 0.0);
    let (least, most) = (words(spread.least), words(spread.most));
    format!("{} ({least} to {most})", words(spread.median))
}

/// What is said below the table.
const REMARKS: &str = include_str!("../text/numerical-remarks.md");
