//! A tree of small files, and how many there are in one.

use std::fs;
use std::path::Path;

/// Files in a directory.
const PER_DIRECTORY: u64 = 1_000;

/// Makes so many files of so many bytes below `root`.
pub(super) fn make(root: &Path, files: u64, size: usize, seed: u64) {
    for start in (0..files).step_by(PER_DIRECTORY as usize) {
        let number = start / PER_DIRECTORY;
        let directory = root.join(format!("{:02}/{:02}", number / 100, number % 100));
        fs::create_dir_all(&directory).expect("make a directory");
        for file in start..files.min(start + PER_DIRECTORY) {
            let word = format!("{seed}-{file} ");
            let content = word.repeat(size / word.len() + 1);
            let path = directory.join(format!("file-{file:07}.txt"));
            fs::write(path, &content[..size]).expect("write a file");
        }
    }
}

/// Files below a directory.
pub(super) fn count(root: &Path) -> u64 {
    let entries = fs::read_dir(root).expect("list a directory");
    let counts = entries.map(|entry| {
        let entry = entry.expect("list a directory");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            count(&entry.path())
        } else {
            1
        }
    });
    counts.sum()
}
