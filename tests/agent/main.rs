//! The agent's library against real stores: what goes there comes back as it was.
//! And the agent as a service: its signals, its commands, and what it remembers.
#![allow(
    clippy::disallowed_methods,
    reason = "tests watch real processes, by the real clock"
)]

mod access;
mod agent;
mod answers;
mod checks;
mod commands;
mod confined;
mod crashes;
mod faults;
mod fleet;
mod kills;
mod lane;
mod leftovers;
mod local_store;
mod manifests;
mod many_kills;
mod moved;
mod notify;
mod pull;
mod pushes;
mod reload;
mod restored;
mod round_trip;
mod service;
mod sources;
mod state;
mod stop;
mod tree;
mod unmounted;
