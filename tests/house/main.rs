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
mod source;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Crates whose files must not import each other in a circle, by folder.
const CRATES: [&str; 7] = [
    "crates/dalbe",
    "crates/fairbat",
    "crates/cli",
    "crates/agent",
    "tests",
    "tests/content",
    "tests/lab",
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
