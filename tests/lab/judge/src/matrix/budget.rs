//! How many runs go side by side: as many as the machine bears.

use std::collections::VecDeque;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use crate::calibrate::Cost;
use lab_run::scenario::{LinkSpec, Scenario};

/// How much a scenario weighs on the machine: the rates of all its links,
/// Mbit/s.
#[must_use]
pub fn weight(scenario: &Scenario) -> f64 {
    let most = |link: &LinkSpec| {
        let steps = link.schedule.iter().map(|step| step.rate_mbit);
        steps.fold(link.rate_mbit, f64::max)
    };
    scenario.link.iter().map(most).sum()
}

/// How often children are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A command to run, and how much it weighs (Mbit/s).
#[derive(Debug)]
pub struct Job {
    /// What to run.
    pub command: Command,
    /// What it weighs.
    pub weight: f64,
}

/// Runs all; calls `done` with the number and the end of each as it ends.
///
/// # Errors
/// When one could not be started or waited for; those that run go on.
pub fn run_all(
    jobs: Vec<Job>,
    budget: Budget,
    mut done: impl FnMut(usize, ExitStatus),
) -> io::Result<()> {
    let mut waiting: VecDeque<_> = jobs.into_iter().enumerate().collect();
    let mut running: Vec<(usize, f64, Child)> = Vec::new();
    while !waiting.is_empty() || !running.is_empty() {
        let weights: Vec<_> = running.iter().map(|(_, weight, _)| *weight).collect();
        let next = waiting.front().map(|(_, job)| job.weight);
        if next.is_some_and(|weight| budget.admits(&weights, weight))
            && let Some((number, mut job)) = waiting.pop_front()
        {
            running.push((number, job.weight, job.command.spawn()?));
            continue;
        }
        std::thread::sleep(LOOK_EVERY);
        let mut still = Vec::new();
        for (number, weight, mut child) in running {
            match child.try_wait()? {
                Some(status) => done(number, status),
                None => still.push((number, weight, child)),
            }
        }
        running = still;
    }
    Ok(())
}

/// Labs side by side, at most, whatever the machine, unless a matrix says how many.
pub const USUAL_LABS: usize = 8;

/// What a run takes besides the time of its scenario, s: servers start before it,
/// and its record is written after it.
const OVERHEAD_S: f64 = 4.0;

/// How long runs of these weights and lengths, s, take together, in this order,
/// s.
#[must_use]
pub fn estimate_s(runs: &[(f64, f64)], budget: Budget) -> f64 {
    let mut now = 0.0;
    // Weights, and when each is over.
    let mut running: Vec<(f64, f64)> = Vec::new();
    for &(weight, length_s) in runs {
        loop {
            let weights: Vec<_> = running.iter().map(|(weight, _)| *weight).collect();
            if budget.admits(&weights, weight) {
                break;
            }
            now = running
                .iter()
                .map(|one| one.1)
                .fold(f64::INFINITY, f64::min);
            running.retain(|(_, over)| *over > now);
        }
        running.push((weight, now + length_s + OVERHEAD_S));
    }
    running.iter().map(|(_, over)| *over).fold(now, f64::max)
}

/// Share of the machine that all labs together may use: the rest is for
/// contenders, whose own work is about as much again, and for the packets
/// that must not wait.
const SHARE: f64 = 0.4;

/// What the labs that run at once may come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// How many.
    pub labs: usize,
    /// Sum of the rates of their links, Mbit/s.
    pub mbit: f64,
}

impl Budget {
    /// What a machine with so many cores bears, if a full link costs that, and so
    /// many labs at most.
    #[must_use]
    pub fn of(cost: Cost, cores: usize, labs: usize) -> Self {
        Self {
            labs,
            mbit: (cores as f64 * SHARE / cost.cores_per_mbit).max(1.0),
        }
    }

    /// So many labs, whatever they weigh.
    #[must_use]
    pub fn fixed(labs: usize) -> Self {
        Self {
            labs,
            mbit: f64::INFINITY,
        }
    }

    /// For people.
    #[must_use]
    pub fn words(&self) -> String {
        let labs = match self.labs {
            1 => "1 lab".to_owned(),
            labs => format!("{labs} labs"),
        };
        if self.mbit.is_finite() {
            format!("at most {labs} and {:.0} Mbit/s", self.mbit)
        } else {
            labs
        }
    }

    /// Whether one more of this weight may start beside what runs. One alone
    /// always may.
    #[must_use]
    pub fn admits(&self, running: &[f64], weight: f64) -> bool {
        running.is_empty()
            || (running.len() < self.labs && running.iter().sum::<f64>() + weight <= self.mbit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_costly_link_has_few_beside_it() {
        let cost = Cost {
            cores_per_mbit: 0.008,
        };
        let budget = Budget::of(cost, 2, USUAL_LABS);
        assert!((budget.mbit - 100.0).abs() < 1e-9);
        assert!(budget.admits(&[50.0], 50.0));
        assert!(!budget.admits(&[50.0, 10.0], 50.0));
        assert!(budget.admits(&[10.0; 7], 10.0));
        assert!(!budget.admits(&[10.0; 8], 10.0));
        assert!(budget.admits(&[], 1000.0));
    }

    #[test]
    fn an_estimate_is_what_the_budget_admits_at_once() {
        let budget = Budget {
            labs: 3,
            mbit: 100.0,
        };
        let run = OVERHEAD_S + 40.0;
        let takes = |runs: &[(f64, f64)]| estimate_s(runs, budget) / run;
        assert_eq!(takes(&[]), 0.0);
        assert!((takes(&[(10.0, 40.0); 3]) - 1.0).abs() < 1e-9);
        assert!((takes(&[(10.0, 40.0); 7]) - 3.0).abs() < 1e-9);
        assert!((takes(&[(50.0, 40.0); 4]) - 2.0).abs() < 1e-9);
        // One alone always may; those after it wait.
        assert!((takes(&[(200.0, 40.0), (1.0, 40.0)]) - 2.0).abs() < 1e-9);
        // The shorter makes room for the next.
        let mixed = [
            (50.0, 40.0),
            (50.0, 40.0 - run / 2.0),
            (50.0, 40.0 - run / 2.0),
        ];
        assert!((takes(&mixed) - 1.0).abs() < 1e-9);
    }
}
