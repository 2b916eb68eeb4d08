//! What kind of bottleneck a path has (`fairbat doctor --path`).

use std::time::Duration;

use dalbe::receive_window::PathFindings;
use url::Url;

use super::fetch::{Fetch, open};
use super::meter::Meter;
use crate::error::TransferError;
use crate::http::Failure;
use crate::settings::HttpSettings;
use crate::transport::SourceUrl;

/// Share of the time in which the connection yields. Then it is one best-effort flow, for
/// long enough to fill most queues more than once: CUBIC comes back to a full queue every
/// 1 to 8 s on paths of up to 20 Mbit/s and 200 ms (RFC 9438, section 4.1).
const POLITE_SHARE: f64 = 0.3;

/// What was seen of a path.
#[derive(Debug, Clone, Copy)]
pub struct PathDiagnosis {
    /// Whether this machine can hold a download back, without which nothing is seen.
    pub is_held: bool,
    /// Size of the file in bytes, if the server told it.
    pub bytes: Option<u64>,
    /// What the connection has seen; `None` if hardly anything came.
    pub findings: Option<PathFindings>,
    /// Whether all of the file came before the time was up.
    pub has_ended: bool,
    /// Bytes fetched.
    pub fetched: u64,
    /// How long that took, connection set-up included.
    pub elapsed: Duration,
}

/// Fetches from the file at `url` over one connection, for `at_most` or until all of it has
/// come.
///
/// # Errors
/// Any failure of the server or the network: nothing is tried again.
pub async fn diagnose(
    http: &HttpSettings,
    url: &Url,
    at_most: Duration,
) -> Result<PathDiagnosis, TransferError> {
    let (client, is_held) = open(http)?;
    let error = |failure: Failure| failure.into_error("try again, or name another file");
    let at = SourceUrl::named(url.clone());
    let probe = client.probe(&at, 1, None).await.map_err(error)?;
    let source = probe.source;
    let mut fetch = Fetch::new(at_most, POLITE_SHARE, is_held);
    let whole = match probe.body {
        None if source.version.is_none() && source.total != Some(0) => {
            client.whole(&at, None).await.map_err(error)?.body
        }
        body => body,
    };
    let has_ended = fetch.run(&client, &source, whole).await.map_err(error)?;
    let fetched = fetch.meter().map_or(0, Meter::total);
    if fetched == 0 && !has_ended {
        return Err(error(fetch.nothing_arrived()));
    }
    Ok(PathDiagnosis {
        is_held,
        bytes: source.total,
        findings: fetch.findings(),
        has_ended,
        fetched,
        elapsed: fetch.elapsed(),
    })
}
