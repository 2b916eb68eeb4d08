//! Deletes what a mirror has and the store does not. Blocking.

use super::plan::FilteredItems;
use super::run::PullRun;
use crate::config::MaxDelete;
use crate::entry::{EntryKind, TreePath};
use crate::scan::{Scan, ScanOptions};
use crate::sync::install::is_temporary;
use crate::sync::manifest_store::FetchedManifests;
use crate::sync::report::{RunProblem, RunReport, check_deletions};
use crate::sync::spool::{Spool, Spooled};

/// An entry to delete, and whether it is a file.
type Surplus = (TreePath, bool);

/// The entries to delete, ordered by path.
struct SurplusEntries {
    paths: Spooled<Surplus>,
    /// Number of files among them.
    gone: u64,
    /// Number of all files.
    all: u64,
}

impl PullRun {
    /// Deletes what the manifest does not have. Entries that the filter leaves out stay.
    /// Returns the number of files, and failures.
    ///
    /// # Errors
    /// More files would be deleted than allowed, or all. Then none is deleted.
    pub(crate) fn delete_others(
        &self,
        fetched: &mut FetchedManifests,
        max: MaxDelete,
    ) -> Result<RunReport, RunProblem> {
        let others = self.others(fetched)?;
        check_deletions(others.gone, others.all, max)?;
        self.remove(others.paths)
    }

    /// Deletes directories, with their members, from the places of files and links. If
    /// more files would be deleted than allowed, none is.
    pub(crate) fn make_room(
        &self,
        fetched: &mut FetchedManifests,
        max: MaxDelete,
        blocked: &[TreePath],
    ) -> Result<RunReport, RunProblem> {
        let others = self.others(fetched)?;
        if let Err(problem) = check_deletions(others.gone, others.all, max) {
            tracing::warn!(%problem, hint = problem.hint(), "directories are in the way of files");
            return Ok(RunReport::default());
        }
        let is_blocking = |path: &TreePath| {
            // The last one that is not after the path. None of them is below another.
            let before = blocked.partition_point(|blocked| blocked <= path);
            before > 0 && path.is_at_or_below(&blocked[before - 1])
        };
        let is_blocking = |other: &Result<Surplus, RunProblem>| {
            other.as_ref().map_or(true, |(path, _)| is_blocking(path))
        };
        self.remove(others.paths.filter(is_blocking))
    }

    /// Removes entries, which come ordered by path.
    fn remove(
        &self,
        others: impl Iterator<Item = Result<Surplus, RunProblem>>,
    ) -> Result<RunReport, RunProblem> {
        let others = others.collect::<Result<Vec<_>, _>>()?;
        let mut report = RunReport::default();
        let mut cache = self.installer.cache();
        // Members go before their directory.
        for (path, is_file) in others.into_iter().rev() {
            self.check_stopped()?;
            match self.installer.remove(&mut cache, &path) {
                Ok(()) => report.deleted += u64::from(is_file),
                Err(error) => self.note_failure(path, &error, &mut report)?,
            }
        }
        Ok(report)
    }

    fn others(&self, fetched: &mut FetchedManifests) -> Result<SurplusEntries, RunProblem> {
        let filter = &self.settings.run.filter;
        let scan = Scan::open(&self.settings.to, filter.clone(), ScanOptions::default())?;
        let mut wanted = FilteredItems::new(fetched.items()?, filter);
        let mut next = wanted.next().transpose()?;
        let is_nothing = next.is_none();
        let mut others = Spool::default();
        let (mut gone, mut all) = (0, 0);
        for entry in scan {
            self.check_stopped()?;
            // Unreadable entries stay.
            let Ok(entry) = entry else { continue };
            if is_temporary(&entry.path) {
                continue;
            }
            let is_file = matches!(entry.kind, EntryKind::File(_));
            all += u64::from(is_file);
            while next.as_ref().is_some_and(|item| item.path < entry.path) {
                next = wanted.next().transpose()?;
            }
            if next.as_ref().is_none_or(|item| item.path != entry.path) {
                gone += u64::from(is_file);
                others.push(&(entry.path, is_file))?;
            }
        }
        // Only its end shows that the manifest is complete.
        while next.is_some() {
            next = wanted.next().transpose()?;
        }
        if is_nothing && gone > 0 {
            return Err(RunProblem::EmptyOrigin);
        }
        Ok(SurplusEntries {
            paths: others.read()?,
            gone,
            all,
        })
    }
}
