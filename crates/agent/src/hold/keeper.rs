//! One unit or control group: when its connections are held, and its runs.
//!
//! A run lasts from the first process to the last one, or as long as its hours. One that was
//! held whole tells what the next one will move.

use std::path::Path;
use std::time::Duration;

use dalbe::receive_window::ReceiverPolicy;
use dalbe::sender::SenderPolicy;
use dalbe::weight::ControllerPolicy;
use fairbat::hold::history::{History, PastRun, expected};
use fairbat::hold::{
    FLOOR, HoldControl, HoldEvent, HoldPlan, HoldReport, HoldSettings, Holder, is_running,
};
use jiff::{Timestamp, Zoned};

use super::status::{HoldPhase, HoldStatus, HoldTotals};
use crate::config::{AgentConfig, HoldConfig};

/// Time between two looks whether there are processes.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Keeps the connections of a [`HoldConfig`].
#[derive(Debug)]
pub(super) struct Keeper {
    hold: HoldConfig,
    sender: SenderPolicy,
    controller: ControllerPolicy,
    /// Where its runs are noted, if their size is of use.
    history: Option<History>,
    phase: HoldPhase,
    run: Option<HoldRun>,
    /// Those of the runs before.
    totals: HoldTotals,
    /// Whether there were no processes at the last look: a run that begins then is whole.
    was_absent: bool,
    /// When processes were last looked for.
    looked_at: Option<Timestamp>,
}

/// A run under way.
#[derive(Debug)]
struct HoldRun {
    holder: Holder,
    started: Timestamp,
    deadline: Option<Timestamp>,
    is_whole: bool,
    control: Option<HoldControl>,
    late_s: Option<f64>,
}

impl Keeper {
    pub(super) fn new(hold: HoldConfig, agent: &AgentConfig, state: &Path) -> Self {
        let learns = hold.due.is_some() && hold.bytes.is_none();
        let history = learns.then(|| History::below(state, &hold.name).ok());
        if let Some(Some(history)) = &history
            && let Err(error) = history.prepare()
        {
            tracing::error!(
                hold = hold.name,
                "{}: {error}; its runs cannot be planned",
                history.path().display()
            );
        }
        Self {
            hold,
            sender: agent.sender,
            controller: agent.controller,
            history: history.flatten(),
            phase: HoldPhase::Waiting,
            run: None,
            totals: HoldTotals::default(),
            was_absent: false,
            looked_at: None,
        }
    }

    /// Does what is due at this moment, in local time; returns the time until the next step.
    pub(super) fn step(&mut self, now: &Zoned) -> Duration {
        if !self.hold.is_due(now) {
            self.release();
            // What runs when the hours begin may have begun before.
            self.was_absent = false;
            self.phase = HoldPhase::Resting;
            return LOOK_PERIOD;
        }
        if self.run.is_none() {
            let since = self.looked_at.map(|at| now.timestamp().duration_since(at));
            let since = since.and_then(|since| Duration::try_from(since).ok());
            if let Some(left) = since.and_then(|since| LOOK_PERIOD.checked_sub(since)) {
                return left;
            }
            self.looked_at = Some(now.timestamp());
            if !self.begin(now) {
                self.phase = HoldPhase::Waiting;
                return LOOK_PERIOD;
            }
        }
        self.phase = HoldPhase::Holding;
        let Some(run) = &mut self.run else {
            return LOOK_PERIOD;
        };
        let next = run.holder.step();
        run.hear(&self.hold.name);
        if run.holder.is_empty() {
            self.end(true);
            self.phase = HoldPhase::Waiting;
            return LOOK_PERIOD;
        }
        next
    }

    /// Begins to hold, if there are processes.
    fn begin(&mut self, now: &Zoned) -> bool {
        if !is_running(&self.hold.scope()) {
            self.was_absent = true;
            return false;
        }
        let is_whole = std::mem::take(&mut self.was_absent);
        let earlier = self.history.as_ref().map(History::runs);
        let earlier = earlier.and_then(Result::ok).unwrap_or_default();
        let deadline = self.hold.due.and_then(|due| due.after(now));
        let settings = HoldSettings {
            receiver: ReceiverPolicy::default(),
            sender: self.sender,
            controller: self.controller,
            include_local: self.hold.include_local,
        };
        let plan = HoldPlan {
            weight: self.hold.min_weight,
            floor: FLOOR,
            bytes: self.hold.bytes.or_else(|| expected(&earlier)),
            deadline,
        };
        if deadline.is_some() && plan.bytes.is_none() {
            tracing::info!(
                hold = self.hold.name,
                "nothing tells how much it will move: its weight is at least {FLOOR}"
            );
        }
        match Holder::new(self.hold.scope(), settings, plan) {
            Ok(holder) => {
                tracing::info!(
                    hold = self.hold.name,
                    "holds the connections of {}",
                    self.hold.what()
                );
                self.run = Some(HoldRun {
                    holder,
                    started: now.timestamp(),
                    deadline,
                    is_whole,
                    control: None,
                    late_s: None,
                });
                true
            }
            Err(error) => {
                tracing::error!(hold = self.hold.name, "cannot hold: {error}");
                false
            }
        }
    }

    /// Lets all connections go. What was held is not a whole run.
    pub(super) fn release(&mut self) {
        if let Some(run) = &mut self.run {
            run.holder.release();
            self.end(false);
        }
        self.phase = HoldPhase::Off;
    }

    /// The run is over, or is not held any more.
    fn end(&mut self, is_over: bool) {
        let Some(run) = self.run.take() else {
            return;
        };
        let report = run.holder.report();
        self.totals = sum(self.totals, &report);
        self.was_absent = is_over;
        if is_over {
            if report.deadline_met == Some(false) {
                tracing::warn!(hold = self.hold.name, "ended after its deadline");
                self.totals.late_runs += 1;
            }
            self.note(&run, &report);
        }
        tracing::info!(
            hold = self.hold.name,
            received = report.bytes_received,
            sent = report.bytes_sent,
            yielded_s = report.yielded_s,
            "lets the connections of {} go",
            self.hold.what()
        );
    }

    /// Notes a run for the next one.
    fn note(&self, run: &HoldRun, report: &HoldReport) {
        let past = PastRun {
            started: run.started,
            elapsed_s: report.elapsed_s,
            bytes_received: report.bytes_received,
            bytes_sent: report.bytes_sent,
            // How its processes ended, nobody tells.
            status: run.is_whole.then_some(0),
            deadline_met: report.deadline_met,
        };
        let noted = self.history.as_ref().map(|history| history.add(&past));
        if let Some(Err(error)) = noted {
            tracing::error!(hold = self.hold.name, "this run is not noted: {error}");
        }
    }

    /// What is held.
    pub(super) fn status(&self) -> HoldStatus {
        let none = HoldStatus {
            totals: self.totals,
            ..HoldStatus::none_of(&self.hold, self.phase)
        };
        let Some(run) = &self.run else {
            return none;
        };
        let report = run.holder.report();
        let control = run.control.as_ref();
        HoldStatus {
            connections: control.map_or(0, |it| it.connections as u64),
            w: control.map(|it| it.w),
            rate: control.map_or(0.0, |it| it.rate),
            zeta: control.and_then(|it| it.zeta),
            deadline: run.deadline,
            bytes: control.and_then(|it| it.bytes_total),
            bytes_done: report.bytes_received + report.bytes_sent,
            late_s: run.late_s,
            totals: sum(self.totals, &report),
            ..none
        }
    }
}

impl HoldRun {
    /// Takes what the holder has to say.
    fn hear(&mut self, name: &str) {
        for event in self.holder.events() {
            match event.event {
                HoldEvent::Control(control) => {
                    // A forecast comes once. At this rate, it will be in time after all.
                    if control.zeta.is_none_or(|zeta| control.rate >= zeta) {
                        self.late_s = None;
                    }
                    self.control = Some(control);
                }
                HoldEvent::Forecast { late_s, .. } => {
                    tracing::warn!(hold = name, late_s, "will probably be late");
                    self.late_s = Some(late_s);
                }
                HoldEvent::OutOfReach { pid, program } => tracing::warn!(
                    hold = name,
                    pid,
                    program,
                    "the connections of a process cannot be reached and do not yield"
                ),
                HoldEvent::Start { .. } | HoldEvent::Unprivileged { .. } | HoldEvent::Done(_) => {}
            }
        }
    }
}

/// The counts with those of one run more.
fn sum(before: HoldTotals, report: &HoldReport) -> HoldTotals {
    HoldTotals {
        bytes_received: before.bytes_received + report.bytes_received,
        bytes_sent: before.bytes_sent + report.bytes_sent,
        connections: before.connections + report.connections,
        yielded_s: before.yielded_s + report.yielded_s,
        udp_flows: before.udp_flows + report.udp_flows,
        out_of_reach: before.out_of_reach + report.out_of_reach,
        late_runs: before.late_runs,
    }
}
