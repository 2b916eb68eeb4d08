//! Our library within this process, as `fairbat get` calls it when nothing
//! else is said.

use std::time::Duration;

use dalbe::receive_window::ReceiverPolicy;
use dalbe::weight::MIN_WEIGHT;
use fairbat::download::{self, Report, RunMode, Stop};
use fairbat::error::TransferError;
use fairbat::settings::{
    FileAllocation, HttpSettings, RetrySettings, Settings, Target, TransferRequest,
};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinHandle;
use url::Url;

use super::download::failed;
use super::events;
use super::origin::Origin;
use super::over::Over;
use super::site::{FILE, Site};
use crate::record::BackgroundRecord;

/// How long the engine may take to stop in good order.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Runs the engine, in the network namespace of this thread, until it is done
/// or the run is over.
pub(super) fn run(site: &Site, origin: &Origin, over: &Over) -> BackgroundRecord {
    let runtime = match runtime(2) {
        Ok(runtime) => runtime,
        Err(failure) => return failed(failure),
    };
    if !site.is_time(over) {
        return BackgroundRecord::default();
    }
    let (sender, mut receiver) = unbounded_channel();
    let stop = Stop::new();
    let started = site.clock.seconds();
    let run = download::run(
        settings(site),
        RunMode::Batch(vec![request(site, origin)]),
        stop.clone(),
        sender,
    );
    let run = runtime.spawn(run);
    if over.comes_before(|| run.is_finished()) {
        stop.interrupt();
    }
    let failure = ended(&runtime, run);
    let said = std::iter::from_fn(|| receiver.try_recv().ok())
        .filter_map(|event| serde_json::to_value(event).ok());
    let mut record = events::record(said, started);
    record.failure = record.failure.or(failure);
    // Not as dropping does it, which waits for what blocks.
    runtime.shutdown_timeout(GRACE);
    record
}

/// So many threads for an engine in the network namespace of this one: also those
/// that it makes later are inside, for they begin where the thread is that makes
/// them.
pub(super) fn runtime(threads: usize) -> Result<Runtime, String> {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| format!("start threads for the engine: {error}"))
}

/// Waits for an engine that is done or has been told to stop; what went wrong with
/// it, apart from its transfers.
pub(super) fn ended(
    runtime: &Runtime,
    engine: JoinHandle<Result<Report, TransferError>>,
) -> Option<String> {
    match runtime.block_on(async { tokio::time::timeout(GRACE, engine).await }) {
        Ok(Ok(result)) => result.err().map(|error| error.to_string()),
        Ok(Err(panic)) => Some(format!("the engine: {panic}")),
        Err(_) => Some(format!("the engine did not stop within {GRACE:?}")),
    }
}

/// The defaults of `fairbat get` (crates/cli/src/settings.rs).
pub(super) fn settings(site: &Site) -> Settings {
    Settings {
        http: HttpSettings {
            connect_timeout: Some(Duration::from_secs(30)),
            stall_timeout: Some(Duration::from_secs(20)),
            ..HttpSettings::default()
        },
        split: 1,
        max_connections: 4,
        weight: site.background.weight.unwrap_or(MIN_WEIGHT),
        receiver: ReceiverPolicy::default(),
        chunk_size: None,
        // Where there is no end the file is far larger than what will be
        // there of it, and its space is memory.
        file_allocation: match site.end() {
            Some(_) => FileAllocation::Falloc,
            None => FileAllocation::None,
        },
        retry: RetrySettings {
            limit: Some(20),
            limit_before_contact: Some(5),
            base: Duration::from_millis(500),
            cap: Duration::from_secs(30),
        },
        limit_rate: None,
        resume: true,
        max_time: None,
        seed: site.seed,
    }
}

fn request(site: &Site, origin: &Origin) -> TransferRequest {
    TransferRequest {
        url: Url::parse(&origin.url()).expect("nginx has a URL"),
        target: Target::File(site.download.join(FILE)),
        deadline: site.background.deadline_s.map(from_now),
        checksum: None,
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the shell around the engine: a deadline is a moment on the wall clock"
)]
fn from_now(seconds: f64) -> jiff::Timestamp {
    jiff::Timestamp::now() + Duration::from_secs_f64(seconds)
}
