//! Several that set up or remove at the same time.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;

use dalbe::setup::{Installed, Status, remove, status};
use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::mount::{UnmountFlags, unmount};

use super::*;

/// What is locked, as long as it is.
fn lock() -> PathBuf {
    directory().join("fairbat-lock")
}

/// Takes the lock as `fairbat setup` does.
fn locked() -> File {
    DirBuilder::new()
        .mode(0o700)
        .create(lock())
        .expect("nobody has it");
    let file = File::open(lock()).expect("just made");
    flock(&file, FlockOperation::LockExclusive).expect("nobody has it");
    file
}

/// Waits until somebody waits for the lock, which has to be there.
fn wait_for_a_waiter() {
    let found = fs::metadata(lock()).expect("locked");
    let (major, minor, number) = (major(found.dev()), minor(found.dev()), found.ino());
    let file = format!(" {major:02x}:{minor:02x}:{number} ");
    wait_until("somebody to wait", || {
        let locks = fs::read_to_string("/proc/locks").expect("readable");
        // proc_locks(5).
        let mut waiting = locks.lines().filter(|line| line.contains("->"));
        waiting.any(|line| line.contains(&file))
    });
}

#[test]
fn who_waits_for_a_file_system_that_goes_makes_another() {
    in_own_namespace(|| {
        set_up(Part::CongestionControls);
        let held = locked();
        let installed = thread::scope(|scope| {
            let setup = scope.spawn(|| install(directory(), Part::Observer));
            wait_for_a_waiter();
            // As a removal does.
            unmount(directory(), UnmountFlags::DETACH).expect("root");
            fs::remove_dir(directory()).expect("root");
            fs::remove_dir("/run/fairbat").expect("root");
            drop(held);
            setup.join().expect("no panic")
        });
        assert_eq!(installed.expect("root"), Installed::New);
        for (part, expected) in [
            (Part::Observer, Status::SetUp),
            (Part::CongestionControls, Status::NotSetUp),
        ] {
            assert_eq!(status(directory(), part).expect("readable"), expected);
        }
    });
}

#[test]
fn a_setup_and_a_removal_both_come_to_their_ends() {
    in_own_namespace(|| {
        for _ in 0..10 {
            set_up(Part::Observer);
            let held = locked();
            let (installed, removed) = thread::scope(|scope| {
                let setup = scope.spawn(|| install(directory(), Part::Observer));
                let removal = scope.spawn(|| remove(directory(), Part::Observer));
                wait_for_a_waiter();
                fs::remove_dir(lock()).expect("held");
                drop(held);
                (setup.join(), removal.join())
            });
            assert!(removed.expect("no panic").expect("root"));
            let expected = match installed.expect("no panic").expect("root") {
                // After the removal.
                Installed::New => Status::SetUp,
                // Before it.
                _ => Status::NotSetUp,
            };
            let there = status(directory(), Part::Observer);
            assert_eq!(there.expect("readable"), expected);
            remove(directory(), Part::Observer).expect("root");
            assert_eq!(entries(Path::new("/run")), [""; 0]);
        }
    });
}
