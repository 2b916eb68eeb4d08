//! Where things are in the repository, and where what is made goes.

use std::path::{Path, PathBuf};

/// The scenarios that come with the lab.
#[must_use]
pub fn scenarios() -> PathBuf {
    own("scenarios")
}

/// The matrices that come with the lab.
#[must_use]
pub fn matrices() -> PathBuf {
    own("matrices")
}

/// The figures that are committed.
#[must_use]
pub fn results() -> PathBuf {
    own("results")
}

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
