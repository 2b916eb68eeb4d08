//! What is to be remembered, and how it changes the tables.

use std::collections::{HashMap, HashSet};

use redb::{ReadableTable, WriteTransaction};

use super::record::{decode, encode};
use super::{
    BEGINNING, ENTRIES, JOBS, JobId, JobRecord, LEFT, PARTS, PlaceRecord, REPLACING, StateError,
    Synced, SyncedKind, UNTOLD, UPLOADS, UploadRecord, UploadedPart,
};
use crate::entry::TreePath;

/// What is to be remembered of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateChange {
    /// An entry is in step, as it is here; an upload of it that was under way is
    /// left. The manifest does not know yet.
    Synced(TreePath, Synced),
    /// The same, by an upload in parts that is complete.
    Completed(TreePath, Synced),
    /// An entry is as it was, but for what the state alone keeps.
    Refreshed(TreePath, Synced),
    /// An entry is gone from the store; an upload of it is left. The manifest does
    /// not know yet.
    Removed(TreePath),
    /// The objects of these entries may be replaced or deleted from now on: what is
    /// remembered of them is not to be relied on until they are in step again.
    Replacing(Vec<TreePath>),
    /// An upload for this key may begin from now on, and nobody may hear its name.
    Beginning(String),
    /// All uploads for this key are known.
    Certain(String),
    /// An upload in parts was begun; an earlier one is left.
    Begun(TreePath, UploadRecord),
    /// The store has this part of an upload.
    Arrived(TreePath, u32, UploadedPart),
    /// An upload is left: nobody will continue it, and the store still has it.
    Left(TreePath),
    /// An upload is gone from the store.
    Gone(TreePath),
    /// An upload that was left, by its name, is gone from the store.
    Aborted(String),
    /// The manifest is about to be told what it has not been told by now.
    Telling,
    /// The manifest has that.
    Told(JobRecord),
    /// What is known of the job.
    Job(JobRecord),
    /// Nothing of a job is in step; and what else is known of it.
    Forgotten(JobRecord),
    /// The same, and nothing is known of its uploads: the job has another store,
    /// which has none of them.
    Moved(JobRecord),
}

impl StateChange {
    /// What would have to be sent again if it were forgotten, bytes.
    pub(super) fn at_risk(&self) -> u64 {
        match self {
            // A part takes longer to send again than a commit.
            Self::Arrived(..) => u64::MAX,
            Self::Synced(_, entry) | Self::Completed(_, entry) => match &entry.kind {
                SyncedKind::File { state, .. } => state.size,
                SyncedKind::Directory | SyncedKind::Symlink(_) => 0,
            },
            _ => 0,
        }
    }
}

/// What has changed since a manifest was begun that is not told yet: the paths, by
/// job. That manifest does not have them, whatever becomes of it.
#[derive(Debug, Default)]
pub(super) struct Telling(HashMap<JobId, HashSet<TreePath>>);

impl Telling {
    fn missed(&mut self, job: JobId, path: &TreePath) {
        if let Some(missed) = self.0.get_mut(&job) {
            missed.insert(path.clone());
        }
    }
}

/// What becomes of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The store does not have it any more.
    Over,
    /// It is to be given up.
    Left,
}

/// Writes a change down.
pub(super) fn apply(
    transaction: &WriteTransaction,
    id: JobId,
    change: StateChange,
    telling: &mut Telling,
) -> Result<(), StateError> {
    let job = id.0;
    match change {
        StateChange::Synced(path, entry) => {
            in_step(transaction, job, &path, &entry, Fate::Left)?;
            telling.missed(id, &path);
        }
        StateChange::Completed(path, entry) => {
            in_step(transaction, job, &path, &entry, Fate::Over)?;
            telling.missed(id, &path);
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
            end_upload(transaction, key, Fate::Left)?;
            telling.missed(id, &path);
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
            end_upload(transaction, key, Fate::Left)?;
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
        StateChange::Left(path) => end_upload(transaction, (job, path.as_bytes()), Fate::Left)?,
        StateChange::Gone(path) => end_upload(transaction, (job, path.as_bytes()), Fate::Over)?,
        StateChange::Aborted(name) => {
            let key = (job, name.as_str());
            transaction.open_table(LEFT)?.remove(key)?;
        }
        StateChange::Telling => {
            telling.0.insert(id, HashSet::new());
        }
        StateChange::Told(record) => {
            let missed = telling.0.remove(&id).unwrap_or_default();
            forget_untold(transaction, job, &missed)?;
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
    upload: Fate,
) -> Result<(), StateError> {
    let key = (job, path.as_bytes());
    transaction
        .open_table(ENTRIES)?
        .insert(key, encode(entry).as_slice())?;
    transaction.open_table(UNTOLD)?.insert(key, ())?;
    transaction.open_table(REPLACING)?.remove(key)?;
    end_upload(transaction, key, upload)
}

fn forget_entries(transaction: &WriteTransaction, job: u32) -> Result<(), StateError> {
    forget_untold(transaction, job, &HashSet::new())?;
    let range = (job, &[][..])..(job + 1, &[][..]);
    transaction
        .open_table(ENTRIES)?
        .retain_in::<(u32, &[u8]), _>(range.clone(), |_, _| false)?;
    transaction
        .open_table(REPLACING)?
        .retain_in::<(u32, &[u8]), _>(range, |_, ()| false)?;
    Ok(())
}

fn forget_uploads(transaction: &WriteTransaction, job: u32) -> Result<(), StateError> {
    let range = (job, &[][..])..(job + 1, &[][..]);
    transaction
        .open_table(UPLOADS)?
        .retain_in::<(u32, &[u8]), _>(range, |_, _| false)?;
    let range = (job, &[][..], 0)..(job + 1, &[][..], 0);
    transaction
        .open_table(PARTS)?
        .retain_in::<(u32, &[u8], u32), _>(range, |_, _| false)?;
    let range = (job, "")..(job + 1, "");
    transaction
        .open_table(BEGINNING)?
        .retain_in::<(u32, &str), _>(range.clone(), |_, ()| false)?;
    transaction
        .open_table(LEFT)?
        .retain_in::<(u32, &str), _>(range, |_, _| false)?;
    Ok(())
}

fn forget_untold(
    transaction: &WriteTransaction,
    job: u32,
    but: &HashSet<TreePath>,
) -> Result<(), StateError> {
    let but: HashSet<&[u8]> = but.iter().map(TreePath::as_bytes).collect();
    let range = (job, &[][..])..(job + 1, &[][..]);
    transaction
        .open_table(UNTOLD)?
        .retain_in::<(u32, &[u8]), _>(range, |(_, path), ()| but.contains(path))?;
    Ok(())
}

fn end_upload(
    transaction: &WriteTransaction,
    key: (u32, &[u8]),
    fate: Fate,
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
    if fate == Fate::Left {
        transaction
            .open_table(LEFT)?
            .insert((key.0, upload.name.as_str()), upload.key.as_str())?;
    }
    Ok(())
}

pub(super) fn succeeded(
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
