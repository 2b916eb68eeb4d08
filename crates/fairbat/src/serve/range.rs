//! The `Range` field of a request (RFC 9110, section 14.2). Knows nothing of
//! conditions or files.

use std::ops::Range;

use http::header::RANGE;
use http::{HeaderMap, HeaderValue};

/// Beyond every file: offsets have 63 bits.
const BEYOND: u64 = u64::MAX - 1;

/// Which bytes of a file a request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of them: no range was asked for, or one that is passed over.
    Whole,
    /// These; not empty, and within the file.
    Part(Range<u64>),
    /// The range lies outside the file.
    Unsatisfiable,
}

impl Wanted {
    /// What the headers ask for of a file of `size` bytes.
    ///
    /// A field that is malformed, is of another unit or comes twice is passed
    /// over, and so is one with several ranges: a server may (section 14.2),
    /// and one answer in several parts is of no use to anybody who moves bulk
    /// data.
    pub(super) fn of(headers: &HeaderMap, size: u64) -> Self {
        let mut lines = headers.get_all(RANGE).iter();
        match (lines.next(), lines.next()) {
            (Some(line), None) => Self::parse(line, size).unwrap_or(Self::Whole),
            _ => Self::Whole,
        }
    }

    fn parse(line: &HeaderValue, size: u64) -> Option<Self> {
        let (unit, set) = line.to_str().ok()?.trim_ascii().split_once('=')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (first, last) = set.trim_ascii().split_once('-')?;
        if first.is_empty() {
            return Some(Self::within(
                size.saturating_sub(position(last)?),
                size,
                size,
            ));
        }
        let first = position(first)?;
        let end = match last {
            "" => u64::MAX,
            last => position(last)? + 1,
        };
        // Inverted: invalid, not unsatisfiable (section 14.1.1).
        (first < end).then(|| Self::within(first, end, size))
    }

    fn within(first: u64, end: u64, size: u64) -> Self {
        let end = end.min(size);
        if first < end {
            Self::Part(first..end)
        } else {
            Self::Unsatisfiable
        }
    }
}

/// 1*DIGIT; what does not fit is beyond every file, and one more fits always.
fn position(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().map_or(BEYOND, |at: u64| at.min(BEYOND)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted(value: &str, size: u64) -> Wanted {
        let value = HeaderValue::from_str(value).unwrap();
        Wanted::of(&HeaderMap::from_iter([(RANGE, value)]), size)
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
            assert_eq!(wanted(value, 10), Wanted::Part(expected), "{value}");
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
            assert_eq!(wanted(value, 10), Wanted::Unsatisfiable, "{value}");
        }
        for value in ["bytes=0-", "bytes=0-0", "bytes=-1"] {
            assert_eq!(wanted(value, 0), Wanted::Unsatisfiable, "{value}");
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
            assert_eq!(wanted(value, 10), Wanted::Whole, "{value}");
        }
        let mut twice = HeaderMap::new();
        twice.append(RANGE, HeaderValue::from_static("bytes=0-1"));
        twice.append(RANGE, HeaderValue::from_static("bytes=0-1"));
        assert_eq!(Wanted::of(&twice, 10), Wanted::Whole);
        assert_eq!(Wanted::of(&HeaderMap::new(), 10), Wanted::Whole);
    }

    proptest! {
        #[test]
        fn a_part_is_never_empty_and_never_beyond(text in "bytes=[0-9]{0,20}-[0-9]{0,20}", size in any::<u64>()) {
            if let Wanted::Part(range) = wanted(&text, size) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
        }
    }
}
