//! Figures as cells of tables.

use super::group::Ratio;
use crate::report::words::NOTHING;
use crate::statistics::Interval;

/// The mean, and half of its interval.
pub(super) fn interval(figure: Option<Interval>, digits: usize) -> String {
    figure.map_or(NOTHING.to_owned(), |it| {
        format!("{:.digits$} \u{b1} {:.digits$}", it.mean, it.half)
    })
}

/// The same of a ratio.
pub(super) fn ratio(figure: Option<Ratio>) -> String {
    match figure {
        None => NOTHING.to_owned(),
        Some(Ratio { value, half: None }) => format!("{value:.2}"),
        Some(Ratio {
            value,
            half: Some(half),
        }) => format!("{value:.2} \u{b1} {half:.2}"),
    }
}

/// A number.
pub(super) fn number(figure: Option<f64>, digits: usize) -> String {
    figure.map_or(NOTHING.to_owned(), |value| format!("{value:.digits$}"))
}

/// A share in per cent.
pub(super) fn percent(share: Option<f64>, digits: usize) -> String {
    number(share.map(|share| 100.0 * share), digits)
}

/// Four numbers, one after the other.
pub(super) fn quarters(figures: Option<[f64; 4]>) -> String {
    figures.map_or(NOTHING.to_owned(), |all| {
        all.map(|value| format!("{value:.1}")).join(", ")
    })
}
