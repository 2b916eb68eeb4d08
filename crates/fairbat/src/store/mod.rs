//! Files: names, part files, journals, and what an earlier run left.
//!
//! The rules (what may be resumed, what may be replaced) are decided here,
//! under a lock on the part file, so that two processes can never write the
//! same part. Blocking; nothing here knows HTTP requests or the queue.

pub mod error;
pub mod journal;
pub mod name;
pub mod part;

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use self::error::StoreError;
use self::journal::{Journal, Record, Version};
use self::name::FileName;
use self::part::{PartFile, Paths};
use crate::ranges::RangeSet;
use crate::settings::{FileAllocation, Target};

/// How many names `NAME.1`, `NAME.2`, … are tried before giving up.
const MAX_NAMES: u32 = 10_000;

/// What the server said about a file, as far as the disk is concerned.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The URL without credentials and query: for people.
    pub url: String,
    /// SHA-256 (hex) of the URL without credentials and fragment.
    pub resource: String,
    /// Size in bytes, if known.
    pub total: Option<u64>,
    /// What makes it resumable; `None` for a single stream.
    pub version: Option<Version>,
    /// Modification time at the server.
    pub modified: Option<SystemTime>,
    /// The name that the server or the URL suggests.
    pub name: FileName,
}

/// What [`Store::open`] found or made.
#[derive(Debug)]
pub enum Opened {
    /// The finished file is already there: same size and modification time as
    /// the server's.
    Complete(PathBuf),
    /// A part file, locked, of which `have` is already right.
    Part {
        /// The part file.
        part: Arc<PartFile>,
        /// Bytes that need not be fetched again.
        have: RangeSet,
        /// Why an earlier part was thrown away, if one was.
        restarted: Option<&'static str>,
    },
}

/// The files of one run.
#[derive(Debug)]
pub struct Store {
    resume: bool,
    allocation: FileAllocation,
    /// Targets that transfers of this run have taken, so that two URLs with
    /// the same file name do not meet.
    claimed: Mutex<HashSet<PathBuf>>,
}

impl Store {
    /// Files for one run; `resume` says whether earlier parts are continued.
    #[must_use]
    pub fn new(resume: bool, allocation: FileAllocation) -> Self {
        Self {
            resume,
            allocation,
            claimed: Mutex::default(),
        }
    }

    /// Finds the place for a file and what is already there of it.
    ///
    /// # Errors
    /// When the directory is missing or not writable, the target is a
    /// directory, the disk is too small, or another process has the part.
    pub fn open(&self, target: &Target, incoming: &Incoming) -> Result<Opened, StoreError> {
        match target {
            Target::File(path) => {
                self.claimed().insert(path.clone());
                match self.open_at(path.clone(), true, incoming)? {
                    Candidate::Taken => Err(StoreError::ForeignPart(Paths::of(path.clone()).part)),
                    Candidate::Opened(opened) => Ok(opened),
                }
            }
            Target::Directory(directory) => {
                for k in 0..MAX_NAMES {
                    let path = directory.join(nth_name(&incoming.name, k).as_str());
                    if !self.claimed().insert(path.clone()) {
                        continue;
                    }
                    match self.open_at(path.clone(), false, incoming) {
                        Ok(Candidate::Taken) => self.release(&path),
                        Ok(Candidate::Opened(opened)) => return Ok(opened),
                        Err(error) => {
                            self.release(&path);
                            return Err(error);
                        }
                    }
                }
                Err(StoreError::NoFreeName(
                    directory.join(incoming.name.as_str()),
                ))
            }
        }
    }

    /// Gives a target back, so that the same transfer can be opened again.
    pub fn release(&self, target: &std::path::Path) {
        self.claimed().remove(target);
    }

    fn claimed(&self) -> std::sync::MutexGuard<'_, HashSet<PathBuf>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries one target. `named` means that the user chose this very path.
    fn open_at(
        &self,
        target: PathBuf,
        named: bool,
        incoming: &Incoming,
    ) -> Result<Candidate, StoreError> {
        let paths = Paths::of(target);
        let left = Journal::read(&paths)?;
        match std::fs::symlink_metadata(&paths.target) {
            Ok(meta) if meta.is_dir() && named => {
                return Err(StoreError::IsDirectory(paths.target));
            }
            Ok(meta) if self.resume && is_complete(&meta, &paths, left.as_ref(), incoming) => {
                if !paths.part.exists() {
                    let _ = std::fs::remove_file(&paths.journal);
                }
                return Ok(Candidate::Opened(Opened::Complete(paths.target)));
            }
            Ok(_) if !named => return Ok(Candidate::Taken),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::io("look at", &paths.target, error));
            }
            Ok(_) | Err(_) => {}
        }
        if !named
            && left
                .as_ref()
                .is_some_and(|left| left.is_of_another(incoming))
        {
            return Ok(Candidate::Taken);
        }
        if left.is_none() && !paths.journal.exists() && paths.part.exists() {
            // Some other program's part file (browsers use the same suffix).
            return Ok(Candidate::Taken);
        }
        self.open_part(paths, incoming)
    }

    /// Locks the part file and decides what of it may be kept.
    fn open_part(&self, paths: Paths, incoming: &Incoming) -> Result<Candidate, StoreError> {
        let existed = paths.part.exists();
        let mut record = Record {
            url: incoming.url.clone(),
            resource: incoming.resource.clone(),
            version: incoming.version.clone(),
            synced: Vec::new(),
            boot: boot_id(),
        };
        if !existed {
            // The journal comes first: a part without one is not ours.
            part::write_record(&paths, &record, &RangeSet::new()).map_err(|error| {
                StoreError::write(&paths, incoming.total.unwrap_or_default(), error)
            })?;
        }
        let file = lock_part(&paths)?;
        let length = file
            .metadata()
            .map_err(|error| StoreError::io("look at", &paths.part, error))?
            .len();
        // Read again under the lock: another process may have moved on.
        let left = Journal::read(&paths)?.filter(|_| existed && length > 0);
        let mut have = RangeSet::new();
        let mut restarted = None;
        if let Some(left) = left.filter(|_| self.resume) {
            match reason_to_start_over(&left, incoming, length, &record.boot) {
                None => {
                    have = left.trusted(&record.boot);
                    record.synced = left.record.synced;
                }
                reason => restarted = reason,
            }
        }
        if have.is_empty() {
            file.set_len(0)
                .map_err(|error| StoreError::io("truncate", &paths.part, error))?;
        }
        let part = PartFile::new(file, paths, record, incoming.total, have.clone())?;
        match self.allocation {
            FileAllocation::Falloc => part.allocate()?,
            FileAllocation::None => {}
        }
        Ok(Candidate::Opened(Opened::Part {
            part: Arc::new(part),
            have,
            restarted,
        }))
    }
}

/// Whether a target can be used.
enum Candidate {
    /// Something else is there.
    Taken,
    Opened(Opened),
}

/// Whether the finished file is already in place: it has the server's size
/// and modification time, or the journal of a run that was killed between the
/// last rename and its clean-up says so.
fn is_complete(
    meta: &std::fs::Metadata,
    paths: &Paths,
    left: Option<&Journal>,
    incoming: &Incoming,
) -> bool {
    let Some(total) = incoming
        .total
        .filter(|&total| meta.is_file() && meta.len() == total)
    else {
        return false;
    };
    let same_time = incoming.modified.is_some_and(|modified| {
        let seconds = modified
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        u64::try_from(meta.mtime()) == Ok(seconds.as_secs()) && meta.mtime_nsec() == 0
    });
    let just_renamed = !paths.part.exists()
        && left.is_some_and(|left| {
            let Journal { record, .. } = left;
            record.resource == incoming.resource
                && is_same_version(record, incoming)
                && record.version.is_some()
                && record.synced.as_slice() == [(0, total)]
        });
    same_time || just_renamed
}

fn is_same_version(record: &Record, incoming: &Incoming) -> bool {
    match (&record.version, &incoming.version) {
        (Some(old), Some(new)) => old.total == new.total && old.validator == new.validator,
        (None, _) | (_, None) => false,
    }
}

/// Why an earlier part cannot be continued, if it cannot.
fn reason_to_start_over(
    left: &Journal,
    incoming: &Incoming,
    length: u64,
    boot: &str,
) -> Option<&'static str> {
    // A stream always starts over; that is no news.
    left.record.version.as_ref()?;
    if incoming.version.is_none() {
        return Some("the server no longer serves ranges of this file");
    }
    if !is_same_version(&left.record, incoming) {
        return Some("the file has changed on the server");
    }
    if left.is_of_another(incoming) && !incoming.has_strong_tag() {
        return Some("it belongs to another URL");
    }
    let end = left
        .trusted(boot)
        .iter()
        .last()
        .map_or(0, |range| range.end);
    (end > length).then_some("the part file is shorter than its journal says")
}

impl Incoming {
    /// A strong entity tag names the same bytes under whatever URL (a signed
    /// URL changes with every visit); a date does not.
    fn has_strong_tag(&self) -> bool {
        self.version
            .as_ref()
            .is_some_and(|version| version.validator.is_strong_tag())
    }
}

impl Journal {
    /// The journal an earlier run left, if there is one that can be read.
    fn read(paths: &Paths) -> Result<Option<Self>, StoreError> {
        match std::fs::read(&paths.journal) {
            Ok(bytes) => match Self::decode(&bytes) {
                Ok(journal) => Ok(Some(journal)),
                Err(error) => {
                    tracing::warn!(journal = %paths.journal.display(), %error, "starting over");
                    Ok(None)
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io("read", &paths.journal, error)),
        }
    }

    fn is_of_another(&self, incoming: &Incoming) -> bool {
        self.record.resource != incoming.resource
    }
}

/// NAME, then NAME.1, NAME.2, …
fn nth_name(name: &FileName, k: u32) -> FileName {
    if k == 0 {
        name.clone()
    } else {
        name.numbered(k)
    }
}

/// Opens the part file and takes the lock that makes this process its owner.
fn lock_part(paths: &Paths) -> Result<File, StoreError> {
    let failed = |error| StoreError::io("open", &paths.part, error);
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&paths.part)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(StoreError::Busy(paths.part.clone()));
            }
            // No locks here (some network file systems): go on without.
            Err(std::fs::TryLockError::Error(error)) => {
                tracing::warn!(%error, "part file cannot be locked");
            }
        }
        // The owner before us may have renamed it between open and lock.
        let here = file.metadata().map_err(failed)?;
        match std::fs::metadata(&paths.part) {
            Ok(there) if there.ino() == here.ino() && there.dev() == here.dev() => return Ok(file),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Identifies this run of the kernel; empty when it does not tell, which
/// trusts no tail.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
