//! Digests in header fields (RFC 9530): `Repr-Digest` and `Content-Digest` with
//! SHA-256 and SHA-512, and `Want-Repr-Digest`. And `Digest` (RFC 3230), which
//! RFC 9530 replaces and servers with mirrors still send (RFC 6249, section 6).
//!
//! `Repr-Digest` covers the whole selected representation, also in a 206
//! response. So does `Digest`, which calls it the instance. It is the checksum of
//! the finished file as long as no content coding is applied. The caller has to
//! know whether one is.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{BareItem, DictSerializer, Dictionary, KeyRef, ListEntry, Parser};

use super::fields::{dictionary, integer, item};
use crate::checksum::Hasher;
use crate::settings::Checksum;

/// The digest of the whole file (RFC 9530, section 3).
pub const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// The request for one (RFC 9530, section 4).
const WANT_REPR_DIGEST: HeaderName = HeaderName::from_static("want-repr-digest");

/// Algorithms of a whole file, the preferred one first.
const ALGORITHMS: [&str; 2] = ["sha-256", "sha-512"];

/// The checksum that a response states for the whole file.
///
/// SHA-256 is preferred to SHA-512: both are safe, and processors have
/// instructions for SHA-256. Other algorithms and digests of a wrong length are
/// ignored; `None` if nothing is left or the field is malformed. `Digest` counts
/// only where `Repr-Digest` says nothing.
#[must_use]
pub fn repr_digest(headers: &HeaderMap) -> Option<Checksum> {
    let digests = dictionary(headers, &REPR_DIGEST);
    let of_representation = |algorithm| {
        let digest = byte_sequence(digests.as_ref()?.get(algorithm)?)?;
        checksum(algorithm, digest)?
    };
    let of_instance = |algorithm| instance_digest(headers, algorithm);
    let found = ALGORITHMS.into_iter().find_map(of_representation);
    found.or_else(|| ALGORITHMS.into_iter().find_map(of_instance))
}

/// The first digest of this algorithm that can be read, from `Digest` (RFC 3230,
/// section 4.3.2). Names of algorithms have any case, and SHA-256 and SHA-512 are
/// in base64 (RFC 5843).
fn instance_digest(headers: &HeaderMap, algorithm: &str) -> Option<Checksum> {
    let lines = headers.get_all("digest").iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).find_map(|digest| {
        let (name, digest) = digest.split_once('=')?;
        let is_it = name.trim_ascii().eq_ignore_ascii_case(algorithm);
        let digest = is_it.then(|| BASE64_STANDARD.decode(digest.trim_ascii()));
        checksum(algorithm, &digest?.ok()?)?
    })
}

/// The value of `Repr-Digest` for a file with this SHA-256.
pub(crate) fn repr_digest_of(sha256: &[u8; 32]) -> HeaderValue {
    let mut field = DictSerializer::new();
    let _ = field.bare_item(KeyRef::constant("sha-256"), sha256.as_slice());
    let field = field.finish().expect("it has a member");
    HeaderValue::try_from(field).expect("a structured field is a field value")
}

/// Whether a request asks for the SHA-256 of the whole file. A preference of 0
/// means "not acceptable".
pub(crate) fn wants_sha256(headers: &HeaderMap) -> bool {
    dictionary(headers, &WANT_REPR_DIGEST)
        .and_then(|wanted| integer(&wanted, "sha-256"))
        .is_some_and(|preference| preference > 0)
}

/// The digests that a request states of its own body, while the body is hashed.
/// `Content-Digest` and `Repr-Digest` mean the same where the body is neither a
/// part nor coded. Digests in trailers are ignored.
#[derive(Debug, Default)]
pub(crate) struct StatedDigests {
    stated: Vec<(Checksum, Hasher)>,
}

impl StatedDigests {
    /// The SHA-256 and SHA-512 digests of a request whose body is the whole file. Other
    /// algorithms are ignored (RFC 9530, section 2).
    ///
    /// # Errors
    /// The name of a malformed field. The client wants its body checked, so the
    /// field must not be ignored.
    pub(crate) fn of_whole(headers: &HeaderMap) -> Result<Self, &'static str> {
        Self::of(headers, &["Content-Digest", "Repr-Digest"])
    }

    /// The same of a request whose body is a part of the file.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn of_content(headers: &HeaderMap) -> Result<Self, &'static str> {
        Self::of(headers, &["Content-Digest"])
    }

    fn of(headers: &HeaderMap, names: &[&'static str]) -> Result<Self, &'static str> {
        let mut stated = Vec::new();
        for &name in names {
            for line in headers.get_all(name) {
                let line = Parser::new(line.as_bytes()).parse::<Dictionary>();
                for (algorithm, member) in &line.map_err(|_| name)? {
                    let digest = byte_sequence(member).ok_or(name)?;
                    if let Some(checksum) = checksum(algorithm.as_str(), digest) {
                        let checksum = checksum.ok_or(name)?;
                        let hasher = checksum.hasher();
                        stated.push((checksum, hasher));
                    }
                }
            }
        }
        Ok(Self { stated })
    }

    /// Takes the next bytes of the body.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        for (_, hasher) in &mut self.stated {
            hasher.update(bytes);
        }
    }

    /// Compares after the last byte. Returns the SHA-256 of the body if the
    /// request stated it.
    ///
    /// # Errors
    /// The checksum of the body, where the request states another one.
    pub(crate) fn check(self) -> Result<Option<[u8; 32]>, Checksum> {
        let mut sha256 = None;
        for (stated, hasher) in self.stated {
            let found = hasher.finish();
            if found != stated {
                return Err(found);
            }
            if let Checksum::Sha256(digest) = found {
                sha256 = Some(digest);
            }
        }
        Ok(sha256)
    }
}

fn byte_sequence(member: &ListEntry) -> Option<&[u8]> {
    match item(member)? {
        BareItem::ByteSequence(bytes) => Some(bytes),
        _ => None,
    }
}

/// `None` for an unknown algorithm, `Some(None)` for a digest of a wrong length.
fn checksum(algorithm: &str, digest: &[u8]) -> Option<Option<Checksum>> {
    match algorithm {
        "sha-256" => Some(digest.try_into().ok().map(Checksum::Sha256)),
        "sha-512" => Some(digest.try_into().ok().map(Checksum::Sha512)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 9530, appendix B.1: the digest of {"hello": "world"} and LF.
    const SHA_256: &str = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";
    // RFC 9530, section 3.
    const SHA_512: &str = "sha-512=:YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCs\
                           yRZOtw8MjkM7iw7yZ/WkppmM44T3qg==:";

    fn digest(lines: &[&str]) -> Option<Checksum> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("repr-digest", HeaderValue::from_str(line).unwrap());
        }
        repr_digest(&headers)
    }

    #[test]
    fn reads_the_examples_of_rfc_9530() {
        let mut hasher = Hasher::Sha256(sha2::Sha256::default());
        hasher.update(b"{\"hello\": \"world\"}\n");
        assert_eq!(digest(&[SHA_256]), Some(hasher.finish()));
        assert!(
            digest(&[SHA_512])
                .unwrap()
                .to_string()
                .starts_with("sha-512=60c01a9b9d49cff8")
        );
    }

    #[test]
    fn prefers_sha_256_on_one_line_or_two() {
        let both = digest(&[SHA_256]);
        assert_eq!(digest(&[&format!("{SHA_512}, {SHA_256}")]), both);
        assert_eq!(digest(&[SHA_512, SHA_256]), both);
        assert_eq!(digest(&[SHA_256, SHA_512]), both);
    }

    #[test]
    fn unknown_digests_are_ignored() {
        assert_eq!(
            digest(&[&format!("md5=:1B2M2Y8AsgTpgAmY7PhCfg==:, {SHA_256};p=1")]),
            digest(&[SHA_256])
        );
        assert_eq!(
            digest(&[&format!("sha-256=:AAAA:, {SHA_512}")]),
            digest(&[SHA_512])
        );
        assert_eq!(digest(&["unixsum=30637, id-sha-256=:AAAA:"]), None);
    }

    #[test]
    fn invalid_values_are_none() {
        for line in [
            "",
            "sha-256",
            "sha-256=1",
            "sha-256=RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=",
            "sha-256=:RK/0:",
            "sha-256=:*:",
            "sha-256=(:RK/0:)",
            "SHA-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:",
            "=",
        ] {
            assert_eq!(digest(&[line]), None, "{line}");
        }
        assert_eq!(digest(&[]), None);
        assert_eq!(digest(&[SHA_256, "=broken"]), None);
    }

    fn instance(fields: &[(&'static str, &str)]) -> Option<Checksum> {
        let fields = fields.iter().map(|(name, value)| {
            let value = HeaderValue::from_str(value).unwrap();
            (HeaderName::from_static(name), value)
        });
        repr_digest(&fields.collect())
    }

    #[test]
    fn the_older_field_counts_where_the_newer_says_nothing() {
        // The digests above, in the older form.
        let [old_256, old_512] = [SHA_256, SHA_512].map(|new| new.replace("=:", "="));
        let (sha256, sha512) = (digest(&[SHA_256]), digest(&[SHA_512]));
        assert!(sha256.is_some() && sha512.is_some());
        for (value, expected) in [
            (old_256.clone(), &sha256),
            (old_256.replace("sha", "SHA"), &sha256),
            (format!("MD5=HUXZLQLMuI/KZ5KDcJPcOA==, {old_512}"), &sha512),
            (
                format!("{old_512},sha=thvDyvhfIqlvFe+A9MYgxAfm1q5=,unixsum=30637,{old_256}"),
                &sha256,
            ),
            (format!("SHA-256=AAAA , {old_512}"), &sha512),
            (format!("SHA-256=*,,=, SHA-256,{old_512}"), &sha512),
            (SHA_256.to_owned(), &None),
            ("SHA=thvDyvhfIqlvFe+A9MYgxAfm1q5=".to_owned(), &None),
            (String::new(), &None),
        ] {
            assert_eq!(&instance(&[("digest", &value)]), expected, "{value}");
        }
        let lines = [("digest", old_512.as_str()), ("digest", &old_256)];
        assert_eq!(instance(&lines), sha256);
        let both = [("digest", old_256.as_str()), ("repr-digest", SHA_512)];
        assert_eq!(instance(&both), sha512);
        let broken = [("digest", old_256.as_str()), ("repr-digest", "=")];
        assert_eq!(instance(&broken), sha256);
    }

    #[test]
    fn the_digest_of_rfc_6249_is_too_long() {
        // It is the base64 of the hexadecimal digits, and not of the digest.
        let value = "SHA-256=MWVkMWQxYTRiMzk5MDQ0MzI3NGU5NDEyZTk5OWY1ZGFmNzgyZTJlO\
                     DYzYjRjYzFhOTlmNTQwYzI2M2QwM2U2MQ==";
        let (_, encoded) = value.split_once('=').unwrap();
        let hex = BASE64_STANDARD.decode(encoded).unwrap();
        assert!(hex.len() == 64 && hex.iter().all(u8::is_ascii_hexdigit));
        assert_eq!(instance(&[("digest", value)]), None);
        // The same as RFC 5843 has it.
        let hex = String::from_utf8(hex).unwrap();
        let expected: Checksum = format!("sha-256={hex}").parse().unwrap();
        let Checksum::Sha256(bytes) = expected else {
            panic!("{expected}");
        };
        let value = format!("SHA-256={}", BASE64_STANDARD.encode(bytes));
        assert_eq!(
            instance(&[("digest", &value)]),
            Some(Checksum::Sha256(bytes))
        );
    }

    #[test]
    fn a_preference_above_0_asks_for_a_digest() {
        for (value, expected) in [
            ("sha-256=10", true),
            ("sha-512=3, sha-256=1", true),
            ("sha-256=0", false),
            ("sha-512=10", false),
            ("sha-256", false),
            ("sha-256=1.5", false),
            ("sha-256=1,", false),
        ] {
            let value_of = HeaderValue::from_static(value);
            let headers = HeaderMap::from_iter([(WANT_REPR_DIGEST, value_of)]);
            assert_eq!(wants_sha256(&headers), expected, "{value}");
        }
        assert!(!wants_sha256(&HeaderMap::new()));
    }
}

#[cfg(test)]
mod stated_tests {
    use super::*;

    // RFC 9530, appendix B.1: the digest of {"hello": "world"} and LF.
    const BODY: &[u8] = b"{\"hello\": \"world\"}\n";
    const SHA_256: &str = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";

    fn stated(fields: &[(&'static str, &str)]) -> Result<StatedDigests, &'static str> {
        let fields = fields.iter().map(|(name, value)| {
            let value = HeaderValue::from_str(value).unwrap();
            (HeaderName::from_static(name), value)
        });
        StatedDigests::of_whole(&fields.collect())
    }

    #[test]
    fn every_stated_digest_must_match() {
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
    fn unreadable_digests_are_refused() {
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
