//! Times of day that come every day, as `06:00`, and hours in which something applies, as
//! `08:00-18:00` or `Mon..Fri 22:00-06:00`. Pure.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Time, Weekday};
use jiff::{Timestamp, Zoned};

/// A time of day that comes every day, in local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay(Time);

/// What is no [`TimeOfDay`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write hours and minutes, such as 06:00")]
pub struct InvalidTimeOfDay;

/// Reads `HH:MM`; the hour may have one digit.
impl FromStr for TimeOfDay {
    type Err = InvalidTimeOfDay;

    fn from_str(text: &str) -> Result<Self, InvalidTimeOfDay> {
        let (hour, minute) = text.split_once(':').ok_or(InvalidTimeOfDay)?;
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !matches!(hour.len(), 1 | 2) || minute.len() != 2 || !digits(hour) || !digits(minute) {
            return Err(InvalidTimeOfDay);
        }
        let number = |part: &str| part.parse().map_err(|_| InvalidTimeOfDay);
        let time = Time::new(number(hour)?, number(minute)?, 0, 0);
        time.map(Self).map_err(|_| InvalidTimeOfDay)
    }
}

impl TimeOfDay {
    /// The next moment after `now` at which local clocks show it. On the day a clock change skips
    /// it, it is later by the length of the gap; on the day it comes twice, the first one counts
    /// (RFC 5545's rule, jiff's "compatible"). `None` at the end of the calendar.
    #[must_use]
    pub fn next(self, now: &Zoned) -> Option<Timestamp> {
        let today = now.date();
        [Some(today), today.tomorrow().ok()]
            .into_iter()
            .flatten()
            .filter_map(|date| {
                let local = date.to_datetime(self.0);
                let zoned = local.to_zoned(now.time_zone().clone()).ok()?;
                Some(zoned.timestamp())
            })
            .find(|moment| *moment > now.timestamp())
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%H:%M"))
    }
}

/// Hours of some days of the week, in local time. If they end before they begin, they last until the
/// next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    /// Whether they begin on Monday, Tuesday, and so on.
    days: [bool; 7],
    from: Time,
    to: Time,
}

/// What are no [`Hours`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write hours such as 08:00-18:00, Mon..Fri 22:00-06:00 or Sat,Sun 00:00-24:00")]
pub struct InvalidHours;

/// Whether this moment, in local time, is in any of them, or there are none: then it is always.
#[must_use]
pub fn is_within(hours: &[Hours], now: &Zoned) -> bool {
    hours.is_empty() || hours.iter().any(|each| each.contain(now))
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl FromStr for Hours {
    type Err = InvalidHours;

    fn from_str(text: &str) -> Result<Self, InvalidHours> {
        let text = text.trim();
        let (days, span) = match text.rsplit_once(char::is_whitespace) {
            Some((days, span)) => (days_of(days).ok_or(InvalidHours)?, span),
            None => ([true; 7], text),
        };
        let (from, to) = span.split_once('-').ok_or(InvalidHours)?;
        let time = |text: &str| match text.parse() {
            Ok(TimeOfDay(time)) => Ok(time),
            Err(InvalidTimeOfDay) => Err(InvalidHours),
        };
        Ok(Self {
            days,
            from: time(from)?,
            // Both are the same moment, and from midnight to midnight is all day.
            to: time(if to == "24:00" { "00:00" } else { to })?,
        })
    }
}

/// `Mon..Fri`, `Sat,Sun`, or both joined.
fn days_of(text: &str) -> Option<[bool; 7]> {
    let day = |name: &str| {
        let name = name.trim().to_ascii_lowercase();
        DAYS.iter().position(|day| *day == name)
    };
    let mut days = [false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let (first, last) = (day(first)?, day(last)?);
        let count = (last + 7 - first) % 7;
        (first..=first + count).for_each(|day| days[day % 7] = true);
    }
    Some(days)
}

impl Hours {
    /// Whether this moment, in local time, is in them.
    #[must_use]
    pub fn contain(&self, now: &Zoned) -> bool {
        let time = now.time();
        let today = self.begin_on(now.weekday());
        if self.from < self.to {
            return today && self.from <= time && time < self.to;
        }
        let yesterday = self.begin_on(now.weekday().previous());
        today && self.from <= time || yesterday && time < self.to
    }

    fn begin_on(&self, day: Weekday) -> bool {
        let index = usize::try_from(day.to_monday_zero_offset());
        index.is_ok_and(|index| self.days[index])
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.days != [true; 7] {
            let named = DAYS.iter().zip(self.days).filter(|(_, is)| *is);
            let names: Vec<_> = named
                .map(|(name, _)| format!("{}{}", name[..1].to_uppercase(), &name[1..]))
                .collect();
            write!(f, "{} ", names.join(","))?;
        }
        let (from, to) = (self.from.strftime("%H:%M"), self.to.strftime("%H:%M"));
        write!(f, "{from}-{to}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-03-02 is a Monday.
    fn contain(hours: &str, moment: &str) -> bool {
        let now = format!("2026-03-{moment}:00[UTC]").parse().unwrap();
        hours.parse::<Hours>().unwrap().contain(&now)
    }

    #[test]
    fn hours_of_a_day_end_before_their_end() {
        assert!(contain("08:00-18:00", "02T08:00"));
        assert!(contain("08:00-18:00", "08T17:59"));
        assert!(!contain("08:00-18:00", "02T18:00"));
        assert!(!contain("Mon..Fri 08:00-18:00", "07T12:00"));
        assert!(contain("sat,Sun 00:00-24:00", "08T23:59"));
        assert!(!contain("Sat,Sun 00:00-24:00", "09T00:00"));
    }

    #[test]
    fn hours_over_midnight_belong_to_the_day_on_which_they_begin() {
        assert!(contain("22:00-06:00", "02T23:00"));
        assert!(contain("22:00-06:00", "02T05:59"));
        assert!(!contain("22:00-06:00", "02T06:00"));
        assert!(contain("Fri 22:00-06:00", "07T01:00"));
        assert!(!contain("Fri 22:00-06:00", "06T01:00"));
        assert!(contain("Fri..Mon 12:00-13:00", "02T12:30"));
        assert!(!contain("Fri..Mon 12:00-13:00", "03T12:30"));
    }

    #[test]
    fn what_was_read_can_be_written() {
        for text in ["08:00-18:00", "Mon,Tue,Wed 22:00-06:00"] {
            assert_eq!(text.parse::<Hours>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_time_of_day_is_refused() {
        for text in ["", "6", "24:30", "4h", "6:0", "06:00:00", "+6:00"] {
            assert_eq!(text.parse::<TimeOfDay>(), Err(InvalidTimeOfDay), "{text}");
        }
        assert_eq!("6:05".parse::<TimeOfDay>().unwrap().to_string(), "06:05");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "8",
            "08:00",
            "08:00-25:00",
            "Mo 08:00-09:00",
            "Mon",
            "Mon-Fri 08:00-09:00",
        ] {
            assert_eq!(text.parse::<Hours>(), Err(InvalidHours), "{text}");
        }
    }
}
