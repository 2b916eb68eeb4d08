//! What connections that are held together are to move, and by when. Pure.

use jiff::Timestamp;

/// The usual floor: half an ordinary flow.
pub const FLOOR: f64 = 0.5;

/// What connections are to move, and by when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HoldPlan {
    /// w_min: all of them together have at least this weight, 0.02 to 1.
    pub weight: f64,
    /// The least weight with a deadline as long as nothing tells how much there is to move.
    pub floor: f64,
    /// What they are expected to move in all, bytes; `None` if that is unknown.
    pub bytes: Option<u64>,
    /// The soft deadline.
    pub deadline: Option<Timestamp>,
}

/// However much was planned, at least this share of what is done is still to come: a plan may
/// be too small, and the end tells by itself.
const MIN_REMAINING_SHARE: f64 = 0.05;

/// A smaller share of the work tells nothing of the size of the rest.
const MIN_TOLD_SHARE: f64 = 0.01;

impl HoldPlan {
    /// What will be moved in all when `done` bytes are and, if anybody tells, this share of the
    /// work is; `None` if nothing tells. Pure.
    ///
    /// A plan is corrected by what is done: the rest is as dense as the plan at the beginning, and
    /// as what was done at the end.
    pub(super) fn expected(&self, done: u64, share: Option<f64>) -> Option<u64> {
        let done = done as f64;
        let rest = match (self.bytes, share.filter(|share| *share >= MIN_TOLD_SHARE)) {
            (Some(planned), None) => (planned as f64 - done).max(done * MIN_REMAINING_SHARE),
            (Some(planned), Some(share)) => (1.0 - share) * ((1.0 - share) * planned as f64 + done),
            (None, Some(share)) => (1.0 - share) * done / share,
            (None, None) => return None,
        };
        Some((done + rest) as u64)
    }

    /// The least weight of all of them together, with what is expected to be moved in all.
    pub(super) fn least_weight(&self, expected: Option<u64>) -> f64 {
        match self.deadline.is_some() && expected.is_none() {
            true => self.weight.max(self.floor),
            false => self.weight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(bytes: Option<u64>) -> HoldPlan {
        HoldPlan {
            weight: 0.02,
            floor: FLOOR,
            bytes,
            deadline: Some(Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn a_plan_that_is_too_small_grows() {
        let plan = planned(Some(1000));
        assert_eq!(plan.expected(0, None), Some(1000));
        assert_eq!(plan.expected(900, None), Some(1000));
        assert_eq!(plan.expected(2000, None), Some(2100));
    }

    #[test]
    fn what_is_told_corrects_a_plan() {
        let plan = planned(Some(1000));
        assert_eq!(plan.expected(0, Some(0.001)), Some(1000), "too little");
        assert_eq!(plan.expected(500, Some(0.5)), Some(1000), "as planned");
        assert_eq!(plan.expected(1000, Some(0.5)), Some(1750));
        assert_eq!(plan.expected(1990, Some(0.99)), Some(2010));
        assert_eq!(plan.expected(2000, Some(1.0)), Some(2000));
    }

    #[test]
    fn without_a_plan_the_floor_holds_until_something_is_told() {
        let plan = planned(None);
        assert_eq!(plan.expected(500, None), None);
        assert_eq!(plan.expected(500, Some(0.25)), Some(2000));
        assert_eq!(plan.least_weight(None), FLOOR);
        assert_eq!(plan.least_weight(Some(2000)), 0.02);
    }
}
