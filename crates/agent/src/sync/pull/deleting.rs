//! Deletes what a mirror has and the store has not. Blocking.

use std::io;

use super::sifting::Sifted;
use super::{Run, disk, spool};
use crate::config::MaxDelete;
use crate::entry::{EntryKind, TreePath};
use crate::scan::{Scan, ScanOptions};
use crate::sync::fetched::Fetched;
use crate::sync::placing::{is_of_disk, is_unfinished};
use crate::sync::push::check_deletions;
use crate::sync::report::{EntryFailure, RunProblem, RunReport};
use crate::sync::spool::{Spool, Spooled};

/// Something that is to be deleted, and whether it is a file.
type Other = (TreePath, bool);

/// What is to be deleted, in the order of paths.
struct Others {
    paths: Spooled<Other>,
    /// The files among them.
    gone: u64,
    /// All files that there are.
    all: u64,
}

impl Run {
    /// Deletes what the manifest has not; what the filter leaves out is no concern
    /// of it. Returns how many files, and what failed.
    ///
    /// # Errors
    /// More would be deleted than may be, or everything: then nothing is.
    pub(super) fn delete_others(
        &self,
        fetched: &mut Fetched,
        most: MaxDelete,
    ) -> Result<RunReport, RunProblem> {
        let others = self.others(fetched)?;
        check_deletions(others.gone, others.all, most)?;
        self.remove(others.paths)
    }

    /// Deletes what is in the way: directories, and what is in them, where a file or
    /// a link belongs. If more would be deleted than may be, nothing is.
    pub(super) fn make_room(
        &self,
        fetched: &mut Fetched,
        most: MaxDelete,
        blocked: &[TreePath],
    ) -> Result<RunReport, RunProblem> {
        let others = self.others(fetched)?;
        if let Err(problem) = check_deletions(others.gone, others.all, most) {
            tracing::warn!(%problem, hint = problem.hint(), "directories are in the way of files");
            return Ok(RunReport::default());
        }
        let is_blocking = |path: &TreePath| {
            // The last of them that is not behind it: none is below another.
            let before = blocked.partition_point(|blocked| blocked <= path);
            before > 0 && path.is_at_or_below(&blocked[before - 1])
        };
        let is_blocking =
            |other: &io::Result<Other>| other.as_ref().map_or(true, |(path, _)| is_blocking(path));
        self.remove(others.paths.filter(is_blocking))
    }

    /// In the order of paths, each with whether it is a file.
    fn remove(
        &self,
        others: impl Iterator<Item = io::Result<Other>>,
    ) -> Result<RunReport, RunProblem> {
        let others = others.collect::<Result<Vec<_>, _>>();
        let mut report = RunReport::default();
        let mut way = self.placing.way();
        // What is in a directory goes before it.
        for (path, is_file) in others.map_err(|error| spool(&error))?.into_iter().rev() {
            self.check_stopped()?;
            match self.placing.remove(&mut way, &path) {
                Ok(_) => report.deleted += u64::from(is_file),
                Err(error) if is_of_disk(&error) => {
                    return Err(disk(&path.under(&self.settings.to), &error));
                }
                Err(error) => report.failed(path, EntryFailure::Unwritable(error.to_string())),
            }
        }
        Ok(report)
    }

    fn others(&self, fetched: &mut Fetched) -> Result<Others, RunProblem> {
        let filter = &self.settings.filter;
        let scan = Scan::open(&self.settings.to, filter.clone(), ScanOptions::default());
        let scan = scan.map_err(|error| RunProblem::Scan(error.to_string()))?;
        let mut wanted = Sifted::new(fetched.items()?, filter);
        let mut next = wanted.next().transpose()?;
        let is_nothing = next.is_none();
        let mut others = Spool::new();
        let (mut gone, mut all) = (0, 0);
        for entry in scan {
            self.check_stopped()?;
            // What cannot be read is no reason to delete anything.
            let Ok(entry) = entry else { continue };
            if is_unfinished(&entry.path) {
                continue;
            }
            let is_file = matches!(entry.kind, EntryKind::File(_));
            all += u64::from(is_file);
            while next.as_ref().is_some_and(|item| item.path < entry.path) {
                next = wanted.next().transpose()?;
            }
            if next.as_ref().is_none_or(|item| item.path != entry.path) {
                gone += u64::from(is_file);
                others
                    .push(&(entry.path, is_file))
                    .map_err(|error| spool(&error))?;
            }
        }
        // That the manifest is whole is known at its end.
        while next.is_some() {
            next = wanted.next().transpose()?;
        }
        if is_nothing && gone > 0 {
            return Err(RunProblem::EmptyOrigin);
        }
        Ok(Others {
            paths: others.finish().map_err(|error| spool(&error))?,
            gone,
            all,
        })
    }
}
