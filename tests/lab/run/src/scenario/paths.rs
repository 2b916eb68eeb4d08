//! Paths side by side: each link of a scenario is one, with a name of its own, and both hosts
//! have an address at it. What goes over which of them is the business of whoever sends.

use std::time::Duration;

use crate::link::bytes_per_s;
use crate::scenario::{Cost, Interval, LinkSpec, Scenario};

/// Paths at most: each host has so many addresses besides its own.
pub const MAX_PATHS: usize = 8;

impl Scenario {
    /// Whether its links are paths side by side, and not a row.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        self.link.iter().any(|link| link.path.is_some())
    }

    /// Its paths, in their order: the first is that of whoever does not choose.
    pub fn paths(&self) -> impl Iterator<Item = (&str, &LinkSpec)> {
        let links = self.link.iter();
        links.filter_map(|link| Some((link.path.as_deref()?, link)))
    }

    /// All of them as `fairbat get --interface` takes them; `None` if links are in a row.
    #[must_use]
    pub fn interfaces(&self) -> Option<String> {
        let words = self.paths().map(|(device, link)| {
            let cost = match link.cost {
                Cost::Free => "",
                Cost::Metered => ":cost=metered",
            };
            let limit = link.limit_mbit.map_or_else(String::new, |limit| {
                format!(":limit={:.0}", bytes_per_s(limit))
            });
            format!("{device}{cost}{limit}")
        });
        let words: Vec<_> = words.collect();
        (!words.is_empty()).then(|| words.join(","))
    }

    /// The place of the path of this name, from 0 on.
    #[must_use]
    pub fn path_number(&self, name: &str) -> Option<usize> {
        self.paths().position(|(path, _)| path == name)
    }

    /// How many hosts it has.
    #[must_use]
    pub fn hosts(&self) -> usize {
        if self.is_parallel() {
            2
        } else {
            self.link.len() + 1
        }
    }

    /// The round-trip time of what this link belongs to without any queue: of itself, or of
    /// all of them in a row.
    #[must_use]
    pub fn rtt_over(&self, link: &LinkSpec) -> Duration {
        if self.is_parallel() {
            Duration::from_secs_f64(link.rtt_ms() / 1e3)
        } else {
            self.base_rtt()
        }
    }

    /// When each path is away, in their order.
    #[must_use]
    pub fn departures(&self, seed: u64) -> Vec<Vec<Interval>> {
        let within = (self.background.start_s, self.duration_s);
        let all = self.link.iter().enumerate();
        all.map(|(number, link)| {
            let departures = link.departures;
            departures.map_or_else(Vec::new, |one| one.draw(within, number, seed))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        description = "two paths"
        duration_s = 60
        measure_from_s = 2
        [[link]]
        path = "wifi"
        rate_mbit = 10
        delay_ms = 5
        queue = { bdp = 1.0 }
        [[link]]
        path = "lte"
        cost = "metered"
        limit_mbit = 1.6
        departures = { times = 5, least_s = 0.5, most_s = 4 }
        rate_mbit = 2
        delay_ms = 50
        queue = { bdp = 1.0 }
        [[foreground]]
        path = "lte"
        traffic = { greedy = {} }
        [background]
        start_s = 2
    "#;

    fn read(text: &str) -> Scenario {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn paths_have_names_costs_and_a_round_trip_of_their_own() {
        let scenario = read(GOOD);
        assert_eq!(scenario.check(), Ok(()));
        assert!(scenario.is_parallel());
        assert_eq!(scenario.hosts(), 2);
        let names: Vec<_> = scenario.paths().map(|(name, _)| name).collect();
        assert_eq!(names, ["wifi", "lte"]);
        assert_eq!(scenario.path_number("lte"), Some(1));
        assert_eq!(scenario.path_number("eth0"), None);
        let rtts: Vec<_> = scenario
            .link
            .iter()
            .map(|link| scenario.rtt_over(link))
            .collect();
        assert_eq!(rtts, [10, 100].map(Duration::from_millis));
        assert_eq!(scenario.base_rtt(), rtts[0]);
        let interfaces = scenario.interfaces();
        assert_eq!(
            interfaces.as_deref(),
            Some("wifi,lte:cost=metered:limit=200000")
        );
        // What is written reads as it was.
        let written = serde_json::to_string(&scenario).unwrap();
        assert_eq!(
            serde_json::from_str::<Scenario>(&written).unwrap(),
            scenario
        );
    }

    #[test]
    fn links_in_a_row_stay_what_they_were() {
        let row = GOOD
            .replace("path = \"wifi\"\n", "")
            .replace("path = \"lte\"\n", "")
            .replace("cost = \"metered\"\n", "")
            .replace("limit_mbit = 1.6\n", "")
            .replace(
                "departures = { times = 5, least_s = 0.5, most_s = 4 }\n",
                "",
            );
        let scenario = read(&row);
        assert_eq!(scenario.check(), Ok(()));
        assert!(!scenario.is_parallel());
        assert_eq!(scenario.hosts(), 3);
        assert_eq!(scenario.interfaces(), None);
        assert_eq!(scenario.base_rtt(), Duration::from_millis(110));
        let written = serde_json::to_string(&scenario).unwrap();
        assert!(!written.contains("\"path\""), "{written}");
    }

    #[test]
    fn what_cannot_be_side_by_side_is_refused_by_name() {
        for (good, bad, why) in [
            (
                "path = \"wifi\"\n",
                "",
                "link 1: path: links are side by side",
            ),
            (
                "path = \"wifi\"",
                "path = \"lte\"",
                "link 2: path: there is a path lte before it",
            ),
            (
                "path = \"wifi\"",
                "path = \"lo\"",
                "link 1: path: must be the name of a device",
            ),
            (
                "path = \"wifi\"",
                "path = \"Wi Fi\"",
                "link 1: path: must be the name of a device",
            ),
            (
                "path = \"wifi\"",
                "path = \"\"",
                "link 1: path: must be the name of a device",
            ),
            ("times = 5", "times = 0", "link 2: departures: times"),
            (
                "times = 5",
                "times = 50",
                "link 2: departures: most_s must be at most 1.16",
            ),
            (
                "least_s = 0.5",
                "least_s = 5",
                "link 2: departures: least_s",
            ),
            (
                "[[foreground]]\n        path = \"lte\"",
                "[[foreground]]\n        path = \"dsl\"",
                "foreground 1: path: there is no path dsl",
            ),
            (
                "[[foreground]]\n        path = \"lte\"",
                "[[foreground]]\n        link = 2",
                "foreground 1: link: links side by side are named by path",
            ),
            (
                "start_s = 2",
                "start_s = 2\nipv6 = true",
                "background: ipv6",
            ),
            (
                "start_s = 2",
                "stalls = { every_ms = 500, least_ms = 10, most_ms = 200 }",
                "background: stalls",
            ),
        ] {
            assert!(GOOD.contains(good), "{good}");
            let error = read(&GOOD.replacen(good, bad, 1)).check().expect_err(bad);
            assert!(error.starts_with(why), "{bad}: {error}");
        }
        let (head, rest) = GOOD.split_once("[[link]]").unwrap();
        let (_, second) = rest.split_once("[[link]]").unwrap();
        let error = read(&format!("{head}[[link]]{second}"))
            .check()
            .unwrap_err();
        assert!(
            error.starts_with("there must be 2 to 8 [[link]]s"),
            "{error}"
        );
    }

    #[test]
    fn what_is_for_paths_is_refused_in_a_row() {
        let row = GOOD
            .replace("path = \"wifi\"\n", "")
            .replace("path = \"lte\"\n", "");
        let error = read(&row).check().unwrap_err();
        assert!(
            error.starts_with("link 2: cost, limit_mbit and departures"),
            "{error}"
        );
        let row = row
            .replace("cost = \"metered\"\n", "")
            .replace("limit_mbit = 1.6\n", "")
            .replace(
                "departures = { times = 5, least_s = 0.5, most_s = 4 }\n",
                "",
            )
            .replace("[[foreground]]", "[[foreground]]\npath = \"lte\"");
        let error = read(&row).check().unwrap_err();
        assert!(
            error.starts_with("foreground 1: path: there is no path lte"),
            "{error}"
        );
    }

    #[test]
    fn a_path_is_away_once_in_each_period_and_alike_for_a_seed() {
        let scenario = read(GOOD);
        let [first, away] = &scenario.departures(7)[..] else {
            panic!("there are two paths");
        };
        assert!(first.is_empty());
        assert_eq!(away.len(), 5);
        for (number, away) in away.iter().enumerate() {
            let period = 2.0 + 11.6 * number as f64;
            assert!(
                away.from_s >= period && away.until_s <= period + 11.6,
                "{away:?}"
            );
            assert!(
                (0.49..=4.01).contains(&(away.until_s - away.from_s)),
                "{away:?}"
            );
        }
        assert_eq!(scenario.departures(7)[1], *away);
        assert_ne!(scenario.departures(8)[1], *away);
    }
}
