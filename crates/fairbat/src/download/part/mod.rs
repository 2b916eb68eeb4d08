//! Files: part files, journals, and what an earlier run left.
//!
//! The rules of what may be resumed and what may be replaced are here. They apply under a
//! lock on the part file, so that two processes do not write the same part. All calls block.

pub mod file;
pub mod journal;
mod owner;
mod paths;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::file::PartFile;
use self::journal::{Journal, JournalRecord};
pub use self::paths::PartError;
use self::paths::Paths;
use crate::file_name::FileName;
use crate::http::validator::{Validator, Version};
use crate::ranges::RangeSet;
use crate::settings::{FileAllocation, Target};

/// How many names `NAME.1`, `NAME.2`, … are tried before giving up.
const MAX_NAMES: u32 = 10_000;

/// What the server said about a file that matters for the disk.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The URL without credentials and query.
    pub url: String,
    /// SHA-256 (hex) of the URL without credentials and fragment.
    pub resource: String,
    /// The same of all URLs that the user takes for those of the same file. What came from one of
    /// them is in the part file of this download, but not continued from another one.
    pub others: Vec<String>,
    /// Those of them that may be asked after this one. What came from one of these is left to it.
    pub awaited: Vec<String>,
    /// What the hash of the file is called, if one is known. Under the same hash, what came from
    /// one server is continued from another one.
    pub hash: Option<String>,
    /// Size in bytes, if known.
    pub total: Option<u64>,
    /// What tells this version from others, if anything does.
    pub validator: Option<Validator>,
    /// What ranges are checked against; `None` for a single stream.
    pub version: Option<Version>,
    /// The name that the server or the URL suggests.
    pub name: FileName,
    /// Whether bytes that an earlier run left may be thrown away although the
    /// server has not shown that they belong to another version.
    pub start_over: bool,
}

/// What [`PartStore::open`] found or made.
#[derive(Debug)]
pub enum OpenedPart {
    /// The finished file is already there, from this very version.
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
    /// An earlier run left bytes, and the server's answer does not say what
    /// version it is of. Nothing was touched; see [`Incoming::start_over`].
    Unidentified,
    /// There are bytes that only another source can continue, and may: another one sent them, or
    /// they are of a file of another length with the same hash. Nothing was touched; see
    /// [`Incoming::awaited`].
    OfAnother,
}

/// The files of one run.
#[derive(Debug)]
pub struct PartStore {
    resume: bool,
    allocation: FileAllocation,
    /// Targets that transfers of this run have taken, so that two URLs with
    /// the same file name do not meet.
    claimed: Mutex<HashSet<PathBuf>>,
}

impl PartStore {
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
    /// When the directory cannot be made or written to, the target is anything
    /// but a file, the disk is too small, or another process or user has the part.
    pub fn open(&self, target: &Target, incoming: &Incoming) -> Result<OpenedPart, PartError> {
        match target {
            Target::File(path) => self.open_named(path, incoming),
            Target::FileIn { directory, file } => {
                paths::make_directory(directory)?;
                self.open_named(&directory.join(file), incoming)
            }
            Target::Directory(directory) => {
                paths::make_directory(directory)?;
                self.open_in(directory, incoming)
            }
        }
    }

    /// Whether there is a file with this name at the target, or a part of one.
    #[must_use]
    pub fn may_have(&self, target: &Target, name: &FileName) -> bool {
        let path = match target {
            Target::File(path) => path.clone(),
            Target::FileIn { directory, file } => directory.join(file),
            Target::Directory(directory) => directory.join(name.as_str()),
        };
        let Paths { target, part, .. } = Paths::of(path);
        [target, part]
            .iter()
            .any(|path| path.symlink_metadata().is_ok())
    }

    /// The file that the user named.
    fn open_named(&self, path: &Path, incoming: &Incoming) -> Result<OpenedPart, PartError> {
        let paths = Paths::of(regular_file(path)?);
        owner::check_target(&paths)?;
        let part = paths.part.clone();
        self.claimed().insert(paths.target.clone());
        self.open_at(paths, true, incoming)?
            .ok_or(PartError::ForeignPart(part))
    }

    /// Gives a target back, so that the same transfer can be opened again.
    pub fn release(&self, target: &Path) {
        self.claimed().remove(target);
    }

    fn claimed(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first of NAME, NAME.1, NAME.2, … that is free or this user's.
    fn open_in(&self, directory: &Path, incoming: &Incoming) -> Result<OpenedPart, PartError> {
        let name = &incoming.name;
        for k in 0..MAX_NAMES {
            let name = if k == 0 {
                name.clone()
            } else {
                name.numbered(k)
            };
            let path = directory.join(name.as_str());
            if !self.claimed().insert(path.clone()) {
                continue;
            }
            match self.open_at(Paths::of(path.clone()), false, incoming) {
                Ok(Some(opened @ (OpenedPart::Complete(_) | OpenedPart::Part { .. }))) => {
                    return Ok(opened);
                }
                other => {
                    self.release(&path);
                    match other {
                        Err(error @ PartError::NotOwn(_)) => {
                            tracing::warn!("{error}: the download gets another name");
                        }
                        Ok(None) => {}
                        Ok(Some(opened)) => return Ok(opened),
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Err(PartError::NoFreeName(directory.join(name.as_str())))
    }

    /// Tries one target; `None` when something else is there. `named` means
    /// that the user chose this very path.
    fn open_at(
        &self,
        paths: Paths,
        named: bool,
        incoming: &Incoming,
    ) -> Result<Option<OpenedPart>, PartError> {
        match fs::symlink_metadata(&paths.target) {
            Ok(_) if self.resume && incoming.is_at(&paths) => {
                // Left by a run that was killed in its very last step.
                let _ = paths.remove_journal();
                return Ok(Some(OpenedPart::Complete(paths.target)));
            }
            Ok(_) if !named => {
                if self.resume && incoming.may_be_at(&paths) {
                    tracing::warn!(
                        "{} may be this file, but the server did not say for certain which \
                         version it sent (it cannot for a file that changed in the last second): \
                         it is fetched again, under another name",
                        paths.target.display()
                    );
                }
                return Ok(None);
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(PartError::io("look at", &paths.target, error));
            }
            Ok(_) | Err(_) => {}
        }
        owner::check_working_files(&paths)?;
        let locked = owner::lock(&paths)?;
        let found = Journal::read(&paths)?;
        if let FoundJournal::Journal(journal) = &found
            && !named
            && !incoming.may_continue(&journal.record)
            && !incoming.is_of_another_source(&journal.record)
        {
            return Ok(None);
        }
        let Some(file) = locked else {
            return Err(PartError::Busy(paths.part));
        };
        let metadata = file
            .metadata()
            .map_err(|error| PartError::io("look at", &paths.part, error))?;
        let length = metadata.len();
        let left = match found {
            FoundJournal::Journal(journal) => Some(*journal),
            // Some other program's part file: browsers use the same suffix.
            FoundJournal::Nothing if length > 0 && !owner::is_marked_part(&file) => {
                return Ok(None);
            }
            FoundJournal::Damaged | FoundJournal::Nothing => None,
        };
        self.open_part(paths, file, left.filter(|_| length > 0), incoming)
            .map(Some)
    }

    /// Decides what may be kept of a part that fairbat made.
    fn open_part(
        &self,
        paths: Paths,
        file: File,
        left: Option<Journal>,
        incoming: &Incoming,
    ) -> Result<OpenedPart, PartError> {
        owner::mark_part(&file);
        let mut record = JournalRecord {
            url: incoming.url.clone(),
            resource: incoming.resource.clone(),
            version: incoming.version.clone(),
            hash: incoming.hash.clone().filter(|_| incoming.others.len() > 1),
            synced: Vec::new(),
            instance: owner::instance(&file),
        };
        let mut have = RangeSet::new();
        let mut restarted = None;
        if let Some(left) = left.filter(|_| self.resume) {
            let trusted = left.trusted(&record.instance);
            let is_of_another = incoming.is_of_another_source(&left.record);
            let has_other_length = incoming.has_other_length(&left.record);
            let is_awaited = match has_other_length {
                true => !incoming.awaited.is_empty(),
                false => is_of_another && incoming.awaited.contains(&left.record.resource),
            };
            if is_awaited && !trusted.is_empty() {
                return Ok(OpenedPart::OfAnother);
            }
            let may_be_lost = incoming.start_over || is_of_another || has_other_length;
            if incoming.version.is_none() && !trusted.is_empty() && !may_be_lost {
                return Ok(OpenedPart::Unidentified);
            }
            match reason_to_start_over(&left.record, &trusted, incoming, &file) {
                None => {
                    have = trusted;
                    record.synced = left.record.synced;
                }
                reason => restarted = reason.filter(|_| !trusted.is_empty()),
            }
        }
        if have.is_empty() {
            file.set_len(0)
                .map_err(|error| PartError::io("truncate", &paths.part, error))?;
        }
        let part = PartFile::new(
            file,
            paths,
            record,
            incoming.total,
            incoming.identity(),
            have.clone(),
        )?;
        match self.allocation {
            FileAllocation::Falloc => part.allocate()?,
            FileAllocation::None => {}
        }
        Ok(OpenedPart::Part {
            part: Arc::new(part),
            have,
            restarted,
        })
    }
}

/// Where a path that the user named leads: a regular file, or nothing yet.
fn regular_file(path: &Path) -> Result<PathBuf, PartError> {
    let failed = |error| PartError::io("look at", path, error);
    let path = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path.to_owned()),
        // Somebody else's link would choose the file that is replaced.
        Ok(meta) if meta.is_symlink() && !owner::may_follow(&meta) => {
            return Err(PartError::LinkNotOwn(path.to_owned()));
        }
        Ok(meta) if meta.is_symlink() => {
            fs::canonicalize(path).map_err(|error| PartError::io("follow the link", path, error))?
        }
        Ok(_) => path.to_owned(),
        Err(error) => return Err(failed(error)),
    };
    let meta = fs::metadata(&path).map_err(failed)?;
    match () {
        () if meta.is_dir() => Err(PartError::IsDirectory(path)),
        () if !meta.is_file() => Err(PartError::NotAFile(path)),
        () => Ok(path),
    }
}

/// Why an earlier part cannot be continued; `None` if it can.
fn reason_to_start_over(
    left: &JournalRecord,
    trusted: &RangeSet,
    incoming: &Incoming,
    part: &File,
) -> Option<&'static str> {
    if incoming.is_of_another_source(left) {
        return Some("it came from another server");
    }
    if incoming.version.is_none() {
        return Some("the server no longer serves ranges of this file");
    }
    let is_same = incoming.has_hash_of(left);
    if incoming.has_other_length(left) {
        return Some("the file has another length now");
    }
    if !is_same && left.hash.is_some() {
        return Some("bytes of several servers are in it, under another hash");
    }
    if !is_same && left.version != incoming.version {
        return Some("the file has changed on the server");
    }
    if !is_same && !incoming.may_continue(left) {
        return Some("it belongs to another URL");
    }
    let length = part.metadata().map_or(0, |meta| meta.len());
    let end = trusted.iter().last().map_or(0, |range| range.end);
    (end > length).then_some("the part file is shorter than its journal says")
}

fn length_of(version: &Option<Version>) -> Option<u64> {
    version.as_ref().map(|version| version.total)
}

impl Incoming {
    /// Whether a part with this record may be of the same file. It may with the same URL, or
    /// with one that differs in the query only (signed URLs change with every visit) and has
    /// the same strong tag and length. A tag is unique under its own URL only.
    fn may_continue(&self, left: &JournalRecord) -> bool {
        left.resource == self.resource
            || self.has_hash_of(left)
            || left.url == self.url
                && !self.is_of_another_source(left)
                && self.has_strong_tag()
                && left.version == self.version
    }

    /// Whether a part with this record is of this download, but of another one of its sources.
    /// Between these not even a strong tag proves anything.
    fn is_of_another_source(&self, left: &JournalRecord) -> bool {
        left.resource != self.resource
            && self.others.contains(&left.resource)
            && !self.has_hash_of(left)
    }

    /// Whether a part with this record is of the same file by its hash and its length. The hash is
    /// compared before the file gets its name.
    fn has_hash_of(&self, left: &JournalRecord) -> bool {
        self.is_under_hash_of(left) && length_of(&left.version) == length_of(&self.version)
    }

    fn is_under_hash_of(&self, left: &JournalRecord) -> bool {
        left.hash.is_some() && left.hash == self.hash
    }

    /// Whether a part with this record has the hash of this file, and another length: one of the
    /// servers is wrong.
    fn has_other_length(&self, left: &JournalRecord) -> bool {
        let lengths = length_of(&left.version).zip(length_of(&self.version));
        self.is_under_hash_of(left) && lengths.is_some_and(|(left, now)| left != now)
    }

    fn has_strong_tag(&self) -> bool {
        self.validator
            .as_ref()
            .is_some_and(Validator::is_strong_tag)
    }

    /// What a finished file of this version is labelled with; `None` if
    /// nothing identifies it.
    fn identity(&self) -> Option<String> {
        let validator = serde_json::to_string(self.validator.as_ref()?).ok()?;
        let whence = if self.has_strong_tag() {
            &self.url
        } else {
            &self.resource
        };
        Some(format!("{whence}\n{validator}"))
    }

    /// Whether this very version is already in place.
    fn is_at(&self, paths: &Paths) -> bool {
        self.identity()
            .is_some_and(|identity| owner::has_label(paths, &identity))
    }

    /// Whether a file of an earlier run is in place, and nothing identified its version then
    /// or nothing identifies this one.
    fn may_be_at(&self, paths: &Paths) -> bool {
        owner::own_label(paths)
            .is_some_and(|(label, _)| label.is_empty() || self.identity().is_none())
    }
}

/// What stands where a journal should be.
enum FoundJournal {
    Nothing,
    Damaged,
    Journal(Box<Journal>),
}

impl Journal {
    fn read(paths: &Paths) -> Result<FoundJournal, PartError> {
        let Some(bytes) = owner::read_journal(paths)? else {
            return Ok(FoundJournal::Nothing);
        };
        Ok(match Self::decode(&bytes) {
            Ok(journal) => FoundJournal::Journal(Box::new(journal)),
            Err(error) => {
                tracing::warn!(journal = %paths.journal.display(), %error, "starting over");
                FoundJournal::Damaged
            }
        })
    }
}
