//! HTTP/1.1 messages (RFC 9112) as the scripted servers see and say them:
//! reading a request without consuming it, and replies that may break the
//! rules on purpose. Knows nothing of files and versions.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use crate::date::http_date;

/// Longest request head that is read.
const MAX_HEAD: usize = 64 * 1024;

/// Bytes of body sent at once; a rate is kept in steps of this, or of a tenth of a second.
const SLICE: usize = 16 * 1024;

/// A request head as it came over the wire.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, `HEAD`, `CONNECT` ...
    pub method: String,
    /// The request target, literally: a path with query, or an absolute URL
    /// or authority for a proxy.
    pub target: String,
    /// The header fields in their order, names as sent.
    pub headers: Vec<(String, String)>,
    /// When the head had arrived, on the server's clock since it started.
    pub at: Duration,
    /// How many requests for the same target came before this one.
    pub nth: usize,
    /// The same, counting only those that are no probes.
    pub nth_data: usize,
    /// Requests being answered at this moment, this one included.
    pub active: usize,
    /// Which connection it came on.
    pub connection: usize,
}

impl Request {
    /// The first value of a header field, by case-insensitive name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// First and last byte position asked for with `Range: bytes=a-b`; the
    /// last is `None` for `bytes=a-`.
    #[must_use]
    pub fn range(&self) -> Option<(u64, Option<u64>)> {
        let (first, last) = self
            .header("range")?
            .strip_prefix("bytes=")?
            .split_once('-')?;
        let last = match last {
            "" => None,
            digits => Some(digits.parse().ok()?),
        };
        Some((first.parse().ok()?, last))
    }

    /// Length of the body that follows the head, bytes.
    #[must_use]
    pub fn body_length(&self) -> u64 {
        let length = self.header("content-length");
        length.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Whether only the first byte is asked for, to learn about the file.
    #[must_use]
    pub fn asks_for_one_byte(&self) -> bool {
        self.range() == Some((0, Some(0)))
    }

    /// Whether it asks for the beginning of a file of which nothing is known yet: ranges of a known
    /// version are conditional.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        let begins = matches!(self.range(), Some((0, Some(_))));
        begins && self.header("if-range").is_none()
    }
}

/// A request head waiting in the socket's buffer, and its length there.
///
/// It is looked at without being read, so that a connection can be closed
/// with unread data: the kernel then sends RST where it would send FIN.
pub(crate) struct Waiting {
    pub(crate) request: Request,
    pub(crate) length: usize,
}

/// Waits for the next request head; `None` when the peer closed, when `stop`
/// says so, or when what came is no HTTP.
pub(crate) fn peek_request(stream: &TcpStream, stop: impl Fn() -> bool) -> Option<Waiting> {
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .ok()?;
    let mut buffer = vec![0; MAX_HEAD];
    let mut seen = 0;
    while !stop() {
        match stream.peek(&mut buffer) {
            Ok(0) => return None,
            Ok(length) => {
                if let Some(end) = find(&buffer[..length], b"\r\n\r\n") {
                    let request = parse(std::str::from_utf8(&buffer[..end]).ok()?)?;
                    let length = end + 4;
                    return Some(Waiting { request, length });
                }
                if length == MAX_HEAD {
                    return None;
                }
                if length == seen {
                    std::thread::sleep(Duration::from_millis(1));
                }
                seen = length;
            }
            Err(error) if is_timeout(&error) => {}
            Err(_) => return None,
        }
    }
    None
}

/// Whether a read gave up because of its timeout.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

fn parse(head: &str) -> Option<Request> {
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    Some(Request {
        method: first.next()?.to_owned(),
        target: first.next()?.to_owned(),
        headers: lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect(),
        at: Duration::ZERO,
        nth: 0,
        nth_data: 0,
        active: 0,
        connection: 0,
    })
}

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Content-Length of the body (also when the body is then cut short).
    Length,
    /// Content-Length of so many bytes, whatever the body has.
    ClaimedLength(u64),
    /// Transfer-Encoding: chunked.
    Chunked,
    /// Neither: the body ends with the connection.
    UntilClose,
    /// No head either: nothing is answered before the end.
    Nothing,
}

/// What happens at the end of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All of the body is sent and the connection stays open.
    KeepAlive,
    /// After this many bytes of the body the connection is closed with FIN.
    Close(u64),
    /// After this many bytes of the body the connection is reset.
    Reset(u64),
    /// After this many bytes of the body nothing comes any more; the
    /// connection stays open until the peer or the test ends it.
    Stall(u64),
}

/// What a scripted server answers.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    framing: Framing,
    end: End,
    rate: Option<u64>,
    after_body: bool,
}

impl Reply {
    /// A status with a short body that says it.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::new(status, format!("status {status}\n").into_bytes())
    }

    /// A status and a body, with Content-Length.
    #[must_use]
    pub fn new(status: u16, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            framing: Framing::Length,
            end: End::KeepAlive,
            rate: None,
            after_body: false,
        }
    }

    /// A redirect to `location`.
    #[must_use]
    pub fn redirect(status: u16, location: &str) -> Self {
        Self::new(status, Vec::new()).header("Location", location)
    }

    /// With this header field, in place of any of the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without this header field.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(key, _)| !key.eq_ignore_ascii_case(name));
        self
    }

    /// With another body.
    #[must_use]
    pub fn body(mut self, body: Vec<u8>) -> Self {
        self.body = body;
        self
    }

    /// The body as it stands.
    #[must_use]
    pub fn body_bytes(&self) -> &[u8] {
        &self.body
    }

    /// With another way to tell the end of the body.
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        if framing == Framing::UntilClose {
            self = self.header("Connection", "close");
        }
        self
    }

    /// With another end.
    #[must_use]
    pub fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Sent no faster than this, in byte/s.
    #[must_use]
    pub fn rate(mut self, rate: u64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Sent only when all of the request's body has come, which is thrown away;
    /// else a body is left unread.
    #[must_use]
    pub fn after_body(mut self) -> Self {
        self.after_body = true;
        self
    }

    /// Whether the request's body is to be read first.
    pub(crate) fn takes_body(&self) -> bool {
        self.after_body
    }

    /// Announcing and doing the end of the connection after the last byte,
    /// unless it ends in some other way already.
    pub(crate) fn closing(mut self) -> Self {
        if self.end == End::KeepAlive {
            self.end = End::Close(u64::MAX);
        }
        self.header("Connection", "close")
    }

    /// How the connection is to end after this reply.
    pub(crate) fn ending(&self) -> End {
        match (self.end, self.framing) {
            (End::KeepAlive, Framing::UntilClose | Framing::Nothing) => End::Close(u64::MAX),
            (end, _) => end,
        }
    }

    /// Sends head and body; `head_only` for the answer to `HEAD`. Drops `busy`
    /// before the last bytes leave: once the peer has them all, it may act on
    /// them at once.
    pub(crate) fn send<Guard>(
        &self,
        stream: &mut impl Write,
        head_only: bool,
        busy: &mut Option<Guard>,
    ) -> io::Result<()> {
        if self.framing == Framing::Nothing {
            return Ok(());
        }
        let sent = if head_only { 0 } else { self.sent_length() };
        if sent == 0 {
            *busy = None;
        }
        stream.write_all(self.head().as_bytes())?;
        if head_only {
            return Ok(());
        }
        let begin = Instant::now();
        let step = self.rate.map_or(SLICE, |rate| (rate / 10) as usize);
        let step = step.clamp(1, SLICE);
        for (index, slice) in self.body[..sent].chunks(step).enumerate() {
            if let Some(rate) = self.rate {
                let after = index * step + slice.len();
                let due = Duration::from_secs_f64(after as f64 / rate as f64);
                std::thread::sleep(due.saturating_sub(begin.elapsed()));
            }
            if (index + 1) * step >= sent {
                *busy = None;
            }
            self.send_slice(stream, slice)?;
        }
        let whole = matches!(self.end, End::KeepAlive | End::Close(u64::MAX));
        if self.framing == Framing::Chunked && whole {
            stream.write_all(b"0\r\n\r\n")?;
        }
        Ok(())
    }

    fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        head.push_str(&format!("Date: {}\r\n", http_date(SystemTime::now())));
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&match self.framing {
            Framing::Length => format!("Content-Length: {}\r\n", self.body.len()),
            Framing::ClaimedLength(length) => format!("Content-Length: {length}\r\n"),
            Framing::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
            Framing::UntilClose | Framing::Nothing => String::new(),
        });
        head.push_str("\r\n");
        head
    }

    /// How many bytes of the body are sent before the end.
    fn sent_length(&self) -> usize {
        match self.end {
            End::KeepAlive => self.body.len(),
            End::Close(after) | End::Reset(after) | End::Stall(after) => {
                usize::try_from(after).map_or(self.body.len(), |n| n.min(self.body.len()))
            }
        }
    }

    fn send_slice(&self, stream: &mut impl Write, slice: &[u8]) -> io::Result<()> {
        if self.framing != Framing::Chunked {
            return stream.write_all(slice);
        }
        write!(stream, "{:x}\r\n", slice.len())?;
        stream.write_all(slice)?;
        stream.write_all(b"\r\n")
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        300..=399 => "Redirected",
        400..=499 => "Client Error",
        500..=599 => "Server Error",
        _ => "Status",
    }
}
