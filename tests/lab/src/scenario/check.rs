//! What a scenario must not say.

use super::{DirectionSpec, Foreground, QueueSpec, Scenario, Traffic};

impl Scenario {
    /// Whether this can be run.
    ///
    /// # Errors
    /// What cannot be, and where.
    pub fn check(&self) -> Result<(), String> {
        positive("duration_s", self.duration_s)?;
        if !(0.0..self.duration_s).contains(&self.measure_from_s) {
            return Err("measure_from_s must lie within the run".to_owned());
        }
        if self.link.is_empty() || self.link.len() > 2 {
            return Err("there must be one [[link]], or two".to_owned());
        }
        for link in &self.link {
            direction(&link.forward())?;
            direction(&link.backward())?;
        }
        for foreground in &self.foreground {
            self.foreground(foreground)?;
        }
        let background = &self.background;
        not_negative("background.start_s", background.start_s)?;
        background
            .size_mb
            .map_or(Ok(()), |size| positive("background.size_mb", size))?;
        background
            .deadline_s
            .map_or(Ok(()), |time| positive("background.deadline_s", time))?;
        positive("background.copies", f64::from(background.copies))?;
        not_negative("background.stagger_s", background.stagger_s)?;
        if let Some(jobs) = background.jobs {
            positive("background.jobs.load", jobs.load)?;
            positive("background.jobs.mean_kb", jobs.mean_kb)?;
            if background.size_mb.is_some() {
                return Err("background has either size_mb or jobs".to_owned());
            }
        }
        Ok(())
    }

    fn foreground(&self, foreground: &Foreground) -> Result<(), String> {
        if foreground
            .link
            .is_some_and(|link| link < 1 || link > self.link.len())
        {
            return Err("foreground: there is no such link".to_owned());
        }
        not_negative("foreground: start_s", foreground.start_s)?;
        if foreground
            .stop_s
            .is_some_and(|stop| stop <= foreground.start_s)
        {
            return Err("foreground: stop_s must be later than start_s".to_owned());
        }
        match foreground.traffic {
            Traffic::Greedy { flows } => positive("foreground: flows", f64::from(flows)),
            Traffic::Constant { rate_mbit } => positive("foreground: rate_mbit", rate_mbit),
            Traffic::OnOff { on_s, off_s } => {
                positive("foreground: on_s", on_s)?;
                positive("foreground: off_s", off_s)
            }
            Traffic::Web { load, mean_kb } => {
                positive("foreground: load", load)?;
                positive("foreground: mean_kb", mean_kb)
            }
            Traffic::Udp {
                rate_mbit,
                packet_bytes,
            } => {
                positive("foreground: rate_mbit", rate_mbit)?;
                if (100..=1500).contains(&packet_bytes) {
                    return Ok(());
                }
                Err("foreground: packet_bytes must be 100 to 1500".to_owned())
            }
        }
    }
}

fn direction(spec: &DirectionSpec) -> Result<(), String> {
    positive("link: rate_mbit", spec.rate_mbit)?;
    not_negative("link: delay_ms", spec.delay_ms)?;
    if !(0.0..1.0).contains(&spec.loss) {
        return Err("link: loss must be 0 or more, and less than 1".to_owned());
    }
    match spec.queue {
        QueueSpec::Packets(packets) => positive("link: queue", f64::from(packets))?,
        QueueSpec::Bytes(bytes) if bytes < 1500 => {
            return Err("link: the queue must hold a packet of 1500 bytes".to_owned());
        }
        QueueSpec::Bytes(_) => {}
        QueueSpec::Bdp(times) => positive("link: queue", times)?,
    }
    let mut before = 0.0;
    for step in &spec.schedule {
        positive("link: schedule: rate_mbit", step.rate_mbit)?;
        if step.at_s <= before {
            return Err("link: schedule: the moments must rise from above 0".to_owned());
        }
        before = step.at_s;
    }
    Ok(())
}

fn positive(what: &str, value: f64) -> Result<(), String> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(format!("{what} must be more than 0"))
}

fn not_negative(what: &str, value: f64) -> Result<(), String> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(format!("{what} must be 0 or more"))
}
