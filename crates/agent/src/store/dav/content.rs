//! Reading a file of a server: all of it, or exactly a range of its bytes.

use std::ops::Range;

use bytes::Bytes;
use fairbat::http::range::ContentRange;
use fairbat::transport::{Received, RequestContext};
use futures_util::stream::{self, StreamExt};
use http::header::{CONTENT_ENCODING, CONTENT_RANGE, RANGE};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyDataStream, BodyExt, Empty};

use super::client::DavClient;
use crate::store::backend::ContentStream;
use crate::store::error::{StoreError, StoreErrorKind};

/// Fetches the file at a URL, or exactly a range of its bytes.
pub(crate) async fn get(
    client: &DavClient,
    url: &str,
    range: Option<Range<u64>>,
    context: RequestContext,
    doing: String,
) -> Result<ContentStream, StoreError> {
    if range.as_ref().is_some_and(Range::is_empty) {
        return Ok(stream::empty().boxed());
    }
    let mut request = client.request(Method::GET, url);
    if let Some(Range { start, end }) = &range {
        request = request.header(RANGE, format!("bytes={start}-{}", end - 1));
    }
    let response = client.send(request, Empty::<Bytes>::new(), context).await;
    let response = response.map_err(|error| error.error(&doing))?;
    let reading = BodyReading::of(response, range, doing)?;
    Ok(stream::try_unfold(reading, BodyReading::next).boxed())
}

/// The body of an answer, piece by piece.
struct BodyReading {
    body: BodyDataStream<Received>,
    /// Bytes to skip first.
    skip: u64,
    /// Bytes to deliver after that.
    left: u64,
    /// Whether a shorter body is an error.
    is_exact: bool,
    doing: String,
}

impl BodyReading {
    fn of(
        response: Response<Received>,
        range: Option<Range<u64>>,
        doing: String,
    ) -> Result<Self, StoreError> {
        let headers = response.headers();
        let encoding = headers.get(CONTENT_ENCODING);
        if encoding.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(StoreError::senseless(&doing, "it is encoded"));
        }
        let (skip, left, is_exact) = match (response.status(), range) {
            (StatusCode::OK, None) => (0, u64::MAX, false),
            // Some servers do not know ranges and send the whole file.
            (StatusCode::OK, Some(range)) => (range.start, range.end - range.start, false),
            (StatusCode::PARTIAL_CONTENT, Some(range)) => {
                let answered = headers.get(CONTENT_RANGE).map(HeaderValue::as_bytes);
                let length = answered
                    .and_then(ContentRange::parse)
                    .and_then(|answered| length_of(answered, &range));
                let length = length.ok_or_else(|| {
                    StoreError::senseless(&doing, "it is not the range that was asked for")
                })?;
                (0, length, true)
            }
            (status, _) => return Err(StoreError::senseless(&doing, status)),
        };
        Ok(Self {
            body: response.into_body().into_data_stream(),
            skip,
            left,
            is_exact,
            doing,
        })
    }

    async fn next(mut self) -> Result<Option<(Bytes, Self)>, StoreError> {
        while self.left > 0 {
            let Some(piece) = self.body.next().await else {
                if self.is_exact {
                    let message = format!("{}: the answer ended early", self.doing);
                    return Err(StoreError::new(StoreErrorKind::Network, message));
                }
                return Ok(None);
            };
            let mut piece =
                piece.map_err(|error| StoreError::from(error).while_doing(&self.doing))?;
            let skipped = self.skip.min(piece.len() as u64);
            self.skip -= skipped;
            let _ = piece.split_to(skipped as usize);
            piece.truncate(self.left.min(piece.len() as u64) as usize);
            if !piece.is_empty() {
                self.left -= piece.len() as u64;
                return Ok(Some((piece, self)));
            }
        }
        Ok(None)
    }
}

/// The length of an answer, bytes, if it is the range that was asked for, cut at the
/// end of the file.
fn length_of(answered: ContentRange, asked: &Range<u64>) -> Option<u64> {
    let ContentRange::Bytes { first, last, total } = answered else {
        return None;
    };
    let end = last + 1;
    let is_asked =
        first == asked.start && (end == asked.end || (end < asked.end && total == Some(end)));
    is_asked.then_some(end - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_range_that_was_asked_for_is_taken() {
        for (answered, expected) in [
            ("bytes 5-9/100", Some(5)),
            ("bytes 5-9/*", Some(5)),
            ("bytes 5-7/8", Some(3)),
            ("bytes 5-7/*", None),
            ("bytes 5-7/100", None),
            ("bytes 0-9/100", None),
            ("bytes 5-10/100", None),
            ("bytes */100", None),
        ] {
            let range = ContentRange::parse(answered.as_bytes()).unwrap();
            assert_eq!(length_of(range, &(5..10)), expected, "{answered}");
        }
    }
}
