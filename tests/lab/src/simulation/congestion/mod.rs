//! Congestion controls: what a sender's window follows. Each is its text, and where Linux
//! differs from that, Linux.

mod bbr;
pub(crate) mod control;
mod cubic;
pub(crate) mod ledbat;
mod reno;
pub(crate) mod state;
