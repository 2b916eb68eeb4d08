//! Congestion controls: what a sender's window follows. Each is its text, and where Linux
//! differs from that, Linux. Those of the product are its own programs (`kernel`), and so are
//! the rivals (`rival`).

mod bbr;
pub(crate) mod control;
mod cubic;
pub(crate) mod kernel;
pub(crate) mod ledbat;
mod reno;
pub(crate) mod rival;
pub(crate) mod state;
