//! What must hold for any manifest, and for any manifests that are merged.

use std::path::{Component, Path};

use fairbat_agent::entry::TreePath;
use fairbat_agent::manifest::{
    ItemContent, ManifestHeader, ManifestItem, ManifestKind, ManifestLine, ManifestReader,
    ManifestWriter, MergedManifests,
};

use crate::sealed;

/// Panics if a manifest is not read as it would be written, or if an entry is out of
/// order, outside of the tree, or below something that is no directory.
pub(crate) fn check(data: &[u8]) {
    check_one(data);
    // Hardly any mutation survives gzip and the digest, so the input is also taken for
    // the lines of manifests, the base first.
    let manifests = sealed::manifests(data);
    for manifest in &manifests {
        check_one(manifest);
    }
    check_merged(&manifests);
}

fn check_one(bytes: &[u8]) {
    let Ok(reader) = ManifestReader::open(bytes) else {
        return;
    };
    let header = *reader.header();
    let mut lines = Vec::new();
    for line in reader {
        let Ok(line) = line else { return };
        lines.push(line);
    }
    let mut last = TreePath::root();
    for line in &lines {
        assert!(*line.path() > last, "{line:?} after {last:?}");
        check_path(line.path());
        last = line.path().clone();
    }
    let written = write(header, &lines);
    let again = ManifestReader::open(&*written).expect("a header that was written");
    assert_eq!(*again.header(), header);
    let again: Vec<_> = again
        .map(|line| line.expect("a line that was written"))
        .collect();
    assert_eq!(again, lines);
    // A manifest that is cut is never taken for a whole one.
    for end in written.len().saturating_sub(16)..written.len() {
        let is_whole =
            ManifestReader::open(&written[..end]).is_ok_and(|mut cut| cut.all(|line| line.is_ok()));
        assert!(!is_whole, "cut at {end} of {}", written.len());
    }
}

fn write(header: ManifestHeader, lines: &[ManifestLine]) -> Vec<u8> {
    let mut writer = ManifestWriter::new(Vec::new(), header).expect("written into memory");
    for line in lines {
        writer.write(line).expect("a line that was read");
    }
    writer.finish().expect("written into memory")
}

fn check_merged(manifests: &[Vec<u8>]) {
    let readers = manifests.iter().map(|bytes| ManifestReader::open(&**bytes));
    let Ok(readers) = readers.collect::<Result<Vec<_>, _>>() else {
        return;
    };
    let Ok(merged) = MergedManifests::new(readers) else {
        return;
    };
    let mut items: Vec<ManifestItem> = Vec::new();
    for item in merged {
        let Ok(item) = item else { return };
        if let Some(last) = items.last() {
            assert!(item.path > last.path);
            let is_below = item.path.is_at_or_below(&last.path);
            assert!(!is_below || last.content == ItemContent::Directory);
        }
        check_path(&item.path);
        items.push(item);
    }
    // What is merged is a base again.
    let created = jiff::Timestamp::UNIX_EPOCH;
    let header = ManifestHeader {
        kind: ManifestKind::Base,
        sequence: 1,
        created,
    };
    let lines: Vec<_> = items.into_iter().map(ManifestLine::Item).collect();
    check_one(&write(header, &lines));
}

fn check_path(path: &TreePath) {
    let root = Path::new("/some/where");
    let below = path.under(root);
    let below = below.strip_prefix(root).expect("below the root");
    assert!(below.components().next().is_some());
    let is_name = |component| matches!(component, Component::Normal(_));
    assert!(below.components().all(is_name), "{path:?}");
}
