//! The configuration, `/etc/fairbat/agent.toml`: the agent's settings, its stores and its
//! jobs.
//!
//! - `raw`: the file as written: its keys and their types
//! - `resolve`: what the values mean, and all checks
//! - [`credentials`]: the credentials of a store, read when it is used
//! - `job`, `store`: the result; `problem`: what is wrong with a file

pub mod credentials;
mod job;
mod problem;
mod raw;
mod resolve;
mod store;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use self::credentials::Secret;
pub use self::job::{Course, Delete, Detect, Due, Job, MaxDelete, Timing, Verify};
pub use self::problem::{ConfigError, Problem, Problems};
pub use self::store::{Http, Place, S3, Store};

/// The default path of the configuration.
pub const PATH: &str = "/etc/fairbat/agent.toml";

/// A valid configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The settings of the agent itself.
    pub agent: Agent,
    /// The stores by name, with every store that a job uses.
    pub stores: BTreeMap<String, Store>,
    /// The jobs in the order of the file.
    pub jobs: Vec<Job>,
}

/// The settings that all jobs share.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Directory of the state that survives a restart.
    pub state: PathBuf,
    /// Socket for the commands of `fairbat`.
    pub socket: PathBuf,
    /// Address of the metrics and the page; `None` turns both off.
    pub listen: Option<SocketAddr>,
    /// m_max: connections of each direction, 1 to 64.
    pub connections: u32,
    /// w_min, 0.02 to 1, for jobs without their own.
    pub min_weight: f64,
    /// Limit on the rate of all jobs together, byte/s.
    pub limit_rate: Option<u64>,
}

impl Config {
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

    /// Reads the text of a file. `path` only appears in problems.
    ///
    /// # Errors
    /// All problems. If the text is not TOML, the first one.
    pub fn parse(
        text: &str,
        path: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Problems> {
        let mut check = problem::Checker::new(text);
        let raw = raw::read(text, &mut check);
        let config = resolve::resolve(raw, variable, &mut check);
        check.finish(path)?;
        Ok(config)
    }

    /// The stores that receive something secret over an unencrypted network: name and
    /// warning. `variable` reads an environment variable.
    pub fn exposed(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&str, &'static str)> {
        let exposed = self.stores.iter().filter_map(|(name, store)| {
            let read = credentials::read(name, store.credentials()?, &variable);
            // Credentials that cannot be read are not sent either.
            let warning = store.exposes(&read.ok()?)?;
            Some((name.as_str(), warning))
        });
        exposed.collect()
    }
}

#[cfg(test)]
mod tests;
