//! The objects that a store should have, compared with those that it lists. They are in a
//! temporary file, because there may be more than fit memory.

use std::fmt::Display;

use redb::backends::FileBackend;
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};

use super::report::RunProblem;
use crate::store::ListedObject;

/// Cache of the file, bytes.
const CACHE_SIZE: usize = 16 * 1024 * 1024;

/// Sizes in bytes, by key.
const OBJECTS: TableDefinition<&str, u64> = TableDefinition::new("objects");

/// The expected objects that are not listed, or with another size.
pub(crate) struct DifferingObjects {
    objects: ReadOnlyTable<&'static str, u64>,
    /// Keeps the file.
    _database: Database,
}

impl DifferingObjects {
    /// Compares the keys and sizes of the expected objects with a listing, whose pages
    /// `next_page` gives. Blocking.
    ///
    /// # Errors
    /// [`RunProblem::Disk`], or an error among the objects.
    pub(crate) fn find(
        expected: impl Iterator<Item = Result<(String, u64), RunProblem>>,
        mut next_page: impl FnMut() -> Option<Vec<ListedObject>>,
    ) -> Result<Self, RunProblem> {
        let file = tempfile::tempfile().map_err(failed)?;
        let backend = FileBackend::new(file).map_err(failed)?;
        let mut builder = Database::builder();
        let builder = builder.set_cache_size(CACHE_SIZE);
        let database = builder.create_with_backend(backend).map_err(failed)?;
        let writing = database.begin_write().map_err(failed)?;
        {
            let mut objects = writing.open_table(OBJECTS).map_err(failed)?;
            for object in expected {
                let (key, size) = object?;
                objects.insert(key.as_str(), size).map_err(failed)?;
            }
            while let Some(page) = next_page() {
                for ListedObject { key, size } in page {
                    let expected = objects.get(key.as_str()).map_err(failed)?;
                    let expected = expected.map(|size| size.value());
                    if expected.is_some() && (size.is_none() || size == expected) {
                        objects.remove(key.as_str()).map_err(failed)?;
                    }
                }
            }
        }
        writing.commit().map_err(failed)?;
        let reading = database.begin_read().map_err(failed)?;
        Ok(Self {
            objects: reading.open_table(OBJECTS).map_err(failed)?,
            _database: database,
        })
    }

    /// Whether the object under a key differs. Blocking.
    pub(crate) fn contains(&self, key: &str) -> Result<bool, RunProblem> {
        Ok(self.objects.get(key).map_err(failed)?.is_some())
    }
}

fn failed(error: impl Display) -> RunProblem {
    RunProblem::Disk(format!("temporary files: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_has_another_size_differs() {
        let listed = |key: &str, size| ListedObject {
            key: key.to_owned(),
            size,
        };
        let mut pages = vec![
            vec![listed("same", Some(1)), listed("foreign", Some(1))],
            vec![listed("shorter", Some(0)), listed("untold", None)],
            // A listing that was begun anew.
            vec![listed("same", Some(1))],
        ];
        let expected = ["same", "shorter", "untold", "missing"];
        let expected = expected.map(|key| Ok((key.to_owned(), 1)));
        let found = DifferingObjects::find(expected.into_iter(), || pages.pop()).unwrap();
        let differs = |key| found.contains(key).unwrap();
        assert!(differs("shorter") && differs("missing"));
        assert!(!differs("same") && !differs("untold") && !differs("foreign"));
    }
}
