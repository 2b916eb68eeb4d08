//! The fields by which a client asks a server to hold its responses back. Clients
//! write these fields, servers read them.
//!
//! - `Priority` (RFC 9218): a response of urgency 6 or 7 may yield to all other
//!   traffic. The field tells nothing about the user, so every server may see it.
//! - `Fairbat-Deadline`, a dictionary (RFC 9651) of optional members:
//!   `due`, seconds from now until everything should have arrived; `remaining`,
//!   bytes to move by then over this connection, in this response and later ones
//!   together; `w`, the least weight of the connection. The field tells the
//!   client's plans, so only a FAIRBAT server gets it.
//! - `Fairbat: 1` in a response: the mark of a FAIRBAT server. The parameter in `Fairbat: 1;parts`
//!   says that it takes uploads in parts.

use std::time::Duration;

use dalbe::weight::MIN_WEIGHT;
use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{BareItem, Decimal, DictSerializer, Dictionary, Integer, KeyRef, Parser};

use super::fields::{dictionary, integer, item};

/// How urgent a response is (RFC 9218, section 4).
pub const PRIORITY: HeaderName = HeaderName::from_static("priority");

/// When everything should have arrived: a [`DeadlineHint`].
pub const DEADLINE: HeaderName = HeaderName::from_static("fairbat-deadline");

/// The mark in a response of a server that understands [`DEADLINE`].
pub const FAIRBAT_SERVER: HeaderName = HeaderName::from_static("fairbat");

/// Responses of this urgency and above may yield. 7 is background work (RFC
/// 9218, section 4.1), and 6 is below everything that a web page asks for.
const MIN_BACKGROUND_URGENCY: i64 = 6;

/// Largest integer part of a decimal (RFC 9651, section 3.3.2), s.
const MAX_DUE: f64 = 999_999_999_999.0;

/// Largest integer (RFC 9651, section 3.3.1), bytes.
const MAX_REMAINING: u64 = 999_999_999_999_999;

/// The priority that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RequestPriority {
    /// Whether the response may yield to all other traffic.
    pub yields: bool,
    /// How far and until when it may yield, if the client tells.
    pub hint: Option<DeadlineHint>,
}

/// The members of `Fairbat-Deadline`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DeadlineHint {
    /// Time until everything should have arrived; zero when that is over.
    pub due: Option<Duration>,
    /// Bytes to move until then over this connection, in all responses together.
    pub remaining: Option<u64>,
    /// Least weight of the connection, [`MIN_WEIGHT`] to 1.
    pub w: Option<f64>,
}

impl RequestPriority {
    /// Reads the headers of a request. Members that are malformed, of the wrong
    /// type or unknown count as missing (RFC 9218, section 4).
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let urgency = dictionary(headers, &PRIORITY)
            .and_then(|members| integer(&members, "u"))
            .filter(|urgency| (0..=7).contains(urgency));
        Self {
            yields: urgency.is_some_and(|urgency| urgency >= MIN_BACKGROUND_URGENCY),
            hint: DeadlineHint::from_headers(headers),
        }
    }
}

impl DeadlineHint {
    fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let members = dictionary(headers, &DEADLINE)?;
        let due = number(&members, "due").map(|due| Duration::from_secs_f64(due.max(0.0)));
        let hint = Self {
            due,
            remaining: integer(&members, "remaining").and_then(|bytes| u64::try_from(bytes).ok()),
            w: number(&members, "w").map(|w| w.clamp(MIN_WEIGHT, 1.0)),
        };
        (hint != Self::default()).then_some(hint)
    }

    /// The value of `Fairbat-Deadline`; `None` if there is nothing to say. Numbers
    /// larger than a structured field can carry are cut to its limit.
    #[must_use]
    pub fn to_value(&self) -> Option<HeaderValue> {
        let mut members = DictSerializer::new();
        let due = self.due.map(|due| due.as_secs_f64().min(MAX_DUE));
        if let Some(due) = due.and_then(|due| Decimal::try_from(due).ok()) {
            let _ = members.bare_item(KeyRef::constant("due"), due);
        }
        let remaining = self.remaining.map(|bytes| bytes.min(MAX_REMAINING));
        if let Some(bytes) = remaining.and_then(|bytes| Integer::try_from(bytes).ok()) {
            let _ = members.bare_item(KeyRef::constant("remaining"), bytes);
        }
        if let Some(w) = self.w.and_then(|w| Decimal::try_from(w).ok()) {
            let _ = members.bare_item(KeyRef::constant("w"), w);
        }
        HeaderValue::try_from(members.finish()?).ok()
    }
}

/// The value of `Priority` for a response that may yield to all other traffic.
pub const BACKGROUND: HeaderValue = HeaderValue::from_static("u=7");

/// The same of one that is due some time: on a connection that they share, it comes before those
/// that are not.
pub const BACKGROUND_DUE: HeaderValue = HeaderValue::from_static("u=6");

/// Whether a response comes from a FAIRBAT server.
#[must_use]
pub fn is_fairbat_server(headers: &HeaderMap) -> bool {
    mark(headers).is_some()
}

/// Whether a response comes from a FAIRBAT server that takes uploads in parts.
#[must_use]
pub fn takes_parts(headers: &HeaderMap) -> bool {
    let said = |mark: sfv::Item| mark.params.get("parts").cloned();
    mark(headers).and_then(said) == Some(BareItem::Boolean(true))
}

/// The mark of a FAIRBAT server.
fn mark(headers: &HeaderMap) -> Option<sfv::Item> {
    let value = headers.get(&FAIRBAT_SERVER)?.as_bytes();
    let item: sfv::Item = Parser::new(value).parse().ok()?;
    (item.bare_item == BareItem::Integer(Integer::constant(1))).then_some(item)
}

/// The value of [`FAIRBAT_SERVER`].
pub const FAIRBAT_SERVER_MARK: HeaderValue = HeaderValue::from_static("1");

/// The same of a server that takes uploads in parts.
pub const WRITABLE_SERVER_MARK: HeaderValue = HeaderValue::from_static("1;parts");

/// The number under `key`: a decimal, or an integer in its place.
fn number(members: &Dictionary, key: &str) -> Option<f64> {
    match item(members.get(key)?)? {
        BareItem::Decimal(number) => Some(f64::from(*number)),
        BareItem::Integer(number) => Some(i64::from(*number) as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn priority(fields: &[(HeaderName, &str)]) -> RequestPriority {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        RequestPriority::from_headers(&headers)
    }

    fn hint(value: &str) -> Option<DeadlineHint> {
        priority(&[(DEADLINE, value)]).hint
    }

    #[test]
    fn only_the_lowest_urgencies_yield() {
        for (value, expected) in [
            ("u=7", true),
            ("u=6, i", true),
            ("i, u=7;x=1", true),
            ("u=5", false),
            ("u=0", false),
            ("u=8", false),
            ("u=-7", false),
            ("u=7.0", false),
            ("u", false),
            ("i", false),
            ("", false),
            ("u=7,", false),
            ("U=7", false),
        ] {
            assert_eq!(priority(&[(PRIORITY, value)]).yields, expected, "{value}");
        }
        assert_eq!(priority(&[]), RequestPriority::default());
        // Of a member given twice the last one counts.
        assert!(!priority(&[(PRIORITY, "u=7"), (PRIORITY, "u=3")]).yields);
    }

    #[test]
    fn each_member_of_a_deadline_is_optional() {
        let whole = DeadlineHint {
            due: Some(Duration::from_millis(90_500)),
            remaining: Some(5_000_000_000),
            w: Some(0.5),
        };
        assert_eq!(hint("due=90.5, remaining=5000000000, w=0.5"), Some(whole));
        assert_eq!(
            hint("due=7"),
            Some(DeadlineHint {
                due: Some(Duration::from_secs(7)),
                ..DeadlineHint::default()
            })
        );
        assert_eq!(
            hint("w=1, later=?1"),
            Some(DeadlineHint {
                w: Some(1.0),
                ..DeadlineHint::default()
            })
        );
    }

    #[test]
    fn impossible_values_are_bounded_or_missing() {
        assert_eq!(hint("due=-3.5").unwrap().due, Some(Duration::ZERO));
        assert_eq!(hint("w=0.0").unwrap().w, Some(MIN_WEIGHT));
        assert_eq!(hint("w=55").unwrap().w, Some(1.0));
        for value in [
            "",
            "due",
            "due=soon",
            "due=(1 2)",
            "remaining=1.5",
            "remaining=-1",
            "due=1000000000000.0",
            "due=1, w=",
            "later=1",
        ] {
            assert_eq!(hint(value), None, "{value}");
        }
    }

    #[test]
    fn a_fairbat_server_is_recognized_by_its_mark() {
        let marked = |value: HeaderValue| {
            is_fairbat_server(&HeaderMap::from_iter([(FAIRBAT_SERVER, value)]))
        };
        assert!(marked(FAIRBAT_SERVER_MARK));
        assert!(marked(HeaderValue::from_static("1;later")));
        for other in ["", "2", "1.0", "?1", "yes", "1, 1"] {
            assert!(!marked(HeaderValue::from_static(other)), "{other}");
        }
        assert!(!is_fairbat_server(&HeaderMap::new()));
    }

    #[test]
    fn a_server_that_takes_parts_says_so() {
        let says =
            |value: HeaderValue| takes_parts(&HeaderMap::from_iter([(FAIRBAT_SERVER, value)]));
        assert!(says(WRITABLE_SERVER_MARK));
        assert!(says(HeaderValue::from_static("1;later=2;parts")));
        for other in ["1", "1;parts=?0", "1;parts=2", "2;parts", "parts", ""] {
            assert!(!says(HeaderValue::from_static(other)), "{other}");
        }
    }

    #[test]
    fn values_too_large_for_the_field_are_cut() {
        let most = DeadlineHint {
            due: Some(Duration::MAX),
            remaining: Some(u64::MAX),
            w: Some(0.02),
        };
        let value = most.to_value().unwrap();
        assert_eq!(
            value,
            "due=999999999999.0, remaining=999999999999999, w=0.02"
        );
        assert_eq!(DeadlineHint::default().to_value(), None);
        let mad = DeadlineHint {
            w: Some(f64::NAN),
            ..DeadlineHint::default()
        };
        assert_eq!(mad.to_value(), None);
    }

    proptest! {
        #[test]
        fn never_panics(
            priority in prop::collection::vec(0x20_u8..=0xff, 0..40),
            deadline in "(due|remaining|w|x)?=?[-0-9.?:(), ]{0,25}(, (due|w)=[-0-9.]{0,20})?",
        ) {
            let mut headers = HeaderMap::new();
            if let Ok(value) = HeaderValue::from_bytes(&priority) {
                headers.append(PRIORITY, value.clone());
                headers.append(DEADLINE, value);
            }
            let _ = RequestPriority::from_headers(&headers);
            let seen = hint(&deadline);
            if let Some(w) = seen.and_then(|hint| hint.w) {
                prop_assert!((MIN_WEIGHT..=1.0).contains(&w));
            }
        }

        #[test]
        fn a_written_value_is_read_back(
            due in prop::option::of(0_u64..1_000_000_000_000),
            remaining in prop::option::of(0..=MAX_REMAINING),
            w in prop::option::of(20_u32..=1000),
        ) {
            let said = DeadlineHint {
                due: due.map(Duration::from_millis),
                remaining,
                w: w.map(|w| f64::from(w) / 1000.0),
            };
            let Some(value) = said.to_value() else {
                prop_assert_eq!(said, DeadlineHint::default());
                return Ok(());
            };
            let read = hint(value.to_str().unwrap()).unwrap();
            prop_assert_eq!(read.remaining, said.remaining);
            prop_assert_eq!(read.w, said.w);
            let off = read.due.unwrap_or_default().abs_diff(said.due.unwrap_or_default());
            prop_assert!(off < Duration::from_millis(1));
        }
    }
}
