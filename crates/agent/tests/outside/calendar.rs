//! Calendar expressions as systemd itself understands them.

use std::process::Command;

use fairbat_agent::calendar::Calendar;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// How many moments of each expression are compared.
const ITERATIONS: usize = 5;

/// What both take. No time in an hour that a clock skips: systemd passes over
/// it. No step that is at odds with its minute either (`*:*:0/7`): at the end of
/// a day systemd 252 loses one.
const EXPRESSIONS: [&str; 66] = [
    "minutely",
    "hourly",
    "daily",
    "Weekly",
    "monthly",
    "quarterly",
    "semiannually",
    "yearly",
    "annually",
    "22:00",
    "Mon..Fri 22:00",
    "Sat,Sun 08:05:40",
    "Mon,Wed..Thu,sunday 5:4",
    "monday",
    "Sat,Thu,Mon..Wed,Sat..Sun",
    "Thu,Fri *-*-1,5 11:12:13",
    "Wed *-1",
    "10-15",
    "03-05 08:05:40",
    "2027-03-05 05:40",
    "2027-03-05",
    "28-*-*",
    "2026..2027,2030-1-1",
    "2010..2050/5-1-1",
    "2000/4-2-29",
    "*-2-29",
    "Mon *-2-29",
    "Sun *-*-1..7 03:00",
    "Mon *-05~07/1",
    "*-*~1",
    "*~1",
    "02~1",
    "*-02~03",
    "*-*~1..3",
    "*-*~7/2",
    "*-*~1..5/2",
    "*-*~1..6/2",
    "*-*~28/3",
    "*-*-31",
    "*-*-1/10",
    "*-*-30/1",
    "1/3-1",
    "*-1,7-15 12:30",
    "*-*-1,5,3..4",
    "*:0/15",
    "*:2/3",
    "*:0/59",
    "*:5..20/5:30",
    "8..18/2:00",
    "1..20/25:00",
    "12..14:10,20,30",
    "Mon,Fri *-1/2-1,3 *:30:45",
    "*-*-* *:*:*",
    "*:*:5/10",
    "0/23:0",
    "5..5:00",
    "008:00",
    "04:00:59 UTC",
    "daily utc",
    "weekly Pacific/Auckland",
    "Fri 22:00 America/New_York",
    "*:0/20 Asia/Kolkata",
    "2199-12-31",
    "*-02-30",
    "2012-*-*",
    "Mon 2026-05-05",
];

/// What neither takes.
const REFUSED: [&str; 30] = [
    "",
    "12",
    "UTC",
    "Europe/Berlin",
    "Fri..Mon",
    "Thurs",
    "Mon,,Tue",
    "Mon Tue",
    "5:00 6:00",
    "5:00 Mon",
    "10:00:00:00",
    "2026-01-",
    "~1",
    "*/2-1-1",
    "*:*/5",
    "*,1:00",
    "*:0/60",
    "23/1:00",
    "*:0/0",
    "*:5..3",
    "24:00",
    "12:60",
    "12:00:60",
    "*-13-1",
    "*-*-0",
    "*-*~29",
    "*-*~7/7",
    "2200-1-1",
    "100-1-1",
    "5:00 Nowhere/City",
];

/// What `systemd-analyze calendar` says; `None` if it refuses the expression.
fn systemd(text: &str, now: &str, zone: &str) -> Option<Vec<Timestamp>> {
    let output = Command::new("systemd-analyze")
        .args(["calendar", &format!("--iterations={ITERATIONS}")])
        .arg(format!("--base-time={now}"))
        .args(["--", text])
        .env("TZ", zone)
        .env("LC_ALL", "C")
        .output()
        .expect("it ran before");
    if !output.status.success() {
        return None;
    }
    let answer = String::from_utf8(output.stdout).expect("the answer is text");
    let of = |label: &str| {
        answer
            .lines()
            .filter_map(|line| moment(line, label))
            .collect()
    };
    // It tells moments in UTC besides where that is not the local zone.
    Some(if zone == "UTC" {
        [of("Next elapse:"), of("Iter. #")].concat()
    } else {
        of("(in UTC):")
    })
}

/// The moment in a line with this label: `Iter. #2: Fri 2026-01-02 22:00:00 UTC`.
fn moment(line: &str, label: &str) -> Option<Timestamp> {
    let words: Vec<&str> = line.trim().strip_prefix(label)?.split(' ').collect();
    let [.., date, time, "UTC"] = words[..] else {
        return None;
    };
    let moment = format!("{date}T{time}Z").parse();
    Some(moment.expect("a date and a time"))
}

fn ours(text: &str, now: &Zoned) -> Option<Vec<Timestamp>> {
    let calendar = Calendar::parse(text).ok()?;
    let moments = std::iter::successors(calendar.next_after(now), |last| calendar.next_after(last));
    Some(
        moments
            .take(ITERATIONS)
            .map(|moment| moment.timestamp())
            .collect(),
    )
}

#[test]
fn systemd_says_the_same() {
    let version = Command::new("systemd-analyze").arg("--version").output();
    if version.is_err() || TimeZone::get("Europe/Berlin").is_err() {
        eprintln!("SKIPPED: there is no systemd-analyze or no time zone database here");
        return;
    }
    for (zone, now) in [
        ("UTC", "2026-01-01 00:00:00"),
        ("UTC", "2027-02-28 23:59:59"),
        ("Europe/Berlin", "2026-10-24 23:30:00"),
        ("Europe/Berlin", "2026-03-28 23:10:00"),
    ] {
        let local: DateTime = now.parse().unwrap();
        let time_zone = TimeZone::get(zone).expect("systemd has time zones, and so have we");
        let base = local.to_zoned(time_zone).unwrap();
        for text in EXPRESSIONS {
            let expected = systemd(text, now, zone);
            assert!(expected.is_some(), "systemd refuses {text:?}");
            assert_eq!(ours(text, &base), expected, "{text:?} after {now} {zone}");
        }
        for text in REFUSED {
            assert_eq!(systemd(text, now, zone), None, "systemd takes {text:?}");
            assert_eq!(ours(text, &base), None, "{text:?}");
        }
    }
}
