//! The status for people: one line for each task, then the latest problems, then the
//! lanes. Pure.

use std::fmt::Write as _;

use fairbat::printable::printable;
use indicatif::BinaryBytes;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::api::{
    ReportedDirection, ReportedFleet, ReportedHold, ReportedLane, ReportedPhase, ReportedRun,
    ReportedStatus, ReportedTask,
};
use crate::console::per_second;
use crate::progress::span;

/// Number of failed files to show for a run. The agent reports more.
const MAX_FAILURES_SHOWN: usize = 3;

/// A day nearer than this is shown by its weekday. Six days, so that the name is unique.
const WEEKDAY_RANGE: SignedDuration = SignedDuration::from_hours(6 * 24);

/// How to format the text.
#[derive(Debug, Clone)]
pub(crate) struct TableOptions {
    pub(crate) zone: TimeZone,
    pub(crate) colours: bool,
}

/// The meaning of a cell, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Heading,
    Good,
    Bad,
}

impl Tone {
    /// The terminal attribute (ECMA-48, SGR).
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Heading => "1",
            Self::Good => "32",
            Self::Bad => "31",
        }
    }
}

pub(super) type Cell = (String, Tone);

const HEADINGS: [&str; 6] = ["TASK", "PHASE", "DONE", "RATE", "DEADLINE", "FINISH"];

/// The text with a line break at its end. `before` is the status shown last.
pub(crate) fn text(
    status: &ReportedStatus,
    before: Option<&ReportedStatus>,
    options: &TableOptions,
) -> String {
    let at = Moments {
        now: status.now,
        zone: &options.zone,
    };
    let mut rows = vec![HEADINGS.map(|heading| (heading.to_owned(), Tone::Heading))];
    let tasks = status.tasks.iter();
    rows.extend(tasks.map(|task| row(task, rate_of(task, status, before), &at)));
    let mut text = match status.tasks.is_empty() {
        true => "there are no tasks\n".to_owned(),
        false => aligned(&rows, options),
    };
    for task in &status.tasks {
        problems(&mut text, task, options);
    }
    if !status.lanes.is_empty() {
        text.push('\n');
    }
    for lane in &status.lanes {
        text += &lane_line(lane);
    }
    for hold in &status.holds {
        text += &hold_line(hold);
    }
    if let Some(fleet) = &status.fleet {
        text += &fleet_line(fleet);
    }
    text
}

/// Rows in columns, with a line break after each.
pub(super) fn aligned(rows: &[[Cell; 6]], options: &TableOptions) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].0.chars().count()).max();
    let widths: Vec<usize> = (0..6).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        let mut blanks = 0;
        for ((cell, tone), width) in row.iter().zip(&widths) {
            line += &" ".repeat(blanks);
            line += &coloured(cell, *tone, options);
            blanks = width - cell.chars().count() + 2;
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn coloured(text: &str, tone: Tone, options: &TableOptions) -> String {
    match tone.code() {
        "" => text.to_owned(),
        _ if !options.colours => text.to_owned(),
        code => format!("\x1b[{code}m{text}\x1b[0m"),
    }
}

fn row(task: &ReportedTask, rate: Option<TaskRate>, at: &Moments<'_>) -> [Cell; 6] {
    let phase = match task.next.filter(|_| task.phase == ReportedPhase::Waiting) {
        Some(next) => format!("waiting until {}", at.local(next)),
        None => phase(task, at.now),
    };
    let tone = match task.phase {
        ReportedPhase::Retrying | ReportedPhase::Failed => Tone::Bad,
        ReportedPhase::Running | ReportedPhase::Done => Tone::Good,
        ReportedPhase::Waiting
        | ReportedPhase::Scanning
        | ReportedPhase::Paused
        | ReportedPhase::Unknown => Tone::Plain,
    };
    let rate = match rate {
        Some(TaskRate::Own(rate)) => per_second(rate),
        Some(TaskRate::Shared(rate)) => format!("part of {}", per_second(rate)),
        None => "-".to_owned(),
    };
    let deadline = task.deadline.map(|deadline| at.local(deadline));
    [
        (printable(&task.id), Tone::Plain),
        (phase, tone),
        (done(task), Tone::Plain),
        (rate, Tone::Plain),
        (deadline.unwrap_or_else(|| "-".to_owned()), Tone::Plain),
        finish(task, at),
    ]
}

/// The phase, with the time until the next try.
pub(crate) fn phase(task: &ReportedTask, now: Timestamp) -> String {
    let name = task.phase.name();
    next_try(task, now).map_or_else(|| name.to_owned(), |next| format!("{name} {next}"))
}

/// When a task that failed is tried again, if it is.
pub(crate) fn next_try(task: &ReportedTask, now: Timestamp) -> Option<String> {
    let next = task
        .next
        .filter(|_| task.phase == ReportedPhase::Retrying)?;
    let left = next.duration_since(now).as_secs_f64().ceil();
    Some(format!("in {}", span(left.max(1.0))))
}

/// The progress of the run, if it is known.
fn done(task: &ReportedTask) -> String {
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

/// The expected end of the run, or the actual end of the last one.
fn finish(task: &ReportedTask, at: &Moments<'_>) -> Cell {
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

/// The end of the last run.
fn ended(last: &ReportedRun, late: Option<f64>, at: &Moments<'_>) -> Cell {
    let when = at.local(last.ended);
    match (last.ok, last.in_time, late) {
        (false, _, _) => (format!("{when}, failed"), Tone::Bad),
        (true, Some(false), Some(late_s)) => (format!("{when}, {} late", span(late_s)), Tone::Bad),
        (true, Some(false), None) => (format!("{when}, late"), Tone::Bad),
        (true, Some(true), _) => (format!("{when}, in time"), Tone::Plain),
        (true, None, _) => (when, Tone::Plain),
    }
}

/// Appends why the run is tried again, or the problem of the last one, and what the
/// store lacks.
fn problems(text: &mut String, task: &ReportedTask, options: &TableOptions) {
    let mut add = |problem: String, details: Vec<String>| {
        let id = coloured(&printable(&task.id), Tone::Bad, options);
        let _ = writeln!(text, "\n{id}: {problem}");
        for line in details {
            let _ = writeln!(text, "  {line}");
        }
    };
    match (&task.retry, &task.last) {
        (Some(retry), _) => add(printable(&retry.problem), hint(retry.hint.as_deref())),
        (None, Some(last)) if !last.ok => add(problem(last), details(last)),
        (None, _) => {}
    }
    if let Some(check) = task.check.as_ref().filter(|check| check.damaged > 0) {
        let are = if check.damaged == 1 { "is" } else { "are" };
        let found = files(check.damaged);
        let names = check.damaged_files.iter().take(MAX_FAILURES_SHOWN);
        let mut details: Vec<_> = names.map(|name| printable(name)).collect();
        details.extend(hint(Some(
            "the next run sends again what the source still has",
        )));
        add(
            format!("{found} {are} missing or damaged in the store"),
            details,
        );
    }
}

/// The problem of a run in one printable sentence.
pub(crate) fn problem(last: &ReportedRun) -> String {
    let (failed, changed) = (last.files.failed, last.files.changed);
    match &last.problem {
        Some(problem) => printable(problem),
        None if failed > 0 => format!("{} failed", files(failed)),
        None if changed > 0 => format!("{} changed while being read", files(changed)),
        None => "the last run failed".to_owned(),
    }
}

/// The first failed files, and advice; each line printable.
pub(crate) fn details(last: &ReportedRun) -> Vec<String> {
    let failures = last.failures.iter().take(MAX_FAILURES_SHOWN);
    let mut lines: Vec<String> = failures
        .map(|failure| printable(&format!("{}: {}", failure.path, failure.problem)))
        .collect();
    // The problem names the only one already.
    lines.retain(|line| *line != problem(last));
    lines.extend(notes(last));
    lines.extend(hint(last.hint.as_deref()));
    lines
}

/// What the run has left out on purpose; each line printable.
pub(crate) fn notes(last: &ReportedRun) -> impl Iterator<Item = String> {
    let notes = last.notes.iter();
    notes.map(|note| printable(&format!("note: {note}")))
}

/// The line for advice, printable.
pub(crate) fn hint(hint: Option<&str>) -> Vec<String> {
    let line = hint.map(|hint| printable(&format!("hint: {hint}")));
    line.into_iter().collect()
}

fn files(count: u64) -> String {
    match count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    }
}

fn fleet_line(fleet: &ReportedFleet) -> String {
    let state = match fleet {
        ReportedFleet {
            connected: false, ..
        } => "no way to NATS, so this agent goes on alone",
        ReportedFleet { member: false, .. } => "no coordinator yet, so this agent goes on alone",
        ReportedFleet { held: true, .. } => {
            "this host is held there, and gets no connections: see fairbat fleet release"
        }
        ReportedFleet {
            coordinator: true, ..
        } => "this agent coordinates it: see fairbat fleet status",
        ReportedFleet { .. } => "this agent shares its lane: see fairbat fleet status",
    };
    let problem = fleet.problem.as_deref();
    let problem = problem.map_or(String::new(), |why| format!(": {why}"));
    printable(&format!("site {}: {state}{problem}", fleet.site)) + "\n"
}

/// The rate that deadlines need, byte/s, where there are any.
pub(super) fn needed(zeta: Option<f64>) -> String {
    let needed = zeta.map(per_second);
    needed.map_or(String::new(), |needed| format!(", {needed} needed"))
}

/// Connections of other programs.
fn hold_line(hold: &ReportedHold) -> String {
    let name = printable(&hold.name);
    let state = match hold.phase.as_str() {
        "holding" => connections(hold.connections),
        "waiting" => "does not run".to_owned(),
        "resting" => "not in its hours".to_owned(),
        "off" => "not held, because fairbat-hold.service does not run".to_owned(),
        other => printable(other),
    };
    let mut line = format!("{name}: {state}");
    if hold.connections > 0 {
        line += &format!(", {}", per_second(hold.rate));
        let weight = |w: f64| format!(", weight {w:.2}");
        line += &hold.w.map_or(String::new(), weight);
        line += &needed(hold.zeta);
    }
    let late = hold.late_s.map(span);
    line += &late.map_or(String::new(), |late| format!(", probably {late} late"));
    line.push('\n');
    line
}

pub(super) fn connections(count: u64) -> String {
    match count {
        0 => "idle".to_owned(),
        1 => "1 connection".to_owned(),
        count => format!("{count} connections"),
    }
}

fn lane_line(lane: &ReportedLane) -> String {
    let sample = lane.sample;
    let direction = match lane.direction {
        ReportedDirection::Push => "push",
        ReportedDirection::Pull => "pull",
        ReportedDirection::Unknown => "other",
    };
    let mut line = format!("{direction}: {}", connections(sample.active));
    if sample.active > 0 {
        line += &format!(", {}", per_second(sample.rate.unwrap_or(0.0)));
        let weight = |w: f64| format!(", weight {w:.2}");
        let stream = &lane.stream;
        if stream.active < sample.active {
            line += &sample.w.map_or(String::new(), weight);
        }
        if stream.active > 0 {
            line += &format!(", {} of the stream", stream.active);
            line += &stream.w.map_or(String::new(), weight);
            let law = stream.m.zip(stream.n);
            line += &law.map_or(String::new(), |(m, n)| format!(", m {m:.2}, n {n:.1}"));
        }
        line += &needed(sample.zeta);
    }
    match lane.guests {
        0 => {}
        1 => line += "; 1 command takes part",
        guests => line += &format!("; {guests} commands take part"),
    }
    if !lane.can_yield {
        let lever = printable(&lane.lever);
        line += &format!("; cannot yield here ({lever}): see fairbat doctor");
    }
    line.push('\n');
    line
}

/// Formats moments for people.
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
        } else if moment.duration_since(self.now).abs() < WEEKDAY_RANGE {
            "%a %H:%M"
        } else {
            "%Y-%m-%d %H:%M"
        };
        local.strftime(form).to_string()
    }
}

/// The rate of a task, byte/s.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TaskRate {
    /// The rate of the task itself.
    Own(f64),
    /// The rate of a lane that the task shares with others.
    Shared(f64),
}

/// The rate of a task in `status`, given an earlier status `before`. The agent reports
/// rates of lanes only. `None` for a task that does not run.
fn rate_of(
    task: &ReportedTask,
    status: &ReportedStatus,
    before: Option<&ReportedStatus>,
) -> Option<TaskRate> {
    if task.phase != ReportedPhase::Running {
        return None;
    }
    let is_beside = |other: &&ReportedTask| {
        other.phase == ReportedPhase::Running
            && other.direction == task.direction
            && other.id != task.id
    };
    let lane = status
        .lanes
        .iter()
        .find(|lane| lane.direction == task.direction)?;
    let rate = lane.sample.rate?;
    if !status.tasks.iter().any(|other| is_beside(&other)) {
        return Some(TaskRate::Own(rate));
    }
    let measured = before.and_then(|before| measured(task, status, before));
    Some(measured.map_or(TaskRate::Shared(rate), TaskRate::Own))
}

/// The rate from the progress since `before`, within the same run.
fn measured(task: &ReportedTask, status: &ReportedStatus, before: &ReportedStatus) -> Option<f64> {
    let earlier = before
        .tasks
        .iter()
        .find(|earlier| earlier.id == task.id && earlier.began == task.began)?;
    let seconds = status.now.duration_since(before.now).as_secs_f64();
    let bytes = task.bytes_done.checked_sub(earlier.bytes_done)?;
    (seconds > 0.0).then(|| bytes as f64 / seconds)
}

#[cfg(test)]
mod tests;
