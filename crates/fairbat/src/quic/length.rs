//! How long the body of a message is: as announced, and as it comes. Over HTTP/3, nothing but this
//! tells one that is not whole (RFC 9114, section 4.1.2).

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Frame, SizeHint};

use crate::http::fields::{digits, single};

/// The body is not as long as announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{received} of {announced} bytes came")]
pub(crate) struct WrongLength {
    received: u64,
    announced: u64,
}

/// The length of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BodyLength {
    announced: Option<u64>,
    received: u64,
}

impl BodyLength {
    /// As these fields announce it.
    pub(crate) fn announced(headers: &HeaderMap) -> Self {
        let announced = single(headers, &CONTENT_LENGTH);
        Self {
            announced: announced.and_then(|value| digits(value.to_str().ok()?)?.parse().ok()),
            received: 0,
        }
    }

    /// Of no body.
    pub(crate) fn none() -> Self {
        Self {
            announced: Some(0),
            received: 0,
        }
    }

    /// So many bytes have come.
    ///
    /// # Errors
    /// They are more than announced.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), WrongLength> {
        self.received += bytes as u64;
        self.check(|received, announced| received <= announced)
    }

    /// All has come.
    ///
    /// # Errors
    /// It is less than announced.
    fn end(&self) -> Result<(), WrongLength> {
        self.check(|received, announced| received == announced)
    }

    /// The next frame of a body of which this has come; `None` at its end.
    pub(crate) fn frame<E>(
        &mut self,
        data: Result<Option<impl Buf>, StreamError>,
    ) -> Option<Result<Frame<Bytes>, E>>
    where
        E: From<StreamError> + From<WrongLength>,
    {
        let data = match data {
            Ok(Some(mut data)) => data.copy_to_bytes(data.remaining()),
            Ok(None) => return self.end().err().map(|wrong| Err(wrong.into())),
            Err(error) => return Some(Err(error.into())),
        };
        let taken = self.take(data.len());
        Some(taken.map(|()| Frame::data(data)).map_err(Into::into))
    }

    fn check(&self, is_right: impl Fn(u64, u64) -> bool) -> Result<(), WrongLength> {
        let received = self.received;
        match self.announced {
            Some(announced) if !is_right(received, announced) => Err(WrongLength {
                received,
                announced,
            }),
            _ => Ok(()),
        }
    }

    /// What is still to come; `None` if nobody knows.
    pub(crate) fn left(&self) -> Option<u64> {
        let announced = self.announced?;
        Some(announced.saturating_sub(self.received))
    }

    /// The same for readers of a body.
    pub(crate) fn hint(&self) -> SizeHint {
        self.left().map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_body_is_as_long_as_announced() {
        let mut headers = HeaderMap::new();
        let mut unknown = BodyLength::announced(&headers);
        assert_eq!((unknown.left(), unknown.take(7)), (None, Ok(())));
        assert_eq!(unknown.end(), Ok(()));
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("10"));
        let mut length = BodyLength::announced(&headers);
        let wrong = |received| {
            Err(WrongLength {
                received,
                announced: 10,
            })
        };
        assert_eq!(length.take(7), Ok(()));
        assert_eq!((length.left(), length.end()), (Some(3), wrong(7)));
        assert_eq!((length.take(3), length.end()), (Ok(()), Ok(())));
        assert_eq!(length.take(1), wrong(11));
    }
}
