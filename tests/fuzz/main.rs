//! Runs the corpus of every fuzz target through the checks of that target, so
//! that ordinary tests keep what fuzzing has found.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

#[path = "../../fuzz/checks/agent_api.rs"]
mod agent_api;
#[path = "../../fuzz/checks/agent_config.rs"]
mod agent_config;
#[path = "../../fuzz/checks/content_disposition.rs"]
mod content_disposition;
#[path = "../../fuzz/checks/content_range.rs"]
mod content_range;
#[path = "../../fuzz/checks/deadline.rs"]
mod deadline;
#[path = "../../fuzz/checks/journal.rs"]
mod journal;
#[path = "../../fuzz/checks/lane.rs"]
mod lane;
#[path = "../../fuzz/checks/link.rs"]
mod link;
#[path = "../../fuzz/checks/manifest.rs"]
mod manifest;
#[path = "../../fuzz/checks/metalink.rs"]
mod metalink;
#[path = "../../fuzz/checks/netrc.rs"]
mod netrc;
#[path = "../../fuzz/checks/pull.rs"]
mod pull;
#[path = "../../fuzz/checks/s3.rs"]
mod s3;
#[path = "../../fuzz/checks/sealed.rs"]
mod sealed;
#[path = "../../fuzz/checks/serve.rs"]
mod serve;
#[path = "../../fuzz/checks/store_server.rs"]
mod store_server;
#[path = "../../fuzz/checks/webdav.rs"]
mod webdav;

/// A fuzz target: its name and what must hold for any input.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 15] = [
    ("agent_api", agent_api::check),
    ("agent_config", agent_config::check),
    ("content_disposition", content_disposition::check),
    ("content_range", content_range::check),
    ("deadline", deadline::check),
    ("journal", journal::check),
    ("lane", lane::check),
    ("link", link::check),
    ("manifest", manifest::check),
    ("metalink", metalink::check),
    ("netrc", netrc::check),
    ("pull", pull::check),
    ("s3", s3::check),
    ("serve", serve::check),
    ("webdav", webdav::check),
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus")
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
    let mut failed = Vec::new();
    for (name, check) in TARGETS {
        let directory = corpus().join(name);
        let files = entries(&directory);
        assert!(!files.is_empty(), "no corpus for {name}");
        for file in files {
            let input = fs::read(directory.join(&file)).unwrap();
            if catch_unwind(|| check(&input)).is_err() {
                failed.push(format!("{name}/{file}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
