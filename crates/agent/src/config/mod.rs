//! The configuration, `/etc/fairbat/agent.toml`: which jobs there are, and the
//! stores they speak to.
//!
//! Read in three steps: what was written (`raw`), what is meant (`resolve`), and,
//! when a store is used, its [`credentials`]. It must not know how any of it is
//! done.

pub mod credentials;
mod job;
mod keys;
mod problem;
mod raw;
mod resolve;
mod secret;
mod store;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use self::job::{Course, Delete, Detect, Due, Job, MaxDelete, Timing, Verify};
pub use self::problem::{ConfigError, Problem, Problems};
pub use self::secret::Secret;
pub use self::store::{Http, Place, S3, Store};

/// Where the configuration is when nobody says otherwise.
pub const PATH: &str = "/etc/fairbat/agent.toml";

/// What the agent is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The agent itself.
    pub agent: Agent,
    /// By their names. Every store that a job names is there.
    pub stores: BTreeMap<String, Store>,
    /// In the order of the file.
    pub jobs: Vec<Job>,
}

/// What concerns the agent and not a single job.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Directory of what must survive a restart.
    pub state: PathBuf,
    /// Where it listens to `fairbat-agent` commands.
    pub socket: PathBuf,
    /// Where metrics and page are; `None` is nowhere.
    pub listen: Option<SocketAddr>,
    /// m_max: connections of each direction, 1 to 64.
    pub connections: u32,
    /// w_min, 0.02 to 1, of jobs that have none of their own.
    pub min_weight: f64,
    /// RateLimit on the rate of all jobs together, byte/s.
    pub limit_rate: Option<u64>,
}

impl Config {
    /// Reads a file. `variable` reads an environment variable: `STATE_DIRECTORY`
    /// and `RUNTIME_DIRECTORY` are where systemd wants the agent's files.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`]; [`ConfigError::Wrong`] with all that is wrong.
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

    /// Reads the text of a file; `path` is only named in what is wrong.
    ///
    /// # Errors
    /// All that is wrong. Of what is no TOML, the first thing.
    pub fn parse(
        text: &str,
        path: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Problems> {
        let mut complaints = problem::Complaints::about(text);
        let raw = raw::read(text, &mut complaints);
        let config = resolve::resolve(raw, variable, &mut complaints);
        complaints.finish(path)?;
        Ok(config)
    }

    /// What goes over a network in plain text though it should not, by the name of
    /// the store. `variable` reads an environment variable.
    pub fn exposed(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&str, &'static str)> {
        let exposed = self.stores.iter().filter_map(|(name, store)| {
            let told = credentials::read(name, store.credentials()?, &variable);
            // What cannot be read is not sent either.
            let what = store.exposes(&told.ok()?)?;
            Some((name.as_str(), what))
        });
        exposed.collect()
    }
}

#[cfg(test)]
mod tests;
