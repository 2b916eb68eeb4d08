//! The status of the agent as metrics for Prometheus.

mod families;

pub use fairbat::exposition::CONTENT_TYPE;
use fairbat::exposition::Exposition;
use fairbat::machine::LaneDirection;
use jiff::Timestamp;

use self::families as family;
pub use self::families::NAMES;
use crate::fleet::status::FleetStatus;
use crate::hold::status::{HoldPhase, HoldStatus};
use crate::status::{AgentStatus, LaneStatus, TaskKind, TaskPhase, TaskStatus, Totals};

/// The label of all ad-hoc tasks. No job can have this name.
const ADHOC_LABEL: &str = "(added)";

/// Renders all metrics.
#[must_use]
pub fn render(status: &AgentStatus) -> String {
    let out = Exposition::new(family::ALL);
    agent(&out, status);
    for lane in &status.lanes {
        self::lane(&out, lane);
    }
    let jobs = status
        .tasks
        .iter()
        .filter(|task| task.kind == TaskKind::Job);
    for task in jobs {
        job(&out, task);
    }
    for hold in &status.holds {
        self::hold(&out, hold);
    }
    if let Some(fleet) = &status.fleet {
        self::fleet(&out, fleet);
    }
    if let Some(added) = &status.added {
        adhoc_tasks(&out, added, &status.tasks);
    }
    out.render()
}

fn agent(out: &Exposition, status: &AgentStatus) {
    out.gauge(
        &family::BUILD_INFO,
        &[("version", status.version.as_str())],
        1.0,
    );
    out.gauge(&family::START, &[], seconds(status.started));
}

fn lane(out: &Exposition, lane: &LaneStatus) {
    let direction = ("direction", lane.direction.name());
    let (sample, stream) = (&lane.sample, &lane.stream);
    let known = [
        (&family::LANE_INACTIVE, sample.n),
        (&family::LANE_LIMIT, sample.m),
        (&family::LANE_ACTIVE, sample.active as f64),
        (&family::LANE_WEIGHT, sample.w),
        (&family::LANE_RATE, sample.rate),
        (&family::LANE_STREAM_WAITING, stream.n),
        (&family::LANE_STREAM_TARGET, stream.tau),
        (&family::LANE_STREAM_LIMIT, stream.m),
        (&family::LANE_STREAM_ACTIVE, stream.active as f64),
        (&family::LANE_STREAM_WEIGHT, stream.w),
        (&family::LANE_CAN_YIELD, flag(lane.can_yield)),
        (&family::LANE_GUESTS, lane.guests as f64),
    ];
    for (family, value) in known {
        out.gauge(family, &[direction], value);
    }
    let perhaps = [
        (&family::LANE_DEMANDED, sample.zeta),
        (&family::LANE_RTT, sample.rtt_s),
        (&family::LANE_QUEUE, sample.queue_s),
        (&family::LANE_WINDOW, lane.window),
        (&family::LANE_SCALE, lane.g_ms.map(|ms| ms / 1e3)),
        (&family::LANE_FORESEEN, lane.foreseen),
    ];
    for (family, value) in perhaps {
        if let Some(value) = value {
            out.gauge(family, &[direction], value);
        }
    }
    let lever = ("lever", lane.lever.as_str());
    out.gauge(&family::LANE_LEVER, &[direction, lever], 1.0);
    out.count(&family::LANE_BYTES, &[direction], lane.bytes);
    // A counter is a whole number, and whole seconds are precise enough for hours.
    out.count(&family::LANE_YIELDED, &[direction], lane.yielded_s as u64);
}

fn hold(out: &Exposition, hold: &HoldStatus) {
    let name = ("hold", hold.name.as_str());
    let totals = &hold.totals;
    let bytes = [
        (LaneDirection::Push, totals.bytes_sent),
        (LaneDirection::Pull, totals.bytes_received),
    ];
    let is_on = hold.phase != HoldPhase::Off;
    out.gauge(&family::HOLD_ON, &[name], flag(is_on));
    out.gauge(
        &family::HOLD_HOLDING,
        &[name],
        flag(hold.phase == HoldPhase::Holding),
    );
    if !is_on {
        return;
    }
    for (direction, bytes) in bytes {
        let direction = ("direction", direction.name());
        out.count(&family::HOLD_BYTES, &[name, direction], bytes);
    }
    out.count(&family::HOLD_YIELDED, &[name], totals.yielded_s as u64);
    out.count(&family::HOLD_LATE_RUNS, &[name], totals.late_runs);
    let perhaps = [
        (&family::HOLD_CONNECTIONS, Some(hold.connections as f64)),
        (&family::HOLD_RATE, Some(hold.rate)),
        (&family::HOLD_WEIGHT, hold.w),
        (&family::HOLD_DEMANDED, hold.zeta),
        (&family::HOLD_DEADLINE, hold.deadline.map(seconds)),
        (
            &family::HOLD_LATE,
            hold.deadline.map(|_| hold.late_s.unwrap_or(0.0)),
        ),
    ];
    for (family, value) in perhaps {
        if let Some(value) = value {
            out.gauge(family, &[name], value);
        }
    }
}

fn fleet(out: &Exposition, fleet: &FleetStatus) {
    let site = ("site", fleet.site.as_str());
    out.gauge(&family::FLEET_CONNECTED, &[site], flag(fleet.connected));
    out.gauge(&family::FLEET_MEMBER, &[site], flag(fleet.member));
    out.gauge(&family::FLEET_COORDINATOR, &[site], flag(fleet.coordinator));
    if let Some(term) = fleet.term {
        out.gauge(&family::FLEET_TERM, &[site], term as f64);
    }
    let Some(known) = &fleet.known else {
        return;
    };
    let present = known.hosts.iter().filter(|host| host.heard_s.is_some());
    out.gauge(&family::SITE_HOSTS, &[site], present.count() as f64);
    out.gauge(&family::SITE_HELD, &[site], known.held() as f64);
    out.gauge(&family::SITE_LATE, &[site], known.late() as f64);
    let lanes = [
        (LaneDirection::Push, &known.push),
        (LaneDirection::Pull, &known.pull),
    ];
    for (direction, lane) in lanes {
        let labels = [site, ("direction", direction.name())];
        let values = [
            (&family::SITE_ACTIVE, lane.active as f64),
            (&family::SITE_WAITING, lane.waiting as f64),
            (&family::SITE_INACTIVE, lane.n),
            (&family::SITE_LIMIT, lane.m),
            (&family::SITE_WEIGHT, lane.w),
            (&family::SITE_RATE, lane.rate),
            (&family::SITE_REMAINING, lane.bytes as f64),
        ];
        for (family, value) in values {
            out.gauge(family, &labels, value);
        }
        if let Some(zeta) = lane.zeta {
            out.gauge(&family::SITE_DEMANDED, &labels, zeta);
        }
    }
}

fn job(out: &Exposition, task: &TaskStatus) {
    let name = task.id.as_str();
    let totals = &task.totals;
    bytes(
        out,
        name,
        task.direction.name(),
        (totals.bytes, totals.chunks),
    );
    counted(out, name, &task.totals);
    dated(out, name, task);
    if let Some(succeeded) = task.succeeded {
        let labels = [("task", name)];
        out.gauge(&family::TASK_SUCCESS, &labels, seconds(succeeded));
    }
    under_way(out, name, is_under_way(task), remaining(task));
    if let Some(check) = &task.check {
        let labels = [("task", name)];
        out.gauge(&family::CHECK_DAMAGED, &labels, check.damaged as f64);
        if let Some(completed) = check.completed {
            out.gauge(&family::CHECK_COMPLETED, &labels, seconds(completed));
        }
        let direction = LaneDirection::Pull.name();
        bytes(out, name, direction, (check.bytes, check.chunks));
    }
}

/// All ad-hoc tasks share one label, or each download would add series. All of them pull.
/// They have no time of a last success, because none is repeated.
fn adhoc_tasks(out: &Exposition, added: &Totals, tasks: &[TaskStatus]) {
    let direction = LaneDirection::Pull.name();
    bytes(out, ADHOC_LABEL, direction, (added.bytes, added.chunks));
    counted(out, ADHOC_LABEL, added);
    let open = || tasks.iter().filter(|task| is_open(task));
    // The dates all belong to one task, so they are consistent: to the latest task, or else
    // to the task with the next deadline.
    let late = |task: &TaskStatus| task.late_s.unwrap_or_default();
    let nearest = open()
        .filter(|task| task.deadline.is_some())
        .min_by(|a, b| {
            let by_lateness = late(b).total_cmp(&late(a));
            by_lateness.then(a.deadline.cmp(&b.deadline))
        });
    if let Some(nearest) = nearest {
        dated(out, ADHOC_LABEL, nearest);
    }
    let left = open().map(remaining).sum();
    under_way(out, ADHOC_LABEL, open().any(is_under_way), left);
}

/// Bytes moved, and the chunks that carried them.
fn bytes(out: &Exposition, task: &str, direction: &str, (bytes, chunks): (u64, u64)) {
    let labels = [("task", task), ("direction", direction)];
    out.count(&family::BYTES, &labels, bytes);
    out.count(&family::CHUNKS, &labels, chunks);
}

fn counted(out: &Exposition, task: &str, totals: &Totals) {
    let Totals { files, retries, .. } = totals;
    let counts = [
        (&family::FILES, "outcome", "same", files.same),
        (&family::FILES, "outcome", "moved", files.moved),
        (&family::FILES, "outcome", "deleted", files.deleted),
        (&family::FILES, "outcome", "changed", files.changed),
        (&family::FILES, "outcome", "failed", files.failed),
        (&family::RETRIES, "reason", "network", retries.network),
        (&family::RETRIES, "reason", "server", retries.server),
        (&family::RETRIES, "reason", "busy", retries.busy),
        (&family::RETRIES, "reason", "integrity", retries.integrity),
        (&family::RUNS, "outcome", "succeeded", totals.succeeded),
        (&family::RUNS, "outcome", "failed", totals.failed),
    ];
    for (family, label, value, count) in counts {
        out.count(family, &[("task", task), (label, value)], count);
    }
    out.count(&family::LATE_RUNS, &[("task", task)], totals.late);
}

fn dated(out: &Exposition, task: &str, dates: &TaskStatus) {
    let known = [
        (&family::TASK_DEADLINE, dates.deadline.map(seconds)),
        (&family::TASK_PREDICTED, dates.predicted.map(seconds)),
        (&family::TASK_LATE, dates.late_s),
    ];
    for (family, value) in known {
        if let Some(value) = value {
            out.gauge(family, &[("task", task)], value);
        }
    }
}

fn under_way(out: &Exposition, task: &str, is_running: bool, left: u64) {
    let labels = [("task", task)];
    out.gauge(&family::TASK_RUNNING, &labels, flag(is_running));
    out.gauge(&family::TASK_REMAINING, &labels, left as f64);
}

/// Whether an ad-hoc task has something left to do.
fn is_open(task: &TaskStatus) -> bool {
    task.kind != TaskKind::Job && !matches!(task.phase, TaskPhase::Done | TaskPhase::Failed)
}

fn is_under_way(task: &TaskStatus) -> bool {
    match task.phase {
        TaskPhase::Scanning | TaskPhase::Running | TaskPhase::Retrying => true,
        TaskPhase::Waiting | TaskPhase::Paused | TaskPhase::Done | TaskPhase::Failed => false,
    }
}

fn remaining(task: &TaskStatus) -> u64 {
    task.bytes.saturating_sub(task.bytes_done)
}

fn flag(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

/// Seconds since 1970.
fn seconds(moment: Timestamp) -> f64 {
    moment.as_millisecond() as f64 / 1e3
}
