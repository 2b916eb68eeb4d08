//! Runs commands side by side, as far as a budget goes, in their order.

use std::collections::VecDeque;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use super::Budget;

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
