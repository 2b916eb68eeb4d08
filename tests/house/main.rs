//! The rules of the house (CONTRIBUTING.md) that a program can check: how the
//! source is laid out, what the documents may claim, and that both ends have one
//! law.
//!
//! A rule that does not hold yet is named in `allowed.txt` beside this file,
//! one per line; each line there is a debt. `cargo test -p fairbat-tests
//! --test house` runs this alone.

mod constants;
mod documents;
mod imports;
mod laws;
mod module_graph;
mod rooms;
mod source;
mod type_names;

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::module_graph::Graph;

/// Crates whose files must not import each other in a circle, by folder.
const CRATES: [&str; 10] = [
    "crates/dalbe",
    "crates/fairbat",
    "crates/cli",
    "crates/agent",
    "tests",
    "tests/content",
    "tests/lab/bench",
    "tests/lab/judge",
    "tests/lab/run",
    "tests/lab/simulation",
];

/// The four crates that are installed.
const PRODUCT: [&str; 4] = [
    "crates/dalbe",
    "crates/fairbat",
    "crates/cli",
    "crates/agent",
];

/// The checkout that this test was built in.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this crate is in the checkout")
        .to_owned()
}

/// Reads a text file of the checkout.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `path`, from the root of the checkout.
fn relative(path: &Path) -> String {
    let inside = path.strip_prefix(root()).unwrap_or(path);
    inside.display().to_string()
}

/// The module graphs of the crate in `folder`: library and program.
fn graphs(folder: &str) -> Vec<Graph> {
    let src = root().join(folder).join("src");
    ["lib.rs", "main.rs"]
        .iter()
        .map(|name| src.join(name))
        .filter(|file| file.exists())
        .map(|file| Graph::of(&file))
        .collect()
}

/// Writes a crate of these files, to check a check: where it is, and its graph.
fn written(files: &[(&str, &str)]) -> (TempDir, Graph) {
    let folder = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let graph = Graph::of(&folder.path().join("lib.rs"));
    (folder, graph)
}

/// Fails with `violations`, unless `allowed.txt` says that `rule` does not hold yet.
fn judge(rule: &str, violations: &[String]) {
    let allowed = read(&root().join("tests/house/allowed.txt"));
    let excused = allowed.lines().any(|line| line.trim() == rule);
    if violations.is_empty() {
        if excused {
            println!("{rule} holds now: its line in tests/house/allowed.txt can go");
        }
        return;
    }
    let list = format!(
        "{rule}: {}\n  {}",
        violations.len(),
        violations.join("\n  ")
    );
    if excused {
        println!("{list}");
    } else {
        panic!("{list}");
    }
}
