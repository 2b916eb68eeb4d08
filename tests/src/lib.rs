//! The end-to-end harness: real servers, servers that misbehave on purpose,
//! and the built `fairbat` binary driven from outside.
//!
//! Everything here sees `fairbat` the way a user does: arguments, files,
//! output, exit code and what arrives at the server. It must not know the
//! library's types. Threads and blocking sockets only; a failure of the
//! harness itself panics with what was being done.
#![allow(
    clippy::disallowed_methods,
    reason = "the harness watches real processes and sockets, by the real clock"
)]

pub mod bin;
pub mod caddy;
pub mod cpu;
pub mod date;
pub mod environment;
pub mod expect;
pub mod fault;
pub mod front;
mod keeper;
pub mod message;
pub mod metrics;
pub mod nats;
pub mod netns;
pub mod nginx;
pub mod outcome;
pub mod peers;
pub mod poll;
pub mod port;
pub mod proxy;
mod rate;
pub mod scripted;
pub mod seccomp;
pub mod secret;
pub mod served;
pub mod special;
pub mod ss;
pub mod stores;
pub mod target;
pub mod tls;
pub mod tmpfs;
pub mod version;
pub mod workdir;

pub use fairbat_content as content;
