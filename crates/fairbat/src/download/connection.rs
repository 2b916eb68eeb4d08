//! A connection in use, as the run sees it.

use std::sync::Arc;
use std::time::Duration;

use dalbe::socket::TcpSocket;
use tokio::sync::watch;

use super::pieces::LeaseId;
use super::ways::WayId;
use super::worker::TransferId;
use crate::lane::Permit;

/// A connection in use.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) permit: Permit,
    pub(crate) transfer: TransferId,
    pub(crate) way: WayId,
    pub(crate) lease: Option<LeaseId>,
    /// Where its lease begins.
    pub(crate) begun_at: u64,
    /// Everything of its lease before this offset is on disk.
    pub(crate) written: u64,
    /// When it began.
    pub(crate) started: Duration,
    /// When a control period last ended, and what was written then.
    pub(crate) recent: Option<(Duration, u64)>,
    /// Tells it to give its rest back.
    pub(crate) cut: watch::Sender<bool>,
    pub(crate) socket: Option<Arc<TcpSocket>>,
    /// Whether it has brought any bytes.
    pub(crate) has_moved: bool,
}

impl Worker {
    /// The rate at which its bytes come, byte/s: the mean since it began, or that of the last
    /// seconds if it is lower, as of a server that has fallen silent.
    pub(crate) fn rate(&self, now: Duration) -> f64 {
        let mean = |since: Duration, from: u64| {
            let elapsed = now.saturating_sub(since).as_secs_f64();
            (elapsed > 0.0).then(|| (self.written - from) as f64 / elapsed)
        };
        let whole = mean(self.started, self.begun_at).unwrap_or_default();
        let recent = self.recent.and_then(|(since, from)| mean(since, from));
        recent.map_or(whole, |recent| recent.min(whole))
    }
}
