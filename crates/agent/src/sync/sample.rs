//! Which contents a check reads. The files are in an order that is random and always the
//! same. Each check goes on where the last one ended, as far as its bytes reach. So in
//! time, checks read all files.

use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::entry::TreePath;
use crate::state::CheckRecord;

/// Seconds of a day.
const DAY_S: i64 = 24 * 3600;

/// Longest time that counts for the bytes of a check, s.
const MAX_SAVED_S: i64 = 7 * DAY_S;

/// Most files of a sample. Each costs one request, and a place in memory.
const MAX_FILES: usize = 100_000;

/// A file whose content is to be compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct StoredFile {
    /// How far it is from the cursor, in the order of the checks.
    pub(crate) distance: u64,
    pub(crate) path: TreePath,
    /// Length, bytes.
    pub(crate) size: u64,
    pub(crate) sha256: [u8; 32],
}

/// The files that follow the cursor, as far as the bytes reach.
#[derive(Debug)]
pub(crate) struct CheckSample {
    record: CheckRecord,
    now_s: i64,
    seed: u64,
    /// Bytes that may be read.
    budget: u64,
    bytes: u64,
    /// The distance of the first file that is left for the next check.
    end: Option<u64>,
    /// The farthest is on top.
    nearest: BinaryHeap<StoredFile>,
    /// Number of files that are larger than all bytes.
    pub(crate) too_large: u64,
}

impl CheckSample {
    /// A sample of so many bytes for each day since the last check, at most for a week.
    /// The same seed leads to the same order.
    pub(crate) fn new(bytes_per_day: u64, now_s: i64, record: CheckRecord, seed: u64) -> Self {
        let saved_s = match record.checked_at {
            // The clock was set back since.
            Some(at) if at > now_s => DAY_S,
            Some(at) => (now_s - at).min(MAX_SAVED_S),
            None => MAX_SAVED_S,
        };
        let saved_s = saved_s.unsigned_abs();
        let budget = u128::from(bytes_per_day) * u128::from(saved_s);
        Self {
            record,
            now_s,
            seed,
            budget: u64::try_from(budget / u128::from(DAY_S.unsigned_abs())).unwrap_or(u64::MAX),
            bytes: 0,
            end: None,
            nearest: BinaryHeap::new(),
            too_large: 0,
        }
    }

    /// Takes a file into the sample, if it is near enough.
    pub(crate) fn add(&mut self, mut file: StoredFile) {
        if file.size > self.budget {
            self.too_large += 1;
            return;
        }
        file.distance = self.position(&file.path).wrapping_sub(self.record.cursor);
        if self.end.is_some_and(|end| file.distance >= end) {
            return;
        }
        self.bytes += file.size;
        self.nearest.push(file);
        while (self.bytes > self.budget || self.nearest.len() > MAX_FILES)
            && let Some(farthest) = self.nearest.pop()
        {
            self.bytes -= farthest.size;
            self.end = Some(farthest.distance);
        }
    }

    /// The sample, and the record after it has been read.
    pub(crate) fn finish(self) -> (Vec<StoredFile>, CheckRecord) {
        let record = CheckRecord {
            // Without an end, all files are in the sample.
            cursor: self
                .record
                .cursor
                .wrapping_add(self.end.unwrap_or_default()),
            checked_at: Some(self.now_s),
        };
        (self.nearest.into_sorted_vec(), record)
    }

    /// The position of a file in the order of the checks.
    fn position(&self, path: &TreePath) -> u64 {
        let hash = Sha256::new_with_prefix(self.seed.to_le_bytes());
        let digest = hash.chain_update(path.as_bytes()).finalize();
        let mut head = [0; 8];
        head.copy_from_slice(&digest[..8]);
        u64::from_le_bytes(head)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn file(number: u64, size: u64) -> StoredFile {
        StoredFile {
            distance: 0,
            path: TreePath::from_bytes(format!("f{number}").as_bytes()).unwrap(),
            size,
            sha256: [0; 32],
        }
    }

    /// A check of these files after a day; gives the files that it reads.
    fn check(files: &[StoredFile], per_day: u64, record: &mut CheckRecord) -> Vec<StoredFile> {
        let now_s = record.checked_at.unwrap_or_default() + DAY_S;
        let mut sample = CheckSample::new(per_day, now_s, *record, 7);
        for file in files {
            sample.add(file.clone());
        }
        let (read, after) = sample.finish();
        *record = after;
        read
    }

    #[test]
    fn successive_checks_read_all_files_and_never_too_many_bytes() {
        let files: Vec<_> = (0..500).map(|i| file(i, 1 + i * i % 97)).collect();
        let mut record = CheckRecord {
            cursor: u64::MAX - 5,
            checked_at: Some(0),
        };
        let (mut seen, mut bytes, mut checks) = (BTreeSet::new(), 0, 0);
        while seen.len() < files.len() {
            let read = check(&files, 1_000, &mut record);
            let sum: u64 = read.iter().map(|file| file.size).sum();
            assert!(sum <= 1_000 && sum > 800, "{sum}");
            bytes += sum;
            checks += 1;
            seen.extend(read.into_iter().map(|file| file.path));
            assert!(checks < 40, "{} of {}", seen.len(), files.len());
        }
        let all: u64 = files.iter().map(|file| file.size).sum();
        assert!(
            bytes < all + 2_000,
            "hardly any is read twice: {bytes} {all}"
        );
    }

    #[test]
    fn what_a_week_has_saved_up_counts_and_no_more() {
        let files: Vec<_> = (0..100).map(|i| file(i, 10)).collect();
        let read = |checked_at: Option<i64>, now_s| {
            let record = CheckRecord {
                cursor: 3,
                checked_at,
            };
            let mut sample = CheckSample::new(100, now_s, record, 7);
            files.iter().for_each(|file| sample.add(file.clone()));
            sample.finish().0.len()
        };
        assert_eq!(read(None, 0), 70);
        assert_eq!(read(Some(0), 30 * DAY_S), 70);
        assert_eq!(read(Some(0), 2 * DAY_S), 20);
        assert_eq!(
            read(Some(9), 0),
            10,
            "the clock was set back: as after a day"
        );
        let mut sample = CheckSample::new(100, DAY_S, CheckRecord::default(), 7);
        sample.add(file(0, 701));
        assert_eq!(sample.too_large, 1);
        assert_eq!(sample.finish().0, []);
    }
}
