//! Calendar expressions, as in systemd.time(7): the start times of a job.
//!
//! The form is `[WEEKDAYS] [DATE] [TIME] [ZONE]`, or a word such as `daily`. At least one
//! of the first three is needed. A missing part of a date matches any value. A missing
//! part of a time is 0.
//!
//! There is one difference to systemd, when clocks go forward. systemd skips start times
//! in the missing hour. Here, such a job starts once, at the moment of the change: an early
//! backup is better than none. When clocks go back, a start time in the repeated hour
//! counts in the first of the two hours, as in systemd.
//!
//! Pure: the present moment is an argument.

mod parse;
mod search;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;

/// A calendar expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// The expression as written.
    text: String,
    weekdays: Vec<Weekday>,
    years: BTreeSet<i16>,
    months: BTreeSet<i16>,
    days: Days,
    hours: BTreeSet<i16>,
    minutes: BTreeSet<i16>,
    seconds: BTreeSet<i16>,
    /// The time zone; `None` means that of the caller.
    zone: Option<TimeZone>,
}

/// The days of a month.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Days {
    /// From the start: 1 is the first day.
    FromStart(BTreeSet<i16>),
    /// From the end: 1 is the last day.
    FromEnd(BTreeSet<i16>),
}

impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One of the numbers of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// 1970 to 2199, as in systemd. Two-digit years mean 1970 to 2069.
    Year,
    /// 1 to 12.
    Month,
    /// 1 to 31, from the start of a month.
    Day,
    /// 1 to 28, from the end of a month, written after `~`. 1 is the last day. Every month
    /// has that many days.
    DayFromEnd,
    /// 0 to 23.
    Hour,
    /// 0 to 59.
    Minute,
    /// 0 to 59, whole seconds.
    Second,
}

impl Field {
    /// The valid numbers.
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

/// Why a text is not a calendar expression. Each error shows the wrong part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// The text is empty.
    #[error("the expression is empty; write for example 22:00, Mon..Fri 22:00 or daily")]
    Empty,
    /// A part is not in its place, or is neither weekdays nor date nor time.
    #[error(
        "{0:?} is out of place; write weekdays, date, time and time zone in this order, as in \
         Mon..Fri *-*-* 22:00 Europe/Berlin, or a word: minutely, hourly, daily, weekly, monthly, \
         quarterly, semiannually, yearly"
    )]
    Form(String),
    /// There are letters instead of a weekday.
    #[error(
        "{0:?} is not a weekday; write Mon, Tue, Wed, Thu, Fri, Sat or Sun, or a single word such \
         as daily"
    )]
    Weekday(String),
    /// A range of weekdays ends before it starts.
    #[error("{0:?} runs past Sunday, the end of a week; write for example Mon,Sat,Sun")]
    WeekdaysBackwards(String),
    /// A range of weekdays is not written with `..`.
    #[error("{0:?} is not a range of weekdays; write two dots, as in Mon..Fri")]
    WeekdayRange(String),
    /// A date has another form.
    #[error(
        "{0:?} is not a date; write YEAR-MONTH-DAY or MONTH-DAY, as in *-*-01; to count days from \
         the end of the month, write ~ before the day, as in *-*~01"
    )]
    Date(String),
    /// A time has another form.
    #[error("{0:?} is not a time; write HOUR:MINUTE or HOUR:MINUTE:SECOND, as in 22:00")]
    Time(String),
    /// There is something else instead of a number.
    #[error("{part:?} is not a valid {field}; write {low} to {high}, a list (1,5), a range (1..5), each \
         with a step if needed (1/2), or * alone",
        low = field.range().start(), high = field.range().end())]
    Number {
        /// The text.
        part: String,
        /// The expected number.
        field: Field,
    },
    /// A number is too small or too large.
    #[error("{part:?} is not a valid {field}; write {low} to {high}",
        low = field.range().start(), high = field.range().end())]
    OutOfRange {
        /// The text.
        part: String,
        /// The expected number.
        field: Field,
    },
    /// A range ends before it starts.
    #[error("the range {0:?} ends before it starts; write the smaller number first")]
    Backwards(String),
    /// A `*` does not stand alone.
    #[error("* must stand alone, unlike in {part:?}; for every second {field} write {low}/2",
        low = field.range().start())]
    Star {
        /// The text.
        part: String,
        /// The number it belongs to.
        field: Field,
    },
    /// A step is zero or leaves the range at once.
    #[error("the step in {part:?} reaches no second {field}; use a smaller one, or none")]
    Step {
        /// The text.
        part: String,
        /// The number it belongs to.
        field: Field,
    },
    /// There is a fraction of a second.
    #[error("{0:?} has a fraction of a second; write whole seconds")]
    Fraction(String),
    /// The moment is in seconds since 1970.
    #[error("{0:?} counts seconds since 1970; write a date and a time instead")]
    Epoch(String),
    /// This machine does not know the time zone.
    #[error("{0:?} is not a time zone of this machine; write UTC or for example Europe/Berlin")]
    Zone(String),
}

#[cfg(test)]
mod tests;
