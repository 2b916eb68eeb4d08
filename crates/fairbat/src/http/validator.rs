//! Which version of a file a response belongs to (RFC 9110, section 8.8), so that
//! bytes of two versions never meet in one file.
//!
//! Ranges may be combined only if they share a strong validator (section
//! 15.3.7.3). There are two kinds:
//! - a strong entity tag;
//! - a Last-Modified date at least one second older than the Date of the same
//!   response (section 8.8.2.2). Of two versions made within one second, only
//!   the second can be seen that late.
//!
//! A response without either has no [`Validator`], and its file can only be
//! fetched as one stream. The total length must match as well. The caller
//! knows it from `Content-Range` and compares it.

use std::time::{Duration, SystemTime};

use http::header::{DATE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

use super::fields::{EntityTag, date, single};

/// Which version of a remote file bytes belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Size of the whole file in bytes.
    pub total: u64,
    /// What identifies the version, as the server states it.
    pub validator: Validator,
}

/// What identifies one version of a file. The journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Validator {
    identity: Identity,
}

/// What tells two versions apart.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Identity {
    /// A strong tag. The date is kept only beside an unquoted tag, which cannot
    /// be sent in `If-Range`.
    Tag {
        tag: EntityTag,
        if_range_date: Option<HttpDate>,
    },
    /// A strong date, and the weak tag that came with it.
    Date {
        date: HttpDate,
        weak_tag: Option<EntityTag>,
    },
}

/// A date as the server wrote it. Servers compare `If-Range` exactly (section
/// 13.1.5), some of them as text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HttpDate(String);

impl HttpDate {
    fn new(text: &str) -> Option<Self> {
        httpdate::parse_http_date(text).ok()?;
        Some(Self(text.to_owned()))
    }
}

impl Validator {
    /// The validator in a 200 or 206 response; `None` if nothing there tells two
    /// versions apart. A field that comes more than once counts as missing.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let tag = single(headers, &ETAG).and_then(EntityTag::from_value);
        Self::new(tag, strong_date(headers))
    }

    /// The caller has checked that `strong_date` is strong.
    fn new(tag: Option<EntityTag>, strong_date: Option<HttpDate>) -> Option<Self> {
        let identity = match tag {
            Some(tag) if !tag.is_weak() => Identity::Tag {
                if_range_date: strong_date.filter(|_| !tag.is_quoted()),
                tag,
            },
            weak_tag => Identity::Date {
                date: strong_date?,
                weak_tag,
            },
        };
        Some(Self { identity })
    }

    /// Whether this is a strong entity tag. It names the same bytes under every
    /// URL; a date does not.
    #[must_use]
    pub fn is_strong_tag(&self) -> bool {
        matches!(self.identity, Identity::Tag { .. })
    }

    /// The value of `If-Range` for a range request (RFC 9110, section 13.1.5);
    /// `None` if the request must go without.
    ///
    /// The value is a strong tag, else a strong date. Beside a weak tag neither
    /// may be sent: a weak tag is not allowed there, and a client that has a tag
    /// must not send the date. An unquoted tag is no entity tag: a server would
    /// take it for a malformed date and send the whole file. So the date goes in
    /// its place.
    #[must_use]
    pub fn if_range(&self) -> Option<HeaderValue> {
        let date = match &self.identity {
            Identity::Tag { tag, .. } if tag.is_quoted() => return Some(tag.to_value()),
            Identity::Tag { if_range_date, .. } => if_range_date.as_ref()?,
            Identity::Date {
                date,
                weak_tag: None,
            } => date,
            Identity::Date {
                weak_tag: Some(_), ..
            } => return None,
        };
        HeaderValue::from_str(&date.0).ok()
    }

    /// Whether a 206 response is of the same version. `sent_if_range` says
    /// whether its request had [`Validator::if_range`].
    ///
    /// The strong tag must be there and equal. Without a strong tag the date must
    /// be there and equal, and so must the weak tag if there was one (by weak
    /// comparison, section 8.8.3.2).
    ///
    /// There is one exception. In a 206 to an `If-Range` request a server should
    /// leave out fields that the client has, such as Last-Modified (section
    /// 15.3.7). The date may be missing then: by the 206 the server says that it
    /// still holds. An entity tag must be in every 206, so it may never be
    /// missing.
    #[must_use]
    pub fn matches_partial(&self, headers: &HeaderMap, sent_if_range: bool) -> bool {
        let now = single(headers, &ETAG).and_then(EntityTag::from_value);
        match &self.identity {
            Identity::Tag { tag, .. } => now.is_some_and(|now| tag.strongly_equals(&now)),
            Identity::Date { date, weak_tag } => {
                let same_tag = weak_tag
                    .as_ref()
                    .is_none_or(|before| now.as_ref().is_some_and(|now| before.weakly_equals(now)));
                let vouched_for = sent_if_range
                    && self.if_range().is_some()
                    && !headers.contains_key(LAST_MODIFIED);
                let same_date = single(headers, &LAST_MODIFIED)
                    .is_some_and(|value| value.as_bytes() == date.0.as_bytes());
                same_tag && (same_date || vouched_for)
            }
        }
    }
}

/// The Last-Modified date of a response; `None` if there is none, or more than
/// one, or it is malformed.
#[must_use]
pub fn last_modified(headers: &HeaderMap) -> Option<SystemTime> {
    date(headers, &LAST_MODIFIED)
}

/// The Last-Modified date if it is a strong validator (section 8.8.2.2).
fn strong_date(headers: &HeaderMap) -> Option<HttpDate> {
    let modified = last_modified(headers)?;
    let age = date(headers, &DATE)?.duration_since(modified).ok()?;
    if age < Duration::from_secs(1) {
        return None;
    }
    HttpDate::new(single(headers, &LAST_MODIFIED)?.to_str().ok()?)
}

/// A validator as the journal has it.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// A strong date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_modified: Option<String>,
}

impl From<Validator> for Stored {
    fn from(validator: Validator) -> Self {
        let (tag, date) = match validator.identity {
            Identity::Tag { tag, if_range_date } => (Some(tag), if_range_date),
            Identity::Date { date, weak_tag } => (weak_tag, Some(date)),
        };
        Self {
            etag: tag.map(|tag| tag.to_text()),
            last_modified: date.map(|date| date.0),
        }
    }
}

/// A stored validator is damaged or empty.
#[derive(Debug, thiserror::Error)]
#[error("not a validator")]
struct NotAValidator;

impl TryFrom<Stored> for Validator {
    type Error = NotAValidator;

    fn try_from(stored: Stored) -> Result<Self, Self::Error> {
        let tag = |text: String| EntityTag::from_text(&text).ok_or(NotAValidator);
        let date = |text: String| HttpDate::new(&text).ok_or(NotAValidator);
        let tag = stored.etag.map(tag).transpose()?;
        let date = stored.last_modified.map(date).transpose()?;
        Self::new(tag, date).ok_or(NotAValidator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODIFIED: (&str, &str) = ("last-modified", "Wed, 15 Nov 1995 04:58:08 GMT");
    const LATER: (&str, &str) = ("last-modified", "Wed, 15 Nov 1995 04:58:09 GMT");
    const SAME_SECOND: (&str, &str) = ("date", "Wed, 15 Nov 1995 04:58:08 GMT");
    const NEXT_SECOND: (&str, &str) = ("date", "Wed, 15 Nov 1995 04:58:09 GMT");
    const STRONG: (&str, &str) = ("etag", "\"xyzzy\"");
    const OTHER: (&str, &str) = ("etag", "\"plugh\"");
    const WEAK: (&str, &str) = ("etag", "W/\"xyzzy\"");
    const OTHER_WEAK: (&str, &str) = ("etag", "W/\"plugh\"");
    const UNQUOTED: (&str, &str) = ("etag", "xyzzy");

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn validator(fields: &[(&'static str, &str)]) -> Validator {
        Validator::from_headers(&headers(fields)).unwrap()
    }

    fn if_range(fields: &[(&'static str, &str)]) -> Option<String> {
        let value = validator(fields).if_range()?;
        Some(value.to_str().unwrap().to_owned())
    }

    #[test]
    fn if_range_is_the_strong_tag_else_the_strong_date() {
        assert_eq!(if_range(&[STRONG]).as_deref(), Some("\"xyzzy\""));
        assert_eq!(
            if_range(&[STRONG, MODIFIED, NEXT_SECOND]).as_deref(),
            Some("\"xyzzy\"")
        );
        assert_eq!(
            if_range(&[MODIFIED, NEXT_SECOND]).as_deref(),
            Some(MODIFIED.1)
        );
        assert_eq!(
            if_range(&[UNQUOTED, MODIFIED, NEXT_SECOND]).as_deref(),
            Some(MODIFIED.1)
        );
    }

    #[test]
    fn no_if_range_is_sent_beside_a_weak_tag_or_for_an_unquoted_tag_alone() {
        assert_eq!(if_range(&[WEAK, MODIFIED, NEXT_SECOND]), None);
        assert_eq!(if_range(&[UNQUOTED]), None);
        assert_eq!(if_range(&[UNQUOTED, MODIFIED, SAME_SECOND]), None);
    }

    #[test]
    fn headers_that_cannot_tell_versions_apart_give_no_validator() {
        for fields in [
            &[][..],
            &[WEAK],
            &[NEXT_SECOND],
            // No Date: no telling whether the second was over.
            &[MODIFIED],
            &[MODIFIED, SAME_SECOND],
            &[WEAK, MODIFIED, SAME_SECOND],
            // Modified after the response was made: the clocks disagree.
            &[LATER, SAME_SECOND],
            &[("last-modified", "yesterday"), NEXT_SECOND],
            &[MODIFIED, ("date", "now")],
            &[("etag", "")],
            &[("etag", "\"\"")],
            // Two different tags, two different dates: neither can be trusted.
            &[STRONG, OTHER],
            &[MODIFIED, LATER, NEXT_SECOND],
        ] {
            assert_eq!(
                Validator::from_headers(&headers(fields)),
                None,
                "{fields:?}"
            );
        }
    }

    #[test]
    fn a_strong_tag_decides_alone() {
        for before in [&[STRONG][..], &[STRONG, MODIFIED, NEXT_SECOND]] {
            let before = validator(before);
            for (later, expected) in [
                (&[STRONG][..], true),
                (&[STRONG, MODIFIED], true),
                // Machines of one site often disagree on the date only.
                (&[STRONG, LATER], true),
                (&[OTHER, MODIFIED], false),
                (&[MODIFIED, NEXT_SECOND], false),
                (&[WEAK, MODIFIED], false),
                (&[UNQUOTED, MODIFIED], false),
                (&[STRONG, OTHER], false),
                (&[], false),
            ] {
                assert_eq!(
                    before.matches_partial(&headers(later), false),
                    expected,
                    "{later:?}"
                );
                // If-Range does not excuse a missing tag: it is required.
                for sent in [false, true] {
                    assert_eq!(before.matches_partial(&headers(later), sent), expected);
                }
            }
        }
    }

    #[test]
    fn an_unquoted_tag_is_compared_as_it_is() {
        let before = validator(&[UNQUOTED, MODIFIED, NEXT_SECOND]);
        assert!(before.matches_partial(&headers(&[UNQUOTED]), true));
        assert!(!before.matches_partial(&headers(&[STRONG, MODIFIED]), true));
        assert!(!before.matches_partial(&headers(&[MODIFIED]), true));
        assert!(!before.matches_partial(&headers(&[("etag", "XYZZY"), MODIFIED]), false));
    }

    #[test]
    fn a_date_must_stay_the_same() {
        let before = validator(&[MODIFIED, NEXT_SECOND]);
        for (later, expected) in [
            (&[MODIFIED][..], true),
            (&[MODIFIED, STRONG], true),
            (&[LATER], false),
            (&[], false),
            (&[("last-modified", "Wed, 15 Nov 1995 04:58:07 GMT")], false),
            (&[MODIFIED, LATER], false),
        ] {
            assert_eq!(
                before.matches_partial(&headers(later), false),
                expected,
                "{later:?}"
            );
        }
    }

    #[test]
    fn a_date_may_be_missing_only_after_if_range() {
        let before = validator(&[MODIFIED, NEXT_SECOND]);
        assert!(before.matches_partial(&headers(&[NEXT_SECOND]), true));
        assert!(!before.matches_partial(&headers(&[NEXT_SECOND]), false));
        assert!(before.matches_partial(&headers(&[MODIFIED]), true));
        assert!(!before.matches_partial(&headers(&[LATER]), true));
        // Contradicting itself is not the same as saying nothing.
        assert!(!before.matches_partial(&headers(&[MODIFIED, LATER]), true));
    }

    #[test]
    fn a_weak_tag_must_be_there_beside_its_date() {
        let before = validator(&[WEAK, MODIFIED, NEXT_SECOND]);
        for (later, expected) in [
            (&[WEAK, MODIFIED][..], true),
            // Weak comparison (RFC 9110, section 8.8.3.2).
            (&[STRONG, MODIFIED], true),
            (&[OTHER_WEAK, MODIFIED], false),
            (&[WEAK, LATER], false),
            (&[MODIFIED], false),
            (&[WEAK], false),
        ] {
            for sent in [false, true] {
                assert_eq!(
                    before.matches_partial(&headers(later), sent),
                    expected,
                    "{later:?}"
                );
            }
        }
    }

    #[test]
    fn a_validator_survives_the_journal() {
        for fields in [
            &[STRONG][..],
            &[UNQUOTED],
            &[UNQUOTED, MODIFIED, NEXT_SECOND],
            &[MODIFIED, NEXT_SECOND],
            &[WEAK, MODIFIED, NEXT_SECOND],
            &[("etag", "\"a\\b c\"")],
        ] {
            let before = validator(fields);
            let json = serde_json::to_string(&before).unwrap();
            assert_eq!(serde_json::from_str::<Validator>(&json).unwrap(), before);
        }
        let json = serde_json::to_string(&validator(&[WEAK, MODIFIED, NEXT_SECOND])).unwrap();
        assert_eq!(
            json,
            r#"{"etag":"W/\"xyzzy\"","last_modified":"Wed, 15 Nov 1995 04:58:08 GMT"}"#
        );
    }

    #[test]
    fn a_damaged_journal_yields_no_validator() {
        for json in [
            "{}",
            r#"{"etag":""}"#,
            r#"{"etag":"W/\"a\""}"#,
            r#"{"etag":"\"a\nb\""}"#,
            r#"{"etag":"\"\u20ac\""}"#,
            r#"{"etag":"\"a\"","last_modified":"yesterday"}"#,
            r#"{"last_modified":"yesterday"}"#,
        ] {
            assert!(serde_json::from_str::<Validator>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn last_modified_is_read_whether_or_not_it_is_strong() {
        let expected = httpdate::parse_http_date(MODIFIED.1).unwrap();
        assert_eq!(last_modified(&headers(&[MODIFIED])), Some(expected));
        assert_eq!(last_modified(&headers(&[("last-modified", "x")])), None);
    }
}
