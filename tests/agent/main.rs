//! The agent's library against real stores: what goes there comes back as it was.

mod agent;
mod faults;
mod kills;
mod round_trip;
mod sources;
mod tree;
