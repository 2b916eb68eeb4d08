//! Uploads: one file, by one HTTP PUT (RFC 9110 section 9.3.4) over one
//! connection, which yields to other traffic as far as a deadline allows. Over several paths, a file
//! goes in parts.
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
//! A FAIRBAT server takes uploads in parts, which it keeps apart until all have come. So an upload
//! over several paths sends parts where the server takes them. Elsewhere it is one PUT over one
//! path.
//!
//! `send` holds the upload and its tries, `path` a path with the request that is under way there,
//! `several` an upload over several paths, `parts` the parts that wait there, `report` what others are told,
//! `carried` the rate of a path, `waits` what an upload waits for,
//! `source` the file and the request body, `connection` what carries it, and `answer` what servers
//! answer.

mod answer;
mod carried;
mod connection;
mod parts;
mod path;
mod report;
mod send;
mod several;
mod source;
mod waits;

use std::path::PathBuf;
use std::time::Duration;

use dalbe::sender::SenderPolicy;
use dalbe::weight::ControllerPolicy;
use url::Url;

use crate::machine::MachineLane;
use crate::settings::{HttpSettings, PathSettings, RetrySettings};

pub use self::answer::target_url;
pub use self::send::run;

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
    /// The paths out of the machine. Several are used at once if the server takes parts; empty leaves
    /// it to the routes of the system.
    pub paths: Vec<PathSettings>,
    /// w_min: weight that the connection has at least, 0.02 (yield to
    /// anybody) to 1 (never yield).
    pub weight: f64,
    /// Which congestion control decides, where there is a choice.
    pub sender: SenderPolicy,
    /// What raises the weight for a deadline.
    pub controller: ControllerPolicy,
    /// How failures are retried. Each try starts over, so no try makes progress.
    pub retry: RetrySettings,
    /// Limit on the rate, byte/s.
    pub limit_rate: Option<u64>,
    /// The lane of the machine to take part in, where an agent runs; `None` is for a lane of its
    /// own.
    pub machine: Option<MachineLane>,
    /// Hard limit on the duration of the run.
    pub max_time: Option<Duration>,
    /// Seed of everything random (retry jitter): same seed, same choices.
    pub seed: u64,
}
