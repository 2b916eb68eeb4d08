//! What a store may have without it being known: objects that were about to be
//! replaced, uploads that were about to begin, and uploads that are to be given up
//! and perhaps have not been yet.
//!
//! Each is written down before the store is asked, so that a crash at any moment
//! leaves nothing that nobody looks after.

use std::collections::HashSet;

use redb::TableDefinition;

use super::{JobId, StateDatabase, StateError};
use crate::entry::TreePath;

/// Entries whose object was about to be replaced: what is remembered of them may
/// be of the old one.
pub(super) const REPLACING: TableDefinition<(u32, &[u8]), ()> = TableDefinition::new("replacing");
/// Keys for which an upload may have begun whose name is not known.
pub(super) const BEGINNING: TableDefinition<(u32, &str), ()> = TableDefinition::new("beginning");
/// Names of uploads that nobody will continue, and their keys.
pub(super) const LEFT: TableDefinition<(u32, &str), &str> = TableDefinition::new("left");

impl StateDatabase {
    /// Entries of a job whose content at the store is not known, though they are
    /// in step: the object was about to be replaced, and may have been.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn replacing(&self, job: JobId) -> Result<HashSet<TreePath>, StateError> {
        let table = self.table(REPLACING)?;
        let range = table.range::<(u32, &[u8])>((job.0, &[][..])..(job.0 + 1, &[][..]))?;
        let paths = range.map(|item| Ok(TreePath::from_bytes(item?.0.value().1)?));
        paths.collect()
    }

    /// Keys for which the store may have an upload of this job whose name is not
    /// known.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn beginning(&self, job: JobId) -> Result<HashSet<String>, StateError> {
        let table = self.table(BEGINNING)?;
        let range = table.range::<(u32, &str)>((job.0, "")..(job.0 + 1, ""))?;
        range.map(|item| Ok(item?.0.value().1.to_owned())).collect()
    }

    /// Uploads of a job that nobody will continue and that the store may still
    /// have: their keys and names.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn left(&self, job: JobId) -> Result<Vec<(String, String)>, StateError> {
        let table = self.table(LEFT)?;
        let range = table.range::<(u32, &str)>((job.0, "")..(job.0 + 1, ""))?;
        let left = range.map(|item| {
            let (name, key) = item?;
            Ok((key.value().to_owned(), name.value().1.to_owned()))
        });
        left.collect()
    }
}
