//! An upload from the first try to the last: its state, what it reports, and each try,
//! which sends the whole file in one request.
//!
//! The upload is the only member of its lane. The lane says what the deadline demands and
//! how much the connection weighs; the connection's lever follows.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dalbe::deadline::Deadline;
use dalbe::sender::SenderLevers;
use http::StatusCode;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use url::Url;

use super::answer::{PutOutcome, advice_if_there, verdict};
use super::connection::UploadConnection;
use super::source::{UploadFile, body};
use super::{UploadRequest, UploadSettings};
use crate::blocking::blocking;
use crate::clock::Clock;
use crate::download::{Outcome, Report, Stop};
use crate::error::{ErrorKind, TransferError};
use crate::event::{Control, Event, FileProgress, TimedEvent};
use crate::file_version::FileVersion;
use crate::http::{Failure, without_credentials};
use crate::lane::core::Core;
use crate::lane::handle::control_periods;
use crate::lane::settings::Mode;
use crate::lane::{
    Backlog, EvenPace, Extent, InvalidSettings, Lane, LaneSettings, Member, Service,
};
use crate::machine::LaneDirection;
use crate::retry::Backoff;
use crate::settings::HttpSettings;
use crate::transport::{
    HttpClient, MAX_REDIRECTS, NewConnection, Put, PutAnswer, RateLimit, SendTap, Tap,
};

/// An upload.
#[derive(Debug)]
pub(super) struct Upload {
    settings: UploadSettings,
    request: UploadRequest,
    client: HttpClient,
    clock: Clock,
    limit: Option<Arc<RateLimit>>,
    lane: Lane,
    /// Its place in the lane.
    pub(super) member: Member,
    /// The even pace to the deadline; it starts anew when the wall clock is set.
    even_pace: EvenPace,
    deadline: Option<Deadline>,
    /// What is being uploaded, once it has been opened.
    version: Option<FileVersion>,
    /// Requests that carried the file, the one under way included.
    tries: u32,
    /// Whether it waits for its connection.
    pub(super) is_waiting: bool,
    /// The URL as events show it.
    pub(super) url: String,
    pub(super) backoff: Backoff,
    pub(super) rng: StdRng,
    /// Bytes that have arrived in this try.
    pub(super) done: u64,
    events: UnboundedSender<TimedEvent>,
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
    let tap = Tap::Send(SendTap {
        levers: Arc::clone(&levers),
        opened,
    });
    // A server says nothing while a body comes, so silence alone does not end a request:
    // the upload sees whether its body moves. One request to a connection: all that its peer
    // acknowledges belongs to that request.
    let without_timeout = HttpSettings {
        stall_timeout: None,
        ..settings.http.clone()
    };
    let client = HttpClient::new(&without_timeout, 0, tap)?;
    let max_time = settings.max_time;
    let mut upload = Upload::new(settings, request, client, clock, events)
        .map_err(|error| TransferError::new(ErrorKind::Other, error.to_string()))?;
    upload.emit(Event::Sending {
        urls: vec![upload.url.clone()],
        lever: levers.kind(),
        sender: levers.policy().filter(|_| upload.settings.weight < 1.0),
        controller: upload.settings.controller,
        weight: upload.settings.weight,
    });
    let ended = tokio::select! {
        biased;
        reason = stop.reason(max_time) => {
            Err(reason.with_hint("the same command starts the upload over"))
        }
        ended = upload.send(connections) => ended,
    };
    let outcome = match ended {
        Ok(status) => Outcome::Done {
            late: upload.done(status) == Some(false),
        },
        Err(error) => {
            let kind = error.kind;
            upload.emit(Event::failed(upload.url.clone(), error));
            Outcome::Failed(kind)
        }
    };
    let (outcomes, cut_off) = (vec![outcome], None);
    Ok(Report { outcomes, cut_off })
}

impl Upload {
    fn new(
        settings: UploadSettings,
        request: UploadRequest,
        client: HttpClient,
        clock: Clock,
        events: UnboundedSender<TimedEvent>,
    ) -> Result<Self, InvalidSettings> {
        let limits = LaneSettings {
            weight: settings.weight,
            limit_rate: settings.limit_rate,
            is_held: true,
            controller: settings.controller,
            ..LaneSettings::new(1)
        };
        let lane = Lane::of_run(limits, Mode::SingleConnection, clock)?;
        if let Some(machine) = settings.machine.clone() {
            machine.join(&lane, LaneDirection::Push);
        }
        let host = request.url.host_str().unwrap_or_default();
        let member = lane.enter(host, Service::of_batch(request.deadline));
        Ok(Self {
            limit: settings.limit_rate.map(RateLimit::new).map(Arc::new),
            deadline: lane.with_core(|core, _| core.deadline(member.id())),
            even_pace: EvenPace::new(Duration::ZERO, 0),
            lane,
            member,
            version: None,
            tries: 0,
            is_waiting: false,
            url: without_credentials(&request.url).into(),
            backoff: Backoff::new(settings.retry),
            rng: StdRng::seed_from_u64(settings.seed),
            done: 0,
            settings,
            request,
            client,
            clock,
            events,
        })
    }

    /// Tries until the server has taken the file; returns its answer.
    ///
    /// # Errors
    /// The server refuses it, or the file cannot be read.
    async fn send(
        &mut self,
        mut connections: UnboundedReceiver<NewConnection>,
    ) -> Result<StatusCode, TransferError> {
        let mut url = self.request.url.clone();
        let mut redirects = 0;
        loop {
            let answer = self.attempt(&url, &mut connections).await;
            self.lane
                .with_core(|core, _| core.controller.disconnected());
            let decided = answer.and_then(|answer| {
                let user = self.client.identification(Some(&self.request.url), &url);
                let verdict = verdict(&answer, &user, &url, &self.request.file, self.tries)?;
                Ok((answer.status, verdict))
            });
            match decided {
                Ok((status, PutOutcome::Taken)) => return Ok(status),
                Ok((_, PutOutcome::Elsewhere(next))) if redirects < MAX_REDIRECTS => {
                    tracing::info!(host = next.host_str(), "redirected");
                    redirects += 1;
                    url = next;
                }
                Ok((_, PutOutcome::Elsewhere(_))) => {
                    let message = format!("more than {MAX_REDIRECTS} redirects");
                    return Err(TransferError::new(ErrorKind::Refused, message)
                        .with_hint("the server redirects in a circle; check the URL"));
                }
                Err(failure) => {
                    self.back_off(failure).await?;
                    // The redirect may be over as well.
                    url = self.request.url.clone();
                    redirects = 0;
                }
            }
        }
    }

    /// A try with this file.
    fn begin(&mut self, source: &UploadFile) {
        self.tries += 1;
        self.done = 0;
        if self.version.replace(source.version()).is_none() {
            self.even_pace = EvenPace::new(Duration::ZERO, source.version().size);
            self.emit(Event::File {
                url: self.url.clone(),
                path: self.request.file.clone(),
                bytes: Some(source.version().size),
                resumed_bytes: 0,
                ranges: false,
            });
        }
        self.set_backlog();
        // What the limit on the rate makes impossible is known by now.
        self.report_late();
    }

    /// Tells the lane what is left.
    pub(super) fn set_backlog(&self) {
        self.member.set_backlog(Backlog {
            bytes: self.total().saturating_sub(self.done),
            inactive: u64::from(self.is_waiting),
            extent: Extent::Estimated,
        });
    }

    /// Ends a control period; `flow` is the connection, if there is one.
    pub(super) fn tick(&mut self, flow: Option<&UploadConnection>) {
        self.lane.notice_clock();
        let now = self.clock.now();
        let total = self.total();
        let planned = self
            .lane
            .with_core(|core, _| core.deadline(self.member.id()));
        if planned != self.deadline {
            self.deadline = planned;
            self.even_pace = EvenPace::new(now, total);
        }
        self.set_backlog();
        let sample = self.lane.sample();
        self.report_late();
        let remaining = total.saturating_sub(self.done);
        let lag = |due: Deadline| self.even_pace.lag(now, due.aim(), remaining);
        self.emit(Event::Control(Control {
            tau: None,
            n: sample.n,
            m: sample.m,
            active: usize::from(flow.is_some()),
            w: sample.w,
            window: None,
            brake: flow.and_then(|flow| flow.window_state(sample.w)),
            g_ms: flow.and_then(UploadConnection::g_ms),
            bottleneck: None,
            zeta: sample.zeta,
            lag: self.deadline.map(lag),
            rate: sample.rate,
            rtt_ms: flow.and_then(UploadConnection::rtt_ms),
            bytes_done: self.done,
            bytes_total: Some(total),
            paths: Vec::new(),
            files: vec![FileProgress {
                url: self.url.clone(),
                bytes_done: self.done,
                bytes_total: Some(total),
            }],
        }));
    }

    /// Reports once that the deadline will probably be missed, as soon as that is known.
    fn report_late(&self) {
        for late in self.lane.with_core(Core::report_late) {
            self.emit(Event::late(&self.url, &late));
        }
    }

    fn total(&self) -> u64 {
        self.version.map_or(0, |version| version.size)
    }

    /// The server has taken the file; returns whether that was in time.
    fn done(&self, status: StatusCode) -> Option<bool> {
        let now = self.clock.now();
        let deadline_met = self.deadline.map(|due| now <= due.by());
        self.emit(Event::Sent {
            url: self.url.clone(),
            path: self.request.file.clone(),
            bytes: self.total(),
            elapsed_s: now.as_secs_f64(),
            status: status.as_u16(),
            deadline_met,
        });
        deadline_met
    }

    pub(super) fn emit(&self, event: Event) {
        let t = self.clock.now().as_secs_f64();
        // A caller that does not listen is fine.
        let _ = self.events.send(TimedEvent { t, event });
    }

    /// Sends the file to `url`; the answer may be any.
    async fn attempt(
        &mut self,
        url: &Url,
        connections: &mut UnboundedReceiver<NewConnection>,
    ) -> Result<PutAnswer, Failure> {
        let (path, version) = (self.request.file.clone(), self.version);
        let opened = blocking(move || UploadFile::open(&path, version)).await;
        let opened = opened.unwrap_or_else(|lost| Err(lost.into()));
        let source = Arc::new(opened.map_err(Failure::Fatal)?);
        let total = source.version().size;
        self.begin(&source);
        let _permit = self.admitted().await;
        let client = self.client.clone();
        let named = self.request.url.clone();
        if self.request.create_only {
            self.refuse_if_there(url).await?;
        }
        // Connections of earlier requests are of no use.
        while connections.try_recv().is_ok() {}
        let (body, reading, handed) = body(source, self.limit.clone());
        let put = Put {
            named: &named,
            url,
            length: total,
            create_only: self.request.create_only,
        };
        let clock = self.clock;
        let mut reading = pin!(reading);
        let mut answering = pin!(client.put(&put, body));
        let (mut is_read, mut flow) = (false, None::<UploadConnection>);
        let mut tick = control_periods();
        loop {
            let update_at = flow.as_ref().and_then(|flow| flow.update_at);
            tokio::select! {
                biased;
                // First: an error of the file explains why the request broke off.
                read = &mut reading, if !is_read => {
                    is_read = true;
                    read.map_err(Failure::Fatal)?;
                }
                Some(opened) = connections.recv() => {
                    // So the host exists.
                    self.backoff.answered();
                    self.lane.with_core(Core::connected);
                    flow = Some(UploadConnection::new(opened, clock.now()));
                }
                answer = &mut answering => {
                    self.moved(flow.as_mut(), &handed);
                    // A connection that failed may have brought an answer first.
                    let unread = |failure| {
                        let unread = flow.as_ref().and_then(UploadConnection::unread_answer);
                        unread.ok_or(failure)
                    };
                    let answer = answer.or_else(unread)?;
                    let handed = *handed.borrow();
                    return check(answer, flow.as_ref(), handed, total);
                }
                _ = tick.tick() => {
                    self.moved(flow.as_mut(), &handed);
                    self.tick(flow.as_ref());
                    self.check_stall(flow.as_mut(), &handed, total)?;
                }
                () = clock.sleep_until(update_at) => {
                    self.moved(flow.as_mut(), &handed);
                    if let Some(flow) = &mut flow {
                        let now = clock.now();
                        flow.follow(now, self.lane.with_core(|core, now| core.flow_target(now)));
                    }
                }
            }
        }
    }

    /// Asks whether a file is at `url` already, because not every server knows the condition
    /// that the request itself carries. Goes on when there is none, or when the server does
    /// not answer such questions. Any other answer is a failure.
    async fn refuse_if_there(&self, url: &Url) -> Result<(), Failure> {
        let asked = self.client.head(&self.request.url, url);
        let answer = match self.settings.http.stall_timeout {
            Some(limit) => tokio::time::timeout(limit, asked)
                .await
                .unwrap_or_else(|_| Err(Failure::network("the server fell silent")))?,
            None => asked.await?,
        };
        match answer.status {
            StatusCode::NOT_FOUND
            | StatusCode::GONE
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED => Ok(()),
            status if status.is_success() => Err(Failure::refused(
                "there is a file already",
                advice_if_there(self.tries),
            )),
            // The upload is sent elsewhere, and asks there.
            status if status.is_redirection() => Ok(()),
            status => {
                let user = self.client.identification(Some(&self.request.url), url);
                Err(Failure::of_status(status, answer.remarks, &user))
            }
        }
    }

    /// Notes what has arrived since the last call.
    fn moved(&mut self, flow: Option<&mut UploadConnection>, handed: &watch::Receiver<u64>) {
        if let Some(flow) = flow {
            let now = self.clock.now();
            let (bytes, carried) = flow.measure(now, *handed.borrow());
            self.done += bytes;
            self.member.moved(carried);
        }
    }

    fn check_stall(
        &self,
        flow: Option<&mut UploadConnection>,
        handed: &watch::Receiver<u64>,
        total: u64,
    ) -> Result<(), Failure> {
        let (Some(flow), Some(limit)) = (flow, self.settings.http.stall_timeout) else {
            return Ok(());
        };
        if flow.is_stalled(self.clock.now(), *handed.borrow(), total, limit) {
            return Err(Failure::network(if flow.acked < total {
                "the server fell silent: it takes no more data"
            } else {
                "the server fell silent: it has all of the file and does not answer"
            }));
        }
        Ok(())
    }
}

/// A success that comes before the whole file can have arrived is no success. Of a
/// connection whose socket was not found, only the bytes handed to it are known.
fn check(
    answer: PutAnswer,
    flow: Option<&UploadConnection>,
    handed: u64,
    total: u64,
) -> Result<PutAnswer, Failure> {
    let arrived = flow.map_or(handed, |flow| flow.acked);
    if answer.status.is_success() && arrived < total {
        return Err(Failure::server(format!(
            "the server answered {} before it had all of the file",
            answer.status
        )));
    }
    Ok(answer)
}
