//! The soft deadline of a run: `by` and `within`.

use std::time::Duration;

use fairbat::hours::TimeOfDay;
use jiff::{Timestamp, Zoned};
use toml::Value;

use super::table::Table;

/// Shortest time to a deadline.
const MIN_WITHIN: Duration = Duration::from_secs(1);

/// The soft deadline of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The next time local clocks show this time of day, after the start.
    By(TimeOfDay),
    /// This long after the start; more than zero.
    Within(Duration),
}

impl Due {
    /// The deadline of a run with this start. `None` after the last year that dates can express.
    #[must_use]
    pub fn after(self, start: &Zoned) -> Option<Timestamp> {
        match self {
            Self::By(time) => time.next(start),
            Self::Within(span) => start.timestamp().checked_add(span).ok(),
        }
    }
}

impl Table<'_, '_> {
    /// A soft deadline: `by` or `within`.
    pub(crate) fn due(&mut self) -> Option<Due> {
        if self.exclude_each_other("by", "within") {
            return None;
        }
        if let Some(within) = self.duration("within", MIN_WITHIN) {
            return Some(Due::Within(within));
        }
        let by: Value = self.get("by")?;
        let time = by.as_str();
        let time = time.and_then(|text| text.parse().ok());
        if time.is_none() {
            let advice = "write hours and minutes in quotes, such as \"06:00\"";
            self.wrong("by", "is not a time of day", advice);
        }
        time.map(Due::By)
    }
}
