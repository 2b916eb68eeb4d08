//! How long something took that may never come, with each seed. Knows no figure.

use super::super::words::NOTHING;
use crate::statistics::Spread;

/// A moment is found by means over a second and a half from it on: none is found
/// in the last second, and a time that ends there was written for none.
const UNSEEN: f64 = 1.0;

/// Times, ascending, s; infinite where it never came.
pub(super) struct Awaited {
    times: Vec<f64>,
    /// The time that there was, s.
    within: f64,
}

impl Awaited {
    /// `None`, and as long as there was time, is what never came.
    pub(super) fn of(times: impl IntoIterator<Item = Option<f64>>, within: f64) -> Self {
        let came = |time: Option<f64>| time.filter(|time| *time <= within - UNSEEN);
        let times = times.into_iter().map(came);
        let mut times: Vec<_> = times.map(|time| time.unwrap_or(f64::INFINITY)).collect();
        times.sort_by(f64::total_cmp);
        Self { times, within }
    }

    /// How many there are, with those that never came.
    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    /// Infinite where it is of what never came, which is later than anything; a
    /// median that is between that and a time is, too. `None` without any.
    pub(super) fn spread(&self) -> Option<Spread> {
        let last = self.len().checked_sub(1)?;
        let (below, above) = (self.times[last / 2], self.times[last.div_ceil(2)]);
        Some(Spread {
            median: f64::midpoint(below, above),
            least: self.times[0],
            most: self.times[last],
        })
    }

    /// One of them for people.
    pub(super) fn time(&self, seconds: f64, digits: usize) -> String {
        if seconds.is_finite() {
            format!("{seconds:.digits$}")
        } else {
            format!("not within {:.0} s", self.within)
        }
    }

    /// The median and, unless all are the same to these digits, least and most in
    /// parentheses.
    pub(super) fn words(&self, digits: usize) -> String {
        let Some(spread) = self.spread() else {
            return NOTHING.to_owned();
        };
        let figure = |seconds| self.time(seconds, digits);
        let (least, most) = (figure(spread.least), figure(spread.most));
        let median = figure(spread.median);
        if least == most {
            return median;
        }
        format!("{median} ({least}\u{2013}{most})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(times: &[Option<f64>]) -> String {
        Awaited::of(times.iter().copied(), 20.0).words(2)
    }

    #[test]
    fn what_never_came_is_later_than_anything() {
        let (soon, late) = (Some(0.5), Some(18.5));
        let never = "not within 20 s";
        assert_eq!(
            words(&[Some(20.0), soon, late]),
            format!("18.50 (0.50\u{2013}{never})")
        );
        assert_eq!(
            words(&[None, soon, None]),
            format!("{never} (0.50\u{2013}{never})")
        );
        assert_eq!(
            words(&[soon, None]),
            format!("{never} (0.50\u{2013}{never})")
        );
        assert_eq!(words(&[None, Some(20.0), Some(19.97)]), never);
        assert_eq!(words(&[soon, soon]), "0.50");
        assert_eq!(words(&[]), NOTHING);
    }
}
