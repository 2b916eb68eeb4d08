//! What several paths to one server carry: files of all sizes over pairs of idle paths, and
//! scenarios in which a path goes away, is used by others, or costs money.
//!
//! It compares `fairbat get --interface` with one path alone, with the kernel's Multipath TCP, and
//! with two simple rules ([`Carrier`]). Where this `fairbat` does not know `--interface`, that
//! carrier is left out, and what needs it is not measured.

mod carrier;
mod fetch;
mod grid;
mod ground;
mod judge;
mod mptcp;
mod plan;
mod program;
mod record;
mod runs;

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use crate::multipath::carrier::Carrier;
pub use crate::multipath::plan::{Files, Grid, Pair, PathsPlan, Runs};
pub use crate::multipath::program::knows_interfaces;
pub use crate::multipath::record::{GridRow, RunRow, Transfer};

use crate::multipath::record::Results;
use lab_run::contender::Contender;
use lab_run::versions;

/// How a plan is carried out.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Name of the plan.
    pub name: String,
    /// The command that does it again.
    pub command: String,
    /// How many networks there are at a time, at most.
    pub jobs: usize,
    /// An empty directory for working files.
    pub work: PathBuf,
    /// Where the results go.
    pub output: PathBuf,
}

/// Carries out a plan: writes every figure to a file, and returns tables and verdicts as a page of
/// Markdown. `say` hears of each transfer.
///
/// # Errors
/// When the machine lacks something, or a file cannot be written. What goes wrong with a transfer
/// is in its record.
pub fn measure(
    plan: &PathsPlan,
    setup: &Setup,
    say: &(dyn Fn(&str) + Sync),
) -> Result<String, Box<dyn Error>> {
    let mut plan = plan.clone();
    if !knows_interfaces() && plan.carriers.contains(&Carrier::Fairbat) {
        say("this fairbat has no --interface: it is left out, and what needs it is not measured");
        plan.carriers.retain(|one| *one != Carrier::Fairbat);
    }
    std::fs::create_dir_all(&setup.output)?;
    let path = setup.output.join(format!("{}.jsonl", setup.name));
    let mut all = versions::of(Contender::Fairbat);
    all.extend(versions::of(Contender::Curl));
    all.sort();
    all.dedup();
    let side_by_side = format!("{} networks at most", setup.jobs);
    let provenance = versions::provenance(setup.command.clone(), all, side_by_side);
    let results = Mutex::new(Results::begin(&path, &plan.description, &provenance)?);
    let body = match (&plan.grid, &plan.runs) {
        (Some(grid), _) => grid::measure(&plan, grid, setup, &results, say)?,
        (None, Some(runs)) => runs::measure(&plan, runs, setup, &results, say)?,
        (None, None) => String::new(),
    };
    let page = format!(
        "# {}\n\n`{}`, {}, {}\n\n{body}",
        plan.description, provenance.command, provenance.commit, provenance.side_by_side
    );
    std::fs::write(setup.output.join(format!("{}.md", setup.name)), &page)?;
    Ok(page)
}

/// Does each of these tasks, so many at a time. Each gets a directory of its own below `work`.
///
/// # Errors
/// The first of any of them; what has not begun by then is left out.
fn side_by_side<T: Sync, R: Send>(
    tasks: &[T],
    jobs: usize,
    work: &Path,
    run: impl Fn(&T, &Path) -> io::Result<R> + Sync,
) -> io::Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, io::Result<R>)>> = Mutex::default();
    let worker = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(number) else {
                return;
            };
            let outcome = run(task, &work.join(number.to_string()));
            if outcome.is_err() {
                next.store(tasks.len(), Ordering::Relaxed);
            }
            let mut done = done.lock().expect("nobody panics with it");
            done.push((number, outcome));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(worker);
        }
    });
    let mut done = done.into_inner().expect("nobody panics with it");
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tasks_are_done_in_their_order_and_an_error_ends_them() {
        let tasks = [1, 2, 3, 4, 5];
        let twice = |task: &i32, work: &Path| {
            assert!(work.starts_with("/nowhere"));
            Ok(task * 2)
        };
        let done = side_by_side(&tasks, 3, Path::new("/nowhere"), twice);
        assert_eq!(done.unwrap(), [2, 4, 6, 8, 10]);
        let fails = |_: &i32, _: &Path| Err::<(), _>(io::Error::other("as it must"));
        let error = side_by_side(&tasks, 1, Path::new("/nowhere"), fails).unwrap_err();
        assert_eq!(error.to_string(), "as it must");
    }
}
