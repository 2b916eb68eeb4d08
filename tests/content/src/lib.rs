//! File contents for tests: pseudo-random bytes that are a function of seed
//! and position, so that any range can be made or checked without keeping the
//! file, and a byte in the wrong place is never the right byte by chance.
//!
//! Tests make and compare gigabytes of them. This is a crate of its own so that
//! only it is built optimized.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::path::Path;

use sha2::{Digest, Sha256, Sha512};

/// Bytes made, written or compared at once.
const BLOCK: usize = 1 << 20;

/// One version of a file: `len` bytes determined by `seed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    seed: u64,
    len: u64,
}

impl Content {
    /// `len` bytes that no other seed gives.
    #[must_use]
    pub const fn new(seed: u64, len: u64) -> Self {
        Self { seed, len }
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of this range; it must lie within the content.
    #[must_use]
    pub fn bytes(&self, range: Range<u64>) -> Vec<u8> {
        assert!(range.end <= self.len, "{range:?} of {self:?}");
        let length = usize::try_from(range.end - range.start).expect("a range fits into memory");
        let skip = usize::try_from(range.start % 8).expect("less than 8");
        let mut bytes = Vec::with_capacity(length + 16);
        let mut word = range.start / 8;
        while bytes.len() < skip + length {
            bytes.extend_from_slice(&mix(self.seed, word).to_le_bytes());
            word += 1;
        }
        bytes.truncate(skip + length);
        bytes.drain(..skip);
        bytes
    }

    /// All the bytes.
    #[must_use]
    pub fn all(&self) -> Vec<u8> {
        self.bytes(0..self.len)
    }

    /// Writes the content into a new file at `path`; whoever still reads a
    /// file that was there before keeps reading that one.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn write_to(&self, path: &Path) -> io::Result<()> {
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let mut file = BufWriter::with_capacity(BLOCK, File::create(&name)?);
        for block in self.blocks() {
            file.write_all(&self.bytes(block))?;
        }
        file.flush()?;
        fs::rename(&name, path)
    }

    /// Where the file at `path` first differs from this content; `None` when
    /// it is exactly this content.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn first_difference(&self, path: &Path) -> io::Result<Option<Difference>> {
        let mut file = File::open(path)?;
        let found = file.metadata()?.len();
        for block in self.blocks() {
            let expected = self.bytes(block.clone());
            let mut read = Vec::with_capacity(expected.len());
            Read::by_ref(&mut file)
                .take(block.end - block.start)
                .read_to_end(&mut read)?;
            if read != expected {
                let same = read.iter().zip(&expected).take_while(|(a, b)| a == b);
                let offset = block.start + same.count() as u64;
                return Ok(Some(Difference { offset, found }));
            }
        }
        Ok((found != self.len).then_some(Difference {
            offset: self.len,
            found,
        }))
    }

    fn blocks(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let len = self.len;
        (0..len)
            .step_by(BLOCK)
            .map(move |start| start..len.min(start + BLOCK as u64))
    }
}

/// The first byte that is not the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Offset of that byte in the file.
    pub offset: u64,
    /// Length of the file that was compared.
    pub found: u64,
}

/// SplitMix64 (Steele, Lea, Flood 2014): word `index` of the stream `seed`.
fn mix(seed: u64, index: u64) -> u64 {
    let stream = seed.wrapping_mul(0xd134_2543_de82_ef95);
    let mut z = stream.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// SHA-256 (FIPS 180-4) in lower-case hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-512 (FIPS 180-4) in lower-case hex.
#[must_use]
pub fn sha512_hex(bytes: &[u8]) -> String {
    hex(&Sha512::digest(bytes))
}

/// `sha-256=:...:`, the value of a Repr-Digest header (RFC 9530 section 3).
#[must_use]
pub fn repr_digest(bytes: &[u8]) -> String {
    format!("sha-256=:{}:", base64(&Sha256::digest(bytes)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Base64 with padding (RFC 4648 section 4).
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=group.len()].copy_from_slice(group);
        let word = u32::from_be_bytes(word);
        for position in 0..4 {
            let index = (word >> (18 - 6 * position)) & 63;
            text.push(if position <= group.len() {
                char::from(ALPHABET[index as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_slice_of_the_whole() {
        let content = Content::new(7, 1000);
        let all = content.all();
        for (start, end) in [(0, 0), (0, 1), (3, 4), (5, 997), (8, 16), (999, 1000)] {
            assert_eq!(
                content.bytes(start..end),
                all[start as usize..end as usize],
                "{start}..{end}"
            );
        }
    }

    #[test]
    fn a_difference_is_found_where_it_is() {
        let dir = tempfile::tempdir().expect("a temp dir");
        let path = dir.path().join("file");
        let content = Content::new(1, 3 << 20);
        content.write_to(&path).expect("written");
        assert_eq!(content.first_difference(&path).expect("read"), None);

        let mut bytes = content.all();
        bytes[2_500_000] ^= 1;
        fs::write(&path, &bytes).expect("written");
        let difference = content.first_difference(&path).expect("read");
        assert_eq!(difference.expect("one byte differs").offset, 2_500_000);

        bytes[2_500_000] ^= 1;
        bytes.push(0);
        fs::write(&path, &bytes).expect("written");
        let difference = content.first_difference(&path).expect("read");
        assert_eq!(difference.expect("too long").offset, 3 << 20);
    }

    /// RFC 4648 section 10 and FIPS 180-4's "abc".
    #[test]
    fn encodings_match_the_published_vectors() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
        assert!(sha256_hex(b"abc").starts_with("ba7816bf8f01cfea"));
        assert!(sha512_hex(b"abc").starts_with("ddaf35a193617aba"));
    }
}
