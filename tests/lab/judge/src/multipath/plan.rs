//! What `lab multipath` is to measure: the files of the directory `multipath`.

use serde::Deserialize;

use crate::multipath::carrier::Carrier;
use lab_run::files::{self, Content};
use lab_run::scenario::{Background, LinkSpec, QueueSpec, Scenario, within};

/// What is to be measured: a grid of pairs of paths, or scenarios.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathsPlan {
    /// One line for people.
    pub description: String,
    /// Who downloads.
    pub carriers: Vec<Carrier>,
    /// Files of several sizes over pairs of paths, one after another.
    #[serde(default)]
    pub grid: Option<Grid>,
    /// Scenarios with paths side by side, each with one file.
    #[serde(default)]
    pub runs: Option<Runs>,
}

/// Pairs of paths, and what is fetched over each pair.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Round-trip times of both paths, ms.
    pub rtt_ms: Vec<[f64; 2]>,
    /// Rates of both paths, Mbit/s.
    pub rate_mbit: Vec<[f64; 2]>,
    /// Queue of each path in its bandwidth-delay products, but never less than `queue_packets`.
    pub queue_bdp: f64,
    /// Packets that each queue holds at least: a queue of one product of the shortest paths would
    /// be shorter than any that is sold.
    pub queue_packets: u32,
    /// What is fetched.
    pub files: Vec<Files>,
}

/// Files of one size.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Size, kB (1000 bytes).
    pub kb: f64,
    /// How often each of the carriers fetches it over each pair of paths.
    pub times: u32,
}

impl Files {
    /// Size, bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        (self.kb * 1e3).round() as u64
    }
}

/// Scenarios that are run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// Their names.
    pub scenarios: Vec<String>,
    /// Seeds; one run for each.
    pub seeds: Vec<u64>,
}

/// A pair of paths of a grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Round-trip times, ms.
    pub rtt_ms: [f64; 2],
    /// Rates, Mbit/s.
    pub rate_mbit: [f64; 2],
}

/// Length of the run in which a grid is measured, s: longer than that takes, as the files come
/// one after another.
const LONG_S: f64 = 86_400.0;

/// What the two paths of a grid are called.
const NAMES: [&str; 2] = ["a", "b"];

/// Bytes of a full packet, as a queue of so many products counts them.
const PACKET: f64 = 1500.0;

impl Grid {
    /// All pairs.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> {
        let rates = self.rate_mbit.iter();
        rates.flat_map(|&rate_mbit| {
            let pair = move |&rtt_ms| Pair { rtt_ms, rate_mbit };
            self.rtt_ms.iter().map(pair)
        })
    }

    /// The scenario of a pair: two paths with nothing else on them.
    #[must_use]
    pub fn scenario(&self, pair: Pair) -> Scenario {
        let links = NAMES.iter().zip(pair.rtt_ms.iter().zip(pair.rate_mbit));
        let links = links.map(|(name, (rtt_ms, rate_mbit))| {
            let bdp = rate_mbit * 1e6 / 8.0 * rtt_ms / 1e3 / PACKET;
            let packets = (self.queue_bdp * bdp).round() as u32;
            let queue = QueueSpec::Packets(packets.max(self.queue_packets));
            LinkSpec {
                path: Some((*name).to_owned()),
                ..LinkSpec::plain(rate_mbit, rtt_ms / 2.0, queue)
            }
        });
        Scenario {
            description: "two paths with nothing else on them".to_owned(),
            duration_s: LONG_S,
            measure_from_s: 0.0,
            measure_until_s: None,
            pressure_until_s: None,
            link: links.collect(),
            foreground: Vec::new(),
            background: Background::default(),
            quick: None,
        }
    }
}

impl Pair {
    /// Whether both paths are alike.
    #[must_use]
    pub fn is_equal(self) -> bool {
        let [one, other] = self.rtt_ms;
        let [first, second] = self.rate_mbit;
        one == other && first == second
    }
}

impl PathsPlan {
    /// Leaves out all carriers but these, where any are given.
    ///
    /// # Errors
    /// When it does not have one of them.
    pub fn only(&mut self, carriers: &[Carrier]) -> Result<(), String> {
        if let Some(missing) = carriers.iter().find(|one| !self.carriers.contains(one)) {
            return Err(format!("{missing} is none of the carriers of this plan"));
        }
        if !carriers.is_empty() {
            self.carriers.retain(|one| carriers.contains(one));
        }
        Ok(())
    }

    /// What shows in minutes whether all of it works: the files up to this size, each once, and
    /// one seed.
    pub fn shorten(&mut self) {
        const SMALL_KB: f64 = 1000.0;
        if let Some(grid) = &mut self.grid {
            grid.files.retain(|files| files.kb <= SMALL_KB);
            grid.files.iter_mut().for_each(|files| files.times = 1);
        }
        if let Some(runs) = &mut self.runs {
            runs.seeds.truncate(1);
        }
    }
}

impl Content for PathsPlan {
    const KIND: &'static str = "plan for several paths";

    fn check(&self) -> Result<(), String> {
        if self.carriers.is_empty() {
            return Err("carriers must name somebody".to_owned());
        }
        match (&self.grid, &self.runs) {
            (Some(grid), None) => grid.check().map_err(|error| format!("grid: {error}")),
            (None, Some(runs)) => runs.check().map_err(|error| format!("runs: {error}")),
            _ => Err("it has either a [grid] or [runs]".to_owned()),
        }
    }
}

impl Grid {
    fn check(&self) -> Result<(), String> {
        if self.files.is_empty() || self.pairs().next().is_none() {
            return Err("rtt_ms, rate_mbit and files must name something".to_owned());
        }
        for files in &self.files {
            within("files: kb", files.kb, 0.1..=1e6)?;
            within("files: times", f64::from(files.times), 1.0..=1000.0)?;
        }
        within("queue_bdp", self.queue_bdp, 0.0..=100.0)?;
        self.pairs()
            .try_for_each(|pair| self.scenario(pair).check())
    }
}

impl Runs {
    fn check(&self) -> Result<(), String> {
        if self.seeds.is_empty() || self.scenarios.is_empty() {
            return Err("scenarios and seeds must name something".to_owned());
        }
        self.all().map(|_| ())
    }

    /// The scenarios, each with its name.
    ///
    /// # Errors
    /// When there is none of such a name, or its links are not paths, or nothing with an end is
    /// to be fetched.
    pub fn all(&self) -> Result<Vec<(String, Scenario)>, String> {
        let named = |name: &String| {
            let scenario: Scenario =
                files::by_name(&files::scenarios(), name).map_err(|error| error.to_string())?;
            if !scenario.is_parallel() || scenario.background.size_mb.is_none() {
                return Err(format!(
                    "{name}: it must have paths side by side and a background.size_mb"
                ));
            }
            Ok((name.clone(), scenario))
        };
        self.scenarios.iter().map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: &str = r#"
        description = "a grid"
        carriers = ["curl", "fairbat"]
        [grid]
        rtt_ms = [[10, 10], [10, 200]]
        rate_mbit = [[10, 10], [10, 2]]
        queue_bdp = 1.0
        queue_packets = 20
        files = [{ kb = 15, times = 3 }, { kb = 20000, times = 2 }]
    "#;

    fn plan(text: &str) -> PathsPlan {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_grid_has_all_pairs_and_queues_of_their_own() {
        let plan = plan(GRID);
        assert_eq!(plan.check(), Ok(()));
        let grid = plan.grid.unwrap();
        let pairs: Vec<_> = grid.pairs().collect();
        assert_eq!(pairs.len(), 4);
        assert!(pairs[0].is_equal() && !pairs[1].is_equal() && !pairs[2].is_equal());
        let scenario = grid.scenario(pairs[1]);
        assert_eq!(scenario.check(), Ok(()));
        let queues: Vec<_> = scenario.link.iter().map(|link| link.queue).collect();
        // 10 Mbit/s in 200 ms are 167 packets, and in 10 ms eight.
        assert_eq!(queues, [QueueSpec::Packets(20), QueueSpec::Packets(167)]);
        assert_eq!(grid.files[1].bytes(), 20_000_000);
    }

    #[test]
    fn a_short_plan_keeps_small_files() {
        let mut plan = plan(GRID);
        plan.shorten();
        let files = plan.grid.unwrap().files;
        assert_eq!(files, [Files { kb: 15.0, times: 1 }]);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for (good, bad, why) in [
            ("[\"curl\", \"fairbat\"]", "[]", "carriers must name"),
            ("kb = 15", "kb = 0", "grid: files: kb"),
            ("times = 3", "times = 0", "grid: files: times"),
            (
                "[[10, 10], [10, 2]]",
                "[[10, 0]]",
                "grid: link 2: rate_mbit",
            ),
            (
                "[grid]",
                "[runs]\nscenarios = [\"demo\"]\nseeds = [1]\n[grid]",
                "it has either",
            ),
        ] {
            let error = plan(&GRID.replacen(good, bad, 1)).check().expect_err(bad);
            assert!(error.starts_with(why), "{bad}: {error}");
        }
        let mut of_curl = plan(GRID);
        assert!(
            of_curl
                .only(&[Carrier::Mptcp])
                .unwrap_err()
                .contains("mptcp is none")
        );
        of_curl.only(&[Carrier::Curl]).unwrap();
        assert_eq!(of_curl.carriers, [Carrier::Curl]);
        let runs = "description = \"x\"\ncarriers = [\"curl\"]\n[runs]\nseeds = [1]\n";
        let error = plan(&format!("{runs}scenarios = [\"demo\"]"))
            .check()
            .unwrap_err();
        assert!(
            error.contains("demo: it must have paths side by side"),
            "{error}"
        );
    }

    #[test]
    fn all_plans_that_come_with_the_lab_can_be_read() {
        let all = files::all::<PathsPlan>(&files::multipath()).unwrap();
        assert!(all.len() >= 3, "{all:?}");
    }
}
