//! How late some runs were: 95 % of them, in parts of the time that there was.
//! Of few runs that is the latest of them.

use crate::deadline::DeadlineFigures;
use crate::statistics::{FEW, p95};

/// Of one run at least.
pub(super) struct Late {
    /// In parts of the time that there was.
    pub(super) share: f64,
    count: usize,
    is_done: bool,
}

impl Late {
    /// `None` without runs.
    pub(super) fn of(figures: &[&DeadlineFigures]) -> Option<Self> {
        let late: Vec<f64> = figures.iter().map(|it| it.late_share).collect();
        Some(Self {
            share: p95(&late)?,
            count: late.len(),
            is_done: figures.iter().all(|it| it.is_done),
        })
    }

    /// Per cent, and of how many runs.
    pub(super) fn words(&self) -> String {
        let Self { share, count, .. } = self;
        let late = format!("{}{:.1}", least(self.is_done), 100.0 * share);
        if *count < FEW {
            format!("{late}, most of {count}")
        } else {
            format!("{late}, of {count}")
        }
    }
}

/// What stands before a figure that is at least so much.
pub(super) fn least(all_there: bool) -> &'static str {
    if all_there { "" } else { "\u{2265} " }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(shares: &[f64]) -> Option<String> {
        let figures = shares.iter().map(|share| DeadlineFigures {
            late_share: *share,
            is_done: *share < 0.5,
            ..DeadlineFigures::default()
        });
        let figures: Vec<_> = figures.collect();
        let late = Late::of(&figures.iter().collect::<Vec<_>>())?;
        Some(late.words())
    }

    #[test]
    fn of_few_the_latest_counts_and_how_many_they_are_is_said() {
        let mut shares = vec![0.0; 8];
        shares.push(0.029);
        assert_eq!(words(&shares).as_deref(), Some("2.9, most of 9"));
        shares.extend([0.0; 91]);
        assert_eq!(words(&shares).as_deref(), Some("0.0, of 100"));
        assert_eq!(words(&[0.6]).as_deref(), Some("\u{2265} 60.0, most of 1"));
        assert_eq!(words(&[]), None);
    }
}
