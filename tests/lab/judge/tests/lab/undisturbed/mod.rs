//! Tests that compare times or read the state of the host. They keep the others off the
//! machine, and so begin when those are over: their name is the last.

mod bottleneck;
mod calibration;
mod leftovers;
mod physics;
mod rivals;
mod sender_cost;
