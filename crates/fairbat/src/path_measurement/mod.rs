//! A look at a file before it is downloaded: its size, what the path gives to
//! one connection that yields to others, and, for a moment at the end, what it
//! gives to one that does not: a link's rate does not show while yielding.
//! Bytes are thrown away; nothing here knows files or deadlines.

pub mod forecast;
mod meter;

use std::time::{Duration, Instant};

use dalbe::capability::Capabilities;
use dalbe::receive_window::{WindowLever, WindowSettings};
use dalbe::weight::FlowTarget;
use tokio::time::MissedTickBehavior;
use url::Url;

use self::meter::Meter;
use crate::error::{ErrorKind, TransferError};
use crate::http::Failure;
use crate::path_measurement::forecast::Rates;
use crate::settings::HttpSettings;
use crate::transport::{Body, HttpClient, ReceiveWindow, Source};

/// Part of the time in which the connection yields; in the rest it is one
/// best-effort flow.
const POLITE_SHARE: f64 = 0.75;

/// How often the receive window is looked after.
const BRAKE_EVERY: Duration = Duration::from_millis(20);

/// What a look at a file has found.
#[derive(Debug, Clone)]
pub struct PathMeasurement {
    /// Size in bytes, if the server told it.
    pub bytes: Option<u64>,
    /// Whether the server serves ranges of it that can be trusted.
    pub ranges: bool,
    /// What was measured; `None` when there was nothing to measure with: no
    /// ranges, no bytes, or no time.
    pub measurement: Option<Measurement>,
}

/// What came of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Measurement {
    /// What the path gave.
    pub rates: Rates,
    /// Bytes fetched.
    pub bytes: u64,
    /// How long it took, connection set-up included.
    pub elapsed: Duration,
}

/// Asks for the file at `url`, then fetches from it over one connection, for
/// `at_most` or until all of it has come. Zero measures nothing.
///
/// # Errors
/// As the server and the network have it: nothing is tried again.
pub async fn survey(
    http: &HttpSettings,
    url: &Url,
    at_most: Duration,
) -> Result<PathMeasurement, TransferError> {
    let window = ReceiveWindow {
        most: None,
        is_held: Capabilities::probe().best_lever().holds_window(),
    };
    let client = HttpClient::new(http, 1, window)?;
    // An answer that carries the whole file is dropped unread.
    let source = client.probe(url, None).await.map_err(final_error)?.source;
    let ranges = source.version.is_some();
    let measurement = match source.total.filter(|&total| ranges && total > 0) {
        Some(total) if !at_most.is_zero() => Some(
            measure(&client, &source, total, at_most, window.is_held)
                .await
                .map_err(final_error)?,
        ),
        _ => None,
    };
    Ok(PathMeasurement {
        bytes: source.total,
        ranges,
        measurement,
    })
}

async fn measure(
    client: &HttpClient,
    source: &Source,
    total: u64,
    at_most: Duration,
    is_held: bool,
) -> Result<Measurement, Failure> {
    let mut measuring = Measuring {
        stopwatch: Stopwatch::start(),
        polite_until: at_most.mul_f64(POLITE_SHARE),
        lever: is_held.then(|| WindowLever::new(WindowSettings::default())),
        meter: None,
    };
    let fetched = measuring.fetch(client, source, total);
    // Time being up is how a measurement usually ends.
    if let Ok(fetched) = tokio::time::timeout(at_most, fetched).await {
        fetched?;
    }
    let elapsed = measuring.stopwatch.elapsed();
    let measured = measuring.meter.and_then(|meter| {
        Some(Measurement {
            rates: meter.rates(elapsed)?,
            bytes: meter.total(),
            elapsed,
        })
    });
    measured.ok_or_else(|| {
        Failure::network(format!(
            "nothing arrived in the {at_most:?} of the measurement"
        ))
    })
}

/// A measurement under way.
#[derive(Debug)]
struct Measuring {
    stopwatch: Stopwatch,
    polite_until: Duration,
    /// `None` where nothing holds a download back.
    lever: Option<WindowLever>,
    /// Since the first answer.
    meter: Option<Meter>,
}

impl Measuring {
    /// Fetches the whole file, in as few ranges as the server allows.
    async fn fetch(
        &mut self,
        client: &HttpClient,
        source: &Source,
        total: u64,
    ) -> Result<(), Failure> {
        let mut offset = 0;
        while offset < total {
            let mut body = client.range(source, offset..total, None).await?;
            let end = offset + body.expected.unwrap_or(total - offset);
            self.receive(&mut body, &mut offset, end).await?;
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
        end: u64,
    ) -> Result<(), Failure> {
        let socket = body.socket.take();
        if let (Some(lever), Some(socket)) = (&mut self.lever, &socket)
            && let Err(error) = lever.restart(socket)
        {
            tracing::debug!(%error, "receive window not known");
        }
        let mut tick = tokio::time::interval(BRAKE_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let piece = tokio::select! {
                biased;
                _ = tick.tick() => {
                    let now = self.stopwatch.elapsed();
                    let order = if now < self.polite_until { FlowTarget::YIELD } else { FlowTarget::FREE };
                    if let (Some(lever), Some(socket)) = (&mut self.lever, &socket)
                        && let Err(error) = lever.update(now, socket, order, Some(end - *offset))
                    {
                        tracing::debug!(%error, "receive window not set");
                        self.lever = None;
                    }
                    continue;
                }
                piece = body.next() => piece?,
            };
            let Some(piece) = piece else { return Ok(()) };
            let now = self.stopwatch.elapsed();
            let polite_until = self.polite_until;
            let meter = self
                .meter
                .get_or_insert_with(|| Meter::new(now, polite_until));
            meter.arrived(now, piece.len() as u64);
            *offset += piece.len() as u64;
        }
    }
}

/// What a failure means when nothing is tried again.
fn final_error(failure: Failure) -> TransferError {
    match failure {
        Failure::Fatal(error) | Failure::Expired(error) => error,
        Failure::Transient(transient) => {
            let hint = match transient.retry_after {
                Some(wait) => format!("try again in {} s", wait.as_secs()),
                None => transient.hint.to_owned(),
            };
            TransferError::new(transient.kind, transient.reason).with_hint(hint)
        }
        Failure::Changed(reason) => {
            TransferError::new(ErrorKind::Server, reason).with_hint("try again")
        }
        Failure::WholeFile => TransferError::new(
            ErrorKind::Server,
            "the server sent the whole file instead of a range",
        )
        .with_hint("leave the measurement out with --measure 0"),
    }
}

/// The time since it was started, which never goes back.
#[derive(Debug)]
struct Stopwatch(Instant);

impl Stopwatch {
    #[allow(
        clippy::disallowed_methods,
        reason = "the shell around the meter: the one place of a survey that reads a clock"
    )]
    fn start() -> Self {
        Self(Instant::now())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
