//! How what deadlines demand is divided among the paths of a run, so that it does the least harm.
//! Paths that share a bottleneck count as one. No I/O.
//!
//! A path that nobody else uses carries what it can without harm, so it comes first. What is missing
//! then is asked of the paths that others use as well. A metered path carries only what all others
//! at their full weight cannot, as late as it can still be carried, and no more than that.

use std::time::Duration;

use crate::lane::LaneSample;
use crate::lane::handle::CONTROL_PERIOD;

/// A path that carries at least this part of what it ever did has no other traffic on it.
const ALONE: f64 = 0.85;

/// At this weight a path gives what it has.
const FULL_WEIGHT: f64 = 0.95;

/// Paths that give all they have, while metered ones carry the rest, are asked for so many times what
/// they carry: they keep their full weight, and more connections would take turns with each other.
const PRESSED: f64 = 1.02;

/// A metered path is asked for this part of what it is held to. One connection that carries nearly
/// all of it is enough: what is under way over others is paid for in vain when they are not needed
/// any more.
const CONTENT: f64 = 0.9;

/// Time constant of the mean rate of a path, s.
const MEMORY: f64 = 5.0;

/// The paths have had their full weight for this part of the time that is left, and within these
/// bounds, before a metered one is used.
const PROOF_SHARE: f64 = 0.05;
const PROOF: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));

/// A run that carries this part of what the user allows carries all of it.
const ALLOWED: f64 = 0.95;

/// Half of the time beyond this is the most that they have for it: so close to a deadline there is
/// nothing to wait for any more.
const URGENT: Duration = Duration::from_secs(4);

/// A metered path is used once so much of its rate would be needed until the deadline if it began a
/// period later. The rest is for what the others carry less than they did.
const LATEST: f64 = 0.7;

/// What is known of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PathLoad {
    /// Its rate in the last period, byte/s.
    pub(crate) rate: f64,
    /// What it carries when nobody else uses it, as far as was seen, byte/s.
    pub(crate) capacity: f64,
    /// The user's limit on its rate, byte/s; infinite without one.
    pub(crate) limit: f64,
    /// The weight of its flows.
    pub(crate) w: f64,
    /// Whether the machine has it.
    pub(crate) is_up: bool,
    /// Whether its bytes cost money.
    pub(crate) is_metered: bool,
}

impl PathLoad {
    /// That of a lane with this limit, whose flows have carried at these rates, byte/s, over paths
    /// that the machine has or not, and that all are metered or not.
    pub(crate) fn of(
        sample: &LaneSample,
        limit: Option<f64>,
        rates: impl Iterator<Item = f64>,
        (is_up, is_metered): (bool, bool),
    ) -> Self {
        Self {
            rate: sample.rate,
            capacity: rates.fold(sample.capacity, f64::max),
            limit: limit.unwrap_or(f64::INFINITY),
            w: sample.w,
            is_up,
            is_metered,
        }
    }
}

/// What the deadlines ask for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Needs {
    /// The lowest rate with the usual margin before the deadlines, byte/s.
    pub(crate) zeta: f64,
    /// The lowest rate with hardly any margin: more would cost money for nothing, byte/s.
    pub(crate) least: f64,
    /// The user's limit on the rate of the run, byte/s; infinite without one.
    pub(crate) limit: f64,
    /// Time to the nearest deadline with hardly any margin.
    pub(crate) left: Duration,
}

impl Needs {
    /// What others than those that carry so much are to carry, byte/s. Beyond the user's limit they
    /// would add nothing.
    fn missing(&self, carried: f64) -> f64 {
        match carried >= ALLOWED * self.limit {
            true => 0.0,
            false => self.least.min(self.limit) - carried,
        }
    }
}

/// What a path is to carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PathShare {
    /// The part of all that is left, 0 to 1.
    pub(crate) share: f64,
    /// The rate that a metered path is held to, byte/s; 0 while it is not used, and infinite while
    /// it is looked at for the first time.
    pub(crate) limit: Option<f64>,
}

impl PathShare {
    /// That of each of so many paths of one lane.
    fn of(self, paths: usize) -> Self {
        let paths = paths as f64;
        Self {
            share: self.share / paths,
            limit: self.limit.map(|limit| limit / paths),
        }
    }
}

/// Divides, period by period.
#[derive(Debug, Default)]
pub(crate) struct Divider {
    /// Mean rate of each path.
    means: Vec<f64>,
    updated: Option<Duration>,
    /// Since when all paths that cost nothing have given what they have.
    full_since: Option<Duration>,
    /// The highest rate of each path.
    best: Vec<f64>,
    /// Whether metered paths are used.
    pays: bool,
}

impl Divider {
    /// What each path of these lanes is to carry in the next period, by its index.
    pub(crate) fn divide_lanes(
        &mut self,
        now: Duration,
        needs: Option<Needs>,
        lanes: &[Vec<usize>],
        loads: &[PathLoad],
    ) -> Vec<(usize, PathShare)> {
        let shares = lanes.iter().zip(self.divide(now, needs, loads));
        let of_paths = shares.flat_map(|(paths, share)| {
            let share = share.of(paths.len());
            paths.iter().map(move |index| (*index, share))
        });
        of_paths.collect()
    }

    /// What each path is to carry in the next period.
    fn divide(
        &mut self,
        now: Duration,
        needs: Option<Needs>,
        paths: &[PathLoad],
    ) -> Vec<PathShare> {
        self.learn(now, paths);
        let free = |index: usize| paths[index].is_up && !paths[index].is_metered;
        let carried: f64 = (0..paths.len())
            .filter(|&index| free(index))
            .map(|index| self.means[index])
            .sum();
        let (limit, is_rest_metered) = self.metered_limit(now, needs, paths, carried);
        let zeta = needs.map_or(0.0, |needs| needs.zeta);
        let part_of_zeta = |rate: f64| match zeta {
            zeta if zeta > 0.0 => (rate / zeta).min(1.0),
            _ => 0.0,
        };
        let of_metered = part_of_zeta(CONTENT * limit);
        let of_free = match is_rest_metered {
            true => part_of_zeta(PRESSED * carried),
            false => 1.0,
        };
        let shares = self.shares(zeta * of_free, paths, &free);
        let metered = paths.iter().filter(|path| path.is_metered && path.is_up);
        let metered = metered.count().max(1) as f64;
        let of_path = |(index, path): (usize, &PathLoad)| PathShare {
            share: match path.is_metered {
                true => of_metered / metered,
                false => shares[index] * of_free,
            },
            limit: path.is_metered.then_some(limit / metered),
        };
        paths.iter().enumerate().map(of_path).collect()
    }

    fn learn(&mut self, now: Duration, paths: &[PathLoad]) {
        let elapsed = self
            .updated
            .map_or(0.0, |at| now.saturating_sub(at).as_secs_f64());
        self.updated = Some(now);
        self.means.resize(paths.len(), 0.0);
        self.best.resize(paths.len(), 0.0);
        let weight = 1.0 - (-elapsed / MEMORY).exp();
        for (index, path) in paths.iter().enumerate() {
            // At first the rate of one period is better than nothing.
            let weight = if self.means[index] > 0.0 { weight } else { 1.0 };
            self.means[index] += weight * (path.rate - self.means[index]);
            // What came in a burst beyond the limit, or could come without it, is nothing to wait for.
            let best = self.best[index].max(path.rate).max(path.capacity);
            self.best[index] = best.min(path.limit);
        }
        let gives_all = |(index, path): (usize, &PathLoad)| {
            path.is_metered
                || !path.is_up
                || path.w >= FULL_WEIGHT
                || self.means[index] >= ALONE * self.best[index] && path.rate > 0.0
        };
        let is_full = paths.iter().enumerate().all(gives_all);
        self.full_since = is_full.then(|| self.full_since.unwrap_or(now));
    }

    /// The part of what is left for each path that costs nothing; they add up to 1.
    fn shares(&self, zeta: f64, paths: &[PathLoad], free: &dyn Fn(usize) -> bool) -> Vec<f64> {
        let is_alone = |index: usize| self.means[index] >= ALONE * self.best[index];
        let sum = |of: &dyn Fn(usize) -> bool| -> f64 {
            let some = (0..paths.len()).filter(|&index| free(index) && of(index));
            some.map(|index| self.means[index]).sum()
        };
        let alone = sum(&is_alone);
        let count = (0..paths.len()).filter(|&index| free(index)).count();
        let beside = (0..paths.len()).filter(|&index| free(index) && !is_alone(index));
        let beside = beside.count();
        // What paths without others carry, they carry without harm.
        let of_alone = match zeta {
            zeta if beside == 0 || alone >= zeta => 1.0,
            zeta => alone / zeta,
        };
        let share = |index: usize| match () {
            () if !free(index) => 0.0,
            () if alone + sum(&|index| !is_alone(index)) <= 0.0 => 1.0 / count as f64,
            () if is_alone(index) && alone > 0.0 => of_alone * self.means[index] / alone,
            () if is_alone(index) => 0.0,
            () => (1.0 - of_alone) / beside as f64,
        };
        let shares: Vec<f64> = (0..paths.len()).map(share).collect();
        let sum: f64 = shares.iter().sum();
        if sum > 0.0 {
            return shares.into_iter().map(|share| share / sum).collect();
        }
        shares
    }

    /// The rate that metered paths carry together, byte/s: what the others do not, at the latest
    /// time. And whether they carry the rest, now or later: the others have shown what they can do.
    fn metered_limit(
        &mut self,
        now: Duration,
        needs: Option<Needs>,
        paths: &[PathLoad],
        carried: f64,
    ) -> (f64, bool) {
        let Some(needs) = needs else {
            self.pays = false;
            return (0.0, false);
        };
        let missing = needs.missing(carried);
        let is_there = paths.iter().any(|path| path.is_metered && path.is_up);
        if missing <= 0.0 || !is_there {
            self.pays = false;
            return (0.0, false);
        }
        let proof = needs.left.mul_f64(PROOF_SHARE).clamp(PROOF.0, PROOF.1);
        let proof = proof.min(needs.left.saturating_sub(URGENT) / 2);
        let is_proven = self.full_since.is_some_and(|since| now >= since + proof);
        let metered = || (0..paths.len()).filter(|&it| paths[it].is_metered && paths[it].is_up);
        // Nobody knows what a path carries that was never used.
        let is_unknown = metered().any(|index| self.best[index] <= 0.0);
        let carries: f64 = metered().map(|index| self.best[index]).sum();
        // What would be missing if it waited for another period.
        let later = match needs.left.as_secs_f64() - CONTROL_PERIOD.as_secs_f64() {
            left if left > 0.0 => missing * (1.0 + CONTROL_PERIOD.as_secs_f64() / left),
            _ => f64::INFINITY,
        };
        let is_late = is_unknown || later >= LATEST * carries;
        self.pays |= is_proven && is_late;
        // A path that was only looked at waits for its time.
        self.pays &= is_late || later >= LATEST * LATEST * carries;
        let limit = match self.pays {
            true if is_unknown => f64::INFINITY,
            true => missing,
            false => 0.0,
        };
        (limit, is_proven)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(rate: f64, capacity: f64, w: f64) -> PathLoad {
        PathLoad {
            rate,
            capacity,
            limit: f64::INFINITY,
            w,
            is_up: true,
            is_metered: false,
        }
    }

    fn metered(rate: f64) -> PathLoad {
        PathLoad {
            is_metered: true,
            ..path(rate, rate, 1.0)
        }
    }

    fn needs(zeta: f64, left: u64) -> Option<Needs> {
        Some(Needs {
            zeta,
            least: 0.95 * zeta,
            limit: f64::INFINITY,
            left: Duration::from_secs(left),
        })
    }

    /// The same loads for this many seconds.
    fn after(seconds: u64, needs: Option<Needs>, paths: &[PathLoad]) -> Vec<PathShare> {
        let mut divider = Divider::default();
        let mut parts = Vec::new();
        for second in 0..=seconds {
            parts = divider.divide(Duration::from_secs(second), needs, paths);
        }
        parts
    }

    fn shares(parts: &[PathShare]) -> Vec<f64> {
        let shares = parts.iter().map(|part| (part.share * 1e3).round() / 1e3);
        shares.collect()
    }

    #[test]
    fn paths_without_others_carry_in_proportion() {
        let paths = [path(3e6, 3e6, 0.02), path(1e6, 1e6, 0.02)];
        assert_eq!(shares(&after(5, needs(2e6, 100), &paths)), [0.75, 0.25]);
        // Also where they cannot carry it all, and before anything is known.
        assert_eq!(shares(&after(5, needs(9e6, 100), &paths)), [0.75, 0.25]);
        let unknown = [path(0.0, 0.0, 0.02); 2];
        assert_eq!(shares(&after(0, needs(2e6, 100), &unknown)), [0.5, 0.5]);
    }

    #[test]
    fn a_busy_path_carries_only_what_is_missing() {
        let paths = [path(1e6, 1e6, 0.02), path(0.1e6, 1e6, 0.02)];
        assert_eq!(shares(&after(5, needs(0.8e6, 100), &paths)), [1.0, 0.0]);
        assert_eq!(shares(&after(5, needs(1.25e6, 100), &paths)), [0.8, 0.2]);
        let down = PathLoad {
            is_up: false,
            ..paths[0]
        };
        let parts = after(5, needs(0.8e6, 100), &[down, paths[1]]);
        assert_eq!(shares(&parts), [0.0, 1.0]);
    }

    #[test]
    fn a_metered_path_waits_until_it_is_needed() {
        // 1 MB/s are free, of 1.2 MB/s that are needed: 2 MB/s for money can wait.
        let paths = [path(1e6, 1e6, 1.0), metered(2e6)];
        let parts = after(20, needs(1.2e6, 100), &paths);
        assert_eq!((parts[1].limit, parts[1].share), (Some(0.0), 0.0));
        // The free one is not asked for what it does not have.
        let asked = parts[0].share * 1.2e6;
        assert!((1e6..1.05e6).contains(&asked), "{asked}");
        // Not any longer: 1.5 MB/s are missing.
        let parts = after(20, needs(2.6e6 / 0.95, 100), &paths);
        let limit = parts[1].limit.unwrap();
        assert!((limit - 1.6e6).abs() < 1e4, "{limit}");
        // Nor without a deadline, nor before the free path has its full weight.
        assert_eq!(after(20, None, &paths)[1].limit, Some(0.0));
        let yielding = [path(0.5e6, 1e6, 0.5), metered(2e6)];
        assert_eq!(after(20, needs(3e6, 100), &yielding)[1].limit, Some(0.0));
        assert_eq!(after(3, needs(3e6, 100), &paths)[1].limit, Some(0.0));
    }

    #[test]
    fn a_path_that_gives_what_the_user_allows_is_not_waited_for() {
        // It began with a burst, and gives less at a weight of 0.7.
        for (limit, expected) in [(f64::INFINITY, 0.0), (0.2e6, f64::INFINITY)] {
            let mut divider = Divider::default();
            let rates = [0.5e6].into_iter().chain([0.2e6; 10]);
            let limits = rates.zip(0..).map(|(rate, second)| {
                let free = PathLoad {
                    limit,
                    ..path(rate, 0.5e6, 0.7)
                };
                let now = Duration::from_secs(second);
                let parts = divider.divide(now, needs(1e6, 100), &[free, metered(0.0)]);
                parts[1].limit.unwrap()
            });
            assert_eq!(limits.last(), Some(expected));
        }
    }

    #[test]
    fn a_metered_path_adds_nothing_beyond_the_limit_of_the_run() {
        let limit = |free: f64, limit: f64| {
            let needs = needs(2e6, 4).map(|it| Needs { limit, ..it });
            let paths = [path(free, free, 1.0), metered(0.6e6)];
            after(20, needs, &paths)[1].limit.unwrap()
        };
        assert!((limit(1e6, f64::INFINITY) - 0.9e6).abs() < 1e4);
        // All that the user allows, and no more.
        assert!((limit(1e6, 1.5e6) - 0.5e6).abs() < 1e4);
        assert_eq!(limit(0.97e6, 1e6), 0.0);
    }

    #[test]
    fn there_is_no_time_to_wait_before_a_deadline_that_is_close() {
        let paths = [path(1e6, 1e6, 1.0), metered(0.0)];
        for (left, seconds) in [(100, 5), (20, 2), (6, 1), (4, 0)] {
            let limit = |seconds| after(seconds, needs(2e6, left), &paths)[1].limit;
            assert_eq!(limit(seconds), Some(f64::INFINITY), "{left} s");
            if seconds > 0 {
                assert_eq!(limit(seconds - 1), Some(0.0), "{left} s");
            }
        }
    }

    #[test]
    fn a_metered_path_does_not_wait_for_a_period_that_is_too_late() {
        // 0.8 MB/s are missing. A second later it would be 1.6 MB/s with 2 s left, and 0.9 MB/s with 9 s.
        let paths = [path(1e6, 1e6, 1.0), metered(1.3e6)];
        for (left, expected) in [(9, 0.0), (2, 0.8e6), (1, 0.8e6)] {
            let needs = needs(1.8e6 / 0.95, left);
            let limit = after(20, needs, &paths)[1].limit.unwrap();
            assert!((limit - expected).abs() < 1e4, "{left} s: {limit}");
        }
    }

    #[test]
    fn an_unknown_metered_path_is_looked_at_and_then_waits() {
        let needs = needs(1.2e6, 100);
        let free = path(1e6, 1e6, 1.0);
        let mut divider = Divider::default();
        let mut limits = Vec::new();
        for second in 0..20 {
            let known = if second > 10 { 2e6 } else { 0.0 };
            let now = Duration::from_secs(second);
            let parts = divider.divide(now, needs, &[free, metered(known)]);
            limits.push(parts[1].limit.unwrap());
        }
        assert_eq!(limits[4], 0.0);
        assert_eq!(limits[10], f64::INFINITY);
        assert_eq!(limits[12], 0.0);
    }
}
