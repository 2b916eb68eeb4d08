//! What there is to move: files, or directories of files, and what became of
//! each.

use std::path::Path;
use std::{fs, io};

use fairbat_tests::content::Content;
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::samples::TransferRecord;
use crate::scenario::Background;

/// Name of the file that is moved, at both ends, when it is the only one.
pub(crate) const FILE: &str = "file";

/// The only bucket of the store that directories are pushed to.
pub(crate) const BUCKET: &str = "bucket";

/// Size of the file that stands for a transfer without an end, bytes: more
/// than any run moves.
const ENDLESS: u64 = 8_000_000_000;

/// Size of the largest file that is made of real bytes, bytes: it is made when
/// the run has begun.
const MAX_REAL_BYTES: u64 = 200_000_000;

/// A file to be moved, or a directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    /// Its name, at both ends.
    pub(crate) name: String,
    /// Its size, bytes; `None` if there is no end to it.
    pub bytes: Option<u64>,
    /// Seconds after the start by which it should be there.
    pub(crate) deadline_s: Option<f64>,
    /// Of what is in it.
    seed: u64,
    /// Whether it is one file also where it is pushed as a directory.
    is_whole: bool,
}

impl Served {
    /// All that a scenario asks for, in its order.
    pub fn all(background: &Background, seed: u64) -> Vec<Self> {
        if background.transfer.is_empty() {
            return vec![Self {
                name: FILE.to_owned(),
                bytes: background.size_mb.map(bytes),
                deadline_s: background.deadline_s,
                seed,
                is_whole: background.whole,
            }];
        }
        let several = background.transfer.iter().zip(1..);
        let served = several.map(|(transfer, number)| Self {
            name: format!("{FILE}-{number}"),
            bytes: Some(bytes(transfer.size_mb)),
            deadline_s: transfer.deadline_s,
            // No file is like another.
            seed: seed ^ (number << 32),
            is_whole: background.whole,
        });
        served.collect()
    }

    /// Size of the file, bytes.
    pub(crate) fn size(&self) -> u64 {
        self.bytes.unwrap_or(ENDLESS)
    }

    /// What is in it; `None` if that would be too much to make.
    pub(crate) fn content(&self) -> Option<Content> {
        let size = self.bytes.filter(|size| *size <= MAX_REAL_BYTES)?;
        Some(Content::new(self.seed, size))
    }

    /// The files in it, when it is a directory that is pushed; it has an end.
    pub(crate) fn leaves(&self) -> Vec<Leaf> {
        if self.is_whole {
            return vec![Leaf {
                path: FILE.to_owned(),
                content: Content::new(self.seed, self.size()),
            }];
        }
        leaves(self.size(), self.seed)
    }

    /// What says to `fairbat get -i` that it is wanted, with its deadline or
    /// without.
    pub(crate) fn line(&self, url: &str, has_deadline: bool) -> String {
        match self.deadline_s.filter(|_| has_deadline) {
            Some(deadline) => format!("{url} deadline={deadline:.3}s\n"),
            None => format!("{url}\n"),
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a scenario's sizes are positive"
)]
fn bytes(size_mb: f64) -> u64 {
    ((size_mb * 1e6).round() as u64).max(1)
}

/// What became of each. `told` is what the contender said of those that were
/// done, in any order; one that says nothing was `done` with all of it at
/// once.
pub fn outcomes(
    served: &[Served],
    told: &[TransferRecord],
    done: Option<f64>,
    run: std::ops::Range<f64>,
) -> Vec<TransferRecord> {
    let moment = |served: &Served| {
        let told = told.iter().find(|told| told.name == served.name);
        match told {
            Some(told) => told.done,
            None if served.name == FILE => done,
            None => None,
        }
    };
    let moments: Vec<_> = served.iter().map(moment).collect();
    let place = |done: f64| {
        let before = moments.iter().flatten().filter(|other| **other < done);
        before.count() + 1
    };
    let of = |(served, done): (&Served, &Option<f64>)| {
        let due = served.deadline_s.map(|deadline| run.start + deadline);
        let met = due.and_then(|due| match done {
            Some(done) => Some(*done <= due),
            // It may still have arrived in time.
            None => (run.end > due).then_some(false),
        });
        Some(TransferRecord {
            name: served.name.clone(),
            bytes: served.bytes?,
            deadline_s: served.deadline_s,
            done: *done,
            met,
            late_s: due.filter(|_| met.is_some()).map(|due| {
                let there = done.unwrap_or(run.end);
                (there - due).max(0.0)
            }),
            took_s: done.map(|done| done - run.start),
            place: done.map(place),
        })
    };
    served.iter().zip(&moments).filter_map(of).collect()
}

/// Size of the smallest file, bytes, but for what is left over.
const MIN_FILE_BYTES: u64 = 4_000;

/// The largest is so much of the whole at most: what people keep is a few large
/// files and many small ones.
const MAX_FILE_SHARE: f64 = 1.0 / 3.0;

/// Files in a directory.
const IN_DIRECTORY: usize = 10;

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Below the root, with slashes.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) content: Content,
}

/// Files of so many bytes together. The logarithm of their sizes is of uniform
/// distribution.
pub(crate) fn leaves(bytes: u64, seed: u64) -> Vec<Leaf> {
    let mut rng = StdRng::seed_from_u64(seed);
    let ratio = (bytes as f64 * MAX_FILE_SHARE / MIN_FILE_BYTES as f64).max(1.0);
    let mut left = bytes;
    let mut leaves = Vec::new();
    while left > 0 {
        let drawn = MIN_FILE_BYTES as f64 * ratio.powf(rng.random::<f64>());
        let size = (drawn as u64).clamp(1, left);
        let index = leaves.len();
        leaves.push(Leaf {
            path: format!("{:02}/{index:04}.bin", index / IN_DIRECTORY),
            content: Content::new(rng.random(), size),
        });
        left -= size;
    }
    leaves
}

/// Makes them in this directory.
///
/// # Errors
/// Whatever the file system says.
pub(crate) fn write(leaves: &[Leaf], root: &Path) -> io::Result<()> {
    for leaf in leaves {
        let path = root.join(&leaf.path);
        fs::create_dir_all(path.parent().expect("it is in a directory"))?;
        leaf.content.write_to(&path)?;
    }
    Ok(())
}

/// What is wrong with them in this directory, for people; `None` if nothing is.
pub(crate) fn fault(leaves: &[Leaf], root: &Path) -> Option<String> {
    leaves.iter().find_map(|leaf| {
        let path = &leaf.path;
        match leaf.content.first_difference(&root.join(path)) {
            Ok(None) => None,
            Ok(Some(difference)) => Some(format!(
                "the {path} in the store is not the one that was pushed: it has {} bytes, and is \
                 wrong from byte {}",
                difference.found, difference.offset
            )),
            Err(error) => Some(format!("there is no {path} in the store: {error}")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn background(text: &str) -> Background {
        toml::from_str(text).unwrap()
    }

    fn three() -> Vec<Served> {
        let text = "transfer = [{ size_mb = 3.0, deadline_s = 30.0 }, \
                    { size_mb = 1.5, deadline_s = 10.0 }, { size_mb = 2.0, deadline_s = 20.0 }]";
        Served::all(&background(text), 7)
    }

    fn told(name: &str, done: f64) -> TransferRecord {
        TransferRecord {
            name: name.to_owned(),
            done: Some(done),
            ..TransferRecord::default()
        }
    }

    #[test]
    fn files_are_as_the_scenario_lists_them() {
        let three = three();
        let names: Vec<_> = three.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["file-1", "file-2", "file-3"]);
        assert_eq!(three[1].bytes, Some(1_500_000));
        assert_ne!(three[0].seed, three[1].seed);
        let line = three[1].line("http://10.78.0.2/file-2", true);
        assert_eq!(line, "http://10.78.0.2/file-2 deadline=10.000s\n");
        let line = three[1].line("http://10.78.0.2/file-2", false);
        assert_eq!(line, "http://10.78.0.2/file-2\n");
        let endless = Served::all(&background("deadline_s = 5.0"), 7);
        assert_eq!((endless.len(), endless[0].bytes), (1, None));
    }

    #[test]
    fn each_has_a_moment_a_verdict_and_a_place() {
        let told = [told("file-3", 21.0), told("file-2", 12.5)];
        let got = outcomes(&three(), &told, Some(21.0), 2.0..60.0);
        let of = |index: usize| (got[index].done, got[index].met, got[index].place);
        let late: Vec<_> = got.iter().map(|one| one.late_s).collect();
        assert_eq!(late, [Some(28.0), Some(0.5), Some(0.0)]);
        assert_eq!(of(0), (None, Some(false), None));
        assert_eq!(of(1), (Some(12.5), Some(false), Some(1)));
        assert_eq!(of(2), (Some(21.0), Some(true), Some(2)));
        // It was not due yet when the run ended.
        let got = outcomes(&three(), &told, None, 2.0..25.0);
        assert_eq!((got[0].met, got[0].bytes), (None, 3_000_000));
    }

    #[test]
    fn one_that_moves_a_single_file_need_not_name_it() {
        let served = Served::all(&background("size_mb = 2.0\ndeadline_s = 9.0"), 7);
        let [one] = &outcomes(&served, &[], Some(10.9), 2.0..60.0)[..] else {
            panic!("it is one");
        };
        assert_eq!(
            (one.done, one.met, one.place),
            (Some(10.9), Some(true), Some(1))
        );
        let free = Served::all(&background("size_mb = 2.0"), 7);
        assert_eq!(outcomes(&free, &[], Some(10.9), 2.0..60.0)[0].met, None);
        let endless = Served::all(&background(""), 7);
        assert_eq!(outcomes(&endless, &[], None, 2.0..60.0), []);
    }

    #[test]
    fn a_seed_makes_files_of_mixed_sizes_and_all_the_bytes() {
        for (bytes, seed) in [(36_200_000, 1), (7_240_000, 2), (5_000, 3), (1, 4)] {
            let leaves = leaves(bytes, seed);
            let sizes: Vec<_> = leaves.iter().map(|leaf| leaf.content.len()).collect();
            assert_eq!(sizes.iter().sum::<u64>(), bytes, "seed {seed}");
            assert_eq!(leaves, super::leaves(bytes, seed));
            assert_ne!(leaves, super::leaves(bytes, seed + 10));
            if bytes > 1_000_000 {
                assert!(sizes.iter().any(|size| *size > bytes / 20), "{sizes:?}");
                assert!(sizes.iter().any(|size| *size < 100_000), "{sizes:?}");
                assert!(sizes.iter().all(|size| *size <= bytes / 3), "{sizes:?}");
            }
        }
    }

    #[test]
    fn a_directory_of_one_file_has_all_the_bytes_in_it() {
        let text = "whole = true\ntransfer = [{ size_mb = 3.0, deadline_s = 30.0 }]";
        let leaves = Served::all(&background(text), 7)[0].leaves();
        let sizes: Vec<_> = leaves.iter().map(|leaf| leaf.content.len()).collect();
        assert_eq!(sizes, [3_000_000]);
    }

    #[test]
    fn what_is_missing_or_wrong_is_found() {
        let root = tempfile::tempdir().unwrap();
        let leaves = leaves(200_000, 7);
        write(&leaves, root.path()).unwrap();
        assert_eq!(fault(&leaves, root.path()), None);
        let last = root.path().join(&leaves[leaves.len() - 1].path);
        fs::write(&last, "other").unwrap();
        assert!(fault(&leaves, root.path()).unwrap().contains("wrong from"));
        fs::remove_file(&last).unwrap();
        assert!(fault(&leaves, root.path()).unwrap().contains("there is no"));
    }
}
