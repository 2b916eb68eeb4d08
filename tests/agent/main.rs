//! The agent's library against real stores: what goes there comes back as it was.

mod agent;
mod faults;
mod kills;
mod leftovers;
mod many_kills;
mod pushes;
mod round_trip;
mod tree;
