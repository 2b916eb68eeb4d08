//! Calendar expressions, as systemd.time(7) has them: when a job is to start.
//!
//! `[WEEKDAYS] [DATE] [TIME] [ZONE]`, each of them optional but not all of the
//! first three, or a word such as `daily`. Whatever is not said of a date is any,
//! and of a time 0.
//!
//! Two clock changes a year are told apart from systemd, which passes over what
//! falls into the hour that a clock skips: here it happens when that hour would
//! have begun, once, because a backup that is missing is worse than one that is
//! early. What falls into the hour that comes twice happens in the first of the
//! two, as there.
//!
//! Pure: the moment is an argument. It must not know what starts.

mod error;
mod field;
mod parse;
mod search;

use std::collections::BTreeSet;
use std::fmt;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;

pub use self::error::CalendarError;
pub use self::field::Field;

/// When something is to happen, over and over or once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// As it was written.
    text: String,
    weekdays: Vec<Weekday>,
    years: BTreeSet<i16>,
    months: BTreeSet<i16>,
    days: Days,
    hours: BTreeSet<i16>,
    minutes: BTreeSet<i16>,
    seconds: BTreeSet<i16>,
    /// `None` is that of whoever asks.
    zone: Option<TimeZone>,
}

/// Which days of a month.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Days {
    /// 1 is the first.
    FromStart(BTreeSet<i16>),
    /// 1 is the last.
    FromEnd(BTreeSet<i16>),
}

impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
