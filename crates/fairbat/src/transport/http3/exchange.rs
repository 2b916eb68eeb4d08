//! One request over HTTP/3 and its answer (RFC 9114, section 4), in the types of reqwest.
//!
//! The body of the request leaves in a task of its own: the answer may come before all of it has
//! left. Both end when the answer is dropped, or is not waited for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::{Code, ConnectionError, StreamError};
use http::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Sleep;

use super::connection::ConnectionUse;
use crate::quic::{BodyLength, Receiving, Sending, Streams, WrongLength};

/// Fields of a connection, which HTTP/3 does not have (RFC 9114, section 4.2).
const OF_CONNECTIONS: [HeaderName; 5] = [HOST, CONNECTION, TE, TRANSFER_ENCODING, UPGRADE];

/// So much of an answer is read to its end when nobody wants it, bytes.
const MAX_UNWANTED: u64 = 64 * 1024;

/// And for no longer than this.
const MAX_UNWANTED_TIME: Duration = Duration::from_secs(5);

/// Why there is no answer, or no more of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// The connection or the stream is gone.
    #[error("HTTP/3: {0}")]
    Stream(#[source] StreamError),
    /// The server has closed the connection, and says that nothing is wrong.
    #[error("the server closed the connection")]
    Closed,
    /// The body of the answer is not as long as announced.
    #[error("HTTP/3: the answer is not as long as announced: {0}")]
    Length(#[from] WrongLength),
    /// Nothing came for too long.
    #[error("HTTP/3: {0}")]
    Silent(#[source] io::Error),
}

impl From<StreamError> for Broken {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::ConnectionError {
                0: ConnectionError::Timeout { .. },
                ..
            } => Self::silent(),
            error if error.is_h3_no_error() => Self::Closed,
            error => Self::Stream(error),
        }
    }
}

impl Broken {
    /// Whether the connection takes no more requests, and did not take this one (RFC 9114, section
    /// 4.1.1).
    pub(super) fn is_refused(&self) -> bool {
        let code = match self {
            Self::Stream(StreamError::RemoteClosing { .. }) => return true,
            Self::Stream(StreamError::RemoteTerminate { code, .. }) => code,
            _ => return false,
        };
        *code == Code::H3_REQUEST_REJECTED
    }

    pub(super) fn silent() -> Self {
        Self::Silent(io::Error::new(io::ErrorKind::TimedOut, "no data came"))
    }
}

/// Sends a request, and waits for the head of its answer. Nothing may come for so long.
pub(crate) async fn exchange(
    mut requests: SendRequest<Streams, Bytes>,
    request: Request<reqwest::Body>,
    priority: i32,
    use_of: ConnectionUse,
    max_silence: Option<Duration>,
) -> Result<Response<reqwest::Body>, Broken> {
    let (mut parts, body) = request.into_parts();
    for name in OF_CONNECTIONS {
        parts.headers.remove(name);
    }
    let any = HeaderValue::from_static("*/*");
    parts.headers.entry(ACCEPT).or_insert(any);
    parts.version = Version::HTTP_3;
    let has_body = !body.is_end_stream();
    if let Some(length) = body.size_hint().exact().filter(|_| has_body) {
        parts.headers.entry(CONTENT_LENGTH).or_insert(length.into());
    }
    let is_head = parts.method == Method::HEAD;
    let head = Request::from_parts(parts, ());
    let opening = async {
        let stream = requests.send_request(head).await?;
        use_of.connection().priorities.set(stream.id(), priority);
        let (mut sending, mut receiving) = stream.split();
        let mut upload = JoinSet::new();
        if has_body {
            upload.spawn(send(sending, body));
        } else {
            end(&mut sending).await;
        }
        let response = loop {
            let response = receiving.recv_response().await?;
            if !response.status().is_informational() {
                break response;
            }
        };
        Ok::<_, StreamError>((response, receiving, upload))
    };
    // An upload may take its time until it is answered. Its silence is its caller's business.
    let limit = max_silence.filter(|_| !has_body);
    let (response, receiving, upload) = match limit {
        Some(limit) => tokio::time::timeout(limit, opening)
            .await
            .map_err(|_elapsed| Broken::silent())?,
        None => opening.await,
    }?;
    let brings_body = !is_head && response.status() != StatusCode::NOT_MODIFIED;
    let length = match brings_body {
        true => BodyLength::announced(response.headers()),
        false => BodyLength::none(),
    };
    let body = Http3ResponseBody {
        receiving: Some(receiving),
        _upload: upload,
        use_of: Some(use_of),
        length,
        max_silence,
        silence: None,
    };
    Ok(response.map(|()| reqwest::Body::wrap(body)))
}

/// Sends the body of a request to its end.
async fn send(mut stream: RequestStream<Sending, Bytes>, mut body: reqwest::Body) {
    while !body.is_end_stream() {
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let sent = match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => stream.send_data(data).await,
                Err(_trailers) => continue,
            },
            Some(Err(error)) => {
                tracing::debug!(%error, "the body of a request broke off");
                return stream.stop_stream(Code::H3_REQUEST_CANCELLED);
            }
            None => break,
        };
        if let Err(error) = sent {
            // The answer says more.
            return tracing::debug!(%error, "no more of a request is taken");
        }
    }
    end(&mut stream).await;
}

/// Ends a request. The server may have answered already, and want no more of it (RFC 9114, section
/// 4.1). What else is wrong shows where the answer is read.
async fn end(stream: &mut RequestStream<Sending, Bytes>) {
    if let Err(error) = stream.finish().await {
        tracing::debug!(%error, "the end of a request is not taken");
    }
}

/// The body of an answer.
struct Http3ResponseBody {
    /// None once it is being dropped.
    receiving: Option<RequestStream<Receiving, Bytes>>,
    /// Ends with the answer.
    _upload: JoinSet<()>,
    /// None once it is being dropped.
    use_of: Option<ConnectionUse>,
    length: BodyLength,
    max_silence: Option<Duration>,
    /// Ends when nothing has come for too long.
    silence: Option<Pin<Box<Sleep>>>,
}

impl Http3ResponseBody {
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<Broken> {
        let Some(limit) = self.max_silence else {
            return Poll::Pending;
        };
        let silence = self
            .silence
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        silence.as_mut().poll(context).map(|()| Broken::silent())
    }
}

impl Body for Http3ResponseBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        let Some(receiving) = &mut this.receiving else {
            return Poll::Ready(None);
        };
        let Poll::Ready(data) = receiving.poll_recv_data(context) else {
            let broken = ready!(this.poll_silence(context));
            return Poll::Ready(Some(Err(broken)));
        };
        this.silence = None;
        Poll::Ready(this.length.frame(data))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.hint()
    }
}

impl Drop for Http3ResponseBody {
    /// A connection that has lost the rest of an answer is not used again. So a little rest, as of
    /// an error's page, is read.
    fn drop(&mut self) {
        let is_little = self.length.left().is_some_and(|left| left <= MAX_UNWANTED);
        let receiving = self.receiving.take().filter(|_| is_little);
        let (Some(mut receiving), Ok(runtime)) = (receiving, Handle::try_current()) else {
            return;
        };
        let (mut length, use_of) = (self.length, self.use_of.take());
        runtime.spawn(async move {
            let rest = async {
                while let Ok(Some(data)) = receiving.recv_data().await {
                    if length.take(data.remaining()).is_err() {
                        return;
                    }
                }
            };
            let _ = tokio::time::timeout(MAX_UNWANTED_TIME, rest).await;
            drop(use_of);
        });
    }
}
