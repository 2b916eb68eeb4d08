//! All experiments with all seeds: a record, tables, and the pictures.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::picture::{self, Panel};
use super::verdict::{self, Requirement};
use super::{Control, Experiment, Figures, Trace};
use crate::statistics::Spread;

/// Name of the record and of the page; figures have their number behind it.
const NAME: &str = "dalbe-numerical";

/// Seeds of the capacity. The pictures show the first.
const SEEDS: RangeInclusive<u64> = 1..=10;

/// The two sizes of Table I.
pub(super) const SIZES: [f64; 2] = [0.1, 0.3];

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

/// One experiment and what it came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Run {
    pub(super) experiment: Experiment,
    pub(super) figures: Figures,
}

/// All of them.
#[derive(Serialize)]
struct Record<'a> {
    name: &'a str,
    command: &'a str,
    commit: &'a str,
    runs: &'a [Run],
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
    };
    let path = directory.join(format!("{NAME}.json"));
    fs::write(&path, serde_json::to_vec(&record)?)?;
    written.push(path);
    let path = directory.join(format!("{NAME}.md"));
    fs::write(&path, page(&record)?)?;
    written.push(path);
    Ok(written)
}

/// Every experiment with each of these seeds.
pub(super) fn all(seeds: &RangeInclusive<u64>) -> Vec<Run> {
    let mut runs = Vec::new();
    for delay_based in [false, true] {
        for eta in SIZES {
            for control in Control::ALL {
                runs.extend(seeds.clone().map(|seed| {
                    let experiment = Experiment {
                        eta,
                        control,
                        delay_based,
                        seed,
                    };
                    Run {
                        experiment,
                        figures: experiment.figures(),
                    }
                }));
            }
        }
    }
    runs
}

/// The values of one figure over the seeds of one experiment.
pub(super) fn values(
    runs: &[Run],
    (delay_based, eta, control): (bool, f64, Control),
    value: impl Fn(&Figures) -> Option<f64>,
) -> Vec<f64> {
    let same = |run: &&Run| {
        let it = run.experiment;
        it.delay_based == delay_based && it.eta == eta && it.control == control
    };
    let found = runs.iter().filter(same);
    found.filter_map(|run| value(&run.figures)).collect()
}

impl Control {
    /// All, in the order of the tables.
    const ALL: [Self; 6] = [
        Self::Pid,
        Self::Mbc,
        Self::LimitedMbc,
        Self::Headroom,
        Self::AtOnce,
        Self::BestEffort,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Pid => "PID",
            Self::Mbc => "MBC",
            Self::LimitedMbc => "MBC, limiter",
            Self::Headroom => "MBC, headroom",
            Self::AtOnce => "*model at once*",
            Self::BestEffort => "*w = 1*",
        }
    }
}

impl Figure {
    fn file_name(&self) -> String {
        format!("dalbe-fig{}.svg", self.number)
    }

    fn draw(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let mut drawn: Vec<(String, Trace)> = Vec::new();
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
                drawn.push((title, trace));
            }
        }
        let panels: Vec<_> = drawn
            .iter()
            .map(|(title, trace)| Panel {
                title: title.clone(),
                trace,
            })
            .collect();
        let title = format!("{}, seed {}", self.title, SEEDS.start());
        picture::draw(&title, &panels, path)
    }
}

/// What the page says before its tables.
const HEAD: &str = "\
The numerical experiments of the DA-LBE paper (Hayes et al. 2017, NEAT D3.2 Appendix B, Table I,
figs 1, 2 and 6) with the controllers of `crates/dalbe`: a link of 100 units whose capacity is drawn
anew from 80 to 100 every 5 s, six greedy sources that come and go, and a DA-LBE source that starts at
400 s with a soft deadline at 1700 s. It has 10 or 30 % of what the full link carries in between
to send. All sources have the utility of TCP (alpha = 2); in fig. 6 the DA-LBE source has alpha = 1.2
and the price P[queue > 10], mapped by phi (eqs 22–26). Only MBC is limited, as in the paper; what else
it leaves open is decided in `tests/lab/src/numerical/mod.rs`.
";

/// What the columns mean.
const COLUMNS: &str = "\
*late*: end relative to the deadline, in per cent of the window of 1300 s. *Largest ratio*: of its
rate to that of a greedy source that sends at the same time, means over 10 s, both settled for 30 s.
*Gap*: share of the capacity that it had from 1000 to 1010 s, when nobody else sent, and at the end of
it (a source approaches its rate with a time constant of 5 s). *Gives way*: what it did not send in
the 100 s after others arrive (800, 1200, 1400 s), compared with its rate before, and how long it
stayed below 95 % of that. *TCP*: mean rate of all greedy sources together, 400 to 1700 s. In
*italics*, for comparison: the model without delay, whose w follows from the price of each moment, so
that it keeps to its target as closely as the inertia of the source allows; and w = 1 throughout.
";

fn page(record: &Record<'_>) -> Result<String, std::fmt::Error> {
    let mut page = String::new();
    writeln!(page, "# DA-LBE: the paper's numerical experiments\n")?;
    writeln!(page, "<!-- Made by `{}`. -->\n", record.command)?;
    writeln!(page, "{HEAD}")?;
    let (first, last) = (SEEDS.start(), SEEDS.end());
    writeln!(
        page,
        "Each figure is the median over the seeds {first} to {last} (least to most); the pictures show\n\
         seed {first}. `{}`, commit {}; every run is in [{NAME}.json]({NAME}.json).\n",
        record.command, record.commit
    )?;
    for (delay_based, title) in [
        (false, "All alike (figs 1 and 2)"),
        (true, "Another price (fig. 6)"),
    ] {
        writeln!(page, "## {title}\n")?;
        for figure in FIGURES.iter().filter(|it| it.delay_based == delay_based) {
            writeln!(page, "![{}]({})\n", figure.title, figure.file_name())?;
        }
        for eta in SIZES {
            table(&mut page, record.runs, delay_based, eta)?;
        }
    }
    writeln!(page, "{COLUMNS}")?;
    writeln!(page, "## What is required, and what the paper says\n")?;
    writeln!(page, "| | measured | |\n|---|---|---|")?;
    for Requirement {
        what,
        measured,
        holds,
    } in verdict::all(record.runs)
    {
        let verdict = if holds { "holds" } else { "**does not hold**" };
        writeln!(page, "| {what} | {measured} | {verdict} |")?;
    }
    writeln!(page, "\n{}", verdict::REMARKS)?;
    Ok(page)
}

fn table(page: &mut String, runs: &[Run], delay_based: bool, eta: f64) -> std::fmt::Result {
    writeln!(page, "Size {:.0} %:\n", eta * 100.0)?;
    writeln!(
        page,
        "| | late, % | largest ratio | gap, % | at its end, % | gives way, % | for, s | TCP |\n\
         |---|---|---|---|---|---|---|---|"
    )?;
    for control in Control::ALL {
        let which = (delay_based, eta, control);
        let cell = |digits: usize, factor: f64, value: fn(&Figures) -> Option<f64>| {
            let spread = Spread::of(&values(runs, which, value));
            spread.map_or("–".to_owned(), |spread| {
                let Spread {
                    median,
                    least,
                    most,
                } = spread.times(factor);
                let scale = 10_f64.powi(digits as i32);
                // No "-0".
                let words = |it: f64| format!("{:.digits$}", (it * scale).round() / scale + 0.0);
                format!("{} ({} to {})", words(median), words(least), words(most))
            })
        };
        writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            control.title(),
            cell(1, 100.0, |it| it.late),
            cell(3, 1.0, |it| Some(it.largest_ratio)),
            cell(0, 100.0, |it| it.gap),
            cell(0, 100.0, |it| it.gap_end),
            cell(0, 100.0, |it| it.gives_way),
            cell(0, 1.0, |it| it.gives_way_s),
            cell(1, 1.0, |it| Some(it.greedy)),
        )?;
    }
    writeln!(page)
}
