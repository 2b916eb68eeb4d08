//! The controller of a lane: it turns what the lane measures into w, the weight of each flow
//! that carries it (fast loop), and m, the limit on connections (slow loop).
//!
//! Both loops share one task. So m rises only for what was missing at w = 1. Where the flows
//! need less again, m falls as far as fewer connections carry enough, each what it carries
//! now. Transfers of a stream have a loop of their own, in `stream`.
//!
//! Pure: moments are durations since the lane's start.

use std::num::NonZeroU64;
use std::time::Duration;

use dalbe::deadline::Demand;
use dalbe::weight::{
    CapacityEstimate, DEMAND_HEADROOM, FlowTarget, FlowWeightController, MAX_SAMPLE_GAP,
    MIN_WEIGHT, WeightObservation,
};

use super::admission::{Admission, AdmissionSettings, InvalidSettings};
use super::backlog::{BacklogPolicy, Observation};
use super::load::{Interval, Load, MIN_WEIGHT_PERIOD, WeightSource};
use super::sample::ControlSample;
use super::settings::{LaneSettings, Mode};
use super::timing::Fraction;

#[cfg(test)]
mod tests;

/// Time to the nearest deadline from which on the law runs at its usual speed.
const FULL_WINDOW: Duration = Duration::from_secs(120);

/// The law runs at most this many times as fast for shorter windows: T is then one
/// second, which is the period of the samples.
const MAX_SPEED: f64 = 5.0;

/// A connection that is alone, without a deadline that asks for a rate, takes this many
/// chunks at once, some minutes of work. There the limit on connections has nothing to
/// decide, and each request costs two round trips.
const CHUNKS_OF_A_LONE_CONNECTION: NonZeroU64 = NonZeroU64::new(64).expect("not 0");

/// Chunks are not cut shorter than this near the end, bytes: below it the gaps between
/// requests weigh more than what that gains.
const MIN_CHUNK: u64 = 256 * 1024;

/// T is at least this many T_w: the slow loop must see what the fast loop did.
const MIN_WEIGHT_PERIODS: u32 = 2;

/// Shortfall that brings no connection, chunks: TCP varies that much from one second to
/// the next.
const TOLERATED_SHORTFALL: f64 = 1.0;

/// With fewer T_w left than this the tolerated shortfall shrinks to nothing: there is no
/// time to catch up later.
const TOLERANT_PERIODS: f64 = 30.0;

/// Below this weight there are more flows than needed. Well below 1, so that a weight
/// that touches 1 now and then does not cost a connection each time.
const SURPLUS_WEIGHT: f64 = 0.7;

/// So many times zeta is enough where w aims at [`DEMAND_HEADROOM`]: less than that, so that m
/// can fall.
const ENOUGH_HEADROOM: f64 = 1.1;

/// A chunk is this much work of one flow, s (as the chunk sizer has it).
const CHUNK_DURATION: f64 = 4.0;

/// Smallest unit of n, bytes: on slower flows more connections are no help.
const MIN_UNIT: NonZeroU64 = NonZeroU64::new(64 * 1024).expect("not 0");

/// The controller of w and m.
#[derive(Debug)]
pub(crate) struct RateController {
    weight: WeightSource,
    capacity: CapacityEstimate,
    /// So many connections carry the weight, and others yield.
    max_weight: f64,
    /// Smallest weight since m was last updated.
    smallest_w: f64,
    /// Bytes since w was last updated.
    since_weight: Interval,
    /// Since when no connection is in use; `None` while one is.
    idle_since: Option<Duration>,
    policy: BacklogPolicy,
    admission: Admission,
    fraction: Fraction,
    /// T and the unit of n are this much shorter than usual. The law's dynamics stay as
    /// they are on a shorter scale of time.
    time_scale: f64,
    /// Limit on the rate, byte/s: the flows do not press for more.
    pub(crate) limit_rate: Option<f64>,
    /// Whether there was a deadline at the last sample.
    had_demand: bool,
    /// Whether work without a deadline waited at the last sample.
    had_waiting: bool,
    /// Whether some deadline asks for a rate, or will.
    is_pressed: bool,
    /// w_min.
    least_weight: f64,
    /// Whether the flows have their least weight for now, whatever is demanded.
    pub(crate) is_held_back: bool,
    /// Connections allowed until the next sample.
    allowed: u32,
    /// Connections in use.
    in_use: u32,
    n: f64,
    /// Bytes since the last sample.
    since_sample: Interval,
    /// Bytes since m was last updated.
    since_update: Interval,
}

impl RateController {
    /// The controller of a lane in this mode; `window` is the time to the deadline of
    /// the first member of a shared lane.
    pub(crate) fn of_lane(
        settings: &LaneSettings,
        mode: Mode,
        window: Option<Duration>,
    ) -> Result<Self, InvalidSettings> {
        let weight = || settings.weight_source();
        let max = settings.max_connections;
        let limit_rate = settings.limit_rate.map(|rate| rate as f64);
        let controller = match mode {
            Mode::Batch {
                min_connections,
                window,
            } => Self::by_deadline(
                min_connections,
                max,
                window,
                weight(),
                BacklogPolicy::paced(),
            ),
            Mode::Shared | Mode::Stream => {
                Self::by_deadline(1, max, window, weight(), BacklogPolicy::mixed())
            }
            Mode::SingleConnection => Self::of_connection(FlowWeightController::new(
                settings.controller,
                settings.weight,
                limit_rate,
            )),
        };
        Ok(Self {
            limit_rate,
            least_weight: settings.weight,
            max_weight: f64::from(settings.carriers()),
            ..controller?
        })
    }

    /// `m_min` to `m_max` connections; what `policy` counts brings m above `m_min`.
    ///
    /// `window` is the time to the nearest deadline, if there is one.
    pub(crate) fn by_deadline(
        m_min: u32,
        m_max: u32,
        window: Option<Duration>,
        weight: WeightSource,
        policy: BacklogPolicy,
    ) -> Result<Self, InvalidSettings> {
        let time_scale = window.map_or(1.0, |window| {
            let share = window.as_secs_f64() / FULL_WINDOW.as_secs_f64();
            share.clamp(1.0 / MAX_SPEED, 1.0)
        });
        let paced = AdmissionSettings::paced();
        let settings = AdmissionSettings {
            m_min: f64::from(m_min),
            m_max,
            period: paced.period.mul_f64(time_scale),
            ..paced
        };
        Ok(Self {
            is_pressed: window.is_some(),
            time_scale,
            ..Self::under(settings, weight, policy)?
        })
    }

    /// For one upload over one connection: w follows the deadline every second.
    fn of_connection(weight: FlowWeightController) -> Result<Self, InvalidSettings> {
        let weight = WeightSource::Connection {
            weight: Box::new(weight),
            is_open: false,
        };
        let one = AdmissionSettings {
            m_max: 1,
            ..AdmissionSettings::paced()
        };
        Self::under(one, weight, BacklogPolicy::paced())
    }

    fn under(
        settings: AdmissionSettings,
        weight: WeightSource,
        policy: BacklogPolicy,
    ) -> Result<Self, InvalidSettings> {
        let admission = Admission::new(settings)?;
        Ok(Self {
            weight,
            capacity: CapacityEstimate::default(),
            max_weight: f64::INFINITY,
            smallest_w: 1.0,
            since_weight: Interval::default(),
            idle_since: Some(Duration::ZERO),
            policy,
            admission,
            fraction: Fraction::new(),
            time_scale: 1.0,
            limit_rate: None,
            had_demand: false,
            had_waiting: false,
            is_pressed: false,
            least_weight: MIN_WEIGHT,
            is_held_back: false,
            // Whole and within the range of u32.
            allowed: settings.m_min.ceil() as u32,
            in_use: 0,
            n: 0.0,
            since_sample: Interval::default(),
            since_update: Interval::default(),
        })
    }

    /// Allows this many connections until the next sample.
    #[cfg(test)]
    pub(crate) fn allow_for_test(&mut self, connections: u32) {
        self.allowed = connections;
    }

    /// Changes m_min, from now on.
    pub(crate) fn set_least(&mut self, m_min: u32) {
        self.admission.set_least(m_min);
        self.allowed = self.allowed.max(self.admission.m().ceil() as u32);
    }

    /// Connections that may be in use now.
    pub(crate) fn connections(&self) -> usize {
        self.allowed as usize
    }

    /// What the flows are to do now.
    pub(crate) fn flow_target(&self, now: Duration) -> FlowTarget {
        let target = match &self.weight {
            WeightSource::Connection { weight, .. } => weight.target(now),
            other => FlowTarget {
                w: other.w(),
                capacity: self.capacity.rate(now),
            },
        };
        match self.is_held_back {
            true => FlowTarget {
                w: self.least_weight,
                ..target
            },
            false => target,
        }
    }

    /// Notes how many connections are in use from now on.
    pub(crate) fn active(&mut self, now: Duration, connections: usize) {
        if connections == 0 {
            self.idle_since.get_or_insert(now);
        } else if let Some(since) = self.idle_since.take()
            && now >= since + MIN_WEIGHT_PERIOD
        {
            // A rate of zero for want of work says nothing about the path.
            self.since_weight.restart(now);
        }
        self.in_use = u32::try_from(connections).unwrap_or(u32::MAX);
        self.fraction.active(now, self.in_use);
    }

    /// The one connection of an upload is open: its first period begins.
    pub(crate) fn connected(&mut self, now: Duration) {
        if let WeightSource::Connection { weight, is_open } = &mut self.weight {
            weight.begin(now);
            *is_open = true;
        }
    }

    /// The one connection of an upload is gone.
    pub(crate) fn disconnected(&mut self) {
        if let WeightSource::Connection { is_open, .. } = &mut self.weight {
            *is_open = false;
        }
    }

    /// Whether a sample tells anything about the flows.
    pub(crate) fn is_measuring(&self) -> bool {
        !matches!(self.weight, WeightSource::Connection { is_open: false, .. })
    }

    /// Bytes have been moved. Those of a transfer without a deadline tell what the path
    /// carries, and nothing about how the deadlines stand.
    pub(crate) fn moved(&mut self, now: Duration, bytes: u64, is_due: bool) {
        if let WeightSource::Connection { weight, .. } = &mut self.weight {
            return match is_due {
                true => weight.delivered(now, bytes),
                false => weight.delivered_besides(now, bytes),
            };
        }
        self.capacity.record(now, bytes);
        self.since_sample.bytes += bytes;
        if is_due {
            self.since_weight.bytes += bytes;
            self.since_update.bytes += bytes;
        }
    }

    /// T.
    fn period(&self, load: &Load) -> Duration {
        let shortest = load.weight_period() * MIN_WEIGHT_PERIODS;
        self.admission.period().max(shortest)
    }

    /// Length of the next chunk, bytes; `natural` is what the rate asks for, `pending`
    /// what waits. Chunks are shorter near the end, so that every connection has work until
    /// the last byte (guided self-scheduling, Polychronopoulos and Kuck 1987). A near deadline
    /// does not cut them: each request costs two round trips, and the first data after it is a
    /// burst that short queues lose.
    ///
    /// In a shared lane a chunk is never longer than its natural length: a transfer may
    /// come that is due first.
    pub(crate) fn chunk_length(&self, natural: NonZeroU64, pending: u64) -> NonZeroU64 {
        let (longest, connections) = match self.policy {
            BacklogPolicy::Mixed(_) => (natural, self.admission.m().ceil() as u64),
            BacklogPolicy::Paced(_) if self.allowed == 1 && !self.is_pressed => {
                (natural.saturating_mul(CHUNKS_OF_A_LONE_CONNECTION), 1)
            }
            BacklogPolicy::Paced(_) => (natural, self.allowed.into()),
        };
        let share = (pending / connections.max(1)).max(MIN_CHUNK);
        NonZeroU64::new(share).map_or(longest, |share| share.min(longest))
    }

    /// Takes a sample. Every T_w it also updates w, and every T it updates m.
    pub(crate) fn sample(&mut self, now: Duration, load: &Load) -> ControlSample {
        if let WeightSource::Connection { weight, is_open } = &mut self.weight {
            let is_open = *is_open;
            return ControlSample {
                n: 0.0,
                m: 1.0,
                // Without a connection there is nothing to learn for its weight.
                rate: if is_open {
                    weight.sample(now, load.demand)
                } else {
                    0.0
                },
                w: self.weight.w(),
            };
        }
        // More than the user's limit cannot be had, and is not tried for.
        let limited = |demand: Demand| Demand {
            zeta: self
                .limit_rate
                .map_or(demand.zeta, |limit| demand.zeta.min(limit)),
            ..demand
        };
        let load = &Load {
            demand: load.demand.map(limited),
            ..*load
        };
        self.admission.tolerate(load.tolerated);
        // The plan starts with the demand, not with the next full period.
        let is_new = load.demand.is_some() && !self.had_demand;
        self.had_demand = load.demand.is_some();
        self.is_pressed = self.had_demand;
        // A long queue that has just come does not wait for one either: a period is long
        // beside thousands of small files.
        let is_waiting = load.demand.is_none() && self.policy.wants(load.inactive);
        let has_come = is_waiting && !self.had_waiting;
        self.had_waiting = is_waiting;
        if now >= self.since_sample.start + MAX_SAMPLE_GAP {
            self.since_weight.restart(now);
            self.since_update.restart(now);
            self.since_sample.restart(now);
            self.policy.restart(now);
        }
        self.update_weight(now, load, is_new);
        if is_new || has_come || self.since_update.lasts(self.period(load), now) {
            self.update_connections(now, load);
        }
        let m = self.admission.m();
        self.allowed = self.fraction.decide(now, m);
        let rate = self.since_sample.rate(now);
        self.since_sample.restart(now);
        ControlSample {
            n: self.n,
            m,
            w: self.weight.w(),
            rate,
        }
    }

    /// What is enough for the deadlines, byte/s.
    fn enough_rate(&self, load: &Load) -> f64 {
        let headroom = ENOUGH_HEADROOM * (self.weight.headroom() / DEMAND_HEADROOM);
        (headroom * load.zeta()).min(self.limit_rate.unwrap_or(f64::INFINITY))
    }

    fn update_weight(&mut self, now: Duration, load: &Load, is_new: bool) {
        let enough_rate = self.enough_rate(load);
        let WeightSource::Deadlines(weight) = &mut self.weight else {
            return;
        };
        let period = load.weight_period();
        let rate = self.since_weight.rate(now);
        let ends_in_time = load
            .demand
            .is_some_and(|demand| demand.is_nearly_over(rate, period));
        if ends_in_time && !is_new {
            self.smallest_w = self.smallest_w.min(weight.w());
            return;
        }
        if is_new || self.since_weight.lasts(period, now) {
            let m = self.admission.m();
            let carrying = m.min(self.max_weight);
            if weight.w() >= 1.0 {
                self.capacity.lower_if_implausible(rate);
            }
            let w = weight.update(&WeightObservation {
                period: now.saturating_sub(self.since_weight.start),
                zeta: load.zeta(),
                rate,
                flows: carrying,
                capacity: self.capacity.rate(now),
            });
            if w < SURPLUS_WEIGHT && !self.policy.wants(load.inactive) {
                // One of the two means may be of a lucky moment.
                let sure = rate.min(self.since_update.rate(now));
                let enough = self.admission.enough(enough_rate, sure, self.in_use);
                self.admission.lower(enough.max(carrying * w));
                weight.redistribute(carrying, self.admission.m().min(self.max_weight));
            }
            self.since_weight.restart(now);
        }
        self.smallest_w = self.smallest_w.min(weight.w());
    }

    fn update_connections(&mut self, now: Duration, load: &Load) {
        let rate = self.since_update.rate(now);
        let w = self.smallest_w;
        self.smallest_w = self.weight.w();
        // The natural length follows what finished chunks have shown. On a path that has
        // become slow that is long ago.
        let chunk = rate / self.admission.m() * CHUNK_DURATION;
        let chunk =
            NonZeroU64::new(chunk as u64).map_or(load.chunk_len, |chunk| chunk.min(load.chunk_len));
        let unit = (chunk.get() as f64 * self.time_scale) as u64;
        let n = self.policy.update(&Observation {
            now,
            inactive: load.inactive,
            demand: load.demand,
            rate,
            w,
            chunk_len: NonZeroU64::new(unit).map_or(MIN_UNIT, |unit| unit.max(MIN_UNIT)),
        });
        // Near the end n is bounded by what remains and falls with it. While the flows,
        // at their full weight, are slower than they have to be, that is no sign of
        // catching up, and m must not fall for it.
        let is_behind = w >= 1.0 && load.demand.is_some_and(|demand| demand.zeta > rate);
        self.n = if is_behind { n.max(self.n) } else { n };
        let periods_left = load
            .time_left
            .map_or(0.0, |left| left.div_duration_f64(load.weight_period()));
        let tolerated = TOLERATED_SHORTFALL * (periods_left / TOLERANT_PERIODS).min(1.0);
        let (m, enough_rate) = (self.admission.m(), self.enough_rate(load));
        let lacking = (self.n - tolerated).max(0.0);
        self.admission.update(lacking);
        if matches!(self.weight, WeightSource::Deadlines(_)) {
            let enough = self.admission.enough(enough_rate, rate, self.in_use);
            self.admission.raise(enough.min(m));
        }
        self.since_update.restart(now);
    }
}
