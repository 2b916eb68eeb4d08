//! One version of a file as an origin server would answer for it (RFC 9110
//! sections 13 and 14); scripts start from its honest answer and spoil it.

use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::content::Content;
use crate::message::{Framing, Reply, Request};

/// A Last-Modified long enough ago to be a strong validator.
pub const LAST_MODIFIED: &str = "Wed, 01 Jan 2020 00:00:00 GMT";

/// A later Last-Modified, for the next version.
pub const LATER_MODIFIED: &str = "Sat, 01 Feb 2020 00:00:00 GMT";

/// The bytes and the validators of one version of a file.
#[derive(Debug, Clone)]
pub struct Version {
    bytes: Arc<Vec<u8>>,
    etag: Option<String>,
    last_modified: Option<String>,
}

impl Version {
    /// This content with a strong ETag of its own and [`LAST_MODIFIED`].
    #[must_use]
    pub fn new(content: &Content) -> Self {
        Self::of(content.all())
    }

    /// The same with these bytes.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        let tag = crate::content::sha256_hex(&bytes[..bytes.len().min(64)]);
        Self {
            bytes: Arc::new(bytes),
            etag: Some(format!("\"{}\"", &tag[..16])),
            last_modified: Some(LAST_MODIFIED.to_owned()),
        }
    }

    /// With this ETag, literally (quotes, `W/` and all), or none.
    #[must_use]
    pub fn etag(mut self, etag: Option<&str>) -> Self {
        self.etag = etag.map(str::to_owned);
        self
    }

    /// With this Last-Modified, literally, or none.
    #[must_use]
    pub fn last_modified(mut self, last_modified: Option<&str>) -> Self {
        self.last_modified = last_modified.map(str::to_owned);
        self
    }

    /// The bytes of the whole file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The honest answer to a request: 206 for a range whose If-Range holds,
    /// 416 for one beyond the end, else 200.
    #[must_use]
    pub fn answer(&self, request: &Request) -> Reply {
        match request.range() {
            Some(range) if self.if_range_holds(request) => self.part(range),
            _ => self.whole(),
        }
    }

    /// 200 with the whole file.
    #[must_use]
    pub fn whole(&self) -> Reply {
        self.describe(Reply::new(200, self.bytes.to_vec()))
    }

    /// 206 (or 416) for a range, without regard to If-Range.
    #[must_use]
    pub fn part(&self, (first, last): (u64, Option<u64>)) -> Reply {
        let total = self.bytes.len() as u64;
        let last = last.unwrap_or(u64::MAX).min(total.saturating_sub(1));
        if first >= total || last < first {
            return self
                .describe(Reply::status(416))
                .header("Content-Range", &format!("bytes */{total}"));
        }
        let bytes = self.bytes[first as usize..=last as usize].to_vec();
        self.describe(Reply::new(206, bytes))
            .header("Content-Range", &format!("bytes {first}-{last}/{total}"))
    }

    /// The whole file compressed with gzip, whether the client wanted it so
    /// or not.
    #[must_use]
    pub fn gzipped(&self) -> Reply {
        self.describe(Reply::new(200, gzip(&self.bytes)))
            .header("Content-Encoding", "gzip")
            .without("Accept-Ranges")
            .framing(Framing::Chunked)
    }

    fn describe(&self, mut reply: Reply) -> Reply {
        reply = reply.header("Accept-Ranges", "bytes");
        if let Some(etag) = &self.etag {
            reply = reply.header("ETag", etag);
        }
        if let Some(last_modified) = &self.last_modified {
            reply = reply.header("Last-Modified", last_modified);
        }
        reply
    }

    /// RFC 9110 section 13.1.5: strong comparison for ETags, exact match for
    /// dates.
    fn if_range_holds(&self, request: &Request) -> bool {
        let Some(condition) = request.header("if-range") else {
            return true;
        };
        let strong = self.etag.as_deref().filter(|etag| !etag.starts_with("W/"));
        strong == Some(condition) || self.last_modified.as_deref() == Some(condition)
    }
}

/// The bytes through the `gzip` program, which every Debian has.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut child = Command::new("gzip")
        .arg("-1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start gzip");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let input = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("gzip runs");
    writer
        .join()
        .expect("the writer does not panic")
        .expect("gzip reads all of its input");
    output.stdout
}
