//! Measures a path before a download: the size of the file, the rate of one connection that
//! yields to others, and, for a moment at the end, the rate of one that does not. The rate of
//! a link does not show while yielding. The bytes are thrown away.

pub mod forecast;

use std::collections::VecDeque;
use std::time::Duration;

use dalbe::capability::Capabilities;
use dalbe::receive_window::{WindowGroup, WindowLever, WindowSettings};
use dalbe::weight::FlowTarget;
use tokio::time::MissedTickBehavior;
use url::Url;

use self::forecast::Rates;
use crate::clock::Clock;
use crate::error::{ErrorKind, TransferError};
use crate::http::Failure;
use crate::settings::HttpSettings;
use crate::transport::{Body, HttpClient, ReceiveWindow, RemoteFile, Tap};

/// Share of the time in which the connection yields. In the rest it is one best-effort flow.
const POLITE_SHARE: f64 = 0.75;

/// How often the receive window is adjusted.
const WINDOW_INTERVAL: Duration = Duration::from_millis(20);

/// The result of a measurement.
#[derive(Debug, Clone)]
pub struct PathMeasurement {
    /// Size in bytes, if the server told it.
    pub bytes: Option<u64>,
    /// Whether the server serves ranges of it that can be trusted.
    pub ranges: bool,
    /// The rates; `None` without ranges, bytes or time to measure with.
    pub measurement: Option<Measurement>,
}

/// The rates of a measurement, and its cost.
#[derive(Debug, Clone, Copy)]
pub struct Measurement {
    /// The rates of the path.
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
/// Any failure of the server or the network: nothing is tried again.
pub async fn survey(
    http: &HttpSettings,
    url: &Url,
    at_most: Duration,
) -> Result<PathMeasurement, TransferError> {
    let window = ReceiveWindow {
        max_window: None,
        is_held: Capabilities::probe().best_lever().holds_window(),
    };
    let client = HttpClient::new(http, 1, Tap::Receive(window))?;
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
    source: &RemoteFile,
    total: u64,
    at_most: Duration,
    is_held: bool,
) -> Result<Measurement, Failure> {
    let mut measuring = Measuring {
        clock: Clock::start(),
        polite_until: at_most.mul_f64(POLITE_SHARE),
        lever: is_held
            .then(|| WindowLever::new(WindowSettings::default(), &WindowGroup::default())),
        meter: None,
    };
    let fetched = measuring.fetch(client, source, total);
    // Time being up is how a measurement usually ends.
    if let Ok(fetched) = tokio::time::timeout(at_most, fetched).await {
        fetched?;
    }
    let elapsed = measuring.clock.now();
    let measured = measuring.meter.and_then(|meter| {
        Some(Measurement {
            rates: meter.rates(elapsed)?,
            bytes: meter.total,
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
    clock: Clock,
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
        source: &RemoteFile,
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
        let mut tick = tokio::time::interval(WINDOW_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let piece = tokio::select! {
                biased;
                _ = tick.tick() => {
                    let now = self.clock.now();
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

/// The error of a failure without another try.
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

/// How long after the first answer what arrives does not count for the mean,
/// s: slow start takes some ten round trips up to common rates, a second at
/// 100 ms.
const WARM_UP: Duration = Duration::from_secs(1);

/// What the highest rate is taken over, s: longer than a round trip and than
/// the bursts that a queue on the way lets through, short enough to find a gap
/// that others leave.
const SHORT_WHILE: Duration = Duration::from_millis(500);

/// Counts what arrives.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// When the first bytes came.
    opened: Duration,
    /// Up to when the mean is taken.
    polite_until: Duration,
    /// Bytes so far.
    total: u64,
    /// Those of them after the warm-up, up to `polite_until`.
    warm: u64,
    /// Those up to `polite_until`.
    polite: u64,
    /// The arrivals of the last short while, and their bytes.
    recent: VecDeque<(Duration, u64)>,
    recent_bytes: u64,
    /// The most bytes that ever arrived within a short while.
    max_short: u64,
}

impl Meter {
    /// A measurement whose first bytes came at `opened`, and whose connection
    /// yields until `polite_until`.
    pub(crate) fn new(opened: Duration, polite_until: Duration) -> Self {
        Self {
            opened,
            polite_until,
            ..Self::default()
        }
    }

    /// So many bytes have arrived at `now`, which never goes back.
    pub(crate) fn arrived(&mut self, now: Duration, bytes: u64) {
        self.total += bytes;
        if now <= self.polite_until {
            self.polite += bytes;
            if now > self.opened + WARM_UP {
                self.warm += bytes;
            }
        }
        self.recent.push_back((now, bytes));
        self.recent_bytes += bytes;
        while let Some(&(at, old)) = self.recent.front()
            && at + SHORT_WHILE <= now
        {
            self.recent.pop_front();
            self.recent_bytes -= old;
        }
        self.max_short = self.max_short.max(self.recent_bytes);
    }

    /// What it comes to at `end`; `None` when nothing has arrived.
    ///
    /// A measurement that ends within a short while after the warm-up counts
    /// from its beginning, connection set-up included: too low is the safer
    /// side.
    pub(crate) fn rates(&self, end: Duration) -> Option<Rates> {
        if self.total == 0 {
            return None;
        }
        let polite_end = end.min(self.polite_until);
        let warm_for = polite_end.saturating_sub(self.opened + WARM_UP);
        let (bytes, time) = if warm_for >= SHORT_WHILE {
            (self.warm, warm_for)
        } else {
            (self.polite, polite_end)
        };
        // Nothing arrives in no time but by a coarse clock.
        let time = time.max(Duration::from_micros(1));
        let polite = bytes as f64 / time.as_secs_f64();
        let peak = self.max_short as f64 / SHORT_WHILE.as_secs_f64();
        Some(Rates {
            polite,
            peak: peak.max(polite),
        })
    }
}

#[cfg(test)]
mod meter_tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Feeds `bytes` every 10 ms from `from` to `to`, in ms.
    fn feed(meter: &mut Meter, from: u32, to: u32, bytes: u64) {
        for ms in (from..to).step_by(10) {
            meter.arrived(MS * (ms + 10), bytes);
        }
    }

    #[test]
    fn the_first_second_does_not_count_for_the_mean() {
        let mut meter = Meter::new(MS * 200, Duration::MAX);
        feed(&mut meter, 200, 1200, 1);
        feed(&mut meter, 1200, 3200, 10);
        let rates = meter.rates(MS * 3200).unwrap();
        assert!((rates.polite - 1000.0).abs() < 1e-9, "{rates:?}");
        assert!((rates.peak - 1000.0).abs() < 1e-9, "{rates:?}");
        assert_eq!(meter.total, 2100);
    }

    #[test]
    fn the_peak_is_the_best_half_second() {
        let mut meter = Meter::new(Duration::ZERO, Duration::MAX);
        feed(&mut meter, 0, 3000, 10);
        feed(&mut meter, 3000, 3500, 50);
        feed(&mut meter, 3500, 11_000, 10);
        let rates = meter.rates(MS * 11_000).unwrap();
        assert!((rates.peak - 5000.0).abs() < 1e-9, "{rates:?}");
        assert!((rates.polite - 1200.0).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn data_without_yielding_counts_only_for_the_peak() {
        let mut meter = Meter::new(Duration::ZERO, MS * 3000);
        feed(&mut meter, 0, 3000, 10);
        feed(&mut meter, 3000, 4000, 50);
        let rates = meter.rates(MS * 4000).unwrap();
        assert!((rates.polite - 1000.0).abs() < 1e-9, "{rates:?}");
        assert!((rates.peak - 5000.0).abs() < 1e-9, "{rates:?}");
        assert_eq!(meter.total, 8000);
    }

    #[test]
    fn silence_after_the_warm_up_counts() {
        let mut meter = Meter::new(Duration::ZERO, Duration::MAX);
        feed(&mut meter, 0, 2000, 10);
        let rates = meter.rates(MS * 5000).unwrap();
        assert!((rates.polite - 250.0).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn a_short_measurement_counts_from_its_beginning() {
        let mut meter = Meter::new(MS * 100, Duration::MAX);
        feed(&mut meter, 100, 200, 100);
        let rates = meter.rates(MS * 200).unwrap();
        assert!((rates.polite - 5000.0).abs() < 1e-9, "{rates:?}");
        assert!((rates.peak - rates.polite).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn no_data_gives_no_rate() {
        assert_eq!(
            Meter::new(Duration::ZERO, Duration::MAX).rates(MS * 5000),
            None
        );
    }

    proptest! {
        #[test]
        fn rates_are_finite_and_the_peak_is_at_least_the_mean(
            opened in 0_u32..3000,
            gaps in prop::collection::vec((0_u32..900, 1_u64..1 << 40), 1..60),
            rest in 0_u32..900,
            polite in 0_u32..60_000,
        ) {
            let mut meter = Meter::new(MS * opened, MS * polite);
            let mut now = opened;
            for (gap, bytes) in gaps {
                now += gap;
                meter.arrived(MS * now, bytes);
            }
            let rates = meter.rates(MS * (now + rest)).unwrap();
            prop_assert!(rates.polite.is_finite() && rates.polite >= 0.0);
            prop_assert!(rates.peak >= rates.polite);
        }
    }
}
