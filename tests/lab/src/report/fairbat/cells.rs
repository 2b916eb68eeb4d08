//! Figures as cells of tables.

use super::group::Estimate;
use crate::report::words::NOTHING;

/// The mean, and half of its interval where that is known.
pub(super) fn estimate(figure: Option<Estimate>, digits: usize) -> String {
    figure.map_or(NOTHING.to_owned(), |Estimate { value, half }| {
        let half = half.map_or(String::new(), |half| format!(" \u{b1} {half:.digits$}"));
        format!("{value:.digits$}{half}")
    })
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
