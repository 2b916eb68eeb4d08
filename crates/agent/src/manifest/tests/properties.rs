//! Whatever records, bytes and lines there are.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::merging::merge;
use super::*;

fn any_record() -> impl Strategy<Value = ManifestLine> {
    let byte = prop_oneof![
        prop::sample::select(b"ab%\"\\\n\xff\xc3\xbc".to_vec()),
        any::<u8>()
    ];
    let name = prop::collection::vec(byte, 1..6);
    let path = prop::collection::vec(name.clone(), 1..4).prop_filter_map("no path", |names| {
        TreePath::from_bytes(&names.join(&0)).ok()
    });
    let content = prop_oneof![
        (0..=i64::MAX.unsigned_abs(), any::<[u8; 32]>())
            .prop_map(|(size, sha256)| ItemContent::File { size, sha256 }),
        Just(ItemContent::Directory),
        name.prop_filter_map("a NUL", |target| {
            let is_target = !target.contains(&0);
            is_target.then(|| ItemContent::Symlink(OsStr::from_bytes(&target).into()))
        }),
    ];
    let attributes = (
        0..0o10000_u32,
        any::<u32>(),
        any::<u32>(),
        any::<i64>(),
        0..1_000_000_000_u32,
    )
        .prop_map(|(mode, uid, gid, seconds, nanoseconds)| Attributes {
            mode,
            uid,
            gid,
            modified: Moment {
                seconds,
                nanoseconds,
            },
        });
    (path, prop::option::weighted(0.8, (content, attributes))).prop_map(|(path, kept)| match kept {
        None => ManifestLine::Removed(path),
        Some((content, attributes)) => ManifestLine::Item(ManifestItem {
            path,
            attributes,
            content,
        }),
    })
}

/// Those of these records that make a manifest.
fn fitting(kind: ManifestKind, mut records: Vec<ManifestLine>) -> (Vec<ManifestLine>, Vec<u8>) {
    records.sort_by(|a, b| a.path().cmp(b.path()));
    let mut writer = ManifestWriter::new(Vec::new(), header(kind, 1)).unwrap();
    records.retain(|record| writer.write(record).is_ok());
    (records, writer.finish().unwrap())
}

proptest! {
    #[test]
    fn what_is_written_is_read(records in prop::collection::vec(any_record(), 0..20)) {
        let (records, manifest) = fitting(ManifestKind::Delta, records);
        prop_assert_eq!(read(&manifest).unwrap(), records);
    }

    #[test]
    fn no_byte_can_be_another(
        records in prop::collection::vec(any_record(), 1..4),
        at in any::<prop::sample::Index>(),
        other in 1..=255_u8,
    ) {
        let (_, manifest) = fitting(ManifestKind::Delta, records);
        let mut lines = lines_of(&manifest);
        let at = at.index(lines.len());
        lines[at] ^= other;
        // Digits of the last digest are read in either case.
        prop_assume!(!lines[at].eq_ignore_ascii_case(&(lines[at] ^ other)));
        prop_assert!(read(&gzip(&lines)).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read(&bytes).is_err());
        prop_assert!(read(&gzip(&bytes)).is_err());
        let mut behind_header = lines_of(&write(header(ManifestKind::Delta, 1), &[]));
        behind_header.truncate(behind_header.iter().position(|&byte| byte == b'\n').unwrap() + 1);
        behind_header.extend(bytes);
        prop_assert!(read(&gzip(&behind_header)).is_err());
    }

    #[test]
    fn any_line_is_read_or_refused(
        lines in prop::collection::vec(
            r#"\{("(path|type|mode|mtime|size|target|removed|end|sha256)":("[a%0-9./-]{0,8}"|-?[0-9]{1,20}|true|null|\{\}),?){0,5}\}"#,
            0..6,
        ),
    ) {
        let mut all = lines_of(&write(header(ManifestKind::Delta, 1), &[]));
        all.truncate(all.iter().position(|&byte| byte == b'\n').unwrap() + 1);
        all.extend(lines.join("\n").bytes());
        prop_assert!(read(&gzip(&all)).is_err());
    }

    #[test]
    fn a_merge_is_what_maps_say(
        names in prop::collection::vec(
            prop::collection::btree_map("[a-d]", prop::option::of(0..=i64::MAX.unsigned_abs()), 0..5),
            1..6,
        ),
    ) {
        let mut expected = BTreeMap::new();
        let mut manifests = Vec::new();
        for (sequence, changes) in names.iter().enumerate() {
            let kind = if sequence == 0 { ManifestKind::Base } else { ManifestKind::Delta };
            let mut records = Vec::new();
            for (name, size) in changes {
                match size {
                    Some(size) => {
                        records.push(file(name, *size));
                        expected.insert(name.clone(), *size);
                    }
                    None if kind == ManifestKind::Delta => {
                        records.push(removed(name));
                        expected.remove(name);
                    }
                    None => {}
                }
            }
            manifests.push(write(header(kind, sequence as u64), &records));
        }
        let expected: Vec<ManifestLine> =
            expected.into_iter().map(|(name, size)| file(&name, size)).collect();
        let merged: Vec<ManifestLine> =
            merge(&manifests).unwrap().into_iter().map(ManifestLine::Item).collect();
        prop_assert_eq!(merged, expected);
    }
}
