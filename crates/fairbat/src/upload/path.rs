//! A path of an upload: its client, its lane, and the request that is under way there.
//!
//! A path has one request with a body at a time. So all that the peer acknowledges belongs to that
//! request. Parts follow each other on one connection, whose lever knows the path by then.

use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dalbe::sender::SenderLevers;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use super::UploadSettings;
use super::carried::PeriodRate;
use super::connection::{UploadConnection, UploadConnections};
use super::source::{UploadFile, body};
use crate::arrival::WayState;
use crate::clock::Clock;
use crate::download::pieces::{ChunkSizer, FinishedChunk};
use crate::download::ways::{self, WayMeter};
use crate::error::{ErrorKind, TransferError};
use crate::event::Protocol;
use crate::http::Failure;
use crate::lane::core::Core;
use crate::lane::handle::control_periods;
use crate::lane::settings::Mode;
use crate::lane::{Lane, LaneSample, LaneSettings, Member, Service};
use crate::machine::LaneDirection;
use crate::retry::Backoff;
use crate::settings::{HttpSettings, PathSettings};
use crate::transport::{
    HttpClient, NewConnection, Put, PutAnswer, RateLimit, ReceiveWindow, SendTap, Tap,
};

/// A path. An upload without named interfaces has one: the routes of the system.
#[derive(Debug)]
pub(super) struct UploadPath {
    /// What the user says of it; `None` for the routes of the system.
    pub(super) settings: Option<PathSettings>,
    /// Whether its connection stays open for the next part.
    keeps_connection: bool,
    /// The connections that `sending` opens.
    opened: tokio::sync::Mutex<UnboundedReceiver<NewConnection>>,
    pub(super) lane: Lane,
    /// The upload's place in the lane.
    pub(super) member: Member,
    clock: Clock,
    stall_timeout: Option<Duration>,
    limits: Vec<Arc<RateLimit>>,
    /// What holds its rate, if its bytes cost money.
    pub(super) metered: Option<Arc<RateLimit>>,
    /// How many paths of the lane have a connection.
    connected: Arc<AtomicUsize>,
    pub(super) usage: watch::Sender<PathUsage>,
    state: Mutex<UploadPathState>,
}

/// What a path is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathUsage {
    /// The machine does not have it now.
    Gone,
    /// A metered path that is not needed now. It begins no part, and ends the one it has.
    Spared,
    Used,
}

/// How a path stands.
#[derive(Debug)]
pub(super) struct UploadPathState {
    /// The client for requests without a body.
    pub(super) asking: HttpClient,
    /// The client for requests with a body, one at a time.
    sending: HttpClient,
    /// The connection of the request under way, once it is open.
    pub(super) open: UploadConnections,
    /// How much of its body has been handed to the connection.
    handed: Option<watch::Receiver<u64>>,
    /// The length of its body, and what has arrived of it, bytes.
    length: u64,
    pub(super) arrived: u64,
    /// Bytes that have arrived over the path in all.
    pub(super) bytes: u64,
    /// What the path has carried in the last control period.
    pub(super) rate: PeriodRate,
    /// Whether it waits for its connection.
    pub(super) is_waiting: bool,
    /// Whether it waits after a failure.
    pub(super) backs_off: bool,
    /// Whether it has failed as often as it may.
    pub(super) is_exhausted: bool,
    /// Whether a connection was ever open.
    pub(super) is_known: bool,
    /// What the last one spoke.
    pub(super) protocol: Option<Protocol>,
    /// The part of what is left that it is to carry, 0 to 1.
    pub(super) share: f64,
    pub(super) backoff: Backoff,
    pub(super) meter: WayMeter,
    pub(super) sample: LaneSample,
}

impl UploadPath {
    /// A path with a client of its own, and a lane unless an earlier path has the same bottleneck.
    ///
    /// # Errors
    /// An unreadable certificate or netrc file, or limits that leave no connection.
    pub(super) fn open(
        upload: &UploadSettings,
        settings: Option<PathSettings>,
        before: &[Self],
        (host, service): (&str, Service),
        (run_limit, levers): (Option<&Arc<RateLimit>>, &Arc<SenderLevers>),
        clock: Clock,
    ) -> Result<Self, TransferError> {
        let own_limit = settings.as_ref().and_then(|path| path.limit_rate);
        let shares = |other: &&Self| {
            let both = other.settings.as_ref().zip(settings.as_ref());
            both.is_some_and(|(one, other)| one.shares_bottleneck(other))
        };
        let (lane, connected) = match before.iter().find(shares) {
            Some(other) => (other.lane.clone(), Arc::clone(&other.connected)),
            None => (own_lane(upload, settings.as_ref(), clock)?, Arc::default()),
        };
        let (opened, connections) = unbounded_channel();
        let tap = Tap::Send(SendTap {
            levers: Arc::clone(levers),
            opened,
        });
        // A server says nothing while a body comes, so silence alone does not end a request:
        // the upload sees whether its body moves.
        let http = HttpSettings {
            stall_timeout: None,
            local_end: settings.as_ref().map(|path| path.local_end.clone()),
            ..upload.http.clone()
        };
        let is_metered = settings.as_ref().is_some_and(|path| path.is_metered);
        // What a deadline needs of it is known later.
        let metered = is_metered.then(|| Arc::new(RateLimit::new(u64::MAX)));
        let own_limit = own_limit.map(RateLimit::new).map(Arc::new);
        let limits = run_limit.into_iter().chain(&own_limit).chain(&metered);
        // One of several paths may send parts.
        let keeps_connection = upload.paths.len() > 1;
        let sending = HttpClient::new(&http, u32::from(keeps_connection), tap)?;
        let untouched = Tap::Receive(ReceiveWindow::default());
        Ok(Self {
            keeps_connection,
            opened: tokio::sync::Mutex::new(connections),
            member: lane.enter(host, service),
            clock,
            stall_timeout: upload.http.stall_timeout,
            limits: limits.cloned().collect(),
            connected,
            usage: watch::Sender::new(match is_metered {
                true => PathUsage::Spared,
                false => PathUsage::Used,
            }),
            state: Mutex::new(UploadPathState {
                asking: sending.with_connections(1, untouched)?,
                sending,
                open: UploadConnections::default(),
                handed: None,
                length: 0,
                arrived: 0,
                bytes: 0,
                rate: PeriodRate::default(),
                is_waiting: false,
                backs_off: false,
                is_exhausted: false,
                is_known: false,
                protocol: None,
                share: 1.0,
                backoff: Backoff::new(upload.retry),
                meter: WayMeter::new(ChunkSizer::new(None)),
                sample: *lane.samples().borrow(),
            }),
            settings,
            metered,
            lane,
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, UploadPathState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it leaves the machine by, as the user names it.
    pub(super) fn name(&self) -> String {
        let named = self
            .settings
            .as_ref()
            .map(|path| path.local_end.to_string());
        named.unwrap_or_else(|| "the routes of the system".to_owned())
    }

    /// Whether it may begin a part.
    pub(super) fn is_used(&self) -> bool {
        *self.usage.borrow() == PathUsage::Used
    }

    /// Whether the machine has it.
    pub(super) fn is_up(&self) -> bool {
        *self.usage.borrow() != PathUsage::Gone
    }

    /// Resolves when it may begin a part.
    pub(super) async fn used(&self) {
        self.becomes(|usage| usage == PathUsage::Used).await;
    }

    /// Resolves when the machine has it.
    pub(super) async fn up(&self) {
        self.becomes(|usage| usage != PathUsage::Gone).await;
    }

    /// Resolves when the machine has it no more, with what that means for a request.
    pub(super) async fn gone(&self) -> Failure {
        self.becomes(|usage| usage == PathUsage::Gone).await;
        Failure::network("the machine does not have the path any more")
    }

    async fn becomes(&self, is_so: impl Fn(PathUsage) -> bool) {
        let mut usage = self.usage.subscribe();
        // The sender lives as long as this does.
        let _ = usage.wait_for(|now| is_so(*now)).await;
    }

    /// What is known of it, to predict when something arrives.
    pub(super) fn arrival(&self) -> WayState {
        let state = self.state();
        let left = state.length.saturating_sub(state.arrived);
        let limits = self.limits.iter().map(|limit| limit.rate() as f64);
        let (rtt, rate) = (state.meter.rtt, state.meter.sizer.rate());
        ways::state(rtt, rate, left).at_most(limits.fold(f64::INFINITY, f64::min))
    }

    /// Notes what has arrived since the last call.
    pub(super) fn measure(&self) {
        let now = self.clock.now();
        let mut guard = self.state();
        let state = &mut *guard;
        let Some(handed) = &state.handed else {
            return;
        };
        let (bytes, carried) = state.open.measure(now, *handed.borrow());
        state.arrived += bytes;
        state.bytes += bytes;
        if let Some(rtt) = state.rtt() {
            state.meter.note_rtt(rtt);
        }
        drop(guard);
        self.member.moved(carried);
    }

    /// The request under way is over. What has arrived of it counts no more here.
    pub(super) fn settle(&self, has_succeeded: bool) {
        {
            let mut state = self.state();
            state.handed = None;
            (state.length, state.arrived) = (0, 0);
            if !has_succeeded {
                state.open.discard_unsent();
            }
        }
        if !(has_succeeded && self.keeps_connection) {
            self.leave_connections();
        }
    }

    /// Uses none of the connections any more that are open now.
    pub(super) fn leave_connections(&self) {
        let is_lost = {
            let mut state = self.state();
            if self.keeps_connection {
                state.asking.leave_connections();
                state.sending.leave_connections();
            }
            state.open.clear()
        };
        // Others of the lane may go on.
        if is_lost && self.connected.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.lane
                .with_core(|core, _| core.controller.disconnected());
        }
    }

    /// A request begins: what it goes over, if that is open already.
    fn reopen(&self, opened: &mut UnboundedReceiver<NewConnection>) {
        while let Ok(connection) = opened.try_recv() {
            // One that another client has opened is of no use.
            if self.keeps_connection && self.state().open.carrier().is_some() {
                self.connected(connection);
            }
        }
        self.state().open.begin(self.clock.now());
    }

    fn connected(&self, connection: NewConnection) {
        let mut state = self.state();
        let is_first = state.open.carrier().is_none();
        if is_first && self.connected.fetch_add(1, Ordering::Relaxed) == 0 {
            self.lane.with_core(Core::connected);
        }
        // So the host exists.
        state.backoff.answered();
        state.is_known = true;
        state.protocol = Some(connection.end.protocol());
        state.open.add(connection, self.clock.now());
    }

    /// Sends these bytes of the file in one request; the answer may be any. The caller has a permit,
    /// and settles the request afterwards.
    pub(super) async fn send(
        &self,
        put: &Put<'_>,
        source: &Arc<UploadFile>,
        range: Range<u64>,
    ) -> Result<PutAnswer, Failure> {
        let clock = self.clock;
        let began = clock.now();
        let length = range.end - range.start;
        let mut opened = self.opened.lock().await;
        self.reopen(&mut opened);
        let (body, reading, handed) = body(Arc::clone(source), range, self.limits.clone());
        {
            let mut state = self.state();
            (state.length, state.arrived) = (length, 0);
            state.handed = Some(handed);
        }
        let mut reading = pin!(reading);
        let client = self.state().sending.clone();
        let mut answering = pin!(client.put(put, length, body));
        let mut is_read = false;
        let mut tick = control_periods();
        loop {
            let update_at = self.state().open.update_at();
            tokio::select! {
                biased;
                // First: an error of the file explains why the request broke off.
                read = &mut reading, if !is_read => {
                    is_read = true;
                    read.map_err(Failure::Fatal)?;
                }
                Some(connection) = opened.recv() => self.connected(connection),
                answer = &mut answering => {
                    self.measure();
                    let duration = clock.now().saturating_sub(began);
                    return self.state().ended(answer, length, duration);
                }
                _ = tick.tick() => {
                    self.measure();
                    self.check_stall(length)?;
                }
                () = clock.sleep_until(update_at) => {
                    self.measure();
                    let target = self.lane.with_core(|core, now| core.flow_target(now));
                    self.state().open.follow(clock.now(), target);
                }
            }
        }
    }

    fn check_stall(&self, length: u64) -> Result<(), Failure> {
        let now = self.clock.now();
        let mut guard = self.state();
        let state = &mut *guard;
        let (Some(handed), Some(limit)) = (&state.handed, self.stall_timeout) else {
            return Ok(());
        };
        if state.open.is_stalled(now, *handed.borrow(), length, limit) {
            return Err(Failure::network(if state.arrived < length {
                "the server fell silent: it takes no more data"
            } else {
                "the server fell silent: it has all that was sent and does not answer"
            }));
        }
        Ok(())
    }
}

impl UploadPathState {
    /// Whether it sends, or could.
    pub(super) fn is_ready(&self) -> bool {
        !self.backs_off && !self.is_waiting
    }

    /// What it sends in a few seconds, bytes, once that is known.
    pub(super) fn longest_part(&self) -> Option<u64> {
        let sizer = &self.meter.sizer;
        sizer.rate().map(|_| sizer.natural_length().get())
    }

    fn rtt(&self) -> Option<Duration> {
        self.open.carrier().and_then(UploadConnection::rtt)
    }

    /// Learns from a request that has ended. A success that comes before the whole body can have
    /// arrived is no success. Of a connection whose socket was not found, only the bytes handed to
    /// it are known.
    fn ended(
        &mut self,
        answer: Result<PutAnswer, Failure>,
        length: u64,
        duration: Duration,
    ) -> Result<PutAnswer, Failure> {
        // A connection that failed may have brought an answer first.
        let answer = answer.or_else(|failure| self.open.unread_answer().ok_or(failure))?;
        let handed = self.handed.as_ref().map_or(0, |handed| *handed.borrow());
        let arrived = self.open.carrier().map_or(handed, |open| open.acked);
        if !answer.status.is_success() {
            return Ok(answer);
        }
        if arrived < length {
            return Err(Failure::server(format!(
                "the server answered {} before it had all that was sent",
                answer.status
            )));
        }
        self.meter.finished(FinishedChunk {
            bytes: length,
            duration,
            gap: self.rtt().unwrap_or_default(),
        });
        Ok(answer)
    }
}

/// w_min of a path.
pub(super) fn weight(upload: &UploadSettings, path: Option<&PathSettings>) -> f64 {
    path.and_then(|path| path.weight).unwrap_or(upload.weight)
}

/// A lane for this path and those that share its bottleneck. They have the least of their weights,
/// and the sum of their limits if each of them has one.
fn own_lane(
    upload: &UploadSettings,
    path: Option<&PathSettings>,
    clock: Clock,
) -> Result<Lane, TransferError> {
    let shares = |other: &&PathSettings| path.is_some_and(|path| path.shares_bottleneck(other));
    let behind: Vec<&PathSettings> = upload.paths.iter().filter(shares).collect();
    let weights = behind.iter().map(|path| weight(upload, Some(path)));
    let all_limits: Option<Vec<u64>> = behind.iter().map(|path| path.limit_rate).collect();
    let together = all_limits.filter(|limits| !limits.is_empty());
    let together = together.map(|limits| limits.into_iter().fold(0, u64::saturating_add));
    let settings = LaneSettings {
        weight: weights.reduce(f64::min).unwrap_or(upload.weight),
        limit_rate: upload.limit_rate.into_iter().chain(together).min(),
        is_held: true,
        controller: upload.controller,
        ..LaneSettings::new(1)
    };
    let lane = Lane::of_run(settings, Mode::SingleConnection, clock)
        .map_err(|error| TransferError::new(ErrorKind::Other, error.to_string()))?;
    if let Some(machine) = upload.machine.clone() {
        machine.join(&lane, LaneDirection::Push);
    }
    Ok(lane)
}
