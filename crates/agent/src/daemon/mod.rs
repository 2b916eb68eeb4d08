//! The daemon: runs jobs at their times, through one lane for each direction, and
//! tells how they stand.
//!
//! One loop owns all of it: it waits for the next command, the next second, or the
//! end of a run, and acts on that.

mod clock;
mod collect;
mod download;
mod entry;
mod extra;
pub mod handle;
mod lanes;
mod line;
mod manager;
mod measured;
mod obey;
mod open;
mod place;
mod prediction;
mod reload;
mod runs;
mod service;
mod standing;
mod task;

pub use self::collect::collect;
pub use self::service::{Load, Outside, StartError, run, starting};
