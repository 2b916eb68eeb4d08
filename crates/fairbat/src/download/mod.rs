//! Downloads: from URL to file.
//!
//! - [`run`]: the run and its loop, single owner of the state. Its other parts are in `dispatch`
//!   (which worker starts next), `planning` (which way takes the next piece), `lifecycle` (a
//!   transfer's way from probe to finished file), `reports` (what workers tell), `recovery` (what
//!   follows a failure), `joining` (several sources at once, under a hash),
//!   `comparing` (what has come, with its hashes), `outage` (paths come and
//!   go), `sharing` (paths that share a bottleneck), `control` (what the run tells others: backlogs,
//!   samples, deadlines) and `sizes` (what deadlines are planned with);
//! - `setup`: what a run is given, starts with and returns; `run_path`: a way out of the machine;
//!   `division`: what deadlines demand of each;
//! - `sources`: the servers that a transfer may come from; `ways`: these over the run's paths;
//!   `joint`: what is known of sources whose bytes are joined; `overlap`: which of them are wrong;
//! - `transfer`: one transfer's state; [`pieces`]: what it has left to fetch, and how long the next
//!   chunk is;
//! - `worker`: one request on one connection, and what it tells the loop; `connection`: what the
//!   loop knows of it; `pace`: how fast its bytes come; `asking`: requests that ask what a source
//!   has, `inquiry`: what for; `finishing`: the last step of a file;
//! - [`part`]: part files and their journals.

mod asking;
mod comparing;
mod connection;
mod control;
mod dispatch;
pub(crate) mod division;
mod finishing;
mod inquiry;
mod joining;
mod joint;
mod lifecycle;
pub(crate) mod outage;
mod overlap;
mod pace;
pub mod part;
pub mod pieces;
mod planning;
mod recovery;
mod reports;
mod run;
mod run_path;
mod setup;
mod sharing;
mod sizes;
mod sources;
mod transfer;
pub(crate) mod ways;
mod worker;

pub use self::run::run;
pub use self::setup::{Arrivals, LanePlace, Outcome, Report, RunMode, Stop, client};
