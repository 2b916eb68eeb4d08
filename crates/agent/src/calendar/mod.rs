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
//! The search for the next moment has two steps. The first finds the next local date and
//! time that the expression allows, without a time zone. It ends, because years end. The
//! second finds the moment at which local clocks show that date and time.
//!
//! Pure: the present moment is an argument.

mod parse;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};

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
enum Field {
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
    fn range(self) -> RangeInclusive<i16> {
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

/// Why a text is not a calendar expression: the wrong part, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CalendarError(String);

impl Calendar {
    /// The first moment after `now`, at a whole second. It is in the time zone of the
    /// expression, or of `now` if the expression has none. `None` after the last moment.
    #[must_use]
    pub fn next_after(&self, now: &Zoned) -> Option<Zoned> {
        let zone = self.zone.as_ref().unwrap_or(now.time_zone());
        let local = now.with_time_zone(zone.clone()).datetime();
        let whole = local.with().subsec_nanosecond(0).build().ok()?;
        let mut from = whole.checked_add(1.second()).ok()?;
        loop {
            let shown = self.date_time_from(from)?;
            let moment = moment(shown, zone)?;
            // In a repeated hour, the moment is already over.
            if moment > now.timestamp() {
                return Some(moment.to_zoned(zone.clone()));
            }
            from = shown.checked_add(1.second()).ok()?;
        }
    }

    /// The first valid date and time, from this one on.
    fn date_time_from(&self, from: DateTime) -> Option<DateTime> {
        self.dates_from(from.date()).find_map(|date| {
            let earliest = if date == from.date() {
                from.time()
            } else {
                Time::midnight()
            };
            Some(date.to_datetime(self.time_from(earliest)?))
        })
    }

    /// The valid dates from this one on, in order.
    fn dates_from(&self, from: Date) -> impl Iterator<Item = Date> {
        let years = self.years.range(from.year()..);
        years
            .flat_map(|&year| self.months.iter().map(move |&month| (year, month)))
            .skip_while(move |&month| month < (from.year(), i16::from(from.month())))
            .filter_map(|(year, month)| Date::new(year, i8::try_from(month).ok()?, 1).ok())
            .flat_map(|first| {
                first
                    .series(1.day())
                    .take_while(move |day| day.month() == first.month())
            })
            .skip_while(move |&date| date < from)
            .filter(|&date| self.has_day(date))
    }

    fn has_day(&self, date: Date) -> bool {
        let day = i16::from(date.day());
        let of_month = match &self.days {
            Days::FromStart(days) => days.contains(&day),
            Days::FromEnd(days) => days.contains(&(i16::from(date.days_in_month()) - day + 1)),
        };
        of_month && self.weekdays.contains(&date.weekday())
    }

    /// The first valid time of a day, from this one on.
    fn time_from(&self, from: Time) -> Option<Time> {
        let [hour, minute, second] = [from.hour(), from.minute(), from.second()].map(i16::from);
        let first = |numbers: &BTreeSet<i16>, from| numbers.range(from..).next().copied();
        let of_minute = || Some((hour, minute, first(&self.seconds, second)?));
        let of_hour = || {
            let minute = first(&self.minutes, minute + 1)?;
            Some((hour, minute, first(&self.seconds, 0)?))
        };
        let of_day = || {
            let hour = first(&self.hours, hour + 1)?;
            Some((hour, first(&self.minutes, 0)?, first(&self.seconds, 0)?))
        };
        let has_hour = self.hours.contains(&hour);
        let has_minute = has_hour && self.minutes.contains(&minute);
        let (hour, minute, second) = None
            .or_else(|| of_minute().filter(|_| has_minute))
            .or_else(|| of_hour().filter(|_| has_hour))
            .or_else(of_day)?;
        let [hour, minute, second] = [hour, minute, second].map(i8::try_from);
        Time::new(hour.ok()?, minute.ok()?, second.ok()?, 0).ok()
    }
}

/// The moment at which local clocks show this date and time. If they show it twice, the
/// first of the two. If they skip it, the moment of the change.
fn moment(shown: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(shown).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(shown).ok()
        }
        AmbiguousOffset::Gap { before, .. } => {
            // The moment on a clock that was not set forward: at the change or after it.
            let after = before.to_timestamp(shown).ok()?;
            let skip = zone.preceding(after.checked_add(1.second()).ok()?).next()?;
            Some(skip.timestamp())
        }
    }
}

#[cfg(test)]
mod tests;
