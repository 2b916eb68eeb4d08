//! The directory a test downloads into, and what it says about it afterwards.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::bin::Fairbat;
use crate::content::Content;
use crate::expect::{assert_absent, assert_content, assert_only};
use crate::outcome::Outcome;

/// An empty directory of a test's own; removed when dropped.
#[derive(Debug)]
pub struct Workdir(TempDir);

impl Workdir {
    /// A new one.
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "making a directory is no default"
    )]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temp dir"))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a name in it.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// A run of `fairbat get --json` in it ([`Fairbat::get`]).
    #[must_use]
    pub fn get(&self) -> Fairbat {
        Fairbat::get(self.path())
    }

    /// A run of `fairbat put --json` in it ([`Fairbat::put`]).
    #[must_use]
    pub fn put(&self) -> Fairbat {
        Fairbat::put(self.path())
    }

    /// Panics unless it holds exactly these files and nothing else: no part
    /// file, no journal.
    #[track_caller]
    pub fn assert_holds(&self, files: &[(&str, &Content)]) {
        let names: Vec<_> = files.iter().map(|(name, _)| *name).collect();
        assert_only(self.path(), &names);
        for (name, content) in files {
            assert_content(&self.join(name), content);
        }
    }

    /// For a server nobody can be sure to get a file from: panics unless the
    /// run either succeeded with exactly this file, or said that it failed
    /// and left nothing under the file's name.
    #[track_caller]
    pub fn assert_exact_or_refused(&self, outcome: &Outcome, name: &str, content: &Content) {
        match outcome.code {
            Some(0) => self.assert_holds(&[(name, content)]),
            Some(_) => {
                assert_absent(&self.join(name));
                assert!(!outcome.stderr.trim().is_empty(), "said nothing: {outcome}");
            }
            None => panic!("ended by a signal: {outcome}"),
        }
    }
}
