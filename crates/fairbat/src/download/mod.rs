//! Downloads: from URL to file.
//!
//! - [`run`]: the run and its loop, single owner of the state. Its other parts are in
//!   `dispatch` (which worker starts next), `lifecycle` (a transfer's way from probe to
//!   finished file), `recovery` (what follows a failure) and `control` (what the run tells
//!   others: backlogs, samples, deadlines) and `sizes` (what deadlines are planned with);
//! - `setup`: what a run is given, starts with and returns;
//! - `sources`: the servers that a transfer may come from, one after another;
//! - `transfer`: one transfer's state; [`pieces`]: what it has left to fetch, and how long
//!   the next chunk is;
//! - `worker`: one request on one connection, and what it tells the loop;
//! - [`part`]: part files, their journals and names.

mod control;
mod dispatch;
mod lifecycle;
pub mod part;
pub mod pieces;
mod recovery;
mod run;
mod setup;
mod sizes;
mod sources;
mod transfer;
mod worker;

pub use self::run::run;
pub use self::setup::{Arrivals, LanePlace, Outcome, Report, RunMode, Stop, client};
