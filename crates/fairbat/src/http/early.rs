//! The answer that a server gave before it broke off.
//!
//! A server that does not want a body may answer, close, and have its kernel
//! reset the connection because of what still comes. Our end then fails while
//! it writes, and hyper looks no further; but what had arrived before the
//! reset can still be read. (Careful servers wait a little between answer and
//! close, as RFC 9112 section 9.6 has it, and need none of this.) Under TLS the
//! answer is lost: its keys have gone with the connection.

use dalbe::socket::TcpSocket;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::upload::Answer;

/// Longest answer that is looked at, and most header fields, with a wide
/// margin over what servers send.
const ROOM: usize = 64 * 1024;
const MOST_FIELDS: usize = 100;

/// The answer that waits unread on a connection whose request has failed.
pub(crate) fn unread_answer(socket: &TcpSocket) -> Option<Answer> {
    let mut raw = vec![0; ROOM];
    let length = socket.take_unread(&mut raw).ok()?;
    parse(&raw[..length])
}

/// The first final answer in these bytes, if its head is complete.
fn parse(mut raw: &[u8]) -> Option<Answer> {
    loop {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let httparse::Status::Complete(end) = response.parse(raw).ok()? else {
            return None;
        };
        let status = StatusCode::from_u16(response.code?).ok()?;
        if !status.is_informational() {
            return Some(Answer::new(status, &headers(response.headers)));
        }
        raw = &raw[end..];
    }
}

fn headers(fields: &[httparse::Header<'_>]) -> HeaderMap {
    let field = |field: &httparse::Header<'_>| {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_bytes(field.value).ok()?))
    };
    fields.iter().filter_map(field).collect()
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
