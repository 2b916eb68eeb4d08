//! A scenario put on another path than its own.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::scenario::{Discipline, QueueSpec, Radio, Scenario, Traffic};

/// A path. Where there are two links both are alike in proportion. What is not
/// given stays as the scenario has it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Rate of the first link, Mbit/s.
    pub rate_mbit: f64,
    /// Round-trip time without queues, ms.
    pub rtt_ms: f64,
    /// Size of the queues in bandwidth-delay products.
    pub queue_bdp: f64,
    /// How packets are queued, both ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discipline: Option<Discipline>,
    /// Whether packets are marked, both ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// How the rate varies, both ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<Radio>,
    /// How often packets arrive together, both ways, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_ms: Option<f64>,
    /// Rate of the first link against the direction of the data, Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward_mbit: Option<f64>,
    /// The background goes over IPv6.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipv6: bool,
}

/// What a path must look like, for people.
const FORM: &str = "must be a rate in Mbit/s, a round-trip time in ms and a queue in \
                    bandwidth-delay products, as 40,20,0.5; after them may come a discipline, ecn, \
                    radio=200:0.4, aggregate=4, backward=1 and ipv6, as 40,20,0.5,codel,ecn";

impl FromStr for Path {
    type Err = String;

    /// As [`Path`] is shown: Mbit/s, ms and bandwidth-delay products, then what else
    /// is given.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = |_| FORM.to_owned();
        let mut words = text.split(',');
        let mut number = || words.next().unwrap_or_default().parse().map_err(form);
        let mut path = Self {
            rate_mbit: number()?,
            rtt_ms: number()?,
            queue_bdp: number()?,
            discipline: None,
            ecn: None,
            radio: None,
            aggregate_ms: None,
            backward_mbit: None,
            ipv6: false,
        };
        for word in words {
            let number = |value: &str| value.parse().map(Some).map_err(form);
            match word.split_once('=') {
                None if word == "ecn" => path.ecn = Some(true),
                None if word == "ipv6" => path.ipv6 = true,
                None => {
                    let discipline = word.parse();
                    path.discipline = Some(discipline.map_err(|error| format!("{error}; {FORM}"))?);
                }
                Some(("ecn", "false")) => path.ecn = Some(false),
                Some(("radio", value)) => path.radio = Some(value.parse()?),
                Some(("aggregate", value)) => path.aggregate_ms = number(value)?,
                Some(("backward", value)) => path.backward_mbit = number(value)?,
                Some(_) => return Err(FORM.to_owned()),
            }
        }
        Ok(path)
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{},{}", self.rate_mbit, self.rtt_ms, self.queue_bdp)?;
        if let Some(discipline) = self.discipline {
            write!(f, ",{discipline}")?;
        }
        match self.ecn {
            Some(true) => f.write_str(",ecn")?,
            Some(false) => f.write_str(",ecn=false")?,
            None => {}
        }
        if let Some(radio) = self.radio {
            write!(f, ",radio={radio}")?;
        }
        if let Some(aggregate_ms) = self.aggregate_ms {
            write!(f, ",aggregate={aggregate_ms}")?;
        }
        if let Some(backward_mbit) = self.backward_mbit {
            write!(f, ",backward={backward_mbit}")?;
        }
        if self.ipv6 {
            f.write_str(",ipv6")?;
        }
        Ok(())
    }
}

impl Scenario {
    /// Puts everything on another path. What has a rate of its own has the same
    /// part of the link, and what there is to move or to fetch takes as long. A change of the
    /// delay is as large as it was.
    pub fn put_on(&mut self, path: &Path) {
        let before = self.link.first().map_or(1.0, |link| link.rate_mbit);
        let by = path.rate_mbit / before;
        let delay_ms = path.rtt_ms / 2.0 / self.link.len() as f64;
        let queue = QueueSpec::Bdp(path.queue_bdp);
        for link in &mut self.link {
            if let Some(backward_mbit) = path.backward_mbit {
                // In proportion, as the other links of the path.
                let rate_mbit = backward_mbit * link.rate_mbit / path.rate_mbit;
                let mut backward = link.backward();
                backward.rate_mbit = rate_mbit;
                backward.schedule.clear();
                link.backward = Some(backward);
            }
            link.discipline = path.discipline.unwrap_or(link.discipline);
            link.ecn = path.ecn.unwrap_or(link.ecn);
            link.radio = path.radio.or(link.radio);
            link.aggregate_ms = path.aggregate_ms.unwrap_or(link.aggregate_ms);
            let longer = delay_ms - link.delay_ms;
            (link.delay_ms, link.queue) = (delay_ms, queue);
            link.rate_mbit *= by;
            let mut steps = link.schedule.iter_mut().collect::<Vec<_>>();
            let delays = &mut link.delay_steps;
            delays.iter_mut().for_each(|step| step.shift(longer));
            if let Some(backward) = &mut link.backward {
                backward.discipline = path.discipline.unwrap_or(backward.discipline);
                backward.ecn = path.ecn.unwrap_or(backward.ecn);
                backward.radio = path.radio.or(backward.radio);
                backward.aggregate_ms = path.aggregate_ms.unwrap_or(backward.aggregate_ms);
                let longer = delay_ms - backward.delay_ms;
                (backward.delay_ms, backward.queue) = (delay_ms, queue);
                backward.rate_mbit *= by;
                steps.extend(&mut backward.schedule);
                let delays = &mut backward.delay_steps;
                delays.iter_mut().for_each(|step| step.shift(longer));
            }
            steps.into_iter().for_each(|step| step.rate_mbit *= by);
        }
        for foreground in &mut self.foreground {
            match &mut foreground.traffic {
                Traffic::Constant { rate_mbit } | Traffic::Udp { rate_mbit, .. } => {
                    *rate_mbit *= by;
                }
                Traffic::Web { mean_kb, .. } => *mean_kb *= by,
                Traffic::Greedy { .. } | Traffic::OnOff { .. } | Traffic::Call {} => {}
            }
        }
        let background = &mut self.background;
        background.ipv6 |= path.ipv6;
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
        for text in [
            "40,180,0.25",
            "40,180,0.25,codel",
            "40,180,0.25,fq_codel:20:400,ecn",
            "40,180,0.25,ecn=false,radio=50:0.4:0.1,aggregate=4,backward=0.5,ipv6",
        ] {
            assert_eq!(text.parse::<Path>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "40",
            "40,180",
            "40,180,0.25,1",
            "40 180 1",
            "40,180,1,codle",
            "40,180,1,aggregate=x",
            "40,180,1,colour=4",
        ] {
            let error = bad.parse::<Path>().unwrap_err();
            assert!(error.contains("as 40,20,0.5"), "{error}");
        }
    }

    const SCENARIO: &str = "description = \"test\"\nduration_s = 60.0\nmeasure_from_s = 10.0\n\
        [[link]]\nrate_mbit = 10.0\ndelay_ms = 50.0\nqueue = { packets = 86 }\n\
        schedule = [{ at_s = 20.0, rate_mbit = 5.0 }]\n\
        delay_steps = [{ at_s = 20.0, delay_ms = 90.0 }]\n\
        backward = { rate_mbit = 5.0, delay_ms = 1.0, queue = { packets = 5 } }\n\
        [[foreground]]\ntraffic = { constant = { rate_mbit = 6.0 } }\n\
        [[foreground]]\ntraffic = { web = { load = 0.3, mean_kb = 300.0 } }\n\
        [background]\nsize_mb = 20.0\n";

    fn on(path: &str) -> Scenario {
        let mut scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        scenario.put_on(&path.parse().unwrap());
        scenario
    }

    #[test]
    fn everything_keeps_its_part_of_the_link() {
        let scenario = on("2,40,0.5");
        let link = &scenario.link[0];
        let back = link.backward();
        assert_eq!((link.rate_mbit, link.delay_ms), (2.0, 20.0));
        assert_eq!((back.rate_mbit, back.delay_ms), (1.0, 20.0));
        assert_eq!(
            (link.queue, back.queue),
            (QueueSpec::Bdp(0.5), QueueSpec::Bdp(0.5))
        );
        assert_eq!(link.schedule[0].rate_mbit, 1.0);
        assert_eq!(link.delay_steps[0].delay_ms, 60.0);
        assert_eq!(scenario.base_rtt().as_millis(), 40);
        let Traffic::Constant { rate_mbit } = scenario.foreground[0].traffic else {
            panic!("it is a live stream");
        };
        assert!((rate_mbit - 1.2).abs() < 1e-9);
        assert_eq!(scenario.background.size_mb, Some(4.0));
        // As many fetches, of a size in proportion.
        let web = Traffic::Web {
            load: 0.3,
            mean_kb: 60.0,
        };
        assert_eq!(scenario.foreground[1].traffic, web);
    }

    #[test]
    fn a_path_says_how_packets_are_queued_both_ways() {
        let scenario = on("2,40,0.5,pie,ecn,radio=200:0.4,aggregate=4");
        let link = &scenario.link[0];
        for spec in [link.forward(), link.backward()] {
            let pie = Discipline::Pie { target_ms: 15.0 };
            assert_eq!((spec.discipline, spec.ecn), (pie, true));
            let radio = "200:0.4".parse().unwrap();
            assert_eq!((spec.radio, spec.aggregate_ms), (Some(radio), 4.0));
        }
        assert_eq!(scenario.check(), Ok(()));
    }

    #[test]
    fn a_path_may_have_another_rate_back() {
        let scenario = on("2,40,0.5,fair,backward=0.25");
        let link = &scenario.link[0];
        let back = link.backward();
        assert_eq!((link.rate_mbit, back.rate_mbit), (2.0, 0.25));
        assert_eq!((back.delay_ms, back.discipline), (20.0, Discipline::Fair));
    }
}
