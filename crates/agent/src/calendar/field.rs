//! The numbers of a date and a time: what they are called, and their ranges.

use std::fmt;
use std::ops::RangeInclusive;

/// One of the numbers that an expression is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// 1970 to 2199, as in systemd; a two-digit year is of 1970 to 2069.
    Year,
    /// 1 to 12.
    Month,
    /// 1 to 31, from the start of a month.
    Day,
    /// 1 to 28, from the end of a month, written after `~`: 1 is its last day.
    /// No further than every month goes.
    DayFromEnd,
    /// 0 to 23.
    Hour,
    /// 0 to 59.
    Minute,
    /// 0 to 59; whole ones.
    Second,
}

impl Field {
    /// The least and the greatest number.
    #[must_use]
    pub fn range(self) -> RangeInclusive<i16> {
        match self {
            Self::Year => 1970..=2199,
            Self::Month => 1..=12,
            Self::Day => 1..=31,
            Self::DayFromEnd => 1..=28,
            Self::Hour => 0..=23,
            Self::Minute | Self::Second => 0..=59,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Year => "year",
            Self::Month => "month",
            Self::Day => "day",
            Self::DayFromEnd => "day from the end of a month",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
        })
    }
}
