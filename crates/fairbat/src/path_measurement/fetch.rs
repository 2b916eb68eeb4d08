//! Fetches from a file for a while, over one connection that yields at first.

use std::time::Duration;

use dalbe::capability::Capabilities;
use dalbe::receive_window::{PathFindings, WindowGroup, WindowLever, WindowSettings};
use dalbe::weight::FlowTarget;
use tokio::time::MissedTickBehavior;

use super::meter::Meter;
use crate::clock::Clock;
use crate::error::TransferError;
use crate::http::Failure;
use crate::settings::HttpSettings;
use crate::transport::{Body, HttpClient, ReceiveWindow, RemoteFile, Tap};

/// How often the receive window is adjusted.
const WINDOW_INTERVAL: Duration = Duration::from_millis(20);

/// A client with one connection, and whether the window of that is held.
///
/// # Errors
/// The certificate or netrc file cannot be read.
pub(super) fn open(http: &HttpSettings) -> Result<(HttpClient, bool), TransferError> {
    let window = ReceiveWindow {
        max_window: None,
        is_held: Capabilities::probe().best_lever().holds_window(),
    };
    let client = HttpClient::new(http, 1, Tap::Receive(window))?;
    Ok((client, window.is_held))
}

/// A fetch that is bounded in time. What comes is thrown away.
#[derive(Debug)]
pub(super) struct Fetch {
    clock: Clock,
    at_most: Duration,
    polite_until: Duration,
    /// `None` where nothing holds a download back.
    lever: Option<WindowLever>,
    /// Since the first answer.
    meter: Option<Meter>,
    elapsed: Duration,
}

impl Fetch {
    /// A fetch for `at_most`, which begins now. The connection yields in `polite_share` of
    /// that, if its window `is_held`.
    pub(super) fn new(at_most: Duration, polite_share: f64, is_held: bool) -> Self {
        Self {
            clock: Clock::start(),
            at_most,
            polite_until: at_most.mul_f64(polite_share),
            lever: is_held
                .then(|| WindowLever::new(WindowSettings::default(), &WindowGroup::default())),
            meter: None,
            elapsed: Duration::ZERO,
        }
    }

    /// Fetches; returns whether the end of the file ended it, before the time was up.
    /// `whole` is an answer with the whole file, if there is one already.
    ///
    /// # Errors
    /// Any failure: nothing is tried again.
    pub(super) async fn run(
        &mut self,
        client: &HttpClient,
        source: &RemoteFile,
        whole: Option<Body>,
    ) -> Result<bool, Failure> {
        let fetched = tokio::time::timeout(self.at_most, self.fetch(client, source, whole)).await;
        self.elapsed = self.clock.now();
        // Time being up is how it usually ends.
        fetched.map_or(Ok(false), |fetched| fetched.map(|()| true))
    }

    /// The failure if nothing has arrived in all the time.
    pub(super) fn nothing_arrived(&self) -> Failure {
        let at_most = self.at_most;
        Failure::network(format!(
            "nothing arrived in the {at_most:?} of the measurement"
        ))
    }

    /// What has arrived; `None` before anything has.
    pub(super) fn meter(&self) -> Option<&Meter> {
        self.meter.as_ref()
    }

    /// How long it took.
    pub(super) fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// What the connection has seen of its path; `None` where no window is held.
    pub(super) fn findings(&self) -> Option<PathFindings> {
        self.lever.as_ref()?.findings()
    }

    /// Fetches the whole file, in as few answers as the server allows.
    async fn fetch(
        &mut self,
        client: &HttpClient,
        source: &RemoteFile,
        whole: Option<Body>,
    ) -> Result<(), Failure> {
        let mut offset = 0;
        if let Some(mut body) = whole {
            return self.receive(&mut body, &mut offset, source.total).await;
        }
        let total = source.total.unwrap_or(0);
        while offset < total {
            let mut body = client.range(source, offset..total, None).await?;
            let end = offset + body.expected.unwrap_or(total - offset);
            self.receive(&mut body, &mut offset, Some(end)).await?;
            // Else a server that sends nothing is asked for ever.
            if offset < end {
                return Err(Failure::server("the answer ended too early"));
            }
        }
        Ok(())
    }

    async fn receive(
        &mut self,
        body: &mut Body,
        offset: &mut u64,
        end: Option<u64>,
    ) -> Result<(), Failure> {
        let connection = body.connection.take();
        if let (Some(lever), Some(connection)) = (&mut self.lever, &connection)
            && let Err(error) = lever.restart(connection)
        {
            tracing::debug!(%error, "receive window not known");
        }
        let mut tick = tokio::time::interval(WINDOW_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let piece = tokio::select! {
                biased;
                _ = tick.tick() => {
                    let now = self.clock.now();
                    let order = if now < self.polite_until { FlowTarget::YIELD } else { FlowTarget::FREE };
                    let remaining = end.map(|end| end.saturating_sub(*offset));
                    if let (Some(lever), Some(connection)) = (&mut self.lever, &connection)
                        && let Err(error) = lever.update(now, connection, order, remaining)
                    {
                        tracing::debug!(%error, "receive window not set");
                        self.lever = None;
                    }
                    continue;
                }
                piece = body.next() => piece?,
            };
            let Some(piece) = piece else { return Ok(()) };
            let now = self.clock.now();
            let polite_until = self.polite_until;
            let meter = self
                .meter
                .get_or_insert_with(|| Meter::new(now, polite_until));
            meter.arrived(now, piece.len() as u64);
            *offset += piece.len() as u64;
        }
    }
}
