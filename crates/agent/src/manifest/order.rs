//! What every sequence of entries has to keep to.

use super::{ItemContent, LineProblem, Record};
use crate::entry::TreePath;

/// What came before.
#[derive(Debug, Default)]
pub(super) struct PathOrder {
    last: TreePath,
    /// The last entry that is no directory.
    leaf: Option<TreePath>,
}

impl PathOrder {
    /// Takes the next one. If it is refused, it is as if it had not come.
    pub(super) fn take(&mut self, record: &Record) -> Result<(), LineProblem> {
        // The root is before every entry, and none.
        if *record.path() <= self.last {
            return Err(LineProblem::Order);
        }
        if let Record::Item(item) = record {
            let is_below = |leaf: &TreePath| item.path.is_at_or_below(leaf);
            if self.leaf.as_ref().is_some_and(is_below) {
                return Err(LineProblem::BelowNoDirectory);
            }
            if item.content != ItemContent::Directory {
                self.leaf = Some(item.path.clone());
            }
        }
        self.last = record.path().clone();
        Ok(())
    }
}
