//! Disks that are full, read-only or not there: the error says what is
//! missing, and nothing that was fetched is lost.

use std::fs;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::expect::{assert_absent, assert_content, assert_only, byte_counts_in};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::tmpfs::TmpFs;
use fairbat_tests::workdir::Workdir;

const MIB: u64 = 1 << 20;
const FILE: Content = Content::new(140, 12 * MIB);
const DISK: u64 = 24 * MIB;

/// What a message may be off by: journals, pages, what is still in flight.
const TOLERANCE: u64 = MIB;

fn serve() -> Nginx {
    let nginx = Nginx::start(&Config::default());
    nginx.put("file", &FILE);
    nginx
}

/// Fills the disk until this much is free.
fn fill(disk: &TmpFs, free: u64) {
    let filler = Content::new(0, disk.free() - free);
    filler
        .write_to(&disk.path().join("filler"))
        .expect("written");
    assert_eq!(disk.free(), free);
}

/// Panics if these runs have asked for more than the beginning of the file, which tells its size.
#[track_caller]
fn assert_fetched_little(nginx: &Nginx, runs: u64) {
    let sent = nginx.sent_bytes();
    assert!(
        sent <= runs * MIB / 4,
        "fetched {sent} bytes that have no place"
    );
}

/// Panics unless one of the numbers that were said is about this many bytes.
#[track_caller]
fn assert_names_bytes(outcome: &Outcome, bytes: u64) {
    let error = outcome.event("error");
    assert_eq!(error["kind"], "disk", "{outcome}");
    let message = error["message"].as_str().expect("a message");
    let counts = byte_counts_in(message);
    assert!(
        counts
            .iter()
            .any(|count| count.abs_diff(bytes) <= TOLERANCE),
        "about {bytes} bytes are missing, but the message says {counts:?}: {message}"
    );
    outcome.expect_said(&["space", "full"]);
}

#[test]
fn a_full_disk_is_noticed_before_a_byte_is_written_when_space_is_reserved() {
    let Some(disk) = TmpFs::mount(DISK) else {
        return;
    };
    fill(&disk, 8 * MIB);
    let nginx = serve();
    let get = Fairbat::get(disk.path())
        .args(["--file-allocation", "falloc", "-o", "file"])
        .arg(nginx.url("file"));
    let outcome = get.run();
    outcome.expect_code(6);
    assert_names_bytes(&outcome, 4 * MIB);
    assert_absent(&disk.path().join("file"));
    assert_fetched_little(&nginx, 1);

    fs::remove_file(disk.path().join("filler")).expect("removed");
    get.run().expect_code(0);
    assert_only(disk.path(), &["file"]);
    assert_content(&disk.path().join("file"), &FILE);
}

#[test]
fn a_disk_that_fills_up_keeps_the_part_and_the_same_command_finishes() {
    for split in ["1", "3"] {
        let Some(disk) = TmpFs::mount(DISK) else {
            return;
        };
        fill(&disk, 8 * MIB);
        let nginx = serve();
        let get = Fairbat::get(disk.path())
            .args(["--file-allocation", "none", "-o", "file", "-s", split])
            .args(["--chunk-size", "1M"])
            .arg(nginx.url("file"));
        let outcome = get.run();
        outcome.expect_code(6);
        assert_names_bytes(&outcome, 4 * MIB);
        assert_absent(&disk.path().join("file"));
        let part = fs::metadata(disk.path().join("file.part")).expect("the part is kept");
        assert!(part.len() >= 4 * MIB, "{} bytes kept", part.len());

        fs::remove_file(disk.path().join("filler")).expect("removed");
        let again = get.run();
        again.expect_code(0);
        assert!(again.resumed_bytes() > 0, "{again}");
        assert_only(disk.path(), &["file"]);
        assert_content(&disk.path().join("file"), &FILE);
    }
}

#[test]
fn a_part_made_before_the_disk_filled_up_is_kept_when_space_is_reserved() {
    let Some(disk) = TmpFs::mount(DISK) else {
        return;
    };
    let nginx = Nginx::start(&Config {
        limit_rate: Some(2 * MIB),
        ..Config::default()
    });
    nginx.put("file", &FILE);
    let target = disk.path().join("file");
    let get = |allocation: &str| {
        Fairbat::get(disk.path())
            .args(["--file-allocation", allocation, "-o", "file"])
            .arg(nginx.url("file"))
    };
    get("none").run_until_killed(&target, 2 * MIB);

    fill(&disk, MIB);
    get("falloc").run().expect_code(6);
    assert_absent(&target);
    fs::remove_file(disk.path().join("filler")).expect("removed");
    let again = get("falloc").run();
    again.expect_code(0);
    assert!(again.resumed_bytes() > 0, "{again}");
    assert_content(&target, &FILE);
}

#[test]
fn a_disk_without_a_single_free_byte_is_a_disk_error() {
    let Some(disk) = TmpFs::mount(DISK) else {
        return;
    };
    fill(&disk, 0);
    let nginx = serve();
    for allocation in ["none", "falloc"] {
        let outcome = Fairbat::get(disk.path())
            .args(["--file-allocation", allocation, "-o", "file"])
            .arg(nginx.url("file"))
            .run();
        outcome.expect_code(6).expect_said(&["space", "full"]);
        assert_absent(&disk.path().join("file"));
    }
}

#[test]
fn a_stream_of_unknown_length_that_fills_the_disk_is_a_disk_error() {
    let Some(disk) = TmpFs::mount(DISK) else {
        return;
    };
    fill(&disk, 8 * MIB);
    let nginx = Nginx::start(&Config {
        chunked: true,
        ..Config::default()
    });
    nginx.put("file", &FILE);
    let outcome = Fairbat::get(disk.path())
        .args(["-o", "file", &nginx.url("file")])
        .run();
    outcome.expect_code(6).expect_said(&["space", "full"]);
    assert_absent(&disk.path().join("file"));
}

#[test]
fn a_read_only_directory_is_a_clear_error() {
    let Some(disk) = TmpFs::mount(DISK) else {
        return;
    };
    disk.make_read_only();
    let nginx = serve();
    for target in [vec![], vec!["-o", "file"]] {
        let outcome = Fairbat::get(disk.path())
            .args(&target)
            .arg(nginx.url("file"))
            .run();
        outcome.expect_code(6).expect_said(&["read-only"]);
        assert_eq!(outcome.event("error")["kind"], "disk", "{outcome}");
    }
    assert_fetched_little(&nginx, 2);
}

#[test]
fn a_missing_directory_is_a_clear_error() {
    let nginx = serve();
    let work = Workdir::new();
    let target = ["-o", "no-such-place/file"];
    let outcome = work.get().args(target).arg(nginx.url("file")).run();
    outcome.expect_code(6).expect_said(&["no-such-place"]);
    outcome.expect_said(&["no such file or directory", "does not exist", "missing"]);
    let error = outcome.event("error");
    let hint = error["hint"].as_str().expect("a hint");
    assert!(hint.ends_with("mkdir -p no-such-place"), "{outcome}");
    work.assert_holds(&[]);
    assert_fetched_little(&nginx, 2);
}

#[test]
fn the_directory_that_is_named_is_made() {
    let nginx = serve();
    let work = Workdir::new();
    let file = nginx.url("file");
    let named = work.get().args(["-d", "new/deep", "-o", "named", &file]);
    for run in [work.get().args(["-d", "new", &file]), named] {
        run.run().expect_code(0);
    }
    assert_content(&work.join("new/file"), &FILE);
    assert_content(&work.join("new/deep/named"), &FILE);
    // Only when there is something to put into it.
    let gone = nginx.url("gone");
    let outcome = work.get().args(["-d", "other", &gone]).run();
    outcome.expect_code(1).expect_said(&["404"]);
    assert_only(work.path(), &["new"]);
}

#[test]
fn a_directory_as_the_output_is_a_clear_error() {
    let nginx = serve();
    let work = Workdir::new();
    fs::create_dir(work.join("there")).expect("created");
    for output in ["there", "there/", "."] {
        let outcome = work.get().args(["-o", output, &nginx.url("file")]).run();
        outcome.expect_code_in(&[2, 6]).expect_said(&["directory"]);
        assert_only(work.path(), &["there"]);
        assert_only(&work.join("there"), &[]);
    }
}

#[test]
fn a_file_as_the_directory_is_a_clear_error() {
    let nginx = serve();
    let work = Workdir::new();
    fs::write(work.join("plain"), "x").expect("written");
    let outcome = work.get().args(["-d", "plain", &nginx.url("file")]).run();
    outcome.expect_code_in(&[2, 6]).expect_said(&["directory"]);
    assert_only(work.path(), &["plain"]);
}
