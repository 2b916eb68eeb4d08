//! The scenario's jobs through our own queue: they come at random, wait there, are
//! admitted by the law and moved by the engine's workers, all within this process.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dalbe::weight::MIN_WEIGHT;
use fairbat::download::{self, Arrivals, RunMode, Stop};
use fairbat::event::{Event, TimedEvent};
use fairbat::lane::AdmissionSettings;
use fairbat::settings::{FileAllocation, Settings, Target, TransferRequest};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use url::Url;

use super::download::failed;
use super::engine::{self, GRACE};
use super::jobs;
use super::kinds::Admitting;
use super::origin::Origin;
use super::over::Over;
use super::site::Site;
use crate::arrivals::Arrival;
use crate::clock::Clock;
use crate::record::{BackgroundRecord, ControlSample};
use crate::tuning;

/// m_max: more than the law asks for in any scenario that is stable.
const MOST: u32 = 64;

/// Longer than any job, bytes: a job is one chunk.
const WHOLE: u64 = 1 << 40;

/// The jobs of a run, each a file of holes at the server.
pub(super) struct Jobs {
    arrivals: Vec<Arrival>,
    urls: Vec<Url>,
}

impl Jobs {
    /// Draws them all and makes their files.
    pub(super) fn lay_out(site: &Site, origin: &Origin) -> io::Result<Self> {
        let arrivals = jobs::arrivals(site);
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

fn name(number: usize) -> String {
    format!("job-{number}")
}

/// Runs the engine, in the network namespace of this thread, until the run is
/// over.
pub(super) fn run(site: &Site, admitting: Admitting, jobs: &Jobs, over: &Over) -> BackgroundRecord {
    let runtime = match engine::runtime(1) {
        Ok(runtime) => runtime,
        Err(failure) => return failed(failure),
    };
    if !site.is_time(over) {
        return BackgroundRecord::default();
    }
    let (sender, requests) = unbounded_channel();
    let (events, happening) = unbounded_channel();
    let stop = Stop::new();
    let arrivals = Arrivals {
        requests,
        law: law(admitting),
    };
    let run = download::run(
        settings(site, admitting),
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
                target: Target::File(site.download.join(name(number))),
                deadline: None,
                checksum: None,
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
    let failure = engine::ended(&runtime, running);
    let seen = runtime.block_on(async { tokio::time::timeout(GRACE, watching).await });
    runtime.shutdown_timeout(GRACE);
    let Ok(Ok(seen)) = seen else {
        return failed("the engine's events have no end".to_owned());
    };
    seen.record(&jobs.arrivals, now, failure)
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
struct Seen {
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
async fn watch(mut happening: UnboundedReceiver<TimedEvent>, started: Arc<OnceLock<f64>>) -> Seen {
    let mut seen = Seen::default();
    while let Some(TimedEvent { t, event }) = happening.recv().await {
        let started = started.get().expect("nothing happens before");
        match event {
            Event::Control(control) => {
                seen.bytes = control.bytes_done;
                seen.control.push(ControlSample {
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
                seen.bytes_whole += bytes;
                let _ = fs::remove_file(&path);
                let name = path.file_name().unwrap_or_default();
                seen.done
                    .insert(name.to_string_lossy().into_owned(), started + t);
            }
            // The end of the lab's run is not a failure.
            Event::Error { kind, message, .. }
                if kind != fairbat::error::ErrorKind::Interrupted =>
            {
                seen.failure.get_or_insert(message);
            }
            _ => {}
        }
    }
    seen
}

impl Seen {
    fn record(self, arrivals: &[Arrival], now: f64, failure: Option<String>) -> BackgroundRecord {
        let done = |number| self.done.get(&name(number)).copied();
        let ends: Vec<_> = (0..arrivals.len()).map(done).collect();
        BackgroundRecord {
            jobs: jobs::fetches(arrivals, &ends, now),
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
        m_max: MOST,
        ..AdmissionSettings::immediate()
    };
    let fixed = |connections| AdmissionSettings {
        m_min: f64::from(connections),
        m_max: connections,
        ..law
    };
    match admitting {
        Admitting::Plain | Admitting::Levers => law,
        Admitting::Undamped => AdmissionSettings {
            m_min: law.m_min,
            m_max: law.m_max,
            ..tuning::undamped()
        },
        Admitting::One => fixed(1),
        Admitting::Four => fixed(4),
    }
}

/// Those of a download, but for what makes a job a chunk and a chunk plain TCP.
fn settings(site: &Site, admitting: Admitting) -> Settings {
    let download = engine::settings(site);
    Settings {
        max_connections: MOST,
        weight: match admitting {
            Admitting::Levers => download.weight,
            Admitting::Plain | Admitting::Undamped | Admitting::One | Admitting::Four => 1.0,
        },
        chunk_size: Some(WHOLE),
        file_allocation: FileAllocation::None,
        resume: false,
        ..download
    }
}
