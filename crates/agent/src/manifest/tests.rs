use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::entry::Moment;

fn header(kind: Kind, sequence: u64) -> Header {
    Header {
        kind,
        sequence,
        created: "2026-01-02T03:04:05.000000006Z".parse().unwrap(),
        entries: None,
    }
}

/// A path by names with slashes.
fn path(slashed: &str) -> TreePath {
    TreePath::from_bytes(slashed.replace('/', "\0").as_bytes()).unwrap()
}

fn item(path: TreePath, content: Content) -> Record {
    let attributes = Attributes {
        mode: 0o644,
        uid: 1000,
        gid: 100,
        modified: Moment {
            seconds: -1,
            nanoseconds: 5,
        },
    };
    Record::Item(Item {
        path,
        attributes,
        content,
    })
}

fn file(slashed: &str, size: u64) -> Record {
    let sha256 = [7; 32];
    item(path(slashed), Content::File { size, sha256 })
}

fn directory(slashed: &str) -> Record {
    item(path(slashed), Content::Directory)
}

fn link(slashed: &str, target: &str) -> Record {
    item(path(slashed), Content::Symlink(OsStr::new(target).into()))
}

fn removed(slashed: &str) -> Record {
    Record::Removed(path(slashed))
}

fn write(header: Header, records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    for record in records {
        writer.write(record).unwrap();
    }
    writer.finish().unwrap()
}

fn read(manifest: &[u8]) -> Result<Vec<Record>, ReadError> {
    Reader::open(manifest)?.collect()
}

fn lines_of(manifest: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    GzDecoder::new(manifest).read_to_end(&mut lines).unwrap();
    lines
}

fn gzip(lines: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(lines).unwrap();
    encoder.finish().unwrap()
}

/// What a manifest of these lines, with the right end, is refused for.
fn problem(kind: &str, lines: &[&str]) -> Problem {
    let header = format!(
        r#"{{"fairbat_manifest":1,"kind":"{kind}","sequence":1,"created":"2026-01-02T03:04:05Z"}}"#
    );
    let all = [&[header.as_str()], lines, &[""]].concat().join("\n");
    match read(&gzip(all.as_bytes())) {
        Err(ReadError::Line { problem, .. }) => problem,
        other => panic!("{lines:?}: {other:?}"),
    }
}

#[test]
fn the_format_is_this() {
    let odd = TreePath::from_bytes(b"100%\0\xff\n\"").unwrap();
    let records = [
        item(odd, Content::Symlink(OsStr::new("../x y%").into())),
        directory("a"),
        file("a/ü", 12),
        removed("b"),
    ];
    let manifest = write(header(Kind::Delta, 3), &records);
    let text = String::from_utf8(lines_of(&manifest)).unwrap();
    let attributes = r#""mode":"0644","uid":1000,"gid":100,"mtime":"-0.999999995""#;
    let digest = "07".repeat(32);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..5],
        [
            r#"{"fairbat_manifest":1,"kind":"delta","sequence":3,"created":"2026-01-02T03:04:05.000000006Z"}"#.to_owned(),
            format!(r#"{{"path":"100%25/%FF\n\"","type":"link",{attributes},"target":"../x y%25"}}"#),
            format!(r#"{{"path":"a","type":"dir",{attributes}}}"#),
            format!(r#"{{"path":"a/ü","type":"file",{attributes},"size":12,"sha256":"{digest}"}}"#),
            r#"{"path":"b","removed":true}"#.to_owned(),
        ]
    );
    assert!(
        lines[5].starts_with(r#"{"end":{"entries":4,"sha256":""#),
        "{}",
        lines[5]
    );
    assert_eq!(lines.len(), 6);
    assert_eq!(read(&manifest).unwrap(), records);
    let reader = Reader::open(&manifest[..]).unwrap();
    assert_eq!(*reader.header(), header(Kind::Delta, 3));
}

#[test]
fn members_that_are_not_known_are_passed_over_and_versions_are_not() {
    let manifest = |version| {
        let line = format!(
            r#"{{"fairbat_manifest":{version},"kind":"base","sequence":1,"created":"2026-01-02T03:04:05Z","new":[1]}}"#
        );
        gzip(format!("{line}\n").as_bytes())
    };
    assert!(Reader::open(&manifest(1)[..]).is_ok());
    assert!(matches!(
        Reader::open(&manifest(2)[..]),
        Err(ReadError::Version(2))
    ));
    let known = problem("base", &[r#"{"path":"a","removed":true,"new":1}"#]);
    assert!(matches!(known, Problem::RemovedFromBase), "{known}");
}

#[test]
fn nothing_leads_out_of_the_root() {
    for path in [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../a",
        "a/../b",
        "./a",
        "a/",
        "a//b",
        "a\\u0000b",
        "%00",
        "a%2Fb",
        "%2E%2E",
        "%41",
        "%2e",
        "a%",
        "%ff",
    ] {
        let line = format!(r#"{{"path":"{path}","removed":true}}"#);
        let problem = problem("delta", &[&line]);
        assert!(matches!(problem, Problem::Path), "{path}: {problem}");
    }
}

#[test]
fn nothing_is_below_a_link_or_a_file() {
    for leaf in [link("a", "/etc"), file("a", 1)] {
        let mut writer = Writer::new(Vec::new(), header(Kind::Delta, 1)).unwrap();
        writer.write(&leaf).unwrap();
        writer.write(&removed("a/b")).unwrap();
        let error = writer.write(&file("a/passwd", 1)).unwrap_err();
        let is_below = matches!(
            error,
            WriteError::Refused {
                problem: Problem::BelowNoDirectory,
                ..
            }
        );
        assert!(is_below, "{error}");
        // It is as if it had not come.
        writer.write(&file("a!", 1)).unwrap();
        assert_eq!(read(&writer.finish().unwrap()).unwrap().len(), 3);
    }
    let attributes = r#""mode":"0644","uid":0,"gid":0,"mtime":"0.000000000""#;
    let link = format!(r#"{{"path":"a","type":"link",{attributes},"target":"/etc"}}"#);
    let below = format!(r#"{{"path":"a/b","type":"dir",{attributes}}}"#);
    let problem = problem("base", &[&link, &below]);
    assert!(matches!(problem, Problem::BelowNoDirectory), "{problem}");
}

#[test]
fn lines_that_say_too_little_or_too_much_are_refused() {
    let attributes = r#""mode":"0644","uid":0,"gid":0,"mtime":"0.000000000""#;
    let digest = "07".repeat(32);
    for (line, member) in [
        (r#"{}"#.to_owned(), "path"),
        (
            format!(r#"{{"path":"a","end":{{"entries":0,"sha256":"{digest}"}}}}"#),
            "path",
        ),
        (format!(r#"{{"path":"a",{attributes}}}"#), "type"),
        (
            format!(r#"{{"path":"a","removed":true,"type":"dir",{attributes}}}"#),
            "removed",
        ),
        (r#"{"path":"a","removed":false}"#.to_owned(), "removed"),
        (
            r#"{"path":"a","type":"dir","uid":0,"gid":0,"mtime":"0.000000000"}"#.to_owned(),
            "mode",
        ),
        (
            r#"{"path":"a","type":"dir","mode":"0644","uid":0,"gid":0,"mtime":"0"}"#.to_owned(),
            "mtime",
        ),
        (
            format!(r#"{{"path":"a","type":"file","size":1,{attributes}}}"#),
            "sha256",
        ),
        (
            format!(r#"{{"path":"a","type":"file","sha256":"{digest}",{attributes}}}"#),
            "size",
        ),
        (
            format!(r#"{{"path":"a","type":"file","size":1,"sha256":"07",{attributes}}}"#),
            "sha256",
        ),
        (
            format!(r#"{{"path":"a","type":"link",{attributes}}}"#),
            "target",
        ),
        (
            format!(r#"{{"path":"a","type":"link","target":"%00",{attributes}}}"#),
            "target",
        ),
        (
            format!(r#"{{"path":"a","type":"link","target":"",{attributes}}}"#),
            "target",
        ),
    ] {
        match problem("delta", &[&line]) {
            Problem::Member(found) => assert_eq!(found, member, "{line}"),
            other => panic!("{line}: {other}"),
        }
    }
    for line in [
        "",
        "null",
        "[]",
        r#"["a",true]"#,
        r#"{"path":1}"#,
        r#"{"path":"a","type":"fifo"}"#,
        "{",
    ] {
        let problem = problem("delta", &[line]);
        assert!(matches!(problem, Problem::Json(_)), "{line}: {problem}");
    }
}

#[test]
fn the_order_is_kept_and_the_root_is_no_entry() {
    for (first, second) in [("b", "a"), ("a", "a"), ("a!", "a/b")] {
        let line = |path: &str| format!(r#"{{"path":"{path}","removed":true}}"#);
        let problem = problem("delta", &[&line(first), &line(second)]);
        assert!(
            matches!(problem, Problem::Order),
            "{first} {second}: {problem}"
        );
    }
    let mut writer = Writer::new(Vec::new(), header(Kind::Base, 1)).unwrap();
    assert!(writer.write(&directory("")).is_err());
    let error = writer.write(&removed("a")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("a base has nothing that is removed"),
        "{error}"
    );
}

#[test]
fn what_no_reader_takes_is_not_written() {
    let long = "a/".repeat(LONGEST_LINE / 2) + "a";
    let mut bad_mode = directory("a");
    let mut bad_moment = directory("a");
    if let (Record::Item(mode), Record::Item(moment)) = (&mut bad_mode, &mut bad_moment) {
        mode.attributes.mode = 0o10_0644;
        moment.attributes.modified.nanoseconds = 1_000_000_000;
    }
    let mut writer = Writer::new(Vec::new(), header(Kind::Base, 1)).unwrap();
    for record in [
        directory(&long),
        bad_mode,
        bad_moment,
        link("a", ""),
        link("a", "x\0y"),
    ] {
        let error = writer.write(&record).unwrap_err();
        assert!(matches!(error, WriteError::Refused { .. }), "{error}");
    }
    assert_eq!(read(&writer.finish().unwrap()).unwrap(), []);
}

#[test]
fn a_line_has_a_limit() {
    let line = format!(
        r#"{{"path":"a","removed":true,"x":"{}"}}"#,
        "y".repeat(LONGEST_LINE)
    );
    let problem = problem("delta", &[&line]);
    assert!(matches!(problem, Problem::TooLong), "{problem}");
    // A longest path there is.
    let deep = directory(&("a/".repeat(16_000) + "a"));
    let written = write(header(Kind::Base, 1), std::slice::from_ref(&deep));
    assert_eq!(read(&written).unwrap(), [deep]);
}

#[test]
fn the_count_that_was_announced_is_kept() {
    let announced = |entries| Header {
        entries: Some(entries),
        ..header(Kind::Base, 1)
    };
    let records = [file("a", 1), file("b", 1)];
    assert_eq!(read(&write(announced(2), &records)).unwrap(), records);
    let mut writer = Writer::new(Vec::new(), announced(3)).unwrap();
    writer.write(&records[0]).unwrap();
    let error = writer.finish().unwrap_err();
    assert!(
        matches!(
            error,
            WriteError::Count {
                announced: 3,
                found: 1
            }
        ),
        "{error}"
    );
    for other in [1, 3] {
        let text = String::from_utf8(lines_of(&write(announced(2), &records))).unwrap();
        let text = text.replacen(r#""entries":2"#, &format!(r#""entries":{other}"#), 1);
        let error = read(&gzip(text.as_bytes())).unwrap_err();
        assert!(
            matches!(error, ReadError::Count { found: 2, .. }),
            "{error}"
        );
    }
}

#[test]
fn whatever_is_cut_off_or_appended_is_noticed() {
    let manifest = write(header(Kind::Base, 1), &[directory("a"), file("a/b", 1)]);
    for length in 0..manifest.len() {
        let error = read(&manifest[..length]).unwrap_err();
        assert!(matches!(error, ReadError::CutOff), "{length}: {error}");
    }
    let lines = lines_of(&manifest);
    for length in 0..lines.len() {
        let error = read(&gzip(&lines[..length])).unwrap_err();
        assert!(matches!(error, ReadError::CutOff), "{length}: {error}");
    }
    let appended = [
        [&manifest[..], b"x"].concat(),
        [&manifest[..], &manifest[..]].concat(),
        gzip(&[&lines[..], b"\n"].concat()),
    ];
    for manifest in appended {
        let error = read(&manifest).unwrap_err();
        assert!(matches!(error, ReadError::Trailing), "{error}");
    }
}

fn merge(manifests: &[Vec<u8>]) -> Result<Vec<Item>, MergeError> {
    let mut readers = manifests
        .iter()
        .map(|manifest| Reader::open(&manifest[..]).unwrap());
    let base = readers.next().unwrap();
    Merged::new(base, readers.collect())?.collect()
}

#[test]
fn the_latest_of_each_path_counts() {
    let manifests = [
        write(
            header(Kind::Base, 5),
            &[
                directory("a"),
                file("a/b", 1),
                file("c", 1),
                link("d", "x"),
                file("e", 1),
            ],
        ),
        write(
            header(Kind::Delta, 6),
            &[removed("a"), removed("a/b"), file("c", 2), removed("e")],
        ),
        write(
            header(Kind::Delta, 7),
            &[link("a", "c"), file("c", 3), file("e", 2), removed("f")],
        ),
    ];
    let merged: Vec<Record> = merge(&manifests)
        .unwrap()
        .into_iter()
        .map(Record::Item)
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
            header(Kind::Base, sequence),
            &[directory("a"), file("a/b", 1)],
        )
    };
    let delta = |sequence, records: &[Record]| write(header(Kind::Delta, sequence), records);
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
                expected: Kind::Delta
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
                expected: Kind::Base
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
    let base = write(header(Kind::Base, 1), &[file("a", 1), file("b", 1)]);
    let text = String::from_utf8(lines_of(&write(header(Kind::Delta, 2), &[file("c", 12)])));
    let damaged = gzip(text.unwrap().replace(":12,", ":13,").as_bytes());
    let readers = [&base[..], &damaged[..]].map(|manifest| Reader::open(manifest).unwrap());
    let [base, delta] = readers;
    let mut merged = Merged::new(base, vec![delta]).unwrap();
    assert!(merged.by_ref().take(2).all(|item| item.is_ok()));
    let error = merged.next().unwrap().unwrap_err();
    let is_damage = matches!(
        error,
        MergeError::Read {
            sequence: 2,
            error: ReadError::Digest
        }
    );
    assert!(is_damage, "{error}");
    assert!(merged.next().is_none());
}

fn any_record() -> impl Strategy<Value = Record> {
    let byte = prop_oneof![
        prop::sample::select(b"ab%\"\\\n\xff\xc3\xbc".to_vec()),
        any::<u8>()
    ];
    let name = prop::collection::vec(byte, 1..6);
    let path = prop::collection::vec(name.clone(), 1..4).prop_filter_map("no path", |names| {
        TreePath::from_bytes(&names.join(&0)).ok()
    });
    let content = prop_oneof![
        (any::<u64>(), any::<[u8; 32]>()).prop_map(|(size, sha256)| Content::File { size, sha256 }),
        Just(Content::Directory),
        name.prop_filter_map("a NUL", |target| {
            let is_target = !target.contains(&0);
            is_target.then(|| Content::Symlink(OsStr::from_bytes(&target).into()))
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
        None => Record::Removed(path),
        Some((content, attributes)) => Record::Item(Item {
            path,
            attributes,
            content,
        }),
    })
}

/// Those of these records that make a manifest.
fn fitting(kind: Kind, mut records: Vec<Record>) -> (Vec<Record>, Vec<u8>) {
    records.sort_by(|a, b| a.path().cmp(b.path()));
    let mut writer = Writer::new(Vec::new(), header(kind, 1)).unwrap();
    records.retain(|record| writer.write(record).is_ok());
    (records, writer.finish().unwrap())
}

proptest! {
    #[test]
    fn what_is_written_is_read(records in prop::collection::vec(any_record(), 0..20)) {
        let (records, manifest) = fitting(Kind::Delta, records);
        prop_assert_eq!(read(&manifest).unwrap(), records);
    }

    #[test]
    fn no_byte_can_be_another(
        records in prop::collection::vec(any_record(), 1..4),
        at in any::<prop::sample::Index>(),
        other in 1..=255_u8,
    ) {
        let (_, manifest) = fitting(Kind::Delta, records);
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
        let mut behind_header = lines_of(&write(header(Kind::Delta, 1), &[]));
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
        let mut all = lines_of(&write(header(Kind::Delta, 1), &[]));
        all.truncate(all.iter().position(|&byte| byte == b'\n').unwrap() + 1);
        all.extend(lines.join("\n").bytes());
        prop_assert!(read(&gzip(&all)).is_err());
    }

    #[test]
    fn a_merge_is_what_maps_say(
        names in prop::collection::vec(
            prop::collection::btree_map("[a-d]", prop::option::of(any::<u64>()), 0..5),
            1..6,
        ),
    ) {
        let mut expected = BTreeMap::new();
        let mut manifests = Vec::new();
        for (sequence, changes) in names.iter().enumerate() {
            let kind = if sequence == 0 { Kind::Base } else { Kind::Delta };
            let mut records = Vec::new();
            for (name, size) in changes {
                match size {
                    Some(size) => {
                        records.push(file(name, *size));
                        expected.insert(name.clone(), *size);
                    }
                    None if kind == Kind::Delta => {
                        records.push(removed(name));
                        expected.remove(name);
                    }
                    None => {}
                }
            }
            manifests.push(write(header(kind, sequence as u64), &records));
        }
        let expected: Vec<Record> =
            expected.into_iter().map(|(name, size)| file(&name, size)).collect();
        let merged: Vec<Record> =
            merge(&manifests).unwrap().into_iter().map(Record::Item).collect();
        prop_assert_eq!(merged, expected);
    }
}
