//! Whether a step in load is followed soon: what `lab tuning` found on a link that is
//! only calculated, from its record.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::jobs::SOON;

/// Name of the record and of its page.
const NAME: &str = "tuning";

/// The law that is used.
const LAW: &str = "defaults";

/// After how many mean chunk times the limit was found, step by step; `None` where it
/// never was.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Steps(Vec<Option<f64>>);

#[derive(Deserialize)]
struct Record {
    laws: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    law: String,
    runs: Runs,
}

#[derive(Deserialize)]
struct Runs {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    course: Course,
}

#[derive(Deserialize)]
struct Course {
    after: Option<f64>,
}

impl Steps {
    /// What the record in a directory says; `None` if there is none of steps.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub(super) fn read(directory: &Path) -> std::io::Result<Option<Self>> {
        let path = directory.join(format!("{NAME}.json"));
        if !path.try_exists()? {
            return Ok(None);
        }
        let record: Record = serde_json::from_slice(&fs::read(path)?)?;
        let law = record.laws.into_iter().find(|one| one.law == LAW);
        let steps = law.map_or(Vec::new(), |law| law.runs.steps);
        let after: Vec<_> = steps.into_iter().map(|step| step.course.after).collect();
        Ok((!after.is_empty()).then_some(Self(after)))
    }

    /// Whether all are followed soon.
    pub(super) fn holds(&self) -> bool {
        let mut all = self.0.iter();
        all.all(|after| after.is_some_and(|after| after <= SOON))
    }

    /// For people.
    pub(super) fn words(&self) -> String {
        let words: Vec<_> = self
            .0
            .iter()
            .map(|after| after.map_or("never".to_owned(), |after| format!("{after:.0}")))
            .collect();
        format!("after {} chunk times", words.join(", "))
    }
}

/// Where there is more of it.
pub(super) fn link() -> String {
    format!("[{NAME}]({NAME}.md)")
}
