//! The lab: real transfers beside real foreground traffic over an emulated
//! bottleneck, every figure with its seed, versions and command.

mod arrivals;
pub mod calibrate;
pub mod clock;
pub mod contender;
pub mod course;
pub mod deadline;
pub mod files;
pub mod host;
pub mod jobs;
pub mod link;
pub mod matrix;
pub mod numerical;
pub mod picture;
pub mod places;
pub mod record;
pub mod report;
pub mod results;
pub mod run;
pub mod sandbox;
pub mod scenario;
mod scheduling;
pub mod sender_cost;
mod shared_link;
pub mod stalls;
pub mod statistics;
pub mod summary;
pub mod topology;
pub mod traffic;
pub mod tuning;
pub mod versions;
pub mod yielding;
