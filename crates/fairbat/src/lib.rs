//! FAIRBAT's transfer library: files move in spare bandwidth and still arrive by
//! their deadline.
//!
//! The map:
//! - [`lane`]: one scheduler for all transfers of a direction. It decides which
//!   transfer uses a connection (earliest deadline first), how many connections
//!   there are (m, FAIRBAT) and how hard they press (w, DA-LBE).
//! - [`machine`]: a lane that takes part in that of the machine's agent.
//! - [`download`]: from URL to file: the run loop, its workers, part files and
//!   their journals. [`download::run`] is the entry.
//! - [`upload`]: from file to URL, by one PUT, or in parts over several paths. [`upload::run`] is the entry.
//! - [`serve`]: the server behind `fairbat serve`. It paces its responses.
//! - [`transport`]: the HTTP client, the sockets under it, and the levers on its
//!   connections. A process that ends after a run waits for [`transport::say_goodbye`].
//! - [`hold`]: holds the connections of other programs back.
//! - [`proxy`]: the proxy behind `fairbat proxy`.
//! - [`http`]: header fields, validators, credentials, and what failures mean.
//! - [`metalink`]: what a Metalink says of files and where they are.
//! - [`arrival`]: over which way a chunk will have arrived first (STTF).
//! - [`path_measurement`]: what a path gives, and whether a deadline is feasible.
//!
//! [`settings`] is what a caller chooses, [`event`] what a run reports, [`error`]
//! how it fails. The other modules are small tools that several rooms use.

pub mod accept;
pub mod arrival;
pub mod beneath;
pub mod blocking;
pub mod checksum;
mod clock;
pub mod download;
pub mod error;
pub mod event;
pub mod exposition;
pub mod file_name;
mod file_version;
pub mod hold;
pub mod hours;
pub mod http;
pub mod interfaces;
pub mod lane;
pub mod machine;
#[cfg(feature = "manual")]
pub mod manual;
pub mod metalink;
pub mod path_measurement;
mod pem;
pub mod printable;
pub mod proxy;
#[cfg(feature = "http3")]
mod quic;
pub mod ranges;
pub mod retry;
pub mod serve;
pub mod settings;
pub mod shared_bottleneck;
pub mod transport;
pub mod units;
pub mod upload;
pub mod xml;

#[cfg(test)]
mod tests;
