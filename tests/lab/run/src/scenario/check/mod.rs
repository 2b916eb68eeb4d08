//! What a scenario must not say. The bounds are wide: they keep out what no
//! machine can do, and what is a slip of the pen.

mod paths;

use std::ops::RangeInclusive;

use dalbe::sender::SenderCoupling;
use dalbe::weight::MIN_WEIGHT;

use crate::scenario::{
    Background, DirectionSpec, Discipline, Foreground, Interval, QueueSpec, Radio, Scenario,
    Stalls, Traffic,
};

/// A day, s.
const LONGEST: f64 = 86_400.0;

/// Lengths of time, s.
const LENGTH: RangeInclusive<f64> = 0.001..=LONGEST;

/// Moments, and lengths of time that may be nothing, s.
const MOMENT: RangeInclusive<f64> = 0.0..=LONGEST;

/// Rates, Mbit/s.
const RATE: RangeInclusive<f64> = 0.01..=1000.0;

/// Sizes of what there is to move, MB.
const SIZE_MB: RangeInclusive<f64> = 0.000_001..=1e6;

/// Connections, or contenders.
const COUNT: RangeInclusive<f64> = 1.0..=1000.0;

/// Shares of a link's rate.
const LOAD: RangeInclusive<f64> = 0.001..=10.0;

/// Weights of a connection.
const WEIGHT: RangeInclusive<f64> = MIN_WEIGHT..=1.0;

/// Priorities of a connection.
const PRIORITY: RangeInclusive<f64> = 0.0..=SenderCoupling::MAX_PRIORITY as f64;

/// CDG's back-off scales, ms.
const SCALE: RangeInclusive<f64> = 0.01..=1000.0;

/// Price ratios.
const PRICE_RATIO: RangeInclusive<f64> = 0.001..=1000.0;

/// Delays one way, ms.
const DELAY: RangeInclusive<f64> = 0.0..=60_000.0;

/// Delays that a discipline may aim at, and for how long, ms.
const TARGET: RangeInclusive<f64> = 0.1..=10_000.0;

/// Delays that PIE may aim at, ms. It never drops of two packets, which alone take
/// longer than a shorter target at 10 Mbit/s.
const PIE_TARGET: RangeInclusive<f64> = 2.0..=10_000.0;

/// Mean sizes, kB.
const MEAN_KB: RangeInclusive<f64> = 0.1..=1e6;

/// What the kernel allows for the name of a congestion control, bytes.
const LONGEST_NAME: usize = 15;

impl Scenario {
    /// Whether this can be run.
    ///
    /// # Errors
    /// What cannot be, and where.
    pub fn check(&self) -> Result<(), String> {
        within("duration_s", self.duration_s, LENGTH)?;
        if !(0.0..self.duration_s).contains(&self.measure_from_s) {
            return Err("measure_from_s must lie within the run".to_owned());
        }
        let until = self.measured().end;
        if until <= self.measure_from_s || until > self.duration_s {
            return Err("measure_until_s must lie within the run, after measure_from_s".to_owned());
        }
        if let Some(until) = self.pressure_until_s {
            within("pressure_until_s", until, 0.0..=self.duration_s)?;
        }
        self.check_paths()?;
        for (link, number) in self.link.iter().zip(1..) {
            direction(&link.forward()).map_err(|error| format!("link {number}: {error}"))?;
            direction(&link.backward())
                .map_err(|error| format!("link {number}: backward: {error}"))?;
        }
        for (foreground, number) in self.foreground.iter().zip(1..) {
            self.foreground(foreground)
                .map_err(|error| format!("foreground {number}: {error}"))?;
        }
        background(&self.background).map_err(|error| format!("background: {error}"))
    }

    fn foreground(&self, foreground: &Foreground) -> Result<(), String> {
        if foreground.link.is_some() && self.is_parallel() {
            return Err("link: links side by side are named by path".to_owned());
        }
        if let Some(path) = &foreground.path
            && self.path_number(path).is_none()
        {
            return Err(format!("path: there is no path {path}"));
        }
        if foreground
            .link
            .is_some_and(|link| link < 1 || link > self.link.len())
        {
            return Err("link: there is no such link".to_owned());
        }
        within("start_s", foreground.start_s, MOMENT)?;
        if let Some(stop) = foreground.stop_s {
            within("stop_s", stop, MOMENT)?;
            if stop <= foreground.start_s {
                return Err("stop_s must be later than start_s".to_owned());
            }
        }
        congestion_control(&foreground.congestion_control)?;
        match foreground.traffic {
            Traffic::Greedy { flows } => within("flows", f64::from(flows), COUNT),
            Traffic::Constant { rate_mbit } => within("rate_mbit", rate_mbit, RATE),
            Traffic::OnOff { on_s, off_s } => {
                within("on_s", on_s, LENGTH)?;
                within("off_s", off_s, LENGTH)
            }
            Traffic::Web { load, mean_kb } => {
                within("load", load, LOAD)?;
                within("mean_kb", mean_kb, MEAN_KB)
            }
            Traffic::Udp {
                rate_mbit,
                packet_bytes,
            } => {
                within("rate_mbit", rate_mbit, RATE)?;
                within("packet_bytes", f64::from(packet_bytes), 100.0..=1500.0)
            }
            Traffic::Call {} => Ok(()),
        }
    }
}

fn background(background: &Background) -> Result<(), String> {
    within("start_s", background.start_s, MOMENT)?;
    congestion_control(&background.congestion_control)?;
    for (name, value, bounds) in [
        ("size_mb", background.size_mb, SIZE_MB),
        ("deadline_s", background.deadline_s, LENGTH),
        ("weight", background.weight, WEIGHT),
        ("g_ms", background.g_ms, SCALE),
        ("phi", background.phi, PRICE_RATIO),
        ("connections", background.connections.map(f64::from), COUNT),
        ("server_kb_s", background.server_kb_s, MEAN_KB),
        ("copies", Some(background.copies.into()), COUNT),
        ("stagger_s", Some(background.stagger_s), MOMENT),
    ] {
        if let Some(value) = value {
            within(name, value, bounds)?;
        }
    }
    weights(background)?;
    for priority in &background.priorities {
        within("priorities", f64::from(*priority), PRIORITY)?;
    }
    let has_deadline = background.size_mb.is_some() && background.deadline_s.is_some();
    if background.controller.is_some() && !has_deadline {
        return Err("controller needs size_mb and deadline_s".to_owned());
    }
    if let Some(stopped) = background.stopped {
        interval("stopped", stopped)?;
    }
    if let Some(away) = background.stalls {
        stalls(away)?;
        if background.stopped.is_some() || background.copies > 1 {
            return Err("stalls are those of one program that is not stopped otherwise".to_owned());
        }
    }
    for (transfer, number) in background.transfer.iter().zip(1..) {
        let named = |error| format!("transfer {number}: {error}");
        within("size_mb", transfer.size_mb, SIZE_MB).map_err(named)?;
        if let Some(deadline) = transfer.deadline_s {
            within("deadline_s", deadline, LENGTH).map_err(named)?;
        }
    }
    let is_single = background.size_mb.is_some() || background.deadline_s.is_some();
    if !background.transfer.is_empty() && (is_single || background.jobs.is_some()) {
        return Err("it has either [[background.transfer]] or what is for one".to_owned());
    }
    if let Some(jobs) = background.jobs {
        within("jobs.load", jobs.load, LOAD)?;
        within("jobs.mean_kb", jobs.mean_kb, MEAN_KB)?;
        if let Some(until) = jobs.until_s {
            within("jobs.until_s", until, MOMENT)?;
            if until <= background.start_s {
                return Err("jobs.until_s must be later than start_s".to_owned());
            }
        }
        if background.size_mb.is_some() {
            return Err("it has either size_mb or jobs".to_owned());
        }
    }
    Ok(())
}

fn stalls(stalls: Stalls) -> Result<(), String> {
    let (least, most) = (stalls.least_ms, stalls.most_ms);
    within("stalls: every_ms", stalls.every_ms, 10.0..=60_000.0)?;
    within("stalls: most_ms", most, 1.0..=stalls.every_ms)?;
    within("stalls: least_ms", least, 0.0..=most)
}

/// What a sender's weight changes to.
fn weights(background: &Background) -> Result<(), String> {
    for step in &background.weights {
        within("weights: at_s", step.at_s, MOMENT)?;
        weight(step.weight).map_err(|error| format!("weights: {error}"))?;
    }
    rises("weights", background.weights.iter().map(|step| step.at_s))?;
    if !background.weights.is_empty() && background.deadline_s.is_some() {
        return Err("it has either weights or a deadline, which makes them".to_owned());
    }
    Ok(())
}

fn direction(spec: &DirectionSpec) -> Result<(), String> {
    within("rate_mbit", spec.rate_mbit, RATE)?;
    within("delay_ms", spec.delay_ms, DELAY)?;
    within("jitter_ms", spec.jitter_ms, DELAY)?;
    within("jitter_share", spec.jitter_share, 0.0..=1.0)?;
    within("thinned_acks", spec.thinned_acks, 0.0..=0.99)?;
    within("aggregate_ms", spec.aggregate_ms, 0.0..=1000.0)?;
    discipline(spec.discipline)?;
    if spec.ecn && !spec.discipline.can_mark() {
        return Err("ecn needs the discipline codel, pie or fq_codel".to_owned());
    }
    spec.radio.map_or(Ok(()), radio)?;
    for outage in &spec.outage {
        interval("outage", *outage)?;
    }
    if !(0.0..1.0).contains(&spec.loss) {
        return Err("loss must be 0 or more, and less than 1".to_owned());
    }
    match spec.queue {
        QueueSpec::Packets(packets) => within("queue.packets", f64::from(packets), 1.0..=1e6)?,
        // A packet of 1500 bytes has to fit.
        QueueSpec::Bytes(bytes) => within("queue.bytes", bytes as f64, 1500.0..=1e9)?,
        QueueSpec::Bdp(times) => within("queue.bdp", times, 0.001..=1000.0)?,
    }
    for step in &spec.schedule {
        within("schedule: rate_mbit", step.rate_mbit, RATE)?;
        within("schedule: at_s", step.at_s, MOMENT)?;
    }
    rises("schedule", spec.schedule.iter().map(|step| step.at_s))?;
    for step in &spec.delay_steps {
        within("delay_steps: delay_ms", step.delay_ms, DELAY)?;
        within("delay_steps: at_s", step.at_s, MOMENT)?;
    }
    rises("delay_steps", spec.delay_steps.iter().map(|step| step.at_s))
}

fn discipline(discipline: Discipline) -> Result<(), String> {
    match discipline {
        Discipline::DropTail | Discipline::Fair | Discipline::Policer => Ok(()),
        Discipline::Pie { target_ms } => within("discipline: target_ms", target_ms, PIE_TARGET),
        Discipline::Codel {
            target_ms,
            interval_ms,
        }
        | Discipline::FqCodel {
            target_ms,
            interval_ms,
        } => {
            within("discipline: target_ms", target_ms, TARGET)?;
            within("discipline: interval_ms", interval_ms, TARGET)?;
            if target_ms >= interval_ms {
                return Err("discipline: target_ms must be less than interval_ms".to_owned());
            }
            Ok(())
        }
    }
}

fn radio(radio: Radio) -> Result<(), String> {
    within("radio: every_ms", radio.every_ms, 1.0..=3_600_000.0)?;
    within("radio: least", radio.least, 0.01..=1.0)?;
    let Some(walk) = radio.walk else {
        return Ok(());
    };
    within("radio: walk", walk, 0.001..=1.0)?;
    // A longer step would have to be reflected at both ends. The sum is exact where
    // 1 - least is not, as of 0.9.
    if walk + radio.least > 1.0 {
        return Err("radio: walk must be at most 1 - least".to_owned());
    }
    Ok(())
}

fn rises(what: &str, moments: impl Iterator<Item = f64>) -> Result<(), String> {
    let all = [0.0].into_iter().chain(moments);
    if all.is_sorted_by(|before, after| before < after) {
        return Ok(());
    }
    Err(format!("{what}: at_s must rise from above 0"))
}

fn interval(what: &str, interval: Interval) -> Result<(), String> {
    within(&format!("{what}: from_s"), interval.from_s, MOMENT)?;
    within(&format!("{what}: until_s"), interval.until_s, MOMENT)?;
    if interval.until_s <= interval.from_s {
        return Err(format!("{what}: until_s must be later than from_s"));
    }
    Ok(())
}

/// Whether a number lies within its bounds.
///
/// # Errors
/// What is wrong with it.
pub fn within(what: &str, value: f64, bounds: RangeInclusive<f64>) -> Result<(), String> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let (least, most) = bounds.into_inner();
    Err(format!("{what} must be {least} to {most}"))
}

/// Whether a connection could have this weight.
///
/// # Errors
/// Says that it could not.
pub fn weight(weight: f64) -> Result<(), String> {
    within("weight", weight, WEIGHT)
}

/// Whether a contender could begin with so many connections.
///
/// # Errors
/// Says that it could not.
pub fn connections(count: u32) -> Result<(), String> {
    within("connections", f64::from(count), COUNT)
}

/// Whether a connection could have this back-off scale of CDG's, ms.
///
/// # Errors
/// Says that it could not.
pub fn scale(g_ms: f64) -> Result<(), String> {
    within("g_ms", g_ms, SCALE)
}

/// Whether a kernel could have a congestion control of this name.
///
/// # Errors
/// Says that it could not.
pub fn congestion_control(name: &str) -> Result<(), String> {
    let is_of_names = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    if (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_of_names) {
        return Ok(());
    }
    Err(format!(
        "congestion_control must be the kernel's name of one, as cubic, and is {name:?}"
    ))
}

#[cfg(test)]
mod tests;
