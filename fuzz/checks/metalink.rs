//! What must hold for any Metalink.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use fairbat::file_name::MAX_LEN;
use fairbat::metalink::{MetalinkFile, parse};
use fairbat::printable::is_unsafe;
use fairbat::settings::Checksum;

/// Panics if a file could be written anywhere but below a directory, if it has no source, or if
/// its pieces are not its bytes.
pub(crate) fn check(data: &[u8]) {
    let files = match parse(data) {
        Ok(files) => files,
        Err(error) => {
            // Names in it are no longer than a line or two.
            assert!(error.to_string().len() < 20_000, "{error}");
            return;
        }
    };
    assert!(!files.is_empty());
    let names: BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names.len(), files.len());
    for file in &files {
        check_name(&file.name);
        check_sources(file);
        check_pieces(file);
    }
}

fn check_name(name: &str) {
    assert!(!name.contains(is_unsafe) && !name.contains('\\'));
    let mut parts = 0;
    for component in Path::new(name).components() {
        let Component::Normal(part) = component else {
            panic!("{name:?} has {component:?}");
        };
        let part = part.to_str().expect("it is a part of a text");
        let lower = part.to_ascii_lowercase();
        assert!(part.len() <= MAX_LEN && !part.starts_with('.'));
        assert!(!lower.ends_with(".part") && !lower.contains(".part.fairbat"));
        parts += 1;
    }
    // `Path` leaves out what is empty, and `.`.
    assert_eq!(parts, name.split('/').count());
}

fn check_sources(file: &MetalinkFile) {
    assert!(!file.urls.is_empty());
    for url in &file.urls {
        assert!(matches!(url.scheme(), "http" | "https") && url.has_host());
    }
    let is_strong =
        |checksum: &str| checksum.starts_with("sha-256=") || checksum.starts_with("sha-512=");
    if let Some(checksum) = &file.checksum {
        assert!(is_strong(&checksum.to_string()));
        assert_eq!(checksum.to_string().parse().as_ref(), Ok(checksum));
    }
    if let Some(pieces) = &file.pieces {
        let kinds: BTreeSet<&str> = pieces.hashes.iter().map(Checksum::algorithm).collect();
        assert_eq!(kinds.len(), 1);
        assert_eq!(pieces.is_strong(), !kinds.contains("sha-1"));
    }
}

fn check_pieces(file: &MetalinkFile) {
    let Some(pieces) = &file.pieces else { return };
    let size = file
        .size
        .expect("without a size nobody knows how many there are");
    let mut at = 0;
    for index in 0..pieces.hashes.len() {
        let range = pieces.range(index, size);
        assert!(range.start == at && range.end > at);
        assert!(range.end - at == pieces.length.get() || range.end == size);
        at = range.end;
    }
    assert_eq!(at, size);
    assert!(pieces.range(pieces.hashes.len(), size).is_empty());
}
