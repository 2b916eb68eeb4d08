//! Checksums of files and of their pieces: their text form and their computation.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::settings::{Checksum, PieceHashes};

/// Why a text is not a checksum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChecksumError {
    /// The text has no `=` between algorithm and digest.
    #[error("a checksum is written ALGORITHM=HEX, for example sha-256=9f86d0...")]
    NoAlgorithm,
    /// The algorithm is unknown, or too weak for a whole file.
    #[error("a checksum of the algorithm {0:?} is not accepted; use sha-256 or sha-512")]
    UnknownAlgorithm(String),
    /// The digest has a character that is not a hexadecimal digit.
    #[error("the digest is not hexadecimal")]
    NotHexadecimal,
    /// The digest has another length than the algorithm's.
    #[error("a {algorithm} digest has {expected} hexadecimal digits, not {found}")]
    WrongLength {
        /// Name of the algorithm.
        algorithm: &'static str,
        /// Number of digits of its digests.
        expected: usize,
        /// Number of digits in the text.
        found: usize,
    },
}

impl Checksum {
    /// Name of the algorithm, as in `sha-256=HEX` (RFC 9530, section 7.2; IANA, "Hash Function
    /// Textual Names").
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Sha1(_) => "sha-1",
            Self::Sha256(_) => "sha-256",
            Self::Sha512(_) => "sha-512",
        }
    }

    /// The digest in lower-case hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        match self {
            Self::Sha1(digest) => to_hex(digest),
            Self::Sha256(digest) => to_hex(digest),
            Self::Sha512(digest) => to_hex(digest),
        }
    }

    /// A hasher for this algorithm. Compare its result for the whole file, or the piece, with
    /// `self`.
    #[must_use]
    pub fn hasher(&self) -> Hasher {
        match self {
            Self::Sha1(_) => Hasher::Sha1(Sha1::new()),
            Self::Sha256(_) => Hasher::Sha256(Sha256::new()),
            Self::Sha512(_) => Hasher::Sha512(Sha512::new()),
        }
    }

    /// The hash of a piece, which may be a SHA-1.
    ///
    /// # Errors
    /// As for a whole file.
    pub(crate) fn of_piece(algorithm: &str, hex: &str) -> Result<Self, ChecksumError> {
        match algorithm.to_ascii_lowercase().as_str() {
            "sha-1" | "sha1" => Ok(Self::Sha1(from_hex("sha-1", hex)?)),
            _ => format!("{algorithm}={hex}").parse(),
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.algorithm(), self.hex())
    }
}

impl FromStr for Checksum {
    type Err = ChecksumError;

    /// Reads `sha-256=HEX` or `sha-512=HEX` without regard to case. The hyphen may
    /// be missing. SHA-1 is refused: it identifies no file.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (algorithm, hex) = text.split_once('=').ok_or(ChecksumError::NoAlgorithm)?;
        match algorithm.to_ascii_lowercase().as_str() {
            "sha-256" | "sha256" => Ok(Self::Sha256(from_hex("sha-256", hex)?)),
            "sha-512" | "sha512" => Ok(Self::Sha512(from_hex("sha-512", hex)?)),
            _ => Err(ChecksumError::UnknownAlgorithm(algorithm.to_owned())),
        }
    }
}

impl PieceHashes {
    /// Whether pieces of different servers may be joined by these hashes alone.
    ///
    /// By SHA-1 they may not: it takes some money to make two pieces with the same hash (Leurent
    /// and Peyrin, "SHA-1 is a Shambles", USENIX Security 2020). It still tells damaged pieces
    /// from others, where a checksum of the whole file is compared in the end.
    #[must_use]
    pub fn is_strong(&self) -> bool {
        let is_weak = |hash: &Checksum| matches!(hash, Checksum::Sha1(_));
        !self.hashes.is_empty() && !self.hashes.iter().any(is_weak)
    }

    /// The bytes of a piece in a file of `total` bytes.
    #[must_use]
    pub fn range(&self, index: usize, total: u64) -> Range<u64> {
        let start = (index as u64).saturating_mul(self.length.get());
        start.min(total)..start.saturating_add(self.length.get()).min(total)
    }

    /// Whether a file of `total` bytes has so many pieces.
    #[must_use]
    pub fn fits(&self, total: u64) -> bool {
        total.div_ceil(self.length.get()) == self.hashes.len() as u64
    }
}

/// The SHA-256 of `bytes` in lower-case hexadecimal digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

/// The bytes as lower-case hexadecimal digits.
#[must_use]
pub fn to_hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a String cannot fail");
        hex
    })
}

fn from_hex<const N: usize>(algorithm: &'static str, hex: &str) -> Result<[u8; N], ChecksumError> {
    if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ChecksumError::NotHexadecimal);
    }
    if hex.len() != 2 * N {
        return Err(ChecksumError::WrongLength {
            algorithm,
            expected: 2 * N,
            found: hex.len(),
        });
    }
    let mut digest = [0; N];
    for (byte, at) in digest.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&hex[at..at + 2], 16)
            .expect("two hexadecimal digits are at most 255");
    }
    Ok(digest)
}

/// Bytes read at once while hashing.
const READ: u64 = 1024 * 1024;

/// Reads a range of a file in order, for hashing. `read` fills a buffer from an offset on.
///
/// # Errors
/// Those of `read` and of `take`, which ends the reading.
pub(crate) fn read_all<E>(
    range: Range<u64>,
    read: impl Fn(u64, &mut [u8]) -> Result<(), E>,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = vec![0; usize::try_from((range.end - range.start).min(READ)).unwrap_or(0)];
    let mut offset = range.start;
    while offset < range.end {
        let length = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
        let piece = &mut buffer[..length.min(READ as usize)];
        read(offset, piece)?;
        take(piece)?;
        offset += piece.len() as u64;
    }
    Ok(())
}

/// Whether a range of a file has this hash. `read` fills a buffer from an offset on.
///
/// # Errors
/// Those of `read`.
pub(crate) fn matches<E>(
    hash: &Checksum,
    range: Range<u64>,
    read: impl Fn(u64, &mut [u8]) -> Result<(), E>,
) -> Result<bool, E> {
    let mut hasher = hash.hasher();
    read_all(range, read, |bytes| {
        hasher.update(bytes);
        Ok(())
    })?;
    Ok(hasher.finish() == *hash)
}

/// The SHA-256 of a range of a file.
///
/// # Errors
/// Those of `read`.
pub(crate) fn digest_of<E>(
    range: Range<u64>,
    read: impl Fn(u64, &mut [u8]) -> Result<(), E>,
) -> Result<[u8; 32], E> {
    let mut hasher = Sha256::new();
    read_all(range, read, |bytes| {
        hasher.update(bytes);
        Ok(())
    })?;
    Ok(hasher.finalize().into())
}

/// Computes a digest over the bytes of a file, in order.
#[derive(Debug, Clone)]
pub enum Hasher {
    /// SHA-1, FIPS 180-4.
    Sha1(Sha1),
    /// SHA-256, FIPS 180-4.
    Sha256(Sha256),
    /// SHA-512, FIPS 180-4.
    Sha512(Sha512),
}

impl Hasher {
    /// Takes the next bytes of the file.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(state) => state.update(bytes),
            Self::Sha256(state) => state.update(bytes),
            Self::Sha512(state) => state.update(bytes),
        }
    }

    /// The checksum of all bytes.
    #[must_use]
    pub fn finish(self) -> Checksum {
        match self {
            Self::Sha1(state) => Checksum::Sha1(state.finalize().into()),
            Self::Sha256(state) => Checksum::Sha256(state.finalize().into()),
            Self::Sha512(state) => Checksum::Sha512(state.finalize().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // FIPS 180-4 example values for the message "abc" (NIST CSRC).
    const ABC_256: &str =
        "sha-256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const ABC_512: &str = "sha-512=ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                           2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";

    #[test]
    fn hashes_the_published_example() {
        for text in [ABC_256, ABC_512] {
            let expected: Checksum = text.parse().unwrap();
            let mut hasher = expected.hasher();
            hasher.update(b"a");
            hasher.update(b"");
            hasher.update(b"bc");
            assert_eq!(hasher.finish(), expected);
        }
    }

    #[test]
    fn sha_1_is_for_pieces_only() {
        // FIPS 180-4 example value, as above.
        let hex = "a9993e364706816aba3e25717850c26c9cd0d89d";
        for algorithm in ["sha-1", "SHA1"] {
            let expected = Checksum::of_piece(algorithm, hex).unwrap();
            let mut hasher = expected.hasher();
            hasher.update(b"abc");
            assert_eq!(hasher.finish(), expected);
            assert_eq!(expected.to_string(), format!("sha-1={hex}"));
            let refused = format!("{algorithm}={hex}").parse::<Checksum>();
            let said = refused.expect_err("too weak").to_string();
            assert!(said.contains("use sha-256 or sha-512"), "{said}");
        }
        let (_, hex) = ABC_256.split_once('=').unwrap();
        assert_eq!(Checksum::of_piece("sha-256", hex), ABC_256.parse());
        assert!(Checksum::of_piece("sha-1", "a9").is_err());
    }

    #[test]
    fn one_wrong_byte_changes_the_checksum() {
        let expected: Checksum = ABC_256.parse().unwrap();
        let mut hasher = expected.hasher();
        hasher.update(b"abd");
        assert_ne!(hasher.finish(), expected);
    }

    #[test]
    fn the_empty_file_has_its_sha_256() {
        assert_eq!(
            Hasher::Sha256(Sha256::new()).finish().hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn case_and_hyphen_do_not_matter() {
        let expected: Checksum = ABC_256.parse().unwrap();
        for text in [
            ABC_256.replace("sha-256", "sha256"),
            ABC_256.to_ascii_uppercase(),
        ] {
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
        }
        let expected: Checksum = ABC_512.parse().unwrap();
        assert_eq!(ABC_512.replace("sha-", "SHA").parse(), Ok(expected));
    }

    #[test]
    fn texts_that_are_no_checksum_are_refused() {
        use ChecksumError::{NoAlgorithm, NotHexadecimal, UnknownAlgorithm};
        for (text, expected) in [
            ("", NoAlgorithm),
            ("ba7816bf", NoAlgorithm),
            ("sha-256:ba", NoAlgorithm),
            ("md5=ba", UnknownAlgorithm("md5".to_owned())),
            ("=ba", UnknownAlgorithm(String::new())),
            ("sha-256=xy", NotHexadecimal),
            ("sha-256=+f", NotHexadecimal),
            ("sha-256= ba", NotHexadecimal),
            ("sha-256=\u{e9}", NotHexadecimal),
        ] {
            assert_eq!(text.parse::<Checksum>(), Err(expected), "{text}");
        }
        for (algorithm, digits, expected) in [
            ("sha-256", 63, 64),
            ("sha-256", 128, 64),
            ("sha-512", 64, 128),
            ("sha-512", 0, 128),
        ] {
            let text = format!("{algorithm}={}", "0".repeat(digits));
            assert_eq!(
                text.parse::<Checksum>(),
                Err(ChecksumError::WrongLength {
                    algorithm,
                    expected,
                    found: digits
                })
            );
        }
    }

    proptest! {
        #[test]
        fn a_written_value_is_read_back(low in any::<[u8; 32]>(), high in any::<[u8; 32]>()) {
            let mut wide = [0; 64];
            wide[..32].copy_from_slice(&low);
            wide[32..].copy_from_slice(&high);
            for checksum in [Checksum::Sha256(low), Checksum::Sha512(wide)] {
                prop_assert_eq!(checksum.to_string().parse(), Ok(checksum));
            }
        }
    }
}
