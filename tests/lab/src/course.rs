//! How a run went over time, in so few numbers that results can keep it: what
//! pictures of many runs are drawn from. Pure.

use serde::{Deserialize, Serialize};

use crate::record::{BackgroundRecord, LinkRecord, Samples, Summary};
use crate::scenario::{Scenario, Traffic};

/// Steps of a course, at most.
const STEPS: f64 = 400.0;

/// The shortest step, s: shorter ones show single round trips.
const SHORTEST: f64 = 0.25;

/// Rates of the last link and the weight, step by step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Length of a step, s.
    pub every_s: f64,
    /// Mean payload of the foreground in each step, Mbit/s.
    pub foreground_mbit: Vec<f64>,
    /// The same of the background.
    pub background_mbit: Vec<f64>,
    /// Weight of the first contender at the end of each step; 0 before it began
    /// and after its end.
    pub w: Vec<f64>,
}

impl Course {
    /// Of a run in which a deadline controller made the weight of a sender of
    /// the lab's; `None` otherwise.
    #[must_use]
    pub fn of(
        setup: &Scenario,
        links: &[LinkRecord],
        background: &[BackgroundRecord],
    ) -> Option<Self> {
        setup.background.controller?;
        let control = background.first().filter(|one| !one.sender.is_empty())?;
        let samples = &links.last()?.forward.samples;
        let every_s = (setup.duration_s / STEPS).max(SHORTEST);
        let steps = (setup.duration_s / every_s).floor() as usize;
        let w = (1..=steps).map(|step| weight(control, every_s * step as f64, every_s));
        Some(Self {
            every_s,
            foreground_mbit: rates(samples, &samples.foreground, every_s, steps),
            background_mbit: rates(samples, &samples.background, every_s, steps),
            w: w.collect(),
        })
    }
}

impl Summary {
    /// The transfer's rate over the time for which it ran, relative to the mean of the
    /// greedy flows that were there with it. At each moment that mean is what all others
    /// had, less the means of those that are not greedy, by the number of greedy flows.
    /// `None` without a course, or without greedy flows meanwhile.
    ///
    /// Rates are summed before they are divided. A mean of ratios would give too much
    /// weight to a moment in which a flow had little.
    #[must_use]
    pub fn rate_against_greedy(&self, scenario: &Scenario) -> Option<f64> {
        if self.rate_against_greedy.is_some() {
            return self.rate_against_greedy;
        }
        let course = self.course.as_ref()?;
        let start = scenario.background.start_s;
        let life = start..start + self.deadline.as_ref()?.finish_s;
        let flows = scenario.flows().filter(|flow| !flow.backward);
        let flows: Vec<_> = flows.zip(&self.foreground_mbit).collect();
        let (mut ours, mut theirs) = (0.0, 0.0);
        let steps = course.background_mbit.iter().zip(&course.foreground_mbit);
        for (step, (background, foreground)) in (0..).zip(steps) {
            let moment = (f64::from(step) + 0.5) * course.every_s;
            let here = flows
                .iter()
                .filter(|(flow, _)| flow.active().contains(&moment));
            let (greedy, others): (Vec<_>, Vec<_>) =
                here.partition(|(flow, _)| matches!(flow.traffic, Traffic::Greedy { .. }));
            if greedy.is_empty() || !life.contains(&moment) {
                continue;
            }
            let others: f64 = others.iter().map(|(_, rate)| **rate).sum();
            ours += background;
            theirs += (foreground - others) / greedy.len() as f64;
        }
        (theirs > 0.0).then(|| ours / theirs)
    }
}

/// The last weight in the step that ends here.
fn weight(control: &BackgroundRecord, end: f64, every_s: f64) -> f64 {
    let within = |t: f64| t <= end && t > end - every_s.max(2.0);
    let mut samples = control.sender.iter().rev();
    let last = samples.find(|sample| within(sample.t));
    last.map_or(0.0, |sample| rounded(sample.w))
}

fn rates(samples: &Samples, column: &[u64], every_s: f64, steps: usize) -> Vec<f64> {
    let interval = samples.interval_ms.max(1) as f64 / 1e3;
    let index = |step: usize| {
        let index = (step as f64 * every_s / interval).round() as usize;
        index.min(column.len())
    };
    let rate = |step: usize| {
        let bytes: u64 = column[index(step)..index(step + 1)].iter().sum();
        rounded(bytes as f64 * 8e-6 / every_s)
    };
    (0..steps).map(rate).collect()
}

/// More digits than a picture has.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DirectionRecord, Lateness, SenderSample};

    #[test]
    fn a_course_is_short_and_has_rates_and_weights() {
        let text = "description = \"test\"\nduration_s = 800.0\nmeasure_from_s = 4.0\n\
                    [[link]]\nrate_mbit = 12.0\ndelay_ms = 10.0\nqueue = { packets = 50 }\n\
                    [background]\nsize_mb = 5.0\ndeadline_s = 500.0\ncontroller = \"mbc\"\n";
        let mut setup: Scenario = toml::from_str(text).unwrap();
        let link = LinkRecord {
            forward: DirectionRecord {
                samples: Samples {
                    interval_ms: 1000,
                    foreground: vec![125_000; 800],
                    background: (0..800)
                        .map(|t| if t < 300 { 0 } else { 250_000 })
                        .collect(),
                    ..Samples::default()
                },
                ..DirectionRecord::default()
            },
            backward: DirectionRecord::default(),
            cpu_s: 0.0,
            lateness: Lateness::default(),
        };
        let sample = |t: f64| SenderSample {
            t,
            w: 0.5,
            ..SenderSample::default()
        };
        let background = [BackgroundRecord {
            sender: (300..500).map(|t| sample(f64::from(t))).collect(),
            ..BackgroundRecord::default()
        }];
        let links = [link];
        let course = Course::of(&setup, &links, &background).unwrap();
        assert_eq!((course.every_s, course.w.len()), (2.0, 400));
        let w = [140, 160, 260].map(|step| course.w[step]);
        assert_eq!(w, [0.0, 0.5, 0.0]);
        assert!(course.foreground_mbit.iter().all(|rate| *rate == 1.0));
        assert_eq!(course.background_mbit[149..151], [0.0, 2.0]);
        setup.background.controller = None;
        assert_eq!(Course::of(&setup, &links, &background), None);
    }

    #[test]
    fn a_rate_is_set_against_the_mean_of_the_greedy_flows_that_are_there() {
        let text = "description = \"test\"\nduration_s = 40.0\nmeasure_from_s = 4.0\n\
                    [[link]]\nrate_mbit = 10.0\ndelay_ms = 11.0\nqueue = { bdp = 1.0 }\n\
                    [[foreground]]\ntraffic = { greedy = {} }\nstop_s = 20.0\n\
                    [[foreground]]\ntraffic = { greedy = {} }\nstart_s = 10.0\nstop_s = 20.0\n\
                    [[foreground]]\ntraffic = { udp = { rate_mbit = 1.0, packet_bytes = 1500 } }\n\
                    [background]\nstart_s = 4.0\nsize_mb = 5.0\ndeadline_s = 20.0\n";
        let scenario: Scenario = toml::from_str(text).unwrap();
        let of = |background: &[f64], finish_s: f64| {
            let mut summary = Summary {
                foreground_mbit: vec![4.0, 3.0, 1.0],
                ..Summary::default()
            };
            summary.deadline = Some(crate::deadline::DeadlineFigures {
                finish_s,
                ..Default::default()
            });
            // Of one flow until 10 s, then of two, then only datagrams.
            let foreground = [5.0, 5.0, 7.0, 7.0, 1.0, 1.0];
            summary.course = Some(Course {
                every_s: 5.0,
                foreground_mbit: foreground.to_vec(),
                background_mbit: background.to_vec(),
                w: vec![1.0; 6],
            });
            summary.rate_against_greedy(&scenario)
        };
        // 2 of 4, 3 of 3 and 3 of 3; before, and without anybody, nothing counts.
        let got = of(&[9.0, 2.0, 3.0, 3.0, 9.0, 9.0], 30.0).unwrap();
        assert!((got - 0.8).abs() < 1e-9, "{got}");
        // Nothing beside one flow does not hide the other.
        let got = of(&[9.0, 0.0, 6.0, 6.0, 9.0, 9.0], 30.0).unwrap();
        assert!((got - 1.2).abs() < 1e-9, "{got}");
        // It was there after 10 s.
        let got = of(&[9.0, 2.0, 3.0, 9.0, 9.0, 9.0], 10.0).unwrap();
        assert!((got - 5.0 / 7.0).abs() < 1e-9, "{got}");
        assert_eq!(of(&[], 10.0), None);
    }
}
