//! How the defaults of FAIRBAT's law for streams of jobs were chosen: the law
//! itself, on a link that is only calculated.
//!
//! Flows share the link equally (processor sharing), chunks and web flows
//! arrive as Poisson processes with exponential sizes: the paper's loads with
//! nothing of TCP in it, so that thousands of runs take seconds. The chunks
//! wait in a queue and are admitted by the real [`fairbat::lane`],
//! decided on once a second as in a lane. Everything follows from the seed.
//!
//! None of the loads is among those on which FAIRBAT is evaluated.

mod figures;
mod laws;
mod picture;
mod report;
mod scenario;
mod simulation;
mod verdict;

pub(crate) use self::figures::SOON;
pub(crate) use self::laws::undamped;
pub use self::report::write_all;
pub(crate) use self::verdict::RARELY;
