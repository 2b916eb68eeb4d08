//! The transport side of FAIRBAT, a less-than-best-effort transfer system.
//!
//! A lane measures the rate of its flows, a controller turns the demand of
//! the deadlines into a weight w, and a lever makes a connection as aggressive
//! as w says. The rooms, in the order in which a deadline passes through them:
//!
//! - [`deadline`]: from deadlines to the lowest rate that meets them, zeta.
//! - [`weight`]: from zeta and the measured rate to w; the flow target.
//! - [`receive_window`]: from w to the receive window of a download.
//! - [`sender`]: from w to the rate or the congestion control of an upload.
//! - [`socket`]: one TCP connection, what it reports and the options it takes.
//! - `quic`: the same for QUIC connections, with the feature `quic`.
//! - [`process`]: other programs, and the sockets that they have.
//! - [`ebpf`]: the programs that run in the kernel (an observer of arriving
//!   packets, congestion controls with a weight), and how they get there.
//! - [`capability`]: which of all this works on this machine, for this user.
//! - [`model`]: DA-LBE's controllers and price models as the paper has them.
//!   [`weight`] uses the model-based controller; the lab runs all of them
//!   against the paper.
//!
//! This crate knows nothing of HTTP, files or transfers. Its callers hand it
//! connections and points in time, never URLs or paths.

pub mod capability;
pub mod deadline;
pub mod ebpf;
pub mod model;
pub mod process;
#[cfg(feature = "quic")]
pub mod quic;
pub mod receive_window;
pub mod sender;
pub mod socket;
pub mod weight;
