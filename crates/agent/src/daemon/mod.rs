//! The daemon: runs jobs at their times, through one lane for each direction, and
//! tells how they stand.
//!
//! One loop owns all of it: it waits for the next command, the next second, or the
//! end of a run, and acts on that.

mod download;
mod entry;
mod extra;
pub mod handle;
mod lanes;
mod measured;
mod prediction;
mod service;
mod task;

pub use self::service::{StartError, collect, run, starting};
