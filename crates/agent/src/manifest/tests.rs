mod merging;
mod properties;

use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::*;
use crate::entry::Moment;

fn header(kind: ManifestKind, sequence: u64) -> ManifestHeader {
    ManifestHeader {
        kind,
        sequence,
        created: "2026-01-02T03:04:05.000000006Z".parse().unwrap(),
    }
}

/// A path by names with slashes.
fn path(slashed: &str) -> TreePath {
    TreePath::from_bytes(slashed.replace('/', "\0").as_bytes()).unwrap()
}

fn item(path: TreePath, content: ItemContent) -> ManifestLine {
    let attributes = Attributes {
        mode: 0o644,
        uid: 1000,
        gid: 100,
        modified: Moment {
            seconds: -1,
            nanoseconds: 5,
        },
    };
    ManifestLine::Item(ManifestItem {
        path,
        attributes,
        content,
    })
}

fn file(slashed: &str, size: u64) -> ManifestLine {
    let sha256 = [7; 32];
    item(path(slashed), ItemContent::File { size, sha256 })
}

fn directory(slashed: &str) -> ManifestLine {
    item(path(slashed), ItemContent::Directory)
}

fn link(slashed: &str, target: &str) -> ManifestLine {
    item(
        path(slashed),
        ItemContent::Symlink(OsStr::new(target).into()),
    )
}

fn removed(slashed: &str) -> ManifestLine {
    ManifestLine::Removed(path(slashed))
}

fn write(header: ManifestHeader, records: &[ManifestLine]) -> Vec<u8> {
    let mut writer = ManifestWriter::new(Vec::new(), header).unwrap();
    for record in records {
        writer.write(record).unwrap();
    }
    writer.finish().unwrap()
}

fn read(manifest: &[u8]) -> Result<Vec<ManifestLine>, ManifestReadError> {
    ManifestReader::open(manifest)?.collect()
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
fn problem(kind: &str, lines: &[&str]) -> LineProblem {
    let header = format!(
        r#"{{"fairbat_manifest":1,"kind":"{kind}","sequence":1,"created":"2026-01-02T03:04:05Z"}}"#
    );
    let all = [&[header.as_str()], lines, &[""]].concat().join("\n");
    match read(&gzip(all.as_bytes())) {
        Err(ManifestReadError::Line { problem, .. }) => problem,
        other => panic!("{lines:?}: {other:?}"),
    }
}

#[test]
fn the_format_is_this() {
    let odd = TreePath::from_bytes(b"100%\0\xff\n\"").unwrap();
    let records = [
        item(odd, ItemContent::Symlink(OsStr::new("../x y%").into())),
        directory("a"),
        file("a/ü", 12),
        removed("b"),
    ];
    let manifest = write(header(ManifestKind::Delta, 3), &records);
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
    let reader = ManifestReader::open(&manifest[..]).unwrap();
    assert_eq!(*reader.header(), header(ManifestKind::Delta, 3));
}

#[test]
fn members_that_are_not_known_are_passed_over_and_versions_are_not() {
    let manifest = |version| {
        let line = format!(
            r#"{{"fairbat_manifest":{version},"kind":"base","sequence":1,"created":"2026-01-02T03:04:05Z","new":[1]}}"#
        );
        gzip(format!("{line}\n").as_bytes())
    };
    assert!(ManifestReader::open(&manifest(1)[..]).is_ok());
    assert!(matches!(
        ManifestReader::open(&manifest(2)[..]),
        Err(ManifestReadError::Version(2))
    ));
    let known = problem("base", &[r#"{"path":"a","removed":true,"new":1}"#]);
    assert!(matches!(known, LineProblem::RemovedFromBase), "{known}");
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
        assert!(matches!(problem, LineProblem::Path), "{path}: {problem}");
    }
}

#[test]
fn nothing_is_below_a_link_or_a_file() {
    for leaf in [link("a", "/etc"), file("a", 1)] {
        let mut writer = ManifestWriter::new(Vec::new(), header(ManifestKind::Delta, 1)).unwrap();
        writer.write(&leaf).unwrap();
        writer.write(&removed("a/b")).unwrap();
        let error = writer.write(&file("a/passwd", 1)).unwrap_err();
        let is_below = matches!(
            error,
            ManifestWriteError::Refused {
                problem: LineProblem::BelowNoDirectory,
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
    assert!(
        matches!(problem, LineProblem::BelowNoDirectory),
        "{problem}"
    );
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
            format!(
                r#"{{"path":"a","type":"file","size":{},"sha256":"{digest}",{attributes}}}"#,
                1_u64 << 63
            ),
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
            LineProblem::Member(found) => assert_eq!(found, member, "{line}"),
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
        assert!(matches!(problem, LineProblem::Json(_)), "{line}: {problem}");
    }
}

#[test]
fn the_order_is_kept_and_the_root_is_no_entry() {
    for (first, second) in [("b", "a"), ("a", "a"), ("a!", "a/b")] {
        let line = |path: &str| format!(r#"{{"path":"{path}","removed":true}}"#);
        let problem = problem("delta", &[&line(first), &line(second)]);
        assert!(
            matches!(problem, LineProblem::Order),
            "{first} {second}: {problem}"
        );
    }
    let mut writer = ManifestWriter::new(Vec::new(), header(ManifestKind::Base, 1)).unwrap();
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
    let long = "a/".repeat(MAX_LINE / 2) + "a";
    let mut bad_mode = directory("a");
    let mut bad_moment = directory("a");
    if let (ManifestLine::Item(mode), ManifestLine::Item(moment)) = (&mut bad_mode, &mut bad_moment)
    {
        mode.attributes.mode = 0o10_0644;
        moment.attributes.modified.nanoseconds = 1_000_000_000;
    }
    let mut writer = ManifestWriter::new(Vec::new(), header(ManifestKind::Base, 1)).unwrap();
    for record in [
        directory(&long),
        bad_mode,
        bad_moment,
        link("a", ""),
        link("a", "x\0y"),
    ] {
        let error = writer.write(&record).unwrap_err();
        assert!(
            matches!(error, ManifestWriteError::Refused { .. }),
            "{error}"
        );
    }
    assert_eq!(read(&writer.finish().unwrap()).unwrap(), []);
}

#[test]
fn a_line_has_a_limit() {
    let line = format!(
        r#"{{"path":"a","removed":true,"x":"{}"}}"#,
        "y".repeat(MAX_LINE)
    );
    let problem = problem("delta", &[&line]);
    assert!(matches!(problem, LineProblem::TooLong), "{problem}");
    // A longest path there is.
    let deep = directory(&("a/".repeat(16_000) + "a"));
    let written = write(header(ManifestKind::Base, 1), std::slice::from_ref(&deep));
    assert_eq!(read(&written).unwrap(), [deep]);
}

#[test]
fn a_manifest_that_unpacks_to_too_much_is_refused() {
    let records: Vec<_> = (0..9_999).map(|i| file(&format!("f{i:04}"), i)).collect();
    let written = write(header(ManifestKind::Base, 1), &records);
    let lines = lines_of(&written).len() as u64;
    let read = |left| {
        let reader = ManifestReader::within(left, &*written)?;
        reader.collect::<Result<Vec<_>, _>>()
    };
    assert_eq!(read(lines).unwrap(), records);
    for left in [0, 100, lines / 2, lines - 1] {
        let error = read(left).unwrap_err();
        assert!(matches!(error, ManifestReadError::TooLarge), "{error}");
    }
}

#[test]
fn the_count_at_the_end_is_that_of_the_entries() {
    let records = [file("a", 1), file("b", 1)];
    let text = write(header(ManifestKind::Base, 1), &records);
    let text = String::from_utf8(lines_of(&text)).unwrap();
    for other in [1, 3] {
        let text = text.replacen(r#""entries":2"#, &format!(r#""entries":{other}"#), 1);
        let error = read(&gzip(text.as_bytes())).unwrap_err();
        assert!(
            matches!(error, ManifestReadError::Count { found: 2, .. }),
            "{error}"
        );
    }
}

#[test]
fn whatever_is_cut_off_or_appended_is_noticed() {
    let manifest = write(
        header(ManifestKind::Base, 1),
        &[directory("a"), file("a/b", 1)],
    );
    for length in 0..manifest.len() {
        let error = read(&manifest[..length]).unwrap_err();
        assert!(
            matches!(error, ManifestReadError::CutOff),
            "{length}: {error}"
        );
    }
    let lines = lines_of(&manifest);
    for length in 0..lines.len() {
        let error = read(&gzip(&lines[..length])).unwrap_err();
        assert!(
            matches!(error, ManifestReadError::CutOff),
            "{length}: {error}"
        );
    }
    let appended = [
        [&manifest[..], b"x"].concat(),
        [&manifest[..], &manifest[..]].concat(),
        gzip(&[&lines[..], b"\n"].concat()),
    ];
    for manifest in appended {
        let error = read(&manifest).unwrap_err();
        assert!(matches!(error, ManifestReadError::Trailing), "{error}");
    }
}
