//! Durations as people write them in flags: `500ms`, `30s`, `1h30m`, `2d`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

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

#[cfg(test)]
mod tests {
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
