//! The order of requests that share a connection.

use std::time::Duration;

use http::HeaderMap;

use super::fields::{dictionary, integer};
use super::priority::{PRIORITY, RequestPriority};

/// How urgent a response is among others on its connection: by urgency (RFC 9218, section 4.1),
/// and then by deadline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Urgency {
    /// 0 to 7, the most urgent first.
    urgency: u8,
    /// Time until the deadline.
    due: Option<Duration>,
}

/// What a request has that states no urgency (RFC 9218, section 4.1).
const DEFAULT_URGENCY: u8 = 3;

/// Deadlines that are further away than this are alike, s.
const MAX_ORDERED_DUE: u64 = (1 << 24) - 1;

impl Urgency {
    /// That of a request with these fields.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let stated = dictionary(headers, &PRIORITY).and_then(|members| integer(&members, "u"));
        let stated = stated.and_then(|urgency| u8::try_from(urgency).ok());
        Self {
            urgency: stated
                .filter(|urgency| *urgency <= 7)
                .unwrap_or(DEFAULT_URGENCY),
            due: RequestPriority::from_headers(headers)
                .hint
                .and_then(|hint| hint.due),
        }
    }

    /// As a number: the larger, the sooner it is sent.
    pub(crate) fn to_priority(self) -> i32 {
        let due = self.due.map_or(MAX_ORDERED_DUE, |due| due.as_secs());
        let order = u64::from(self.urgency) << 24 | due.min(MAX_ORDERED_DUE);
        -i32::try_from(order).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::http::priority::DEADLINE;

    fn priority(fields: &[(HeaderName, &'static str)]) -> i32 {
        let fields = fields.iter().cloned();
        let headers = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
        Urgency::of(&headers.collect()).to_priority()
    }

    #[test]
    fn urgency_counts_first_and_then_the_deadline() {
        let order = [
            priority(&[(PRIORITY, "u=0")]),
            priority(&[(DEADLINE, "due=5")]),
            priority(&[(DEADLINE, "due=60")]),
            priority(&[]),
            priority(&[(PRIORITY, "u=7"), (DEADLINE, "due=5")]),
            priority(&[(PRIORITY, "u=7"), (DEADLINE, "due=99999999999")]),
        ];
        assert!(order.is_sorted_by(|a, b| a > b), "{order:?}");
        for same in [
            priority(&[(PRIORITY, "u=3")]),
            priority(&[(PRIORITY, "u=9")]),
        ] {
            assert_eq!(same, priority(&[]));
        }
    }
}
