//! What must hold for any text given as a deadline.

use fairbat::units::{DeadlineError, parse_deadline};
use jiff::civil::date;
use jiff::tz::TimeZone;

/// Panics if an accepted deadline is not after `now` or not read back as
/// written, or if one that is over is.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a valid rule");
    // The evenings before the clocks go forward and back, and a moment close
    // to the end of the calendar.
    for day in [date(2026, 3, 28), date(2026, 10, 24), date(9999, 12, 29)] {
        let now = day
            .at(22, 0, 0, 0)
            .to_zoned(berlin.clone())
            .expect("a moment in the calendar");
        match parse_deadline(text, &now) {
            Ok(deadline) => {
                assert!(deadline > now.timestamp());
                assert_eq!(parse_deadline(&deadline.to_string(), &now), Ok(deadline));
            }
            Err(DeadlineError::Past { moment, now: then }) => {
                assert!(moment <= then && then == now.timestamp());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
