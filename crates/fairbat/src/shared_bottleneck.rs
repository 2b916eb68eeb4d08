//! Whether lanes that press share a bottleneck, found by a test: one of them is held back for some
//! seconds, and where the other one then carries more, the room came from there.
//!
//! RFC 8382 compares summaries of the delays that flows see, because it can only listen. Here a
//! receiver sees delays as averages over windows, blurred by what its own flows do, and they were
//! no measure: over one drop-tail queue they correlated by 0.0 to 0.9. But the lanes are ours to
//! hold back, with the same lever that yields. A lane that is held back and has its path to itself
//! loses nothing, since it fills what nobody uses; so the test costs little where it finds nothing.
//!
//! A test compares the time before with the time held. Others may come or go just then, so a pair
//! counts only when three tests in a row find it. Where a lane is let go, nothing is expected: two
//! that press at a short queue may go on as they were, one with most of it.
//!
//! Pure.

use std::collections::BTreeMap;
use std::time::Duration;

/// At this weight a lane presses: two of them would take the share of two ordinary flows.
const PRESSING: f64 = 0.5;

/// Each phase has so many control periods; the first one is for the lever to act.
const PERIODS: usize = 3;

/// The held lane has to lose this part of its rate, and another one to gain this part of that.
/// Greedy flows of others take their part, too.
const LOST: f64 = 0.3;
const GAINED: f64 = 0.25;

/// What another lane gains has to be this part of its rate: less is chance.
const CLEAR: f64 = 0.15;

/// So many tests in a row have to find a pair.
const TESTS: u32 = 3;

/// After a test that found nothing, the next one waits this long, and each time twice as long, up
/// to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// What a lane did in a control period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LanePeriod {
    /// Its rate, byte/s.
    pub rate: f64,
    /// Its weight.
    pub w: f64,
}

/// Two lanes that share a bottleneck, by their place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LanePair {
    /// One of them.
    pub one: usize,
    /// The other.
    pub other: usize,
}

/// Tests lanes, period by period.
#[derive(Debug, Clone, Default)]
pub struct SharingTest {
    /// The lane that is tested, and whether it is held back now.
    tested: Option<(usize, TestPhase)>,
    /// What each lane did in the last periods, the newest last.
    periods: Vec<Vec<LanePeriod>>,
    /// The mean rates before the lane was held back.
    before: Vec<f64>,
    /// The pairs that the last test has found, and how many in a row have found them.
    found: BTreeMap<(usize, usize), u32>,
    not_before: Duration,
    pause: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestPhase {
    Held,
    /// Let go again, before the next test.
    Free,
}

impl SharingTest {
    /// The lane that is to be held back now.
    #[must_use]
    pub fn held(&self) -> Option<usize> {
        match self.tested {
            Some((lane, TestPhase::Held)) => Some(lane),
            _ => None,
        }
    }

    /// Takes what all lanes did in a control period. Returns a pair that shares a bottleneck once
    /// tests enough in a row have found it.
    pub fn update(&mut self, now: Duration, lanes: &[LanePeriod]) -> Option<LanePair> {
        if self
            .periods
            .first()
            .is_some_and(|it| it.len() != lanes.len())
        {
            *self = Self::default();
        }
        self.periods.push(lanes.to_vec());
        match self.tested {
            None => {
                let excess = self.periods.len().saturating_sub(PERIODS);
                self.periods.drain(..excess);
                if now >= self.not_before && excess > 0 {
                    self.begin();
                }
                None
            }
            Some(_) if self.periods.len() < PERIODS => None,
            Some((lane, TestPhase::Held)) => {
                let held = self.end_phase();
                self.judge(now, lane, &held)
            }
            Some((_, TestPhase::Free)) => {
                self.begin();
                None
            }
        }
    }

    /// Holds back the lane that carries most, where two press: what it leaves shows best.
    fn begin(&mut self) {
        let presses = |lane: usize| {
            let all = self.periods.iter();
            { all }.all(|period| period[lane].w >= PRESSING && period[lane].rate > 0.0)
        };
        let count = self.periods[0].len();
        let pressing: Vec<usize> = (0..count).filter(|&lane| presses(lane)).collect();
        if pressing.len() < 2 {
            self.tested = None;
            self.found.clear();
            return;
        }
        let before = self.end_phase();
        let most = pressing.into_iter();
        let most = most.max_by(|one, other| before[*one].total_cmp(&before[*other]));
        self.tested = most.map(|lane| (lane, TestPhase::Held));
        self.before = before;
    }

    /// The mean rates of a phase that is over, without its first period.
    fn end_phase(&mut self) -> Vec<f64> {
        let last = &self.periods[1..];
        let count = last.len() as f64;
        let mean = |lane: usize| last.iter().map(|period| period[lane].rate).sum::<f64>() / count;
        let means = (0..last[0].len()).map(mean).collect();
        self.periods.clear();
        means
    }

    fn judge(&mut self, now: Duration, lane: usize, held: &[f64]) -> Option<LanePair> {
        let before = &self.before;
        let lost = before[lane] - held[lane];
        let has_lost = lost >= LOST * before[lane];
        let gains = (0..held.len()).filter(|&other| {
            let gained = held[other] - before[other];
            other != lane && has_lost && gained >= GAINED * lost && gained >= CLEAR * before[other]
        });
        let found = gains.map(|other| {
            let pair = (lane.min(other), lane.max(other));
            (pair, 1 + self.found.get(&pair).copied().unwrap_or(0))
        });
        let found: BTreeMap<(usize, usize), u32> = found.collect();
        let sure = found.iter().find(|(_, tests)| **tests >= TESTS);
        if let Some((&(one, other), _)) = sure {
            *self = Self::default();
            return Some(LanePair { one, other });
        }
        if found.is_empty() {
            self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            self.not_before = now + self.pause;
        }
        self.tested = (!found.is_empty()).then_some((lane, TestPhase::Free));
        self.found = found;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates over two paths when the first or the second one is held back, or none.
    type Rates = fn(Option<usize>, u64) -> [f64; 2];

    /// Plays so many periods; when a pair was found, and how many of them a lane was held back.
    fn play(seconds: u64, w: f64, rates: Rates) -> (Option<u64>, u64) {
        let mut test = SharingTest::default();
        let mut held = 0;
        for second in 0..seconds {
            held += u64::from(test.held().is_some());
            let periods = rates(test.held(), second).map(|rate| LanePeriod { rate, w });
            let found = test.update(Duration::from_secs(second), &periods);
            if found.is_some() {
                assert_eq!(found, Some(LanePair { one: 0, other: 1 }));
                return (Some(second), held);
            }
        }
        (None, held)
    }

    #[test]
    fn what_one_leaves_the_other_takes_over_one_bottleneck() {
        let (found, _) = play(60, 1.0, |held, _| match held {
            Some(0) => [0.1, 0.9],
            Some(_) => [0.9, 0.1],
            None => [0.4, 0.6],
        });
        assert!(found.is_some_and(|second| second < 25), "{found:?}");
        // Whichever is let go does not come back by itself.
        let (found, _) = play(60, 1.0, |held, second| match held {
            Some(0) => [0.02, 0.6],
            Some(_) => [0.7, 0.02],
            None if second < 10 => [0.5, 0.2],
            None => [0.1, 0.4],
        });
        assert!(found.is_some());
        // Beside a greedy flow, which takes half of it.
        let (found, _) = play(60, 1.0, |held, _| match held {
            Some(0) => [0.02, 0.49],
            Some(_) => [0.49, 0.02],
            None => [0.33, 0.34],
        });
        assert!(found.is_some());
    }

    #[test]
    fn over_two_bottlenecks_nothing_is_found_and_tests_become_rare() {
        // Each has its path to itself, or yields to others there.
        let (found, held) = play(3600, 1.0, |held, second| {
            let noise = 0.1 * (second * 7919 % 13) as f64 / 13.0;
            match held {
                Some(0) => [0.1, 1.0 + noise],
                _ => [0.5 + noise, 1.0 + noise],
            }
        });
        assert_eq!(found, None);
        assert!((4..60).contains(&held), "{held} of 3600 s");
    }

    #[test]
    fn what_others_do_in_one_test_is_no_find() {
        // Somebody leaves the second path while the first one is held back, once.
        let (found, _) = play(200, 1.0, |held, second| match held {
            Some(0) if second < 9 => [0.1, 1.0],
            Some(0) => [0.1, 0.6],
            _ => [0.5, 0.6],
        });
        assert_eq!(found, None);
    }

    #[test]
    fn lanes_that_yield_are_not_tested() {
        let (found, held) = play(600, 0.2, |_, _| [0.5, 0.5]);
        assert_eq!((found, held), (None, 0));
    }
}
