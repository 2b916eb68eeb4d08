//! The daemon runs jobs at their times and moves their data through one lane per
//! direction. It also publishes the status of the agent.
//!
//! One loop owns all of it. It waits for a command, a second of time or the end of a
//! run, and acts on that.
//!
//! - [`handle`]: how the rest of the agent sends commands and reads the status.
//! - `service`: the loop, from start to stop.
//! - `core`: the state that the loop owns, and what every part of it needs.
//! - `open` and `reload`: the daemon as it starts, and a configuration read again.
//! - `commands`: what each command does.
//! - `entry`, `adhoc`, `schedule`: one task, what an ad-hoc task is, and when a task
//!   runs.
//! - `runs`, `download`, `lanes`: one run of a task, and the lane and store it uses.
//! - `systemd`: the service manager of the machine.

mod adhoc;
mod commands;
mod core;
mod download;
mod entry;
pub mod handle;
mod lanes;
mod last_run;
mod open;
mod reload;
mod runs;
mod schedule;
mod service;
mod systemd;

pub use self::core::{ConfigLoader, StartError};
pub use self::open::collect;
pub use self::runs::check_stores;
pub use self::service::{DaemonEnvironment, run, starting_status};
