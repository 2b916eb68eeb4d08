//! Programs that download a file: curl over one path, and `fairbat get` over one or all of them.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use fairbat_tests::bin::fairbat_binary;
use serde_json::Value;

use crate::multipath::carrier::Carrier;
use lab_run::contender::process::Program;
use lab_run::host::Host;
use lab_run::machine::Clock;

/// How often it is looked whether a program has ended: a small part of what the shortest transfer
/// takes.
const LOOK: Duration = Duration::from_millis(1);

/// What the file that arrives is called.
const ARRIVED: &str = "arrived";

/// Whether this `fairbat` knows several ways out of the machine.
#[must_use]
pub fn knows_interfaces() -> bool {
    static KNOWS: OnceLock<bool> = OnceLock::new();
    *KNOWS.get_or_init(|| {
        let help = Command::new(fairbat_binary())
            .args(["get", "--help"])
            .output();
        help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--interface"))
    })
}

/// What a program is to do.
#[derive(Debug, Clone)]
pub(crate) struct Order<'a> {
    /// Who.
    pub(crate) carrier: Carrier,
    /// The file.
    pub(crate) url: String,
    /// All paths, as `--interface` takes them.
    pub(crate) interfaces: &'a str,
    /// The device of the one over which this file should be there first.
    pub(crate) best: &'a str,
    /// Seconds by which it should be there.
    pub(crate) deadline_s: Option<f64>,
}

impl Order<'_> {
    /// The program with its arguments, for a directory that is its own. `fairbat` is where that
    /// program is.
    fn command(&self, fairbat: &Path, work: &Path) -> Command {
        if self.carrier == Carrier::Curl {
            let mut command = Command::new("curl");
            command.args(["-sS", "-f", "--interface", self.best]);
            command.arg("-o").arg(work.join(ARRIVED)).arg(&self.url);
            return command;
        }
        let mut command = Command::new(fairbat);
        command
            .args(["get", "--json", "-o"])
            .arg(work.join(ARRIVED));
        if let Some(deadline) = self.deadline_s {
            command.args(["--deadline", &format!("{deadline:.3}s")]);
        }
        let interface = match self.carrier {
            Carrier::Fairbat => Some(self.interfaces),
            // Where it knows no interfaces, the first path is the one that it has.
            _ => knows_interfaces().then_some(self.best),
        };
        if let Some(interface) = interface {
            command.args(["--interface", interface]);
        }
        command.arg(&self.url);
        command
    }

    /// Runs it in the directory `work`, until it is done or `patience` is over.
    ///
    /// # Errors
    /// Why the file is not there, for people.
    pub(crate) fn run(
        &self,
        client: &Host,
        work: &Path,
        patience: Duration,
        clock: Clock,
    ) -> Result<Ran, String> {
        let name = self.carrier.name();
        let began = clock.now();
        let mut program = Program::start(client, work, name, self.command(fairbat_binary(), work))
            .map_err(|error| format!("start {name}: {error}"))?;
        let status = loop {
            if let Some(status) = program.ended() {
                break Some(status);
            }
            if clock.now() - began > patience {
                break None;
            }
            std::thread::sleep(LOOK);
        };
        let took = clock.now() - began;
        program.end();
        let told = Told::read(&program.stdout());
        match status {
            Some(status) if status.success() => Ok(Ran { took, told }),
            Some(status) => Err(program.complaint(status)),
            None => Err(format!("not done after {:.1} s", patience.as_secs_f64())),
        }
    }
}

/// What a program that has ended well has left.
#[derive(Debug)]
pub(crate) struct Ran {
    /// From its start to its end.
    pub(crate) took: Duration,
    /// What `fairbat` told.
    pub(crate) told: Told,
}

/// Where the file that a program has fetched is.
pub(crate) fn arrived(work: &Path) -> std::path::PathBuf {
    work.join(ARRIVED)
}

/// What the events of `fairbat get --json` tell of one transfer. Moments are seconds since it
/// started.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Told {
    /// When it was done.
    pub(crate) done_s: Option<f64>,
    /// When it was to be done, by the first of its predictions.
    pub(crate) foretold_s: Option<f64>,
}

impl Told {
    fn read(lines: &str) -> Self {
        let mut told = Self::default();
        let events = lines.lines();
        for event in events.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let number = |field: &str| event[field].as_f64();
            match event["event"].as_str() {
                Some("done") => told.done_s = number("t").or(told.done_s),
                Some("prediction") if told.foretold_s.is_none() => {
                    told.foretold_s = number("t").zip(number("predicted_s")).map(|(t, s)| t + s);
                }
                _ => {}
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(carrier: Carrier, deadline_s: Option<f64>) -> String {
        let order = Order {
            carrier,
            url: "http://10.78.0.2/f".to_owned(),
            interfaces: "wifi,lte:cost=metered",
            best: "lte",
            deadline_s,
        };
        let command = order.command(Path::new("fairbat"), Path::new("/w"));
        let words = command.get_args();
        let words = words.map(|word| word.to_string_lossy().into_owned());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn all_paths_are_named_with_their_cost_and_one_alone_by_its_device() {
        let expected = "get --json -o /w/arrived --deadline 60.000s --interface \
                        wifi,lte:cost=metered http://10.78.0.2/f";
        assert_eq!(words(Carrier::Fairbat, Some(60.0)), expected);
        let expected = "-sS -f --interface lte -o /w/arrived http://10.78.0.2/f";
        assert_eq!(words(Carrier::Curl, None), expected);
    }

    #[test]
    fn the_first_prediction_counts_and_none_is_none() {
        let lines = concat!(
            r#"{"t":0.02,"event":"start","urls":["x"]}"#,
            "\n",
            r#"{"t":0.05,"event":"prediction","predicted_s":1.5,"bytes":1000}"#,
            "\n",
            r#"{"t":0.9,"event":"prediction","predicted_s":9,"bytes":10}"#,
            "\n",
            r#"{"t":1.75,"event":"done","bytes":1000}"#,
            "\n",
            r#"{"t":1.8,"event":"do"#,
        );
        let told = Told {
            done_s: Some(1.75),
            foretold_s: Some(1.55),
        };
        assert_eq!(Told::read(lines), told);
        assert_eq!(Told::read("curl says nothing"), Told::default());
    }
}
