//! The proxy of HTTP: tunnels (CONNECT, RFC 9110 section 9.3.6), and requests of plain HTTP, which are
//! passed on (section 7.6).

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{
    self, AUTHORIZATION, CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA, WWW_AUTHENTICATE,
};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use super::access::Refused;
use super::site::{PATIENCE, ProxySite};
use super::upstream::{UpstreamError, relay};
use crate::exposition::CONTENT_TYPE;
use crate::http::host::HostRule;

/// Ports if a URL or the target of CONNECT names none.
const HTTP_PORT: u16 = 80;

/// What this proxy calls itself (RFC 9110, section 7.6.3).
const VIA_US: HeaderValue = HeaderValue::from_static("1.1 fairbat");

/// Fields for the next hop only, besides those that Connection names (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

type ForwardedBody = BoxBody<Bytes, hyper::Error>;

/// The connection for a client's last request, for the next one if that is for the same server.
#[derive(Default)]
struct Kept(Mutex<Option<(Authority, SendRequest<ForwardedBody>)>>);

impl Kept {
    /// The one to this server, if it can take another request.
    async fn take(&self, server: &Authority) -> Option<SendRequest<ForwardedBody>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (_, mut requests) = kept.filter(|(to, _)| to == server)?;
        requests.ready().await.is_ok().then_some(requests)
    }

    fn keep(&self, server: Authority, requests: SendRequest<ForwardedBody>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((server, requests));
    }
}

/// Serves a client that speaks it.
///
/// # Errors
/// It does not keep to the protocol, or its connection breaks.
pub(super) async fn serve(
    stream: TcpStream,
    client: IpAddr,
    site: Arc<ProxySite>,
) -> Result<(), String> {
    let kept = Arc::new(Kept::default());
    let answer = move |request| {
        let (site, kept) = (Arc::clone(&site), Arc::clone(&kept));
        async move { Ok::<_, hyper::Error>(answer(request, client, site, &kept).await) }
    };
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .preserve_header_case(true)
        .title_case_headers(true)
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .with_upgrades()
        .await
        .map_err(|error| error.to_string())
}

async fn answer(
    request: Request<Incoming>,
    client: IpAddr,
    site: Arc<ProxySite>,
    kept: &Kept,
) -> Response<ForwardedBody> {
    let is_own = request.uri().path() == "/metrics" && request.uri().scheme().is_none();
    // Whoever asks the proxy itself for something takes it for any server.
    let field = match is_own && request.headers().contains_key(AUTHORIZATION) {
        true => AUTHORIZATION,
        false => PROXY_AUTHORIZATION,
    };
    let checked = site.access.check(client, request.headers(), &field);
    if let Err(why) = checked {
        site.refusals.refused(why);
    }
    match checked {
        Ok(()) if is_own => metrics(request, &site),
        Ok(()) if request.method() == Method::CONNECT => tunnel(request, client, site).await,
        Ok(()) => pass_on(request, client, &site, kept).await,
        Err(Refused::Network) => said(
            StatusCode::FORBIDDEN,
            &format!("{client} may not use this proxy; its owner can allow it with --allow"),
        ),
        Err(Refused::Token) => {
            let (status, field) = match is_own {
                true => (StatusCode::UNAUTHORIZED, WWW_AUTHENTICATE),
                false => (
                    StatusCode::PROXY_AUTHENTICATION_REQUIRED,
                    PROXY_AUTHENTICATE,
                ),
            };
            let text = "this proxy needs its token, as the password of any user";
            let mut response = said(status, text);
            let basic = HeaderValue::from_static("Basic realm=\"fairbat proxy\"");
            response.headers_mut().insert(field, basic);
            response
        }
    }
}

/// The metrics, which are the proxy's own.
fn metrics(request: Request<Incoming>, site: &ProxySite) -> Response<ForwardedBody> {
    let (head, _) = request.into_parts();
    // A page of another site, open in a browser here, is not to read them.
    if let Err(refusal) = HostRule::default().check(&head) {
        return said(
            refusal.status(),
            "use an address of this machine, or localhost",
        );
    }
    if head.method != Method::GET {
        return said(StatusCode::METHOD_NOT_ALLOWED, "/metrics takes GET");
    }
    let body = Full::new(Bytes::from(super::metrics::render(site)));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed());
    let kind = HeaderValue::from_static(CONTENT_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Connects the client with a server, whatever they have to say to each other.
async fn tunnel(
    request: Request<Incoming>,
    client: IpAddr,
    site: Arc<ProxySite>,
) -> Response<ForwardedBody> {
    let Some((host, port)) = request.uri().host().zip(request.uri().port_u16()) else {
        return said(StatusCode::BAD_REQUEST, "CONNECT takes a host and a port");
    };
    let mut server = match site.upstream.dial(host, port, client).await {
        Ok(server) => server,
        Err(error) => return not_connected(&error, client, &site),
    };
    tokio::spawn(async move {
        match hyper::upgrade::on(request).await {
            Ok(upgraded) => relay(&mut TokioIo::new(upgraded), &mut server).await,
            Err(error) => tracing::debug!(%client, %error, "no tunnel"),
        }
    });
    Response::new(empty())
}

/// Passes a request on, and its response back.
async fn pass_on(
    mut request: Request<Incoming>,
    client: IpAddr,
    site: &ProxySite,
    kept: &Kept,
) -> Response<ForwardedBody> {
    let uri = request.uri().clone();
    let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return said(
            StatusCode::BAD_REQUEST,
            "this is a proxy: it takes CONNECT, and requests for http:// URLs",
        );
    };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let named = path
        .parse::<Uri>()
        .ok()
        .zip(HeaderValue::from_str(without_user(authority.as_str())).ok());
    let Some((path, host)) = named else {
        return said(StatusCode::BAD_REQUEST, "this URL cannot be passed on");
    };
    *request.uri_mut() = path;
    *request.version_mut() = Version::HTTP_11;
    for_next_hop(request.headers_mut());
    request.headers_mut().insert(HOST, host);
    match send(request, authority, client, site, kept).await {
        Ok(mut response) => {
            for_next_hop(response.headers_mut());
            response.map(BodyExt::boxed)
        }
        Err(response) => response,
    }
}

/// The host and port of an authority, without what precedes them.
fn without_user(authority: &str) -> &str {
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

/// Sends a request, over the connection of the last one if it can be.
///
/// # Errors
/// There is no answer: what the client is told.
async fn send(
    request: Request<Incoming>,
    server: &Authority,
    client: IpAddr,
    site: &ProxySite,
    kept: &Kept,
) -> Result<Response<Incoming>, Response<ForwardedBody>> {
    let taken = kept.take(server).await;
    let is_kept = taken.is_some();
    // The server may close a kept connection just now. What is safe is asked again then.
    let is_safe = request.method().is_safe() && request.body().is_end_stream();
    let again = (is_kept && is_safe).then(|| {
        let mut again = Request::new(empty());
        again.method_mut().clone_from(request.method());
        again.uri_mut().clone_from(request.uri());
        again.headers_mut().clone_from(request.headers());
        again
    });
    let request = request.map(BodyExt::boxed);
    let mut requests = match taken {
        Some(requests) => requests,
        None => connect(server, client, site).await?,
    };
    let mut sent = requests.try_send_request(request).await;
    if is_kept
        && let Err(error) = &mut sent
        && let Some(request) = error.take_message().or(again)
    {
        requests = connect(server, client, site).await?;
        sent = requests.try_send_request(request).await;
    }
    let response = sent.map_err(|error| no_answer(server, client, &error.into_error()))?;
    kept.keep(server.clone(), requests);
    Ok(response)
}

/// A new connection to this server.
///
/// # Errors
/// There is none: what the client is told.
async fn connect(
    server: &Authority,
    client: IpAddr,
    site: &ProxySite,
) -> Result<SendRequest<ForwardedBody>, Response<ForwardedBody>> {
    let port = server.port_u16().unwrap_or(HTTP_PORT);
    let dialled = site.upstream.dial(server.host(), port, client).await;
    let stream = dialled.map_err(|error| not_connected(&error, client, site))?;
    let begun = hyper::client::conn::http1::Builder::new()
        .preserve_header_case(true)
        .handshake(TokioIo::new(stream))
        .await;
    let (requests, connection) = begun.map_err(|error| no_answer(server, client, &error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a server broke");
        }
    });
    Ok(requests)
}

/// Removes the fields that were for this hop only, and tells of it.
fn for_next_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    headers.append(VIA, VIA_US);
}

fn not_connected(
    error: &UpstreamError,
    client: IpAddr,
    site: &ProxySite,
) -> Response<ForwardedBody> {
    site.refusals.not_connected(error);
    tracing::info!(%client, %error, "not connected");
    let status = match error {
        UpstreamError::Private(_) => StatusCode::FORBIDDEN,
        UpstreamError::Silent(_) => StatusCode::GATEWAY_TIMEOUT,
        UpstreamError::Unknown(..) | UpstreamError::Refused(..) => StatusCode::BAD_GATEWAY,
    };
    said(status, &error.to_string())
}

fn no_answer(server: &Authority, client: IpAddr, error: &hyper::Error) -> Response<ForwardedBody> {
    tracing::info!(%client, %error, "no answer");
    said(
        StatusCode::BAD_GATEWAY,
        &format!("{}: {error}", server.host()),
    )
}

/// A response of the proxy's own.
fn said(status: StatusCode, text: &str) -> Response<ForwardedBody> {
    let body = Full::new(Bytes::from(format!("fairbat proxy: {text}\n")));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    response
}

fn empty() -> ForwardedBody {
    let body = Full::new(Bytes::new());
    body.map_err(|never| match never {}).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_one_hop_is_not_passed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("proxy-authorization", "Basic x"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("accept", "*/*"),
            ("range", "bytes=0-1"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        for_next_hop(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "range", "via"]);
    }

    #[test]
    fn credentials_in_an_authority_stay_here() {
        assert_eq!(without_user("me:pw@h:8080"), "h:8080");
        assert_eq!(without_user("h"), "h");
    }
}
