//! What a caller gives to a run, and what it gets back.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use crate::error::ErrorKind;
use crate::lane::{AdmissionSettings, Member};
use crate::settings::TransferRequest;
use crate::transport::RequestContext;

/// What a run moves, and which lane it moves it in.
#[derive(Debug)]
pub enum RunMode {
    /// One batch in a lane of its own: by deadline where there is one, else at the lowest
    /// priority.
    Batch(Vec<TransferRequest>),
    /// Jobs without deadlines that keep arriving, in a lane of their own.
    Stream(Arrivals),
    /// One transfer in a lane that it shares with others. Each of its connections waits
    /// for its turn there, and weighs what the lane says. Deadline and host are those
    /// that the member entered with.
    InLane(LanePlace, TransferRequest),
}

/// Jobs that keep arriving, each a transfer without a deadline, until no sender is left.
///
/// A job waits until m allows another connection; first come, first served. Where the
/// law's m_min is below one connection and a lever can hold the flows, there is always
/// one connection, which yields when m allows none. Deadlines of jobs have no effect. Once
/// no more jobs can come, m falls no further, and what is left has at least one whole
/// connection.
///
/// A job is meant to be one chunk. One that is longer than `chunk_size` counts as one in n
/// until its size is known, and as many from then on.
///
/// The report, and what each second costs, grow with every job, so a run is for thousands
/// of them and not for millions. The report of a stopped run leaves out the jobs that had
/// not been taken from the channel.
#[derive(Debug)]
pub struct Arrivals {
    /// Where they come from.
    pub requests: UnboundedReceiver<TransferRequest>,
    /// The law that admits them. Its period is that of the beginning: as soon as chunks
    /// have ended, T follows the time that they take.
    pub law: AdmissionSettings,
}

/// A place in a lane that is shared with others.
#[derive(Debug)]
pub struct LanePlace {
    /// The place.
    pub member: Member,
    /// The rate limits that the lane keeps to, and where bytes are counted.
    pub context: RequestContext,
    /// Where chunks are counted: requests that have brought bytes of the file.
    pub chunks: Arc<AtomicU64>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Report {
    /// One outcome per request, in their order.
    pub outcomes: Vec<Outcome>,
}

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The file is in its place.
    Done {
        /// Whether that was after the soft deadline.
        late: bool,
    },
    /// It is not; the part file may be there still.
    Failed(ErrorKind),
}

/// Ends a run from outside. Clones act on the same run.
#[derive(Debug, Clone)]
pub struct Stop {
    interrupted: Arc<watch::Sender<bool>>,
}

impl Stop {
    /// A stop that has not been asked for.
    #[must_use]
    pub fn new() -> Self {
        Self {
            interrupted: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Asks the run to end soon, and to leave every transfer resumable.
    pub fn interrupt(&self) {
        self.interrupted.send_replace(true);
    }

    /// Resolves with the reason when the run has to end early.
    pub(crate) async fn reason(self, max_time: Option<Duration>) -> ErrorKind {
        let time_is_up = async {
            match max_time {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let mut interrupted = self.interrupted.subscribe();
        tokio::select! {
            // The sender lives in `self`, so waiting cannot fail.
            _ = interrupted.wait_for(|stop| *stop) => ErrorKind::Interrupted,
            () = time_is_up => ErrorKind::MaxTime,
        }
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
