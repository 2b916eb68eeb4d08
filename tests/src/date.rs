//! Moments as HTTP writes them.

use std::time::SystemTime;

/// The IMF-fixdate of a moment after 1970 (RFC 9110 section 5.6.7).
#[must_use]
pub fn http_date(moment: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [(&str, u64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let seconds = moment
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    let mut day = seconds / 86_400;
    let weekday = DAYS[(day % 7) as usize];
    let mut year = 1970;
    while day >= 365 + leap(year) {
        day -= 365 + leap(year);
        year += 1;
    }
    let mut month = 0;
    let length = |month: usize| MONTHS[month].1 + if month == 1 { leap(year) } else { 0 };
    while day >= length(month) {
        day -= length(month);
        month += 1;
    }
    format!(
        "{weekday}, {:02} {} {year} {:02}:{:02}:{:02} GMT",
        day + 1,
        MONTHS[month].0,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Days that this year has beyond 365.
fn leap(year: u64) -> u64 {
    let every = |years: u64| year.is_multiple_of(years);
    u64::from(every(4) && (!every(100) || every(400)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_written_as_the_rfc_does() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_577_836_799, "Tue, 31 Dec 2019 23:59:59 GMT"),
        ] {
            let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(http_date(moment), text);
        }
    }
}
