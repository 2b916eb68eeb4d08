//! What tests say about the files that a run left behind.

use std::fs;
use std::path::Path;

use crate::content::Content;

/// Panics unless the file at `path` is exactly `content`.
#[track_caller]
pub fn assert_content(path: &Path, content: &Content) {
    match content.first_difference(path) {
        Ok(None) => {}
        Ok(Some(difference)) => panic!(
            "{} is not the expected file: {} of {} bytes, first wrong byte at {}",
            path.display(),
            difference.found,
            content.len(),
            difference.offset
        ),
        Err(error) => panic!(
            "{}: {error}; beside it: {:?}",
            path.display(),
            path.parent().map(names_in)
        ),
    }
}

/// Panics unless the directory holds exactly these names: no forgotten part
/// file or journal, nothing missing.
#[track_caller]
pub fn assert_only(directory: &Path, names: &[&str]) {
    let mut expected: Vec<_> = names.iter().map(ToString::to_string).collect();
    expected.sort();
    assert_eq!(names_in(directory), expected, "in {}", directory.display());
}

/// Panics if a file stands under this name: unfinished work may only be in
/// its `.part` file.
#[track_caller]
pub fn assert_absent(path: &Path) {
    assert!(
        fs::symlink_metadata(path).is_err(),
        "{} should not be there; beside it: {:?}",
        path.display(),
        path.parent().map(names_in)
    );
}

/// The names in a directory, sorted; hidden ones too.
#[must_use]
pub fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Every number of bytes that a text for people mentions: `1234`, `1,234 B`,
/// `8.5 MB`, `8 MiB`.
#[must_use]
pub fn byte_counts_in(text: &str) -> Vec<u64> {
    let words: Vec<_> = text
        .split(|c: char| c.is_whitespace() || "()[]:;".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let mut counts = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let split = word
            .find(|c: char| !c.is_ascii_digit() && !".,_".contains(c))
            .unwrap_or(word.len());
        let digits: String = word[..split]
            .chars()
            .filter(|c| !",_".contains(*c))
            .collect();
        let Ok(number) = digits.trim_end_matches('.').parse::<f64>() else {
            continue;
        };
        let attached = &word[split..];
        let unit = if attached.is_empty() {
            words.get(index + 1).copied().unwrap_or("")
        } else {
            attached
        };
        counts.push((number * scale(unit.trim_end_matches([',', '.']))) as u64);
    }
    counts
}

fn scale(unit: &str) -> f64 {
    match unit {
        "KB" | "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "K" | "KiB" => 1024.0,
        "M" | "MiB" => 1024.0 * 1024.0,
        "G" | "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_are_read_in_the_forms_people_write() {
        assert_eq!(
            byte_counts_in("needs 8388608 bytes (8.0 MiB, or 8.4 MB), 1,024 B free."),
            [8_388_608, 8_388_608, 8_400_000, 1024]
        );
        assert!(byte_counts_in("No space left on device").is_empty());
    }
}
