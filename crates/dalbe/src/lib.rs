//! The transport side of FAIRBAT, a less-than-best-effort transfer system:
//! what deadlines ask for ([`deadline`]), how aggressive a flow has to be to
//! give it ([`weight`], by [`model`] from the highest rate seen, [`capacity`]),
//! what holds back a download accordingly ([`brake`]) and what this end sends
//! ([`sender`], at best by [`congestion`] controls of our own), what a TCP
//! connection can be asked and told ([`socket`]), what arrives on it packet by
//! packet ([`observer`]), how what runs in the kernel gets there ([`setup`]),
//! and what this kernel and this user may do with it all ([`support`]).
//!
//! [`pid`], the [`price`]s of congestion controls and [`phi`] are DA-LBE's
//! controllers, for comparison and for the record: the lab runs them against
//! the paper, over our congestion controls and numerically.
//!
//! This crate knows nothing of HTTP, of files or of transfers: it is handed
//! connections and moments, never URLs or paths.

pub mod capacity;
pub mod congestion;
pub mod controller;
pub mod deadline;
pub mod flow_weight;
pub mod limiter;
pub mod model;
pub mod observer;
pub mod phi;
pub mod pid;
pub mod price;
pub mod receive_window;
pub mod sender;
pub mod setup;
pub mod socket;
pub mod support;
pub mod weight;
