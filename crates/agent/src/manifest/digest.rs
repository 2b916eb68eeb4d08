//! SHA-256 digests in JSON, and the digest of a row of manifests.

use fairbat::checksum::to_hex;
use fairbat::settings::Checksum;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// 32 bytes, in text 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Digest256(pub(crate) [u8; 32]);

impl Digest256 {
    /// The digest of a manifest and all those before it, the base first: of their digest
    /// (`self`), and then the SHA-256 of the manifest as it is stored.
    pub(crate) fn and_then(before: Option<Self>, manifest: [u8; 32]) -> Self {
        let mut hash = Sha256::new();
        if let Some(before) = before {
            hash.update(before.0);
        }
        hash.update(manifest);
        Self(hash.finalize().into())
    }
}

impl From<Digest256> for String {
    fn from(digest: Digest256) -> Self {
        to_hex(&digest.0)
    }
}

impl TryFrom<String> for Digest256 {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match format!("sha-256={text}").parse() {
            Ok(Checksum::Sha256(digest)) => Ok(Self(digest)),
            Ok(_) | Err(_) => Err("a digest has 64 hexadecimal digits"),
        }
    }
}
