//! FAIRBAT's transfer library: a chunk queue with an adaptive limit on active
//! connections, the HTTP engine under it, and files that are never wrong.
//!
//! [`engine::run`] is the one way to files: it takes [`settings::Settings`]
//! and a list of [`settings::TransferRequest`]s, reports [`event::Event`]s
//! while it works and returns a [`engine::Report`]. [`path_measurement::survey`] looks at
//! a file before it is downloaded, and [`forecast`] says what follows.
//! [`serve::Server`] is the other end: it serves files, and holds them back
//! where they are sent.
//! [`put::run`] is the other direction: it uploads a file.

pub mod accept;
pub mod admission;
pub mod backlog_policy;
pub mod blocking;
pub mod checksum;
mod chunk_size;
mod clock;
pub mod deadline;
pub mod duration;
pub mod engine;
pub mod error;
pub mod event;
mod file_version;
pub mod forecast;
mod hosts;
pub mod http;
pub mod lane;
mod lateness;
mod limiter;
mod pace;
pub mod path_measurement;
mod plan;
pub mod put;
pub mod queue;
pub mod ranges;
pub mod retry;
pub mod serve;
pub mod settings;
pub mod size;
pub mod store;
pub mod transport;
mod window_manager;

#[cfg(test)]
mod tests;
