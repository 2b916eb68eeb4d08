//! What makes a run of the lab: real transfers beside real foreground traffic over an emulated
//! bottleneck, every figure with its seed, versions and command. The record of a run, its
//! figures and its picture are here too.

pub mod arrivals;
pub mod canvas;
pub mod chart;
pub mod contender;
pub mod deadline;
pub mod files;
pub mod host;
pub mod jobs;
pub mod lateness;
pub mod link;
pub mod machine;
pub mod picture;
pub mod record;
pub mod rivals;
pub mod run;
pub mod samples;
pub mod sandbox;
pub mod scenario;
pub mod statistics;
pub mod stream_law;
pub mod summary;
pub mod table;
pub mod terminal;
pub mod topology;
pub mod traffic;
pub mod versions;
pub mod yielding;
