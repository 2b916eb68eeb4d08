//! The benchmark: how fast, at what cost and with how much memory `fairbat`
//! fetches a file from an nginx on the same machine, beside curl and aria2c.
//!
//! The tools take turns, so that whatever else the machine does hits all of
//! them; each round begins with another one; the first round warms up and
//! does not count. The server is one nginx process that sends from memory.
#![allow(
    clippy::disallowed_methods,
    reason = "real programs are measured, by the real clock"
)]

pub mod fleet;
pub mod hold;
pub mod http3;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod mirrors;
pub mod picture;
pub mod record;
pub mod report;
pub mod scale;
pub mod speed;

use std::path::Path;

use record::Record;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Size of the file for speed, bytes.
    pub size: u64,
    /// Rounds that count.
    pub rounds: u32,
}

/// Issue 2's acceptance: 4 GiB, median of 7.
pub const FULL: Extent = Extent {
    size: 4 << 30,
    rounds: 7,
};

/// To see whether it works.
pub const QUICK: Extent = Extent {
    size: 256 << 20,
    rounds: 3,
};

/// Determines the bytes of the file.
const SEED: u64 = 1;

/// Measures everything, saying on standard error what is going on. `command`
/// is what the user typed; `scratch` is a directory on the disk to measure.
///
/// # Panics
/// When there is too little free memory, a tool fails, or a file is wrong.
#[must_use]
pub fn run(extent: &Extent, command: &str, scratch: &Path) -> Record {
    Record {
        command: command.to_owned(),
        seed: SEED,
        rounds: extent.rounds,
        machine: machine::describe(),
        speed: speed::run(extent, SEED, scratch),
        memory: memory::run(extent.rounds),
    }
}
