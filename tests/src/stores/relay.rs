//! HTTP/1.1 messages (RFC 9112) on their way through: a head as its lines, a
//! body in pieces, however its end is told. Knows nothing of faults.

use std::io::{self, BufRead, Read, Write};

/// Bytes of a body that are passed on at once.
const PIECE: usize = 16 * 1024;

/// The lines of a head, without their ends and the empty one.
#[derive(Debug)]
pub(super) struct Head(Vec<Vec<u8>>);

impl Head {
    /// Reads a head to its end.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            from.read_until(b'\n', &mut line)?;
            let Some(line) = line.strip_suffix(b"\r\n") else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            if line.is_empty() {
                return Ok(Self(lines));
            }
            lines.push(line.to_vec());
        }
    }

    /// Sends it.
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut text = self.0.join(&b"\r\n"[..]);
        text.extend(b"\r\n\r\n");
        to.write_all(&text)
    }

    /// The status code of a response.
    pub(super) fn status(&self) -> io::Result<u16> {
        let first = self.0.first().map_or(&[][..], Vec::as_slice);
        let status = String::from_utf8_lossy(first)
            .split(' ')
            .nth(1)
            .and_then(|text| text.parse().ok());
        status.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Takes a header field out; whether it was there.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|line| value(line, name).is_none());
        self.0.len() != before
    }

    /// Puts a header field in the place of any of its name.
    pub(super) fn replace(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.0.push(format!("{name}: {value}").into_bytes());
    }

    /// The body that follows the head of a request.
    pub(super) fn request_body(&self) -> Body {
        self.told_body().unwrap_or(Body::Length(0))
    }

    /// The body that follows the head of a response to this method.
    pub(super) fn response_body(&self, method: &str) -> Body {
        match self.status() {
            _ if method == "HEAD" => Body::Length(0),
            Ok(100..=199 | 204 | 304) => Body::Length(0),
            _ => self.told_body().unwrap_or(Body::UntilClose),
        }
    }

    /// Whether its sender keeps the connection after this message.
    pub(super) fn keeps_alive(&self) -> bool {
        let old = (self.0.first()).is_some_and(|line| line.starts_with(b"HTTP/1.0"));
        let closes = |text: String| text.eq_ignore_ascii_case("close");
        !old && !self.field("connection").is_some_and(closes)
    }

    fn told_body(&self) -> Option<Body> {
        if self.field("transfer-encoding").is_some() {
            return Some(Body::Chunked);
        }
        let length = self.field("content-length")?.parse().ok()?;
        Some(Body::Length(length))
    }

    fn field(&self, name: &str) -> Option<String> {
        self.0.iter().find_map(|line| value(line, name))
    }
}

/// The value in a line of a head, if it is the field of this name.
fn value(line: &[u8], name: &str) -> Option<String> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (found, value) = line.split_at(colon);
    let is_it = found.eq_ignore_ascii_case(name.as_bytes());
    is_it.then(|| String::from_utf8_lossy(&value[1..]).trim().to_owned())
}

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// By its length, bytes; a message without a body has length 0.
    Length(u64),
    /// Transfer-Encoding: chunked.
    Chunked,
    /// The body ends with the connection.
    UntilClose,
}

/// Which side of a passage failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// What it comes from.
    Source,
    /// What it goes to.
    Sink,
}

impl Body {
    /// Passes it on to its end, or until `limit` bytes of content have passed;
    /// `passed` counts them, also up to a failure.
    pub(super) fn pass(
        self,
        from: &mut impl Read,
        to: &mut impl Write,
        limit: u64,
        passed: &mut u64,
    ) -> Result<(), Broken> {
        match self {
            Self::Length(length) => copy(from, to, length.min(limit), passed),
            Self::UntilClose => {
                let mut source = from.take(limit);
                while copy_piece(&mut source, to, PIECE, passed)? > 0 {}
                Ok(())
            }
            Self::Chunked => pass_chunks(from, to, limit, passed),
        }
    }
}

fn pass_chunks(
    from: &mut impl Read,
    to: &mut impl Write,
    limit: u64,
    passed: &mut u64,
) -> Result<(), Broken> {
    loop {
        let line = pass_line(from, to)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).map_err(|_| Broken::Source)?;
        if size == 0 {
            // The trailers, and an empty line.
            while !pass_line(from, to)?.trim().is_empty() {}
            return Ok(());
        }
        copy(from, to, size.min(limit - *passed), passed)?;
        if *passed == limit {
            return Ok(());
        }
        pass_line(from, to)?;
    }
}

/// Passes a line on, reading nothing beyond it.
fn pass_line(from: &mut impl Read, to: &mut impl Write) -> Result<String, Broken> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        from.read_exact(&mut byte).map_err(|_| Broken::Source)?;
        line.extend(byte);
    }
    to.write_all(&line).map_err(|_| Broken::Sink)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    length: u64,
    passed: &mut u64,
) -> Result<(), Broken> {
    let mut left = length;
    while left > 0 {
        let most = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        match copy_piece(from, to, most, passed)? {
            0 => return Err(Broken::Source),
            read => left -= read,
        }
    }
    Ok(())
}

/// Passes on what comes first, at most `most` bytes; 0 is the end.
fn copy_piece(
    from: &mut impl Read,
    to: &mut impl Write,
    most: usize,
    passed: &mut u64,
) -> Result<u64, Broken> {
    let mut piece = [0; PIECE];
    let read = loop {
        match from.read(&mut piece[..most]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other.map_err(|_| Broken::Source)?,
        }
    };
    to.write_all(&piece[..read]).map_err(|_| Broken::Sink)?;
    *passed += read as u64;
    Ok(read as u64)
}
