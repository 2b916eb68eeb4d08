//! The table of what there is to do.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::html::Html;
use super::summary::{Standing, standing};
use super::words::{amount, between, count, moment, span};
use crate::status::{AgentStatus, LaneDirection, LastRun, Phase, TaskStatus};

/// By how little a finish may differ from the deadline and be called just in time,
/// s.
const JUST: f64 = 30.0;

/// Times of day, and the moment to tell them from.
struct Calendar<'a> {
    now: Timestamp,
    zone: &'a TimeZone,
}

impl Calendar<'_> {
    fn tell(&self, then: Timestamp) -> String {
        moment(then, self.now, self.zone)
    }
}

pub(super) fn write(html: &mut Html, status: &AgentStatus, zone: &TimeZone) {
    html.raw("<section aria-labelledby=\"tasks\">\n<h2 id=\"tasks\">Tasks</h2>\n");
    if status.tasks.is_empty() {
        html.raw("<p class=\"card muted\">No job is configured, and no download was added.</p>\n");
        html.raw("</section>\n");
        return;
    }
    // The roles are said because on a phone the rows are no table to a browser.
    html.raw("<table class=\"card\" role=\"table\">\n<thead role=\"rowgroup\"><tr role=\"row\">");
    html.raw("<th role=\"columnheader\" scope=\"col\">Task</th>");
    html.raw("<th role=\"columnheader\" scope=\"col\">State</th>");
    html.raw("<th role=\"columnheader\" scope=\"col\">Progress</th>");
    html.raw("<th role=\"columnheader\" scope=\"col\">Deadline</th>");
    html.raw("<th role=\"columnheader\" scope=\"col\">Finish</th>");
    html.raw("</tr></thead>\n");
    let calendar = Calendar {
        now: status.now,
        zone,
    };
    for task in &status.tasks {
        // One group of rows each, which stays together as a card.
        html.raw("<tbody role=\"rowgroup\">\n");
        row(html, task, &calendar);
        if let Some(last) = &task.last {
            problem(html, task, last, &calendar);
        }
        html.raw("</tbody>\n");
    }
    html.raw("</table>\n</section>\n");
}

fn row(html: &mut Html, task: &TaskStatus, calendar: &Calendar<'_>) {
    html.raw("<tr role=\"row\">\n<th role=\"rowheader\" scope=\"row\"><span class=\"name\">");
    html.foreign(&task.id).raw("</span><span class=\"route\">");
    let arrow = match task.direction {
        LaneDirection::Push => {
            "</span><span class=\"route\"><span class=\"arrow\">&uarr; to</span> "
        }
        LaneDirection::Pull => {
            "</span><span class=\"route\"><span class=\"arrow\">&darr; to</span> "
        }
    };
    html.foreign(&task.from).raw(arrow);
    html.foreign(&task.to).raw("</span></th>\n");
    html.raw("<td role=\"cell\" data-label=\"State\">");
    state(html, task, calendar);
    html.raw("</td>\n<td role=\"cell\" data-label=\"Progress\" class=\"progress\">");
    match is_under_way(task.phase) {
        true => progress(html, task, calendar.now),
        false => result(html, task),
    }
    html.raw("</td>\n<td role=\"cell\" data-label=\"Deadline\">");
    deadline(html, task, calendar);
    html.raw("</td>\n<td role=\"cell\" data-label=\"Finish\">");
    finish(html, task, calendar);
    html.raw("</td>\n</tr>\n");
}

fn is_under_way(phase: Phase) -> bool {
    match phase {
        Phase::Scanning | Phase::Running | Phase::Retrying | Phase::Paused => true,
        Phase::Waiting | Phase::Done | Phase::Failed => false,
    }
}

fn state(html: &mut Html, task: &TaskStatus, calendar: &Calendar<'_>) {
    html.raw(match (task.phase, standing(task)) {
        (Phase::Failed | Phase::Retrying, _) => "<span class=\"pill bad\">",
        (Phase::Running | Phase::Scanning, _) => "<span class=\"pill busy\">",
        (Phase::Done, Standing::Fine) => "<span class=\"pill good\">",
        (Phase::Done | Phase::Waiting | Phase::Paused, _) => "<span class=\"pill\">",
    });
    html.raw(match task.phase {
        Phase::Waiting => "waiting",
        Phase::Scanning => "looking",
        Phase::Running => "moving",
        Phase::Retrying => "trying again",
        Phase::Paused => "paused",
        Phase::Done => "done",
        Phase::Failed => "given up",
    });
    html.raw("</span>");
    if let Some(next) = task.next {
        html.raw("<span class=\"note\">next ");
        html.text(&calendar.tell(next)).raw("</span>");
    } else if task.phase == Phase::Waiting {
        html.raw("<span class=\"note\">for a command</span>");
    }
}

/// A bar for the bytes, and a mark where an even pace would be.
fn progress(html: &mut Html, task: &TaskStatus, now: Timestamp) {
    if task.bytes == 0 && task.files == 0 {
        html.raw("<span class=\"note\">nothing found to move so far</span>");
        return;
    }
    let share = match task.bytes {
        0 => task.files_done as f64 / task.files as f64,
        bytes => task.bytes_done as f64 / bytes as f64,
    };
    let done = 100.0 * share.clamp(0.0, 1.0);
    let pace = pace(task, now);
    html.raw("<svg class=\"bar\" role=\"img\" aria-label=\"");
    html.text(&format!("{done:.0} % done"));
    if let Some(pace) = pace {
        html.text(&format!("; an even pace would be at {pace:.0} %"));
    }
    html.raw("\"><rect class=\"track\" y=\"4\" width=\"100%\" height=\"8\" rx=\"4\"/>");
    html.raw("<rect class=\"done\" y=\"4\" width=\"")
        .number(done);
    html.raw("%\" height=\"8\" rx=\"4\"/>");
    if let Some(pace) = pace {
        html.raw("<line class=\"pace\" y1=\"0\" y2=\"16\" x1=\"");
        html.number(pace).raw("%\" x2=\"").number(pace);
        html.raw("%\"/>");
    }
    html.raw("</svg><span class=\"share\"><span class=\"figure\">");
    html.text(&format!("{done:.0} %")).raw("</span>");
    if let Some(pace) = pace {
        html.raw("<span class=\"note\">even pace ");
        html.text(&format!("{pace:.0} %")).raw("</span>");
    }
    html.raw("</span><span class=\"note\"><span class=\"whole\">");
    let (done, all) = (task.bytes_done as f64, task.bytes as f64);
    html.text(&format!("{} of {}", amount(done), amount(all)));
    if task.files > 1 {
        let (done, all) = (count(task.files_done), count(task.files));
        html.raw(",</span> <span class=\"whole\">");
        html.text(&format!("{done} of {all} files"));
    }
    html.raw("</span></span>");
}

/// How much would be done at an even pace from begin to deadline, per cent.
fn pace(task: &TaskStatus, now: Timestamp) -> Option<f64> {
    let (began, deadline) = (task.began?, task.deadline?);
    let all = between(began, deadline);
    (all > 0.0).then(|| (100.0 * between(began, now) / all).clamp(0.0, 100.0))
}

/// What became of the last run.
fn result(html: &mut Html, task: &TaskStatus) {
    let Some(last) = &task.last else {
        html.raw("<span class=\"note\">has not run yet</span>");
        return;
    };
    let files = last.files;
    let kinds = [
        (files.moved, "moved"),
        (files.same, "in step before"),
        (files.deleted, "deleted"),
        (files.changed, "changed meanwhile"),
        (files.failed, "failed"),
    ];
    let parts: Vec<_> = kinds
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", count(*number)))
        .collect();
    match parts.is_empty() {
        true => html.raw("<span class=\"note\">no files</span>"),
        false => {
            let text = format!("files: {}", parts.join(", "));
            html.raw("<span class=\"note\">").text(&text).raw("</span>")
        }
    };
}

fn deadline(html: &mut Html, task: &TaskStatus, calendar: &Calendar<'_>) {
    let Some(deadline) = task.deadline else {
        html.raw("<span class=\"note\">none</span>");
        return;
    };
    html.raw("<span class=\"figure\">");
    html.text(&calendar.tell(deadline)).raw("</span>");
    if !is_under_way(task.phase) {
        html.raw("<span class=\"note\">of the last run</span>");
        return;
    }
    let left = between(calendar.now, deadline);
    html.raw("<span class=\"note\">");
    match left >= 0.0 {
        true => html.text(&format!("in {}", span(left))),
        false => html.text(&format!("{} ago", span(left))),
    };
    html.raw("</span>");
}

fn finish(html: &mut Html, task: &TaskStatus, calendar: &Calendar<'_>) {
    if !is_under_way(task.phase) {
        let Some(last) = &task.last else {
            html.raw("<span class=\"note\">&ndash;</span>");
            return;
        };
        html.raw("<span class=\"figure\">");
        html.text(&calendar.tell(last.ended)).raw("</span>");
        match last.ok {
            true => verdict(html, task.deadline.map(|by| between(by, last.ended))),
            false => {
                html.raw("<span class=\"verdict bad\">not in step</span>");
            }
        }
        return;
    }
    let late = task.predicted.zip(task.deadline);
    let late = late.map(|(predicted, by)| between(by, predicted));
    match task.predicted {
        Some(predicted) => {
            html.raw("<span class=\"figure\">about ");
            html.text(&calendar.tell(predicted)).raw("</span>");
        }
        None => {
            html.raw("<span class=\"note\">not known yet</span>");
        }
    }
    verdict(html, late.or(task.late_s.filter(|late| *late >= 1.0)));
}

/// How late that is, s; negative is early.
fn verdict(html: &mut Html, late: Option<f64>) {
    let Some(late) = late else { return };
    if late.abs() < JUST {
        html.raw("<span class=\"verdict good\">just in time</span>");
    } else if late < 0.0 {
        html.raw("<span class=\"verdict good\">");
        html.text(&format!("{} early", span(late))).raw("</span>");
    } else {
        html.raw("<span class=\"verdict bad\">");
        html.text(&format!("{} late", span(late))).raw("</span>");
    }
}

/// What stood in the way of the last run, and which files.
fn problem(html: &mut Html, task: &TaskStatus, last: &LastRun, calendar: &Calendar<'_>) {
    if last.problem.is_none() && last.failures.is_empty() {
        return;
    }
    html.raw("<tr role=\"row\" class=\"problem\"><td role=\"cell\" colspan=\"5\">");
    if let Some(problem) = &last.problem {
        html.raw("<p><strong>");
        html.text(&calendar.tell(last.ended)).raw("</strong> ");
        html.foreign(problem).raw("</p>");
    }
    if let Some(hint) = &last.hint {
        html.raw("<p class=\"hint\"><strong>What to do</strong> ");
        html.foreign(hint).raw("</p>");
    }
    if !last.failures.is_empty() {
        html.raw("<details id=\"failures-").text(&task.id);
        html.raw("\"><summary>")
            .text(&shown(last))
            .raw("</summary><ul>");
        for failure in &last.failures {
            html.raw("<li><code>")
                .foreign(&failure.path)
                .raw("</code> ");
            html.foreign(&failure.problem);
            // What helps all of them has been said.
            if let Some(hint) = failure.hint.as_ref().filter(|_| failure.hint != last.hint) {
                html.raw("; ").foreign(hint);
            }
            html.raw("</li>");
        }
        html.raw("</ul></details>");
    }
    html.raw("</td></tr>\n");
}

fn shown(last: &LastRun) -> String {
    let (listed, all) = (last.failures.len() as u64, last.files.failed);
    match (listed, listed < all) {
        (1, false) => "1 file failed".to_owned(),
        (listed, false) => format!("{} files failed", count(listed)),
        (listed, true) => format!("{} files failed; the first {listed}", count(all)),
    }
}
