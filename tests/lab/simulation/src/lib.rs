//! The lab in virtual time: scenarios packet by packet, without network and root. It is
//! for developing laws that yield, where a run takes part of a second; what counts is
//! measured by the lab.
//!
//! Modelled: the lab's bottlenecks themselves ([`lab_run::link::bottleneck`]), the product's
//! laws themselves ([`dalbe::receive_window::ReceiveWindowLimiter`], and the programs of its
//! congestion controls), Linux's sending and receiving ends with CUBIC, Reno, BBR and
//! LEDBAT. Not modelled: undo of needless reductions, reordering, merged segments (GRO),
//! TLS, requests one after the other, and processors that are taken away.
//!
//! - `setup`: from a scenario and a contender to connections; what is refused.
//! - `run`: the events of a run. `events`: their order. `network`: the link.
//! - `connection`: the two ends, `sender` (with `scoreboard` and `congestion`) and
//!   `receiver` (with `held_window`); `source` is what is written to it, `steering` what
//!   sets its weight.
//! - `figures`: what came of it, with `trace`. `record`: that as the record of a run.

mod congestion;
mod connection;
mod events;
mod figures;
mod held_window;
mod network;
mod packet;
mod receiver;
mod record;
mod run;
mod scoreboard;
mod sender;
mod setup;
mod source;
mod steering;
#[cfg(test)]
mod tests;
mod trace;

pub use self::figures::{Figures, TracePoint, TurnFigures};
pub use self::record::{check, record};
pub use self::run::simulate;
pub use self::setup::Unsupported;
