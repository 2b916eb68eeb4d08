//! How a run of `fairbat` ended, and what tests say about it.

use std::time::Duration;

use serde_json::Value;

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    pub(crate) what: String,
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// All of standard output.
    pub stdout: String,
    /// All of standard error.
    pub stderr: String,
    /// How long it ran.
    pub elapsed: Duration,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{}\nexit code {:?}, signal {:?}, after {:?}",
            self.what, self.code, self.signal, self.elapsed
        )?;
        writeln!(f, "--- stdout\n{}", self.stdout)?;
        writeln!(f, "--- stderr\n{}", self.stderr)
    }
}

impl Outcome {
    /// Panics, showing everything, unless the exit code is this one.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Self {
        assert!(self.code == Some(code), "expected exit code {code}: {self}");
        self
    }

    /// Panics, showing everything, unless the exit code is one of these.
    #[track_caller]
    pub fn expect_code_in(&self, codes: &[i32]) -> &Self {
        assert!(
            self.code.is_some_and(|code| codes.contains(&code)),
            "expected an exit code of {codes:?}: {self}"
        );
        self
    }

    /// Panics, showing everything, unless what people read (stderr) or the
    /// `error` events contain one of these words, in any case.
    #[track_caller]
    pub fn expect_said(&self, words: &[&str]) -> &Self {
        let said = self.said().to_lowercase();
        assert!(
            words.iter().any(|word| said.contains(&word.to_lowercase())),
            "expected one of {words:?} to be said: {self}"
        );
        self
    }

    /// Everything that was said about failures: stderr and `error` events.
    #[must_use]
    pub fn said(&self) -> String {
        let mut said = self.stderr.clone();
        for event in self.events_named("error") {
            said.push_str(&format!("\n{} {}", event["message"], event["hint"]));
        }
        said
    }

    /// The `--json` events; panics when a line of stdout is none.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        parse_events(&self.stdout)
    }

    /// The only object that `--json` prints, of a command that answers one question.
    #[must_use]
    #[track_caller]
    pub fn object(&self) -> Value {
        let mut objects = self.events();
        assert_eq!(objects.len(), 1, "{self}");
        objects.remove(0)
    }

    /// The events of one kind.
    #[must_use]
    pub fn events_named(&self, name: &str) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["event"] == name);
        events
    }

    /// The only event of a kind; panics when there are none or several.
    #[track_caller]
    pub fn event(&self, name: &str) -> Value {
        let mut events = self.events_named(name);
        assert!(events.len() == 1, "expected one event {name}: {self}");
        events.remove(0)
    }

    /// Bytes that the only transfer had from earlier runs.
    #[must_use]
    #[track_caller]
    pub fn resumed_bytes(&self) -> u64 {
        let event = self.event("file");
        event["resumed_bytes"]
            .as_u64()
            .unwrap_or_else(|| panic!("no resumed_bytes in {event}"))
    }
}

/// The events in whole lines of text; panics when a line is none.
pub(crate) fn parse_events(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in event: {line}"))
        })
        .collect()
}
