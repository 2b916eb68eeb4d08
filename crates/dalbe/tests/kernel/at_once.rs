//! Several that set up or remove at the same time.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use dalbe::ebpf::Observer;
use dalbe::ebpf::setup::{InstallOutcome, SetupError, SetupStatus, remove, status};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, major, minor, mknodat};
use rustix::mount::{UnmountFlags, mount_bind, unmount};

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
fn a_setup_that_waits_for_a_removed_file_system_makes_another() {
    in_own_namespace(|| {
        set_up(EbpfPart::CongestionControls);
        let held = locked();
        let installed = thread::scope(|scope| {
            let setup = scope.spawn(|| install(directory(), EbpfPart::Observer));
            wait_for_a_waiter();
            // As a removal does.
            unmount(directory(), UnmountFlags::DETACH).expect("root");
            fs::remove_dir(directory()).expect("root");
            fs::remove_dir("/run/fairbat").expect("root");
            drop(held);
            setup.join().expect("no panic")
        });
        assert_eq!(installed.expect("root"), InstallOutcome::New);
        for (part, expected) in [
            (EbpfPart::Observer, SetupStatus::SetUp),
            (EbpfPart::CongestionControls, SetupStatus::NotSetUp),
        ] {
            assert_eq!(status(directory(), part).expect("readable"), expected);
        }
    });
}

#[test]
fn a_setup_and_a_removal_at_once_both_end() {
    in_own_namespace(|| {
        for _ in 0..10 {
            set_up(EbpfPart::Observer);
            let held = locked();
            let (installed, removed) = thread::scope(|scope| {
                let setup = scope.spawn(|| install(directory(), EbpfPart::Observer));
                let removal = scope.spawn(|| remove(directory(), EbpfPart::Observer));
                wait_for_a_waiter();
                fs::remove_dir(lock()).expect("held");
                drop(held);
                (setup.join(), removal.join())
            });
            assert!(removed.expect("no panic").expect("root"));
            let expected = match installed.expect("no panic").expect("root") {
                // After the removal.
                InstallOutcome::New => SetupStatus::SetUp,
                // Before it.
                _ => SetupStatus::NotSetUp,
            };
            let there = status(directory(), EbpfPart::Observer);
            assert_eq!(there.expect("readable"), expected);
            remove(directory(), EbpfPart::Observer).expect("root");
            assert_eq!(entries(Path::new("/run")), [""; 0]);
        }
    });
}

/// On a machine of its own that describes its types in a pipe: who sets up
/// waits there, with the lock, until somebody opens and closes it.
#[allow(unsafe_code, reason = "rustix calls unsharing unsafe")]
fn behind_a_pipe<T: Send>(pipe: &Path, work: impl FnOnce() -> T + Send) -> T {
    run(|| {
        // SAFETY: as in in_own_namespace().
        unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }.expect("root");
        let described = Path::new("/sys/kernel/btf/vmlinux");
        mount_bind(pipe, described).expect("root");
        work()
    })
}

#[test]
fn a_setup_that_waits_for_a_failing_one_succeeds() {
    in_own_namespace(|| {
        // What the one mounts the other sees.
        mount_change("/run", MountPropagationFlags::SHARED).expect("root");
        let pipe = Path::new("/run/pipe");
        mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR, 0).expect("root");
        let (failed, installed) = thread::scope(|scope| {
            let first =
                scope.spawn(|| behind_a_pipe(pipe, || install(directory(), EbpfPart::Observer)));
            wait_until("the first to have the lock", || lock().exists());
            let second = scope.spawn(|| install(directory(), EbpfPart::Observer));
            // Whatever comes of it, the first must be let go.
            let waited = std::panic::catch_unwind(wait_for_a_waiter);
            while !first.is_finished() {
                let mut empty = File::options();
                empty.write(true).custom_flags(libc::O_NONBLOCK);
                drop(empty.open(pipe));
                thread::sleep(Duration::from_millis(5));
            }
            waited.expect("the lock keeps the second waiting");
            (first.join(), second.join())
        });
        let error = failed.expect("no panic").expect_err("no types");
        assert!(matches!(error, SetupError::Refused { .. }), "{error}");
        assert_eq!(
            installed.expect("no panic").expect("root"),
            InstallOutcome::New
        );
        Observer::open().expect("set up");
        assert!(remove(directory(), EbpfPart::Observer).expect("root"));
        assert_eq!(entries(Path::new("/run")), ["pipe"]);
    });
}

#[test]
fn a_failed_setup_is_undone_before_its_lock_is_free() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let version = directory().join("observer/v1");
        // Taken apart, by somebody who has put a directory there.
        for name in ["link", "watch"] {
            fs::remove_file(version.join(name)).expect("root");
        }
        fs::create_dir(version.join("link")).expect("root");
        let events = inotify::init(CreateFlags::NONBLOCK).expect("a few are allowed");
        for path in [directory(), &directory().join("observer")] {
            inotify::add_watch(&events, path, WatchFlags::DELETE).expect("there");
        }
        install(directory(), EbpfPart::Observer).expect_err("it cannot be replaced");
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&events, &mut buffer);
        let mut removed = Vec::new();
        while let Ok(event) = reader.next() {
            let name = event.file_name().expect("of a directory");
            removed.push(name.to_str().expect("UTF-8").to_owned());
        }
        assert_eq!(removed, ["unfinished", "fairbat-lock"]);
    });
}
