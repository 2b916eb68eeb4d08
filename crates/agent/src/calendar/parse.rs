//! Parses the text of an expression into the numbers that it allows.

use std::collections::BTreeSet;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;

use super::{Calendar, CalendarError, Days, Field};

/// The words and their meaning, with alternative spellings (systemd.time(7)).
const SHORTHANDS: [(&str, &str); 12] = [
    ("minutely", "*-*-* *:*:00"),
    ("hourly", "*-*-* *:00:00"),
    ("daily", "*-*-* 00:00:00"),
    ("weekly", "Mon *-*-* 00:00:00"),
    ("monthly", "*-*-01 00:00:00"),
    ("quarterly", "*-01,04,07,10-01 00:00:00"),
    ("semiannually", "*-01,07-01 00:00:00"),
    ("semi-annually", "*-01,07-01 00:00:00"),
    ("biannually", "*-01,07-01 00:00:00"),
    ("bi-annually", "*-01,07-01 00:00:00"),
    ("yearly", "*-01-01 00:00:00"),
    ("annually", "*-01-01 00:00:00"),
];

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

/// Two-digit years from this one on belong to the twentieth century, as in systemd.
const FIRST_TWO_DIGIT_YEAR: i16 = 70;

impl Calendar {
    /// Parses an expression.
    ///
    /// The time zone comes from the database of this machine. Later changes of the
    /// database have no effect.
    ///
    /// # Errors
    /// A part has another form, or is outside of its range.
    pub fn parse(text: &str) -> Result<Self, CalendarError> {
        let text = text.trim_ascii();
        let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
        let Some(first) = words.first() else {
            return Err(CalendarError::Empty);
        };
        if first.starts_with('@') {
            return Err(CalendarError::Epoch((*first).to_owned()));
        }
        let zone = match words[..] {
            [_, .., last] if starts_with_letter(last) => {
                let zone = time_zone(last).ok_or_else(|| no_time_zone(last))?;
                words.pop();
                Some(zone)
            }
            _ => None,
        };
        let expanded = match words[..] {
            [word] => SHORTHANDS
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(word)),
            _ => None,
        };
        if let Some((_, expanded)) = expanded {
            words = expanded.split(' ').collect();
        }
        let mut calendar = Self::parts(words)?;
        calendar.zone = zone;
        text.clone_into(&mut calendar.text);
        Ok(calendar)
    }

    /// Parses weekdays, date and time, in this order.
    fn parts(words: Vec<&str>) -> Result<Self, CalendarError> {
        let mut words = words.into_iter().peekable();
        let weekdays = words.next_if(|word| starts_with_letter(word));
        let date = words.next_if(|word| !word.contains(':'));
        let time = words.next_if(|word| word.contains(':'));
        if let Some(rest) = words.next() {
            return Err(CalendarError::Form(rest.to_owned()));
        }
        let weekdays = weekdays.map_or(Ok(WEEKDAYS.map(|(_, day)| day).into()), weekdays_of)?;
        let (years, months, days) = date_of(date.unwrap_or("*-*-*"))?;
        let (hours, minutes, seconds) = time_of(time.unwrap_or("00:00:00"))?;
        Ok(Self {
            text: String::new(),
            weekdays,
            years,
            months,
            days,
            hours,
            minutes,
            seconds,
            zone: None,
        })
    }
}

fn starts_with_letter(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn time_zone(name: &str) -> Option<TimeZone> {
    if name.eq_ignore_ascii_case("UTC") {
        return Some(TimeZone::UTC);
    }
    TimeZone::get(name).ok()
}

/// The error for the last of several words, if it is not a time zone.
fn no_time_zone(word: &str) -> CalendarError {
    let word = word.to_owned();
    match weekdays_of(&word) {
        Ok(_) => CalendarError::Form(word),
        Err(_) => CalendarError::Zone(word),
    }
}

/// Parses `Mon..Wed,Sat`. Case does not matter, and full names are valid.
fn weekdays_of(word: &str) -> Result<Vec<Weekday>, CalendarError> {
    let mut days = Vec::new();
    for item in word.split(',') {
        if let Some((from, to)) = item.split_once("..") {
            let (from, to) = (weekday(from)?, weekday(to)?);
            let (from, to) = (from.to_monday_zero_offset(), to.to_monday_zero_offset());
            if from > to {
                return Err(CalendarError::WeekdaysBackwards(item.to_owned()));
            }
            days.extend((from..=to).filter_map(|day| Weekday::from_monday_zero_offset(day).ok()));
        } else if item.contains(['-', '~']) {
            return Err(CalendarError::WeekdayRange(item.to_owned()));
        } else {
            days.push(weekday(item)?);
        }
    }
    Ok(days)
}

fn weekday(name: &str) -> Result<Weekday, CalendarError> {
    let is = |full: &str| {
        [full, &full[..3]]
            .iter()
            .any(|form| form.eq_ignore_ascii_case(name))
    };
    let found = WEEKDAYS.iter().find(|(full, _)| is(full));
    let error = || CalendarError::Weekday(name.to_owned());
    found.map(|&(_, day)| day).ok_or_else(error)
}

type Numbers = BTreeSet<i16>;

/// Parses `YEAR-MONTH-DAY` or `MONTH-DAY`. A `~` instead of the last `-` counts days from
/// the end of the month.
fn date_of(word: &str) -> Result<(Numbers, Numbers, Days), CalendarError> {
    let error = || CalendarError::Date(word.to_owned());
    let at = word.rfind(['-', '~']).ok_or_else(error)?;
    let (rest, day) = (&word[..at], &word[at + 1..]);
    let (year, month) = rest.split_once('-').unwrap_or(("*", rest));
    if rest.contains('~') || month.contains('-') {
        return Err(error());
    }
    let years = numbers(year, Field::Year)?;
    let months = numbers(month, Field::Month)?;
    let days = if word[at..].starts_with('~') {
        Days::FromEnd(numbers(day, Field::DayFromEnd)?)
    } else {
        Days::FromStart(numbers(day, Field::Day)?)
    };
    Ok((years, months, days))
}

/// Parses `HOUR:MINUTE` or `HOUR:MINUTE:SECOND`.
fn time_of(word: &str) -> Result<(Numbers, Numbers, Numbers), CalendarError> {
    let parts: Vec<&str> = word.split(':').collect();
    let (hour, minute, second) = match parts[..] {
        [hour, minute] => (hour, minute, "00"),
        [hour, minute, second] => (hour, minute, second),
        _ => return Err(CalendarError::Time(word.to_owned())),
    };
    if second.replace("..", "").contains('.') {
        return Err(CalendarError::Fraction(second.to_owned()));
    }
    Ok((
        numbers(hour, Field::Hour)?,
        numbers(minute, Field::Minute)?,
        numbers(second, Field::Second)?,
    ))
}

/// Parses `*`, or a list of numbers and ranges with optional steps.
fn numbers(part: &str, field: Field) -> Result<Numbers, CalendarError> {
    if part == "*" {
        return Ok(field.range().collect());
    }
    if part.contains('*') {
        let part = part.to_owned();
        return Err(CalendarError::Star { part, field });
    }
    let mut allowed = Numbers::new();
    for item in part.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step_of(item, step, field)?)),
            None => (item, None),
        };
        let (from, to) = match range.split_once("..") {
            Some((from, to)) => (number(from, field)?, Some(number(to, field)?)),
            None => (number(range, field)?, None),
        };
        if to.is_some_and(|to| to < from) {
            return Err(CalendarError::Backwards(range.to_owned()));
        }
        let found = series(from, to, step, field).ok_or_else(|| {
            let part = item.to_owned();
            CalendarError::Step { part, field }
        })?;
        allowed.extend(found);
    }
    Ok(allowed)
}

/// A number, a range, or a series of steps. Steps go forward in time, so days from the end
/// of a month count down. `None` if a step without a range leaves the valid range at
/// once.
fn series(from: i16, to: Option<i16>, step: Option<usize>, field: Field) -> Option<Vec<i16>> {
    let Some(every) = step else {
        return Some((from..=to.unwrap_or(from)).collect());
    };
    if let Some(to) = to {
        return Some((from..=to).step_by(every).collect());
    }
    let (min, max) = field.range().into_inner();
    let found: Vec<i16> = match field {
        Field::DayFromEnd => (min..=from).rev().step_by(every).collect(),
        _ => (from..=max).step_by(every).collect(),
    };
    (found.len() > 1).then_some(found)
}

fn step_of(item: &str, step: &str, field: Field) -> Result<usize, CalendarError> {
    let part = item.to_owned();
    match digits(step).and_then(|step| usize::try_from(step).ok()) {
        None => Err(CalendarError::Number { part, field }),
        Some(0) => Err(CalendarError::Step { part, field }),
        Some(step) => Ok(step),
    }
}

fn number(text: &str, field: Field) -> Result<i16, CalendarError> {
    let part = text.to_owned();
    let Some(number) = digits(text) else {
        return Err(CalendarError::Number { part, field });
    };
    let number = match (field, number) {
        (Field::Year, 0..FIRST_TWO_DIGIT_YEAR) => 2000 + number,
        (Field::Year, FIRST_TWO_DIGIT_YEAR..100) => 1900 + number,
        _ => number,
    };
    if field.range().contains(&number) {
        Ok(number)
    } else {
        Err(CalendarError::OutOfRange { part, field })
    }
}

/// A number without a sign. A number too large for any field becomes the largest.
fn digits(text: &str) -> Option<i16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(i16::MAX))
}
