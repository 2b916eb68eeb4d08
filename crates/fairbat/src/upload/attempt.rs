//! One try: the whole file in one request, until there is an answer or none
//! can be hoped for.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use url::Url;

use super::body::body;
use super::flow::Flow;
use super::source::Source;
use super::upload::Upload;
use crate::error::{ErrorKind, TransferError};
use http::StatusCode;

use crate::http::Failure;
use crate::transport::{Answer, Opened, Put};

impl Upload {
    /// Sends the file to `url`; the answer may be any.
    pub(super) async fn attempt(
        &mut self,
        url: &Url,
        connections: &mut UnboundedReceiver<Opened>,
    ) -> Result<Answer, Failure> {
        let source = self.open().await.map_err(Failure::Fatal)?;
        let total = source.version().size;
        self.begin(&source);
        let client = self.client.clone();
        let named = self.request.url.clone();
        if self.request.create_only {
            self.refuse_if_there(url).await?;
        }
        // Those of earlier requests are of no use any more.
        while connections.try_recv().is_ok() {}
        let (body, reader, handed) = body(source);
        let put = Put {
            named: &named,
            url,
            length: total,
            create_only: self.request.create_only,
        };
        let clock = self.clock;
        let mut reading = pin!(reader.run(clock, self.limiter.clone()));
        let mut answering = pin!(client.put(&put, body));
        let (mut is_read, mut flow) = (false, None);
        let mut tick = self.ticks();
        loop {
            let look_at = flow.as_ref().and_then(Flow::look_at);
            tokio::select! {
                biased;
                // First: why the file broke off explains why the request did.
                read = &mut reading, if !is_read => {
                    is_read = true;
                    read.map_err(Failure::Fatal)?;
                }
                Some(opened) = connections.recv() => {
                    self.connected();
                    flow = Some(Flow::new(opened, clock.now()));
                }
                answer = &mut answering => {
                    self.moved(flow.as_mut(), &handed);
                    let answer = answer.or_else(|failure| said_before(failure, flow.as_ref()));
                    let handed = *handed.borrow();
                    return check(answer?, flow.as_ref(), handed, total);
                }
                _ = tick.tick() => {
                    self.moved(flow.as_mut(), &handed);
                    self.tick(flow.as_ref());
                    self.check_stall(flow.as_mut(), &handed, total)?;
                }
                () = clock.sleep_until(look_at) => {
                    self.moved(flow.as_mut(), &handed);
                    if let Some(flow) = &mut flow {
                        let now = clock.now();
                        flow.follow(now, self.steering.target(now));
                    }
                }
            }
        }
    }

    /// Opens the file, which must be the one that it was.
    async fn open(&self) -> Result<Arc<Source>, TransferError> {
        let (path, version) = (self.request.file.clone(), self.version);
        let opened = tokio::task::spawn_blocking(move || Source::open(&path, version));
        let lost = || TransferError::new(ErrorKind::Other, "opening the file ended without result");
        opened.await.unwrap_or_else(|_| Err(lost())).map(Arc::new)
    }

    /// Asks whether there is something at `url` already: not every server
    /// knows the condition that the request itself carries. Goes on when there
    /// is nothing, or the server does not answer such questions; what else it
    /// says is a failure.
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
                if self.tries > 1 {
                    "it may be this one, if an earlier try got through after all: compare them"
                } else {
                    "leave --create-only out to replace it"
                },
            )),
            // The upload is sent elsewhere, and asks there.
            status if status.is_redirection() => Ok(()),
            status => Err(Failure::of_status(status, answer.remarks)),
        }
    }

    /// Notes what has arrived since the last look.
    fn moved(&mut self, flow: Option<&mut Flow>, handed: &watch::Receiver<u64>) {
        if let Some(flow) = flow {
            let now = self.clock.now();
            let (bytes, carried) = flow.measure(now, *handed.borrow());
            self.arrived(now, bytes, carried);
        }
    }

    fn check_stall(
        &self,
        flow: Option<&mut Flow>,
        handed: &watch::Receiver<u64>,
        total: u64,
    ) -> Result<(), Failure> {
        let (Some(flow), Some(limit)) = (flow, self.settings.http.stall_timeout) else {
            return Ok(());
        };
        if flow.is_stalled(self.clock.now(), *handed.borrow(), total, limit) {
            return Err(Failure::network(if flow.acked() < total {
                "the server fell silent: it takes no more data"
            } else {
                "the server fell silent: it has all of the file and does not answer"
            }));
        }
        Ok(())
    }
}

/// A connection that failed may have brought an answer first.
fn said_before(failure: Failure, flow: Option<&Flow>) -> Result<Answer, Failure> {
    flow.and_then(Flow::unread_answer).ok_or(failure)
}

/// A server that says it has the file before it can have it does not have it.
/// What is known of a connection that was not found is how much of the body it
/// was handed.
fn check(answer: Answer, flow: Option<&Flow>, handed: u64, total: u64) -> Result<Answer, Failure> {
    let arrived = flow.map_or(handed, Flow::acked);
    if answer.status.is_success() && arrived < total {
        return Err(Failure::server(format!(
            "the server answered {} before it had all of the file",
            answer.status
        )));
    }
    Ok(answer)
}
