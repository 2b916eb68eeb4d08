//! The transport side of FAIRBAT, a less-than-best-effort transfer system:
//! what deadlines ask for ([`deadline`]), how aggressive a flow has to be to
//! give it ([`weight`], by [`model`] from the highest rate seen, [`capacity`]),
//! what holds a download back accordingly ([`brake`]), what a TCP connection
//! can be asked and told ([`socket`]), what arrives on it packet by packet
//! ([`observer`]), and what this kernel and this user may do with it
//! ([`support`]).
//!
//! [`pid`], the [`price`]s of congestion controls and [`phi`] are DA-LBE's for
//! flows whose congestion control is ours. The lab's numerical experiments run
//! them against the paper; a receive window needs none of them.
//!
//! This crate knows nothing of HTTP, of files or of transfers: it is handed
//! connections and moments, never URLs or paths.

pub mod brake;
pub mod capacity;
pub mod congestion;
pub mod controller;
pub mod deadline;
pub mod limiter;
pub mod model;
pub mod observer;
pub mod phi;
pub mod pid;
pub mod price;
pub mod sender;
pub mod setup;
pub mod socket;
pub mod support;
pub mod weight;
