//! Changes of the state, and how they change the tables.

use std::collections::{HashMap, HashSet};

use redb::{ReadableTable, TableDefinition, Value, WriteTransaction};

use super::tables::{
    BEGINNING, CHECKS, CheckRecord, DAMAGED, ENTRIES, JOBS, JobId, JobRecord, LEFT, PARTS,
    PlaceRecord, REPLACING, StateError, Synced, SyncedKind, UNTOLD, UPLOADS, UploadRecord,
    UploadedPart, decode, encode, paths_of, texts_of,
};
use crate::entry::TreePath;

/// A change of a job's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateChange {
    /// An entry is in step. Its upload, if any, is abandoned. The change is not in the
    /// manifest yet.
    Synced(TreePath, Synced),
    /// The same, by a completed upload in parts.
    Completed(TreePath, Synced),
    /// An entry changed only in ways that the manifest does not show.
    Refreshed(TreePath, Synced),
    /// An entry is gone from the store. Its upload is abandoned. The change is not in
    /// the manifest yet.
    Removed(TreePath),
    /// The objects of these entries may be replaced or deleted from now on. Their state
    /// is unreliable until they are in step again.
    Replacing(Vec<TreePath>),
    /// A check has found that the store does not have this entry, or has another content.
    /// The root stands for the manifests.
    Damaged(TreePath),
    /// The store has this entry as it was sent.
    Intact(TreePath),
    /// How far a check is.
    Checked(CheckRecord),
    /// An upload for this key may begin from now on, perhaps with an unknown name.
    Beginning(String),
    /// All uploads for this key are known.
    Certain(String),
    /// An upload in parts has begun. An earlier one is abandoned.
    Begun(TreePath, UploadRecord),
    /// The store has this part of an upload.
    Arrived(TreePath, u32, UploadedPart),
    /// An upload is abandoned, and the store still has it.
    Left(TreePath),
    /// An upload is gone from the store.
    Gone(TreePath),
    /// An abandoned upload, by its name, is gone from the store.
    Aborted(String),
    /// A manifest of all changes so far is about to be written.
    Telling,
    /// That manifest is in the store.
    Told(JobRecord),
    /// The record of the job.
    Job(JobRecord),
    /// No entry of the job is in step any more; and the new record.
    Forgotten(JobRecord),
    /// The same, and its uploads are forgotten: the job has another store.
    Moved(JobRecord),
}

impl StateChange {
    /// Bytes that would be sent again if the change were lost.
    pub(crate) fn at_risk(&self) -> u64 {
        match self {
            // Sending a part again takes longer than a commit.
            Self::Arrived(..) => u64::MAX,
            Self::Synced(_, entry) | Self::Completed(_, entry) => match &entry.kind {
                SyncedKind::File { state, .. } => state.size,
                SyncedKind::Directory | SyncedKind::Symlink(_) => 0,
            },
            _ => 0,
        }
    }
}

/// The paths that changed while a manifest was being written, by job. That manifest
/// does not have these changes.
#[derive(Debug, Default)]
pub(crate) struct UnpublishedChanges(HashMap<JobId, HashSet<TreePath>>);

impl UnpublishedChanges {
    fn add(&mut self, job: JobId, path: &TreePath) {
        if let Some(paths) = self.0.get_mut(&job) {
            paths.insert(path.clone());
        }
    }
}

/// How an upload ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UploadEnd {
    /// It is gone from the store.
    Over,
    /// It is to be aborted.
    Left,
}

/// Applies a change to the tables.
pub(crate) fn apply(
    transaction: &WriteTransaction,
    id: JobId,
    change: StateChange,
    unpublished: &mut UnpublishedChanges,
) -> Result<(), StateError> {
    let job = id.0;
    match change {
        StateChange::Synced(path, entry) => {
            in_step(transaction, job, &path, &entry, UploadEnd::Left)?;
            unpublished.add(id, &path);
        }
        StateChange::Completed(path, entry) => {
            in_step(transaction, job, &path, &entry, UploadEnd::Over)?;
            unpublished.add(id, &path);
        }
        StateChange::Refreshed(path, entry) => {
            let key = (job, path.as_bytes());
            transaction
                .open_table(ENTRIES)?
                .insert(key, encode(&entry).as_slice())?;
        }
        StateChange::Removed(path) => {
            let key = (job, path.as_bytes());
            transaction.open_table(ENTRIES)?.remove(key)?;
            transaction.open_table(UNTOLD)?.insert(key, ())?;
            transaction.open_table(REPLACING)?.remove(key)?;
            transaction.open_table(DAMAGED)?.remove(key)?;
            end_upload(transaction, key, UploadEnd::Left)?;
            unpublished.add(id, &path);
        }
        StateChange::Damaged(path) => {
            let key = (job, path.as_bytes());
            transaction.open_table(DAMAGED)?.insert(key, ())?;
        }
        StateChange::Intact(path) => {
            let key = (job, path.as_bytes());
            transaction.open_table(DAMAGED)?.remove(key)?;
        }
        StateChange::Checked(record) => {
            transaction
                .open_table(CHECKS)?
                .insert(job, encode(&record).as_slice())?;
        }
        StateChange::Replacing(paths) => {
            let mut replacing = transaction.open_table(REPLACING)?;
            for path in paths {
                replacing.insert((job, path.as_bytes()), ())?;
            }
        }
        StateChange::Beginning(key) => {
            let key = (job, key.as_str());
            transaction.open_table(BEGINNING)?.insert(key, ())?;
        }
        StateChange::Certain(key) => {
            let key = (job, key.as_str());
            transaction.open_table(BEGINNING)?.remove(key)?;
        }
        StateChange::Begun(path, upload) => {
            let key = (job, path.as_bytes());
            end_upload(transaction, key, UploadEnd::Left)?;
            transaction
                .open_table(UPLOADS)?
                .insert(key, encode(&upload).as_slice())?;
        }
        StateChange::Arrived(path, index, part) => {
            let key = (job, path.as_bytes(), index);
            transaction
                .open_table(PARTS)?
                .insert(key, encode(&part).as_slice())?;
        }
        StateChange::Left(path) => {
            end_upload(transaction, (job, path.as_bytes()), UploadEnd::Left)?;
        }
        StateChange::Gone(path) => {
            end_upload(transaction, (job, path.as_bytes()), UploadEnd::Over)?;
        }
        StateChange::Aborted(name) => {
            let key = (job, name.as_str());
            transaction.open_table(LEFT)?.remove(key)?;
        }
        StateChange::Telling => {
            unpublished.0.insert(id, HashSet::new());
        }
        StateChange::Told(record) => {
            let changed = unpublished.0.remove(&id).unwrap_or_default();
            forget_untold(transaction, job, &changed)?;
            set_job(transaction, job, &record)?;
        }
        StateChange::Forgotten(record) => {
            forget_entries(transaction, job)?;
            set_job(transaction, job, &record)?;
        }
        StateChange::Moved(record) => {
            forget_entries(transaction, job)?;
            forget_uploads(transaction, job)?;
            set_job(transaction, job, &record)?;
        }
        StateChange::Job(record) => set_job(transaction, job, &record)?,
    }
    Ok(())
}

fn in_step(
    transaction: &WriteTransaction,
    job: u32,
    path: &TreePath,
    entry: &Synced,
    upload: UploadEnd,
) -> Result<(), StateError> {
    let key = (job, path.as_bytes());
    transaction
        .open_table(ENTRIES)?
        .insert(key, encode(entry).as_slice())?;
    transaction.open_table(UNTOLD)?.insert(key, ())?;
    transaction.open_table(REPLACING)?.remove(key)?;
    transaction.open_table(DAMAGED)?.remove(key)?;
    end_upload(transaction, key, upload)
}

fn forget_entries(transaction: &WriteTransaction, job: u32) -> Result<(), StateError> {
    forget_paths(transaction, UNTOLD, job)?;
    forget_paths(transaction, ENTRIES, job)?;
    forget_paths(transaction, DAMAGED, job)?;
    forget_paths(transaction, REPLACING, job)
}

fn forget_uploads(transaction: &WriteTransaction, job: u32) -> Result<(), StateError> {
    forget_paths(transaction, UPLOADS, job)?;
    let range = (job, &[][..], 0)..(job + 1, &[][..], 0);
    transaction
        .open_table(PARTS)?
        .retain_in::<(u32, &[u8], u32), _>(range, |_, _| false)?;
    transaction
        .open_table(BEGINNING)?
        .retain_in::<(u32, &str), _>(texts_of(job), |_, ()| false)?;
    transaction
        .open_table(LEFT)?
        .retain_in::<(u32, &str), _>(texts_of(job), |_, _| false)?;
    Ok(())
}

/// Removes all that a table by job and path has of a job.
fn forget_paths<V: Value>(
    transaction: &WriteTransaction,
    table: TableDefinition<(u32, &'static [u8]), V>,
    job: u32,
) -> Result<(), StateError> {
    transaction
        .open_table(table)?
        .retain_in::<(u32, &[u8]), _>(paths_of(job), |_, _| false)?;
    Ok(())
}

fn forget_untold(
    transaction: &WriteTransaction,
    job: u32,
    but: &HashSet<TreePath>,
) -> Result<(), StateError> {
    let but: HashSet<&[u8]> = but.iter().map(TreePath::as_bytes).collect();
    transaction
        .open_table(UNTOLD)?
        .retain_in::<(u32, &[u8]), _>(paths_of(job), |(_, path), ()| but.contains(path))?;
    Ok(())
}

fn end_upload(
    transaction: &WriteTransaction,
    key: (u32, &[u8]),
    end: UploadEnd,
) -> Result<(), StateError> {
    let had = transaction
        .open_table(UPLOADS)?
        .remove(key)?
        .map(|had| decode::<UploadRecord>(had.value()))
        .transpose()?;
    let Some(upload) = had else { return Ok(()) };
    let range = (key.0, key.1, 0)..=(key.0, key.1, u32::MAX);
    transaction
        .open_table(PARTS)?
        .retain_in::<(u32, &[u8], u32), _>(range, |_, _| false)?;
    if end == UploadEnd::Left {
        transaction
            .open_table(LEFT)?
            .insert((key.0, upload.name.as_str()), upload.key.as_str())?;
    }
    Ok(())
}

/// Notes a successful run of a job at a place, s since 1970.
pub(crate) fn succeeded(
    transaction: &WriteTransaction,
    name: &str,
    place: PlaceRecord,
    at: i64,
) -> Result<(), StateError> {
    let mut jobs = transaction.open_table(JOBS)?;
    let known = jobs.get(name)?.map(|known| {
        let (id, record) = known.value();
        decode::<JobRecord>(record).map(|record| (id, record))
    });
    if let Some(known) = known {
        let (id, mut record) = known?;
        record.succeeded = Some(at);
        record.place = Some(place);
        jobs.insert(name, (id, encode(&record).as_slice()))?;
    }
    Ok(())
}

fn set_job(transaction: &WriteTransaction, job: u32, record: &JobRecord) -> Result<(), StateError> {
    let mut jobs = transaction.open_table(JOBS)?;
    let mut name = None;
    for item in jobs.iter()? {
        let (key, value) = item?;
        if value.value().0 == job {
            name = Some(key.value().to_owned());
        }
    }
    if let Some(name) = name {
        jobs.insert(name.as_str(), (job, encode(record).as_slice()))?;
    }
    Ok(())
}
