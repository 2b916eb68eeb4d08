//! Real stores to write to, each a process of the test's own on a free port
//! of 127.0.0.1: S3 ([`S3`]), WebDAV ([`Dav`]) and our own ([`Serve`]); and what
//! stands before one to spoil what goes between it and a client ([`FaultProxy`]).
//!
//! Knows nothing of who writes to them. `.ci/deps` installs what they need.

mod dav;
mod fault;
mod passage;
mod proxy;
mod relay;
mod s3;
mod serve;
mod server;

pub use dav::{Dav, DavKind};
pub use fault::{Action, Exchange, Fault, Requests};
pub use proxy::FaultProxy;
pub use s3::{S3, S3Kind};
pub use serve::Serve;
