//! The web server of the agent: metrics for Prometheus, and a page for people with the
//! three JSON documents that it reads. It changes nothing.
//!
//! Everybody who reaches the address may read: there is neither a password nor TLS. So
//! the default address is one of this machine, and what only some may know is left out:
//! queries of URLs, which may be signed, and names of files that failed. A page of another
//! site, open in a browser on this machine, sees nothing: foreign host names are refused
//! ([`fairbat::http::host`]), and no other origin is allowed.

mod history;

use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairbat::accept::{AcceptLimits, Accepted, accept_until, serve_until};
use fairbat::http::host::{HostRefusal, HostRule};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::tz::TimeZone;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::net::{TcpListener, TcpStream};

use self::history::HistoryDocument;
use crate::daemon::handle::DaemonHandle;
use crate::metrics;
use crate::response::{AgentResponse, JSON, json, response};
use crate::status::{AgentStatus, TaskKind};

/// Connections at once. Others wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 64;

/// Time for the head of a request, and for an idle connection: more than the usual 15 s
/// between two scrapes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Lifetime of a connection. It ends after the response that is under way then.
const MAX_LIFETIME: Duration = Duration::from_secs(120);

/// Time for the last response of a connection, at the end of its lifetime or of the
/// agent.
const GRACE: Duration = Duration::from_secs(5);

/// Size of the buffer for the head of a request, bytes.
const MAX_HEAD: usize = 16 * 1024;

const PLAIN: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// What there is.
#[derive(Debug, Clone, Copy)]
enum WebResource {
    Page,
    Status,
    History,
    Site,
    Metrics,
}

impl WebResource {
    fn at(path: &str) -> Option<Self> {
        Some(match path {
            "/" => Self::Page,
            "/status.json" => Self::Status,
            "/history.json" => Self::History,
            "/site.json" => Self::Site,
            "/metrics" => Self::Metrics,
            _ => return None,
        })
    }
}

/// The page. Its style and its script are inline, and it loads nothing else but the
/// JSON documents of this server.
const PAGE: &str = include_str!("index.html");

/// The Content-Security-Policy of the page (W3C CSP Level 3): it runs its own inline
/// style and script, by their hashes, and requests only from this server. No other
/// page may frame it.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |start: &str, end: &str| {
        let inline = PAGE
            .split_once(start)
            .and_then(|(_, rest)| rest.split_once(end));
        STANDARD.encode(Sha256::digest(inline.map_or("", |(inline, _)| inline)))
    };
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash("<style>", "</style>"),
        hash("<script>", "</script>")
    )
});

/// What all connections share.
#[derive(Debug)]
struct WebServer {
    handle: DaemonHandle,
    /// The time zone of the times on the page.
    zone: TimeZone,
}

/// The status as the page reads it.
#[derive(Serialize)]
struct PageStatus<'a> {
    /// IANA name of the agent's time zone; empty if it has none.
    zone: &'a str,
    /// Present offset of the zone from UTC, s.
    offset: i32,
    #[serde(flatten)]
    status: &'a AgentStatus,
}

/// Answers requests until `stop` completes, and then ends all connections within
/// seconds. The page shows times in `zone`.
pub async fn serve(
    listener: TcpListener,
    handle: DaemonHandle,
    zone: TimeZone,
    stop: impl Future<Output = ()>,
) {
    let server = Arc::new(WebServer { handle, zone });
    let limits = AcceptLimits {
        server: "metrics and page",
        max_connections: MAX_CONNECTIONS,
        grace: GRACE,
    };
    accept_until(listener, limits, stop, |accepted| {
        Some(connection(Arc::clone(&server), accepted))
    })
    .await;
}

async fn connection(server: Arc<WebServer>, accepted: Accepted<TcpListener>) {
    let mut stopping = accepted.stopping;
    let stream: TcpStream = accepted.stream;
    let service = service_fn(async |request: Request<Incoming>| {
        let (request, _) = request.into_parts();
        Ok::<_, Infallible>(server.answer(&request).await)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let end = async {
        tokio::select! {
            () = tokio::time::sleep(MAX_LIFETIME) => {}
            () = stopping.wait() => {}
        }
    };
    if let Err(error) = serve_until(connection, end, GRACE).await {
        tracing::debug!("metrics and page: a connection broke: {error}");
    }
    drop(accepted.permit);
}

impl WebServer {
    async fn answer(&self, request: &Parts) -> AgentResponse {
        if let Err(refusal) = HostRule::default().check(request) {
            let text = match refusal {
                HostRefusal::Malformed => "One Host is needed.\n",
                HostRefusal::Foreign(_) => {
                    "Host names other than localhost are refused, because a page of another site \
                     could read this. Use the address, or localhost.\n"
                }
            };
            return private(refusal.status(), PLAIN, text);
        }
        let Some(resource) = WebResource::at(request.uri.path()) else {
            let text = "There is nothing here. There are /, /status.json, /history.json, \
                        /site.json and /metrics.\n";
            return private(StatusCode::NOT_FOUND, PLAIN, text);
        };
        if ![Method::GET, Method::HEAD].contains(&request.method) {
            let text = "Nothing can be changed here.\n";
            let mut answer = private(StatusCode::METHOD_NOT_ALLOWED, PLAIN, text);
            let headers = answer.headers_mut();
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match resource {
            WebResource::Page => page(),
            WebResource::Status => self.status(),
            WebResource::History => self.history(),
            WebResource::Site => self.site().await,
            WebResource::Metrics => self.metrics(),
        }
    }

    /// The site, as its coordinator knows it.
    async fn site(&self) -> AgentResponse {
        let Some(site) = self.handle.site() else {
            let text = "This agent takes part in no site.\n";
            return private(StatusCode::NOT_FOUND, PLAIN, text);
        };
        match site.status().await {
            Ok(status) => private(StatusCode::OK, JSON, json(&status)),
            Err(why) => private(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("{why}\n")),
        }
    }

    fn status(&self) -> AgentResponse {
        let status = self.handle.status();
        let known = |name: &&str| *name != "Etc/Unknown";
        let status = PageStatus {
            zone: self.zone.iana_name().filter(known).unwrap_or_default(),
            offset: self.zone.to_offset(status.now).seconds(),
            status: &public(&status),
        };
        private(StatusCode::OK, JSON, json(&status))
    }

    fn history(&self) -> AgentResponse {
        private(
            StatusCode::OK,
            JSON,
            json(&HistoryDocument::of(&self.handle)),
        )
    }

    fn metrics(&self) -> AgentResponse {
        let text = metrics::render(&self.handle.status());
        private(StatusCode::OK, metrics::CONTENT_TYPE, text)
    }
}

/// The part of the status that everybody may read.
fn public(status: &AgentStatus) -> AgentStatus {
    let mut status = status.clone();
    for task in &mut status.tasks {
        if task.kind == TaskKind::Download
            && let Some(query) = task.from.find(['?', '#'])
        {
            task.from.truncate(query);
        }
        let more = format!("`fairbat status {}` says more", task.id);
        if let Some(retry) = &mut task.retry {
            retry.problem = retry.summary.take().unwrap_or_default();
            retry.hint = Some(more.clone());
        }
        let check = task.check.as_mut().map(|check| {
            check.damaged_files.clear();
            &mut check.last
        });
        for last in [Some(&mut task.last), check]
            .into_iter()
            .flatten()
            .flatten()
        {
            last.failures.clear();
            last.problem = last.summary.take();
            last.hint = last.problem.is_some().then(|| more.clone());
        }
    }
    status
}

fn page() -> AgentResponse {
    let mut answer = private(StatusCode::OK, HTML, PAGE);
    if let Ok(policy) = HeaderValue::from_str(&POLICY) {
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

/// A response that no cache stores and no other site reads.
fn private(
    status: StatusCode,
    media_type: &'static str,
    body: impl Into<bytes::Bytes>,
) -> AgentResponse {
    let mut answer = response(status, media_type, body);
    let headers = answer.headers_mut();
    let fixed = [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
