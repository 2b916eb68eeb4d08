//! Coming and going: by whom, what is left, and what is not touched.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use dalbe::ebpf::EbpfUnavailable;
use dalbe::ebpf::setup::{InstallOutcome, SetupError, SetupStatus, remove, status};
use libbpf_rs::MapHandle;
use libbpf_rs::query::ProgInfoIter;
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use super::*;

/// Programs of this name in the kernel, whoever has loaded them.
fn programs() -> Vec<u32> {
    ProgInfoIter::default()
        .filter(|program| program.name == "observe")
        .map(|program| program.id)
        .collect()
}

/// The program of the observer that is set up in this namespace.
fn own_program(link: &Path) -> u32 {
    let link = libbpf_rs::Link::open(link).expect("the pinned link");
    link.info().expect("a link").prog_id
}

/// Waits until the kernel has let go of this program.
fn assert_goes(program: u32) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while programs().contains(&program) {
        assert!(
            Instant::now() < deadline,
            "program {program} is still there"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn removal_of_the_observer_leaves_no_trace() {
    in_own_namespace(|| {
        assert_eq!(
            status(directory(), EbpfPart::Observer).expect("readable"),
            SetupStatus::NotSetUp
        );
        assert!(matches!(Observer::open(), Err(EbpfUnavailable::NotSetUp)));
        assert!(!remove(directory(), EbpfPart::Observer).expect("nothing to remove"));

        assert_eq!(
            install(directory(), EbpfPart::Observer).expect("root"),
            InstallOutcome::New
        );
        assert_eq!(
            status(directory(), EbpfPart::Observer).expect("readable"),
            SetupStatus::SetUp
        );
        assert_eq!(
            install(directory(), EbpfPart::Observer).expect("root"),
            InstallOutcome::Already
        );
        let mode = |name: &str| {
            let path = directory().join("observer/v1").join(name);
            fs::metadata(path).expect("pinned").permissions().mode() & 0o777
        };
        assert_eq!(
            [mode("watch"), mode("statistics"), mode("link")],
            [0o666, 0o444, 0o600]
        );
        let program = own_program(&directory().join("observer/v1/link"));

        assert!(remove(directory(), EbpfPart::Observer).expect("root"));
        assert_goes(program);
        assert_eq!(
            status(directory(), EbpfPart::Observer).expect("readable"),
            SetupStatus::NotSetUp
        );
        assert!(!Path::new("/run/fairbat").exists());
        assert!(matches!(Observer::open(), Err(EbpfUnavailable::NotSetUp)));
    });
}

#[test]
fn users_cannot_freeze_the_shared_maps() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        as_nobody(|| {
            let path = directory().join("observer/v1/watch");
            let watch = MapHandle::from_pinned_path(path).expect("everybody may");
            watch.freeze().expect_err("it is everybody's");
            let observer = Observer::open().expect("everybody may");
            let (mut client, mut server) = loopback();
            let socket = socket_of(&client);
            observer
                .watch(&socket, Duration::from_millis(100))
                .expect("its own socket");
            transfer(&mut server, &mut client, 2_000);
            let _ = observed(&observer, &socket, 2_000);
        });
    });
}

#[test]
fn an_open_observer_reports_nothing_new_after_its_removal() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let observer = Observer::open().expect("set up");
        let (mut client, mut server) = loopback();
        let socket = socket_of(&client);
        observer
            .watch(&socket, Duration::from_secs(1))
            .expect("its own socket");
        transfer(&mut server, &mut client, 2_000);
        let program = own_program(&directory().join("observer/v1/link"));
        remove(directory(), EbpfPart::Observer).expect("root");
        assert_goes(program);
        transfer(&mut server, &mut client, 2_000);
        let intervals = observed(&observer, &socket, 2_000);
        assert!(intervals.iter().map(|i| i.bytes).sum::<u64>() <= 2_000);
    });
}

#[test]
fn the_observer_ends_with_the_namespace_of_its_setup() {
    let mut program = None;
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let own = own_program(&directory().join("observer/v1/link"));
        assert!(programs().contains(&own));
        program = Some(own);
    });
    if let Some(program) = program {
        assert_goes(program);
    }
}

#[test]
fn another_version_is_reported_and_replaced() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let versions = directory().join("observer");
        fs::rename(versions.join("v1"), versions.join("v0")).expect("root");
        let old = own_program(&versions.join("v0/link"));
        assert_eq!(
            status(directory(), EbpfPart::Observer).expect("readable"),
            SetupStatus::OtherVersion { version: 0 }
        );
        as_nobody(|| {
            let error = Observer::open().expect_err("another version");
            assert!(
                matches!(
                    error,
                    EbpfUnavailable::OtherVersion {
                        found: 0,
                        needed: 1
                    }
                ),
                "{error:?}"
            );
            assert!(error.to_string().contains("sudo fairbat setup"), "{error}");
        });
        assert_eq!(
            install(directory(), EbpfPart::Observer).expect("root"),
            InstallOutcome::Replaced { version: 0 }
        );
        assert_goes(old);
        assert_eq!(entries(&versions), ["v1"]);
        Observer::open().expect("set up");
    });
}

#[test]
fn another_version_that_cannot_be_removed_is_removed_the_next_time() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let versions = directory().join("observer");
        fs::rename(versions.join("v1"), versions.join("v0")).expect("root");
        // Nobody can remove what something is mounted on.
        let link = versions.join("v0/link");
        fs::write("/run/file", "").expect("root");
        mount_bind("/run/file", &link).expect("root");
        let error = install(directory(), EbpfPart::Observer).expect_err("it is busy");
        assert!(error.to_string().contains("observer/v0/link"), "{error}");
        assert_eq!(
            status(directory(), EbpfPart::Observer).expect("readable"),
            SetupStatus::SetUp
        );
        assert_eq!(entries(&versions), ["v0", "v1"]);

        unmount(&link, UnmountFlags::empty()).expect("root");
        assert_eq!(
            install(directory(), EbpfPart::Observer).expect("root"),
            InstallOutcome::Already
        );
        assert_eq!(entries(&versions), ["v1"]);
    });
}

#[test]
fn the_rest_of_a_killed_setup_is_removed() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        let versions = directory().join("observer");
        fs::rename(versions.join("v1"), versions.join("unfinished")).expect("root");
        assert_eq!(
            status(directory(), EbpfPart::Observer).expect("readable"),
            SetupStatus::NotSetUp
        );
        let old = own_program(&versions.join("unfinished/link"));
        assert_eq!(
            install(directory(), EbpfPart::Observer).expect("root"),
            InstallOutcome::New
        );
        assert_goes(old);
        assert_eq!(entries(&versions), ["v1"]);
    });
}

#[test]
fn a_damaged_setup_is_completed() {
    in_own_namespace(|| {
        set_up(EbpfPart::Observer);
        fs::remove_file(directory().join("observer/v1/link")).expect("root");
        assert_eq!(
            status(directory(), EbpfPart::Observer).expect("readable"),
            SetupStatus::NotSetUp
        );
        assert_eq!(
            install(directory(), EbpfPart::Observer).expect("root"),
            InstallOutcome::New
        );
        assert_eq!(
            status(directory(), EbpfPart::Observer).expect("readable"),
            SetupStatus::SetUp
        );
        assert_eq!(entries(&directory().join("observer")), ["v1"]);
    });
}

#[test]
fn a_kernel_without_support_leaves_no_partial_setup() {
    in_own_namespace(|| {
        // Without the description of its types.
        mount("sys", "/sys", "tmpfs", MountFlags::empty(), None).expect("root");
        let error = install(directory(), EbpfPart::Observer).expect_err("no BTF");
        assert!(matches!(error, SetupError::NoBtf), "{error}");
        assert_eq!(entries(Path::new("/run")), [""; 0]);
    });
}

#[test]
fn an_unprivileged_user_is_refused_and_leaves_nothing() {
    in_own_namespace(|| {
        as_nobody(|| {
            let error = install(directory(), EbpfPart::Observer).expect_err("not root");
            assert!(matches!(error, SetupError::NotPermitted { .. }), "{error}");
            assert!(error.to_string().contains("sudo"), "{error}");
        });
        assert_eq!(entries(Path::new("/run")), [""; 0]);
        // Where the directory is there and theirs, the kernel refuses.
        let theirs = Path::new("/run/theirs");
        fs::create_dir(theirs).expect("root");
        std::os::unix::fs::chown(theirs, Some(NOBODY), Some(NOBODY)).expect("root");
        as_nobody(|| {
            let error = install(&theirs.join("bpf"), EbpfPart::Observer).expect_err("not root");
            assert!(matches!(error, SetupError::NotPermitted { .. }), "{error}");
        });
        assert_eq!(entries(theirs), [""; 0]);
        set_up(EbpfPart::Observer);
        as_nobody(|| {
            for error in [
                install(directory(), EbpfPart::Observer).expect_err("not root"),
                remove(directory(), EbpfPart::Observer).expect_err("not root"),
            ] {
                assert!(matches!(error, SetupError::NotPermitted { .. }), "{error}");
            }
        });
        assert_eq!(
            status(directory(), EbpfPart::Observer).expect("readable"),
            SetupStatus::SetUp
        );
    });
}

#[test]
fn foreign_files_are_left_as_they_are() {
    in_own_namespace(|| {
        let refused = |path: &Path| {
            let error = install(path, EbpfPart::Observer).expect_err("in the way");
            assert!(matches!(error, SetupError::NotOurs { .. }), "{error}");
        };
        let base = PathBuf::from("/run/other");
        fs::create_dir(&base).expect("root");
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).expect("root");

        let full = base.join("full");
        fs::create_dir(&full).expect("root");
        fs::write(full.join("file"), "theirs").expect("root");
        refused(&full);
        assert_eq!(entries(&full), ["file"]);

        let link = base.join("link");
        std::os::unix::fs::symlink("/run/other/full", &link).expect("root");
        refused(&link);

        let writable = base.join("writable");
        fs::create_dir(&writable).expect("root");
        fs::set_permissions(&writable, fs::Permissions::from_mode(0o777)).expect("root");
        refused(&writable);
        refused(&writable.join("bpf"));
        assert_eq!(entries(&writable), [""; 0]);

        set_up(EbpfPart::Observer);
        let strange = directory().join("observer/strange");
        fs::create_dir(&strange).expect("root");
        let error = remove(directory(), EbpfPart::Observer).expect_err("in the way");
        assert!(matches!(error, SetupError::NotOurs { .. }), "{error}");
        assert_eq!(
            status(directory(), EbpfPart::Observer).expect("readable"),
            SetupStatus::SetUp
        );
        fs::remove_dir(&strange).expect("root");
        // Something else of ours, or of anybody, beside the observer.
        fs::create_dir(directory().join("beside")).expect("root");
        assert!(remove(directory(), EbpfPart::Observer).expect("root"));
        assert_eq!(entries(directory()), ["beside"]);
    });
}

#[test]
fn a_directory_of_another_user_is_not_removed() {
    in_own_namespace(|| {
        let directory = directory();
        let mode = |mode| fs::set_permissions(directory, fs::Permissions::from_mode(mode));
        let refused = || {
            let error = remove(directory, EbpfPart::Observer).expect_err("in the way");
            assert!(matches!(error, SetupError::NotOurs { .. }), "{error}");
            assert!(directory.exists());
        };
        fs::create_dir_all(directory).expect("root");
        for other in [0o777, 0o700] {
            mode(other).expect("root");
            refused();
        }
        mode(0o755).expect("root");
        std::os::unix::fs::chown(directory, Some(NOBODY), None).expect("root");
        refused();
        std::os::unix::fs::chown(directory, Some(0), None).expect("root");
        assert!(!remove(directory, EbpfPart::Observer).expect("one that was killed"));
        assert_eq!(entries(Path::new("/run")), [""; 0]);
    });
}

#[test]
fn an_existing_file_system_is_used() {
    in_own_namespace(|| {
        let given = Path::new("/run/given");
        fs::create_dir(given).expect("root");
        fs::set_permissions(given, fs::Permissions::from_mode(0o755)).expect("root");
        mount(
            "given",
            given,
            "bpf",
            MountFlags::empty(),
            Some(c"mode=0755"),
        )
        .expect("root");
        let within = given.join("fairbat");
        assert_eq!(
            install(&within, EbpfPart::Observer).expect("root"),
            InstallOutcome::New
        );
        as_nobody(|| Observer::open_in(&within).expect("everybody may"));
        assert!(remove(&within, EbpfPart::Observer).expect("root"));
        assert_eq!(entries(given), [""; 0]);
    });
}
