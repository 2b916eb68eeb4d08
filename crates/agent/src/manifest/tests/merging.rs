//! A base and its deltas as one.

use super::*;

pub(super) fn merge(manifests: &[Vec<u8>]) -> Result<Vec<ManifestItem>, MergeError> {
    let readers = manifests
        .iter()
        .map(|manifest| ManifestReader::open(&manifest[..]).unwrap());
    MergedManifests::new(readers.collect())?.collect()
}

#[test]
fn the_latest_of_each_path_counts() {
    let manifests = [
        write(
            header(ManifestKind::Base, 5),
            &[
                directory("a"),
                file("a/b", 1),
                file("c", 1),
                link("d", "x"),
                file("e", 1),
            ],
        ),
        write(
            header(ManifestKind::Delta, 6),
            &[removed("a"), removed("a/b"), file("c", 2), removed("e")],
        ),
        write(
            header(ManifestKind::Delta, 7),
            &[link("a", "c"), file("c", 3), file("e", 2), removed("f")],
        ),
    ];
    let merged: Vec<ManifestLine> = merge(&manifests)
        .unwrap()
        .into_iter()
        .map(ManifestLine::Item)
        .collect();
    assert_eq!(
        merged,
        [link("a", "c"), file("c", 3), link("d", "x"), file("e", 2)]
    );
}

#[test]
fn manifests_that_do_not_belong_together_are_refused() {
    let base = |sequence| {
        write(
            header(ManifestKind::Base, sequence),
            &[directory("a"), file("a/b", 1)],
        )
    };
    let delta =
        |sequence, records: &[ManifestLine]| write(header(ManifestKind::Delta, sequence), records);
    let error = merge(&[base(1), delta(3, &[])]).unwrap_err();
    assert!(
        matches!(
            error,
            MergeError::Sequence {
                expected: 2,
                found: 3
            }
        ),
        "{error}"
    );
    let error = merge(&[base(1), delta(2, &[]), delta(2, &[])]).unwrap_err();
    assert!(
        matches!(
            error,
            MergeError::Sequence {
                expected: 3,
                found: 2
            }
        ),
        "{error}"
    );
    let error = merge(&[base(1), base(2)]).unwrap_err();
    assert!(
        matches!(
            error,
            MergeError::Kind {
                sequence: 2,
                expected: ManifestKind::Delta
            }
        ),
        "{error}"
    );
    let error = merge(&[delta(1, &[])]).unwrap_err();
    assert!(
        matches!(
            error,
            MergeError::Kind {
                sequence: 1,
                expected: ManifestKind::Base
            }
        ),
        "{error}"
    );
    // Each is as it should be, and together they lead elsewhere.
    let error = merge(&[base(1), delta(2, &[link("a", "/etc")])]).unwrap_err();
    assert!(matches!(error, MergeError::Unfit { .. }), "{error}");
}

#[test]
fn a_damaged_delta_ends_the_merge() {
    let base = write(header(ManifestKind::Base, 1), &[file("a", 1), file("b", 1)]);
    let text = String::from_utf8(lines_of(&write(
        header(ManifestKind::Delta, 2),
        &[file("c", 12)],
    )));
    let damaged = gzip(text.unwrap().replace(":12,", ":13,").as_bytes());
    let readers = [&base[..], &damaged[..]].map(|manifest| ManifestReader::open(manifest).unwrap());
    let mut merged = MergedManifests::new(readers.into()).unwrap();
    assert!(merged.by_ref().take(2).all(|item| item.is_ok()));
    let error = merged.next().unwrap().unwrap_err();
    let is_damage = matches!(
        error,
        MergeError::Read {
            sequence: 2,
            error: ManifestReadError::Digest
        }
    );
    assert!(is_damage, "{error}");
    assert!(merged.next().is_none());
}
