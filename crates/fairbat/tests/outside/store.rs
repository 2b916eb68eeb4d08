//! Part files and journals on a real file system: whatever is written, and
//! whenever the process is killed or the power fails, what is trusted
//! afterwards is right, and nothing that could be trusted is lost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use fairbat::download::part::PartError;
use fairbat::download::part::file::PartFile;
use fairbat::download::part::journal::Journal;
use fairbat::download::part::{Incoming, OpenedPart, PartStore};
use fairbat::file_name::name_for;
use fairbat::http::validator::{Validator, Version};
use fairbat::ranges::RangeSet;
use fairbat::settings::{FileAllocation, Target};
use http::{HeaderMap, HeaderValue, header};
use proptest::prelude::*;

const TOTAL: u64 = 4096;

fn content() -> Vec<u8> {
    (0..TOTAL).map(|offset| (offset * 31 % 251) as u8).collect()
}

fn incoming(etag: &str) -> Incoming {
    let mut headers = HeaderMap::new();
    headers.insert(header::ETAG, HeaderValue::from_str(etag).unwrap());
    let validator = Validator::from_headers(&headers).unwrap();
    Incoming {
        others: Vec::new(),
        awaited: Vec::new(),
        hash: None,
        url: "http://host/file".into(),
        resource: "resource".into(),
        total: Some(TOTAL),
        version: Some(Version {
            total: TOTAL,
            validator: validator.clone(),
        }),
        validator: Some(validator),
        name: name_for(Some("file"), &"http://host/file".parse().unwrap()),
        start_over: false,
    }
}

fn open(directory: &Path, incoming: &Incoming) -> Result<(Arc<PartFile>, RangeSet), PartError> {
    let target = Target::Directory(directory.to_owned());
    match PartStore::new(true, FileAllocation::None).open(&target, incoming)? {
        OpenedPart::Part { part, have, .. } => Ok((part, have)),
        other => panic!("{other:?}"),
    }
}

fn journal_of(directory: &Path) -> PathBuf {
    directory.join("file.part.fairbat")
}

/// What a power loss leaves: the synced bytes, garbage elsewhere, and another
/// boot. Returns what had been synced.
fn lose_power(directory: &Path) -> RangeSet {
    let path = journal_of(directory);
    let mut journal = Journal::decode(&fs::read(&path).unwrap()).unwrap();
    let synced = journal.trusted("");
    journal.record.instance = "an earlier boot".into();
    let mut bytes = journal.record.encode();
    for range in &journal.tail {
        bytes.extend(fairbat::download::part::journal::tail_line(range).bytes());
    }
    fs::write(&path, bytes).unwrap();
    let part = directory.join("file.part");
    let mut data = fs::read(&part).unwrap();
    for gap in synced.gaps(data.len() as u64) {
        data[gap.start as usize..gap.end as usize].fill(0xEE);
    }
    fs::write(&part, data).unwrap();
    synced
}

#[derive(Debug, Clone)]
enum Step {
    Write(Range<u64>),
    Checkpoint,
    Kill,
    LosePower,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..TOTAL, 1..700_u64)
            .prop_map(|(first, len)| Step::Write(first..(first + len).min(TOTAL))),
        2 => Just(Step::Checkpoint),
        1 => Just(Step::Kill),
        1 => Just(Step::LosePower),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_trusted_is_right_and_complete(steps in prop::collection::vec(step(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let whole = content();
        let incoming = incoming("\"v1\"");
        let (mut part, have) = open(directory.path(), &incoming).unwrap();
        prop_assert!(have.is_empty());
        let mut written = RangeSet::new();
        for step in steps {
            match step {
                Step::Write(range) => {
                    let (first, end) = (range.start as usize, range.end as usize);
                    let middle = first + (end - first) / 2;
                    let pieces = [&whole[first..middle], &whole[middle..end]];
                    part.write_at(range.start, &pieces.map(Bytes::copy_from_slice)).unwrap();
                    written.insert(range);
                }
                Step::Checkpoint => {
                    part.checkpoint().unwrap();
                    prop_assert_eq!(part.unsynced_bytes(), 0);
                }
                Step::Kill | Step::LosePower => {
                    drop(part);
                    if matches!(step, Step::LosePower) {
                        written = lose_power(directory.path());
                    }
                    let (again, have) = open(directory.path(), &incoming).unwrap();
                    prop_assert_eq!(&have, &written);
                    part = again;
                }
            }
            let data = fs::read(directory.path().join("file.part")).unwrap();
            for range in written.iter() {
                let range = range.start as usize..range.end as usize;
                prop_assert_eq!(&data[range.clone()], &whole[range]);
            }
        }
        for gap in written.gaps(TOTAL) {
            let bytes = whole[gap.start as usize..gap.end as usize].to_vec();
            part.write_at(gap.start, &[bytes.into()]).unwrap();
        }
        part.finish(TOTAL, None, false).unwrap();
        prop_assert_eq!(fs::read(directory.path().join("file")).unwrap(), whole);
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
        prop_assert_eq!(left.len(), 1, "working files are left: {:?}", left);
    }
}

#[test]
fn another_version_starts_over() {
    let directory = tempfile::tempdir().unwrap();
    let (part, _) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    part.write_at(0, &[content().into()]).unwrap();
    part.checkpoint().unwrap();
    drop(part);
    let (_part, have) = open(directory.path(), &incoming("\"v2\"")).unwrap();
    assert!(have.is_empty());
    assert_eq!(
        fs::metadata(directory.path().join("file.part"))
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn a_damaged_journal_starts_over_and_a_missing_one_is_foreign() {
    let directory = tempfile::tempdir().unwrap();
    let (part, _) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    part.write_at(0, &[content().into()]).unwrap();
    drop(part);
    let path = journal_of(directory.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[30] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (part, have) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    assert!(have.is_empty());
    drop(part);

    fs::remove_file(&path).unwrap();
    fs::remove_file(directory.path().join("file.part")).unwrap();
    fs::write(directory.path().join("file.part"), "somebody's").unwrap();
    let (part, _) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    assert_eq!(part.target(), directory.path().join("file.1"));
    let kept = fs::read(directory.path().join("file.part")).unwrap();
    assert_eq!(kept, b"somebody's");
    let named = Target::File(directory.path().join("file"));
    let refused = PartStore::new(true, FileAllocation::None).open(&named, &incoming("\"v1\""));
    assert!(
        matches!(refused, Err(PartError::ForeignPart(_))),
        "{refused:?}"
    );
}

#[test]
fn a_part_has_one_owner() {
    let directory = tempfile::tempdir().unwrap();
    let (_part, _) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    let second = open(directory.path(), &incoming("\"v1\""));
    assert!(matches!(second, Err(PartError::Busy(_))), "{second:?}");
}

/// Opens in directory mode and expects the finished file.
fn complete(directory: &Path, incoming: &Incoming) -> Option<PathBuf> {
    let target = Target::Directory(directory.to_owned());
    let store = PartStore::new(true, FileAllocation::None);
    match store.open(&target, incoming).unwrap() {
        OpenedPart::Complete(path) => Some(path),
        _ => None,
    }
}

#[test]
fn killed_between_rename_and_clean_up_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let (part, _) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    part.write_at(0, &[content().into()]).unwrap();
    part.checkpoint().unwrap();
    let journal = fs::read(journal_of(directory.path())).unwrap();
    part.finish(TOTAL, None, false).unwrap();
    drop(part);
    fs::write(journal_of(directory.path()), journal).unwrap();
    let found = complete(directory.path(), &incoming("\"v1\""));
    assert_eq!(found, Some(directory.path().join("file")));
    assert!(!journal_of(directory.path()).exists());
}

#[test]
fn only_an_untouched_file_of_this_version_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let (part, _) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    part.write_at(0, &[content().into()]).unwrap();
    part.finish(TOTAL, Some(std::time::UNIX_EPOCH), false)
        .unwrap();
    drop(part);
    assert!(complete(directory.path(), &incoming("\"v1\"")).is_some());
    assert!(complete(directory.path(), &incoming("\"v2\"")).is_none());
    let mut elsewhere = incoming("\"v1\"");
    elsewhere.url = "http://host/other/file".into();
    elsewhere.resource = "another resource".into();
    assert!(complete(directory.path(), &elsewhere).is_none());
    let mut data = content();
    data[17] ^= 1;
    fs::write(directory.path().join("file"), data).unwrap();
    assert!(complete(directory.path(), &incoming("\"v1\"")).is_none());
}

#[test]
fn a_part_that_was_replaced_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (first, _) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    first.write_at(0, &[content().into()]).unwrap();
    fs::remove_file(directory.path().join("file.part")).unwrap();
    fs::remove_file(journal_of(directory.path())).unwrap();
    let (second, _) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    second
        .write_at(0, &[content()[..100].to_vec().into()])
        .unwrap();
    second.checkpoint().unwrap();
    let journal = fs::read(journal_of(directory.path())).unwrap();
    for refused in [
        first.checkpoint(),
        first.finish(TOTAL, None, true),
        first.discard(),
    ] {
        assert!(matches!(refused, Err(PartError::Stolen(_))), "{refused:?}");
    }
    assert_eq!(fs::read(journal_of(directory.path())).unwrap(), journal);
    assert!(!directory.path().join("file").exists());
}

#[test]
fn a_part_with_bytes_missing_is_not_finished() {
    let directory = tempfile::tempdir().unwrap();
    let (part, _) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    part.write_at(1, &[content()[1..].to_vec().into()]).unwrap();
    let refused = part.finish(TOTAL, None, false);
    assert!(
        matches!(refused, Err(PartError::Incomplete(_))),
        "{refused:?}"
    );
}

#[test]
fn an_answer_that_identifies_nothing_throws_nothing_away_unasked() {
    let directory = tempfile::tempdir().unwrap();
    let (part, _) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    part.write_at(0, &[content()[..100].to_vec().into()])
        .unwrap();
    drop(part);
    let store = PartStore::new(true, FileAllocation::None);
    let target = Target::Directory(directory.path().to_owned());
    let mut stray = incoming("\"v1\"");
    stray.version = None;
    let opened = store.open(&target, &stray).unwrap();
    assert!(matches!(opened, OpenedPart::Unidentified), "{opened:?}");
    let (_part, have) = open(directory.path(), &incoming("\"v1\"")).unwrap();
    assert_eq!(have.total(), 100);
    drop(_part);
    stray.start_over = true;
    match store.open(&target, &stray).unwrap() {
        OpenedPart::Part {
            have, restarted, ..
        } => assert!(have.is_empty() && restarted.is_some()),
        other => panic!("{other:?}"),
    }
}
