//! The pointer to the valid manifests of a place, `current.json`:
//!
//! ```text
//! {"fairbat":1,"writer":17,"base":8,"last":9,"is_partial":false,"manifests":"...","authenticator":"..."}
//! ```
//!
//! `manifests` is the digest of the base and its deltas. `authenticator` is the
//! HMAC-SHA-256 of the pointer as it is written without it, by the key of the job. Both
//! are missing if the job does not authenticate.

use serde::{Deserialize, Serialize};

use super::digest::Digest256;
use super::key::JobKey;

/// Version of the pointer.
const POINTER_VERSION: u32 = 1;

/// Longest pointer, bytes. A longer one is not ours.
pub(crate) const MAX_POINTER: usize = 4096;

/// Most deltas of a base. Each costs a pull one request, and memory while it is read.
pub(crate) const MAX_DELTAS: u64 = 50;

/// Largest number of a manifest: ten digits, as in its key.
const MAX_SEQUENCE: u64 = 9_999_999_999;

/// Which manifests are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestPointer {
    /// Version of the pointer.
    fairbat: u32,
    /// The agent that wrote the manifests.
    pub(crate) writer: u64,
    /// Sequence number of the base.
    pub(crate) base: u64,
    /// Sequence number of the last delta, or of the base without deltas.
    pub(crate) last: u64,
    /// Whether the first push is still incomplete. Then a missing entry is not gone.
    #[serde(default)]
    pub(crate) is_partial: bool,
    /// The digest of the base and its deltas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) manifests: Option<Digest256>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authenticator: Option<Digest256>,
}

/// Why a text is no pointer.
#[derive(Debug, thiserror::Error)]
pub enum PointerError {
    /// It is too long.
    #[error("it has more than {MAX_POINTER} bytes")]
    TooLong,
    /// It is not the expected JSON.
    #[error("it is damaged: {0}")]
    Json(#[from] serde_json::Error),
    /// Its version is unknown.
    #[error("it was written by a later version of fairbat-agent ({0})")]
    Version(u64),
    /// Its numbers are none that an agent writes.
    #[error("it is damaged: it names manifests {base} to {last}")]
    Numbers {
        /// Sequence number of the base.
        base: u64,
        /// Sequence number of the last delta.
        last: u64,
    },
}

impl PointerError {
    /// Whether another version may be able to read it.
    pub(crate) fn is_of_later_version(&self) -> bool {
        matches!(self, Self::Version(_))
    }
}

/// What an authenticator says about manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authenticity {
    /// They come from someone who has the key.
    Genuine,
    /// They have none.
    Missing,
    /// They come from someone else, or were changed.
    Wrong,
}

impl ManifestPointer {
    /// A pointer without an authenticator. The numbers are those of the base and of the
    /// last delta.
    pub(crate) fn new(writer: u64, base: u64, last: u64, is_partial: bool) -> Self {
        Self {
            fairbat: POINTER_VERSION,
            writer,
            base,
            last,
            is_partial,
            manifests: None,
            authenticator: None,
        }
    }

    /// Reads a pointer. It may come from an attacker: its numbers are within bounds.
    ///
    /// # Errors
    /// [`PointerError`].
    pub fn parse(text: &[u8]) -> Result<Self, PointerError> {
        /// Read first, because another version may have other members.
        #[derive(Deserialize)]
        struct VersionOnly {
            fairbat: u64,
        }
        if text.len() > MAX_POINTER {
            return Err(PointerError::TooLong);
        }
        match serde_json::from_slice::<VersionOnly>(text)?.fairbat {
            version if version == u64::from(POINTER_VERSION) => {}
            other => return Err(PointerError::Version(other)),
        }
        let pointer: Self = serde_json::from_slice(text)?;
        let Self { base, last, .. } = pointer;
        let deltas = last.checked_sub(base);
        let is_sound = base > 0 && last <= MAX_SEQUENCE && pointer.writer > 0;
        match deltas {
            Some(deltas) if is_sound && deltas <= MAX_DELTAS => Ok(pointer),
            _ => Err(PointerError::Numbers { base, last }),
        }
    }

    /// The text of the pointer.
    pub(crate) fn to_json(self) -> Vec<u8> {
        serde_json::to_vec(&self).expect("numbers and digests can be written down")
    }

    /// The same pointer with the digest of its manifests and an authenticator.
    #[must_use]
    pub(crate) fn signed(mut self, manifests: Digest256, key: &JobKey) -> Self {
        self.manifests = Some(manifests);
        self.authenticator = Some(key.sign(&self.signed_text()));
        self
    }

    /// What the authenticator says about the pointer. The manifests have to have the
    /// digest as well.
    pub(crate) fn authenticity(&self, key: &JobKey) -> Authenticity {
        match (&self.authenticator, self.manifests) {
            (None, _) => Authenticity::Missing,
            (Some(authenticator), Some(_))
                if key.has_signed(&self.signed_text(), authenticator) =>
            {
                Authenticity::Genuine
            }
            (Some(_), _) => Authenticity::Wrong,
        }
    }

    fn signed_text(mut self) -> Vec<u8> {
        self.authenticator = None;
        self.to_json()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pointer() -> ManifestPointer {
        ManifestPointer::new(17, 8, 9, false)
    }

    #[test]
    fn numbers_that_no_agent_writes_are_refused() {
        for numbers in [
            r#""writer":1,"base":1,"last":18446744073709551615"#,
            r#""writer":1,"base":0,"last":18446744073709551615"#,
            r#""writer":1,"base":18446744073709551615,"last":18446744073709551615"#,
            r#""writer":1,"base":1,"last":4000000000"#,
            r#""writer":1,"base":1,"last":52"#,
            r#""writer":1,"base":10000000000,"last":10000000000"#,
            r#""writer":1,"base":0,"last":0"#,
            r#""writer":0,"base":1,"last":1"#,
            r#""writer":1,"base":2,"last":1"#,
            r#""writer":-1,"base":1,"last":1"#,
            r#""writer":1,"base":1,"last":1e3"#,
            r#""writer":1,"base":1,"last":1,"manifests":"00""#,
        ] {
            let text = format!("{{\"fairbat\":1,{numbers}}}");
            ManifestPointer::parse(text.as_bytes()).unwrap_err();
        }
        let most = r#"{"fairbat":1,"writer":1,"base":1,"last":51}"#;
        assert_eq!(ManifestPointer::parse(most.as_bytes()).unwrap().last, 51);
        let later = ManifestPointer::parse(br#"{"fairbat":2,"bases":[]}"#);
        assert!(matches!(later, Err(PointerError::Version(2))), "{later:?}");
        let long = " ".repeat(MAX_POINTER) + most;
        let long = ManifestPointer::parse(long.as_bytes());
        assert!(matches!(long, Err(PointerError::TooLong)), "{long:?}");
    }

    #[test]
    fn an_authenticator_covers_every_member() {
        let (key, manifests) = (JobKey::generate(), Digest256([7; 32]));
        let signed = pointer().signed(manifests, &key);
        let read = ManifestPointer::parse(&signed.to_json()).unwrap();
        assert_eq!(read, signed);
        assert_eq!(read.authenticity(&key), Authenticity::Genuine);
        assert_eq!(read.authenticity(&JobKey::generate()), Authenticity::Wrong);
        assert_eq!(pointer().authenticity(&key), Authenticity::Missing);
        let changes: [fn(&mut ManifestPointer); 6] = [
            |it| it.writer += 1,
            |it| it.base -= 1,
            |it| it.last += 1,
            |it| it.is_partial = true,
            |it| it.manifests = Some(Digest256([8; 32])),
            |it| it.manifests = None,
        ];
        for change in changes {
            let mut other = signed;
            change(&mut other);
            assert_eq!(other.authenticity(&key), Authenticity::Wrong, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_pointer_or_is_none(text in r#"\{"fairbat":1,"writer":[0-9]{1,21},"base":[0-9]{1,21},"last":[0-9]{1,21}\}|\PC{0,60}"#) {
            if let Ok(pointer) = ManifestPointer::parse(text.as_bytes()) {
                prop_assert!(pointer.last - pointer.base <= MAX_DELTAS);
            }
        }
    }
}
