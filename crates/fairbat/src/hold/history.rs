//! What earlier runs of a name have moved: from it follows what the next one will move.
//!
//! A name has one file in a directory, with one JSON object for each run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// So many runs are kept of a name.
const KEPT: usize = 100;

/// So many of the newest runs tell of the next one.
const RECENT: usize = 20;

/// The next run is expected to move as much as this share of the recent ones at most did, ...
const QUANTILE: f64 = 0.9;

/// ... and this much more if there was one only. With n runs, it is this over the square root of
/// n: few runs say little of how much they differ.
const MARGIN_OF_ONE: f64 = 0.5;

/// Longest name, bytes.
const LONGEST_NAME: usize = 64;

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastRun {
    /// When it began.
    pub started: jiff::Timestamp,
    /// How long it took, s.
    pub elapsed_s: f64,
    /// Bytes that its connections received.
    pub bytes_received: u64,
    /// Bytes that they sent.
    pub bytes_sent: u64,
    /// The exit status of the command; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Whether its deadline was met; `None` without one.
    pub deadline_met: Option<bool>,
}

impl PastRun {
    /// Bytes in both directions.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes_received + self.bytes_sent
    }

    /// Whether it has done all that it had to: only such a run tells of the next one.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.status == Some(0) && self.bytes() > 0
    }
}

/// What the next run will move, bytes; `None` if no run tells of it. Pure.
#[must_use]
pub fn expected(runs: &[PastRun]) -> Option<u64> {
    let whole = runs.iter().rev().filter(|run| run.is_whole());
    let mut sizes: Vec<u64> = whole.take(RECENT).map(PastRun::bytes).collect();
    sizes.sort_unstable();
    let last = sizes.len().checked_sub(1)?;
    let rank = (last as f64 * QUANTILE).ceil() as usize;
    let margin = 1.0 + MARGIN_OF_ONE / (sizes.len() as f64).sqrt();
    Some((sizes[rank] as f64 * margin) as u64)
}

/// A name that no history can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "use letters, digits, dots, hyphens and underscores, at most {LONGEST_NAME}, with no dot at the \
     beginning"
)]
pub struct InvalidName;

/// The runs of one name.
#[derive(Debug, Clone)]
pub struct History {
    path: PathBuf,
}

impl History {
    /// Those of this name below a directory.
    ///
    /// # Errors
    /// The name cannot be that of a file.
    pub fn below(directory: &Path, name: &str) -> Result<Self, InvalidName> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_valid = !name.is_empty()
            && name.len() <= LONGEST_NAME
            && !name.starts_with('.')
            && name.bytes().all(is_plain);
        is_valid
            .then(|| Self {
                path: directory.join(format!("{name}{SUFFIX}")),
            })
            .ok_or(InvalidName)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that a run can be added later.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn prepare(&self) -> io::Result<()> {
        self.open().map(drop)
    }

    fn open(&self) -> io::Result<File> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).open(&self.path)
    }

    /// All of them, the oldest first. Lines that are no runs are left out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn runs(&self) -> io::Result<Vec<PastRun>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => {
                let runs = text.lines().map(serde_json::from_str);
                Ok(runs.filter_map(Result::ok).collect())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Adds a run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&self, run: &PastRun) -> io::Result<()> {
        let line = serde_json::to_string(run)? + "\n";
        let mut file = self.open()?;
        file.write_all(line.as_bytes())?;
        let runs = self.runs()?;
        if runs.len() > 2 * KEPT {
            self.replace(&runs[runs.len() - KEPT..])?;
        }
        Ok(())
    }

    fn replace(&self, runs: &[PastRun]) -> io::Result<()> {
        let new = self
            .path
            .with_extension(format!("{}.new", std::process::id()));
        let mut file = File::create(&new)?;
        for run in runs {
            writeln!(file, "{}", serde_json::to_string(run)?)?;
        }
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}

/// The end of the names of files.
const SUFFIX: &str = ".jsonl";

/// The names that have runs below a directory, in order.
///
/// # Errors
/// It cannot be read.
pub fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let name = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let name = name.strip_suffix(SUFFIX)?;
        History::below(directory, name)
            .is_ok()
            .then(|| name.to_owned())
    };
    let mut names: Vec<_> = entries.filter_map(Result::ok).filter_map(name).collect();
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(bytes_received: u64, status: i32) -> PastRun {
        PastRun {
            started: jiff::Timestamp::UNIX_EPOCH,
            elapsed_s: 1.0,
            bytes_received,
            bytes_sent: 0,
            status: Some(status),
            deadline_met: None,
        }
    }

    #[test]
    fn one_run_tells_of_half_as_much_more_and_many_of_a_tenth() {
        assert_eq!(expected(&[]), None);
        assert_eq!(expected(&[run(1000, 0)]), Some(1500));
        let many: Vec<_> = (1..=20).map(|size| run(size * 100, 0)).collect();
        assert_eq!(expected(&many), Some(2112), "1900 and 11 %");
    }

    #[test]
    fn runs_that_failed_or_are_long_ago_tell_nothing() {
        assert_eq!(expected(&[run(1000, 1)]), None);
        let mut runs = vec![run(9000, 0); 5];
        runs.extend(vec![run(1000, 0); RECENT]);
        assert_eq!(expected(&runs), Some(1111));
    }

    #[test]
    fn what_was_added_is_there_and_only_the_newest_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let history = History::below(&directory.path().join("runs"), "nightly").unwrap();
        assert_eq!(history.runs().unwrap(), []);
        for size in 0..=2 * KEPT as u64 {
            history.add(&run(size, 0)).unwrap();
        }
        let runs = history.runs().unwrap();
        assert_eq!(runs.len(), KEPT);
        assert_eq!(runs.last(), Some(&run(2 * KEPT as u64, 0)));
        fs::write(&history.path, "{\"torn\n").unwrap();
        assert_eq!(history.runs().unwrap(), [], "a line that is no run");
    }

    #[test]
    fn names_that_are_no_names_of_files_are_refused() {
        for name in ["", ".x", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(History::below(Path::new("/"), name).is_err(), "{name:?}");
        }
    }
}
