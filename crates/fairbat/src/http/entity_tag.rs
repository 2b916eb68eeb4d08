//! Entity tags and how they compare (RFC 9110, section 8.8.3).

use std::fmt;

use http::HeaderValue;

/// An entity tag (RFC 9110, section 8.8.3): an opaque mark of one version.
///
/// The bytes are kept verbatim: quoted as the grammar requires, or without
/// quotes as some servers send them. In the text form ([`fmt::Display`],
/// [`EntityTag::from_text`]) each byte is the character of the same number, so
/// the text loses nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntityTag {
    /// The tag without `W/`, with its quotes.
    opaque: HeaderValue,
    weak: bool,
}

impl EntityTag {
    /// The tag in the value of an `ETag` field.
    ///
    /// `None` for an empty tag, quoted or not. The grammar allows it, but a
    /// server that sends it sends it for every version. `w/` in lower case marks
    /// a weak tag too, so that it is not taken for a strong one.
    pub(crate) fn from_value(value: &HeaderValue) -> Option<Self> {
        let bytes = value.as_bytes().trim_ascii();
        let (opaque, weak) = match bytes {
            [b'W' | b'w', b'/', opaque @ ..] => (opaque, true),
            opaque => (opaque, false),
        };
        if matches!(opaque, b"" | b"\"\"") {
            return None;
        }
        let opaque = HeaderValue::from_bytes(opaque).ok()?;
        Some(Self { opaque, weak })
    }

    /// Reads the text form; `None` if the text is no entity tag.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let bytes: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(char).ok()).collect();
        Self::from_value(&HeaderValue::from_bytes(&bytes?).ok()?)
    }

    /// Whether the server marked the tag as weak: equivalent versions with
    /// different bytes may share it.
    pub(crate) fn is_weak(&self) -> bool {
        self.weak
    }

    /// Whether the tag is quoted as the grammar requires, `DQUOTE *etagc DQUOTE`,
    /// and so may be sent in a request.
    pub(crate) fn is_quoted(&self) -> bool {
        match self.opaque.as_bytes() {
            [b'"', inner @ .., b'"'] => inner
                .iter()
                .all(|byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..=0xff)),
            _ => false,
        }
    }

    /// Strong comparison (section 8.8.3.2): both strong, and the same bytes.
    pub(crate) fn strongly_equals(&self, other: &Self) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    /// Weak comparison (section 8.8.3.2): the same bytes, weak or not.
    pub(crate) fn weakly_equals(&self, other: &Self) -> bool {
        self.opaque == other.opaque
    }

    /// The tag as a field value.
    pub(crate) fn to_value(&self) -> HeaderValue {
        if !self.weak {
            return self.opaque.clone();
        }
        let bytes = [b"W/", self.opaque.as_bytes()].concat();
        HeaderValue::from_bytes(&bytes).expect("a field value stays one behind W/")
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value()
            .as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tag(text: &str) -> EntityTag {
        EntityTag::from_text(text).unwrap()
    }

    #[test]
    fn compares_as_the_table_of_rfc_9110_says() {
        for (first, second, strong, weak) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
        ] {
            assert_eq!(tag(first).strongly_equals(&tag(second)), strong);
            assert_eq!(tag(first).weakly_equals(&tag(second)), weak);
            assert_eq!(tag(second).strongly_equals(&tag(first)), strong);
        }
    }

    #[test]
    fn tells_weak_and_unquoted_tags() {
        for (text, weak, quoted) in [
            ("\"xyzzy\"", false, true),
            ("W/\"xyzzy\"", true, true),
            ("w/\"xyzzy\"", true, true),
            ("xyzzy", false, false),
            ("W/xyzzy", true, false),
            ("\"xyzzy", false, false),
            ("\"", false, false),
            ("\"a\"b\"", false, false),
            ("\"a b\"", false, false),
            ("\"\u{e9}\"", false, true),
        ] {
            assert_eq!(tag(text).is_weak(), weak, "{text}");
            assert_eq!(tag(text).is_quoted(), quoted, "{text}");
        }
    }

    #[test]
    fn quotes_are_part_of_the_tag() {
        assert!(!tag("\"xyzzy\"").weakly_equals(&tag("xyzzy")));
    }

    #[test]
    fn empty_tags_are_none() {
        for text in ["", " ", "\"\"", "W/", "W/\"\""] {
            assert_eq!(EntityTag::from_text(text), None, "{text:?}");
        }
    }

    #[test]
    fn control_and_wide_characters_are_refused() {
        for text in ["\"a\nb\"", "\"\0\"", "\"\u{20ac}\""] {
            assert_eq!(EntityTag::from_text(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_tag_survives_as_text(bytes in proptest::collection::vec(0x20_u8..=0xff, 0..30)) {
            let tag = HeaderValue::from_bytes(&bytes)
                .ok()
                .and_then(|value| EntityTag::from_value(&value));
            if let Some(tag) = tag {
                prop_assert_eq!(EntityTag::from_text(&tag.to_string()), Some(tag));
            }
        }
    }
}
