//! Deadlines, durations and sizes as people write them, and the errors that say which forms
//! are read.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::{Span, SpanRelativeTo, Timestamp, Zoned};
use parse_size::{Config, Error};

use crate::hours::TimeOfDay;

/// Why a text is not a deadline.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeadlineError {
    /// The text has no form that is read.
    #[error(
        "{0:?} is not a deadline; write a moment (2026-05-01T06:00:00+02:00), \
         a time of day (06:00) or a duration (90s, 45m, 4h, 1h30m, 2d)"
    )]
    Unrecognised(String),
    /// A date, and perhaps a time, without a time zone.
    #[error("{0:?} says no time zone; write it in full, as in 2026-05-01T06:00:00+02:00 or ...Z")]
    NoOffset(String),
    /// The moment is over.
    #[error("{moment} lies in the past: it is {now} now; a deadline must lie in the future")]
    Past {
        /// The deadline.
        moment: Timestamp,
        /// The moment it was compared with.
        now: Timestamp,
    },
    /// Beyond the year 9999.
    #[error("{0:?} is too far away")]
    TooFar(String),
}

/// Reads a deadline, which always lies after `now`:
/// - a moment (RFC 3339): `2026-05-01T06:00:00+02:00`;
/// - a time of day `HH:MM` in the time zone of `now`: its next occurrence ([`TimeOfDay::next`]);
/// - a duration from `now`: `90s`, `45m`, `4h`, `1h30m`, `2d`; a day is 24 hours. A bare
///   number is refused, because it could as well be an hour or a year.
///
/// # Errors
///
/// If the text has another form, or the moment is not after `now`.
pub fn parse_deadline(text: &str, now: &Zoned) -> Result<Timestamp, DeadlineError> {
    let trimmed = text.trim_ascii();
    let moment = if let Ok(time) = trimmed.parse::<TimeOfDay>() {
        time.next(now)
            .ok_or_else(|| DeadlineError::TooFar(text.to_owned()))?
    } else if let Some(duration) = duration(trimmed) {
        now.timestamp()
            .checked_add(duration)
            .map_err(|_| DeadlineError::TooFar(text.to_owned()))?
    } else {
        moment(trimmed)?
    };
    let now = now.timestamp();
    if moment <= now {
        return Err(DeadlineError::Past { moment, now });
    }
    Ok(moment)
}

/// A duration with a unit.
fn duration(text: &str) -> Option<Duration> {
    if !text.contains(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    parse_duration(text).ok()
}

fn moment(text: &str) -> Result<Timestamp, DeadlineError> {
    // Of 06:00+02:00[Europe/London] jiff would ignore what is in brackets.
    if text.contains('[') {
        return Err(DeadlineError::Unrecognised(text.to_owned()));
    }
    text.parse().map_err(|_| match text.parse::<DateTime>() {
        Ok(_) => DeadlineError::NoOffset(text.to_owned()),
        Err(_) => DeadlineError::Unrecognised(text.to_owned()),
    })
}

/// A text that is not a duration, or one of more than about 20,000 years.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration; write for example 500ms, 30s, 45m, 1h30m or 2d")]
pub struct DurationError(pub String);

/// Reads a duration: a bare number of seconds, or numbers with units from `ns`
/// to `w` (weeks), largest first, as in `1h30m`; the last number may have a
/// fraction. A day is 24 hours.
///
/// # Errors
///
/// If the text has another form; a sign is another form too.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let trimmed = text.trim_ascii();
    let duration = if trimmed.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        with_units(&format!("{trimmed}s"))
    } else {
        with_units(trimmed)
    };
    duration.ok_or_else(|| DurationError(text.to_owned()))
}

/// Numbers with units. jiff reads ISO 8601, signs and `10:30:00` as well; they
/// are not offered, the last because it looks like a time of day.
fn with_units(text: &str) -> Option<Duration> {
    let offered = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b' ');
    if !text.starts_with(|c: char| c.is_ascii_digit()) || !text.bytes().all(offered) {
        return None;
    }
    let span: Span = text.parse().ok()?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(duration).ok()
}

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// The text has no form that is read.
    #[error("{0:?} is not a size; write for example 4096, 500K, 1.5M or 2GiB")]
    Unrecognised(String),
    /// Zero, which is no size or rate in FAIRBAT.
    #[error("{0:?} is zero; it must be more")]
    Zero(String),
    /// 16 EiB or more.
    #[error("{0:?} is too large")]
    TooLarge(String),
}

/// Reads a number of bytes (for a rate: per second), at least 1: `500K`, `1M`,
/// `1.5G`. K, M, G, T, P and E are powers of 1024 in either case; `B` or `iB`
/// may follow and changes nothing. Fractions are rounded to whole bytes.
///
/// # Errors
///
/// If the text has another form, or the number is 0 or does not fit 64 bits.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    match Config::new().with_binary().parse_size(text) {
        Ok(0) => Err(SizeError::Zero(text.to_owned())),
        Ok(bytes) => Ok(bytes),
        Err(Error::PosOverflow) => Err(SizeError::TooLarge(text.to_owned())),
        Err(_) => Err(SizeError::Unrecognised(text.to_owned())),
    }
}

#[cfg(test)]
mod deadline_tests {
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;

    /// The rule of central Europe since 1996, without a time zone database.
    fn berlin(local: &str) -> Zoned {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        local.parse::<DateTime>().unwrap().to_zoned(zone).unwrap()
    }

    /// The deadline in UTC.
    fn at(text: &str, now: &str) -> String {
        match parse_deadline(text, &berlin(now)) {
            Ok(deadline) => deadline.to_string(),
            Err(error) => panic!("{text}: {error}"),
        }
    }

    const SPRING_DAY: &str = "2026-05-01T12:00:00";

    #[test]
    fn reads_moments() {
        for (text, expected) in [
            ("2026-05-02T06:00:00+02:00", "2026-05-02T04:00:00Z"),
            ("2026-05-02T06:00:00Z", "2026-05-02T06:00:00Z"),
            ("2026-05-02t06:00:00.5z", "2026-05-02T06:00:00.5Z"),
            ("2026-05-02 06:00Z", "2026-05-02T06:00:00Z"),
            (" 2026-05-02T06:00:00Z ", "2026-05-02T06:00:00Z"),
            // RFC 3339, section 5.8.
            ("2037-01-01T12:00:27.87+00:20", "2037-01-01T11:40:27.87Z"),
        ] {
            assert_eq!(at(text, SPRING_DAY), expected, "{text}");
        }
    }

    #[test]
    fn reads_durations() {
        for (text, expected) in [
            ("90s", "2026-05-01T10:01:30Z"),
            ("45m", "2026-05-01T10:45:00Z"),
            ("4h", "2026-05-01T14:00:00Z"),
            ("1h30m", "2026-05-01T11:30:00Z"),
            ("2d", "2026-05-03T10:00:00Z"),
        ] {
            assert_eq!(at(text, SPRING_DAY), expected, "{text}");
        }
        // A day is 24 hours, even where the clocks change.
        assert_eq!(at("1d", "2026-03-28T12:00:00"), "2026-03-29T11:00:00Z");
    }

    #[test]
    fn a_time_of_day_is_its_next_occurrence() {
        for (text, expected) in [
            ("12:01", "2026-05-01T10:01:00Z"),
            ("23:59", "2026-05-01T21:59:00Z"),
            ("12:00", "2026-05-02T10:00:00Z"),
            ("06:00", "2026-05-02T04:00:00Z"),
            ("6:00", "2026-05-02T04:00:00Z"),
            ("00:00", "2026-05-01T22:00:00Z"),
        ] {
            assert_eq!(at(text, SPRING_DAY), expected, "{text}");
        }
        assert_eq!(at("06:00", "2026-12-31T12:00:00"), "2027-01-01T05:00:00Z");
    }

    #[test]
    fn a_skipped_time_is_later_by_the_gap() {
        // On 29 March 2026 clocks go from 02:00 to 03:00.
        assert_eq!(at("02:30", "2026-03-28T12:00:00"), "2026-03-29T01:30:00Z");
        assert_eq!(at("06:00", "2026-03-28T12:00:00"), "2026-03-29T04:00:00Z");
    }

    #[test]
    fn of_a_repeated_time_the_first_counts() {
        // On 25 October 2026 clocks go from 03:00 back to 02:00.
        assert_eq!(at("02:30", "2026-10-24T12:00:00"), "2026-10-25T00:30:00Z");
        assert_eq!(at("06:00", "2026-10-24T12:00:00"), "2026-10-25T05:00:00Z");
        // Between the two: the first is over.
        assert_eq!(at("02:30", "2026-10-25T02:45:00"), "2026-10-26T01:30:00Z");
    }

    fn error(text: &str) -> DeadlineError {
        parse_deadline(text, &berlin(SPRING_DAY)).unwrap_err()
    }

    #[test]
    fn what_is_over_is_refused_with_the_time() {
        for text in ["2026-05-01T12:00:00+02:00", "1970-01-01T00:00:00Z", "0s"] {
            assert!(matches!(error(text), DeadlineError::Past { .. }), "{text}");
        }
        assert_eq!(
            error("2026-05-01T08:00:00Z").to_string(),
            "2026-05-01T08:00:00Z lies in the past: it is 2026-05-01T10:00:00Z now; \
             a deadline must lie in the future"
        );
    }

    #[test]
    fn a_moment_without_zone_is_ambiguous() {
        for text in ["2026-05-02T06:00:00", "2026-05-02 06:00", "2026-05-02"] {
            assert_eq!(error(text), DeadlineError::NoOffset(text.to_owned()));
        }
    }

    #[test]
    fn what_the_calendar_does_not_hold_is_too_far() {
        let text = "4000000d".to_owned();
        assert_eq!(error(&text), DeadlineError::TooFar(text));
    }

    #[test]
    fn everything_else_is_refused_with_the_forms() {
        for text in [
            "",
            "tomorrow",
            "90",
            "2030",
            "24:00",
            "12:60",
            "1:1",
            "012:00",
            "12:00:00",
            "+1:00",
            "-5m",
            "5m ago",
            "1mo",
            "PT4H",
            "2026-13-01T00:00:00Z",
            "2026-05-02T06:00:00+02:00[Europe/Berlin]",
            "12\u{ff1a}00",
        ] {
            let error = error(text);
            assert_eq!(error, DeadlineError::Unrecognised(text.to_owned()));
            for form in ["+02:00", "06:00", "90s", "1h30m"] {
                assert!(error.to_string().contains(form));
            }
        }
    }

    proptest! {
        #[test]
        fn a_time_of_day_comes_within_a_day_and_shows_on_the_clock(
            day in 0..3000_i64,
            second in 0..86_400_i64,
            hour in 0..24_i8,
            minute in 0..60_i8,
        ) {
            let midnight = berlin("2024-01-01T00:00:00").timestamp();
            let offset = jiff::SignedDuration::from_secs(day * 86_400 + second);
            let zone = berlin("2024-01-01T00:00:00").time_zone().clone();
            let now = (midnight + offset).to_zoned(zone.clone());
            let deadline = parse_deadline(&format!("{hour:02}:{minute:02}"), &now).unwrap();
            let wait = deadline.duration_since(now.timestamp());
            prop_assert!(wait.is_positive());
            // 25 hours on the day the clocks go back; an hour more for a time
            // that has passed once on that day.
            prop_assert!(wait <= jiff::SignedDuration::from_hours(26));
            let shown = deadline.to_zoned(zone);
            let skipped = shown.date().to_string().contains("-03-") && hour == 2;
            prop_assert_eq!(shown.minute(), minute);
            prop_assert_eq!(shown.hour(), if skipped && shown.hour() == 3 { 3 } else { hour });
        }

        #[test]
        fn what_is_printed_is_read_back(seconds in 1..200_000_000_000_i64, nanos in 0..1_000_000_000_i32) {
            let moment = Timestamp::new(seconds, nanos).unwrap();
            let now = Zoned::new(Timestamp::UNIX_EPOCH, TimeZone::UTC);
            prop_assert_eq!(parse_deadline(&moment.to_string(), &now), Ok(moment));
        }
    }
}

#[cfg(test)]
mod duration_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_offered_forms() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("45m", 45 * 60_000),
            ("4h", 4 * 3_600_000),
            ("1h30m", 90 * 60_000),
            ("1h 30m", 90 * 60_000),
            ("1.5h", 90 * 60_000),
            ("2d", 48 * 3_600_000),
            ("1w", 7 * 24 * 3_600_000),
            ("30", 30_000),
            ("0.25", 250),
            ("0", 0),
            (" 5s ", 5_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            " ",
            "s",
            ".",
            ".5s",
            "1.",
            "1.2.3",
            "-5s",
            "+5s",
            "5s ago",
            "5x",
            "5 5",
            "1M",
            "1mo",
            "1y",
            "30m1h",
            "10:30:00",
            "PT5S",
            "1h30",
            "99999999999999999999",
            "631107417601000000s",
            "\u{661}s",
        ] {
            let expected = Err(DurationError(text.to_owned()));
            assert_eq!(parse_duration(text), expected, "{text}");
        }
    }

    #[test]
    fn the_error_says_what_to_write() {
        let message = parse_duration("soon").unwrap_err().to_string();
        assert!(message.contains("\"soon\"") && message.contains("1h30m"));
    }

    proptest! {
        #[test]
        fn every_sum_of_units_is_read(d in 0..1000_u64, h in 0..100_u64, m in 0..100_u64, ms in 0..9999_u64) {
            let expected = Duration::from_millis(((d * 24 + h) * 60 + m) * 60_000 + ms);
            prop_assert_eq!(parse_duration(&format!("{d}d{h}h{m}m{ms}ms")), Ok(expected));
        }

        #[test]
        fn any_text_is_taken_without_panic(text in "[0-9a-z. :+-]{0,20}|\\PC{0,10}") {
            let _ = parse_duration(&text);
        }
    }
}

#[cfg(test)]
mod size_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_offered_forms() {
        for (text, bytes) in [
            ("1", 1),
            ("4096", 4096),
            ("5B", 5),
            ("500K", 500 << 10),
            ("500k", 500 << 10),
            ("1M", 1 << 20),
            ("1.5G", 3 << 29),
            ("10KB", 10 << 10),
            ("10KiB", 10 << 10),
            ("1T", 1 << 40),
            ("15E", 15 << 60),
            ("0.3K", 307),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "", "K", "-1", "+1", "1X", "1,5M", "1.5.5", "500K/s", "0x10", "fast",
        ] {
            let expected = Err(SizeError::Unrecognised(text.to_owned()));
            assert_eq!(parse_size(text), expected, "{text}");
        }
        for text in ["0", "0K", "0.0001K"] {
            assert_eq!(parse_size(text), Err(SizeError::Zero(text.to_owned())));
        }
        for text in ["16E", "18446744073709551616"] {
            assert_eq!(parse_size(text), Err(SizeError::TooLarge(text.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn units_are_powers_of_1024(number in 1..1_u64 << 14, power in 0..6_u32) {
            let unit = ["", "K", "M", "G", "T", "P"][power as usize];
            prop_assert_eq!(parse_size(&format!("{number}{unit}")), Ok(number << (10 * power)));
        }

        #[test]
        fn any_text_is_taken_without_panic(text in "[0-9a-zA-Z. _+-]{0,20}|\\PC{0,10}") {
            let _ = parse_size(&text);
        }
    }
}
