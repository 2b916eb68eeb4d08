//! The agent keeps directories in step with remote stores by a deadline, in spare
//! bandwidth.
//!
//! The map:
//! - [`config`], [`calendar`]: what the operator wants, and when
//! - [`daemon`]: when each job runs, and with which settings
//! - [`sync`]: one run of a job: push, pull or restore
//! - [`store`]: S3, WebDAV, `fairbat serve` and directories behind one interface
//! - [`state`]: what the agent knows between runs
//! - [`manifest`]: what a store needs so that a tree can be restored
//! - [`scan`], [`compare`], [`filter`], [`entry`]: what a tree contains, and what has
//!   changed
//! - [`object_name`]: the key of a file
//! - [`confine`]: what the process gives up if root starts it
//! - [`fleet`]: the lane of a site, over NATS
//! - [`hold`]: connections of other programs that yield
//! - `store_mount`: the disk that a local store is on
//! - `reserved`, `disk_path`, `owner`: the files of the agent itself, where nothing else may
//!   write, and whose they are
//! - [`status`], [`api`], [`web`], [`metrics`]: what others see
//! - [`lane_socket`]: where other processes of the machine join the lanes
//! - `connections`, `response`: how many connections a socket takes, and what an answer is
//!   made of
//! - `clock`: the time, for the daemon and the site

pub mod api;
pub mod calendar;
mod clock;
pub mod compare;
pub mod config;
pub mod confine;
mod connections;
pub mod daemon;
mod disk_path;
pub mod entry;
pub mod filter;
pub mod fleet;
pub mod hold;
pub mod lane_socket;
pub mod manifest;
pub mod metrics;
pub mod object_name;
mod owner;
mod percent;
mod reserved;
mod response;
pub mod scan;
pub mod state;
pub mod status;
pub mod store;
mod store_mount;
pub mod sync;
pub mod web;
