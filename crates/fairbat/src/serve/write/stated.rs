//! Digests that a request states of its own body (RFC 9530): `Content-Digest` and
//! `Repr-Digest`, which are the same where there is neither a part nor a coding.
//! Those in trailers are not looked for.

use http::HeaderMap;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use super::refusal::Refusal;
use crate::checksum::Hasher;
use crate::settings::Checksum;

/// What the body has to hash to, while it is hashed.
#[derive(Debug, Default)]
pub(super) struct Stated {
    expected: Vec<(Checksum, Hasher)>,
}

impl Stated {
    /// Those of SHA-256 and SHA-512; others are passed over, as the RFC has it.
    ///
    /// # Errors
    /// A field is malformed: who sends it wants something checked.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        let mut expected = Vec::new();
        for (name, told) in [
            ("content-digest", "Content-Digest"),
            ("repr-digest", "Repr-Digest"),
        ] {
            for line in headers.get_all(name) {
                let malformed = || Refusal::Malformed(told);
                let line = Parser::new(line.as_bytes()).parse::<Dictionary>();
                for (algorithm, entry) in &line.map_err(|_| malformed())? {
                    let digest = match entry {
                        ListEntry::Item(item) => match &item.bare_item {
                            BareItem::ByteSequence(digest) => digest.as_slice(),
                            _ => return Err(malformed()),
                        },
                        ListEntry::InnerList(_) => return Err(malformed()),
                    };
                    let checksum = match algorithm.as_str() {
                        "sha-256" => digest.try_into().map(Checksum::Sha256),
                        "sha-512" => digest.try_into().map(Checksum::Sha512),
                        _ => continue,
                    };
                    let checksum = checksum.map_err(|_| malformed())?;
                    let hasher = checksum.hasher();
                    expected.push((checksum, hasher));
                }
            }
        }
        Ok(Self { expected })
    }

    /// Takes the next bytes of the body.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        for (_, hasher) in &mut self.expected {
            hasher.update(bytes);
        }
    }

    /// After the last byte: its SHA-256, if that was stated.
    ///
    /// # Errors
    /// The body is another one.
    pub(super) fn check(self) -> Result<Option<[u8; 32]>, Refusal> {
        let mut sha256 = None;
        for (expected, hasher) in self.expected {
            let found = hasher.finish();
            if found != expected {
                return Err(Refusal::Corrupt {
                    algorithm: found.algorithm(),
                    found: found.hex(),
                });
            }
            if let Checksum::Sha256(digest) = found {
                sha256 = Some(digest);
            }
        }
        Ok(sha256)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    // RFC 9530, appendix B.1: the digest of {"hello": "world"} and LF.
    const BODY: &[u8] = b"{\"hello\": \"world\"}\n";
    const SHA_256: &str = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";

    fn stated(fields: &[(&'static str, &str)]) -> Result<Stated, Refusal> {
        let fields = fields.iter().map(|(name, value)| {
            let value = HeaderValue::from_str(value).unwrap();
            (HeaderName::from_static(name), value)
        });
        Stated::of(&fields.collect())
    }

    #[test]
    fn every_digest_that_is_stated_has_to_hold() {
        let other = SHA_256.replace("RK/", "AA/");
        for (fields, holds) in [
            (&[][..], true),
            (&[("content-digest", SHA_256)], true),
            (
                &[("repr-digest", &format!("crc32c=:AAAA:, {SHA_256}"))],
                true,
            ),
            (&[("content-digest", other.as_str())], false),
            (
                &[("content-digest", SHA_256), ("repr-digest", &other)],
                false,
            ),
        ] {
            let mut stated = stated(fields).unwrap();
            stated.update(&BODY[..3]);
            stated.update(&BODY[3..]);
            assert_eq!(stated.check().is_ok(), holds, "{fields:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for value in [
            "sha-256",
            "sha-256=:AAAA:",
            "sha-256=5",
            "sha-256=(:AA==:)",
            "=",
            "abc=1",
        ] {
            assert!(stated(&[("content-digest", value)]).is_err(), "{value}");
        }
    }
}
