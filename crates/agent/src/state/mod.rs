//! What the agent remembers: which entries are in step, which uploads are under
//! way, and what it has told stores. In one file, by `redb`, which is never
//! half-written whatever happens.
//!
//! Everything here blocks. Changes go through a [`StateWriter`], which commits many
//! of them together. Knows neither stores nor directories.

mod asked;
mod change;
mod record;
mod unsure;
mod writer;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};

pub use self::asked::CommitHandle;
pub use self::change::StateChange;
pub use self::record::{
    JobRecord, ManifestRecord, PlaceRecord, Synced, SyncedKind, UnreadableRecord, UploadRecord,
    UploadedPart,
};
use self::record::{decode, encode};
use self::unsure::{BEGINNING, LEFT, REPLACING};
pub use self::writer::StateWriter;
use crate::entry::{InvalidPath, TreePath};

/// What is kept in memory of the file, bytes.
const CACHE: usize = 32 * 1024 * 1024;

/// The form in which things are written down here.
const FORM: u64 = 2;

const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const JOBS: TableDefinition<&str, (u32, &[u8])> = TableDefinition::new("jobs");
/// By job and path.
const ENTRIES: TableDefinition<(u32, &[u8]), &[u8]> = TableDefinition::new("entries");
/// Entries that the manifest at the store does not have as they are.
const UNTOLD: TableDefinition<(u32, &[u8]), ()> = TableDefinition::new("untold");
const UPLOADS: TableDefinition<(u32, &[u8]), &[u8]> = TableDefinition::new("uploads");
/// By job, path and index.
const PARTS: TableDefinition<(u32, &[u8], u32), &[u8]> = TableDefinition::new("parts");

/// Why the state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The database.
    #[error("the state cannot be used: {0}")]
    Database(#[from] redb::Error),
    /// A record in it.
    #[error(transparent)]
    Record(#[from] UnreadableRecord),
    /// A path in it.
    #[error("the state names a path that is none: {0}")]
    Path(#[from] InvalidPath),
    /// It was written by a later version.
    #[error("the state was written by a later version of fairbat-agent (form {0})")]
    Later(u64),
    /// It was written by an earlier version, of which no release was made.
    #[error(
        "the state was written by an earlier version of fairbat-agent (form {0}): move it away, \
         and what stores have is taken over"
    )]
    Earlier(u64),
    /// The thread that writes has ended.
    #[error("the state cannot be written any more")]
    Closed,
}

macro_rules! from_redb {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for StateError {
            fn from(error: redb::$error) -> Self {
                Self::Database(error.into())
            }
        }
    )*};
}
from_redb!(
    DatabaseError,
    TransactionError,
    TableError,
    StorageError,
    CommitError
);

/// Number of a job in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u32);

/// An upload that is under way, and the parts of it that the store has, by their
/// numbers.
pub type Unfinished = (UploadRecord, BTreeMap<u32, UploadedPart>);

/// See the module. Clones are the same state.
#[derive(Debug, Clone)]
pub struct StateDatabase {
    database: Arc<Database>,
}

impl StateDatabase {
    /// Opens the state in this file, which is made if there is none. Only one
    /// process can have it open.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn open(file: &Path) -> Result<Self, StateError> {
        let database = Database::builder().set_cache_size(CACHE).create(file)?;
        let begun = database.begin_write()?;
        {
            let mut meta = begun.open_table(META)?;
            let form = meta.get("form")?.map(|form| form.value());
            match form {
                Some(form) if form > FORM => return Err(StateError::Later(form)),
                Some(form) if form < FORM => return Err(StateError::Earlier(form)),
                Some(_) => {}
                None => {
                    meta.insert("form", FORM)?;
                }
            }
            // So that readers find them.
            begun.open_table(JOBS)?;
            begun.open_table(ENTRIES)?;
            begun.open_table(UNTOLD)?;
            begun.open_table(UPLOADS)?;
            begun.open_table(PARTS)?;
            asked::make_tables(&begun)?;
            begun.open_table(REPLACING)?;
            begun.open_table(BEGINNING)?;
            begun.open_table(LEFT)?;
        }
        begun.commit()?;
        Ok(Self {
            database: Arc::new(database),
        })
    }

    /// Names this state among those of all machines: `fresh` when it is new. Not
    /// 0.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn identity(&self, fresh: u64) -> Result<u64, StateError> {
        let write = self.database.begin_write()?;
        let identity = {
            let mut meta = write.open_table(META)?;
            let known = meta.get("identity")?.map(|known| known.value());
            match known {
                Some(known) => known,
                None => {
                    let fresh = fresh.max(1);
                    meta.insert("identity", fresh)?;
                    fresh
                }
            }
        };
        write.commit()?;
        Ok(identity)
    }

    /// What writes to it.
    #[must_use]
    pub fn writer(&self) -> StateWriter {
        StateWriter::start(Arc::clone(&self.database))
    }

    /// The job of this name, which is entered if it is new, and what is known
    /// of it.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn job(&self, name: &str) -> Result<(JobId, JobRecord), StateError> {
        let write = self.database.begin_write()?;
        let found = {
            let mut jobs = write.open_table(JOBS)?;
            let known = jobs.get(name)?.map(|found| {
                let (id, record) = found.value();
                decode(record).map(|record| (JobId(id), record))
            });
            match known {
                Some(known) => known?,
                None => {
                    let mut most = None;
                    for job in jobs.iter()? {
                        most = most.max(Some(job?.1.value().0));
                    }
                    let id = most.map_or(0, |most: u32| most + 1);
                    let record = JobRecord::default();
                    jobs.insert(name, (id, encode(&record).as_slice()))?;
                    (JobId(id), record)
                }
            }
        };
        write.commit()?;
        Ok(found)
    }

    /// All entries of a job that are in step, in the order of their paths.
    ///
    /// # Errors
    /// See [`StateError`]; and each item may be one.
    pub fn entries(
        &self,
        job: JobId,
    ) -> Result<impl Iterator<Item = Result<(TreePath, Synced), StateError>> + use<>, StateError>
    {
        let table = self.table(ENTRIES)?;
        let range = table.range::<(u32, &[u8])>((job.0, &[][..])..(job.0 + 1, &[][..]))?;
        Ok(range.map(|item| {
            let (key, value) = item?;
            let path = TreePath::from_bytes(key.value().1)?;
            Ok((path, decode(value.value())?))
        }))
    }

    /// An entry of a job that is in step.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn entry(&self, job: JobId, path: &TreePath) -> Result<Option<Synced>, StateError> {
        let table = self.table(ENTRIES)?;
        let found = table.get((job.0, path.as_bytes()))?;
        Ok(found.map(|found| decode(found.value())).transpose()?)
    }

    /// The entries that the manifest at the store does not have as they are, in
    /// the order of their paths; `None` for one that is gone.
    ///
    /// # Errors
    /// See [`StateError`]; and each item may be one.
    pub fn untold(
        &self,
        job: JobId,
    ) -> Result<
        impl Iterator<Item = Result<(TreePath, Option<Synced>), StateError>> + use<>,
        StateError,
    > {
        let read = self.database.begin_read()?;
        let untold: ReadOnlyTable<(u32, &[u8]), ()> = read.open_table(UNTOLD)?;
        let entries: ReadOnlyTable<(u32, &[u8]), &[u8]> = read.open_table(ENTRIES)?;
        let range = untold.range::<(u32, &[u8])>((job.0, &[][..])..(job.0 + 1, &[][..]))?;
        Ok(range.map(move |item| {
            let (key, _) = item?;
            let (job, path) = key.value();
            let entry = entries.get((job, path))?;
            let entry = entry.map(|entry| decode(entry.value())).transpose()?;
            Ok((TreePath::from_bytes(path)?, entry))
        }))
    }

    /// The upload that is under way for a file, and the parts of it that the
    /// store has.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn upload(&self, job: JobId, path: &TreePath) -> Result<Option<Unfinished>, StateError> {
        let key = (job.0, path.as_bytes());
        let Some(upload) = self.table(UPLOADS)?.get(key)? else {
            return Ok(None);
        };
        let table = self.table(PARTS)?;
        let range = (key.0, key.1, 0)..=(key.0, key.1, u32::MAX);
        let parts = table.range::<(u32, &[u8], u32)>(range)?;
        let parts = parts.map(|item| {
            let (key, value) = item?;
            Ok((key.value().2, decode(value.value())?))
        });
        let parts = parts.collect::<Result<_, StateError>>()?;
        Ok(Some((decode(upload.value())?, parts)))
    }

    /// All uploads of a job that are under way.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn uploads(&self, job: JobId) -> Result<Vec<(TreePath, UploadRecord)>, StateError> {
        let table = self.table(UPLOADS)?;
        let range = table.range::<(u32, &[u8])>((job.0, &[][..])..(job.0 + 1, &[][..]))?;
        range
            .map(|item| {
                let (key, value) = item?;
                let path = TreePath::from_bytes(key.value().1)?;
                Ok((path, decode(value.value())?))
            })
            .collect()
    }

    /// The names of all uploads that are under way, of whichever job.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn upload_names(&self) -> Result<HashSet<String>, StateError> {
        let table = self.table(UPLOADS)?;
        let names = table.iter()?.map(|item| {
            let upload: UploadRecord = decode(item?.1.value())?;
            Ok(upload.name)
        });
        names.collect()
    }

    fn table<K: redb::Key + 'static, V: redb::Value + 'static>(
        &self,
        definition: TableDefinition<K, V>,
    ) -> Result<ReadOnlyTable<K, V>, StateError> {
        Ok(self.database.begin_read()?.open_table(definition)?)
    }
}

#[cfg(test)]
mod tests;
