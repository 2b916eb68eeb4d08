//! Why a text is no calendar expression: which part of it, and what is right.

use super::Field;

/// Why a text is no calendar expression. The text in each is the part that is
/// wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// Nothing.
    #[error("the expression is empty; write for example 22:00, Mon..Fri 22:00 or daily")]
    Empty,
    /// A part that is neither weekdays nor date nor time, or not in its place.
    #[error(
        "{0:?} is out of place; write weekdays, date, time and time zone in this order, as in \
         Mon..Fri *-*-* 22:00 Europe/Berlin, or a word: minutely, hourly, daily, weekly, monthly, \
         quarterly, semiannually, yearly"
    )]
    Form(String),
    /// Letters where a weekday should be.
    #[error(
        "{0:?} is no weekday; write Mon, Tue, Wed, Thu, Fri, Sat or Sun (or a word such as daily \
         instead of everything)"
    )]
    Weekday(String),
    /// Weekdays from a later one to an earlier one.
    #[error("{0:?} runs past the end of a week, which is Sunday; write for example Mon,Sat,Sun")]
    WeekdaysBackwards(String),
    /// Weekdays with a sign other than `..` between them.
    #[error("{0:?} is no range of weekdays; write two dots, as in Mon..Fri")]
    WeekdayRange(String),
    /// A date of another form.
    #[error(
        "{0:?} is no date; write YEAR-MONTH-DAY or MONTH-DAY, as in *-*-01, or ~ before a \
         day that is counted from the end of the month, as in *-*~01"
    )]
    Date(String),
    /// A time of another form.
    #[error("{0:?} is no time; write HOUR:MINUTE or HOUR:MINUTE:SECOND, as in 22:00")]
    Time(String),
    /// No number where one should be.
    #[error("{part:?} is no {field}; write {low} to {high}, a list of them (1,5), a range (1..5), \
         each with a step if need be (1/2), or * alone",
        low = field.range().start(), high = field.range().end())]
    Number {
        /// What is there.
        part: String,
        /// What should be.
        field: Field,
    },
    /// A number that is too small or too large.
    #[error("{part:?} is no {field}, which is {low} to {high}",
        low = field.range().start(), high = field.range().end())]
    OutOfRange {
        /// What is there.
        part: String,
        /// What should be.
        field: Field,
    },
    /// A range whose end is before its start.
    #[error("the range {0:?} ends before it starts")]
    Backwards(String),
    /// `*` with something beside it.
    #[error("* stands alone, not as in {part:?}; for every second {field} write {low}/2",
        low = field.range().start())]
    Star {
        /// What is there.
        part: String,
        /// What it is of.
        field: Field,
    },
    /// A step of nothing, or one that leads nowhere.
    #[error("the step in {part:?} leads to no second {field}; take a smaller one, or none")]
    Step {
        /// What is there.
        part: String,
        /// What it is of.
        field: Field,
    },
    /// A fraction of a second.
    #[error("{0:?} has a fraction of a second; no job starts as exactly as that: write whole ones")]
    Fraction(String),
    /// Seconds since 1970.
    #[error("{0:?} counts seconds since 1970; write a date and a time instead")]
    Epoch(String),
    /// A time zone that this machine does not know.
    #[error("{0:?} is no time zone of this machine; write UTC or for example Europe/Berlin")]
    Zone(String),
}
