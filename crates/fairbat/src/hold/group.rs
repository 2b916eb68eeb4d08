//! Connections that share a plan, as a member of the lane.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::connection::Moved;
use super::plan::HoldPlan;
use crate::lane::places::Place;
use crate::lane::{Backlog, Extent, Lane, Member, Service};

/// Connections that share a plan.
#[derive(Debug)]
pub(super) struct Group {
    plan: HoldPlan,
    member: Member,
    /// The share of the work that is done, 0 to 1, if anybody tells it.
    pub(super) share: Option<f64>,
    /// Bytes that its connections have received and sent since the plan.
    pub(super) done: u64,
    /// Since the beginning.
    pub(super) report: GroupReport,
    /// Whether it has something to move also while nothing moves.
    is_always_due: bool,
    moved_at: Option<Duration>,
}

/// Without movement for this time, the plan of a group that is not always due asks for nothing.
const REST: Duration = Duration::from_secs(2);

/// What the connections of a group have moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupReport {
    /// Connections that are held now.
    pub connections: usize,
    /// Bytes received.
    pub bytes_received: u64,
    /// Bytes sent that were acknowledged.
    pub bytes_sent: u64,
}

impl Group {
    /// If it is not `always_due`, its plan counts only while its connections move something.
    pub(super) fn new(lane: &Lane, plan: HoldPlan, is_always_due: bool) -> Self {
        Self {
            plan,
            member: lane.enter("", Service::of_batch(plan.deadline)),
            share: None,
            done: 0,
            report: GroupReport::default(),
            is_always_due,
            moved_at: None,
        }
    }

    pub(super) fn plan(&self) -> HoldPlan {
        self.plan
    }

    /// Another plan: what is moved is counted anew.
    pub(super) fn set_plan(&mut self, lane: &Lane, plan: HoldPlan) {
        let (report, moved_at) = (self.report, self.moved_at);
        *self = Self {
            report,
            moved_at,
            ..Self::new(lane, plan, self.is_always_due)
        };
    }

    /// How its connections are served.
    pub(super) fn service(&self) -> Service {
        self.member.service()
    }

    /// A place for one more connection.
    pub(super) fn take_place(&self, lane: &Lane) -> Place {
        let mut place = lane.take_place(self.service());
        place.work_for(self.due());
        place
    }

    /// When its work is due, for the order of connections. Without a deadline, what weighs more
    /// comes first.
    pub(super) fn due(&self) -> Timestamp {
        let weight = SignedDuration::from_secs_f64(self.plan.weight);
        self.plan.deadline.unwrap_or(Timestamp::MAX - weight)
    }

    /// What will be moved in all, bytes; `None` if nothing tells.
    pub(super) fn expected(&self) -> Option<u64> {
        self.plan.expected(self.done, self.share)
    }

    /// The most that one of its connections may weigh: without a deadline, no more than its plan asks
    /// for, whatever others of the lane do.
    pub(super) fn most_weight(&self) -> f64 {
        self.plan.deadline.map_or(self.plan.weight, |_| 1.0)
    }

    /// Tells the lane what is left.
    pub(super) fn tell(&self, now: Duration) {
        let is_moving = self.moved_at.is_some_and(|at| now < at + REST);
        let connections = if is_moving {
            self.report.connections
        } else {
            0
        };
        self.member.set_held(connections);
        if !self.is_always_due && !is_moving {
            return self.member.set_backlog(Backlog::default());
        }
        let expected = self.expected();
        self.member.set_weight(self.plan.least_weight(expected));
        self.member.set_backlog(Backlog {
            bytes: expected.map_or(0, |all| all - self.done),
            inactive: 0,
            extent: Extent::Estimated,
        });
    }

    /// One of its connections has moved something.
    pub(super) fn moved(&mut self, now: Duration, moved: Moved) {
        if moved.received + moved.sent > 0 {
            self.moved_at = Some(now);
        }
        self.report.bytes_received += moved.received;
        self.report.bytes_sent += moved.sent;
        self.done += moved.received + moved.sent;
    }
}
