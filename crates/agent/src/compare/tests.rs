use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ffi::OsStr;

use proptest::prelude::*;

use super::*;
use crate::entry::{Attributes, FileState};
use crate::scan::UnreadableCause;

const LAST_SCAN: Moment = at(1_000, 0);

const fn at(seconds: i64, nanoseconds: u32) -> Moment {
    Moment {
        seconds,
        nanoseconds,
    }
}

/// A path by names with slashes.
fn path(slashed: &str) -> TreePath {
    TreePath::from_bytes(slashed.replace('/', "\0").as_bytes()).unwrap()
}

fn entry(slashed: &str, kind: EntryKind) -> TreeEntry {
    TreeEntry {
        path: path(slashed),
        kind,
        attributes: Attributes {
            mode: 0o644,
            uid: 1,
            gid: 2,
            modified: at(500, 0),
        },
    }
}

const STATE: FileState = FileState {
    size: 7,
    changed: at(500, 0),
    inode: 3,
    device: 4,
};

fn file(slashed: &str) -> TreeEntry {
    entry(slashed, EntryKind::File(STATE))
}

fn directory(slashed: &str) -> TreeEntry {
    entry(slashed, EntryKind::Directory)
}

fn link(slashed: &str, target: &str) -> TreeEntry {
    entry(slashed, EntryKind::Symlink(OsStr::new(target).into()))
}

fn unknown(slashed: &str) -> Result<TreeEntry, Unreadable> {
    Err(Unreadable {
        path: path(slashed),
        cause: UnreadableCause::Replaced,
    })
}

fn known(entries: &[TreeEntry]) -> Vec<Result<KnownEntry, Infallible>> {
    let known = |entry: &TreeEntry| KnownEntry {
        entry: entry.clone(),
        sha256: None,
    };
    entries.iter().map(|entry| Ok(known(entry))).collect()
}

/// A word and a path for each change.
fn changes(scan: Vec<Result<TreeEntry, Unreadable>>, record: &[TreeEntry]) -> Vec<String> {
    let word = |change: EntryChange| match change {
        EntryChange::Same(old) => format!("same {}", old.entry.path),
        EntryChange::Added(entry) => format!("added {}", entry.path),
        EntryChange::Changed { entry, old } => {
            assert_eq!(entry.path, old.entry.path);
            format!("changed {}", entry.path)
        }
        EntryChange::Touched { entry, .. } => format!("touched {}", entry.path),
        EntryChange::Attributes { entry, .. } => format!("attributes {}", entry.path),
        EntryChange::Removed(old) => format!("removed {}", old.entry.path),
        EntryChange::Unknown(unreadable) => format!("unknown {}", unreadable.path),
    };
    compare(scan, known(record), LAST_SCAN)
        .map(|change| word(change.unwrap()))
        .collect()
}

/// The one change between these.
fn change(now: TreeEntry, then: TreeEntry) -> String {
    let mut all = changes(vec![Ok(now)], &[then]);
    let change = all.pop().unwrap();
    assert!(all.is_empty(), "{all:?}");
    change.split_once(' ').unwrap().0.to_owned()
}

#[test]
fn what_came_and_what_went_is_told_in_order() {
    let now = vec![
        Ok(file("a")),
        Ok(directory("d")),
        Ok(file("d/1")),
        Ok(file("d/3")),
        Ok(file("e")),
    ];
    let then = [
        directory("d"),
        file("d/0"),
        file("d/1"),
        file("d/2"),
        file("f"),
    ];
    assert_eq!(
        changes(now, &then),
        [
            "added a",
            "same d",
            "removed d/0",
            "same d/1",
            "removed d/2",
            "added d/3",
            "added e",
            "removed f",
        ]
    );
}

#[test]
fn a_directory_that_is_none_any_more_takes_its_entries_along() {
    let then = [directory("a"), file("a/b"), file("c")];
    let now = vec![Ok(link("a", "c")), Ok(file("c"))];
    assert_eq!(changes(now, &then), ["changed a", "removed a/b", "same c"]);
}

#[test]
fn every_sign_of_another_content_counts() {
    let with = |change: fn(&mut FileState)| {
        let mut state = STATE;
        change(&mut state);
        entry("a", EntryKind::File(state))
    };
    assert_eq!(change(file("a"), file("a")), "same");
    assert_eq!(change(with(|state| state.size = 8), file("a")), "changed");
    assert_eq!(change(with(|state| state.inode = 8), file("a")), "changed");
    let mut written = file("a");
    written.attributes.modified = at(501, 0);
    assert_eq!(change(written, file("a")), "changed");
    assert_eq!(
        change(with(|state| state.changed = at(600, 0)), file("a")),
        "touched"
    );
    assert_eq!(change(with(|state| state.device = 8), file("a")), "touched");
    assert_eq!(change(directory("a"), file("a")), "changed");
    assert_eq!(change(link("a", "x"), link("a", "y")), "changed");
    assert_eq!(change(link("a", "x"), link("a", "x")), "same");
}

#[test]
fn attributes_alone_are_told_apart() {
    let private = |mut entry: TreeEntry| {
        entry.attributes.mode = 0o600;
        entry
    };
    for entry in [file("a"), directory("a"), link("a", "x")] {
        assert_eq!(change(private(entry.clone()), entry), "attributes");
    }
    // The mode of a file changes together with the time of its last change.
    let mut state = STATE;
    state.changed = at(600, 0);
    let changed = private(entry("a", EntryKind::File(state)));
    assert_eq!(change(changed, file("a")), "touched");
}

#[test]
fn a_change_shortly_before_the_last_scan_may_hide_another() {
    for (stamp, expected) in [
        (at(997, 999_999_999), "same"),
        (at(998, 0), "touched"),
        (at(1_000, 0), "touched"),
        (at(2_000, 0), "touched"),
    ] {
        let mut state = STATE;
        state.changed = stamp;
        let stamped = entry("a", EntryKind::File(state));
        assert_eq!(change(stamped.clone(), stamped), expected, "{stamp:?}");
    }
}

#[test]
fn nothing_below_what_is_unknown_is_removed() {
    let then = [
        directory("a"),
        file("a/1"),
        directory("b"),
        file("b/1"),
        directory("b/2"),
        file("b/2/3"),
        file("b!"),
        file("c"),
    ];
    // Told before anything in it, as of a directory that cannot be read.
    let now = vec![
        Ok(directory("a")),
        Ok(file("a/1")),
        Ok(directory("b")),
        unknown("b"),
    ];
    assert_eq!(
        changes(now, &then),
        [
            "same a",
            "same a/1",
            "same b",
            "unknown b",
            "removed b!",
            "removed c"
        ]
    );
    // Told when it is left, as of a directory that was moved meanwhile.
    let now = vec![
        Ok(directory("b")),
        Ok(directory("b/2")),
        unknown("b/2"),
        unknown("b"),
        Ok(file("c")),
    ];
    assert_eq!(
        changes(now, &then),
        [
            "removed a",
            "removed a/1",
            "same b",
            "removed b/1",
            "same b/2",
            "unknown b/2",
            "unknown b",
            "removed b!",
            "same c",
        ]
    );
    let lost = changes(vec![unknown("")], &then);
    assert_eq!(lost, ["unknown ."]);
}

#[test]
fn a_directory_around_what_is_unknown_is_not_removed() {
    let then = [
        directory("a"),
        file("a/1"),
        directory("a/2"),
        file("a/2/3"),
        file("a/4"),
    ];
    assert_eq!(
        changes(vec![unknown("a/2")], &then),
        ["removed a/1", "unknown a/2", "removed a/4"]
    );
}

#[test]
fn an_error_of_the_record_is_handed_on() {
    let record = vec![
        Ok(KnownEntry {
            entry: file("a"),
            sha256: None,
        }),
        Err("disk"),
    ];
    let mut changes = compare(vec![Ok(file("a")), Ok(file("b"))], record, LAST_SCAN);
    assert!(matches!(changes.next(), Some(Ok(EntryChange::Same(_)))));
    assert!(matches!(changes.next(), Some(Err("disk"))));
}

proptest! {
    /// Of any two states of a tree, each path is told of once, and as what sets
    /// of the two say of it.
    #[test]
    fn a_merge_is_what_sets_say(
        now in prop::collection::btree_map("[ab]{1,2}(/[ab]{1,2}){0,2}", 0..3_u64, 0..12),
        then in prop::collection::btree_map("[ab]{1,2}(/[ab]{1,2}){0,2}", 0..3_u64, 0..12),
        unknown_at in prop::option::of("[ab]"),
    ) {
        let sized = |(slashed, size): (&String, &u64)| {
            let mut state = STATE;
            state.size = *size;
            entry(slashed, EntryKind::File(state))
        };
        let sorted = |map: &BTreeMap<String, u64>| {
            let mut all: Vec<TreeEntry> = map.iter().map(sized).collect();
            all.sort_by(|a, b| a.path.cmp(&b.path));
            all
        };
        let hidden = unknown_at.as_deref().map(path);
        let is_hidden = |entry: &TreeEntry| {
            hidden.as_ref().is_some_and(|hidden| entry.path.is_at_or_below(hidden))
        };
        let mut scan: Vec<Result<TreeEntry, Unreadable>> =
            sorted(&now).into_iter().filter(|entry| !is_hidden(entry)).map(Ok).collect();
        if let Some(slashed) = &unknown_at {
            let before = |item: &Result<TreeEntry, Unreadable>| {
                item.as_ref().is_ok_and(|entry| entry.path < path(slashed))
            };
            scan.insert(scan.partition_point(before), unknown(slashed));
        }
        // Something may be recorded around an entry that is a file now; that is
        // no tree, and not what this is about.
        let around: BTreeSet<TreePath> = sorted(&then)
            .into_iter()
            .filter(|old| {
                sorted(&now).iter().any(|entry| entry.path != old.path && entry.path.is_at_or_below(&old.path))
            })
            .map(|old| old.path)
            .collect();
        let mut expected: Vec<String> = Vec::new();
        for entry in sorted(&now).iter().filter(|entry| !is_hidden(entry)) {
            let slashed = entry.path.to_string();
            expected.push(match then.get(&slashed) {
                None => format!("added {slashed}"),
                Some(size) if *size == now[&slashed] => format!("same {slashed}"),
                Some(_) => format!("changed {slashed}"),
            });
        }
        for old in sorted(&then).iter().filter(|entry| !is_hidden(entry)) {
            let slashed = old.path.to_string();
            if !now.contains_key(&slashed) && !around.contains(&old.path) {
                expected.push(format!("removed {slashed}"));
            }
        }
        expected.sort();
        let mut found = changes(scan, &sorted(&then));
        found.retain(|change| {
            let (word, slashed) = change.split_once(' ').unwrap();
            word != "unknown" && !(word == "removed" && around.contains(&path(slashed)))
        });
        found.sort();
        prop_assert_eq!(found, expected);
    }
}
