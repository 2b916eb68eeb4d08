//! What a request is answered.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use sha2::{Digest as _, Sha256};

use super::host::{self, Unfit};
use super::{Site, history, page};
use crate::metrics;

/// A whole response.
type Answer = Response<Full<Bytes>>;

const PLAIN: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// What the page may do: use the style and the script that are in it, show the icon
/// that is in it, and ask us. Nothing may frame it.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash(page::STYLE),
        hash(page::SCRIPT)
    )
});

/// See the module.
pub(super) fn answer(site: &Site, request: &Parts) -> Answer {
    match host::check(request) {
        Ok(()) => {}
        Err(Unfit::Malformed) => {
            let text = "One Host is needed.\n";
            return whole(StatusCode::BAD_REQUEST, PLAIN, text.to_owned());
        }
        Err(Unfit::Foreign) => {
            let text = "Names are not answered here, or pages of others could read this. Use the \
                        address, or localhost.\n";
            return whole(StatusCode::MISDIRECTED_REQUEST, PLAIN, text.to_owned());
        }
    }
    let render: fn(&Site) -> Answer = match request.uri.path() {
        "/" => page,
        "/history.json" => history,
        "/metrics" => metrics,
        _ => {
            let text = "There is nothing here. There are /, /history.json and /metrics.\n";
            return whole(StatusCode::NOT_FOUND, PLAIN, text.to_owned());
        }
    };
    if ![Method::GET, Method::HEAD].contains(&request.method) {
        let text = "Nothing can be changed here.\n".to_owned();
        let mut answer = whole(StatusCode::METHOD_NOT_ALLOWED, PLAIN, text);
        let headers = answer.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    render(site)
}

fn page(site: &Site) -> Answer {
    let text = page::render(&site.handle, &site.zone);
    let mut answer = whole(StatusCode::OK, HTML, text);
    if let Ok(policy) = HeaderValue::from_str(&POLICY) {
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

fn history(site: &Site) -> Answer {
    whole(StatusCode::OK, JSON, history::render(&site.handle))
}

fn metrics(site: &Site) -> Answer {
    let text = site.metrics.render(&site.handle.status());
    whole(StatusCode::OK, metrics::CONTENT_TYPE, text)
}

/// For no eyes but those that asked, and never asked again of a cache.
fn whole(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    let fixed = [
        (CONTENT_TYPE, kind),
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
