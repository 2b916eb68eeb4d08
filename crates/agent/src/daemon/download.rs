//! One run of an ad-hoc download: a transfer of the download engine in the lane that
//! it shares with the jobs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dalbe::receive_window::ReceiverPolicy;
use fairbat::download::{self, LanePlace, Outcome, RunMode, Stop};
use fairbat::error::ErrorKind;
use fairbat::event::{Event, RetryCause, TimedEvent};
use fairbat::lane::{Lane, Service};
use fairbat::settings::{
    Checksum, FileAllocation, KnownFile, Mirror, Settings, Target, TransferRequest,
};
use fairbat::transport::{HttpClient, RateLimit};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use url::Url;

use super::lanes::{authority, http_settings};
use crate::config::AgentConfig;
use crate::store::{StoreError, StoreErrorKind};
use crate::sync::{RETRIES, RunProblem, RunProgress, RunReport};

/// The number of the request that a download makes, as its progress has it.
const DOWNLOAD: u64 = 0;

/// What a download moves, and with what.
#[derive(Debug, Clone)]
pub(crate) struct Download {
    pub(crate) url: Url,
    /// Other URLs of the same file.
    pub(crate) mirrors: Vec<Url>,
    /// What the file must hash to.
    pub(crate) checksum: Option<Checksum>,
    /// The file, or the directory to save it in if the path ends with a slash.
    pub(crate) to: PathBuf,
    /// How it is served.
    pub(crate) service: Service,
    pub(crate) seed: u64,
    /// The lane of all pulls.
    pub(crate) lane: Lane,
    /// The client of all downloads that are served like this.
    pub(crate) client: Arc<HttpClient>,
    pub(crate) rate_limits: Vec<Arc<RateLimit>>,
}

/// Downloads until the file is complete, the download fails, or `stop` becomes true.
pub(crate) async fn download(
    download: Download,
    agent: &AgentConfig,
    progress: RunProgress,
    mut stop: watch::Receiver<bool>,
) -> RunReport {
    let member = download
        .lane
        .enter(&authority(&download.url), download.service);
    progress.join(&member);
    let place = LanePlace {
        member,
        client: download.client,
        context: progress.context(&download.rate_limits),
        chunks: progress.chunks(),
    };
    let settings = Settings {
        paths: Vec::new(),
        http: http_settings(None),
        split: 1,
        max_connections: agent.connections,
        weight: agent.min_weight,
        max_weight: agent.max_weight,
        receiver: ReceiverPolicy::default(),
        controller: agent.controller,
        chunk_size: None,
        file_allocation: FileAllocation::Falloc,
        retry: RETRIES,
        limit_rate: agent.limit_rate,
        max_size: None,
        machine: None,
        resume: true,
        max_time: None,
        seed: download.seed,
    };
    let request = TransferRequest {
        url: download.url,
        mirrors: download.mirrors.into_iter().map(named).collect(),
        target: target(&download.to),
        deadline: download.service.deadline(),
        checksum: download.checksum,
        known: KnownFile::default(),
    };
    let run_stop = Stop::default();
    let (events, seen) = unbounded_channel();
    let mut report = RunReport::default();
    let run = download::run(
        settings,
        RunMode::InLane(place, Box::new(request)),
        run_stop.clone(),
        events,
    );
    let stopping = async {
        // An error means that the daemon is gone, and with it every way to stop.
        let _ = stop.wait_for(|stop| *stop).await;
        run_stop.interrupt();
        std::future::pending::<()>().await;
    };
    let mut last_error = None;
    let outcome = tokio::select! {
        outcome = async { tokio::join!(run, follow(seen, &progress, &mut last_error)).0 } => outcome,
        () = stopping => unreachable!("it never resolves"),
    };
    report.count(&progress);
    match outcome {
        Ok(outcome) => match outcome.outcomes.first() {
            Some(Outcome::Done { .. }) => report.sent = 1,
            Some(Outcome::Failed(kind)) => report.problem = Some(problem(*kind, last_error)),
            None => report.problem = Some(RunProblem::Lost),
        },
        Err(error) => {
            let refused = StoreError::new(StoreErrorKind::Refused, error.message);
            report.problem = Some(RunProblem::Store(refused.with_hint(error.hint)));
        }
    }
    report
}

fn named(url: Url) -> Mirror {
    Mirror {
        url,
        is_named: true,
    }
}

/// A file, with its directory, which is made if it is missing; or a directory.
fn target(to: &Path) -> Target {
    let is_directory = to.as_os_str().as_encoded_bytes().ends_with(b"/");
    match (to.parent(), to.file_name()) {
        (Some(directory), Some(file)) if !is_directory => Target::FileIn {
            directory: directory.to_owned(),
            file: file.into(),
        },
        _ => Target::Directory(to.to_owned()),
    }
}

/// Message and hint of an error.
type ErrorText = (String, String);

/// Counts the events of the engine, and keeps its last error.
async fn follow(
    mut events: UnboundedReceiver<TimedEvent>,
    progress: &RunProgress,
    last_error: &mut Option<ErrorText>,
) {
    while let Some(TimedEvent { event, .. }) = events.recv().await {
        match event {
            Event::Control(control) => {
                if control.bytes_done > progress.totals().bytes_done {
                    progress.settled(DOWNLOAD);
                }
                progress.is_at(control.bytes_done, control.bytes_total);
            }
            Event::Done { bytes, .. } => progress.is_at(bytes, Some(bytes)),
            Event::File {
                bytes,
                resumed_bytes,
                ..
            } => progress.is_at(resumed_bytes, bytes),
            Event::Retry { reason, cause, .. } => {
                let kind = match cause {
                    RetryCause::Network => StoreErrorKind::Network,
                    RetryCause::Server => StoreErrorKind::Server,
                    RetryCause::Busy => StoreErrorKind::Busy,
                    RetryCause::Changed => StoreErrorKind::Integrity,
                };
                progress.retried(DOWNLOAD, StoreError::new(kind, reason));
            }
            Event::Error { message, hint, .. } => *last_error = Some((message, hint)),
            _ => {}
        }
    }
}

fn problem(kind: ErrorKind, error: Option<ErrorText>) -> RunProblem {
    let (message, mut hint) = error.unwrap_or_default();
    if kind == ErrorKind::TooLarge {
        // The agent has no such flag.
        hint = "fetch it with `fairbat get --max-size`".into();
    }
    let kind = match kind {
        ErrorKind::Interrupted => return RunProblem::Stopped,
        ErrorKind::Network => StoreErrorKind::Network,
        ErrorKind::Server => StoreErrorKind::Server,
        ErrorKind::Disk => return RunProblem::Disk(message),
        ErrorKind::Refused
        | ErrorKind::Integrity
        | ErrorKind::TooLarge
        | ErrorKind::MaxTime
        | ErrorKind::Other => StoreErrorKind::Refused,
    };
    RunProblem::Store(StoreError::new(kind, message).with_hint(hint))
}
