//! What every sequence of entries has to keep to.

use super::{Content, Problem, Record};
use crate::entry::TreePath;

/// What came before.
#[derive(Debug, Default)]
pub(super) struct Order {
    last: TreePath,
    /// The last entry that is no directory.
    leaf: Option<TreePath>,
}

impl Order {
    /// Takes the next one. If it is refused, it is as if it had not come.
    pub(super) fn take(&mut self, record: &Record) -> Result<(), Problem> {
        // The root is before every entry, and none.
        if *record.path() <= self.last {
            return Err(Problem::Order);
        }
        if let Record::Item(item) = record {
            let is_below = |leaf: &TreePath| item.path.is_at_or_below(leaf);
            if self.leaf.as_ref().is_some_and(is_below) {
                return Err(Problem::BelowNoDirectory);
            }
            if item.content != Content::Directory {
                self.leaf = Some(item.path.clone());
            }
        }
        self.last = record.path().clone();
        Ok(())
    }
}
