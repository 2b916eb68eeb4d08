//! The transport side of FAIRBAT, a less-than-best-effort transfer system:
//! what deadlines ask for ([`deadline`]), how aggressive a flow has to be to
//! give it ([`pid`]; [`model`] with the models in [`price`], [`phi`] where the
//! others react to other signals), what a TCP connection can be asked and
//! told ([`socket`]), and what this kernel and this user may do with it
//! ([`support`]).
//!
//! This crate knows nothing of HTTP, of files or of transfers: it is handed
//! connections and moments, never URLs or paths.

pub mod brake;
pub mod capacity;
pub mod controller;
pub mod deadline;
pub mod limiter;
pub mod model;
pub mod phi;
pub mod pid;
pub mod price;
pub mod socket;
pub mod support;
pub mod weight;
