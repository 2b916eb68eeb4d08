//! One upload request, without redirects: what is sent, and what the server
//! answers. The caller decides what the answer means for the upload.
//!
//! The body begins at once, because reqwest cannot wait for `100 Continue` (RFC
//! 9110, section 10.1.1). A server that refuses the body says so while the body
//! comes. It may close the connection behind that answer, and its kernel resets
//! the connection because of the bytes that still come. Our end then fails while
//! it writes, and hyper reads no further. But bytes that arrived before the reset
//! can still be read: [`unread_answer`] does so. Careful servers wait a little
//! before they close (RFC 9112, section 9.6), and need none of this. Under TLS
//! the answer is lost, because its keys went with the connection.

use dalbe::socket::TcpSocket;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_RANGE, IF_NONE_MATCH, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::RequestBuilder;
use url::Url;

use super::client::{HttpClient, next_url};
use crate::http::range::ContentRange;
use crate::http::{Failure, Remarks, priority, without_credentials};

/// A request that stores a file or a part of one, or is about it.
#[derive(Debug, Clone)]
pub(crate) struct Put<'a> {
    /// The URL that the user named. Only its host sees the user's credentials.
    pub(crate) named: &'a Url,
    /// The URL to send it to: the named one, or where an answer led.
    pub(crate) url: &'a Url,
    /// Which bytes of the file it is about; `None` for all.
    pub(crate) range: Option<ContentRange>,
    /// Store only if there is nothing at the URL (RFC 9110, section 13.1.2).
    pub(crate) create_only: bool,
}

/// What a server answers.
#[derive(Debug)]
pub(crate) struct PutAnswer {
    pub(crate) status: StatusCode,
    pub(crate) remarks: Remarks,
    /// Where the server says that the file belongs.
    pub(crate) location: Option<HeaderValue>,
    /// The methods that the server takes there.
    pub(crate) allow: Option<HeaderValue>,
    /// Whether the server takes uploads in parts.
    pub(crate) takes_parts: bool,
}

impl PutAnswer {
    fn new(status: StatusCode, headers: &HeaderMap) -> Self {
        let header = |name| headers.get(name).cloned();
        Self {
            status,
            remarks: Remarks::of(headers),
            location: header(LOCATION),
            allow: header(ALLOW),
            takes_parts: priority::takes_parts(headers),
        }
    }

    /// The URL of a redirect from `from`.
    ///
    /// # Errors
    /// There is no URL, or it may not be followed.
    pub(crate) fn next(&self, from: &Url) -> Result<Url, Failure> {
        match &self.location {
            Some(location) => next_url(from, location),
            None => Err(Failure::server("the server redirects, but not where to")),
        }
    }
}

impl HttpClient {
    /// Sends a request unchanged.
    pub(crate) async fn send_unchanged(
        &self,
        request: http::Request<reqwest::Body>,
    ) -> Result<reqwest::Response, Failure> {
        let request = reqwest::Request::try_from(request).map_err(Failure::from)?;
        let request = RequestBuilder::from_parts(self.client.clone(), request);
        self.send(request).await
    }

    /// Sends a PUT with this body of `length` bytes. The answer may come before the server has
    /// taken the whole body.
    pub(crate) async fn put<B>(
        &self,
        put: &Put<'_>,
        length: u64,
        body: B,
    ) -> Result<PutAnswer, Failure>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + Sync + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let request = self.client.put(without_credentials(put.url));
        let request = request.header(CONTENT_LENGTH, length);
        self.answer(put, request.body(reqwest::Body::wrap(body)))
            .await
    }

    /// Sends a request without a body about what is stored at a URL, or is to be.
    pub(crate) async fn ask(&self, method: Method, put: &Put<'_>) -> Result<PutAnswer, Failure> {
        let mut request = self
            .client
            .request(method.clone(), without_credentials(put.url));
        if method == Method::POST {
            request = request.header(CONTENT_LENGTH, 0);
        }
        self.answer(put, request).await
    }

    async fn answer(
        &self,
        put: &Put<'_>,
        mut request: RequestBuilder,
    ) -> Result<PutAnswer, Failure> {
        if let Some(range) = &put.range {
            request = request.header(CONTENT_RANGE, range.to_string());
        }
        if put.create_only {
            request = request.header(IF_NONE_MATCH, "*");
        }
        let request = self.identify(request, Some(put.named), put.url);
        let response = self.send(request).await?;
        Ok(PutAnswer::new(response.status(), response.headers()))
    }
}

/// Bytes of an unread answer that are looked at. Heads of answers are far
/// shorter.
const MAX_UNREAD_ANSWER: usize = 64 * 1024;

/// Header fields in an unread answer; more than any server sends.
const MAX_FIELDS: usize = 100;

/// The answer that waits unread on a connection whose request has failed.
pub(crate) fn unread_answer(socket: &TcpSocket) -> Option<PutAnswer> {
    let mut raw = vec![0; MAX_UNREAD_ANSWER];
    let length = socket.take_unread(&mut raw).ok()?;
    parse(&raw[..length])
}

/// The first final answer in these bytes; `None` if its head is incomplete.
fn parse(mut raw: &[u8]) -> Option<PutAnswer> {
    loop {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let httparse::Status::Complete(end) = response.parse(raw).ok()? else {
            return None;
        };
        let status = StatusCode::from_u16(response.code?).ok()?;
        if !status.is_informational() {
            let field = |field: &httparse::Header<'_>| {
                let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
                Some((name, HeaderValue::from_bytes(field.value).ok()?))
            };
            let headers = response.headers.iter().filter_map(field).collect();
            return Some(PutAnswer::new(status, &headers));
        }
        raw = &raw[end..];
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_final_answer_counts() {
        let raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-After: 7\r\n\r\nbody";
        let answer = parse(raw).unwrap();
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.remarks.retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn half_an_answer_is_none() {
        let raw = b"HTTP/1.1 413 Too Large\r\nServer: x\r\n\r\n";
        for end in 0..raw.len() {
            assert!(parse(&raw[..end]).is_none(), "{end}");
        }
        assert!(parse(raw).is_some());
        assert!(parse(b"\x15\x03\x03\x00\x02\x02\x28").is_none(), "TLS");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_none(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&raw);
        }
    }
}
