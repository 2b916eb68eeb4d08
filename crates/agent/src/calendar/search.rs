//! The next moment of an expression.
//!
//! First the next local date and time that it allows, without a time zone: years
//! end, so that search ends. Then the moment at which local clocks show it.

use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};

use super::{Calendar, Days};

impl Calendar {
    /// The first moment after `now`, at a whole second, in the time zone of the
    /// expression, or that of `now` if it names none. `None` when there is none
    /// any more.
    #[must_use]
    pub fn next_after(&self, now: &Zoned) -> Option<Zoned> {
        let zone = self.zone.as_ref().unwrap_or(now.time_zone());
        let local = now.with_time_zone(zone.clone()).datetime();
        let whole = local.with().subsec_nanosecond(0).build().ok()?;
        let mut from = whole.checked_add(1.second()).ok()?;
        loop {
            let shown = self.date_time_from(from)?;
            let moment = moment(shown, zone)?;
            // Not so in an hour that comes for the second time: it has been.
            if moment > now.timestamp() {
                return Some(moment.to_zoned(zone.clone()));
            }
            from = shown.checked_add(1.second()).ok()?;
        }
    }

    /// The first date and time from this one on.
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

    /// The dates from this one on, in order.
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

    /// The first time of a day from this one on.
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

/// When local clocks show this: the first time, if they do twice; if they never
/// do, when they skip it.
fn moment(shown: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(shown).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(shown).ok()
        }
        AmbiguousOffset::Gap { before, .. } => {
            // At the skip or after it, as a clock would show that was not changed.
            let after = before.to_timestamp(shown).ok()?;
            let skip = zone.preceding(after.checked_add(1.second()).ok()?).next()?;
            Some(skip.timestamp())
        }
    }
}
