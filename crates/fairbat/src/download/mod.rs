//! Downloads: from URL to file.
//!
//! - [`run`]: the run loop, single owner of the state; `mode`: what it is given and
//!   returns;
//! - `state`: the run and how it applies an action; its other parts are in
//!   `dispatch` (which worker starts next), `lifecycle` (a transfer's way from probe
//!   to finished file), `recovery` (what follows a failure) and `control` (what
//!   happens each second: backlogs, samples, reports);
//! - `transfer`: one transfer's state; [`pieces`]: what it has left to fetch;
//!   `chunk_size`: how long the next chunk is;
//! - `worker`: one request on one connection; `message`: what workers tell the loop;
//!   `sink`: from response body to disk; `finish`: from the last byte to the file;
//! - [`part`]: part files, their journals and names.

mod control;
mod dispatch;
mod lifecycle;
mod message;
mod mode;
pub mod part;
pub mod pieces;
mod recovery;
mod run;
mod state;
mod transfer;
mod worker;

pub use self::mode::{Arrivals, LanePlace, Outcome, Report, RunMode, Stop};
pub use self::run::run;
