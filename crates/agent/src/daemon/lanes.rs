//! The two lanes of the agent, their measurements, and the stores they reach.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dalbe::receive_window::ReceiverPolicy;
use fairbat::download;
use fairbat::error::TransferError;
use fairbat::lane::{Lane, LaneSettings, Service};
use fairbat::machine::LaneDirection;
use fairbat::settings::HttpSettings;
use fairbat::transport::{HttpClient, LaneClient, Lever, LeverPolicy, RateLimit};
use jiff::Timestamp;

use crate::config::{self, AgentConfig, Config};
use crate::status::{HistorySample, LaneStatus, StreamStatus};
use crate::store::{self, StoreError, StoreErrorKind};
use crate::sync::LaneStore;

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a server may send and take nothing.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Samples over which the smallest round-trip time counts as that of an empty path:
/// one a second.
const BASE_RTT_SAMPLES: usize = 600;

/// Upper limit of the time between two samples. A longer gap means that the clock was
/// set or that the machine has slept.
const MAX_SAMPLE_GAP: Duration = Duration::from_secs(5);

/// HTTP settings for transfers that may wait. `cacert` is a file with certificate
/// authorities to trust besides those of the system.
pub(crate) fn http_settings(cacert: Option<PathBuf>) -> HttpSettings {
    HttpSettings {
        cacert,
        connect_timeout: Some(CONNECT_TIMEOUT),
        stall_timeout: Some(STALL_TIMEOUT),
        ..HttpSettings::default()
    }
}

/// The lane of one direction, with its lever and its rate limit.
#[derive(Debug)]
pub(crate) struct AgentLane {
    direction: LaneDirection,
    pub(crate) lane: Lane,
    lever: Lever,
    pub(crate) rate_limit: Option<Arc<RateLimit>>,
    wanted: LeverPolicy,
    max_connections: u32,
}

impl AgentLane {
    /// Opens the lane with the best lever that the machine allows.
    pub(crate) fn open(direction: LaneDirection, agent: &AgentConfig) -> Result<Self, String> {
        let wanted = match direction {
            LaneDirection::Push => LeverPolicy::Sender(agent.sender),
            LaneDirection::Pull => LeverPolicy::Receiver(ReceiverPolicy::default()),
        };
        let lever = wanted.best();
        let lane = Lane::start(LaneSettings {
            max_connections: agent.connections,
            weight: agent.min_weight,
            max_weight: agent.max_weight,
            limit_rate: agent.limit_rate,
            is_held: lever.holds(),
            controller: agent.controller,
            stream: agent.stream,
        });
        Ok(Self {
            direction,
            lane: lane.map_err(|error| error.to_string())?,
            lever,
            rate_limit: agent.limit_rate.map(RateLimit::new).map(Arc::new),
            wanted,
            max_connections: agent.connections,
        })
    }

    /// Opens a store by its name, with its present credentials, for transfers that are served
    /// like `service`. Blocking.
    pub(crate) fn open_store(
        &self,
        config: &Config,
        name: &str,
        service: Service,
    ) -> Result<LaneStore, StoreError> {
        let refused = |message: String| StoreError::new(StoreErrorKind::Refused, message);
        let store = config
            .stores
            .get(name)
            .ok_or_else(|| refused(format!("there is no store {name}")))?;
        let variable = |name: &str| std::env::var_os(name);
        let credentials = store
            .read_credentials(name, variable)
            .map_err(|error| StoreError::new(StoreErrorKind::Credentials, error.to_string()))?;
        let http = http_settings(store.cacert().map(Path::to_owned));
        let connections = self.max_connections;
        let client = LaneClient::start(&http, &self.lane, self.wanted, connections, service)
            .map_err(|error| refused(error.message).with_hint(error.hint))?;
        Ok(LaneStore {
            store: store::open(store, &credentials, client)?,
            host: store_host(store),
            lane: self.lane.clone(),
        })
    }
}

/// The clients of ad-hoc downloads. Connections of the stream are ordinary ones from their
/// start, so they do not go to other downloads.
#[derive(Debug)]
pub(crate) struct DownloadClients {
    stream: Arc<HttpClient>,
    others: Arc<HttpClient>,
}

impl DownloadClients {
    pub(crate) fn new(agent: &AgentConfig) -> Result<Self, TransferError> {
        let client = |service| {
            let settings = http_settings(None);
            download::client(&settings, agent.connections, agent.limit_rate, service)
        };
        Ok(Self {
            stream: client(Service::Stream)?,
            others: client(Service::Scavenge)?,
        })
    }

    /// The client for downloads that are served like this.
    pub(crate) fn of(&self, service: Service) -> &Arc<HttpClient> {
        match service {
            Service::Stream => &self.stream,
            Service::ByDeadline(_) | Service::Scavenge => &self.others,
        }
    }
}

/// What is added up of a lane from one second to the next.
#[derive(Debug, Default)]
pub(crate) struct LaneMeter {
    rtts: VecDeque<Duration>,
    yielded_s: f64,
    /// When it was read last.
    at: Option<Timestamp>,
}

impl LaneMeter {
    /// The status of the lane now. Called at least once a second.
    pub(crate) fn status(&mut self, lane: &AgentLane, now: Timestamp) -> LaneStatus {
        let sample = *lane.lane.samples().borrow();
        if let Some(rtt) = sample.rtt {
            if self.rtts.len() == BASE_RTT_SAMPLES {
                self.rtts.pop_front();
            }
            self.rtts.push_back(rtt);
        }
        let base_rtt = self.rtts.iter().min();
        let queue = sample.rtt.zip(base_rtt).map(|(rtt, base)| rtt - *base);
        let since = self.at.replace(now).unwrap_or(now);
        if sample.is_yielding() && lane.lever.holds() {
            let passed = now.duration_since(since).as_secs_f64();
            self.yielded_s += passed.clamp(0.0, MAX_SAMPLE_GAP.as_secs_f64());
        }
        let stream = sample.stream;
        let has_stream = stream.n > 0.0 || stream.active > 0;
        LaneStatus {
            direction: lane.direction,
            lever: lane.lever.name().to_owned(),
            can_yield: lane.lever.holds(),
            sample: HistorySample {
                t: now.as_duration().as_secs_f64(),
                n: sample.n,
                m: sample.m,
                active: sample.active as u64,
                w: sample.w,
                zeta: sample.zeta,
                rate: sample.rate,
                rtt_s: sample.rtt.map(|rtt| rtt.as_secs_f64()),
                queue_s: queue.map(|queue| queue.as_secs_f64()),
                stream_n: has_stream.then_some(stream.n),
                stream_m: has_stream.then_some(stream.m),
            },
            stream: StreamStatus {
                n: stream.n,
                m: stream.m,
                tau: stream.tau,
                w: stream.w,
                active: stream.active as u64,
            },
            window: sample.window,
            g_ms: sample.g_ms,
            foreseen: sample.forecast_rate(),
            yielded_s: self.yielded_s,
            guests: lane.lane.guests() as u64,
            bytes: lane.lane.bytes(),
        }
    }
}

/// The host of a store, as its lane knows it.
fn store_host(store: &config::StoreConfig) -> String {
    match store {
        config::StoreConfig::S3(s3) => match &s3.endpoint {
            Some(endpoint) => authority(endpoint),
            None => format!("s3.{}.amazonaws.com", s3.region),
        },
        config::StoreConfig::Webdav(http) | config::StoreConfig::Fairbat(http) => {
            authority(&http.url)
        }
        config::StoreConfig::Local(local) => local.path.display().to_string(),
    }
}

/// `HOST:PORT` of a URL.
pub(crate) fn authority(url: &url::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
