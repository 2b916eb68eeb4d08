//! Our library within this process, as `fairbat get` calls it when nothing
//! else is said.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fs, io};

use dalbe::receive_window::ReceiverPolicy;
use dalbe::weight::{ControllerPolicy, MIN_WEIGHT};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use url::Url;

use crate::arrivals::Arrival;
use crate::contender::kind::Admitting;
use crate::contender::process::Over;
use crate::contender::served::FILE;
use crate::contender::servers::Origin;
use crate::contender::site;
use crate::contender::site::Site;
use crate::contender::tools;
use crate::machine::Clock;
use crate::samples::{BackgroundRecord, ControlSample};
use crate::stream_law::{stream_law, undamped};
use fairbat::download;
use fairbat::download::{Arrivals, Report, RunMode, Stop};
use fairbat::error::TransferError;
use fairbat::event::{Event, TimedEvent};
use fairbat::lane::AdmissionSettings;
use fairbat::settings::{
    FileAllocation, HttpSettings, KnownFile, RetrySettings, Settings, Target, TransferRequest,
};

/// How long the engine may take to stop in good order.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Runs the engine, in the network namespace of this thread, until it is done
/// or the run is over.
pub(crate) fn run(site: &Site, origin: &Origin, over: &Over) -> Result<BackgroundRecord, String> {
    let runtime = runtime(2)?;
    if !site.is_time(over) {
        return Ok(BackgroundRecord::default());
    }
    let (sender, mut receiver) = unbounded_channel();
    let stop = Stop::default();
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
    let mut record = tools::record(said, started);
    record.failure = record.failure.or(failure);
    // Not as dropping does it, which waits for what blocks.
    runtime.shutdown_timeout(GRACE);
    Ok(record)
}

/// So many threads in the network namespace of this one: also those
/// that it makes later are inside, for they begin where the thread is that makes
/// them.
pub(crate) fn runtime(threads: usize) -> Result<Runtime, String> {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| format!("start threads: {error}"))
}

/// Waits for an engine that is done or has been told to stop; what went wrong with
/// it, apart from its transfers.
pub(crate) fn ended(
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
pub(crate) fn settings(site: &Site) -> Settings {
    Settings {
        paths: Vec::new(),
        http: HttpSettings {
            connect_timeout: Some(Duration::from_secs(30)),
            stall_timeout: Some(Duration::from_secs(20)),
            ..HttpSettings::default()
        },
        split: 1,
        max_connections: 4,
        weight: site.background.weight.unwrap_or(MIN_WEIGHT),
        max_weight: 1,
        receiver: ReceiverPolicy::default(),
        controller: ControllerPolicy::default(),
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
            max_retry_after: Duration::from_secs(3600),
        },
        limit_rate: None,
        max_size: None,
        machine: None,
        resume: true,
        max_time: None,
        seed: site.seed,
    }
}

fn request(site: &Site, origin: &Origin) -> TransferRequest {
    TransferRequest {
        url: Url::parse(&origin.url()).expect("nginx has a URL"),
        mirrors: Vec::new(),
        target: Target::File(site.download.join(FILE)),
        deadline: site.background.deadline_s.map(from_now),
        checksum: None,
        known: KnownFile::default(),
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the shell around the engine: a deadline is a moment on the wall clock"
)]
fn from_now(seconds: f64) -> jiff::Timestamp {
    jiff::Timestamp::now() + Duration::from_secs_f64(seconds)
}

/// m_max: more than the law asks for in any scenario that is stable.
pub(crate) const MAX_CONNECTIONS: u32 = 64;

/// The jobs of a run, each a file of holes at the server.
pub(crate) struct Jobs {
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) urls: Vec<Url>,
}

impl Jobs {
    /// Draws them all and makes their files.
    pub(crate) fn lay_out(site: &Site, origin: &Origin) -> io::Result<Self> {
        let arrivals = site::arrivals(site);
        let mut urls = Vec::new();
        for (number, arrival) in arrivals.iter().enumerate() {
            let name = name(number);
            File::create(site.origin.join(&name))?.set_len(arrival.bytes)?;
            origin.add(site, &name)?;
            urls.push(Url::parse(&origin.url_of(&name)).map_err(io::Error::other)?);
        }
        Ok(Self { arrivals, urls })
    }
}

/// Name of the file of a job.
pub(crate) fn name(number: usize) -> String {
    format!("job-{number}")
}

/// Runs the engine, in the network namespace of this thread, until the run is
/// over.
pub(crate) fn run_queue(
    site: &Site,
    admitting: Admitting,
    jobs: &Jobs,
    over: &Over,
) -> Result<BackgroundRecord, String> {
    let runtime = runtime(1)?;
    if !site.is_time(over) {
        return Ok(BackgroundRecord::default());
    }
    let (sender, requests) = unbounded_channel();
    let (events, happening) = unbounded_channel();
    let stop = Stop::default();
    let arrivals = Arrivals {
        requests,
        law: law(admitting),
    };
    let run = download::run(
        queue_settings(site, admitting),
        RunMode::Stream(arrivals),
        stop.clone(),
        events,
    );
    let (clock, started) = (site.clock, Arc::new(OnceLock::new()));
    // The engine's own clock starts when it runs, which may be some time later.
    let starting = Arc::clone(&started);
    let running = runtime.spawn(async move {
        let _ = starting.set(clock.seconds());
        run.await
    });
    let arriving: Vec<_> = jobs
        .arrivals
        .iter()
        .enumerate()
        .zip(&jobs.urls)
        .map(|((number, arrival), url)| {
            let request = TransferRequest {
                url: url.clone(),
                mirrors: Vec::new(),
                target: Target::File(site.download.join(name(number))),
                deadline: None,
                checksum: None,
                known: KnownFile::default(),
            };
            (arrival.at, request)
        })
        .collect();
    runtime.spawn(arrive(arriving, sender, site.clock));
    let watching = runtime.spawn(watch(happening, started));
    // It may have ended well before, when all jobs were done.
    over.comes_before(|| false);
    let now = site.clock.seconds();
    stop.interrupt();
    let failure = ended(&runtime, running);
    let told = runtime.block_on(async { tokio::time::timeout(GRACE, watching).await });
    runtime.shutdown_timeout(GRACE);
    let Ok(Ok(told)) = told else {
        return Err("the engine's events have no end".to_owned());
    };
    Ok(told.record(&jobs.arrivals, now, failure))
}

/// Sends each job when it is due.
async fn arrive(
    jobs: Vec<(Duration, TransferRequest)>,
    requests: UnboundedSender<TransferRequest>,
    clock: Clock,
) {
    for (at, request) in jobs {
        tokio::time::sleep_until(clock.at(at).into()).await;
        if requests.send(request).is_err() {
            return;
        }
    }
}

/// What the engine has told.
#[derive(Debug, Default)]
struct QueueTold {
    control: Vec<ControlSample>,
    /// When each job was done, s, by the name of its file.
    done: HashMap<String, f64>,
    /// Of all jobs, at the last look.
    bytes: u64,
    /// Of those that are done, which may be since then.
    bytes_whole: u64,
    failure: Option<String>,
}

/// Takes note of what happens, and throws away what has come: the files of a run
/// are in memory.
async fn watch(
    mut happening: UnboundedReceiver<TimedEvent>,
    started: Arc<OnceLock<f64>>,
) -> QueueTold {
    let mut told = QueueTold::default();
    while let Some(TimedEvent { t, event }) = happening.recv().await {
        let started = started.get().expect("nothing happens before");
        match event {
            Event::Control(control) => {
                told.bytes = control.bytes_done;
                told.control.push(ControlSample {
                    t: started + t,
                    n: control.n,
                    m: control.m,
                    active: u32::try_from(control.active).unwrap_or(u32::MAX),
                    w: control.w,
                    zeta: control.zeta,
                    rate: control.rate,
                });
            }
            Event::Done { path, bytes, .. } => {
                told.bytes_whole += bytes;
                let _ = fs::remove_file(&path);
                let name = path.file_name().unwrap_or_default();
                told.done
                    .insert(name.to_string_lossy().into_owned(), started + t);
            }
            // The end of the lab's run is not a failure.
            Event::Error { kind, message, .. }
                if kind != fairbat::error::ErrorKind::Interrupted =>
            {
                told.failure.get_or_insert(message);
            }
            _ => {}
        }
    }
    told
}

impl QueueTold {
    fn record(self, arrivals: &[Arrival], now: f64, failure: Option<String>) -> BackgroundRecord {
        let done = |number| self.done.get(&name(number)).copied();
        let ends: Vec<_> = (0..arrivals.len()).map(done).collect();
        BackgroundRecord {
            jobs: site::fetches(arrivals, &ends, now),
            control: self.control,
            bytes: Some(self.bytes.max(self.bytes_whole)),
            failure: failure.or(self.failure),
            ..BackgroundRecord::default()
        }
    }
}

fn law(admitting: Admitting) -> AdmissionSettings {
    // The paper names no least limit: where less than one connection is enough
    // there is none at times, or with a lever one that yields.
    let law = AdmissionSettings {
        m_min: MIN_WEIGHT,
        m_max: MAX_CONNECTIONS,
        ..stream_law()
    };
    let fixed = |connections| AdmissionSettings {
        m_min: f64::from(connections),
        m_max: connections,
        ..law
    };
    let bounded = |other| AdmissionSettings {
        m_min: law.m_min,
        m_max: law.m_max,
        ..other
    };
    match admitting {
        Admitting::Plain | Admitting::Levers => law,
        Admitting::Undamped => bounded(undamped()),
        Admitting::Paper => bounded(AdmissionSettings::paper()),
        Admitting::One => fixed(1),
        Admitting::Four => fixed(4),
    }
}

/// Those of a download, but for what makes a job a chunk and a chunk plain TCP.
fn queue_settings(site: &Site, admitting: Admitting) -> Settings {
    let download = settings(site);
    Settings {
        max_connections: MAX_CONNECTIONS,
        weight: match admitting {
            Admitting::Levers => download.weight,
            Admitting::Plain
            | Admitting::Undamped
            | Admitting::Paper
            | Admitting::One
            | Admitting::Four => 1.0,
        },
        file_allocation: FileAllocation::None,
        resume: false,
        ..download
    }
}
