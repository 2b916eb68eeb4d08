//! The `Repr-Digest` header field (RFC 9530, section 3).
//!
//! It covers the whole selected representation, also in a 206 response, so it
//! is the checksum of the finished file as long as no content coding is
//! applied; that is for the caller to know.

use http::HeaderMap;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::settings::Checksum;

/// The checksum that the server states for the whole file.
///
/// SHA-256 if it is there, else SHA-512: both are safe, and processors have
/// instructions for SHA-256. Other algorithms and digests of a wrong length
/// are passed over; `None` if nothing is left or the field is malformed.
#[must_use]
pub fn repr_digest(headers: &HeaderMap) -> Option<Checksum> {
    let mut digests = Dictionary::new();
    for line in headers.get_all("repr-digest") {
        let line: Dictionary = Parser::new(line.as_bytes()).parse().ok()?;
        digests.extend(line);
    }
    sized(&digests, "sha-256")
        .map(Checksum::Sha256)
        .or_else(|| sized(&digests, "sha-512").map(Checksum::Sha512))
}

/// The byte sequence under `algorithm`, if it has the right length.
fn sized<const N: usize>(digests: &Dictionary, algorithm: &str) -> Option<[u8; N]> {
    let ListEntry::Item(item) = digests.get(algorithm)? else {
        return None;
    };
    let BareItem::ByteSequence(bytes) = &item.bare_item else {
        return None;
    };
    bytes.as_slice().try_into().ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

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
        let mut hasher = crate::checksum::Hasher::sha256();
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
    fn passes_over_what_it_does_not_know() {
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
    fn garbage_is_none() {
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
}
