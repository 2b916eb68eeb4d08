//! The connection under an upload: how much of the body has arrived, whether
//! it still moves, and its lever.
//!
//! A client that keeps connections opens another one when the last one is not back in its pool yet,
//! and does not say which of the two it takes. The one over which bytes arrive is it. So none is
//! forgotten while a request is under way.

use std::time::Duration;

use dalbe::receive_window::ReceiveWindowState;
use dalbe::sender::DeliveredBytes;
use dalbe::weight::FlowTarget;

use crate::transport::{NewConnection, PutAnswer, unread_answer};

/// Connections that are kept for the next request: the last one, and one more.
const MAX_OPEN: usize = 2;

/// The connections of a path, one of which carries the request.
#[derive(Debug, Default)]
pub(crate) struct UploadConnections(Vec<UploadConnection>);

impl UploadConnections {
    pub(crate) fn add(&mut self, connection: NewConnection, now: Duration) {
        self.0.push(UploadConnection::new(connection, now));
    }

    /// The next request begins.
    pub(crate) fn begin(&mut self, now: Duration) {
        while self.0.len() > MAX_OPEN {
            let idle = self.0.iter().position(|open| open.acked == 0);
            self.0.remove(idle.unwrap_or_default());
        }
        self.0.iter_mut().for_each(|open| open.begin(now));
    }

    /// Forgets them; returns whether there were any.
    pub(crate) fn clear(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }

    /// Nothing more is sent of a request that was given up, also where the machine could not send it
    /// so far: the server would take it for a new one.
    pub(crate) fn discard_unsent(&self) {
        for open in &self.0 {
            open.connection.end.discard_unsent();
        }
    }

    /// The one that carries the request, as far as can be told.
    pub(crate) fn carrier(&self) -> Option<&UploadConnection> {
        self.0.iter().max_by_key(|open| open.acked)
    }

    /// As [`UploadConnection::measure`].
    pub(crate) fn measure(&mut self, now: Duration, handed: u64) -> (u64, u64) {
        let measured = self.0.iter_mut().map(|open| open.measure(now, handed));
        measured.fold((0, 0), |sum, (new, carried)| (sum.0 + new, sum.1 + carried))
    }

    /// As [`UploadConnection::is_stalled`].
    pub(crate) fn is_stalled(
        &mut self,
        now: Duration,
        handed: u64,
        total: u64,
        limit: Duration,
    ) -> bool {
        let carrier = self.0.iter_mut().max_by_key(|open| open.acked);
        carrier.is_some_and(|open| open.is_stalled(now, handed, total, limit))
    }

    /// When a lever is updated next.
    pub(crate) fn update_at(&self) -> Option<Duration> {
        self.0.iter().filter_map(|open| open.update_at).min()
    }

    /// Updates the levers towards this target.
    pub(crate) fn follow(&mut self, now: Duration, target: FlowTarget) {
        self.0.iter_mut().for_each(|open| open.follow(now, target));
    }

    /// The answer of a server that closed the connection before it had the whole body, if it
    /// sent one.
    pub(crate) fn unread_answer(&self) -> Option<PutAnswer> {
        let mut open = self.0.iter();
        open.find_map(|open| unread_answer(open.connection.end.socket()?))
    }
}

/// A connection that carries an upload.
#[derive(Debug)]
pub(crate) struct UploadConnection {
    connection: NewConnection,
    /// When the request on it began, since the run's start.
    began: Duration,
    /// When the lever is updated next; `None` once it has failed.
    update_at: Option<Duration>,
    /// Bytes of the body that the other end's machine has acknowledged, as far as can be
    /// told.
    pub(crate) acked: u64,
    arrived: DeliveredBytes,
    /// When something last moved, or had nothing to move.
    moved_at: Duration,
}

impl UploadConnection {
    fn new(connection: NewConnection, now: Duration) -> Self {
        Self {
            connection,
            began: now,
            update_at: Some(now),
            acked: 0,
            arrived: DeliveredBytes::default(),
            moved_at: now,
        }
    }

    /// The next request begins on it.
    fn begin(&mut self, now: Duration) {
        (self.began, self.moved_at, self.acked) = (now, now, 0);
        self.update_at = self.update_at.map(|_| now);
        let info = self.connection.end.info();
        self.connection.acked_before = info.and_then(|info| info.bytes_acked);
    }

    /// Asks how much is acknowledged of a body of which `handed` bytes have been
    /// handed to the connection; returns how much of it is new, and how much has
    /// arrived in all, in order or not.
    ///
    /// The connection also counts the head of the request and what TLS adds, together some
    /// hundred bytes and 0.2 %. The body seems to be through that much too early.
    fn measure(&mut self, now: Duration, handed: u64) -> (u64, u64) {
        let info = self.connection.end.info();
        let counted = info.as_ref().and_then(|info| {
            Some(
                info.bytes_acked?
                    .saturating_sub(self.connection.acked_before?),
            )
        });
        let carried = info.map_or(0, |info| self.arrived.since_last(&info));
        let acked = counted.map_or(handed, |counted| counted.min(handed));
        let new = acked.saturating_sub(self.acked);
        self.acked += new;
        if new > 0 {
            self.moved_at = now;
        }
        (new, carried)
    }

    /// Whether the server has been silent for longer than `limit`. A slow or limited reader of
    /// the file is no silence of the server. The answer may take as long as the body took
    /// besides, because some servers pass all of it on before they answer.
    pub(crate) fn is_stalled(
        &mut self,
        now: Duration,
        handed: u64,
        total: u64,
        limit: Duration,
    ) -> bool {
        let silent = now.saturating_sub(self.moved_at);
        if self.acked >= total {
            return silent > limit + self.moved_at.saturating_sub(self.began);
        }
        if self.acked >= handed {
            self.moved_at = now;
        }
        self.acked < handed && silent > limit
    }

    /// Updates the lever towards this target.
    fn follow(&mut self, now: Duration, target: FlowTarget) {
        self.update_at = self.connection.end.follow(now, target);
    }

    /// What its lever does, at this weight.
    pub(crate) fn window_state(&self, w: f64) -> Option<ReceiveWindowState> {
        Some(match self.connection.end.is_yielding()? {
            true => ReceiveWindowState::Yielding,
            false if w >= 1.0 => ReceiveWindowState::Free,
            false => ReceiveWindowState::Filling,
        })
    }

    /// CDG's back-off scale, ms; see [`Control::g_ms`](crate::event::Control::g_ms).
    pub(crate) fn g_ms(&self) -> Option<f64> {
        Some(self.connection.end.g()? * 1e3)
    }

    /// Round-trip time.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.connection.end.info()?.rtt
    }
}
