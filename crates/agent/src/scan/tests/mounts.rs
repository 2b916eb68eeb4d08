//! Mounts come and go. Needs root.

use std::path::PathBuf;

use super::*;

/// A small file system of its own, as long as this lives.
struct Mount(PathBuf);

impl Mount {
    fn new(path: PathBuf) -> Self {
        fs::create_dir_all(&path).unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount
            .args(["-t", "tmpfs", "-o", "size=1m", "fairbat-test"])
            .arg(&path)
            .status();
        assert!(mounted.unwrap().success());
        Self(path)
    }

    /// Takes it away, though it may be in use.
    fn detach(&self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = Command::new("umount").arg("-lq").arg(&self.0).output();
    }
}

/// Whether mounts can be made here.
fn may_mount() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let mut mount = Command::new("mount");
    let made = mount.args(["-t", "tmpfs", "none"]).arg(dir.path()).output();
    let may = made.is_ok_and(|output| output.status.success());
    if may {
        let unmounted = Command::new("umount").arg(dir.path()).status();
        assert!(unmounted.unwrap().success());
    } else {
        eprintln!("SKIPPED: nothing can be mounted here");
    }
    may
}

/// A walk, as one after a walk that has left these mount points.
fn open_after(root: &Path, mounted: &[MountPoint]) -> Result<Scan, ScanError> {
    let options = ScanOptions {
        mounted: mounted.to_vec(),
        ..ScanOptions::default()
    };
    Scan::open(root, EntryFilter::everything(), options)
}

fn mount_paths(outcome: &ScanOutcome) -> Vec<String> {
    outcome
        .mounts
        .iter()
        .map(|mount| mount.path.to_string())
        .collect()
}

const UNMOUNTED: &str = "is no longer mounted";

#[test]
fn mount_points_are_seen_and_need_not_be_crossed() {
    if !may_mount() {
        return;
    }
    let dir = tree(&["a", "disk/", "z"]);
    let mount = Mount::new(dir.path().join("disk"));
    add(&mount.0, &["x"]);
    let mut scan = open(dir.path());
    assert_eq!(rest(&mut scan), ["a", "disk", "disk/x", "z"]);
    let outcome = scan.finish();
    assert_eq!(mount_paths(&outcome), ["disk"]);
    assert_eq!(
        outcome.mounts[0].device,
        fs::metadata(&mount.0).unwrap().dev()
    );

    let options = ScanOptions {
        one_file_system: true,
        ..ScanOptions::default()
    };
    let mut scan = Scan::open(dir.path(), EntryFilter::everything(), options).unwrap();
    assert_eq!(rest(&mut scan), ["a", "disk", "z"]);
    assert_eq!(scan.finish().mounts, []);

    let mut scan = open(&mount.0);
    assert_eq!(rest(&mut scan), ["x"]);
    assert_eq!(mount_paths(&scan.finish()), ["."]);
}

#[test]
fn a_part_of_the_same_file_system_can_be_mounted_as_well() {
    if !may_mount() {
        return;
    }
    let dir = tree(&["a/x", "b/"]);
    let bound = dir.path().join("b");
    let bind = Command::new("mount")
        .arg("--bind")
        .arg(dir.path().join("a"))
        .arg(&bound)
        .status();
    assert!(bind.unwrap().success());
    let mount = Mount(bound);
    let mut scan = open(dir.path());
    assert_eq!(rest(&mut scan), ["a", "a/x", "b", "b/x"]);
    let before = scan.finish();
    assert_eq!(mount_paths(&before), ["b"]);
    mount.detach();
    let mut scan = open_after(dir.path(), &before.mounts).unwrap();
    assert_eq!(
        rest(&mut scan),
        [
            "a".to_owned(),
            "a/x".to_owned(),
            "b".to_owned(),
            format!("! b {UNMOUNTED}")
        ]
    );
}

#[test]
fn a_disk_that_is_taken_away_in_the_midst_of_a_walk_is_unknown() {
    if !may_mount() {
        return;
    }
    let dir = tree(&["disk/hidden", "z"]);
    let mount = Mount::new(dir.path().join("disk"));
    add(&mount.0, &["d/1", "d/2", "e"]);

    let mut scan = open(dir.path());
    until(&mut scan, "disk/d/1");
    mount.detach();
    // What is read is still that of the disk, and then it is found out.
    let expected = [
        "disk/d/2".to_owned(),
        "disk/e".to_owned(),
        format!("! disk {REPLACED}"),
        "z".to_owned(),
    ];
    assert_eq!(rest(&mut scan), expected);
    let outcome = scan.finish();
    assert_eq!(paths(&outcome.unknown), ["disk"]);
    assert_eq!(mount_paths(&outcome), ["disk"]);

    // Before it was listed: nothing of what is under it is taken for what is in
    // it.
    let mount = Mount::new(dir.path().join("disk"));
    let mut scan = open(dir.path());
    until(&mut scan, "disk");
    mount.detach();
    assert_eq!(
        rest(&mut scan),
        [format!("! disk {REPLACED}"), "z".to_owned()]
    );
}

#[test]
fn a_disk_that_is_missing_since_last_time_is_unknown_until_it_is_back() {
    if !may_mount() {
        return;
    }
    let dir = tree(&["media/disk/", "z"]);
    let mount = Mount::new(dir.path().join("media/disk"));
    add(&mount.0, &["x"]);
    let mut scan = open(dir.path());
    assert_eq!(
        rest(&mut scan),
        ["media", "media/disk", "media/disk/x", "z"]
    );
    let first = scan.finish();

    mount.detach();
    let mut scan = open_after(dir.path(), &first.mounts).unwrap();
    let expected = [
        "media",
        "media/disk",
        &format!("! media/disk {UNMOUNTED}"),
        "z",
    ];
    assert_eq!(rest(&mut scan), expected);
    let second = scan.finish();
    assert_eq!(paths(&second.unknown), ["media/disk"]);
    assert_eq!(second.mounts, first.mounts);

    // Who mounts disks may make the directories for them, too.
    fs::remove_dir(dir.path().join("media/disk")).unwrap();
    let mut scan = open_after(dir.path(), &second.mounts).unwrap();
    let expected = ["media", &format!("! media/disk {UNMOUNTED}"), "z"];
    assert_eq!(rest(&mut scan), expected);
    let third = scan.finish();
    fs::remove_dir(dir.path().join("media")).unwrap();
    let mut scan = open_after(dir.path(), &third.mounts).unwrap();
    assert_eq!(rest(&mut scan), [&format!("! media {UNMOUNTED}"), "z"]);
    let fourth = scan.finish();
    assert_eq!(fourth.mounts, first.mounts);
    fs::write(dir.path().join("media"), "a file").unwrap();
    let mut scan = open_after(dir.path(), &fourth.mounts).unwrap();
    assert_eq!(
        rest(&mut scan),
        ["media", &format!("! media {UNMOUNTED}"), "z"]
    );
    fs::remove_file(dir.path().join("media")).unwrap();

    // A walk that did not get there does not know it either.
    let scan = open_after(dir.path(), &fourth.mounts).unwrap();
    assert_eq!(scan.finish().mounts, first.mounts);

    let _mount = Mount::new(dir.path().join("media/disk"));
    let mut scan = open_after(dir.path(), &fourth.mounts).unwrap();
    assert_eq!(rest(&mut scan), ["media", "media/disk", "z"]);
    assert_eq!(mount_paths(&scan.finish()), ["media/disk"]);
}

#[test]
fn a_disk_that_is_left_out_by_now_is_not_missed() {
    if !may_mount() {
        return;
    }
    let dir = tree(&["disk/", "z"]);
    let mount = Mount::new(dir.path().join("disk"));
    let mut scan = open(dir.path());
    assert_eq!(rest(&mut scan), ["disk", "z"]);
    let options = ScanOptions {
        mounted: scan.finish().mounts,
        ..ScanOptions::default()
    };
    mount.detach();
    fs::remove_dir(&mount.0).unwrap();
    let filter = EntryFilter::new(&[], &["/disk/".to_owned()]).unwrap();
    let mut scan = Scan::open(dir.path(), filter, options).unwrap();
    assert_eq!(rest(&mut scan), ["z"]);
    assert_eq!(scan.finish().mounts, []);
}

#[test]
fn a_root_that_was_a_disk_and_is_none_is_refused() {
    if !may_mount() {
        return;
    }
    let dir = tree(&["disk/"]);
    let mount = Mount::new(dir.path().join("disk"));
    let mut scan = open(&mount.0);
    assert_eq!(rest(&mut scan), [""; 0]);
    let outcome = scan.finish();
    mount.detach();
    let error = open_after(&mount.0, &outcome.mounts).unwrap_err();
    assert!(matches!(error, ScanError::Unmounted { .. }), "{error}");
    assert!(error.to_string().contains("disk"), "{error}");
}
