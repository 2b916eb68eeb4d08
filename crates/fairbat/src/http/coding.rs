//! Content codings (RFC 9110 section 8.4). Every request asks for the file as
//! it is, `Accept-Encoding: identity`; some servers compress all the same.

use std::collections::VecDeque;
use std::io::{self, Write as _};

use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use url::Url;

/// Compressed bytes that are decoded at once. They grow at most a
/// thousandfold, which bounds the memory that a hostile answer can take.
const STEP: usize = 4096;

/// Names of files that are compressed themselves.
const COMPRESSED: [&str; 9] = [
    ".gz", ".tgz", ".svgz", ".bz2", ".tbz2", ".xz", ".zst", ".br", ".z",
];

/// How the bytes of a response relate to the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Coding {
    /// They are the file.
    Identity,
    /// They are the file in gzip (RFC 1952).
    Gzip,
    /// They are the file in some other coding.
    Unknown(String),
}

impl Coding {
    /// The coding of a response for `url`, whose file the server suggested to
    /// be called `name`.
    ///
    /// A file that is compressed itself often comes labelled as if only the
    /// transfer were (Apache's AddEncoding): its name tells.
    pub(super) fn of(headers: &HeaderMap, url: &Url, name: Option<&str>) -> Self {
        let names = [url.path(), name.unwrap_or_default()].map(str::to_ascii_lowercase);
        let is_compressed_file = names
            .iter()
            .any(|name| COMPRESSED.iter().any(|end| name.ends_with(end)));
        let fields: Vec<String> = headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
            .filter(|coding| coding.trim() != "identity")
            .collect();
        let codings = fields.join(", ");
        match codings.trim() {
            "" => Self::Identity,
            _ if is_compressed_file => Self::Identity,
            "gzip" | "x-gzip" => Self::Gzip,
            other => Self::Unknown(other.to_owned()),
        }
    }
}

/// Decodes gzip as it comes in.
#[derive(Debug)]
pub(super) struct Decoder {
    waiting: VecDeque<Bytes>,
    decoder: MultiGzDecoder<Vec<u8>>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            decoder: MultiGzDecoder::new(Vec::new()),
        }
    }
}

impl Decoder {
    /// Takes compressed bytes.
    pub(super) fn push(&mut self, bytes: Bytes) {
        self.waiting.push_back(bytes);
    }

    /// The next decoded bytes; `None` when more has to be pushed first.
    ///
    /// # Errors
    /// When the compressed bytes are damaged.
    pub(super) fn next(&mut self) -> io::Result<Option<Bytes>> {
        while let Some(front) = self.waiting.front_mut() {
            let step = front.len().min(STEP);
            self.decoder.write_all(&front[..step])?;
            front.advance(step);
            if front.is_empty() {
                self.waiting.pop_front();
            }
            if let Some(decoded) = self.take() {
                return Ok(Some(decoded));
            }
        }
        Ok(None)
    }

    /// The last decoded bytes, when no more compressed ones come.
    ///
    /// # Errors
    /// When the compressed bytes end too early or their checksum is wrong.
    pub(super) fn finish(&mut self) -> io::Result<Option<Bytes>> {
        self.decoder.try_finish()?;
        Ok(self.take())
    }

    fn take(&mut self) -> Option<Bytes> {
        let decoded = std::mem::take(self.decoder.get_mut());
        (!decoded.is_empty()).then(|| decoded.into())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http::HeaderValue;

    use super::*;

    fn coding(field: &'static str, url: &str) -> Coding {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(field));
        Coding::of(&headers, &url.parse().unwrap(), None)
    }

    #[test]
    fn a_compressed_file_is_told_from_a_compressed_transfer() {
        assert_eq!(coding("gzip", "http://h/a.txt"), Coding::Gzip);
        assert_eq!(coding("X-GZIP", "http://h/a.tar.gz?x"), Coding::Identity);
        assert_eq!(coding("identity", "http://h/a"), Coding::Identity);
        assert_eq!(coding("br", "http://h/a"), Coding::Unknown("br".into()));
        assert_eq!(
            coding("gzip, br", "http://h/a"),
            Coding::Unknown("gzip, br".into())
        );
    }

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    /// Decodes in pieces of `size`.
    fn decode(compressed: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let mut decoder = Decoder::default();
        let mut plain = Vec::new();
        for piece in compressed.chunks(size) {
            decoder.push(Bytes::copy_from_slice(piece));
            while let Some(decoded) = decoder.next()? {
                assert!(decoded.len() <= 2000 * STEP);
                plain.extend_from_slice(&decoded);
            }
        }
        plain.extend(decoder.finish()?.unwrap_or_default());
        Ok(plain)
    }

    #[test]
    fn whatever_the_pieces_the_file_comes_out() {
        let plain: Vec<u8> = (0..3_000_000_u32).map(|i| (i / 1000 % 256) as u8).collect();
        let compressed = gzip(&plain);
        for size in [1, 7, 5000, compressed.len()] {
            assert!(
                decode(&compressed, size).unwrap() == plain,
                "pieces of {size}"
            );
        }
        assert_eq!(decode(&gzip(b""), 3).unwrap(), b"");
    }

    #[test]
    fn a_cut_or_damaged_answer_is_an_error() {
        let compressed = gzip(&[7; 100_000]);
        assert!(decode(&compressed[..compressed.len() - 3], 50).is_err());
        let mut damaged = compressed;
        let crc = damaged.len() - 6;
        damaged[crc] ^= 1;
        assert!(decode(&damaged, 50).is_err());
    }
}
