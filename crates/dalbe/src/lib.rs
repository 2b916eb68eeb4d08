//! The transport side of FAIRBAT, a less-than-best-effort transfer system:
//! what deadlines ask for ([`deadline`]), what a TCP connection can be asked
//! and told ([`socket`]), and what this kernel and this user may do with it
//! ([`support`]).
//!
//! This crate knows nothing of HTTP, of files or of transfers: it is handed
//! connections and moments, never URLs or paths.

pub mod brake;
pub mod capacity;
pub mod deadline;
pub mod socket;
pub mod support;
