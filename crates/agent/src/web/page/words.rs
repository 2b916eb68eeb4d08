//! Amounts and times as people say them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Bytes: `63.0 GB`. By powers of 1000, as disks and lines are sold.
pub(super) fn amount(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes.max(0.0);
    if value < 999.5 {
        return format!("{value:.0} B");
    }
    let mut unit = UNITS[0];
    for next in UNITS {
        unit = next;
        value /= 1e3;
        if value < 999.5 {
            break;
        }
    }
    format!("{} {unit}", three_digits(value))
}

/// Byte/s: `12.4 MB/s`.
pub(super) fn rate(rate: f64) -> String {
    format!("{}/s", amount(rate))
}

/// Enough of a positive number.
pub(super) fn three_digits(value: f64) -> String {
    let digits = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// A number with its thousands apart: `12,345`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A length of time: `45 s`, `12 min`, `3 h 46 min`, `2 d 3 h`.
pub(super) fn span(seconds: f64) -> String {
    let seconds = seconds.abs();
    if seconds < 59.5 {
        return format!("{seconds:.0} s");
    }
    let minutes = (seconds / 60.0).round() as u64;
    let (hours, rest) = (minutes / 60, minutes % 60);
    match (hours, rest) {
        (0, rest) => format!("{rest} min"),
        (hours, 0) if hours < 24 => format!("{hours} h"),
        (hours, rest) if hours < 24 => format!("{hours} h {rest} min"),
        (hours, _) => match (hours / 24, hours % 24) {
            (days, 0) => format!("{days} d"),
            (days, hours) => format!("{days} d {hours} h"),
        },
    }
}

/// A moment near `now`: `06:00`, `tomorrow 06:00`, `Mon 06:00`, `3 Apr 06:00`.
pub(super) fn moment(moment: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (then, now) = (
        moment.to_zoned(zone.clone()),
        now.to_zoned(zone.clone()).date(),
    );
    let time = then.strftime("%H:%M");
    let days = (then.date() - now).get_days();
    match days {
        0 => time.to_string(),
        1 => format!("tomorrow {time}"),
        -1 => format!("yesterday {time}"),
        -6..=6 => then.strftime("%a %H:%M").to_string(),
        -180..=180 => then.strftime("%-d %b %H:%M").to_string(),
        _ => then.strftime("%-d %b %Y").to_string(),
    }
}

/// From one moment to another, s; negative backwards.
pub(super) fn between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_three_digits_and_a_unit() {
        let cases = [
            (0.0, "0 B"),
            (999.4, "999 B"),
            (999.6, "1.00 kB"),
            (12_400_000.0, "12.4 MB"),
            (99_960_000.0, "100 MB"),
            (999_600_000.0, "1.00 GB"),
            (63e9, "63.0 GB"),
            (2e21, "2000 EB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(amount(bytes), text, "{bytes}");
        }
        assert_eq!(rate(1e6), "1.00 MB/s");
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn spans_have_two_units_at_most() {
        let cases = [
            (0.4, "0 s"),
            (59.4, "59 s"),
            (59.6, "1 min"),
            (-720.0, "12 min"),
            (3_599.0, "1 h"),
            (13_560.0, "3 h 46 min"),
            (86_400.0, "1 d"),
            (183_600.0, "2 d 3 h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(span(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn moments_are_told_by_the_day_where_it_is_another() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let now = "2026-03-28T22:00:00Z".parse().unwrap();
        let cases = [
            ("2026-03-28T22:30:00Z", "23:30"),
            // Summer time has begun by then.
            ("2026-03-29T04:00:00Z", "tomorrow 06:00"),
            ("2026-03-27T21:00:00Z", "yesterday 22:00"),
            ("2026-03-30T04:00:00Z", "Mon 06:00"),
            ("2026-04-07T04:00:00Z", "7 Apr 06:00"),
            ("2027-04-07T04:00:00Z", "7 Apr 2027"),
        ];
        for (then, text) in cases {
            assert_eq!(moment(then.parse().unwrap(), now, &zone), text, "{then}");
        }
    }
}
