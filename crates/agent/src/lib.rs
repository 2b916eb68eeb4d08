//! The agent: directories in step with a remote store by a deadline, in the
//! capacity that nobody else wants.

pub mod api;
pub mod calendar;
pub mod compare;
pub mod config;
pub mod daemon;
pub mod entry;
pub mod filter;
pub mod manifest;
pub mod metrics;
pub mod object_name;
mod percent;
mod response;
pub mod scan;
pub mod state;
pub mod status;
pub mod store;
pub mod sync;
pub mod web;
