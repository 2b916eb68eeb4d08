//! The agent's state: which entries are in step, which uploads continue, and which
//! manifests are in the store. One file, by `redb`, which survives a crash at any
//! moment.
//!
//! - `database`: the file, which is opened again after an error of its disk
//! - `tables`: the tables, their records, and errors
//! - `change`: how changes change the tables
//! - `writer`: the thread that commits changes
//!
//! Reading blocks. Changes go through a [`StateWriter`], which commits many at once. A
//! change that makes the state uncertain is written before the store is asked, so that a
//! crash leaves nothing that no run looks after.

mod change;
mod database;
mod tables;
mod writer;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{ReadOnlyTable, ReadableTable, TableDefinition};

pub use self::change::StateChange;
use self::database::DatabaseFile;
pub(crate) use self::database::{STATE_FILE, make_private_directory};
pub(crate) use self::tables::DAMAGED_HINT;
use self::tables::{
    AD_HOC_TASKS, BEGINNING, CHECKS, DAMAGED, ENTRIES, JOBS, LEFT, META, PARTS, REPLACING,
    STORE_MOUNTS, TASK_STATES, UNTOLD, UPLOADS, decode, encode, paths_of, texts_of,
};
pub use self::tables::{
    CheckRecord, JobId, JobRecord, ManifestRecord, PlaceRecord, StateError, Synced, SyncedKind,
    UploadRecord, UploadedPart,
};
pub use self::writer::{CommitHandle, StateWriter};
use crate::entry::TreePath;

/// Version of the records.
const FORM: u64 = 2;

/// An upload that continues, and its stored parts by number.
pub type ResumableUpload = (UploadRecord, BTreeMap<u32, UploadedPart>);

/// The state database. Clones share it.
#[derive(Debug, Clone)]
pub struct StateDatabase {
    database: Arc<DatabaseFile>,
}

impl StateDatabase {
    /// Opens the state in a file, and makes it if needed. Only one process can have it
    /// open. Only the user of this process has access to it.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn open(file: &Path) -> Result<Self, StateError> {
        let database = DatabaseFile::create(file)?;
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
            // Readers need existing tables.
            begun.open_table(JOBS)?;
            begun.open_table(ENTRIES)?;
            begun.open_table(UNTOLD)?;
            begun.open_table(UPLOADS)?;
            begun.open_table(PARTS)?;
            begun.open_table(AD_HOC_TASKS)?;
            begun.open_table(TASK_STATES)?;
            begun.open_table(REPLACING)?;
            begun.open_table(DAMAGED)?;
            begun.open_table(CHECKS)?;
            begun.open_table(BEGINNING)?;
            begun.open_table(LEFT)?;
            begun.open_table(STORE_MOUNTS)?;
        }
        begun.commit()?;
        Ok(Self {
            database: Arc::new(database),
        })
    }

    /// The identity of this state among all machines; not 0. A new state takes
    /// `fresh`.
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

    /// Starts the writer.
    #[must_use]
    pub fn writer(&self) -> StateWriter {
        StateWriter::start(Arc::clone(&self.database))
    }

    /// The number and record of a job. A new job is added.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn job(&self, name: &str) -> Result<(JobId, JobRecord), StateError> {
        let found = self.find_or_add(name);
        found.inspect_err(|_| self.database.note_failure())
    }

    fn find_or_add(&self, name: &str) -> Result<(JobId, JobRecord), StateError> {
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

    /// All entries of a job that are in step, ordered by path.
    ///
    /// # Errors
    /// See [`StateError`]; and each item may be one.
    pub fn entries(
        &self,
        job: JobId,
    ) -> Result<impl Iterator<Item = Result<(TreePath, Synced), StateError>> + use<>, StateError>
    {
        let table = self.table(ENTRIES)?;
        let range = table.range::<(u32, &[u8])>(paths_of(job.0))?;
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
        let found = self.table(ENTRIES)?.get((job.0, path.as_bytes()))?;
        found.map(|entry| decode(entry.value())).transpose()
    }

    /// The entries that have changed since the last manifest, ordered by path; `None`
    /// for one that is gone.
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
        let range = untold.range::<(u32, &[u8])>(paths_of(job.0))?;
        Ok(range.map(move |item| {
            let (key, _) = item?;
            let (job, path) = key.value();
            let entry = entries.get((job, path))?;
            let entry = entry.map(|entry| decode(entry.value())).transpose()?;
            Ok((TreePath::from_bytes(path)?, entry))
        }))
    }

    /// The upload of a file that continues, with its stored parts.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn upload(
        &self,
        job: JobId,
        path: &TreePath,
    ) -> Result<Option<ResumableUpload>, StateError> {
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

    /// All uploads of a job that continue.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn uploads(&self, job: JobId) -> Result<Vec<(TreePath, UploadRecord)>, StateError> {
        let table = self.table(UPLOADS)?;
        let range = table.range::<(u32, &[u8])>(paths_of(job.0))?;
        range
            .map(|item| {
                let (key, value) = item?;
                let path = TreePath::from_bytes(key.value().1)?;
                Ok((path, decode(value.value())?))
            })
            .collect()
    }

    /// The names of all uploads that continue, of all jobs.
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

    /// Entries whose object may have been replaced, so its content is unknown.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn replacing(&self, job: JobId) -> Result<HashSet<TreePath>, StateError> {
        self.paths(REPLACING, job)
    }

    /// Entries whose object is missing or damaged, as far as checks have found.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn damaged(&self, job: JobId) -> Result<HashSet<TreePath>, StateError> {
        self.paths(DAMAGED, job)
    }

    /// How far the checks of a job are.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn check_record(&self, job: JobId) -> Result<CheckRecord, StateError> {
        let found = self.table(CHECKS)?.get(job.0)?;
        found.map_or(Ok(CheckRecord::default()), |record| decode(record.value()))
    }

    fn paths(
        &self,
        table: TableDefinition<(u32, &'static [u8]), ()>,
        job: JobId,
    ) -> Result<HashSet<TreePath>, StateError> {
        let table = self.table(table)?;
        let range = table.range::<(u32, &[u8])>(paths_of(job.0))?;
        let paths = range.map(|item| Ok(TreePath::from_bytes(item?.0.value().1)?));
        paths.collect()
    }

    /// Keys for which the store may have an upload of unknown name.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn beginning(&self, job: JobId) -> Result<HashSet<String>, StateError> {
        let table = self.table(BEGINNING)?;
        let range = table.range::<(u32, &str)>(texts_of(job.0))?;
        range.map(|item| Ok(item?.0.value().1.to_owned())).collect()
    }

    /// Keys and names of the abandoned uploads that the store may still have.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn left(&self, job: JobId) -> Result<Vec<(String, String)>, StateError> {
        let table = self.table(LEFT)?;
        let range = table.range::<(u32, &str)>(texts_of(job.0))?;
        let left = range.map(|item| {
            let (name, key) = item?;
            Ok((key.value().to_owned(), name.value().1.to_owned()))
        });
        left.collect()
    }

    /// The mount point that a local store lay on when it was last pushed to.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn store_mount(&self, store: &Path) -> Result<Option<PathBuf>, StateError> {
        let table = self.table(STORE_MOUNTS)?;
        let found = table.get(store.as_os_str().as_bytes())?;
        Ok(found.map(|mount| OsStr::from_bytes(mount.value()).into()))
    }

    /// The ad-hoc tasks, by number.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn ad_hoc_tasks(&self) -> Result<Vec<(u64, Vec<u8>)>, StateError> {
        let table = self.table(AD_HOC_TASKS)?;
        let items = table.iter()?.map(|item| {
            let (number, task) = item?;
            Ok((number.value(), task.value().to_vec()))
        });
        items.collect()
    }

    /// The task states of the jobs, by name.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn task_states(&self) -> Result<BTreeMap<String, Vec<u8>>, StateError> {
        let table = self.table(TASK_STATES)?;
        let items = table.iter()?.map(|item| {
            let (name, state) = item?;
            Ok((name.value().to_owned(), state.value().to_vec()))
        });
        items.collect()
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
