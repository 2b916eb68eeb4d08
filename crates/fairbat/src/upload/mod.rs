//! Uploads: one file, by one HTTP PUT (RFC 9110 section 9.3.4) over one
//! connection, which yields to other traffic as far as a deadline allows.
//!
//! A PUT can be sent again at any time: the server has the old file or the
//! new one. So a try that broke starts over, and nothing is resumed. Two ways exist to send
//! only the rest, and neither is safe yet:
//! - A partial PUT (`Content-Range`, RFC 9110 section 14.5). A server that does not know it
//!   replaces the file by its tail, and nothing tells that beforehand. One that knows it
//!   (Apache's mod_dav) writes into the file that others read.
//! - The resumable uploads of draft-ietf-httpbis-resumable-upload. Their header fields change
//!   from draft to draft, and no common server takes them where it takes a PUT.
//!
//! `send` holds the upload and its tries, `source` the file and the request body,
//! `flow` the connection, and `answer` what servers answer.

mod answer;
mod flow;
mod send;
mod source;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dalbe::sender::{SenderLevers, SenderPolicy};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use url::Url;

use crate::clock::Clock;
use crate::download::{Outcome, Report, Stop};
use crate::error::{ErrorKind, TransferError};
use crate::event::TimedEvent;
use crate::settings::{HttpSettings, RetrySettings};

pub use self::answer::target_url;
use self::send::Upload;
use crate::transport::{HttpClient, SendTap};

/// One file to send.
#[derive(Debug, Clone)]
pub struct UploadRequest {
    /// The file; a regular one.
    pub file: PathBuf,
    /// Where to: `http` or `https`. Credentials in it are used for its host
    /// only and never shown.
    pub url: Url,
    /// Soft deadline: the moment by which the server should have it.
    pub deadline: Option<jiff::Timestamp>,
    /// Upload only where no file is yet.
    pub create_only: bool,
}

/// What a caller may choose for an upload.
#[derive(Debug, Clone)]
pub struct UploadSettings {
    /// How to speak to servers. Silence counts while sent bytes are not acknowledged.
    pub http: HttpSettings,
    /// w_min: weight that the connection has at least, 0.02 (yield to
    /// anybody) to 1 (never yield).
    pub weight: f64,
    /// Which congestion control decides, where there is a choice.
    pub sender: SenderPolicy,
    /// How failures are retried. Each try starts over, so no try makes progress.
    pub retry: RetrySettings,
    /// Limit on the rate, byte/s.
    pub limit_rate: Option<u64>,
    /// Hard limit on the duration of the run.
    pub max_time: Option<Duration>,
    /// Seed of everything random (retry jitter): same seed, same choices.
    pub seed: u64,
}

/// Uploads a file: the server has taken it, or it is given up, or stopped.
///
/// Events go to `events`; a caller need not listen. The first `interrupt` of
/// `stop` ends the run, and with it the request.
///
/// # Errors
/// Only when nothing could be started at all: an unreadable certificate or
/// netrc file. Whatever happens to the upload is in the report.
pub async fn run(
    settings: UploadSettings,
    request: UploadRequest,
    stop: Stop,
    events: UnboundedSender<TimedEvent>,
) -> Result<Report, TransferError> {
    let clock = Clock::start();
    let levers = Arc::new(SenderLevers::open(settings.sender));
    let (opened, connections) = unbounded_channel();
    let tap = SendTap {
        levers: Arc::clone(&levers),
        opened,
    };
    let client = HttpClient::for_uploads(&settings.http, tap)?;
    let max_time = settings.max_time;
    let mut upload = Upload::new(settings, request, client, clock, events)
        .map_err(|error| TransferError::new(ErrorKind::Other, error.to_string()))?;
    upload.start(&levers);
    let ended = tokio::select! {
        biased;
        kind = stop.reason(max_time) => Err(stopped(kind)),
        ended = upload.send(connections) => ended,
    };
    let outcome = match ended {
        Ok(status) => Outcome::Done {
            late: upload.done(status) == Some(false),
        },
        Err(error) => {
            let kind = error.kind;
            upload.failed(error);
            Outcome::Failed(kind)
        }
    };
    Ok(Report {
        outcomes: vec![outcome],
    })
}

fn stopped(kind: ErrorKind) -> TransferError {
    let message = match kind {
        ErrorKind::MaxTime => "stopped by --max-time",
        _ => "interrupted",
    };
    TransferError::new(kind, message).with_hint("the same command starts the upload over")
}
