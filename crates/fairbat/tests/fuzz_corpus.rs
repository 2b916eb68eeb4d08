//! Runs the corpus of every fuzz target through the checks of that target, so
//! that ordinary tests keep what fuzzing has found.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/checks/content_disposition.rs"]
mod content_disposition;
#[path = "../../../fuzz/checks/content_range.rs"]
mod content_range;
#[path = "../../../fuzz/checks/deadline.rs"]
mod deadline;
#[path = "../../../fuzz/checks/journal.rs"]
mod journal;

/// A fuzz target: its name and what must hold for any input.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 4] = [
    ("content_disposition", content_disposition::check),
    ("content_range", content_range::check),
    ("deadline", deadline::check),
    ("journal", journal::check),
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn entries(directory: &Path) -> BTreeSet<String> {
    fs::read_dir(directory)
        .expect("the corpus is part of the repository")
        .map(|entry| entry.expect("the directory is readable").file_name())
        .map(|name| name.into_string().expect("corpus files have plain names"))
        .collect()
}

#[test]
fn every_corpus_has_a_target_here() {
    let targets = TARGETS.map(|(name, _)| name.to_owned());
    assert_eq!(entries(&corpus()), targets.into());
}

#[test]
fn every_corpus_file_passes_the_checks() {
    for (name, check) in TARGETS {
        let directory = corpus().join(name);
        let files = entries(&directory);
        assert!(!files.is_empty(), "no corpus for {name}");
        for file in files {
            // Shown only when the check panics.
            println!("{name}/{file}");
            check(&fs::read(directory.join(file)).unwrap());
        }
    }
}
