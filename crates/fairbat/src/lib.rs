//! FAIRBAT's transfer library: a chunk queue with an adaptive limit on active
//! connections, the HTTP engine under it, and files that are never wrong.
//!
//! [`engine::run`] is the one entry point: it takes [`settings::Settings`]
//! and a list of [`settings::TransferRequest`]s, reports [`event::Event`]s
//! while it works and returns a [`engine::Report`].

pub mod checksum;
pub mod deadline;
pub mod duration;
pub mod error;
pub mod event;
pub mod http;
pub mod retry;
pub mod settings;
pub mod size;
pub mod store;
