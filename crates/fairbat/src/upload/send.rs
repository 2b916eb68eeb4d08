//! An upload from the first try to the last: its state, what it reports, and each try,
//! which sends the whole file.
//!
//! The upload is the only member of the lane of each of its paths. The lane says what the deadline
//! demands and how much the connection weighs; the connection's lever follows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dalbe::deadline::Deadline;
use dalbe::sender::SenderLevers;
use http::{Method, StatusCode};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use url::Url;

use super::answer::{PutOutcome, advice_if_there, verdict};
use super::parts::Parts;
use super::path::{UploadPath, weight};
use super::source::UploadFile;
use super::{UploadRequest, UploadSettings};
use crate::arrival::MIN_SHARE;
use crate::blocking::blocking;
use crate::clock::Clock;
use crate::download::division::Divider;
use crate::download::{Outcome, Report, Stop};
use crate::error::{ErrorKind, TransferError};
use crate::event::{Event, TimedEvent};
use crate::file_version::FileVersion;
use crate::http::{Failure, without_credentials};
use crate::lane::{EvenPace, Service};
use crate::retry::Backoff;
use crate::transport::{MAX_REDIRECTS, Put, PutAnswer, RateLimit};

/// An upload.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) settings: UploadSettings,
    pub(super) request: UploadRequest,
    pub(super) clock: Clock,
    /// The paths out of the machine; at least one.
    pub(super) paths: Vec<UploadPath>,
    /// The URL as events show it.
    pub(super) url: String,
    events: UnboundedSender<TimedEvent>,
    /// Tells that the parts that wait have changed.
    pub(super) parts_changed: Notify,
    state: Mutex<UploadState>,
}

/// How an upload stands.
#[derive(Debug)]
pub(super) struct UploadState {
    /// The even pace to the deadline; it starts anew when the wall clock is set.
    pub(super) even_pace: EvenPace,
    pub(super) deadline: Option<Deadline>,
    /// What is being uploaded, once it has been opened.
    pub(super) version: Option<FileVersion>,
    /// Requests that carried the file, the one under way included. Of an upload in parts, all its
    /// requests count as one.
    tries: u32,
    pub(super) backoff: Backoff,
    pub(super) rng: StdRng,
    pub(super) divider: Divider,
    pub(super) parts: Parts,
    /// Where the parts go, once the server has begun an upload in parts.
    pub(super) begun: Option<Url>,
    /// Whether the user knows that one path is used.
    is_told: bool,
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
    let max_time = settings.max_time;
    let upload = Upload::new(settings, request, &levers, clock, events)?;
    let paths = upload.paths.iter();
    let weights = paths.map(|path| weight(&upload.settings, path.settings.as_ref()));
    let weight = weights.fold(1.0, f64::min);
    upload.emit(Event::Sending {
        urls: vec![upload.url.clone()],
        lever: levers.kind(),
        sender: levers.policy().filter(|_| weight < 1.0),
        controller: upload.settings.controller,
        weight,
    });
    let ended = tokio::select! {
        biased;
        reason = stop.reason(max_time) => {
            Err(reason.with_hint("the same command starts the upload over"))
        }
        ended = upload.send() => ended,
        never = upload.report() => match never {},
    };
    let outcome = match ended {
        Ok(status) => Outcome::Done {
            late: upload.sent(status) == Some(false),
        },
        Err(error) => {
            let kind = error.kind;
            upload.give_up().await;
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
        levers: &Arc<SenderLevers>,
        clock: Clock,
        events: UnboundedSender<TimedEvent>,
    ) -> Result<Self, TransferError> {
        let limit = settings.limit_rate.map(RateLimit::new).map(Arc::new);
        let host = request.url.host_str().unwrap_or_default();
        let place = (host, Service::of_batch(request.deadline));
        let named: Vec<_> = match settings.paths.as_slice() {
            [] => vec![None],
            paths => paths.iter().cloned().map(Some).collect(),
        };
        let mut paths = Vec::new();
        for named in named {
            let held_by = (limit.as_ref(), levers);
            paths.push(UploadPath::open(
                &settings, named, &paths, place, held_by, clock,
            )?);
        }
        let first: &UploadPath = &paths[0];
        let deadline = first
            .lane
            .with_core(|core, _| core.deadline(first.member.id()));
        Ok(Self {
            url: without_credentials(&request.url).into(),
            state: Mutex::new(UploadState {
                even_pace: EvenPace::new(Duration::ZERO, 0),
                deadline,
                version: None,
                tries: 0,
                backoff: Backoff::new(settings.retry),
                rng: StdRng::seed_from_u64(settings.seed),
                divider: Divider::default(),
                parts: Parts::default(),
                begun: None,
                is_told: false,
            }),
            parts_changed: Notify::new(),
            settings,
            request,
            clock,
            paths,
            events,
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, UploadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries until the server has taken the file; returns its answer.
    ///
    /// # Errors
    /// The server refuses it, or the file cannot be read.
    async fn send(&self) -> Result<StatusCode, TransferError> {
        let mut url = self.request.url.clone();
        let mut redirects = 0;
        loop {
            let answer = self.attempt(&url).await;
            if answer.is_err() {
                self.give_up().await;
            }
            self.settle(answer.is_ok());
            let decided =
                answer.and_then(|answer| Ok((answer.status, self.decide(&answer, &url)?)));
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

    /// What follows from an answer of `url`.
    fn decide(&self, answer: &PutAnswer, url: &Url) -> Result<PutOutcome, Failure> {
        let client = self.paths[0].state().asking.clone();
        let user = client.identification(Some(&self.request.url), url);
        let tries = self.state().tries;
        verdict(answer, &user, url, &self.request.file, tries)
    }

    /// The failure that an answer stands for.
    pub(super) fn refused(&self, answer: &PutAnswer, url: &Url) -> Failure {
        match self.decide(answer, url) {
            Err(failure) => failure,
            Ok(_) => Failure::server(format!("the server answered {}", answer.status)),
        }
    }

    /// A try is over.
    fn settle(&self, has_succeeded: bool) {
        for path in &self.paths {
            path.settle(has_succeeded);
            let mut state = path.state();
            (state.backs_off, state.is_waiting) = (false, false);
        }
        let mut state = self.state();
        state.parts = Parts::default();
        state.begun = None;
    }

    /// A try with this file.
    fn begin(&self, source: &UploadFile) {
        let size = source.version().size;
        let is_first = {
            let mut state = self.state();
            state.tries += 1;
            let is_first = state.version.replace(source.version()).is_none();
            if is_first {
                state.even_pace = EvenPace::new(Duration::ZERO, size);
            }
            is_first
        };
        if is_first {
            self.emit(Event::File {
                url: self.url.clone(),
                path: self.request.file.clone(),
                bytes: Some(size),
                resumed_bytes: 0,
                ranges: false,
            });
        }
        self.set_backlogs();
        // What the limit on the rate makes impossible is known by now.
        self.report_late();
    }

    pub(super) fn total(&self) -> u64 {
        self.state().version.map_or(0, |version| version.size)
    }

    /// The server has taken the file; returns whether that was in time.
    fn sent(&self, status: StatusCode) -> Option<bool> {
        let now = self.clock.now();
        let deadline_met = self.state().deadline.map(|due| now <= due.by());
        self.emit(Event::Sent {
            url: self.url.clone(),
            path: self.request.file.clone(),
            bytes: self.total(),
            elapsed_s: now.as_secs_f64(),
            status: status.as_u16(),
            protocol: self.paths.iter().find_map(|path| path.state().protocol),
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
    async fn attempt(&self, url: &Url) -> Result<PutAnswer, Failure> {
        let (path, version) = (self.request.file.clone(), self.state().version);
        let opened = blocking(move || UploadFile::open(&path, version)).await;
        let opened = opened.unwrap_or_else(|lost| Err(lost.into()));
        let source = Arc::new(opened.map_err(Failure::Fatal)?);
        self.begin(&source);
        if let [path] = self.paths.as_slice() {
            return self.send_whole(path, url, &source).await;
        }
        let (path, answer) = self.ask_first(url).await?;
        match answer.status {
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => return Ok(answer),
            // What the server takes is known when it is less busy.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => return Err(self.refused(&answer, url)),
            // So short a file has one part.
            _ if (self.total() as f64) < MIN_SHARE => {}
            _ if answer.takes_parts => return self.send_parts(path, url, &source).await,
            _ => self.tell_of_one_path(path),
        }
        for other in &self.paths {
            other.state().share = f64::from(u8::from(std::ptr::eq(other, path)));
        }
        self.send_whole(path, url, &source).await
    }

    /// Says once that only one of several paths is used.
    fn tell_of_one_path(&self, path: &UploadPath) {
        if !std::mem::replace(&mut self.state().is_told, true) {
            tracing::warn!(
                "the server takes no uploads in parts, so one path carries all: {}",
                path.name()
            );
        }
    }

    /// Sends the whole file in one request.
    async fn send_whole(
        &self,
        path: &UploadPath,
        url: &Url,
        source: &Arc<UploadFile>,
    ) -> Result<PutAnswer, Failure> {
        let _permit = self.admitted(path).await;
        let put = Put {
            create_only: self.request.create_only,
            ..self.about(url)
        };
        if self.request.create_only {
            self.refuse_if_there(path, url).await?;
        }
        tokio::select! {
            biased;
            answer = path.send(&put, source, 0..source.version().size) => answer,
            failure = path.gone() => Err(failure),
        }
    }

    /// Asks whether a file is at `url` already, because not every server knows the condition
    /// that the request itself carries. Goes on when there is none, or when the server does
    /// not answer such questions. Any other answer is a failure.
    async fn refuse_if_there(&self, path: &UploadPath, url: &Url) -> Result<(), Failure> {
        let answer = self.ask(path, Method::HEAD, self.about(url)).await?;
        match answer.status {
            StatusCode::NOT_FOUND
            | StatusCode::GONE
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED => Ok(()),
            status if status.is_success() => Err(Failure::refused(
                "there is a file already",
                advice_if_there(self.state().tries),
            )),
            // The upload is sent elsewhere, and asks there.
            status if status.is_redirection() => Ok(()),
            status => {
                let client = path.state().asking.clone();
                let user = client.identification(Some(&self.request.url), url);
                Err(Failure::of_status(status, answer.remarks, &user))
            }
        }
    }
}
