//! Header fields: values that stand alone, dates, structured fields (RFC 9651),
//! and `Retry-After` (RFC 9110, section 10.2.3).

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::file_version::wall_clock;

/// The longest wait that a server may ask for: seven days. A longer one is a
/// mistake, and a moment this far ahead can still be computed without overflow.
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
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits fail to parse only if the number is too large.
        text.parse().map_or(MAX_RETRY_AFTER, Duration::from_secs)
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        date.duration_since(now).unwrap_or(Duration::ZERO)
    };
    Some(wait.min(MAX_RETRY_AFTER))
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
    fn the_past_is_no_wait() {
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
    fn garbage_is_none() {
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
