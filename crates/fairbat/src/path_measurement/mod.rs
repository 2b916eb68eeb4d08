//! Measures a path before a download, over one connection that yields to others for a while
//! and then does not: the rate of a link, and the kind of its bottleneck, do not show while
//! yielding. The bytes are thrown away.
//!
//! - [`survey`]: the size of the file, and the rates. [`forecast`]: whether a deadline can
//!   be met with them.
//! - [`diagnosis`]: the kind of bottleneck.
//! - `fetch`: the connection. `meter`: what arrives over it.

pub mod diagnosis;
mod fetch;
pub mod forecast;
mod meter;

use std::time::Duration;

use url::Url;

use self::fetch::{Fetch, open};
use self::forecast::Rates;
use crate::error::TransferError;
use crate::http::Failure;
use crate::settings::HttpSettings;
use crate::transport::SourceUrl;

/// Share of the time in which the connection yields. In the rest it is one best-effort flow.
const POLITE_SHARE: f64 = 0.75;

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
    let (client, is_held) = open(http)?;
    let error = |failure: Failure| failure.into_error("leave the measurement out with --measure 0");
    let at = SourceUrl::named(url.clone());
    // An answer that carries the whole file is dropped unread.
    let source = client.probe(&at, 1, None).await.map_err(error)?.source;
    let ranges = source.version.is_some();
    let is_measured = ranges && source.total > Some(0) && !at_most.is_zero();
    let measurement = if is_measured {
        let mut fetch = Fetch::new(at_most, POLITE_SHARE, is_held);
        fetch.run(&client, &source, None).await.map_err(error)?;
        let measurement = measured(&fetch);
        let nothing = || error(fetch.nothing_arrived());
        Some(measurement.ok_or_else(nothing)?)
    } else {
        None
    };
    Ok(PathMeasurement {
        bytes: source.total,
        ranges,
        measurement,
    })
}

fn measured(fetch: &Fetch) -> Option<Measurement> {
    let (meter, elapsed) = (fetch.meter()?, fetch.elapsed());
    Some(Measurement {
        rates: meter.rates(elapsed)?,
        bytes: meter.total(),
        elapsed,
    })
}
