//! The agent: directories in step with a remote store by a deadline, in the
//! capacity that nobody else wants.

pub mod calendar;
pub mod config;
pub mod entry;
