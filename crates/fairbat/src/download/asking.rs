//! Workers that ask a source what it has: the probe of a transfer, which opens its part file, and the
//! question to another source of the same file.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use url::Url;

use super::inquiry::{ExpectedFile, Inquiry};
use super::worker::{
    Joined, Probed, RunContext, StopSignal, UnreadAnswer, WorkerGuard, WorkerOutcome, stopped,
    too_large,
};
use crate::blocking::blocking;
use crate::http::{Failure, is_downgrade};
use crate::metalink::{self, MetalinkFile};
use crate::transport::{Probe, RemoteFile, SourceUrl};

/// Of a smaller file no Metalink is asked for, bytes: it would take as long as the file.
const MIN_DESCRIBED: u64 = 4 << 20;

/// A file waits no longer than this for a Metalink that describes it, and a connection for the
/// answer of another source.
const PATIENCE: Duration = Duration::from_secs(5);

/// Probes a URL and opens its part file.
pub(crate) async fn probe(
    context: Arc<RunContext>,
    guard: WorkerGuard,
    mut inquiry: Inquiry,
    won: Arc<AtomicBool>,
    mut stop: StopSignal,
    mut cut: watch::Receiver<bool>,
) {
    let (at, hint) = (&inquiry.at, inquiry.hint);
    let asked = context.clock.now();
    let asking = async {
        match inquiry.as_stream {
            true => context.client.whole(at, hint).await,
            false => {
                let length = match context.may_have(&inquiry).await {
                    true => 1,
                    false => inquiry.length,
                };
                context.client.probe(at, length, hint).await
            }
        }
    };
    let result = tokio::select! {
        () = stopped(&mut stop) => return guard.end(WorkerOutcome::Stopped),
        () = stopped(&mut cut) => Err(Failure::network("the path is gone")),
        () = wait(inquiry.patience) => {
            return guard.end(match won.load(Ordering::Relaxed) {
                true => WorkerOutcome::Second(None),
                false => WorkerOutcome::Slow,
            });
        }
        result = asking => result,
    };
    let Probe { source, rtt, body } = match result {
        Ok(probe) => probe,
        // It does not matter over this path.
        Err(_) if won.load(Ordering::Relaxed) => return guard.end(WorkerOutcome::Second(None)),
        Err(failure) => return guard.end(WorkerOutcome::Failed(failure)),
    };
    if won.swap(true, Ordering::Relaxed) {
        return guard.end(WorkerOutcome::Second(rtt));
    }
    let began = context.clock.now();
    let gap = began.saturating_sub(asked);
    let answer = body.map(|body| UnreadAnswer { body, gap, began });
    if let (Some(total), Some(max)) = (source.total, context.max_size)
        && total > max
    {
        let what = format!("the file has {total} bytes, and {max} are allowed");
        return guard.end(WorkerOutcome::Failed(too_large(what)));
    }
    if let Some(error) = inquiry.expected.objection(&source) {
        return guard.end(WorkerOutcome::Failed(Failure::Fatal(error)));
    }
    let described = tokio::select! {
        () = stopped(&mut stop) => return guard.end(WorkerOutcome::Stopped),
        described = describe(&context, &inquiry, &source) => described,
    };
    if let Some(file) = &described {
        inquiry.describe(file);
    }
    let incoming = inquiry.incoming(&source);
    let name = incoming.name.clone();
    let opened = blocking(move || context.store.open(&inquiry.target, &incoming)).await;
    guard.end(match opened {
        Ok(Ok(opened)) => WorkerOutcome::Probed(Box::new(Probed {
            source,
            rtt,
            answer,
            name,
            described,
            opened,
        })),
        Ok(Err(error)) => WorkerOutcome::Failed(Failure::Fatal(error.into())),
        Err(_lost) => WorkerOutcome::Lost,
    });
}

async fn wait(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Asks for the Metalink that the server says describes a large file, if no hash of it is known
/// (RFC 6249, section 5).
async fn describe(
    context: &RunContext,
    inquiry: &Inquiry,
    source: &RemoteFile,
) -> Option<MetalinkFile> {
    let is_large = source.version.is_some() && source.total.is_some_and(|it| it >= MIN_DESCRIBED);
    let url = source.links.metalink.clone();
    let may_ask = |url: &Url| !is_downgrade(&source.url, url);
    let url = url.filter(|url| is_large && inquiry.is_without_hash() && may_ask(url))?;
    let at = SourceUrl {
        url,
        named: inquiry.at.named.clone(),
    };
    let asking = metalink::described(&context.client, &at);
    let files = tokio::time::timeout(PATIENCE, asking).await.ok()??;
    Inquiry::described(files, source)
}

/// Asks another source of a file what it has, and for the bytes to compare it with.
pub(crate) async fn join(
    context: Arc<RunContext>,
    guard: WorkerGuard,
    at: SourceUrl,
    expected: ExpectedFile,
    sample: Option<Range<u64>>,
    mut stop: StopSignal,
    mut cut: watch::Receiver<bool>,
) {
    let asking = async {
        let Probe {
            source: remote,
            rtt,
            ..
        } = context.client.probe(&at, 1, None).await?;
        if let Some(error) = expected.objection(&remote) {
            return Err(Failure::Fatal(error));
        }
        let total = remote.version.as_ref().map(|version| version.total);
        let sample = match sample {
            Some(range) if total.is_some_and(|total| range.end <= total) => {
                Some(context.sample(&remote, range).await?)
            }
            _ => None,
        };
        Ok(Joined {
            remote,
            sample,
            rtt,
        })
    };
    let result = tokio::select! {
        () = stopped(&mut stop) => return guard.end(WorkerOutcome::Stopped),
        () = stopped(&mut cut) => Err(Failure::network("the path is gone")),
        () = wait(Some(PATIENCE)) => Err(Failure::network("the server does not answer")),
        result = asking => result,
    };
    guard.end(match result {
        Ok(joined) => WorkerOutcome::Joined(Box::new(joined)),
        Err(failure) => WorkerOutcome::Failed(failure),
    });
}

impl RunContext {
    /// Whether something of the file is there already, as far as its name is known.
    async fn may_have(&self, inquiry: &Inquiry) -> bool {
        let (target, name) = (inquiry.target.clone(), inquiry.likely_name());
        let store = Arc::clone(&self.store);
        let found = blocking(move || store.may_have(&target, &name)).await;
        found.unwrap_or(true)
    }

    /// The SHA-256 of a few bytes of a file.
    pub(crate) async fn sample(
        &self,
        remote: &RemoteFile,
        range: Range<u64>,
    ) -> Result<[u8; 32], Failure> {
        let length = range.end - range.start;
        let mut body = self.client.range(remote, range, None).await?;
        let (mut hasher, mut received) = (Sha256::new(), 0);
        while let Some(piece) = body.next().await? {
            received += piece.len() as u64;
            hasher.update(&piece);
            if received > length {
                break;
            }
        }
        if received != length {
            let message = format!("the server sent {received} bytes instead of {length}");
            return Err(Failure::network(message));
        }
        Ok(hasher.finalize().into())
    }
}
