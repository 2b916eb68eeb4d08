//! The `Range` field of a request (RFC 9110, section 14.2) and the
//! `Content-Range` field of a response (section 14.4).
//!
//! `Content-Range` is parsed strictly: it says where bytes belong in the file,
//! and a recipient of an invalid one must not use the content. `Range` is parsed
//! tolerantly: a server may ignore the field.

use std::fmt;
use std::ops::Range;

use http::HeaderMap;
use http::header::{CONTENT_RANGE, RANGE};

use super::fields::{digits, single};

/// The bytes of the representation that a response carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentRange {
    /// A part of the representation: `bytes first-last/total`.
    Bytes {
        /// Offset of the first byte.
        first: u64,
        /// Offset of the last byte; `first <= last`, and `last + 1` fits.
        last: u64,
        /// Length of the whole representation, if the server knows it;
        /// `last < total`.
        total: Option<u64>,
    },
    /// No part, because the requested range lies outside the representation:
    /// `bytes */total`, the form in a 416 response.
    Unsatisfied {
        /// Length of the whole representation.
        total: u64,
    },
}

impl ContentRange {
    /// The `Content-Range` of a response; `None` if it is missing or invalid.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get(CONTENT_RANGE)?.as_bytes())
    }

    /// Reads the value of a `Content-Range` field, as the bytes that came; `None`
    /// if it is no valid byte range. The unit is matched without regard to case
    /// (RFC 9110, section 14.1).
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let value = std::str::from_utf8(value.trim_ascii()).ok()?;
        let (unit, rest) = value.split_once(' ')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let position = |text| digits(text)?.parse::<u64>().ok();
        let (first, last, total) = match rest.split_once('/')? {
            ("*", total) => {
                let total = position(total)?;
                return Some(Self::Unsatisfied { total });
            }
            (range, total) => {
                let (first, last) = range.split_once('-')?;
                let total = match total {
                    "*" => None,
                    total => Some(position(total)?),
                };
                (position(first)?, position(last)?, total)
            }
        };
        let is_consistent =
            first <= last && last < u64::MAX && total.is_none_or(|total| last < total);
        is_consistent.then_some(Self::Bytes { first, last, total })
    }
}

impl fmt::Display for ContentRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes { first, last, total } => {
                write!(f, "bytes {first}-{last}/")?;
                match total {
                    Some(total) => write!(f, "{total}"),
                    None => f.write_str("*"),
                }
            }
            Self::Unsatisfied { total } => write!(f, "bytes */{total}"),
        }
    }
}

/// Larger than every offset in a file, which has 63 bits. One more still fits.
const BEYOND_EVERY_FILE: u64 = u64::MAX - 1;

/// The bytes of a file that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestedRange {
    /// All of them: there is no usable `Range`.
    Whole,
    /// These; not empty, and within the file.
    Part(Range<u64>),
    /// The range lies outside the file.
    Unsatisfiable,
}

impl RequestedRange {
    /// Reads `Range` for a file of `size` bytes.
    ///
    /// A field that is malformed, has another unit or comes twice is ignored. So
    /// is one with several ranges, which section 14.2 allows: an answer in
    /// several parts is of no use to a client that moves bulk data.
    pub(crate) fn from_headers(headers: &HeaderMap, size: u64) -> Self {
        let line = single(headers, &RANGE).and_then(|line| line.to_str().ok());
        line.and_then(|line| Self::parse(line, size))
            .unwrap_or(Self::Whole)
    }

    fn parse(line: &str, size: u64) -> Option<Self> {
        let position = |text| {
            // Digits fail to parse only if the number is too large.
            let at = digits(text)?.parse().unwrap_or(BEYOND_EVERY_FILE);
            Some(at.min(BEYOND_EVERY_FILE))
        };
        let (unit, set) = line.trim_ascii().split_once('=')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (first, end) = match set.trim_ascii().split_once('-')? {
            ("", suffix) => (size.saturating_sub(position(suffix)?), size),
            (first, "") => (position(first)?, u64::MAX),
            (first, last) => {
                let (first, end) = (position(first)?, position(last)? + 1);
                // An inverted range is invalid, not unsatisfiable (section 14.1.1).
                if first >= end {
                    return None;
                }
                (first, end)
            }
        };
        let end = end.min(size);
        Some(if first < end {
            Self::Part(first..end)
        } else {
            Self::Unsatisfiable
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(first: u64, last: u64, total: Option<u64>) -> ContentRange {
        ContentRange::Bytes { first, last, total }
    }

    #[test]
    fn reads_the_examples_of_rfc_9110() {
        for (value, expected) in [
            ("bytes 42-1233/1234", bytes(42, 1233, Some(1234))),
            ("bytes 42-1233/*", bytes(42, 1233, None)),
            ("bytes */1234", ContentRange::Unsatisfied { total: 1234 }),
            ("bytes 21010-47021/47022", bytes(21010, 47021, Some(47022))),
            ("bytes 0-499/1234", bytes(0, 499, Some(1234))),
        ] {
            assert_eq!(
                ContentRange::parse(value.as_bytes()),
                Some(expected),
                "{value}"
            );
        }
    }

    #[test]
    fn all_values_of_the_grammar_are_read() {
        for (value, expected) in [
            ("Bytes 0-0/1", bytes(0, 0, Some(1))),
            (" bytes 0-0/1\t", bytes(0, 0, Some(1))),
            ("bytes 007-08/0100", bytes(7, 8, Some(100))),
            ("bytes */0", ContentRange::Unsatisfied { total: 0 }),
            (
                "bytes 0-18446744073709551614/18446744073709551615",
                bytes(0, u64::MAX - 1, Some(u64::MAX)),
            ),
        ] {
            assert_eq!(
                ContentRange::parse(value.as_bytes()),
                Some(expected),
                "{value}"
            );
        }
    }

    #[test]
    fn all_other_values_are_refused() {
        for value in [
            "",
            "bytes",
            "bytes=0-1/2",
            "bytes: 0-1/2",
            "pages 0-1/2",
            "bytes 0-1",
            "bytes 0/2",
            "bytes  0-1/2",
            "bytes 0 -1/2",
            "bytes 0-1/ 2",
            "bytes -1/2",
            "bytes 0-/2",
            "bytes +0-1/2",
            "bytes 0-1/2/3",
            "bytes 0-1-2/3",
            "bytes 0-1/",
            "bytes */*",
            "bytes *-1/2",
            "bytes 0x0-1/2",
            "bytes 0-1/2, bytes 0-1/2",
            "bytes 1-0/2",
            "bytes 1-0/*",
            "bytes 0-2/2",
            "bytes 0-0/0",
            "bytes 0-18446744073709551615/*",
            "bytes 0-18446744073709551616/*",
            "bytes */99999999999999999999",
        ] {
            assert_eq!(ContentRange::parse(value.as_bytes()), None, "{value}");
        }
        assert_eq!(ContentRange::parse(b"bytes 0-\xff/2"), None);
    }

    proptest! {
        #[test]
        fn a_written_value_is_read_back(
            first in 0..u64::MAX,
            length in 1..u64::MAX,
            spare in proptest::option::of(0_u64..1000),
        ) {
            let last = first.saturating_add(length - 1).min(u64::MAX - 1);
            let total = spare.map(|spare| last.saturating_add(1).saturating_add(spare));
            let range = bytes(first, last, total);
            prop_assert_eq!(ContentRange::parse(range.to_string().as_bytes()), Some(range));
        }

        #[test]
        fn an_accepted_range_is_consistent(text in "bytes [0-9]{1,3}-[0-9]{1,3}/([0-9]{1,3}|\\*)") {
            if let Some(ContentRange::Bytes { first, last, total }) = ContentRange::parse(text.as_bytes()) {
                prop_assert!(first <= last);
                prop_assert!(total.is_none_or(|total| last < total));
            }
        }
    }
}

#[cfg(test)]
mod request_tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn wanted(value: &str, size: u64) -> RequestedRange {
        let value = HeaderValue::from_str(value).unwrap();
        RequestedRange::from_headers(&HeaderMap::from_iter([(RANGE, value)]), size)
    }

    #[test]
    fn single_ranges_are_taken_and_cut_to_the_file() {
        for (value, expected) in [
            ("bytes=0-0", 0..1),
            ("bytes=5-9", 5..10),
            ("bytes=5-", 5..10),
            ("bytes=5-5000", 5..10),
            ("bytes=9-18446744073709551615", 9..10),
            ("bytes=9-99999999999999999999", 9..10),
            ("bytes=-3", 7..10),
            ("bytes=-300", 0..10),
            ("Bytes=1-2", 1..3),
        ] {
            assert_eq!(wanted(value, 10), RequestedRange::Part(expected), "{value}");
        }
    }

    #[test]
    fn a_range_outside_the_file_is_unsatisfiable() {
        for value in [
            "bytes=10-",
            "bytes=10-20",
            "bytes=-0",
            "bytes=99999999999999999999-",
        ] {
            assert_eq!(wanted(value, 10), RequestedRange::Unsatisfiable, "{value}");
        }
        for value in ["bytes=0-", "bytes=0-0", "bytes=-1"] {
            assert_eq!(wanted(value, 0), RequestedRange::Unsatisfiable, "{value}");
        }
    }

    #[test]
    fn all_other_ranges_are_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=1-0",
            "bytes=0-1,3-4",
            "bytes=0-1,",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=1 -2",
            "bytes 0-1",
            "pages=0-1",
        ] {
            assert_eq!(wanted(value, 10), RequestedRange::Whole, "{value}");
        }
        let mut twice = HeaderMap::new();
        twice.append(RANGE, HeaderValue::from_static("bytes=0-1"));
        twice.append(RANGE, HeaderValue::from_static("bytes=0-1"));
        assert_eq!(
            RequestedRange::from_headers(&twice, 10),
            RequestedRange::Whole
        );
        assert_eq!(
            RequestedRange::from_headers(&HeaderMap::new(), 10),
            RequestedRange::Whole
        );
    }

    proptest! {
        #[test]
        fn a_part_is_never_empty_and_never_beyond(text in "bytes=[0-9]{0,20}-[0-9]{0,20}", size in any::<u64>()) {
            if let RequestedRange::Part(range) = wanted(&text, size) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
        }
    }
}
