//! All experiments with all seeds: a record, tables, and the pictures.

use std::error::Error;
use std::fs;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::numerical::picture;
use crate::numerical::picture::Panel;
use crate::numerical::required::requirements;
use crate::numerical::{Control, DEADLINE, Experiment, GAP, GREEDY, START, Step, Trace, WINDOW};
use crate::requirement::Requirement;
use crate::statistics::Spread;
use crate::table::{Table, or_nothing};

/// Name of the record and of the page; figures have their number behind it.
const NAME: &str = "dalbe-numerical";

/// Seeds of the capacity. The pictures show the first.
const SEEDS: RangeInclusive<u64> = 1..=10;

/// The two sizes of Table I.
pub(crate) const SIZES: [f64; 2] = [0.1, 0.3];

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
pub(crate) struct Run {
    pub(crate) experiment: Experiment,
    pub(crate) figures: Figures,
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
    fs::write(&path, page(&record))?;
    written.push(path);
    Ok(written)
}

/// Every experiment with each of these seeds.
pub(crate) fn all(seeds: &RangeInclusive<u64>) -> Vec<Run> {
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
pub(crate) fn values(
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

    pub(crate) fn title(self) -> &'static str {
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
         {}{COLUMNS}\n## What is required, and what the paper says\n\n{}\n{REMARKS}\n",
        sections.concat(),
        Requirement::table(requirements(record.runs))
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

/// How long a source has to settle after it or ours starts, s: six time
/// constants of eq. (18), after which 0.25 % of any difference is left.
const SETTLING: f64 = 30.0;

/// Rates are compared as means over so long, s: T_w.
const MEAN: f64 = 10.0;

/// When the load rises beside a source that has settled, s.
const ARRIVALS: [f64; 3] = [800.0, 1200.0, 1400.0];

/// How long after an arrival it is looked at whether ours gives way, s.
const AFTER: f64 = 100.0;

/// Its rate before the arrival is the mean over so long, s.
const BEFORE: f64 = 50.0;

/// The figures of one experiment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// When the transfer was done, s; `None` if it was not.
    pub finish_s: Option<f64>,
    /// How much after the deadline that was, as a share of the window from
    /// start to deadline.
    pub late: Option<f64>,
    /// The largest ratio of its rate to that of a greedy source which sends
    /// at the same time, both settled, means over 10 s.
    pub largest_ratio: f64,
    /// When that was, s.
    pub largest_ratio_s: f64,
    /// Which share of the capacity it had in the 10 s without competition;
    /// `None` if it was done by then.
    pub gap: Option<f64>,
    /// Which share of the capacity it had at the end of them.
    pub gap_end: Option<f64>,
    /// Data that it did not send in the 100 s after the arrivals of others (at
    /// 800, 1200 and 1400 s), compared with its rates before, as a share of
    /// what that would have been; `None` if it was done by then.
    pub gives_way: Option<f64>,
    /// How long its rate stayed below 95 % of what it was before an arrival,
    /// mean of the three, at most 100 s.
    pub gives_way_s: Option<f64>,
    /// The smallest and the largest weight after 60 s.
    pub w: (f64, f64),
    /// Mean rate of all greedy sources together until the deadline.
    pub greedy: f64,
}

impl Figures {
    pub(crate) fn of(trace: &Trace) -> Self {
        let (largest_ratio, largest_ratio_s) = largest_ratio(trace);
        let gap = trace.within(GAP);
        let carried: f64 = gap.iter().map(|step| step.ours).sum();
        let capacity: f64 = gap.iter().map(|step| step.capacity).sum();
        let gap_end = gap.last().map(|step| step.ours / step.capacity);
        let drops = ARRIVALS.map(|arrival| Drop::of(trace, arrival));
        let sum = |of: fn(&Drop) -> f64| drops.iter().map(of).sum::<f64>();
        let until = trace.finish.unwrap_or(f64::INFINITY);
        let is_in_gap = until > GAP.end;
        let is_at_arrivals = ARRIVALS.iter().all(|arrival| until > arrival + AFTER);
        let weights = trace.steps.iter().filter(|step| step.t >= START + 60.0);
        let weights = weights.filter_map(|step| step.w);
        let shared = trace.within(START..DEADLINE);
        let greedy: f64 = shared.iter().flat_map(|step| step.greedy).sum();
        Self {
            finish_s: trace.finish,
            late: trace.finish.map(|finish| (finish - DEADLINE) / WINDOW),
            largest_ratio,
            largest_ratio_s,
            gap: is_in_gap.then_some(carried / capacity),
            gap_end: gap_end.filter(|_| is_in_gap),
            gives_way: is_at_arrivals.then(|| sum(|drop| drop.missing) / sum(|drop| drop.before)),
            gives_way_s: is_at_arrivals.then(|| sum(|drop| drop.lasts) / drops.len() as f64),
            w: weights.fold((1.0, 0.0), |(least, most), w| (w.min(least), w.max(most))),
            greedy: greedy / shared.len() as f64,
        }
    }
}

impl Trace {
    /// The steps that begin within this time.
    pub(crate) fn within(&self, times: Range<f64>) -> &[Step] {
        let at = |t: f64| self.steps.partition_point(|step| step.t < t - 1e-6);
        &self.steps[at(times.start)..at(times.end)]
    }
}

fn mean_rate(steps: &[Step], rate: impl Fn(&Step) -> f64) -> f64 {
    steps.iter().map(rate).sum::<f64>() / steps.len().max(1) as f64
}

/// The largest ratio to a competitor, and when.
fn largest_ratio(trace: &Trace) -> (f64, f64) {
    let mut largest = (0.0, 0.0);
    let until = trace.finish.unwrap_or(f64::INFINITY);
    for (source, times) in GREEDY.iter().enumerate() {
        let mut t = times.start.max(START) + SETTLING;
        while t + MEAN <= times.end.min(until) {
            let steps = trace.within(t..t + MEAN);
            let ratio =
                mean_rate(steps, |step| step.ours) / mean_rate(steps, |step| step.greedy[source]);
            if ratio > largest.0 {
                largest = (ratio, t);
            }
            t += MEAN;
        }
    }
    largest
}

/// What an arrival did to the rate of our source.
struct Drop {
    /// What it would have sent at the rate it had before.
    before: f64,
    /// What of that it did not send.
    missing: f64,
    /// How long it had less than 95 % of the rate before, s.
    lasts: f64,
}

impl Drop {
    fn of(trace: &Trace, arrival: f64) -> Self {
        let rate = mean_rate(trace.within(arrival - BEFORE..arrival), |step| step.ours);
        let after = trace.within(arrival..arrival + AFTER);
        let sent: f64 = after.iter().map(|step| step.ours).sum();
        let steps = after.len() as f64;
        let low = after.iter().filter(|step| step.ours < 0.95 * rate).count();
        Self {
            before: rate * steps,
            missing: rate * steps - sent,
            lasts: low as f64 / steps * AFTER,
        }
    }
}

/// What is said below the table.
const REMARKS: &str = include_str!("../text/numerical-remarks.md");
