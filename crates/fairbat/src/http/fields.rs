//! Header fields: values that stand alone, dates, structured fields (RFC 9651),
//! `Retry-After` (RFC 9110, section 10.2.3), and entity tags (section 8.8.3).

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::file_version::wall_clock;

/// The longest wait that is read: seven days. A moment this far ahead can still be
/// computed without overflow. How much of it is granted is the retry's business.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

/// The value of a field that comes exactly once.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// The date in a field that comes exactly once (RFC 9110, section 5.6.7);
/// `None` if it is malformed.
pub(crate) fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    let text = single(headers, name)?.to_str().ok()?;
    httpdate::parse_http_date(text).ok()
}

/// All lines of a field as one dictionary (RFC 9651, section 3.2); `None` if any
/// line is malformed.
pub(crate) fn dictionary(headers: &HeaderMap, name: &HeaderName) -> Option<Dictionary> {
    let mut members = Dictionary::new();
    for line in headers.get_all(name) {
        let line: Dictionary = Parser::new(line.as_bytes()).parse().ok()?;
        members.extend(line);
    }
    Some(members)
}

/// The item of a dictionary's member; `None` for an inner list.
pub(crate) fn item(member: &ListEntry) -> Option<&BareItem> {
    match member {
        ListEntry::Item(item) => Some(&item.bare_item),
        ListEntry::InnerList(_) => None,
    }
}

/// The integer under `key` in a dictionary.
pub(crate) fn integer(members: &Dictionary, key: &str) -> Option<i64> {
    match item(members.get(key)?)? {
        BareItem::Integer(number) => Some(i64::from(*number)),
        _ => None,
    }
}

/// The wait that the server asks for in `Retry-After`, at most
/// [`MAX_RETRY_AFTER`]; `None` if it asks for none, or the field is malformed.
#[must_use]
pub fn retry_after_of(headers: &HeaderMap) -> Option<Duration> {
    parse_retry_after(headers.get(RETRY_AFTER)?.as_bytes(), wall_clock())
}

/// The wait that a `Retry-After` value asks for. `now` is the wall-clock moment
/// at which the response came.
///
/// The value is a number of seconds or a date. A date in the past is a wait of
/// zero. At most [`MAX_RETRY_AFTER`]; `None` for anything else.
#[must_use]
pub fn parse_retry_after(value: &[u8], now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim_ascii();
    let wait = if let Some(seconds) = digits(text) {
        // Digits fail to parse only if the number is too large.
        seconds.parse().map_or(MAX_RETRY_AFTER, Duration::from_secs)
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        date.duration_since(now).unwrap_or(Duration::ZERO)
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

/// The text if it is a decimal number without a sign: `1*DIGIT`.
pub(crate) fn digits(text: &str) -> Option<&str> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(text)
}

/// An entity tag (RFC 9110, section 8.8.3): an opaque mark of one version.
///
/// The bytes are kept verbatim: quoted as the grammar requires, or without
/// quotes as some servers send them. In the text form ([`EntityTag::to_text`],
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

    /// The text form.
    pub(crate) fn to_text(&self) -> String {
        let value = self.to_value();
        value.as_bytes().iter().copied().map(char::from).collect()
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ten seconds before the date in RFC 9110's example.
    fn now() -> SystemTime {
        httpdate::parse_http_date("Fri, 31 Dec 1999 23:59:49 GMT").unwrap()
    }

    fn wait(value: &str) -> Option<u64> {
        parse_retry_after(value.as_bytes(), now()).map(|wait| wait.as_secs())
    }

    #[test]
    fn reads_the_examples_of_rfc_9110() {
        assert_eq!(wait("120"), Some(120));
        assert_eq!(wait("Fri, 31 Dec 1999 23:59:59 GMT"), Some(10));
    }

    #[test]
    fn reads_the_obsolete_date_formats() {
        assert_eq!(wait("Friday, 31-Dec-99 23:59:59 GMT"), Some(10));
        assert_eq!(wait("Fri Dec 31 23:59:59 1999"), Some(10));
    }

    #[test]
    fn a_date_in_the_past_is_no_wait() {
        assert_eq!(wait("Fri, 31 Dec 1999 23:59:48 GMT"), Some(0));
        assert_eq!(wait("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(wait("0"), Some(0));
    }

    #[test]
    fn absurd_waits_are_capped() {
        let cap = Some(MAX_RETRY_AFTER.as_secs());
        assert_eq!(wait("604801"), cap);
        assert_eq!(wait("18446744073709551615"), cap);
        assert_eq!(wait("99999999999999999999999999"), cap);
        assert_eq!(wait("Fri, 31 Dec 9999 23:59:59 GMT"), cap);
    }

    #[test]
    fn invalid_values_are_none() {
        for value in [
            "",
            " ",
            "-1",
            "+1",
            "1.5",
            "1 s",
            "soon",
            "0x10",
            "Fri, 31 Dec 1999",
            "Fri, 99 Dec 1999 23:59:59 GMT",
        ] {
            assert_eq!(wait(value), None, "{value:?}");
        }
        assert_eq!(parse_retry_after(b"\xff", now()), None);
    }

    proptest! {
        #[test]
        fn never_more_than_the_cap(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            let wait = parse_retry_after(&value, now());
            prop_assert!(wait.is_none_or(|wait| wait <= MAX_RETRY_AFTER));
        }
    }
}

#[cfg(test)]
mod entity_tag_tests {
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
                prop_assert_eq!(EntityTag::from_text(&tag.to_text()), Some(tag));
            }
        }
    }
}
