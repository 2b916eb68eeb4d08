//! The quick variant of a scenario.

use super::{Scenario, Traffic};

impl Scenario {
    /// The quick variant, as [`super::Quick`] says.
    ///
    /// # Errors
    /// When there is none, or it cannot be run.
    pub fn quick_variant(&self) -> Result<Self, String> {
        let quick = self.quick.ok_or("this scenario has no quick variant")?;
        let mut scenario = self.clone();
        scenario.quick = None;
        scenario.scale_time(quick.time_scale.unwrap_or(1.0));
        if let Some(duration) = quick.duration_s {
            scenario.duration_s = duration;
        }
        if let Some(from) = quick.measure_from_s {
            scenario.measure_from_s = from;
        }
        scenario.check()?;
        Ok(scenario)
    }

    /// Makes every moment and every length of time so many times as long, and
    /// sizes with them. Delays of links stay.
    pub fn scale_time(&mut self, by: f64) {
        self.duration_s *= by;
        self.measure_from_s *= by;
        for link in &mut self.link {
            let backward = link.backward.iter_mut().flat_map(|spec| &mut spec.schedule);
            for step in link.schedule.iter_mut().chain(backward) {
                step.at_s *= by;
            }
        }
        for foreground in &mut self.foreground {
            foreground.start_s *= by;
            if let Some(stop) = &mut foreground.stop_s {
                *stop *= by;
            }
            if let Traffic::OnOff { on_s, off_s } = &mut foreground.traffic {
                *on_s *= by;
                *off_s *= by;
            }
        }
        let background = &mut self.background;
        background.start_s *= by;
        background.stagger_s *= by;
        let (size, deadline) = (&mut background.size_mb, &mut background.deadline_s);
        for value in [size, deadline].into_iter().flatten() {
            *value *= by;
        }
    }
}
