//! Deletes what a mirror has and the store has not. Blocking.

use super::sifting::Sifted;
use super::{Run, disk, spool};
use crate::config::MaxDelete;
use crate::entry::{Kind, TreePath};
use crate::scan::{Options, Scan};
use crate::sync::fetched::Fetched;
use crate::sync::placing::{is_of_disk, is_unfinished};
use crate::sync::push::check_deletions;
use crate::sync::report::{Failure, Problem, Report};
use crate::sync::spool::{Spool, Spooled};

/// What is to be deleted, in the order of paths.
struct Others {
    paths: Spooled<TreePath>,
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
    ) -> Result<Report, Problem> {
        let others = self.others(fetched)?;
        check_deletions(others.gone, others.all, most)?;
        let paths = others.paths.collect::<Result<Vec<TreePath>, _>>();
        let mut report = Report::default();
        let mut way = self.placing.way();
        // What is in a directory goes before it.
        for path in paths.map_err(|error| spool(&error))?.into_iter().rev() {
            self.check_stopped()?;
            match self.placing.remove(&mut way, &path) {
                Ok(_) => {}
                Err(error) if is_of_disk(&error) => {
                    return Err(disk(&path.under(&self.settings.to), &error));
                }
                Err(error) => report.failed(path, Failure::Unreadable(error.to_string())),
            }
        }
        report.deleted = others.gone.saturating_sub(report.failed);
        Ok(report)
    }

    fn others(&self, fetched: &mut Fetched) -> Result<Others, Problem> {
        let filter = &self.settings.filter;
        let scan = Scan::open(&self.settings.to, filter.clone(), Options::default());
        let scan = scan.map_err(|error| Problem::Scan(error.to_string()))?;
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
            let is_file = matches!(entry.kind, Kind::File(_));
            all += u64::from(is_file);
            while next.as_ref().is_some_and(|item| item.path < entry.path) {
                next = wanted.next().transpose()?;
            }
            if next.as_ref().is_none_or(|item| item.path != entry.path) {
                gone += u64::from(is_file);
                others.push(&entry.path).map_err(|error| spool(&error))?;
            }
        }
        // That the manifest is whole is known at its end.
        while next.is_some() {
            next = wanted.next().transpose()?;
        }
        if is_nothing && gone > 0 {
            return Err(Problem::EmptyOrigin);
        }
        Ok(Others {
            paths: others.finish().map_err(|error| spool(&error))?,
            gone,
            all,
        })
    }
}
