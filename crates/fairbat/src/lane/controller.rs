//! The two loops of a lane, fed with what it measures: w, the weight of each
//! flow (fast), and m, how many there may be (slow): release, admission and
//! the realisation of a fractional m. Pure.
//!
//! They share one task and must not fight over it. So m rises only for what
//! was missing at w = 1; and where the flows need less than their full weight
//! again, there are fewer of them first. Where jobs come and go and none has a
//! deadline there is one loop, and m alone says both: in the part of the time for
//! which it allows no connection, there is one that yields to anybody.

mod interval;
mod load;
mod pressure;

use std::num::NonZeroU64;
use std::time::Duration;

use self::interval::Interval;
pub(crate) use self::load::Load;
use self::load::WEIGHT_PERIOD_LEAST;
use self::pressure::Pressure;

use crate::lane::backlog::{BacklogPolicy, Observation};
use crate::lane::{Admission, AdmissionSettings, Fraction, InvalidSettings, Period};
use dalbe::weight::CapacityEstimate;
use dalbe::weight::MAX_SAMPLE_GAP;
use dalbe::weight::WeightController;
use dalbe::weight::WeightObservation;

/// Window of a deadline from which on the law runs at its own speed.
const FULL_WINDOW: Duration = Duration::from_secs(120);

/// How much faster it may run for shorter ones: T is then a second, and no
/// faster than samples are taken.
const SPEED_MOST: f64 = 5.0;

/// A connection that is alone and not pressed by any deadline takes so many
/// chunks at once, some minutes' worth: the limit on connections has nothing to
/// act on, and with each request two round trips are lost.
const ALONE: NonZeroU64 = NonZeroU64::new(64).expect("not 0");

/// Chunks are not cut shorter than this for the deadline's sake, bytes: below
/// it the gaps between requests would weigh more.
const CHUNK_LEAST: u64 = 256 * 1024;

/// T is at least so many T_w: the slow loop must see what the fast one did.
const WEIGHT_PERIODS_LEAST: u32 = 2;

/// A shortfall up to here is what TCP makes of its share from one second to
/// the next, and no reason for another connection, chunks; ...
const TOLERATED: f64 = 1.0;
/// ... but with fewer T_w left than this it becomes one by and by: there is no
/// time to catch up later.
const TOLERANT_PERIODS: f64 = 30.0;

/// Below this weight there are more flows than it takes. Well below 1: a
/// weight that touches 1 now and then must not cost a connection each time.
const TOO_MANY: f64 = 0.7;

/// A chunk is the work of a flow for so long, s (as the chunk sizer has it).
const CHUNK_DURATION: f64 = 4.0;

/// The unit of n is not smaller than this, bytes: however slow the flows are,
/// more of them are no help below it.
const UNIT_LEAST: NonZeroU64 = NonZeroU64::new(64 * 1024).expect("not 0");

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PaceSample {
    /// n of FAIRBAT, chunks.
    pub(crate) n: f64,
    /// m of FAIRBAT, connections.
    pub(crate) m: f64,
    /// Weight of each flow.
    pub(crate) w: f64,
    /// Mean rate since the last sample, byte/s.
    pub(crate) rate: f64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Pace {
    pressure: Pressure,
    capacity: CapacityEstimate,
    /// Smallest weight since m was last updated.
    least_w: f64,
    /// Bytes since w was last updated.
    since_weight: Interval,
    /// Since when no connection is in use; `None` while one is.
    idle_since: Option<Duration>,
    release: BacklogPolicy,
    admission: Admission,
    fraction: Fraction,
    /// T, where jobs come and go.
    period: Period,
    /// What the limit does not fall below once no more of them come.
    rest: Option<f64>,
    /// T and the unit of n are this much shorter than usual, which leaves the
    /// law's dynamics as they are on a shorter scale of time.
    time_scale: f64,
    /// Whether there was a deadline at the last sample.
    had_demand: bool,
    /// Whether work without a deadline waited at the last sample.
    had_waiting: bool,
    /// Whether some deadline asks for a rate, or will.
    is_pressed: bool,
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

impl Pace {
    /// `m_min` to `m_max` connections. What is released brings m above `m_min`.
    ///
    /// `window` is the time to the nearest deadline, if there is one;
    /// flows that can be held back have at least the weight `w_min`.
    pub(crate) fn new(
        m_min: u32,
        m_max: u32,
        window: Option<Duration>,
        w_min: Option<f64>,
        release: BacklogPolicy,
    ) -> Result<Self, InvalidSettings> {
        let time_scale = window.map_or(1.0, |window| {
            let share = window.as_secs_f64() / FULL_WINDOW.as_secs_f64();
            share.clamp(1.0 / SPEED_MOST, 1.0)
        });
        let paced = AdmissionSettings::paced();
        let settings = AdmissionSettings {
            m_min: f64::from(m_min),
            m_max,
            period: paced.period.mul_f64(time_scale),
            ..paced
        };
        let pressure = w_min.map_or(Pressure::Unbraked, |w_min| {
            Pressure::Deadlines(WeightController::new(w_min))
        });
        Ok(Self {
            is_pressed: window.is_some(),
            time_scale,
            ..Self::under(settings, pressure, release)?
        })
    }

    /// For jobs that come and go, without deadlines (FAIRBAT's own case). Where
    /// flows can be held back, down to the weight `w_min`, there is always one: with
    /// an m_min below 1 it yields in the part of the time for which m allows none.
    pub(crate) fn of_arrivals(
        settings: AdmissionSettings,
        w_min: Option<f64>,
    ) -> Result<Self, InvalidSettings> {
        let pressure = w_min.map_or(Pressure::Unbraked, |least| Pressure::Limit {
            least,
            yields: false,
        });
        Self::under(settings, pressure, BacklogPolicy::Immediate)
    }

    /// No more jobs come: the queue is no longer to be kept at tau, and what is left
    /// of it has what it has now, or one whole connection, or more if it is long.
    pub(crate) fn no_more_come(&mut self) {
        self.rest = Some(self.admission.m().max(1.0));
    }

    fn under(
        settings: AdmissionSettings,
        pressure: Pressure,
        release: BacklogPolicy,
    ) -> Result<Self, InvalidSettings> {
        let admission = Admission::new(settings)?;
        Ok(Self {
            pressure,
            capacity: CapacityEstimate::new(),
            least_w: 1.0,
            since_weight: Interval::default(),
            idle_since: Some(Duration::ZERO),
            release,
            admission,
            fraction: Fraction::new(),
            period: Period::new(settings.period),
            rest: None,
            time_scale: 1.0,
            had_demand: false,
            had_waiting: false,
            is_pressed: false,
            // Whole and within the range of u32.
            allowed: settings.m_min.ceil() as u32,
            in_use: 0,
            n: 0.0,
            since_sample: Interval::default(),
            since_update: Interval::default(),
        })
    }

    /// Connections that may be in use now.
    pub(crate) fn connections(&self) -> usize {
        self.allowed as usize
    }

    /// So many connections are in use from now on.
    pub(crate) fn active(&mut self, now: Duration, connections: usize) {
        if connections == 0 {
            self.idle_since.get_or_insert(now);
        } else if let Some(since) = self.idle_since.take()
            && now >= since + WEIGHT_PERIOD_LEAST
        {
            // That nothing came for want of work tells nothing of the path.
            self.since_weight.restart(now);
        }
        self.in_use = u32::try_from(connections).unwrap_or(u32::MAX);
        self.fraction
            .active(now, self.pressure.counted(self.in_use));
    }

    /// Bytes have been moved. Those of a transfer that is not due say what
    /// the path carries, and nothing of how the deadlines stand.
    pub(crate) fn moved(&mut self, now: Duration, bytes: u64, is_due: bool) {
        self.capacity.record(now, bytes);
        self.since_sample.bytes += bytes;
        if is_due {
            self.since_weight.bytes += bytes;
            self.since_update.bytes += bytes;
        }
    }

    /// A chunk was on its connection for so long.
    pub(crate) fn finished(&mut self, chunk: Duration) {
        self.period.ended(chunk);
    }

    /// T: where jobs come and go, as their chunks take.
    fn period(&self, load: &Load) -> Duration {
        match self.release {
            BacklogPolicy::Immediate => self.period.now(),
            BacklogPolicy::Paced(_) | BacklogPolicy::Mixed(_) => {
                let least = load.weight_period() * WEIGHT_PERIODS_LEAST;
                self.admission.period().max(least)
            }
        }
    }

    /// Length of the next chunk, bytes, where `natural` is what the rate asks
    /// for and `pending` is what waits: shorter when a deadline is near, and
    /// near the end, so that every connection has work until the last byte
    /// (guided self-scheduling, Polychronopoulos and Kuck 1987).
    pub(crate) fn chunk_length(&self, natural: NonZeroU64, pending: u64) -> NonZeroU64 {
        let is_calm = !self.is_pressed && !matches!(self.release, BacklogPolicy::Immediate);
        let natural = if self.allowed == 1 && is_calm {
            natural.saturating_mul(ALONE)
        } else {
            natural
        };
        share_of(natural, self.unit(natural), pending, self.allowed.into())
    }

    /// The unit of n, bytes.
    fn unit(&self, chunk_len: NonZeroU64) -> NonZeroU64 {
        let scaled = (chunk_len.get() as f64 * self.time_scale) as u64;
        NonZeroU64::new(scaled).unwrap_or(NonZeroU64::MIN)
    }

    /// What the path carries when nobody else uses it, as far as has been
    /// seen, byte/s; 0 before anything is known.
    pub(crate) fn capacity(&self, now: Duration) -> f64 {
        self.capacity.rate(now)
    }

    /// Takes a sample; every T_w it also updates w, and every T m.
    pub(crate) fn sample(&mut self, now: Duration, load: &Load) -> PaceSample {
        self.admission.tolerate(load.tolerated);
        // The plan starts with the demand, not with the next full period.
        let is_new = load.demand.is_some() && !self.had_demand;
        self.had_demand = load.demand.is_some();
        self.is_pressed = self.had_demand;
        // Nor does a long queue wait for one that has just come: a period is long
        // beside thousands of small files.
        let is_waiting = load.demand.is_none() && self.release.mixes(load.inactive);
        let has_come = is_waiting && !self.had_waiting;
        self.had_waiting = is_waiting;
        if now >= self.since_sample.start + MAX_SAMPLE_GAP {
            self.since_weight.restart(now);
            self.since_update.restart(now);
            self.since_sample.restart(now);
            self.release.restart(now);
        }
        self.update_weight(now, load, is_new);
        if is_new || has_come || self.since_update.lasts(self.period(load), now) {
            self.update_connections(now, load);
        }
        let mut m = self.admission.m();
        if let Some(rest) = self.rest {
            m = m.max(rest.min(f64::from(load.tolerated)));
            // What is left may be gone before the period is over.
            self.n = load.inactive as f64;
        }
        let connections = self.fraction.decide(now, m);
        self.allowed = self.pressure.allow(connections);
        self.fraction
            .active(now, self.pressure.counted(self.in_use));
        let rate = self.since_sample.rate(now);
        self.since_sample.restart(now);
        PaceSample {
            n: self.n,
            m,
            w: self.pressure.w(),
            rate,
        }
    }

    fn update_weight(&mut self, now: Duration, load: &Load, is_new: bool) {
        let Pressure::Deadlines(weight) = &mut self.pressure else {
            return;
        };
        let period = load.weight_period();
        let rate = self.since_weight.rate(now);
        let ends_in_time = load
            .demand
            .is_some_and(|demand| demand.is_nearly_over(rate, period));
        if ends_in_time && !is_new {
            self.least_w = self.least_w.min(weight.w());
            return;
        }
        if is_new || self.since_weight.lasts(period, now) {
            let m = self.admission.m();
            if weight.w() >= 1.0 {
                self.capacity.lower_if_implausible(rate);
            }
            let w = weight.update(&WeightObservation {
                period: now.saturating_sub(self.since_weight.start),
                zeta: load.demand.map_or(0.0, |demand| demand.zeta),
                rate,
                flows: m,
                capacity: self.capacity.rate(now),
            });
            if w < TOO_MANY && !self.release.wants(load.inactive) {
                self.admission.lower(m * w);
                weight.redistribute(m, self.admission.m());
            }
            self.since_weight.restart(now);
        }
        self.least_w = self.least_w.min(weight.w());
    }

    fn update_connections(&mut self, now: Duration, load: &Load) {
        let rate = self.since_update.rate(now);
        let w = self.least_w;
        self.least_w = self.pressure.w();
        // The natural length follows what a finished chunk has shown; on a path
        // that has become slow that is long ago.
        let chunk = rate / self.admission.m() * CHUNK_DURATION;
        let chunk =
            NonZeroU64::new(chunk as u64).map_or(load.chunk_len, |chunk| chunk.min(load.chunk_len));
        let n = self.release.update(&Observation {
            now,
            inactive: load.inactive,
            demand: load.demand,
            rate,
            w,
            chunk_len: self.unit(chunk).max(UNIT_LEAST),
        });
        // Near the end n is bounded by what remains and falls with it. That
        // is no sign of catching up while the flows, at their full weight,
        // are slower than they have to be, and m must not fall for it.
        let is_behind = w >= 1.0 && load.demand.is_some_and(|demand| demand.zeta > rate);
        self.n = if is_behind { n.max(self.n) } else { n };
        let periods_left = load
            .time_left
            .map_or(0.0, |left| left.div_duration_f64(load.weight_period()));
        let tolerated = TOLERATED * (periods_left / TOLERANT_PERIODS).min(1.0);
        let chunk_times = match self.release {
            BacklogPolicy::Immediate => self.period.chunk_times(),
            BacklogPolicy::Paced(_) | BacklogPolicy::Mixed(_) => 1.0,
        };
        self.admission
            .update_after((self.n - tolerated).max(0.0), chunk_times);
        self.since_update.restart(now);
    }
}

/// The next of so many `connections` chunks that `pending` bytes are shared out
/// in: at most `unit`, and no shorter than is worth a request unless `natural`
/// is, bytes.
pub(crate) fn share_of(
    natural: NonZeroU64,
    unit: NonZeroU64,
    pending: u64,
    connections: u64,
) -> NonZeroU64 {
    let share = pending / connections.max(1);
    let length = unit.get().min(share).max(CHUNK_LEAST);
    NonZeroU64::new(length).map_or(natural, |length| length.min(natural))
}

#[cfg(test)]
mod tests;
