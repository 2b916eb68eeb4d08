//! The quick variant of a scenario.

use crate::scenario::{Interval, Scenario, Traffic};

impl Scenario {
    /// The quick variant, as [`crate::scenario::Quick`] says.
    ///
    /// # Errors
    /// When there is none, or it cannot be run.
    pub fn quick_variant(&self) -> Result<Self, String> {
        let quick = self.quick.ok_or("this scenario has no quick variant")?;
        let mut scenario = self.clone();
        scenario.quick = None;
        scenario.scale_time(quick.time_scale.unwrap_or(1.0));
        if let Some(start) = quick.start_s {
            scenario.background.start_s = start;
        }
        if let Some(duration) = quick.duration_s {
            scenario.duration_s = duration;
            scenario.measure_until_s = None;
        }
        if quick.measure_until_s.is_some() {
            scenario.measure_until_s = quick.measure_until_s;
        }
        if let Some(from) = quick.measure_from_s {
            scenario.measure_from_s = from;
        }
        scenario.check()?;
        Ok(scenario)
    }

    /// Takes figures from the last so many seconds.
    pub fn measure_last(&mut self, seconds: f64) {
        self.measure_from_s = self.duration_s - seconds;
        self.measure_until_s = None;
    }

    /// Makes every moment and every length of time so many times as long, and
    /// sizes with them. Delays of links stay.
    ///
    /// Jobs keep their load: as many arrive, of so many times the size, in so
    /// many times the time. Fetches of the foreground do so, too, where they are
    /// beside jobs; elsewhere they are of the size that people fetch.
    pub fn scale_time(&mut self, by: f64) {
        self.duration_s *= by;
        self.measure_from_s *= by;
        let moments = [&mut self.measure_until_s, &mut self.pressure_until_s];
        for moment in moments.into_iter().flatten() {
            *moment *= by;
        }
        for link in &mut self.link {
            let backward = link.backward.iter_mut().flat_map(|spec| &mut spec.schedule);
            for step in link.schedule.iter_mut().chain(backward) {
                step.at_s *= by;
            }
            let backward = link.backward.iter_mut();
            let backward = backward.flat_map(|spec| &mut spec.delay_steps);
            for step in link.delay_steps.iter_mut().chain(backward) {
                step.at_s *= by;
            }
            let backward = link.backward.iter_mut().flat_map(|spec| &mut spec.outage);
            if let Some(departures) = &mut link.departures {
                departures.least_s *= by;
                departures.most_s *= by;
            }
            link.outage
                .iter_mut()
                .chain(backward)
                .for_each(|outage| outage.scale(by));
        }
        for foreground in &mut self.foreground {
            foreground.start_s *= by;
            if let Some(stop) = &mut foreground.stop_s {
                *stop *= by;
            }
            match &mut foreground.traffic {
                Traffic::OnOff { on_s, off_s } => {
                    *on_s *= by;
                    *off_s *= by;
                }
                Traffic::Web { mean_kb, .. } if self.background.jobs.is_some() => *mean_kb *= by,
                _ => {}
            }
        }
        let background = &mut self.background;
        if let Some(jobs) = &mut background.jobs {
            jobs.mean_kb *= by;
            jobs.until_s = jobs.until_s.map(|until| until * by);
        }
        // Servers need their time to start, however short the rest.
        background.start_s = (background.start_s * by).max(background.start_s.min(2.0));
        background.stagger_s *= by;
        let (size, deadline) = (&mut background.size_mb, &mut background.deadline_s);
        for value in [size, deadline].into_iter().flatten() {
            *value *= by;
        }
        if let Some(stopped) = &mut background.stopped {
            stopped.scale(by);
        }
        for step in &mut background.weights {
            step.at_s *= by;
        }
        for transfer in &mut background.transfer {
            transfer.size_mb *= by;
            transfer.deadline_s = transfer.deadline_s.map(|deadline| deadline * by);
        }
    }
}

impl Interval {
    fn scale(&mut self, by: f64) {
        self.from_s *= by;
        self.until_s *= by;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::files;

    fn all() -> BTreeMap<String, Scenario> {
        files::all(&files::scenarios()).unwrap()
    }

    #[test]
    fn every_scenario_can_be_read_and_those_with_a_quick_variant_are_quick() {
        let all = all();
        assert!(all.len() > 40, "{} scenarios", all.len());
        for (name, scenario) in &all {
            let variant = scenario.quick_variant();
            match scenario.quick {
                None => assert!(variant.unwrap_err().contains("no quick variant")),
                Some(_) => {
                    let variant = variant.unwrap_or_else(|error| panic!("{name}: {error}"));
                    assert!(
                        variant.duration_s < 60.0,
                        "{name}: {} s",
                        variant.duration_s
                    );
                    assert!(variant.quick.is_none());
                }
            }
        }
    }

    #[test]
    fn a_typo_in_a_scenario_names_the_key_and_the_file() {
        let text = std::fs::read_to_string(files::scenarios().join("cdg-050ms.toml")).unwrap();
        let directory = tempfile::tempdir().unwrap();
        for (good, bad) in [
            ("duration_s", "duration_ms"),
            ("rate_mbit", "rate_mbits"),
            ("{ greedy", "{ greeedy"),
            ("packet_bytes", "paket_bytes"),
            ("copies", "copys"),
            ("time_scale", "timescale"),
        ] {
            assert!(text.contains(good), "{good}");
            let path = directory.path().join("typo.toml");
            std::fs::write(&path, text.replacen(good, bad, 1)).unwrap();
            let error = files::by_name::<Scenario>(directory.path(), "typo").unwrap_err();
            let error = error.to_string();
            assert!(error.contains("typo.toml: "), "{error}");
            assert!(error.contains(bad.trim_start_matches("{ ")), "{error}");
        }
    }

    #[test]
    fn time_is_scaled_everywhere_and_delays_are_not() {
        let mut scenario: Scenario = toml::from_str(
            r#"
            description = "all there is"
            duration_s = 100
            measure_from_s = 10
            measure_until_s = 90
            pressure_until_s = 60
            [[link]]
            rate_mbit = 10
            delay_ms = 20
            queue = { packets = 50 }
            schedule = [{ at_s = 20, rate_mbit = 5 }]
            outage = [{ from_s = 60, until_s = 62 }]
            delay_steps = [{ at_s = 50, delay_ms = 70 }]
            backward = { rate_mbit = 1, delay_ms = 2, queue = { packets = 5 }, schedule = [{ at_s = 30, rate_mbit = 5 }] }
            [[foreground]]
            traffic = { on_off = { on_s = 4, off_s = 6 } }
            start_s = 8
            stop_s = 50
            [background]
            start_s = 2
            weights = [{ at_s = 30, weight = 0.5 }]
            size_mb = 70
            deadline_s = 90
            copies = 3
            stagger_s = 12
            stopped = { from_s = 30, until_s = 40 }
            transfer = [{ size_mb = 8, deadline_s = 40 }]
            "#,
        )
        .unwrap();
        let link = scenario.link[0].clone();
        scenario.scale_time(0.5);
        let same = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value}");
        same(scenario.duration_s, 50.0);
        same(scenario.measure_from_s, 5.0);
        same(scenario.measure_until_s.unwrap(), 45.0);
        same(scenario.pressure_until_s.unwrap(), 30.0);
        same(scenario.link[0].schedule[0].at_s, 10.0);
        same(scenario.link[0].backward().schedule[0].at_s, 15.0);
        same(scenario.link[0].outage[0].until_s, 31.0);
        same(scenario.link[0].delay_steps[0].at_s, 25.0);
        same(scenario.link[0].delay_steps[0].delay_ms, 70.0);
        same(scenario.background.stopped.unwrap().from_s, 15.0);
        same(scenario.link[0].delay_ms, link.delay_ms);
        same(scenario.foreground[0].start_s, 4.0);
        same(scenario.foreground[0].stop_s.unwrap(), 25.0);
        let turns = Traffic::OnOff {
            on_s: 2.0,
            off_s: 3.0,
        };
        assert_eq!(scenario.foreground[0].traffic, turns);
        // No sooner than servers can be there.
        same(scenario.background.start_s, 2.0);
        same(scenario.background.size_mb.unwrap(), 35.0);
        same(scenario.background.deadline_s.unwrap(), 45.0);
        same(scenario.background.stagger_s, 6.0);
        assert_eq!(scenario.background.copies, 3);
        same(scenario.background.weights[0].at_s, 15.0);
        let transfer = scenario.background.transfer[0];
        assert_eq!((transfer.size_mb, transfer.deadline_s), (4.0, Some(20.0)));
    }

    #[test]
    fn jobs_and_the_fetches_beside_them_keep_their_load() {
        let text = |jobs: &str| {
            format!(
                "description = \"a test\"\nduration_s = 100\nmeasure_from_s = 10\n[[link]]\n\
                 rate_mbit = 10\ndelay_ms = 20\nqueue = {{ packets = 50 }}\n[[foreground]]\n\
                 traffic = {{ web = {{ load = 0.3, mean_kb = 3000 }} }}\n[background]\n{jobs}"
            )
        };
        let scaled = |jobs: &str| -> Scenario {
            let mut scenario: Scenario = toml::from_str(&text(jobs)).unwrap();
            scenario.scale_time(0.5);
            scenario
        };
        let web = |mean_kb| Traffic::Web { load: 0.3, mean_kb };
        let with = scaled("jobs = { load = 0.4, mean_kb = 2000, until_s = 90 }");
        assert_eq!(with.foreground[0].traffic, web(1500.0));
        let jobs = with.background.jobs.unwrap();
        assert_eq!((jobs.load, jobs.mean_kb), (0.4, 1000.0));
        assert_eq!(jobs.until_s, Some(45.0));
        assert_eq!(scaled("").foreground[0].traffic, web(3000.0));
    }

    #[test]
    fn a_scale_that_leads_nowhere_is_found() {
        for scale in [1e300, 1e-300] {
            for (name, mut scenario) in all() {
                scenario.scale_time(scale);
                assert!(scenario.check().is_err(), "{name}");
            }
        }
    }
}
