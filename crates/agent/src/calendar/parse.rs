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
            return Err(CalendarError(
                "the expression is empty; write for example 22:00, Mon..Fri 22:00 or daily"
                    .to_owned(),
            ));
        };
        if first.starts_with('@') {
            return Err(CalendarError(format!(
                "{first:?} counts seconds since 1970; write a date and a time instead"
            )));
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
            return Err(out_of_place(rest));
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

/// The error for a part that is not in its place, or is neither weekdays nor date nor time.
fn out_of_place(word: &str) -> CalendarError {
    CalendarError(format!(
        "{word:?} is out of place; write weekdays, date, time and time zone in this order, as in \
         Mon..Fri *-*-* 22:00 Europe/Berlin, or a word: minutely, hourly, daily, weekly, \
         monthly, quarterly, semiannually, yearly"
    ))
}

/// The error for the last of several words, if it is not a time zone.
fn no_time_zone(word: &str) -> CalendarError {
    match weekdays_of(word) {
        Ok(_) => out_of_place(word),
        Err(_) => CalendarError(format!(
            "{word:?} is not a time zone of this machine; write UTC or for example Europe/Berlin"
        )),
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
                return Err(CalendarError(format!(
                    "{item:?} runs past Sunday, the end of a week; write for example Mon,Sat,Sun"
                )));
            }
            days.extend((from..=to).filter_map(|day| Weekday::from_monday_zero_offset(day).ok()));
        } else if item.contains(['-', '~']) {
            return Err(CalendarError(format!(
                "{item:?} is not a range of weekdays; write two dots, as in Mon..Fri"
            )));
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
    found.map(|&(_, day)| day).ok_or_else(|| {
        CalendarError(format!(
            "{name:?} is not a weekday; write Mon, Tue, Wed, Thu, Fri, Sat or Sun, or a single \
             word such as daily"
        ))
    })
}

type Numbers = BTreeSet<i16>;

/// Parses `YEAR-MONTH-DAY` or `MONTH-DAY`. A `~` instead of the last `-` counts days from
/// the end of the month.
fn date_of(word: &str) -> Result<(Numbers, Numbers, Days), CalendarError> {
    let error = || {
        CalendarError(format!(
            "{word:?} is not a date; write YEAR-MONTH-DAY or MONTH-DAY, as in *-*-01; to count \
             days from the end of the month, write ~ before the day, as in *-*~01"
        ))
    };
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
        _ => {
            return Err(CalendarError(format!(
                "{word:?} is not a time; write HOUR:MINUTE or HOUR:MINUTE:SECOND, as in 22:00"
            )));
        }
    };
    if second.replace("..", "").contains('.') {
        return Err(CalendarError(format!(
            "{second:?} has a fraction of a second; write whole seconds"
        )));
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
        let min = field.range().into_inner().0;
        return Err(CalendarError(format!(
            "* must stand alone, unlike in {part:?}; for every second {field} write {min}/2"
        )));
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
            return Err(CalendarError(format!(
                "the range {range:?} ends before it starts; write the smaller number first"
            )));
        }
        let found = series(from, to, step, field);
        allowed.extend(found.ok_or_else(|| useless_step(item, field))?);
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
    match digits(step).and_then(|step| usize::try_from(step).ok()) {
        None => Err(no_number(item, field)),
        Some(0) => Err(useless_step(item, field)),
        Some(step) => Ok(step),
    }
}

/// The error for a step that is zero or leaves the range at once.
fn useless_step(part: &str, field: Field) -> CalendarError {
    CalendarError(format!(
        "the step in {part:?} reaches no second {field}; use a smaller one, or none"
    ))
}

/// The error for something else instead of a number.
fn no_number(part: &str, field: Field) -> CalendarError {
    let (min, max) = field.range().into_inner();
    CalendarError(format!(
        "{part:?} is not a valid {field}; write {min} to {max}, a list (1,5), a range (1..5), \
         each with a step if needed (1/2), or * alone"
    ))
}

fn number(text: &str, field: Field) -> Result<i16, CalendarError> {
    let number = digits(text).ok_or_else(|| no_number(text, field))?;
    let number = match (field, number) {
        (Field::Year, 0..FIRST_TWO_DIGIT_YEAR) => 2000 + number,
        (Field::Year, FIRST_TWO_DIGIT_YEAR..100) => 1900 + number,
        _ => number,
    };
    if field.range().contains(&number) {
        return Ok(number);
    }
    let (min, max) = field.range().into_inner();
    Err(CalendarError(format!(
        "{text:?} is not a valid {field}; write {min} to {max}"
    )))
}

/// A number without a sign. A number too large for any field becomes the largest.
fn digits(text: &str) -> Option<i16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(i16::MAX))
}
