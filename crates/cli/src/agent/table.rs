//! The status for people: a line for each task, what went wrong last, and the
//! lanes. Pure.

use std::fmt::Write as _;

use indicatif::BinaryBytes;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::rate::{self, Rate};
use super::words::{Direction, Lane, LastRun, Phase, Status, Task};
use crate::console::printable;
use crate::progress::span;

/// Failures of a run that are named; the agent tells some more.
const FAILURES: usize = 3;

/// For so long a day is named by its weekday.
const WEEK: SignedDuration = SignedDuration::from_hours(6 * 24);

/// How it is written.
#[derive(Debug, Clone)]
pub(super) struct Manner {
    pub(super) zone: TimeZone,
    pub(super) colours: bool,
}

/// What a cell means, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    Heading,
    Good,
    Bad,
}

impl Tone {
    /// The attribute of a terminal (ECMA-48, SGR).
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Heading => "1",
            Self::Good => "32",
            Self::Bad => "31",
        }
    }
}

type Cell = (String, Tone);

const HEADINGS: [&str; 6] = ["TASK", "PHASE", "DONE", "RATE", "DEADLINE", "FINISH"];

/// The text, with a line break at its end; `before` is what was shown last.
pub(super) fn text(status: &Status, before: Option<&Status>, manner: &Manner) -> String {
    let at = Moments {
        now: status.now,
        zone: &manner.zone,
    };
    let mut rows = vec![HEADINGS.map(|heading| (heading.to_owned(), Tone::Heading))];
    let tasks = status.tasks.iter();
    rows.extend(tasks.map(|task| row(task, rate::of(task, status, before), &at)));
    let mut text = match status.tasks.is_empty() {
        true => "there are no tasks\n".to_owned(),
        false => aligned(&rows, manner),
    };
    for task in &status.tasks {
        problems(&mut text, task, manner);
    }
    if !status.lanes.is_empty() {
        text.push('\n');
    }
    for lane in &status.lanes {
        text += &lane_line(lane);
    }
    text
}

fn aligned(rows: &[[Cell; 6]], manner: &Manner) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].0.chars().count()).max();
    let widths: Vec<usize> = (0..6).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        let mut blanks = 0;
        for ((cell, tone), width) in row.iter().zip(&widths) {
            line += &" ".repeat(blanks);
            line += &coloured(cell, *tone, manner);
            blanks = width - cell.chars().count() + 2;
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn coloured(text: &str, tone: Tone, manner: &Manner) -> String {
    match tone.code() {
        "" => text.to_owned(),
        _ if !manner.colours => text.to_owned(),
        code => format!("\x1b[{code}m{text}\x1b[0m"),
    }
}

fn row(task: &Task, rate: Option<Rate>, at: &Moments<'_>) -> [Cell; 6] {
    let phase = match task.next.filter(|_| task.phase == Phase::Waiting) {
        Some(next) => format!("waiting until {}", at.local(next)),
        None => task.phase.name().to_owned(),
    };
    let tone = match task.phase {
        Phase::Retrying | Phase::Failed => Tone::Bad,
        Phase::Running | Phase::Done => Tone::Good,
        Phase::Waiting | Phase::Scanning | Phase::Paused | Phase::Unknown => Tone::Plain,
    };
    let rate = match rate {
        Some(Rate::Own(rate)) => per_second(rate),
        Some(Rate::Shared(rate)) => format!("part of {}", per_second(rate)),
        None => "-".to_owned(),
    };
    let deadline = task.deadline.map(|deadline| at.local(deadline));
    [
        (printable(&task.id).replace('\n', "\\n"), Tone::Plain),
        (phase, tone),
        (done(task), Tone::Plain),
        (rate, Tone::Plain),
        (deadline.unwrap_or_else(|| "-".to_owned()), Tone::Plain),
        finish(task, at),
    ]
}

/// What is done of how much, as far as that is known.
fn done(task: &Task) -> String {
    let share = |done: u64, all: u64| u128::from(done) * 100 / u128::from(all.max(1));
    if task.bytes > 0 {
        let (done, all) = (BinaryBytes(task.bytes_done), BinaryBytes(task.bytes));
        let share = share(task.bytes_done, task.bytes);
        format!("{done} of {all}, {share} %")
    } else if task.files > 0 {
        let share = share(task.files_done, task.files);
        format!("{} of {} files, {share} %", task.files_done, task.files)
    } else {
        "-".to_owned()
    }
}

/// When it will be through, or was.
fn finish(task: &Task, at: &Moments<'_>) -> Cell {
    let late = task.late_s.filter(|&late_s| late_s > 0.0);
    let ahead = |end: Timestamp| {
        let early = task.deadline?.duration_since(end).as_secs_f64();
        (late.is_none() && early >= 0.0).then(|| format!(", {} early", span(early)))
    };
    let relation = |end: Timestamp| match late {
        Some(late_s) => format!(", {} late", span(late_s)),
        None => ahead(end).unwrap_or_default(),
    };
    let tone = late.map_or(Tone::Plain, |_| Tone::Bad);
    if let Some(predicted) = task.predicted.filter(|_| task.phase.is_under_way()) {
        return (at.local(predicted) + &relation(predicted), tone);
    }
    match &task.last {
        Some(last) if !task.phase.is_under_way() => ended(last, late, at),
        Some(_) | None => ("-".to_owned(), Tone::Plain),
    }
}

/// How the last run was.
fn ended(last: &LastRun, late: Option<f64>, at: &Moments<'_>) -> Cell {
    let when = at.local(last.ended);
    match (last.ok, last.in_time, late) {
        (false, _, _) => (format!("{when}, failed"), Tone::Bad),
        (true, Some(false), Some(late_s)) => (format!("{when}, {} late", span(late_s)), Tone::Bad),
        (true, Some(false), None) => (format!("{when}, late"), Tone::Bad),
        (true, Some(true), _) => (format!("{when}, in time"), Tone::Plain),
        (true, None, _) => (when, Tone::Plain),
    }
}

/// What went wrong in the last run, unless nothing did.
fn problems(text: &mut String, task: &Task, manner: &Manner) {
    let Some(last) = task.last.as_ref().filter(|last| !last.ok) else {
        return;
    };
    let problem = problem(last);
    let id = coloured(&printable(&task.id), Tone::Bad, manner);
    let _ = writeln!(text, "\n{id}: {}", printable(&problem));
    for line in details(last) {
        let _ = writeln!(text, "  {}", printable(&line));
    }
}

/// What stood in the way of a run, in one sentence.
pub(super) fn problem(last: &LastRun) -> String {
    let files = |count: u64| match count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let (failed, changed) = (last.files.failed, last.files.changed);
    match &last.problem {
        Some(problem) => problem.clone(),
        None if failed > 0 => format!("{} failed", files(failed)),
        None if changed > 0 => format!("{} changed while being read", files(changed)),
        None => "the last run failed".to_owned(),
    }
}

/// The first failures, and what to do.
pub(super) fn details(last: &LastRun) -> Vec<String> {
    let failures = last.failures.iter().take(FAILURES);
    let mut lines: Vec<String> = failures
        .map(|failure| format!("{}: {}", failure.path, failure.problem))
        .collect();
    lines.extend(last.hint.iter().map(|hint| format!("hint: {hint}")));
    lines
}

fn lane_line(lane: &Lane) -> String {
    let sample = lane.sample;
    let direction = match lane.direction {
        Direction::Push => "push",
        Direction::Pull => "pull",
        Direction::Unknown => "other",
    };
    let connections = match sample.active {
        0 => "idle".to_owned(),
        1 => "1 connection".to_owned(),
        active => format!("{active} connections"),
    };
    let mut line = format!("{direction}: {connections}");
    if sample.active > 0 {
        line += &format!(", {}", per_second(sample.rate.unwrap_or(0.0)));
        line += &sample
            .w
            .map_or(String::new(), |w| format!(", weight {w:.2}"));
        let needed = sample.zeta.map(per_second);
        line += &needed.map_or(String::new(), |needed| format!(", {needed} needed"));
    }
    if !lane.can_yield {
        let lever = printable(&lane.lever);
        line += &format!("; cannot yield here ({lever}): see fairbat doctor");
    }
    line.push('\n');
    line
}

/// Saturates; for show only.
fn per_second(rate: f64) -> String {
    format!("{}/s", BinaryBytes(rate as u64))
}

/// Moments as people name them.
struct Moments<'a> {
    now: Timestamp,
    zone: &'a TimeZone,
}

impl Moments<'_> {
    fn local(&self, moment: Timestamp) -> String {
        let (now, local) = (
            self.now.to_zoned(self.zone.clone()),
            moment.to_zoned(self.zone.clone()),
        );
        let form = if now.date() == local.date() {
            "%H:%M"
        } else if moment.duration_since(self.now).abs() < WEEK {
            "%a %H:%M"
        } else {
            "%Y-%m-%d %H:%M"
        };
        local.strftime(form).to_string()
    }
}

#[cfg(test)]
mod tests;
