//! A way out of the machine, as a run uses it: its lane, its client, and what it waits for there.

use std::sync::Arc;
use std::time::Duration;

use super::connection::Destination;
use super::pieces::ChunkSizer;
use super::worker::{RunContext, WorkerId};
use crate::lane::{Lane, LaneSample, Permit, PermitRequest};
use crate::settings::PathSettings;
use crate::transport::RateLimit;

/// What bounds a path whose bytes cost money.
#[derive(Debug)]
pub(crate) struct Metered {
    pub(crate) limit: Arc<RateLimit>,
    pub(crate) is_used: bool,
}

/// A path of a run. A run without named interfaces has one: the routes of the system.
#[derive(Debug)]
pub(crate) struct RunPath {
    /// What its workers share.
    pub(crate) context: Arc<RunContext>,
    /// The lane of its bottleneck. Paths that share a bottleneck have the same one.
    pub(crate) lane: Lane,
    /// Its own lane, while it has shown no bottleneck that others share.
    pub(crate) own_lane: Lane,
    /// What the user says of it; `None` for the routes of the system.
    pub(crate) settings: Option<PathSettings>,
    /// Whether the machine has what it leaves by.
    pub(crate) is_up: bool,
    /// Of a metered path: what holds its rate, and whether it is used now.
    pub(crate) metered: Option<Metered>,
    /// What the run waits for: a connection for the next piece of work.
    pub(crate) request: Option<PermitRequest>,
    /// A connection that was granted and is not in use yet.
    pub(crate) granted: Option<Permit>,
    /// That of a connection that carried the weight of the run's own lane and has just become
    /// free.
    pub(crate) free_carrier: Option<Destination>,
    /// The connection whose rest another one takes over, and since when.
    pub(crate) relieved: Option<(WorkerId, Duration)>,
    pub(crate) sizer: ChunkSizer,
    /// The part of what is left that this path is to carry, 0 to 1.
    pub(crate) share: f64,
    /// Bytes that have come over it.
    pub(crate) bytes: u64,
    /// The same at the last sample, and when that was.
    counted: (u64, Duration),
    /// What came over it in the last period, byte/s.
    pub(crate) rate: f64,
    /// The last sample of its lane.
    pub(crate) sample: LaneSample,
}

impl RunPath {
    pub(crate) fn new(
        context: Arc<RunContext>,
        lane: Lane,
        settings: Option<PathSettings>,
        sizer: ChunkSizer,
    ) -> Self {
        Self {
            context,
            metered: None,
            settings,
            is_up: true,
            request: None,
            granted: None,
            free_carrier: None,
            relieved: None,
            sizer,
            share: 1.0,
            bytes: 0,
            counted: (0, Duration::ZERO),
            rate: 0.0,
            sample: *lane.samples().borrow(),
            own_lane: lane.clone(),
            lane,
        }
    }

    /// Ends a control period, in which its lane has taken this sample.
    pub(crate) fn end_period(&mut self, now: Duration, sample: LaneSample) {
        let (bytes, began) = std::mem::replace(&mut self.counted, (self.bytes, now));
        let elapsed = now.saturating_sub(began).as_secs_f64();
        let more = self.bytes.saturating_sub(bytes) as f64;
        self.rate = if elapsed > 0.0 { more / elapsed } else { 0.0 };
        self.sample = sample;
    }
}
