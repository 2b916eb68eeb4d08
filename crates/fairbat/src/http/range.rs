//! The `Range` field of a request (RFC 9110, section 14.2) and the
//! `Content-Range` field of a response (section 14.4).
//!
//! `Content-Range` is parsed strictly: it says where bytes belong in the file,
//! and a recipient of an invalid one must not use the content. `Range` is parsed
//! tolerantly: a server may ignore the field.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use http::HeaderMap;
use http::header::{CONTENT_RANGE, RANGE};

use super::fields::single;

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

/// Why a `Content-Range` field cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ContentRangeError {
    /// The range unit is not `bytes`.
    #[error("the range unit is not bytes")]
    Unit,
    /// The field does not have the form `bytes FIRST-LAST/TOTAL` or
    /// `bytes */TOTAL`.
    #[error("not of the form bytes FIRST-LAST/TOTAL")]
    Syntax,
    /// A position does not fit into 64 bits.
    #[error("a position is too large")]
    TooLarge,
    /// The last byte comes before the first.
    #[error("the range ends at {last}, before its start {first}")]
    Inverted {
        /// Offset of the first byte.
        first: u64,
        /// Offset of the last byte.
        last: u64,
    },
    /// The last byte lies beyond the representation.
    #[error("the range ends at {last}, outside a length of {total}")]
    BeyondTotal {
        /// Offset of the last byte.
        last: u64,
        /// Length of the whole representation.
        total: u64,
    },
}

impl ContentRange {
    /// The `Content-Range` of a response; `None` if it is missing or invalid.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get(CONTENT_RANGE)?.as_bytes()).ok()
    }

    /// Reads the value of a `Content-Range` field, as the bytes that came. The
    /// unit is matched without regard to case (RFC 9110, section 14.1).
    ///
    /// # Errors
    /// The value is no valid byte range; see [`ContentRangeError`].
    pub fn parse(value: &[u8]) -> Result<Self, ContentRangeError> {
        let value = value.trim_ascii();
        let (unit, rest) = split_at_byte(value, b' ').ok_or(ContentRangeError::Syntax)?;
        if !unit.eq_ignore_ascii_case(b"bytes") {
            return Err(ContentRangeError::Unit);
        }
        let (range, total) = split_at_byte(rest, b'/').ok_or(ContentRangeError::Syntax)?;
        if range == b"*" {
            let total = position(total)?;
            return Ok(Self::Unsatisfied { total });
        }
        let (first, last) = split_at_byte(range, b'-').ok_or(ContentRangeError::Syntax)?;
        let total = match total {
            b"*" => None,
            digits => Some(position(digits)?),
        };
        checked(position(first)?, position(last)?, total)
    }
}

/// A range whose bounds fit together, or the reason why they do not.
fn checked(first: u64, last: u64, total: Option<u64>) -> Result<ContentRange, ContentRangeError> {
    if last < first {
        return Err(ContentRangeError::Inverted { first, last });
    }
    if last == u64::MAX {
        return Err(ContentRangeError::TooLarge);
    }
    match total {
        Some(total) if total <= last => Err(ContentRangeError::BeyondTotal { last, total }),
        _ => Ok(ContentRange::Bytes { first, last, total }),
    }
}

/// A decimal number without a sign: `1*DIGIT`.
fn position(digits: &[u8]) -> Result<u64, ContentRangeError> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ContentRangeError::Syntax);
    }
    let digits = std::str::from_utf8(digits).map_err(|_| ContentRangeError::Syntax)?;
    digits.parse().map_err(|_| ContentRangeError::TooLarge)
}

/// The bytes before and after the first `separator`.
fn split_at_byte(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

impl FromStr for ContentRange {
    type Err = ContentRangeError;

    fn from_str(value: &str) -> Result<Self, Self::Err> {
        Self::parse(value.as_bytes())
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
        let position = |digits: &str| match position(digits.as_bytes()) {
            Ok(at) => Some(at.min(BEYOND_EVERY_FILE)),
            Err(ContentRangeError::TooLarge) => Some(BEYOND_EVERY_FILE),
            Err(_) => None,
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
            assert_eq!(value.parse(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn reads_what_the_grammar_allows() {
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
            assert_eq!(value.parse(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        use ContentRangeError::{BeyondTotal, Inverted, Syntax, TooLarge, Unit};
        for (value, expected) in [
            ("", Syntax),
            ("bytes", Syntax),
            ("bytes=0-1/2", Syntax),
            ("bytes: 0-1/2", Unit),
            ("pages 0-1/2", Unit),
            ("bytes 0-1", Syntax),
            ("bytes 0/2", Syntax),
            ("bytes  0-1/2", Syntax),
            ("bytes 0 -1/2", Syntax),
            ("bytes 0-1/ 2", Syntax),
            ("bytes -1/2", Syntax),
            ("bytes 0-/2", Syntax),
            ("bytes +0-1/2", Syntax),
            ("bytes 0-1/2/3", Syntax),
            ("bytes 0-1-2/3", Syntax),
            ("bytes 0-1/", Syntax),
            ("bytes */*", Syntax),
            ("bytes *-1/2", Syntax),
            ("bytes 0x0-1/2", Syntax),
            ("bytes 0-1/2, bytes 0-1/2", Syntax),
            ("bytes 1-0/2", Inverted { first: 1, last: 0 }),
            ("bytes 1-0/*", Inverted { first: 1, last: 0 }),
            ("bytes 0-2/2", BeyondTotal { last: 2, total: 2 }),
            ("bytes 0-0/0", BeyondTotal { last: 0, total: 0 }),
            ("bytes 0-18446744073709551615/*", TooLarge),
            ("bytes 0-18446744073709551616/*", TooLarge),
            ("bytes */99999999999999999999", TooLarge),
        ] {
            assert_eq!(value.parse::<ContentRange>(), Err(expected), "{value}");
        }
        assert_eq!(ContentRange::parse(b"bytes 0-\xff/2"), Err(Syntax));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            first in 0..u64::MAX,
            length in 1..u64::MAX,
            spare in proptest::option::of(0_u64..1000),
        ) {
            let last = first.saturating_add(length - 1).min(u64::MAX - 1);
            let total = spare.map(|spare| last.saturating_add(1).saturating_add(spare));
            let range = bytes(first, last, total);
            prop_assert_eq!(range.to_string().parse(), Ok(range));
        }

        #[test]
        fn an_accepted_range_is_consistent(text in "bytes [0-9]{1,3}-[0-9]{1,3}/([0-9]{1,3}|\\*)") {
            if let Ok(ContentRange::Bytes { first, last, total }) = text.parse() {
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
    fn what_lies_outside_is_unsatisfiable() {
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
    fn everything_else_is_passed_over() {
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
