//! `fairbat-agent hold`: holds the connections of units and control groups that the
//! configuration names. It is a service of its own, with the rights of a debugger, which the
//! agent must not have, and with neither network nor files.
//!
//! - `keeper`: one of them: when it is held, and its runs
//! - [`status`]: what is held, which a file tells the agent

mod keeper;
pub mod status;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Zoned;

use self::keeper::Keeper;
use self::status::HoldStatus;
use crate::config::Config;

/// All that is held.
#[derive(Debug)]
pub struct Holding {
    keepers: Vec<Keeper>,
    /// The file for the agent.
    file: PathBuf,
    told_at: Option<Zoned>,
    /// Whether the file could be written last time.
    is_told: bool,
}

/// Time between two writes of the file for the agent.
const TELL_PERIOD: Duration = Duration::from_secs(1);

impl Holding {
    /// Holds nothing yet. Below `state`, runs are noted for those that have a deadline and no
    /// size.
    #[must_use]
    pub fn new(config: &Config, state: &Path) -> Self {
        let keepers = config.holds.iter();
        Self {
            keepers: keepers
                .map(|hold| Keeper::new(hold.clone(), &config.agent, state))
                .collect(),
            file: config.agent.hold_status.clone(),
            told_at: None,
            is_told: true,
        }
    }

    /// Does what is due at this moment, in local time; returns the time until the next step.
    pub fn step(&mut self, now: &Zoned) -> Duration {
        let next = self.keepers.iter_mut().map(|keeper| keeper.step(now)).min();
        let is_old = self.told_at.as_ref().is_none_or(|told| {
            let since = now
                .timestamp()
                .duration_since(told.timestamp())
                .unsigned_abs();
            since >= TELL_PERIOD
        });
        if is_old {
            self.tell(now);
        }
        next.unwrap_or(TELL_PERIOD).min(TELL_PERIOD)
    }

    /// Lets all connections go.
    pub fn release(&mut self, now: &Zoned) {
        self.keepers.iter_mut().for_each(Keeper::release);
        self.tell(now);
    }

    /// Writes the file for the agent.
    fn tell(&mut self, now: &Zoned) {
        self.told_at = Some(now.clone());
        let holds: Vec<HoldStatus> = self.keepers.iter().map(Keeper::status).collect();
        let written = status::write(&self.file, now.timestamp(), holds);
        if let (Err(error), true) = (&written, self.is_told) {
            let file = self.file.display();
            tracing::warn!("{file}: {error}; the agent does not see what is held");
        }
        self.is_told = written.is_ok();
    }
}
