//! Content codings (RFC 9110, section 8.4): which one a response has, and gzip undone as it
//! comes in.

use std::io::{self, Write as _};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::HeaderValue;
use http::header::{CONTENT_ENCODING, HeaderMap};
use url::Url;

/// Factor by which compressed bytes may grow without the user's word. Text grows tenfold;
/// only data that is made to fill disks, or is nearly empty, grows a hundredfold.
const MAX_GROWTH: u64 = 100;

/// Decoded bytes that are always allowed: nearly empty files of this size are no danger.
const MIN_DECODED_LIMIT: u64 = 1 << 30;

/// Compressed bytes that are decoded in one step. They grow at most a thousandfold, which
/// bounds the memory that a hostile answer can take.
const DECODE_STEP: usize = 4096;

/// Endings of the names of compressed files.
const COMPRESSED_ENDINGS: [&str; 9] = [
    ".gz", ".tgz", ".svgz", ".bz2", ".tbz2", ".xz", ".zst", ".br", ".z",
];

/// How the bytes of a response relate to the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Coding {
    /// They are the file.
    Identity,
    /// They are the file in gzip (RFC 1952).
    Gzip,
    /// They are the file in some other coding.
    Unknown(String),
}

impl Coding {
    /// The coding of a response for `url`, with the file name that the server suggests.
    ///
    /// Some servers label a compressed file as if only the transfer were compressed
    /// (Apache's AddEncoding). The file's name tells.
    pub(crate) fn of(headers: &HeaderMap, url: &Url, name: Option<&str>) -> Self {
        let names = [url.path(), name.unwrap_or_default()].map(str::to_ascii_lowercase);
        let is_compressed =
            |name: &String| COMPRESSED_ENDINGS.iter().any(|end| name.ends_with(end));
        let is_compressed_file = names.iter().any(is_compressed);
        let lower =
            |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        let fields = headers.get_all(CONTENT_ENCODING).iter().map(lower);
        let codings: Vec<String> = fields.filter(|it| it.trim() != "identity").collect();
        match codings.join(", ").trim() {
            "" => Self::Identity,
            _ if is_compressed_file => Self::Identity,
            "gzip" | "x-gzip" => Self::Gzip,
            other => Self::Unknown(other.to_owned()),
        }
    }
}

/// Decodes gzip as it comes in.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// Compressed bytes that wait.
    pub(crate) waiting: Bytes,
    /// Compressed bytes that have been decoded.
    taken: u64,
    decoder: MultiGzDecoder<Vec<u8>>,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Bytes::new(),
            taken: 0,
            decoder: MultiGzDecoder::new(Vec::new()),
        }
    }

    /// How many bytes may have been decoded by now.
    pub(crate) fn limit(&self) -> u64 {
        let grown = self.taken.saturating_mul(MAX_GROWTH);
        grown.max(MIN_DECODED_LIMIT)
    }

    /// The next decoded bytes; `None` if it needs more compressed ones first.
    ///
    /// # Errors
    /// The compressed bytes are damaged.
    pub(crate) fn next(&mut self) -> io::Result<Option<Bytes>> {
        while !self.waiting.is_empty() {
            let step = self.waiting.len().min(DECODE_STEP);
            self.taken += step as u64;
            self.decoder.write_all(&self.waiting.split_to(step))?;
            if let Some(decoded) = self.take() {
                return Ok(Some(decoded));
            }
        }
        Ok(None)
    }

    /// The last decoded bytes, after the last compressed ones.
    ///
    /// # Errors
    /// The compressed bytes end too early or their checksum is wrong.
    pub(crate) fn finish(&mut self) -> io::Result<Option<Bytes>> {
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
        let mut decoder = Decoder::new();
        let mut plain = Vec::new();
        for piece in compressed.chunks(size) {
            decoder.waiting = Bytes::copy_from_slice(piece);
            while let Some(decoded) = decoder.next()? {
                assert!(decoded.len() <= 2000 * DECODE_STEP);
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
    fn past_1_gib_a_file_may_grow_a_hundredfold() {
        let mut decoder = Decoder::new();
        assert_eq!(decoder.limit(), 1 << 30);
        decoder.taken = 1 << 24;
        assert_eq!(decoder.limit(), 100 << 24);
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
