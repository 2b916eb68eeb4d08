//! What `lab programs` writes down: each run, and what the runs of a program come to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::programs::way::Way;
use lab_run::record::Provenance;
use lab_run::statistics::{Spread, median};

/// How much longer a program may take when it is held back, times what it takes without.
pub(crate) const MAX_RATIO: f64 = 1.06;

/// All of it; `programs.json` and `programs-proxy.json` in tests/lab/results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Of the way in which they were held back, which names the files too.
    pub name: String,
    /// The programs, in the order in which they ran.
    pub programs: Vec<ProgramRecord>,
}

/// One program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// Its name.
    pub name: String,
    /// What it moved, for people.
    pub moves: String,
    /// The command, a script, as its recipe has it.
    pub command: String,
    /// What it says of its version.
    pub version: String,
    /// Where and how it was measured.
    pub provenance: Provenance,
    /// Runs one right after the other.
    pub pairs: Vec<Pair>,
    /// What is not there, so that it was not run.
    pub missing: Option<String>,
    /// What went wrong.
    pub failure: Option<String>,
}

/// Two runs, one right after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Without fairbat.
    pub plain: Run,
    /// Held back.
    pub run: Run,
}

/// One run; what fairbat tells is not there without it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// From its start to its end, s.
    pub seconds: f64,
    /// Connections that were held.
    pub connections: Option<u64>,
    /// What they received and sent, bytes.
    pub bytes: Option<u64>,
    /// Programs that could not be held, or ran without the rights of their owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warned: Vec<String>,
}

/// Adds what the events of `fairbat run` tell.
pub(crate) fn held(events: &str, run: &mut Run) {
    let events = events
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    for event in events {
        let event: Value = event;
        match event["event"].as_str() {
            Some("done") => {
                run.connections = event["connections"].as_u64();
                let bytes = |way: &str| event[way].as_u64();
                run.bytes = bytes("bytes_received")
                    .zip(bytes("bytes_sent"))
                    .map(|(received, sent)| received + sent);
            }
            Some(name @ ("out_of_reach" | "unprivileged")) => {
                let program = event["program"].as_str().unwrap_or("?");
                let warning = format!("{name} {program}");
                if !run.warned.contains(&warning) {
                    run.warned.push(warning);
                }
            }
            _ => {}
        }
    }
}

impl Record {
    /// Of these programs.
    pub(crate) fn new(way: Way, programs: Vec<ProgramRecord>) -> Self {
        Self {
            name: way.record().to_owned(),
            programs,
        }
    }

    /// How the programs were held back.
    pub(crate) fn way(&self) -> Way {
        let mut ways = Way::ALL.into_iter();
        ways.find(|way| way.record() == self.name)
            .unwrap_or_default()
    }

    /// Takes over the programs of an earlier record that have not run again, each in its old
    /// place.
    #[must_use]
    pub(crate) fn after(mut self, earlier: Option<Self>) -> Self {
        let mut all = earlier.map_or_else(Vec::new, |earlier| earlier.programs);
        for program in std::mem::take(&mut self.programs) {
            match all.iter_mut().find(|it| it.name == program.name) {
                Some(it) => *it = program,
                None => all.push(program),
            }
        }
        Self {
            programs: all,
            ..self
        }
    }
}

impl ProgramRecord {
    /// How long it took without fairbat, s.
    pub(crate) fn plain_s(&self) -> Option<f64> {
        median(&self.seconds(|pair| &pair.plain))
    }

    /// How long it took held back, s.
    pub(crate) fn run_s(&self) -> Option<f64> {
        median(&self.seconds(|pair| &pair.run))
    }

    /// The ratio of the two medians.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.run_s()? / self.plain_s()?)
    }

    /// The ratios of the pairs.
    pub(crate) fn pair_ratios(&self) -> Option<Spread> {
        let ratios = self.pairs.iter();
        let ratios: Vec<_> = ratios
            .map(|pair| pair.run.seconds / pair.plain.seconds)
            .collect();
        Spread::of(&ratios)
    }

    /// Connections that were held, in the median.
    pub(crate) fn connections(&self) -> Option<f64> {
        let held = self.pairs.iter().filter_map(|pair| pair.run.connections);
        median(&held.map(|count| count as f64).collect::<Vec<_>>())
    }

    /// Whether it moves data, so that its time is that of the link.
    pub(crate) fn is_of_link(&self) -> bool {
        self.connections().is_none_or(|count| count > 0.0)
    }

    /// What became of it, for people.
    pub(crate) fn status(&self) -> String {
        if self.missing.is_some() {
            return "**not run**".to_owned();
        }
        if self.failure.is_some() {
            return "**failed**".to_owned();
        }
        match self.ratio() {
            _ if !self.is_of_link() => "no bound".to_owned(),
            Some(ratio) if ratio <= MAX_RATIO => "holds".to_owned(),
            _ => "**slower**".to_owned(),
        }
    }

    /// What it came to, for people.
    pub(crate) fn line(&self) -> String {
        if let Some(failure) = &self.failure {
            return format!("{}: FAILED: {failure}", self.name);
        }
        let figure = |figure: Option<f64>| figure.map_or("-".to_owned(), |it| format!("{it:.3}"));
        let spread = self.pair_ratios();
        format!(
            "{:<18} {:>8} s {:>8} s  {:>6} ({}-{})  {} connections, {}",
            self.name,
            figure(self.plain_s()),
            figure(self.run_s()),
            figure(self.ratio()),
            figure(spread.map(|it| it.least)),
            figure(spread.map(|it| it.most)),
            self.connections().unwrap_or(0.0),
            self.status()
        )
    }

    fn seconds(&self, which: impl Fn(&Pair) -> &Run) -> Vec<f64> {
        self.pairs.iter().map(|pair| which(pair).seconds).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program that took so long, s, plain and held back.
    pub(crate) fn program(name: &str, seconds: &[(f64, f64)]) -> ProgramRecord {
        let pair = |&(plain, run): &(f64, f64)| Pair {
            plain: Run {
                seconds: plain,
                ..Run::default()
            },
            run: Run {
                seconds: run,
                connections: Some(2),
                ..Run::default()
            },
        };
        ProgramRecord {
            name: name.to_owned(),
            moves: "a file".to_owned(),
            command: format!("fairbat run -- {name}"),
            version: "1.0".to_owned(),
            provenance: Provenance {
                command: "lab programs".to_owned(),
                commit: "0123456789ab".to_owned(),
                kernel: "Linux 6.18".to_owned(),
                machine: "a processor, 2 cores".to_owned(),
                versions: vec!["fairbat 0.1.0".to_owned()],
                started: "2026-01-01T00:00:00Z".to_owned(),
                side_by_side: "1 lab".to_owned(),
            },
            pairs: seconds.iter().map(pair).collect(),
            missing: None,
            failure: None,
        }
    }

    #[test]
    fn the_medians_decide_and_not_one_pair() {
        let mut record = program("curl", &[(4.0, 4.0), (4.0, 4.2), (4.2, 5.4)]);
        let ratio = record.ratio().unwrap();
        assert!((ratio - 1.05).abs() < 1e-9, "{ratio}");
        assert_eq!(record.status(), "holds");
        record.pairs[1].run.seconds = 4.5;
        assert_eq!(record.status(), "**slower**");
        record.failure = Some("exit status 1".to_owned());
        assert_eq!(record.status(), "**failed**");
    }

    #[test]
    fn the_events_tell_what_was_held() {
        let events = r#"{"event":"start","t":0.0,"pid":7}
{"event":"unprivileged","t":0.1,"program":"/usr/bin/sudo"}
{"event":"out_of_reach","t":0.2,"pid":9,"program":"http"}
{"event":"out_of_reach","t":0.3,"pid":10,"program":"http"}
{"event":"done","t":1.0,"connections":3,"bytes_received":100,"bytes_sent":20}
"#;
        let mut run = Run::default();
        held(events, &mut run);
        assert_eq!((run.connections, run.bytes), (Some(3), Some(120)));
        assert_eq!(
            run.warned,
            ["unprivileged /usr/bin/sudo", "out_of_reach http"]
        );
    }

    #[test]
    fn programs_that_ran_again_take_their_old_places() {
        let earlier = Record::new(
            Way::Proxy,
            vec![program("a", &[(1.0, 1.0)]), program("b", &[(1.0, 1.0)])],
        );
        let again = program("a", &[(2.0, 2.0)]);
        let all =
            Record::new(Way::Proxy, vec![again.clone(), program("c", &[])]).after(Some(earlier));
        let names: Vec<_> = all.programs.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(all.way(), Way::Proxy);
        assert_eq!(all.programs[0], again);
    }
}
