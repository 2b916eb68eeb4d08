use jiff::civil::DateTime;
use jiff::{ToSpan, Zoned};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

/// The rule of central Europe since 1996, without a time zone database.
fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

fn at(local: &str, zone: TimeZone) -> Zoned {
    local.parse::<DateTime>().unwrap().to_zoned(zone).unwrap()
}

fn parse(text: &str) -> Calendar {
    Calendar::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The next moments after `now`, as local clocks show them, with the offset.
fn next(text: &str, now: &Zoned, count: usize) -> Vec<String> {
    let calendar = parse(text);
    std::iter::successors(calendar.next_after(now), |last| calendar.next_after(last))
        .take(count)
        .map(|next| next.strftime("%F %T %:z").to_string())
        .collect()
}

#[test]
fn the_next_moment_is_strictly_later() {
    let midnight = at("2026-05-01T00:00:00", TimeZone::UTC);
    assert_eq!(next("daily", &midnight, 1), ["2026-05-02 00:00:00 +00:00"]);
    let before = midnight.checked_sub(1.nanosecond()).unwrap();
    assert_eq!(next("daily", &before, 1), ["2026-05-01 00:00:00 +00:00"]);
    let within = at("2026-05-01T00:00:00.5", TimeZone::UTC);
    assert_eq!(
        next("*:*:*", &within, 2),
        ["2026-05-01 00:00:01 +00:00", "2026-05-01 00:00:02 +00:00"]
    );
}

#[test]
fn a_skipped_time_happens_when_it_is_skipped() {
    // On 29 March 2026 clocks go from 02:00 to 03:00.
    let eve = at("2026-03-28T12:00:00", berlin());
    for (text, expected) in [
        (
            "02:30",
            ["2026-03-29 03:00:00 +02:00", "2026-03-30 02:30:00 +02:00"],
        ),
        (
            "02:00",
            ["2026-03-29 03:00:00 +02:00", "2026-03-30 02:00:00 +02:00"],
        ),
        (
            "03:00",
            ["2026-03-29 03:00:00 +02:00", "2026-03-30 03:00:00 +02:00"],
        ),
        (
            "2..3:00/30",
            ["2026-03-29 03:00:00 +02:00", "2026-03-29 03:30:00 +02:00"],
        ),
        (
            "02:59:59",
            ["2026-03-29 03:00:00 +02:00", "2026-03-30 02:59:59 +02:00"],
        ),
    ] {
        assert_eq!(next(text, &eve, 2), expected, "{text}");
    }
    assert_eq!(
        next("2026-03-29 02:30", &eve, 2),
        ["2026-03-29 03:00:00 +02:00"]
    );
}

#[test]
fn a_repeated_time_happens_the_first_time() {
    // On 25 October 2026 clocks go from 03:00 back to 02:00.
    let eve = at("2026-10-25T01:30:00", berlin());
    for (text, expected) in [
        (
            "02:30",
            ["2026-10-25 02:30:00 +02:00", "2026-10-26 02:30:00 +01:00"],
        ),
        (
            "03:00",
            ["2026-10-25 03:00:00 +01:00", "2026-10-26 03:00:00 +01:00"],
        ),
        (
            "hourly",
            ["2026-10-25 02:00:00 +02:00", "2026-10-25 03:00:00 +01:00"],
        ),
    ] {
        assert_eq!(next(text, &eve, 2), expected, "{text}");
    }
    let second_time = eve.checked_add(100.minutes()).unwrap();
    assert_eq!(second_time.datetime().to_string(), "2026-10-25T02:10:00");
    assert_eq!(
        next("*:15", &second_time, 1),
        ["2026-10-25 03:15:00 +01:00"]
    );
}

#[test]
fn a_whole_day_may_be_skipped() {
    // Samoa had no 30 December 2011.
    let Ok(apia) = TimeZone::get("Pacific/Apia") else {
        eprintln!("SKIPPED: no time zone database here");
        return;
    };
    assert_eq!(
        next("06:00", &at("2011-12-29T12:00:00", apia), 2),
        ["2011-12-31 00:00:00 +14:00", "2011-12-31 06:00:00 +14:00"]
    );
}

#[test]
fn a_zone_in_the_expression_counts_before_that_of_now() {
    let now = at("2026-05-01T12:00:00", berlin());
    assert_eq!(next("22:00", &now, 1), ["2026-05-01 22:00:00 +02:00"]);
    assert_eq!(next("22:00 UTC", &now, 1), ["2026-05-01 22:00:00 +00:00"]);
    assert_eq!(next("daily utc", &now, 1), ["2026-05-02 00:00:00 +00:00"]);
    if TimeZone::get("Asia/Tokyo").is_ok() {
        let tokyo = next("Fri 22:00 Asia/Tokyo", &now, 1);
        assert_eq!(tokyo, ["2026-05-01 22:00:00 +09:00"]);
    } else {
        eprintln!("SKIPPED: no time zone database here");
    }
}

#[test]
fn what_never_comes_is_none() {
    let now = at("2026-05-01T12:00:00", berlin());
    for text in [
        "*-02-30",
        "2025-*-*",
        "Mon 2026-05-05",
        "2026-05-01 12:00:00",
        "2027,2029-02-29",
        "*-04,06-31 *:*:*",
        "70-1-1",
    ] {
        assert_eq!(parse(text).next_after(&now), None, "{text}");
    }
    let end = at("9999-12-30T00:00:00", TimeZone::UTC);
    assert_eq!(parse("*:*:*").next_after(&end), None);
}

#[test]
fn it_is_shown_as_it_was_written() {
    assert_eq!(parse(" Mon..Fri  22:00 ").to_string(), "Mon..Fri  22:00");
    assert_eq!(parse("Daily").to_string(), "Daily");
}

#[test]
fn errors_say_which_part_is_wrong_and_what_is_right() {
    for (text, part, right) in [
        ("", "empty", "22:00"),
        ("  ", "empty", "22:00"),
        ("Mo 5:00", "\"Mo\"", "Mon, Tue"),
        ("dayly", "\"dayly\"", "daily"),
        ("Mon,,Tue", "\"\"", "Mon, Tue"),
        ("Fri..Mon", "\"Fri..Mon\"", "Mon,Sat,Sun"),
        ("Mon-Fri", "\"Mon-Fri\"", "Mon..Fri"),
        ("Mon Tue", "\"Tue\"", "in this order"),
        ("5:00 Mon", "\"Mon\"", "in this order"),
        ("5:00 *-*-1", "\"*-*-1\"", "in this order"),
        ("5:00 6:00", "\"6:00\"", "in this order"),
        ("22", "\"22\"", "YEAR-MONTH-DAY"),
        ("1-2-3-4", "\"1-2-3-4\"", "YEAR-MONTH-DAY"),
        ("2026~5~1", "\"2026~5~1\"", "YEAR-MONTH-DAY"),
        ("1:2:3:4", "\"1:2:3:4\"", "HOUR:MINUTE"),
        ("24:00", "\"24\"", "0 to 23"),
        ("12:60", "\"60\"", "0 to 59"),
        ("*-13-1", "\"13\"", "1 to 12"),
        ("*-*-0", "\"0\"", "1 to 31"),
        ("*-*~29", "\"29\"", "1 to 28"),
        ("2200-1-1", "\"2200\"", "1970 to 2199"),
        ("100-1-1", "\"100\"", "1970 to 2199"),
        ("99999999999-1-1", "\"99999999999\"", "1970 to 2199"),
        ("5:", "\"\"", "0 to 59"),
        ("5:+1", "\"+1\"", "0 to 59"),
        ("5:1,,2", "\"\"", "0 to 59"),
        ("5..3:0", "\"5..3\"", "before it starts"),
        ("*-*~3..1", "\"3..1\"", "before it starts"),
        ("*:*/5", "\"*/5\"", "0/2"),
        ("1,*:0", "\"1,*\"", "alone"),
        ("*:0/0", "\"0/0\"", "smaller"),
        ("*:0/60", "\"0/60\"", "smaller"),
        ("*-*~7/7", "\"7/7\"", "smaller"),
        ("*:0/x", "\"0/x\"", "0 to 59"),
        ("5:00:00.5", "\"00.5\"", "whole"),
        ("5:00:0..1.5", "\"0..1.5\"", "whole"),
        ("@1395716396", "\"@1395716396\"", "date"),
        ("5:00 Nowhere/City", "\"Nowhere/City\"", "UTC"),
    ] {
        let message = Calendar::parse(text).unwrap_err().to_string();
        assert!(message.contains(part), "{text:?}: {message}");
        assert!(message.contains(right), "{text:?}: {message}");
    }
}

/// What an expression is made from, kept beside its text.
#[derive(Debug, Clone)]
struct Parts {
    weekdays: Vec<usize>,
    months: Vec<i8>,
    days: Vec<i8>,
    from_end: bool,
    hours: Vec<i8>,
    minutes: Vec<i8>,
}

const NAMES: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// A list; empty means any.
fn list(numbers: &[i8]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    if numbers.is_empty() {
        "*".to_owned()
    } else {
        numbers.join(",")
    }
}

impl Parts {
    fn text(&self) -> String {
        let names: Vec<&str> = self.weekdays.iter().map(|&day| NAMES[day]).collect();
        let (months, days) = (list(&self.months), list(&self.days));
        let sign = if self.from_end { '~' } else { '-' };
        let (hours, minutes) = (list(&self.hours), list(&self.minutes));
        format!(
            "{} *-{months}{sign}{days} {hours}:{minutes}",
            names.join(",")
        )
    }

    fn allow(&self, shown: DateTime) -> bool {
        let any = |numbers: &[i8], number| numbers.is_empty() || numbers.contains(&number);
        let weekday = shown.strftime("%a").to_string();
        let day = if self.from_end {
            shown.last_of_month().day() - shown.day() + 1
        } else {
            shown.day()
        };
        let weekdays = &self.weekdays;
        (weekdays.is_empty() || weekdays.iter().any(|&day| NAMES[day] == weekday))
            && any(&self.months, shown.month())
            && any(&self.days, day)
            && any(&self.hours, shown.hour())
            && any(&self.minutes, shown.minute())
    }

    /// By looking at the clock every minute.
    fn next_after(&self, now: &Zoned) -> Option<Zoned> {
        let mut before = now.with().second(0).subsec_nanosecond(0).build().unwrap();
        for _ in 0..10 * 24 * 60 {
            let minute = before.checked_add(1.minute()).unwrap();
            // What the clock shows, and all that it has skipped to get there.
            let first = before.datetime().checked_add(1.minute()).unwrap();
            let mut shown = minute.datetime().min(first);
            let an_hour_ago = minute.checked_sub(1.hour()).unwrap();
            let is_repeated = an_hour_ago.datetime() == minute.datetime();
            while shown <= minute.datetime() && !is_repeated {
                if self.allow(shown) && minute > *now {
                    return Some(minute);
                }
                shown = shown.checked_add(1.minute()).unwrap();
            }
            before = minute;
        }
        None
    }
}

fn parts() -> impl Strategy<Value = Parts> {
    let some = |range: std::ops::Range<i8>, most| proptest::collection::vec(range, 0..=most);
    (
        proptest::collection::vec(0..7_usize, 0..=3),
        some(1..13, 6),
        some(1..28, 12),
        any::<bool>(),
        some(0..24, 2),
        some(0..60, 2),
    )
        .prop_map(|(weekdays, months, days, from_end, hours, minutes)| Parts {
            weekdays,
            months,
            days,
            from_end,
            hours,
            minutes,
        })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        rng_seed: RngSeed::Fixed(20_260_501),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_next_moment_is_the_first_that_the_clock_shows(
        parts in parts(),
        day in prop_oneof![0..3000_i64, Just(818), Just(1028)],
        second in 0..86_400_i64,
    ) {
        // Days 818 and 1028 are those before the clock changes of 2026.
        let start = at("2024-01-01T00:00:00", berlin());
        let now = start.checked_add(day.days().seconds(second)).unwrap();
        let found = parse(&parts.text()).next_after(&now);
        match parts.next_after(&now) {
            Some(expected) => prop_assert_eq!(found, Some(expected), "{}", parts.text()),
            None => {
                let far = now.checked_add(9.days()).unwrap();
                prop_assert!(found.is_none_or(|found| found > far), "{}", parts.text());
            }
        }
    }

    #[test]
    fn any_text_is_taken_without_panic(text in "[0-9MonTueFri*~/., :@-]{0,24}|\\PC{0,12}") {
        let now = at("2026-05-01T12:00:00", berlin());
        if let Ok(calendar) = Calendar::parse(&text) {
            let _ = calendar.next_after(&now);
        }
    }
}
