//! A download that was asked for: one run of the engine, in the lane that it shares
//! with the jobs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dalbe::receive_window::ReceiverPolicy;
use fairbat::download::{self, Outcome, Share, Stop};
use fairbat::error::ErrorKind;
use fairbat::event::{Event, RetryCause, TimedEvent};
use fairbat::lane::Lane;
use fairbat::settings::{FileAllocation, RetrySettings, Settings, Target, TransferRequest};
use fairbat::transport::RateLimit;
use jiff::Timestamp;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use url::Url;

use super::lanes::{authority, patient};
use crate::config::Agent;
use crate::store::{StoreError, StoreErrorKind};
use crate::sync::{Progress, RunProblem, RunReport};

/// How often a failure is tried again before a run ends; a later run goes on.
const TRIES: u32 = 20;

/// What a download is to do.
#[derive(Debug, Clone)]
pub(super) struct Download {
    pub(super) url: Url,
    pub(super) to: PathBuf,
    pub(super) deadline: Option<Timestamp>,
    pub(super) seed: u64,
    /// What it shares with the jobs.
    pub(super) lane: Lane,
    /// Ceilings of that.
    pub(super) ceilings: Vec<Arc<RateLimit>>,
}

/// Runs it until it is there, fails, or `stop` becomes true.
pub(super) async fn download(
    download: Download,
    agent: &Agent,
    ledger: Progress,
    mut stop: watch::Receiver<bool>,
) -> RunReport {
    let member = download
        .lane
        .enter(&authority(&download.url), download.deadline);
    ledger.joins(&member);
    let share = Share {
        member,
        passage: ledger.passage(&download.ceilings),
        chunks: ledger.chunks(),
    };
    let settings = Settings {
        http: patient(None),
        split: 1,
        max_connections: agent.connections,
        weight: agent.min_weight,
        receiver: ReceiverPolicy::default(),
        chunk_size: None,
        file_allocation: FileAllocation::Falloc,
        retry: RetrySettings {
            limit: Some(TRIES),
            limit_before_contact: Some(TRIES),
            base: Duration::from_millis(500),
            cap: Duration::from_secs(60),
        },
        limit_rate: agent.limit_rate,
        resume: true,
        max_time: None,
        seed: download.seed,
    };
    let request = TransferRequest {
        url: download.url,
        target: target(&download.to),
        deadline: download.deadline,
        checksum: None,
    };
    let engine_stop = Stop::new();
    let (events, seen) = unbounded_channel();
    let mut report = RunReport::default();
    let run = download::run_in(share, settings, request, engine_stop.clone(), events);
    let stopping = async {
        // Whoever could stop it is gone with the daemon.
        let _ = stop.wait_for(|stop| *stop).await;
        engine_stop.interrupt();
        std::future::pending::<()>().await;
    };
    let mut said = Said::default();
    let outcome = tokio::select! {
        outcome = async { tokio::join!(run, listen(seen, &ledger, &mut said)).0 } => outcome,
        () = stopping => unreachable!("it never resolves"),
    };
    report.count(&ledger.standing());
    match outcome {
        Ok(outcome) => match outcome.outcomes.first() {
            Some(Outcome::Done { .. }) => report.sent = 1,
            Some(Outcome::Failed(kind)) => report.problem = Some(problem(*kind, said)),
            None => report.problem = Some(RunProblem::Lost),
        },
        Err(error) => {
            let refused = StoreError::new(StoreErrorKind::Refused, error.message);
            report.problem = Some(RunProblem::Store(refused.with_hint(error.hint)));
        }
    }
    report
}

fn target(to: &Path) -> Target {
    if to.as_os_str().as_encoded_bytes().ends_with(b"/") {
        Target::Directory(to.to_owned())
    } else {
        Target::File(to.to_owned())
    }
}

/// What the engine has told.
#[derive(Debug, Default)]
struct Said {
    error: Option<(String, String)>,
}

async fn listen(mut events: UnboundedReceiver<TimedEvent>, ledger: &Progress, said: &mut Said) {
    while let Some(TimedEvent { event, .. }) = events.recv().await {
        match event {
            Event::Control(control) => {
                ledger.is_at(control.bytes_done, control.bytes_total);
            }
            Event::Done { bytes, .. } => ledger.is_at(bytes, Some(bytes)),
            Event::File {
                bytes,
                resumed_bytes,
                ..
            } => ledger.is_at(resumed_bytes, bytes),
            Event::Retry { cause, .. } => ledger.retried(match cause {
                RetryCause::Network => StoreErrorKind::Network,
                RetryCause::Server => StoreErrorKind::Server,
                RetryCause::Busy => StoreErrorKind::Busy,
                RetryCause::Changed => StoreErrorKind::Integrity,
            }),
            Event::Error { message, hint, .. } => said.error = Some((message, hint)),
            _ => {}
        }
    }
}

fn problem(kind: ErrorKind, said: Said) -> RunProblem {
    let (message, hint) = said.error.unwrap_or_default();
    let kind = match kind {
        ErrorKind::Interrupted => return RunProblem::Stopped,
        ErrorKind::Network => StoreErrorKind::Network,
        ErrorKind::Server => StoreErrorKind::Server,
        ErrorKind::Disk => return RunProblem::Disk(message),
        ErrorKind::Refused | ErrorKind::Integrity | ErrorKind::MaxTime | ErrorKind::Other => {
            StoreErrorKind::Refused
        }
    };
    RunProblem::Store(StoreError::new(kind, message).with_hint(hint))
}
