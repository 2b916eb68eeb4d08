//! End-to-end tests: the built `fairbat` against real and misbehaving
//! servers. Each module is one promise to the user; the names of the tests
//! say what must hold.
//!
//! Some tests need root (a small file system, network namespaces); without
//! it they say SKIPPED.
#![allow(
    clippy::disallowed_methods,
    reason = "tests watch real processes, by the real clock"
)]

mod admin;
mod advice;
mod agent_cli;
mod auth;
mod backoff;
mod beginning;
mod broken;
mod cli;
mod coding;
mod complete;
mod deadline;
mod disk;
mod events;
mod exact;
mod failing_disk;
mod follow;
mod forward;
mod harness;
mod http3;
mod input;
mod integrity;
mod joined;
mod kills;
mod links;
mod many;
mod mirrors;
mod names;
mod network;
mod ownership;
mod package;
mod partial;
mod path;
mod paths;
mod pause;
mod plan;
mod planted;
mod proxy;
mod put;
mod receiver;
mod redirect;
mod run;
mod serve;
mod signed;
mod size;
mod status;
mod stores;
mod stray;
mod time;
mod tls;
mod turns;
mod version_change;
mod version_flux;
mod words;
