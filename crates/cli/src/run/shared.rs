//! What both processes have from the time when they were one.

use std::os::unix::net::UnixStream;

use dalbe::process::{Inherited, LastNotice};

use super::passage::Passage;

/// One process's share of it.
pub(super) struct ProcessShare {
    pub(super) inherited: Inherited,
    pub(super) last: LastNotice,
    /// The end of the socket over which the worker hands its listener to the front.
    pub(super) listener: UnixStream,
    /// What passes through, if it is read.
    pub(super) passage: Option<Passage>,
}
