//! A scenario put on another path than its own.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::scenario::{QueueSpec, Scenario, Traffic};

/// A path. Where there are two links both are alike in proportion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Rate of the first link, Mbit/s.
    pub rate_mbit: f64,
    /// Round-trip time without queues, ms.
    pub rtt_ms: f64,
    /// Size of the queues in bandwidth-delay products.
    pub queue_bdp: f64,
}

impl FromStr for Path {
    type Err = String;

    /// As [`Path`] is shown: Mbit/s, ms and bandwidth-delay products.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers: Result<Vec<f64>, _> = text.split(',').map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[rate_mbit, rtt_ms, queue_bdp]) => Ok(Self {
                rate_mbit,
                rtt_ms,
                queue_bdp,
            }),
            _ => Err(
                "must be a rate in Mbit/s, a round-trip time in ms and a queue in \
                      bandwidth-delay products, as 40,20,0.5"
                    .to_owned(),
            ),
        }
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{},{}", self.rate_mbit, self.rtt_ms, self.queue_bdp)
    }
}

impl Scenario {
    /// Puts everything on another path. What has a rate of its own has the same
    /// part of the link, and what there is to move takes as long.
    pub fn put_on(&mut self, path: &Path) {
        let before = self.link.first().map_or(1.0, |link| link.rate_mbit);
        let by = path.rate_mbit / before;
        let delay_ms = path.rtt_ms / 2.0 / self.link.len() as f64;
        let queue = QueueSpec::Bdp(path.queue_bdp);
        for link in &mut self.link {
            (link.delay_ms, link.queue) = (delay_ms, queue);
            link.rate_mbit *= by;
            let mut steps = link.schedule.iter_mut().collect::<Vec<_>>();
            if let Some(backward) = &mut link.backward {
                (backward.delay_ms, backward.queue) = (delay_ms, queue);
                backward.rate_mbit *= by;
                steps.extend(&mut backward.schedule);
            }
            steps.into_iter().for_each(|step| step.rate_mbit *= by);
        }
        for foreground in &mut self.foreground {
            if let Traffic::Constant { rate_mbit } | Traffic::Udp { rate_mbit, .. } =
                &mut foreground.traffic
            {
                *rate_mbit *= by;
            }
        }
        let background = &mut self.background;
        let sizes = background.transfer.iter_mut().map(|one| &mut one.size_mb);
        let sizes = sizes.chain(&mut background.size_mb);
        sizes
            .chain(&mut background.server_kb_s)
            .for_each(|value| *value *= by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_shown() {
        let path: Path = "40,180,0.25".parse().unwrap();
        assert_eq!(
            (path.rate_mbit, path.rtt_ms, path.queue_bdp),
            (40.0, 180.0, 0.25)
        );
        assert_eq!(path.to_string(), "40,180,0.25");
        for bad in ["", "40", "40,180", "40,180,0.25,1", "40 180 1"] {
            let error = bad.parse::<Path>().unwrap_err();
            assert!(error.contains("as 40,20,0.5"), "{error}");
        }
    }

    #[test]
    fn everything_keeps_its_part_of_the_link() {
        let text = "description = \"test\"\nduration_s = 60.0\nmeasure_from_s = 10.0\n\
                    [[link]]\nrate_mbit = 10.0\ndelay_ms = 50.0\nqueue = { packets = 86 }\n\
                    schedule = [{ at_s = 20.0, rate_mbit = 5.0 }]\n\
                    backward = { rate_mbit = 5.0, delay_ms = 1.0, queue = { packets = 5 } }\n\
                    [[foreground]]\ntraffic = { constant = { rate_mbit = 6.0 } }\n\
                    [[foreground]]\ntraffic = { web = { load = 0.3, mean_kb = 300.0 } }\n\
                    [background]\nsize_mb = 20.0\n";
        let mut scenario: Scenario = toml::from_str(text).unwrap();
        scenario.put_on(&"2,40,0.5".parse().unwrap());
        let link = &scenario.link[0];
        let back = link.backward();
        assert_eq!((link.rate_mbit, link.delay_ms), (2.0, 20.0));
        assert_eq!((back.rate_mbit, back.delay_ms), (1.0, 20.0));
        assert_eq!(
            (link.queue, back.queue),
            (QueueSpec::Bdp(0.5), QueueSpec::Bdp(0.5))
        );
        assert_eq!(link.schedule[0].rate_mbit, 1.0);
        assert_eq!(scenario.base_rtt().as_millis(), 40);
        let Traffic::Constant { rate_mbit } = scenario.foreground[0].traffic else {
            panic!("it is a live stream");
        };
        assert!((rate_mbit - 1.2).abs() < 1e-9);
        assert_eq!(scenario.background.size_mb, Some(4.0));
    }
}
