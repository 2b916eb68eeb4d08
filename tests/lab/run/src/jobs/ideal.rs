//! What the same arrivals would have had of an ideal link: one that all flows that
//! are there share equally at every moment. How long fetches take
//! there depends on what happened to arrive as it does on a real link, and its true
//! mean can be had by drawing arrivals again and again: a control variate that leaves
//! little of what seeds differ by.

use std::ops::Range;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use crate::arrivals;
use crate::arrivals::SharedLink;
use crate::link::{PAYLOAD_SHARE, bytes_per_s};
use crate::samples::Fetch;
use crate::scenario::{Scenario, Traffic};
use crate::statistics::{deviation, mean};

/// Arrivals are drawn so many times. Where loads are high runs differ by a third, and so
/// the standard error of their mean is below 1 %; it is told beside it.
const DRAWS: u64 = 2000;

/// Fetches at an ideal link; the measured part of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdealFigures {
    /// Mean time of a fetch with the arrivals of this run, s.
    pub mean_s: f64,
    /// The same on average over all arrivals that might have been, s.
    pub expected_s: f64,
    /// Its standard error, s.
    pub expected_error_s: f64,
}

/// Something that arrives.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    t: f64,
    pub bytes: f64,
    is_fetch: bool,
}

/// An ideal link, with what is there all the time.
struct Link {
    /// Payload that it carries, byte/s.
    rate: f64,
    /// Flows without an end.
    long_lived: u32,
    /// Whose fetches count, s.
    window: Range<f64>,
    /// When a run is over, s.
    end: f64,
}

impl IdealFigures {
    /// Of these arrivals; `None` unless there are fetches and chunks at one link,
    /// beside nothing but greedy flows that stay.
    pub(crate) fn of(setup: &Scenario, fetches: &[Fetch], jobs: &[Fetch]) -> Option<Self> {
        let link = Link::of(setup)?;
        let arrival = |is_fetch| {
            move |one: &Fetch| Arrival {
                t: one.t,
                bytes: one.bytes as f64,
                is_fetch,
            }
        };
        let chunks = jobs.iter().map(arrival(false));
        let all = fetches.iter().map(arrival(true)).chain(chunks).collect();
        let mean_s = link.mean_time(all)?;
        let drawn = (0..DRAWS).filter_map(|seed| link.mean_time(drawn(setup, link.rate, seed)?));
        let drawn: Vec<f64> = drawn.collect();
        Some(Self {
            mean_s,
            expected_s: mean(&drawn)?,
            expected_error_s: deviation(&drawn)? / (drawn.len() as f64).sqrt(),
        })
    }
}

/// Arrivals of a run that might have been.
fn drawn(setup: &Scenario, rate: f64, seed: u64) -> Option<Vec<Arrival>> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut all = Vec::new();
    let mut draw = |span: Range<f64>, load: f64, mean_kb: f64, is_fetch: bool| {
        let mean_bytes = 1e3 * mean_kb;
        let moment = Duration::from_secs_f64;
        let span = (moment(span.start), moment(span.end));
        let drawn = arrivals::draw(&mut random, span, load * rate / mean_bytes, mean_bytes);
        all.extend(drawn.into_iter().map(|one| Arrival {
            t: one.at.as_secs_f64(),
            bytes: one.bytes as f64,
            is_fetch,
        }));
    };
    for foreground in &setup.foreground {
        if let Traffic::Web { load, mean_kb } = foreground.traffic {
            let active = foreground.active();
            let until = active.end.min(setup.duration_s);
            draw(active.start..until, load, mean_kb, true);
        }
    }
    let jobs = setup.background.jobs?;
    let until = jobs
        .until_s
        .unwrap_or(setup.duration_s)
        .min(setup.duration_s);
    draw(
        setup.background.start_s..until,
        jobs.load,
        jobs.mean_kb,
        false,
    );
    Some(all)
}

impl Link {
    fn of(setup: &Scenario) -> Option<Self> {
        let [link] = setup.link.as_slice() else {
            return None;
        };
        let mut long_lived = 0;
        for foreground in &setup.foreground {
            match foreground.traffic {
                Traffic::Greedy { flows } if foreground.stop_s.is_none() => long_lived += flows,
                Traffic::Web { .. } => {}
                _ => return None,
            }
        }
        Some(Self {
            rate: bytes_per_s(link.rate_mbit) * PAYLOAD_SHARE,
            long_lived,
            window: setup.measured(),
            end: setup.duration_s,
        })
    }

    /// Mean time of the fetches of the window, s, as [`WebFigures`] counts
    /// them; `None` without any.
    fn mean_time(&self, mut arrivals: Vec<Arrival>) -> Option<f64> {
        arrivals.sort_by(|a, b| a.t.total_cmp(&b.t));
        let mut link = SharedLink::new(self.rate);
        link.lasting(self.long_lived);
        let (mut now, mut next) = (0.0, 0);
        let mut times = Vec::new();
        loop {
            let done = now + link.until_end();
            let arrival = arrivals.get(next).filter(|one| one.t < self.end);
            match arrival {
                Some(arrival) if arrival.t < done => {
                    link.pass(arrival.t - now);
                    now = arrival.t;
                    link.begin(arrival.bytes, *arrival);
                    next += 1;
                }
                _ if done < self.end => {
                    now = done;
                    times.extend(link.end().and_then(|one| self.time(one, now)));
                }
                _ => break,
            }
        }
        while let Some(one) = link.end() {
            times.extend(self.time(one, self.end));
        }
        mean(&times)
    }

    /// How long it took until `done`, s, if it counts.
    fn time(&self, arrival: Arrival, done: f64) -> Option<f64> {
        let counts = arrival.is_fetch && self.window.contains(&arrival.t);
        counts.then_some(done - arrival.t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(long_lived: u32) -> Link {
        Link {
            rate: 100.0,
            long_lived,
            window: 0.0..50.0,
            end: 60.0,
        }
    }

    fn arrival(t: f64, bytes: f64, is_fetch: bool) -> Arrival {
        Arrival { t, bytes, is_fetch }
    }

    fn is(value: Option<f64>, expected: f64) {
        let value = value.unwrap();
        assert!((value - expected).abs() < 1e-9, "{value} for {expected}");
    }

    #[test]
    fn flows_share_a_link_equally() {
        // Alone for a second, beside the chunk for two, which goes on alone.
        let both = vec![arrival(1.0, 200.0, true), arrival(2.0, 400.0, false)];
        is(link(0).mean_time(both), 3.0);
        // The other way round: 100 bytes before, 200 together, 100 afterwards.
        let both = vec![arrival(2.0, 400.0, true), arrival(1.0, 200.0, false)];
        is(link(0).mean_time(both), 5.0);
        // Beside three long-lived flows a quarter is its own.
        is(link(3).mean_time(vec![arrival(1.0, 100.0, true)]), 4.0);
        assert_eq!(link(0).mean_time(vec![arrival(1.0, 100.0, false)]), None);
    }

    #[test]
    fn what_is_not_over_counts_until_the_end_and_what_came_later_does_not() {
        let all = vec![arrival(10.0, 1e6, true), arrival(55.0, 1.0, true)];
        is(link(0).mean_time(all), 50.0);
    }

    /// A bottleneck of 10 Mbit/s beside so many long-lived flows.
    fn setup(flows: u32) -> Scenario {
        let greedy = match flows {
            0 => String::new(),
            flows => format!("[[foreground]]\ntraffic = {{ greedy = {{ flows = {flows} }} }}\n"),
        };
        let text = format!(
            "description = \"a test\"\nduration_s = 230\nmeasure_from_s = 40\n\
             [[link]]\nrate_mbit = 10\ndelay_ms = 10\nqueue = {{ packets = 100 }}\n\
             [[foreground]]\ntraffic = {{ web = {{ load = 0.3, mean_kb = 30 }} }}\n{greedy}\
             [background]\njobs = {{ load = 0.2, mean_kb = 30 }}\n"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn the_mean_is_that_of_processor_sharing() {
        for long_lived in [0, 3] {
            let setup = setup(long_lived);
            let link = Link::of(&setup).unwrap();
            let runs = (0..40).filter_map(|seed| link.mean_time(drawn(&setup, link.rate, seed)?));
            let found = mean(&runs.collect::<Vec<_>>()).unwrap();
            // M/G/1 processor sharing with so many customers who stay (Kleinrock 1976).
            let expected = f64::from(long_lived + 1) * 30e3 / link.rate / (1.0 - 0.5);
            assert!(
                (found / expected - 1.0).abs() < 0.03,
                "{found} for {expected}"
            );
        }
    }

    #[test]
    fn other_traffic_and_other_links_have_no_ideal() {
        let mut setup = setup(0);
        setup.link.push(setup.link[0].clone());
        assert!(Link::of(&setup).is_none());
        setup.link.pop();
        assert!(Link::of(&setup).is_some());
        setup.foreground[0].traffic = Traffic::Constant { rate_mbit: 1.0 };
        assert!(Link::of(&setup).is_none());
    }
}
