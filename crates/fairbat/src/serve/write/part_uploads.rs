//! The uploads in parts that a server knows: what has come of each, the requests that work on it,
//! and for a while the answer to the one that completed it.
//!
//! A part is written in its place. So from its first byte on, nothing that came there before
//! counts, and the part itself counts when all of it is there. Of two parts that overlap, the
//! newer one counts: its client may have lost the connection of the older one, which the server
//! cannot know.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::refusal::Refusal;
use super::unfinished::{Arrived, ExpectedContent, UnfinishedFile, lock};
use crate::clock::Clock;
use crate::ranges::RangeSet;

/// Missing ranges that an answer names. The first ones are enough to go on.
const MAX_NAMED: usize = 16;

/// Parts of an upload that may be under way at once.
const MAX_UNDER_WAY: usize = 16;

/// Runs of bytes of one upload that may come apart from each other. Each costs memory, and the parts
/// of a client are few. One with more is given up.
const MAX_RUNS: usize = 65_536;

/// Complete uploads whose answers are remembered.
const MAX_REMEMBERED: usize = 1024;

/// An upload in parts that is not complete.
#[derive(Debug)]
pub(crate) struct PartUpload {
    pub(crate) name: PathBuf,
    /// Length of the file, bytes.
    pub(crate) total: u64,
    pub(crate) expected: ExpectedContent,
    pub(crate) file: Arc<UnfinishedFile>,
    /// Held by a request that completes the upload or gives it up. Then what became of the
    /// file, once it has its name.
    pub(crate) outcome: Arc<tokio::sync::Mutex<Option<Arrived>>>,
    progress: Mutex<Progress>,
    usage: Mutex<Usage>,
}

/// The bytes of an upload.
#[derive(Debug, Default)]
struct Progress {
    /// Those of whole parts.
    came: RangeSet,
    /// Those of parts that are under way; no two of them overlap.
    under_way: Vec<(Range<u64>, Arc<AtomicBool>)>,
    /// Whether no more parts are taken.
    is_closed: bool,
}

impl Progress {
    /// A part begins. Returns its mark, which is set when a newer part overlaps it, and whether
    /// this one overlaps an older one.
    fn begin(&mut self, range: &Range<u64>) -> Result<(Arc<AtomicBool>, bool), Refusal> {
        if self.is_closed {
            return Err(Refusal::Closed);
        }
        let is_apart = |other: &Range<u64>| other.end <= range.start || range.end <= other.start;
        let apart = self.under_way.iter().filter(|(other, _)| is_apart(other));
        if apart.count() >= MAX_UNDER_WAY {
            return Err(Refusal::ManyParts);
        }
        if self.came.runs() >= MAX_RUNS {
            self.is_closed = true;
            return Err(Refusal::Closed);
        }
        let before = self.under_way.len();
        self.under_way.retain(|(other, is_overtaken)| {
            let is_apart = is_apart(other);
            is_overtaken.store(!is_apart, Ordering::Relaxed);
            is_apart
        });
        let overtakes = self.under_way.len() < before;
        self.came.remove(range.clone());
        let is_overtaken = Arc::default();
        self.under_way
            .push((range.clone(), Arc::clone(&is_overtaken)));
        Ok((is_overtaken, overtakes))
    }

    /// A part is over; returns whether it was one of those under way.
    fn end(&mut self, is_overtaken: &Arc<AtomicBool>) -> bool {
        let before = self.under_way.len();
        let is_other = |other: &Arc<AtomicBool>| !Arc::ptr_eq(other, is_overtaken);
        self.under_way.retain(|(_, other)| is_other(other));
        self.under_way.len() < before
    }

    /// The ranges that have not come, in words; `None` if all have.
    fn missing(&self, total: u64) -> Option<String> {
        let mut missing = String::new();
        for (index, gap) in self.came.gaps(total).enumerate() {
            if index == MAX_NAMED {
                missing.push_str(", and more");
                break;
            }
            let comma = if index == 0 { "" } else { ", " };
            let _ = write!(missing, "{comma}{}-{}", gap.start, gap.end - 1);
        }
        (!missing.is_empty()).then_some(missing)
    }
}

/// A part that is under way, until it is dropped. Whoever writes its bytes holds it.
#[derive(Debug)]
pub(crate) struct PartUnderWay {
    upload: Arc<PartUpload>,
    range: Range<u64>,
    is_overtaken: Arc<AtomicBool>,
}

impl PartUnderWay {
    /// Whether its bytes may still be written.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.is_overtaken.load(Ordering::Relaxed)
    }

    /// All of it has come.
    pub(crate) fn has_come(self) -> Result<(), Refusal> {
        let mut progress = lock(&self.upload.progress);
        if !progress.end(&self.is_overtaken) {
            return Err(Refusal::Overtaken);
        }
        progress.came.insert(self.range.clone());
        Ok(())
    }
}

impl Drop for PartUnderWay {
    fn drop(&mut self) {
        lock(&self.upload.progress).end(&self.is_overtaken);
    }
}

/// Whether anybody still works on an upload.
#[derive(Debug, Clone, Copy)]
struct Usage {
    /// Requests under way.
    requests: usize,
    /// When the last one ended.
    ended: Duration,
}

impl Usage {
    /// How long it may still be unused; zero when it is given up.
    fn left(self, now: Duration, limit: Duration) -> Duration {
        match self.requests {
            0 => (self.ended + limit).saturating_sub(now),
            _ => limit,
        }
    }
}

/// A request that works on an upload, until it is dropped.
pub(crate) struct UploadUse {
    pub(crate) upload: Arc<PartUpload>,
    clock: Clock,
}

impl Drop for UploadUse {
    fn drop(&mut self) {
        let mut usage = lock(&self.upload.usage);
        usage.requests -= 1;
        usage.ended = self.clock.now();
    }
}

impl PartUpload {
    /// One of which nothing has come yet.
    pub(crate) fn new(
        name: PathBuf,
        total: u64,
        expected: ExpectedContent,
        file: UnfinishedFile,
        now: Duration,
    ) -> Self {
        Self {
            name,
            total,
            expected,
            file: Arc::new(file),
            outcome: Arc::default(),
            progress: Mutex::default(),
            usage: Mutex::new(Usage {
                requests: 0,
                ended: now,
            }),
        }
    }

    /// A part begins: its bytes do not count until all of it has come. Nothing of an older part
    /// is written there any more. Blocking.
    pub(crate) fn begin_part(self: &Arc<Self>, range: Range<u64>) -> Result<PartUnderWay, Refusal> {
        let (is_overtaken, overtakes) = lock(&self.progress).begin(&range)?;
        let part = PartUnderWay {
            upload: Arc::clone(self),
            range,
            is_overtaken,
        };
        if overtakes {
            // The next write sees the mark.
            drop(self.file.alone());
        }
        Ok(part)
    }

    /// Takes no more parts, if all have come.
    pub(crate) fn close(&self) -> Result<(), Refusal> {
        let mut progress = lock(&self.progress);
        if progress.is_closed {
            return Err(Refusal::UnknownUpload);
        }
        if let Some(missing) = progress.missing(self.total) {
            return Err(Refusal::Missing(missing));
        }
        progress.is_closed = true;
        Ok(())
    }

    /// Takes no more parts, whatever has come, and nothing more of those under way.
    pub(crate) fn close_for_ever(&self) {
        let mut progress = lock(&self.progress);
        progress.is_closed = true;
        for (_, is_overtaken) in progress.under_way.drain(..) {
            is_overtaken.store(true, Ordering::Relaxed);
        }
    }

    /// Takes parts again.
    pub(crate) fn reopen(&self) {
        lock(&self.progress).is_closed = false;
    }
}

/// What is known under an ID.
#[derive(Debug)]
enum KnownUpload {
    Unfinished(Arc<PartUpload>),
    Complete(Completed),
}

/// An upload that is complete.
#[derive(Debug)]
struct Completed {
    name: PathBuf,
    arrived: Arrived,
    at: Duration,
}

impl KnownUpload {
    fn name(&self) -> &Path {
        match self {
            Self::Unfinished(upload) => &upload.name,
            Self::Complete(completed) => &completed.name,
        }
    }

    /// How long it may still be unused; zero when it is forgotten.
    fn left(&self, now: Duration, limit: Duration) -> Duration {
        match self {
            Self::Unfinished(upload) => lock(&upload.usage).left(now, limit),
            Self::Complete(completed) => (completed.at + limit).saturating_sub(now),
        }
    }
}

/// The upload that a request names.
pub(crate) enum Named {
    Unfinished(UploadUse),
    Complete(Arrived),
}

/// The uploads in parts, by their IDs. Each one that is not complete takes one of the slots for
/// uploads.
#[derive(Debug, Default)]
pub(crate) struct PartUploads(Mutex<Ids>);

#[derive(Debug, Default)]
struct Ids {
    known: HashMap<String, KnownUpload>,
    /// Whether a task forgets those that are unused.
    is_swept: bool,
}

impl PartUploads {
    /// Returns whether the caller has to begin a task that sweeps.
    pub(crate) fn add(&self, id: String, upload: PartUpload) -> bool {
        let mut ids = lock(&self.0);
        ids.known
            .insert(id, KnownUpload::Unfinished(Arc::new(upload)));
        !std::mem::replace(&mut ids.is_swept, true)
    }

    /// The upload of this ID and name, for a request that begins now.
    pub(crate) fn of(&self, id: &str, name: &Path, clock: Clock) -> Result<Named, Refusal> {
        let ids = lock(&self.0);
        let known = ids.known.get(id).filter(|known| known.name() == name);
        Ok(match known.ok_or(Refusal::UnknownUpload)? {
            KnownUpload::Unfinished(upload) => {
                lock(&upload.usage).requests += 1;
                let upload = Arc::clone(upload);
                Named::Unfinished(UploadUse { upload, clock })
            }
            KnownUpload::Complete(completed) => Named::Complete(completed.arrived),
        })
    }

    /// Forgets what was unused for so long, also unfinished files. Returns when to do so again;
    /// `None` if nothing is left.
    pub(crate) fn sweep(&self, now: Duration, limit: Duration) -> Option<Duration> {
        let mut ids = lock(&self.0);
        let is_due = |known: &KnownUpload| known.left(now, limit).is_zero();
        let due = ids.known.iter().filter(|(_, known)| is_due(known));
        let due: Vec<String> = due.map(|(id, _)| id.clone()).collect();
        let forgotten: Vec<KnownUpload> =
            due.iter().filter_map(|id| ids.known.remove(id)).collect();
        let left = ids.known.values().map(|known| known.left(now, limit));
        let next = left.min();
        ids.is_swept = next.is_some();
        drop(ids);
        if forgotten
            .iter()
            .any(|it| matches!(it, KnownUpload::Unfinished(_)))
        {
            tracing::info!("an upload in parts was unused for {limit:?} and is given up");
        }
        next
    }

    /// Forgets an upload. Its file is removed.
    pub(crate) fn remove(&self, id: &str) {
        let removed = lock(&self.0).known.remove(id);
        drop(removed);
    }

    /// Remembers that an upload is complete.
    pub(crate) fn complete(&self, id: String, name: PathBuf, arrived: Arrived, now: Duration) {
        let completed = Completed {
            name,
            arrived,
            at: now,
        };
        let mut ids = lock(&self.0);
        let replaced = ids.known.insert(id, KnownUpload::Complete(completed));
        let complete = ids.known.iter().filter_map(|(id, known)| match known {
            KnownUpload::Complete(completed) => Some((completed.at, id)),
            KnownUpload::Unfinished(_) => None,
        });
        let complete: Vec<_> = complete.collect();
        if complete.len() > MAX_REMEMBERED {
            let oldest = complete.iter().min().map(|(_, id)| (*id).clone());
            oldest.and_then(|id| ids.known.remove(&id));
        }
        drop(ids);
        drop(replaced);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_given_up_when_it_is_unused() {
        let (ended, limit) = (Duration::from_secs(100), Duration::from_secs(60));
        let left = |requests, now| {
            let usage = Usage { requests, ended };
            usage.left(Duration::from_secs(now), limit).as_secs()
        };
        assert_eq!((left(0, 100), left(0, 159), left(0, 160)), (60, 1, 0));
        assert_eq!(left(0, 1000), 0);
        assert_eq!(left(1, 1000), 60, "a request is under way");
    }

    #[test]
    fn a_part_counts_when_all_of_it_has_come_and_no_newer_one_overlaps_it() {
        let mut progress = Progress::default();
        progress.came.insert(0..50);
        let (older, overtakes) = progress.begin(&(40..60)).unwrap();
        assert!(!overtakes);
        assert_eq!(progress.missing(60).as_deref(), Some("40-59"));
        let (newer, overtakes) = progress.begin(&(59..70)).unwrap();
        assert!(overtakes && older.load(Ordering::Relaxed));
        assert!(!progress.end(&older), "it was overtaken");
        assert!(!newer.load(Ordering::Relaxed) && progress.end(&newer));
        assert!(!progress.end(&newer), "it is over");
    }

    #[test]
    fn parts_at_once_are_bounded() {
        let mut progress = Progress::default();
        for part in 0..MAX_UNDER_WAY as u64 {
            progress.begin(&(10 * part..10 * part + 10)).unwrap();
        }
        assert!(matches!(
            progress.begin(&(1000..1001)),
            Err(Refusal::ManyParts)
        ));
        progress.begin(&(0..10)).expect("it takes the place of one");
        assert_eq!(progress.under_way.len(), MAX_UNDER_WAY);
        progress.under_way.clear();
        for run in 0..MAX_RUNS as u64 {
            progress.came.insert(2 * run..2 * run + 1);
        }
        assert!(matches!(progress.begin(&(1..2)), Err(Refusal::Closed)));
        assert!(progress.is_closed);
        assert!(matches!(progress.begin(&(0..10)), Err(Refusal::Closed)));
    }

    #[test]
    fn complete_uploads_are_remembered_for_a_while() {
        let uploads = PartUploads::default();
        let (clock, name) = (Clock::start(), PathBuf::from("file"));
        let at = |second| Duration::from_secs(second);
        for id in 0..=MAX_REMEMBERED as u64 {
            uploads.complete(id.to_string(), name.clone(), Arrived::Created, at(id));
        }
        let is_known = |id: &str| uploads.of(id, &name, clock).is_ok();
        assert!(!is_known("0") && is_known("1"));
        assert!(uploads.of("1", Path::new("other"), clock).is_err());
        let last = MAX_REMEMBERED as u64;
        assert_eq!(uploads.sweep(at(last + 9), at(10)), Some(at(1)));
        assert!(!is_known("1") && is_known(&last.to_string()));
        assert_eq!(uploads.sweep(at(last + 10), at(10)), None);
    }
}
