//! Many runs as one measurement: every scenario with every contender, for
//! several seeds, as many side by side as the machine bears.

mod budget;
mod pool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use self::budget::Budget;
pub use self::pool::{Job, run_all};
use crate::contender::Contender;
use crate::record::file_name;
use crate::scenario::Scenario;

/// What is to be run; the whole of a file in `matrices`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// One line for people.
    pub description: String,
    /// Names of scenarios.
    pub scenarios: Vec<String>,
    /// Names of contenders.
    pub contenders: Vec<Contender>,
    /// Congestion controls of the server that sends, each in turn, for the
    /// contenders that heed it.
    pub congestion_controls: Vec<String>,
    /// Seeds; one run for each.
    pub seeds: Vec<u64>,
    /// Different ways to run all of it, one after the other; the ordinary way
    /// if there are none.
    #[serde(default)]
    pub variants: Vec<Variant>,
}

/// A way to run a matrix.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What it is called, in tables and in names of directories.
    pub name: String,
    /// So many labs side by side, in place of what the machine bears.
    pub jobs: Option<usize>,
    /// How often the links are sampled, ms.
    pub sampling_ms: Option<u64>,
}

/// One run of a matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Name of the scenario.
    pub scenario: String,
    /// The contender.
    pub contender: Contender,
    /// Congestion control of the server; `None` when the contender does not
    /// heed it.
    pub congestion_control: Option<String>,
    /// Seed.
    pub seed: u64,
}

/// Why there is no matrix.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// A file that cannot be read.
    #[error("read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that says something that cannot be.
    #[error("{}: {message}", path.display())]
    Invalid {
        /// Which.
        path: PathBuf,
        /// What.
        message: String,
    },
    /// No file of this name.
    #[error("there is no matrix {name:?}; `lab list` shows those there are")]
    Unknown {
        /// What was asked for.
        name: String,
    },
}

impl Cell {
    /// What the files of its run are called, without suffix.
    #[must_use]
    pub fn file_name(&self) -> String {
        let control = self.congestion_control.as_deref();
        file_name(
            &self.scenario,
            &self.contender.to_string(),
            control,
            self.seed,
        )
    }
}

impl Matrix {
    /// All matrices of a directory, by name.
    ///
    /// # Errors
    /// When the directory or one of its files cannot be used.
    pub fn all(directory: &Path) -> Result<BTreeMap<String, Self>, MatrixError> {
        let read = |source| MatrixError::Read {
            path: directory.to_owned(),
            source,
        };
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(directory).map_err(read)? {
            let path = entry.map_err(read)?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                let (name, matrix) = Self::file(&path)?;
                found.insert(name, matrix);
            }
        }
        Ok(found)
    }

    /// The matrix of this name in a directory, or in the file of this path,
    /// with its name.
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub fn find(directory: &Path, name: &str) -> Result<(String, Self), MatrixError> {
        let given = Path::new(name);
        if given
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            return Self::file(given);
        }
        let path = directory.join(format!("{name}.toml"));
        if name.contains('/') || !path.exists() {
            return Err(MatrixError::Unknown {
                name: name.to_owned(),
            });
        }
        Self::file(&path)
    }

    fn file(path: &Path) -> Result<(String, Self), MatrixError> {
        let text = std::fs::read_to_string(path).map_err(|source| MatrixError::Read {
            path: path.to_owned(),
            source,
        })?;
        let invalid = |message: String| MatrixError::Invalid {
            path: path.to_owned(),
            message,
        };
        let matrix: Self = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        for (what, is_empty) in [
            ("scenarios", matrix.scenarios.is_empty()),
            ("contenders", matrix.contenders.is_empty()),
            ("congestion_controls", matrix.congestion_controls.is_empty()),
            ("seeds", matrix.seeds.is_empty()),
        ] {
            if is_empty {
                return Err(invalid(format!("{what} must name something")));
            }
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok((stem.into_owned(), matrix))
    }

    /// All runs: seed after seed, so that what changes slowly on the machine
    /// meets all contenders alike.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &seed in &self.seeds {
            for scenario in &self.scenarios {
                for &contender in &self.contenders {
                    let controls: Vec<_> = if contender.heeds_server_congestion_control() {
                        self.congestion_controls.iter().cloned().map(Some).collect()
                    } else {
                        vec![None]
                    };
                    cells.extend(controls.into_iter().map(|congestion_control| Cell {
                        scenario: scenario.clone(),
                        contender,
                        congestion_control,
                        seed,
                    }));
                }
            }
        }
        cells
    }
}

/// How much a scenario weighs on the machine: the rates of all its links,
/// Mbit/s.
#[must_use]
pub fn weight(scenario: &Scenario) -> f64 {
    let most = |link: &crate::scenario::LinkSpec| {
        let steps = link.schedule.iter().map(|step| step.rate_mbit);
        steps.fold(link.rate_mbit, f64::max)
    };
    scenario.link.iter().map(most).sum()
}
