//! The lab: real transfers beside real foreground traffic over an emulated
//! bottleneck, every figure with its seed, versions and command.

mod arrivals;
pub mod calibrate;
mod chart;
pub mod contender;
pub mod deadline;
pub mod files;
pub mod host;
pub mod jobs;
pub mod lateness;
pub mod link;
pub mod machine;
pub mod matrix;
pub mod multipath;
pub mod numerical;
pub mod picture;
pub mod programs;
pub mod record;
pub mod report;
mod requirement;
pub mod results;
pub mod rivals;
pub mod run;
pub mod samples;
pub mod sandbox;
pub mod scenario;
pub mod sender_cost;
pub mod simulation;
pub mod statistics;
pub mod summary;
mod table;
pub mod topology;
pub mod traffic;
pub mod tuning;
mod verdict;
pub mod versions;
pub mod yielding;
