//! Rules that hold line by line: what no file may contain, and how long a file may
//! be.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{judge, read, relative, root};

/// Most lines of a product file.
const MAX_FILE_LINES: usize = 500;

/// All files below `directory` with one of these extensions, sorted.
pub(crate) fn files(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)
            .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        {
            let path = entry.expect("an entry of a directory").path();
            if path.is_dir() {
                open.push(path);
            } else if path
                .extension()
                .and_then(|extension| extension.to_str())
                .is_some_and(|extension| extensions.contains(&extension))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Rust and C files of the four product crates, without tests.
fn product() -> Vec<PathBuf> {
    ["dalbe", "fairbat", "cli", "agent"]
        .iter()
        .flat_map(|name| {
            files(
                &root().join("crates").join(name).join("src"),
                &["rs", "c", "h"],
            )
        })
        .collect()
}

pub(crate) fn is_test(path: &Path) -> bool {
    relative(path).split(['/', '.']).any(|part| part == "tests")
}

/// Places of `word` in the code of `files`: `path:line`. Comments do not count.
fn places(files: &[PathBuf], word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for path in files {
        for (index, line) in read(path).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if code.contains(word) {
                found.push(format!("{}:{}", relative(path), index + 1));
            }
        }
    }
    found
}

#[test]
fn no_file_reaches_two_modules_up() {
    for name in ["dalbe", "fairbat", "cli", "agent"] {
        let files = files(&root().join("crates").join(name).join("src"), &["rs"]);
        judge(
            &format!("super-super {name}"),
            &places(&files, "super::super"),
        );
    }
    let tests = files(&root().join("tests"), &["rs"]);
    let tests: Vec<_> = tests
        .into_iter()
        .filter(|path| !relative(path).starts_with("tests/house/"))
        .collect();
    judge("super-super tests", &places(&tests, "super::super"));
}

#[test]
fn no_context_travels_beside_the_arguments() {
    judge("task-local", &places(&product(), "task_local!"));
}

#[test]
fn a_file_is_at_most_five_hundred_lines_long() {
    let long: Vec<_> = product()
        .iter()
        .filter(|path| !is_test(path))
        .map(|path| (relative(path), read(path).lines().count()))
        .filter(|(_, lines)| *lines > MAX_FILE_LINES)
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect();
    judge("long-files", &long);
}
