//! On real directories. What needs root is skipped, loudly, where it is missing.

mod mounts;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{CWD, Mode, mkdirat};
use tempfile::TempDir;

use super::trail::MAX_OPEN;
use super::*;

/// A tree with these entries: a directory ends in a slash.
fn tree(entries: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    add(dir.path(), entries);
    dir
}

fn add(root: &Path, entries: &[&str]) {
    for entry in entries {
        let path = root.join(entry);
        if entry.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, entry).unwrap();
        }
    }
}

fn open(root: &Path) -> Scan {
    Scan::open(root, EntryFilter::everything(), ScanOptions::default()).unwrap()
}

/// The path of an entry, or `! ` and the message.
fn word(item: Result<TreeEntry, Unreadable>) -> String {
    match item {
        Ok(entry) => entry.path.to_string(),
        Err(unreadable) => format!("! {unreadable}"),
    }
}

fn rest(scan: &mut Scan) -> Vec<String> {
    scan.map(word).collect()
}

/// Goes on until this entry has come.
fn until(scan: &mut Scan, path: &str) {
    let found = scan.map(word).find(|found| found == path);
    assert_eq!(found.as_deref(), Some(path));
}

fn paths(paths: &[TreePath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

/// Whether this test may go on as somebody who may not read everything. For root
/// it runs once more, as nobody.
fn is_ordinary_user(test: &str) -> bool {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return true;
    }
    // To where nobody may read it.
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("test");
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    // By another process: a child of another test could hold our descriptor of a copy that we
    // write, and a program that is open for writing cannot be run.
    let mut copy = Command::new("cp");
    copy.arg(std::env::current_exe().unwrap()).arg(&program);
    assert!(copy.status().unwrap().success());
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let mut again = Command::new(&program);
    again.args(["--exact", test, "--nocapture"]);
    let output = again
        .uid(65_534)
        .gid(65_534)
        .current_dir("/")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
    false
}

#[test]
fn entries_come_in_the_order_of_their_paths_and_say_what_they_are() {
    let dir = tree(&["b/c", "b!", "b.d/e", "a", "b/a/x", "empty/"]);
    let odd = OsStr::from_bytes(b"\xff\n");
    fs::write(dir.path().join(odd), "odd").unwrap();
    symlink("b/c", dir.path().join("link")).unwrap();
    fs::set_permissions(dir.path().join("a"), PermissionsExt::from_mode(0o4751)).unwrap();

    let mut scan = open(dir.path());
    let entries: Vec<TreeEntry> = scan.by_ref().map(Result::unwrap).collect();
    let found: Vec<String> = entries.iter().map(|entry| entry.path.to_string()).collect();
    let expected = [
        "a",
        "b",
        "b/a",
        "b/a/x",
        "b/c",
        "b!",
        "b.d",
        "b.d/e",
        "empty",
        "link",
        "\u{fffd}\\n",
    ];
    assert_eq!(found, expected);
    assert!(entries.is_sorted_by(|a, b| a.path < b.path));
    for entry in &entries {
        let metadata = entry.path.under(dir.path()).symlink_metadata().unwrap();
        let attributes = entry.attributes;
        assert_eq!(attributes.mode, metadata.mode() & 0o7777, "{}", entry.path);
        assert_eq!(
            (attributes.uid, attributes.gid),
            (metadata.uid(), metadata.gid())
        );
        assert_eq!(attributes.modified.seconds, metadata.mtime());
        assert_eq!(
            i64::from(attributes.modified.nanoseconds),
            metadata.mtime_nsec()
        );
        match &entry.kind {
            EntryKind::File(state) => {
                assert!(metadata.is_file());
                assert_eq!(state.size, metadata.size());
                assert_eq!(
                    (state.device, state.inode),
                    (metadata.dev(), metadata.ino())
                );
                assert_eq!(state.changed.seconds, metadata.ctime());
                assert_eq!(i64::from(state.changed.nanoseconds), metadata.ctime_nsec());
            }
            EntryKind::Directory => assert!(metadata.is_dir()),
            EntryKind::Symlink(target) => assert_eq!(&**target, "b/c"),
        }
    }
    let outcome = scan.finish();
    assert!(outcome.complete);
    assert_eq!(outcome.unknown, []);
    assert_eq!(outcome.specials, 0);
}

#[test]
fn links_are_not_followed_but_for_the_root() {
    let dir = tree(&["real/a", "elsewhere/b"]);
    symlink("../elsewhere", dir.path().join("real/link")).unwrap();
    symlink("real", dir.path().join("root")).unwrap();
    assert_eq!(rest(&mut open(&dir.path().join("root"))), ["a", "link"]);
}

#[test]
fn a_root_that_is_no_directory_is_refused() {
    let dir = tree(&["file"]);
    for name in ["file", "missing"] {
        let root = dir.path().join(name);
        let error =
            Scan::open(&root, EntryFilter::everything(), ScanOptions::default()).unwrap_err();
        assert!(matches!(error, ScanError::Open { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn pipes_and_sockets_are_counted() {
    let dir = tree(&["a", "d/"]);
    let _listener = UnixListener::bind(dir.path().join("d/socket")).unwrap();
    for i in 0..12 {
        let made = Command::new("mkfifo")
            .arg(dir.path().join(format!("p{i}")))
            .status();
        assert!(made.unwrap().success());
    }
    let mut scan = open(dir.path());
    assert_eq!(rest(&mut scan), ["a", "d"]);
    assert_eq!(scan.finish().specials, 13);
}

#[test]
fn what_cannot_be_read_is_unknown_and_the_walk_goes_on() {
    if !is_ordinary_user("scan::tests::what_cannot_be_read_is_unknown_and_the_walk_goes_on") {
        return;
    }
    let dir = tree(&["a/x", "b/x", "b/y/z", "c"]);
    let mode = |name: &str, mode| {
        fs::set_permissions(dir.path().join(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    mode("a", 0o000);
    // Its names can be read, and nothing else.
    mode("b", 0o444);
    let mut scan = open(dir.path());
    let found = rest(&mut scan);
    mode("a", 0o755);
    mode("b", 0o755);
    let expected = [
        "a",
        "! a cannot be opened: Permission denied (os error 13)",
        "b",
        "! b/x cannot be examined: Permission denied (os error 13)",
        "! b/y cannot be examined: Permission denied (os error 13)",
        "c",
    ];
    assert_eq!(found, expected);
    let outcome = scan.finish();
    assert!(outcome.complete);
    assert_eq!(paths(&outcome.unknown), ["a", "b/x", "b/y"]);
}

#[test]
fn what_vanishes_is_unknown_and_the_walk_goes_on() {
    let dir = tree(&["a", "b", "c/x", "d"]);
    let mut scan = open(dir.path());
    until(&mut scan, "a");
    fs::remove_file(dir.path().join("b")).unwrap();
    fs::remove_dir_all(dir.path().join("c")).unwrap();
    let vanished = "vanished while its directory was read";
    let expected = [
        format!("! b {vanished}"),
        format!("! c {vanished}"),
        "d".to_owned(),
    ];
    assert_eq!(rest(&mut scan), expected);
    assert_eq!(paths(&scan.finish().unknown), ["b", "c"]);
}

const REPLACED: &str = "was moved, replaced or unmounted while it was read";

#[test]
fn a_directory_that_is_replaced_by_a_link_leads_nowhere_else() {
    let dir = tree(&["root/a/1/x", "root/a/2", "root/b", "secret/1/y", "secret/2"]);
    let root = dir.path().join("root");
    let mut scan = open(&root);
    until(&mut scan, "a/1");
    fs::rename(root.join("a"), dir.path().join("away")).unwrap();
    symlink("../secret", root.join("a")).unwrap();
    assert_eq!(
        rest(&mut scan),
        [
            "a/1/x".to_owned(),
            "a/2".to_owned(),
            format!("! a {REPLACED}"),
            "b".to_owned()
        ]
    );
    assert_eq!(paths(&scan.finish().unknown), ["a"]);
}

#[test]
fn a_directory_that_is_replaced_before_it_is_listed_is_not_walked() {
    let dir = tree(&["a/x", "b"]);
    let mut scan = open(dir.path());
    until(&mut scan, "a");
    fs::rename(dir.path().join("a"), dir.path().join("c")).unwrap();
    add(dir.path(), &["a/other"]);
    assert_eq!(rest(&mut scan), [format!("! a {REPLACED}"), "b".to_owned()]);
}

#[test]
fn a_root_that_is_replaced_is_unknown_as_a_whole() {
    let dir = tree(&["root/a/x", "root/b"]);
    let root = dir.path().join("root");
    let mut scan = open(&root);
    until(&mut scan, "a");
    fs::rename(&root, dir.path().join("old")).unwrap();
    add(dir.path(), &["root/"]);
    assert_eq!(
        rest(&mut scan),
        ["a/x".to_owned(), "b".to_owned(), format!("! . {REPLACED}")]
    );
    assert_eq!(paths(&scan.finish().unknown), ["."]);
}

#[test]
fn a_walk_that_is_ended_early_says_so() {
    let dir = tree(&["a", "b"]);
    let mut scan = open(dir.path());
    until(&mut scan, "a");
    assert!(!scan.finish().complete);
}

#[test]
fn a_directory_on_the_way_is_an_entry_only_if_something_in_it_is() {
    let dir = tree(&["a/b/c/x.rs", "a/b/y.c", "d/e/z.c", "src.rs/f/", "v.rs"]);
    let include = ["*.rs".to_owned()];
    let exclude = ["/v.rs".to_owned()];
    let filter = EntryFilter::new(&include, &exclude).unwrap();
    let mut scan = Scan::open(dir.path(), filter, ScanOptions::default()).unwrap();
    let expected = ["a", "a/b", "a/b/c", "a/b/c/x.rs", "src.rs", "src.rs/f"];
    assert_eq!(rest(&mut scan), expected);
}

/// One directory in the other, each with a file `z` besides.
fn chain(root: &Path, depth: usize) {
    let mut here =
        directory::open_followed(CWD, &CString::new(root.as_os_str().as_bytes()).unwrap());
    for _ in 0..depth {
        let outer = here.unwrap();
        mkdirat(&outer, "d", Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        rustix::fs::openat(&outer, "z", flags, Mode::RUSR).unwrap();
        here = directory::open(&outer, c"d");
    }
}

#[test]
fn a_tree_may_be_deeper_than_descriptors_last() {
    const DEPTH: usize = 10_000;
    let dir = tempfile::tempdir().unwrap();
    chain(dir.path(), DEPTH);
    let mut scan = open(dir.path());
    let mut directories = 0;
    let mut files = 0;
    while let Some(item) = scan.next() {
        match item.unwrap().kind {
            EntryKind::Directory => directories += 1,
            _ => files += 1,
        }
        if (directories + files) % 64 == 0 {
            assert!(scan.trail.open_count() <= MAX_OPEN + 2);
        }
    }
    assert_eq!((directories, files), (DEPTH, DEPTH));
    assert!(scan.finish().complete);
    // The standard library goes down with a descriptor per level.
    assert!(
        Command::new("rm")
            .arg("-rf")
            .arg(dir.path())
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn the_way_back_is_found_when_up_leads_elsewhere() {
    const DEPTH: usize = 2 * MAX_OPEN;
    let dir = tempfile::tempdir().unwrap();
    chain(dir.path(), DEPTH);
    let mut scan = open(dir.path());
    let deepest = ["d"; DEPTH].join("/");
    until(&mut scan, &deepest);
    fs::rename(dir.path().join("d/d/d"), dir.path().join("moved")).unwrap();
    let found = rest(&mut scan);
    // From the deepest outwards; of what was moved, the files were read before
    // it is found out.
    let mut expected: Vec<String> = (1..DEPTH)
        .rev()
        .map(|depth| format!("{}/z", ["d"; DEPTH][..depth].join("/")))
        .collect();
    expected.insert(DEPTH - 3, format!("! d/d/d {REPLACED}"));
    expected.push("z".to_owned());
    assert_eq!(found, expected);
    // Without a way back to it, what is around it is unknown as well.
    let dir = tempfile::tempdir().unwrap();
    chain(dir.path(), DEPTH);
    let mut scan = open(dir.path());
    until(&mut scan, &deepest);
    fs::rename(dir.path().join("d/d/d"), dir.path().join("moved")).unwrap();
    fs::rename(dir.path().join("d/d"), dir.path().join("moved too")).unwrap();
    let found = rest(&mut scan);
    let tail = [
        format!("! d/d/d {REPLACED}"),
        format!("! d/d {REPLACED}"),
        "d/z".to_owned(),
        "z".to_owned(),
    ];
    assert_eq!(found[found.len() - 4..], tail);
    assert_eq!(paths(&scan.finish().unknown), ["d/d"]);
}
