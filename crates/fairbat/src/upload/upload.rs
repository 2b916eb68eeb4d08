//! An upload from the first try to the last, and what it tells meanwhile.

use std::sync::Arc;
use std::time::Duration;

use dalbe::sender::SenderLevers;
use dalbe::weight::{FLOW_WEIGHT_PERIOD, FlowWeightController};
use http::StatusCode;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Interval, MissedTickBehavior};

use super::answer::{Verdict, verdict};
use super::due::Due;
use super::flow::Flow;
use super::source::Source;
use super::{UploadRequest, UploadSettings};
use crate::clock::Clock;
use crate::error::{ErrorKind, TransferError};
use crate::event::{Control, Event, FileProgress, RetryCause, TimedEvent};
use crate::file_version::FileVersion;
use crate::http::{Failure, Transient, without_credentials};
use crate::lane::forecast::{Look, Saturation, foreseen};
use crate::limiter::RateLimiter;
use crate::retry::{Backoff, Decision};
use crate::transport::{HttpClient, MAX_REDIRECTS, Opened};

/// See the module.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) settings: UploadSettings,
    pub(super) request: UploadRequest,
    pub(super) client: HttpClient,
    pub(super) clock: Clock,
    pub(super) limiter: Option<Arc<RateLimiter>>,
    pub(super) steering: FlowWeightController,
    /// What is being uploaded, once it has been opened.
    pub(super) version: Option<FileVersion>,
    /// Requests that carried the file, the one under way included.
    pub(super) tries: u32,
    /// The URL as events show it.
    url: String,
    due: Option<Due>,
    /// What the connection carries when it weighs 1.
    saturation: Saturation,
    backoff: Backoff,
    rng: StdRng,
    /// Bytes that have arrived in this try.
    done: u64,
    events: UnboundedSender<TimedEvent>,
}

impl Upload {
    pub(super) fn new(
        settings: UploadSettings,
        request: UploadRequest,
        client: HttpClient,
        clock: Clock,
        events: UnboundedSender<TimedEvent>,
    ) -> Self {
        Self {
            limiter: settings.limit_rate.map(RateLimiter::new).map(Arc::new),
            steering: FlowWeightController::new(
                settings.weight,
                settings.limit_rate.map(|rate| rate as f64),
            ),
            version: None,
            tries: 0,
            url: without_credentials(&request.url).into(),
            due: request.deadline.map(|moment| Due::new(moment, clock)),
            saturation: Saturation::default(),
            backoff: Backoff::new(settings.retry),
            rng: StdRng::seed_from_u64(settings.seed),
            done: 0,
            settings,
            request,
            client,
            clock,
            events,
        }
    }

    /// Says hello.
    pub(super) fn start(&self, levers: &SenderLevers) {
        self.emit(Event::Sending {
            urls: vec![self.url.clone()],
            lever: levers.kind(),
            sender: levers.policy().filter(|_| self.settings.weight < 1.0),
            weight: self.settings.weight,
        });
    }

    /// Tries until the server has taken the file; returns its answer.
    ///
    /// # Errors
    /// It will not, or the file cannot be read.
    pub(super) async fn send(
        &mut self,
        mut connections: UnboundedReceiver<Opened>,
    ) -> Result<StatusCode, TransferError> {
        let mut url = self.request.url.clone();
        let mut redirects = 0;
        loop {
            let answer = self.attempt(&url, &mut connections).await;
            let decided = answer.and_then(|answer| {
                let verdict = verdict(&answer, &url, &self.request.file, self.tries)?;
                Ok((answer.status, verdict))
            });
            match decided {
                Ok((status, Verdict::Taken)) => return Ok(status),
                Ok((_, Verdict::Elsewhere(next))) if redirects < MAX_REDIRECTS => {
                    tracing::info!(host = next.host_str(), "redirected");
                    redirects += 1;
                    url = next;
                }
                Ok((_, Verdict::Elsewhere(_))) => {
                    let message = format!("more than {MAX_REDIRECTS} redirects");
                    return Err(TransferError::new(ErrorKind::Refused, message)
                        .with_hint("the server redirects in a circle; check the URL"));
                }
                Err(failure) => {
                    self.back_off(failure).await?;
                    // Where it led may be over as well.
                    url = self.request.url.clone();
                    redirects = 0;
                }
            }
        }
    }

    /// Waits for the next try.
    ///
    /// # Errors
    /// There is none.
    async fn back_off(&mut self, failure: Failure) -> Result<(), TransferError> {
        let failure = match failure {
            Failure::Fatal(error) | Failure::Expired(error) => return Err(error),
            Failure::Transient(transient) => transient,
            Failure::Changed(reason) => Transient::server(reason),
            Failure::WholeFile => Transient::server("the server answered as if asked for a file"),
        };
        if failure.kind == ErrorKind::Server {
            self.backoff.answered();
        }
        let decision = self.backoff.failure(failure.retry_after, &mut self.rng);
        let attempt = self.backoff.failures();
        let Decision::Retry { after } = decision else {
            return Err(failure.given_up(attempt, false));
        };
        self.emit(Event::Retry {
            cause: RetryCause::of(&failure),
            url: self.url.clone(),
            reason: failure.reason,
            after_s: after.as_secs_f64(),
            attempt,
        });
        self.done = 0;
        self.pause(after).await;
        Ok(())
    }

    async fn pause(&mut self, time: Duration) {
        let mut tick = self.ticks();
        let mut over = std::pin::pin!(tokio::time::sleep(time));
        loop {
            tokio::select! {
                biased;
                () = &mut over => return,
                _ = tick.tick() => self.tick(None),
            }
        }
    }

    /// Control periods, from now on.
    pub(super) fn ticks(&self) -> Interval {
        let mut tick = tokio::time::interval(FLOW_WEIGHT_PERIOD);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.reset();
        tick
    }

    /// A try with this file.
    pub(super) fn begin(&mut self, source: &Source) {
        self.tries += 1;
        self.done = 0;
        if self.version.replace(source.version()).is_none() {
            self.emit(Event::File {
                url: self.url.clone(),
                path: self.request.file.clone(),
                bytes: Some(source.version().size),
                resumed_bytes: 0,
                ranges: false,
            });
        }
        // What the user's ceiling makes impossible is known by now.
        self.forecast(self.clock.now(), None);
    }

    /// There is a connection, so the host is no slip of the pen.
    pub(super) fn connected(&mut self) {
        self.backoff.answered();
        self.steering.begin(self.clock.now());
        self.saturation.forget();
    }

    /// So many more bytes of the body are acknowledged, and so many have arrived
    /// in all.
    pub(super) fn arrived(&mut self, now: Duration, bytes: u64, carried: u64) {
        self.done += bytes;
        self.steering.delivered(now, carried);
    }

    /// Ends a control period; `flow` is the connection, if there is one.
    pub(super) fn tick(&mut self, flow: Option<&Flow>) {
        let now = self.clock.now();
        self.notice_jump(now);
        let total = self.total();
        let remaining = total.saturating_sub(self.done);
        let demand = self.due.and_then(|due| due.demand(now, remaining));
        // Without a connection there is nothing to learn for its weight.
        let rate = flow.map_or(0.0, |_| self.steering.sample(now, demand));
        let w = self.steering.target(now).w;
        let shown = flow.and_then(|_| {
            self.saturation.look(Look {
                now,
                w,
                rate,
                left: self.due?.left(now),
                may_grow: false,
            })
        });
        self.forecast(now, shown);
        self.emit(Event::Control(Control {
            n: 0.0,
            m: 1.0,
            active: usize::from(flow.is_some()),
            w,
            window: None,
            brake: flow.and_then(|flow| flow.brake(w)),
            zeta: demand.map(|demand| demand.zeta),
            lag: self.due.map(|due| due.lag(now, remaining, total)),
            rate,
            rtt_ms: flow.and_then(Flow::rtt_ms),
            bytes_done: self.done,
            bytes_total: Some(total),
            files: vec![FileProgress {
                url: self.url.clone(),
                bytes_done: self.done,
                bytes_total: Some(total),
            }],
        }));
    }

    /// Says once that the deadline will probably be missed, as soon as that is
    /// known, where `shown` is what the connection has shown that it can carry,
    /// byte/s.
    fn forecast(&mut self, now: Duration, shown: Option<f64>) {
        let remaining = self.total().saturating_sub(self.done);
        let ceiling = self.settings.limit_rate.map(|rate| rate as f64);
        let Some(due) = &mut self.due else { return };
        let zeta = due.demand(now, remaining).map_or(0.0, |demand| demand.zeta);
        if let Some(rate) = foreseen(zeta, ceiling, shown)
            && let Some(late_s) = due.foretell(now, remaining, rate)
        {
            self.emit(Event::Forecast {
                url: self.url.clone(),
                late_s,
                zeta,
                rate,
            });
        }
    }

    fn notice_jump(&mut self, now: Duration) {
        let (clock, drift) = (self.clock, self.clock.drift());
        let due = self.due.as_mut();
        if let Some(jump) = due.and_then(|due| due.notice_jump(now, clock, drift)) {
            tracing::warn!("the clock was set by {jump:#}; the deadline is planned anew");
        }
    }

    fn total(&self) -> u64 {
        self.version.map_or(0, |version| version.size)
    }

    /// The server has taken the file; returns whether that was in time.
    pub(super) fn done(&self, status: StatusCode) -> Option<bool> {
        let now = self.clock.now();
        let deadline_met = self.due.map(|due| due.is_met(now));
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

    /// It will not.
    pub(super) fn failed(&self, error: TransferError) {
        self.emit(Event::Error {
            url: self.url.clone(),
            kind: error.kind,
            message: error.message,
            hint: error.hint,
        });
    }

    fn emit(&self, event: Event) {
        let t = self.clock.now().as_secs_f64();
        // A caller that does not listen is fine.
        let _ = self.events.send(TimedEvent { t, event });
    }
}
