//! In a directory that users share, somebody else can put a file under any name: nothing
//! that another user owns counts as ours, and it is left as it is.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};

use fairbat_tests::bin::suffixed;
use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::netns::skipped;
use fairbat_tests::outcome::Outcome;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(260, 600_000);
/// As long as the file.
const THEIRS: Content = Content::new(261, 600_000);
const RATE: u64 = 100_000;

/// The user that the files are given to.
const STRANGER: u32 = 65_534;

fn serve() -> FaultServer {
    let server = FaultServer::start();
    server.serve("/x", Version::new(&FILE));
    server
}

fn get(work: &Workdir, server: &FaultServer, target: [&str; 2]) -> Outcome {
    work.get().args(target).arg(server.url("/x")).run()
}

/// Makes another user the owner of these files; says so and returns false without the right
/// to do that.
fn give_away(paths: &[&Path]) -> bool {
    let given = |path: &&Path| lchown(path, Some(STRANGER), Some(STRANGER)).is_ok();
    let is_given = paths.iter().all(given);
    if !is_given {
        skipped("needs root to give a file to another user");
    }
    is_given
}

/// Puts other bytes into a file, which looks as before from outside.
fn forge(path: &Path, bytes: u64) {
    let before = fs::metadata(path).expect("it is there");
    let modified = before.modified().expect("a time");
    let file = File::options().write(true).open(path).expect("opened");
    let theirs = THEIRS.bytes(0..bytes);
    file.write_all_at(&theirs, 0).expect("written");
    file.set_modified(modified).expect("dated");
    assert_eq!(fs::metadata(path).expect("it is there").ino(), before.ino());
}

#[test]
fn a_finished_file_of_another_user_is_not_taken_for_the_download() {
    let server = serve();
    for (target, saved) in [(["-o", "x"], "x"), (["-d", "."], "x.1")] {
        let work = Workdir::new();
        get(&work, &server, target).expect_code(0);
        let x = work.join("x");
        forge(&x, THEIRS.len());
        if !give_away(&[&x]) {
            return;
        }
        get(&work, &server, target).expect_code(0);
        assert_content(&work.join(saved), &FILE);
        if saved != "x" {
            assert_content(&x, &THEIRS);
        }
    }
}

/// Leaves a part file and its journal in `work`, as a killed run does, with other bytes in
/// the part; returns what is in both.
fn leave_forged_part(work: &Workdir, server: &FaultServer) -> [Vec<u8>; 2] {
    let version = Version::new(&FILE);
    server.script("/x", move |request| version.answer(request).rate(RATE));
    let mut run = work
        .get()
        .args(["--file-allocation", "none", "-x", "1", "-o", "x"])
        .arg(server.url("/x"))
        .spawn();
    run.wait_for_part(&work.join("x"), FILE.len() / 3);
    run.signal("KILL");
    let _ = run.wait();
    server.serve("/x", Version::new(&FILE));
    let [part, journal] = working_files(work);
    forge(&part, fs::metadata(&part).expect("it is there").len());
    [part, journal].map(|path| fs::read(path).expect("it is there"))
}

fn working_files(work: &Workdir) -> [PathBuf; 2] {
    [".part", ".part.fairbat"].map(|suffix| suffixed(&work.join("x"), suffix))
}

#[test]
fn a_part_or_a_journal_of_another_user_is_left_alone() {
    let server = serve();
    for theirs in [&[0, 1][..], &[0], &[1]] {
        let work = Workdir::new();
        let left = leave_forged_part(&work, &server);
        let paths = working_files(&work);
        let given: Vec<&Path> = theirs.iter().map(|&index| &*paths[index]).collect();
        if !give_away(&given) {
            return;
        }
        let refused = get(&work, &server, ["-o", "x"]);
        refused.expect_code(6).expect_said(&["another user"]);
        let named = given[0].file_name().expect("a name").to_string_lossy();
        let error = refused.event("error");
        let hint = error["hint"].as_str().expect("a hint");
        assert!(hint.contains(&*named), "{refused}");

        // Where the name is free to choose, it is another one.
        get(&work, &server, ["-d", "."]).expect_code(0);
        assert_content(&work.join("x.1"), &FILE);
        assert!(!work.join("x").exists());
        for (path, before) in paths.iter().zip(&left) {
            assert!(
                fs::read(path).expect("it is there") == *before,
                "{theirs:?}"
            );
        }
    }
}

#[test]
fn a_link_of_another_user_does_not_say_which_file_is_replaced() {
    let server = serve();
    let work = Workdir::new();
    let (link, victim) = (work.join("x"), work.join("victim"));
    THEIRS.write_to(&victim).expect("written");
    symlink("victim", &link).expect("linked");
    if !give_away(&[&link]) {
        return;
    }
    let outcome = get(&work, &server, ["-o", "x"]);
    outcome
        .expect_code(6)
        .expect_said(&["x is a link that belongs to another user"])
        .expect_said(&["or remove x"]);
    // There is none yet that could be chowned.
    assert!(!outcome.said().contains(".part"), "{outcome}");
    work.assert_holds(&[("victim", &THEIRS), ("x", &THEIRS)]);
}

#[test]
fn a_file_of_another_user_is_not_replaced_where_everybody_may_write() {
    let server = serve();
    for (mode, is_replaced) in [(0o1777, false), (0o777, false), (0o755, true)] {
        let work = Workdir::new();
        THEIRS.write_to(&work.join("x")).expect("written");
        fs::set_permissions(work.path(), Permissions::from_mode(mode)).expect("our own");
        if !give_away(&[&work.join("x")]) {
            return;
        }
        let outcome = get(&work, &server, ["-o", "x"]);
        if is_replaced {
            outcome.expect_code(0);
            work.assert_holds(&[("x", &FILE)]);
        } else {
            outcome
                .expect_code(6)
                .expect_said(&["x belongs to another user"])
                .expect_said(&["or move x away"]);
            work.assert_holds(&[("x", &THEIRS)]);
        }
    }
}

#[test]
fn a_file_that_another_user_makes_meanwhile_is_not_replaced() {
    let server = serve();
    let work = Workdir::new();
    fs::set_permissions(work.path(), Permissions::from_mode(0o1777)).expect("our own");
    let version = Version::new(&FILE);
    server.script("/x", move |request| version.answer(request).rate(RATE));
    let run = work.get().args(["-o", "x", "-x", "1"]);
    let mut run = run.arg(server.url("/x")).spawn();
    run.wait_for_part(&work.join("x"), 1);
    THEIRS.write_to(&work.join("x")).expect("written");
    let is_given = give_away(&[&work.join("x")]);
    let outcome = run.wait();
    if is_given {
        outcome.expect_code(6).expect_said(&["another user"]);
        assert_content(&work.join("x"), &THEIRS);
    }
}
