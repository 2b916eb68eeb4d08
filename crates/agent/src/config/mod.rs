//! The configuration, `/etc/fairbat/agent.toml`: the agent's settings, its stores and its
//! jobs.
//!
//! - `due`: the deadlines of runs
//! - `table`, `problem`: a table of the file, and all that is wrong with the file
//! - `agent`, `fleet`, `store`, `job`, `hold`: the meaning of the tables; `agent`, `fleet`,
//!   `store`, `jobs` and `hold` read them
//! - `overlaps`: jobs that write to the same directory
//! - [`credentials`]: the credentials of a store, read when it is used

mod agent;
pub mod credentials;
mod due;
pub(crate) mod fleet;
mod hold;
mod job;
mod jobs;
mod overlaps;
mod problem;
mod store;
mod table;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use self::problem::{Checker, suggestion};
use self::store::Stores;
use self::table::Table;

pub use self::agent::{AgentConfig, RUNTIME, STATE};
pub use self::credentials::SecretText;
pub use self::due::Due;
pub use self::fleet::FleetConfig;
pub use self::hold::{HoldConfig, HoldTarget};
pub use self::job::{Course, Delete, Detect, JobConfig, JobMode, MaxDelete, Timing, Verify};
pub use self::problem::{ConfigError, Problem, Problems};
pub use self::store::{DEFAULT_FILE_MODE, Http, Local, S3, StoreConfig, StoreDirectory};

/// The default path of the configuration.
pub const PATH: &str = "/etc/fairbat/agent.toml";

/// The tables of the file.
const TABLES: [&str; 6] = ["agent", "stream", "fleet", "stores", "jobs", "hold"];

/// A valid configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Its file.
    pub file: PathBuf,
    /// The settings of the agent itself.
    pub agent: AgentConfig,
    /// The lane of the site that the agent takes part in.
    pub fleet: Option<FleetConfig>,
    /// The stores by name, with every store that a job uses.
    pub stores: BTreeMap<String, StoreConfig>,
    /// The jobs in the order of the file.
    pub jobs: Vec<JobConfig>,
    /// What is held of others, in the order of the file.
    pub holds: Vec<HoldConfig>,
}

impl Config {
    /// The directory of the store with this name, if it is one of this machine.
    #[must_use]
    pub fn local_path(&self, store: &str) -> Option<&Path> {
        self.stores.get(store)?.local_path()
    }

    /// Whether a job pushes to the store with this name.
    #[must_use]
    pub fn is_pushed_to(&self, store: &str) -> bool {
        let pushes =
            |job: &JobConfig| matches!(&job.course, Course::Push { to, .. } if to.store == store);
        self.jobs.iter().any(pushes)
    }

    /// Reads a file. `variable` reads an environment variable: systemd sets
    /// `STATE_DIRECTORY` and `RUNTIME_DIRECTORY` for the agent's files.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`], or [`ConfigError::Wrong`] with all problems.
    pub fn load(
        path: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
        Ok(Self::parse(&text, path, variable)?)
    }

    /// Reads the text of the file `path`.
    ///
    /// # Errors
    /// All problems. If the text is not TOML, the first one.
    pub fn parse(
        text: &str,
        path: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Problems> {
        let mut check = Checker::new(text);
        let mut file = match DeTable::parse(text) {
            Ok(file) => file.into_inner(),
            Err(error) => {
                let at = error.span().unwrap_or_default();
                let advice = "the file must be valid TOML, see https://toml.io";
                check.add(at, error.message(), advice);
                DeTable::new()
            }
        };
        let mut agent = AgentConfig::new(variable);
        if let Some(value) = file.remove("agent") {
            agent.read(Table::new(
                value,
                "[agent]".to_owned(),
                &AgentConfig::KEYS,
                &mut check,
            ));
        }
        if let Some(value) = file.remove("stream") {
            let title = "[stream]".to_owned();
            agent.read_stream(Table::new(
                value,
                title,
                &AgentConfig::STREAM_KEYS,
                &mut check,
            ));
        }
        let fleet = file.remove("fleet").and_then(|value| {
            let table = Table::new(value, "[fleet]".to_owned(), &fleet::KEYS, &mut check);
            let machine = rustix::system::uname();
            fleet::fleet(table, &machine.nodename().to_string_lossy())
        });
        let stores = file.remove("stores");
        let stores = stores.map_or(Stores::new(), |value| store::stores(value, &mut check));
        let jobs = file.remove("jobs");
        let jobs = jobs.map_or(Vec::new(), |value| {
            jobs::jobs(value, &stores, agent.min_weight, &mut check)
        });
        let holds = file.remove("hold");
        let holds = holds.map_or(Vec::new(), |value| {
            hold::holds(value, agent.min_weight, &mut check)
        });
        for key in file.keys() {
            let name = key.get_ref();
            let advice = suggestion(name, &TABLES);
            check.add(key.span(), format!("unknown key `{name}`"), advice);
        }
        overlaps::check_overlaps(&jobs, &stores, &mut check);
        check.finish(path)?;
        let valid = stores.into_iter();
        Ok(Self {
            file: path.to_owned(),
            agent,
            fleet,
            stores: valid
                .filter_map(|(name, store)| Some((name, store?)))
                .collect(),
            jobs: jobs.into_iter().map(|located| located.job).collect(),
            holds,
        })
    }

    /// The stores that receive something secret over an unencrypted network: name and
    /// warning. `variable` reads an environment variable.
    pub fn exposed(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&str, &'static str)> {
        let exposed = self.stores.iter().filter_map(|(name, store)| {
            let read = store.read_credentials(name, &variable);
            // Credentials that cannot be read are not sent either.
            let warning = store.exposes(&read.ok()?)?;
            Some((name.as_str(), warning))
        });
        exposed.collect()
    }
}

#[cfg(test)]
mod tests;
