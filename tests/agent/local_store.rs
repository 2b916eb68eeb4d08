//! Stores that are directories: who may read what is in them, and where the owner of
//! the disk may not lead the agent.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use fairbat_tests::netns::skipped;
use fairbat_tests::poll::wait_for;
use fairbat_tests::seccomp::without_openat2;
use fairbat_tests::tmpfs::Bind;
use tempfile::TempDir;

use crate::round_trip::dir;
use crate::service::{Place, SOON, Service};

/// Longer than what is stored in one step.
const LONG: usize = 3_000_000;

fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().expect("a parent")).expect("make a directory");
    fs::write(path, content).expect("write a file");
}

fn mode(path: impl AsRef<Path>) -> u32 {
    let found = fs::symlink_metadata(path).expect("look at it");
    found.permissions().mode() & 0o7777
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set a mode");
}

/// The modes of all files and directories below this one, by path.
fn modes(directory: &Path) -> BTreeMap<String, u32> {
    let mut modes = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).expect("read a directory") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(directory).expect("it is below");
            modes.insert(name.display().to_string(), mode(&path));
            if path.is_dir() {
                left.push(path);
            }
        }
    }
    modes
}

/// A user who owns nothing.
const NOBODY: u32 = 65534;

/// An agent with a job that pushes a directory to another one.
struct Scene {
    source: TempDir,
    store: TempDir,
    place: Place,
}

impl Scene {
    /// `store_keys` are keys of the store, `job_keys` of the job.
    fn new(store_keys: &str, job_keys: &str) -> Self {
        let (source, store, place) = (dir(), dir(), Place::new());
        let copy = place.join("copy");
        let text = format!(
            "[stores.disk]\ntype = \"local\"\npath = {:?}\n{store_keys}\n\
             [[jobs]]\nname = \"home\"\nsource = {:?}\ndestination = \"disk:home\"\n{job_keys}\n\
             [[jobs]]\nname = \"copy\"\ndirection = \"pull\"\nsource = \"disk:home\"\n\
             destination = {copy:?}\n",
            store.path(),
            source.path(),
        );
        place.configure("", &text);
        Self {
            source,
            store,
            place,
        }
    }

    fn stored(&self, name: &str) -> PathBuf {
        self.store.path().join(name)
    }

    fn original(&self, name: &str) -> PathBuf {
        self.source.path().join(name)
    }
}

fn run(service: &Service<'_>, job: &str) {
    service.order(&["start", job, "--wait"]);
}

#[test]
fn what_is_stored_is_for_the_agent_alone_whatever_its_umask() {
    for (umask, keys, file, directory) in [
        ("000", "", 0o600, 0o700),
        ("022", "", 0o600, 0o700),
        ("077", "file_mode = \"0640\"", 0o640, 0o750),
        ("000", "file_mode = \"0640\"", 0o640, 0o750),
    ] {
        let mut scene = Scene::new(keys, "");
        scene.place.umask = umask;
        write(scene.original("a/key"), "secret");
        write(scene.original("large"), vec![7; LONG]);
        let service = scene.place.start();
        run(&service, "home");
        let found = modes(scene.store.path());
        assert!(found.contains_key("home/a/key") && found.contains_key("home/large"));
        for (name, mode) in found {
            let expected = match scene.stored(&name).is_dir() {
                true => directory,
                false => file,
            };
            assert_eq!(mode, expected, "umask {umask}, {keys}: {name} has {mode:o}");
        }
    }
}

#[test]
fn a_store_that_others_could_read_is_repaired_once() {
    let scene = Scene::new("", "");
    for name in ["a/key", "b"] {
        write(scene.original(name), name);
    }
    let service = scene.place.start();
    run(&service, "home");
    // As an earlier version has left it.
    let ours: Vec<_> = modes(scene.store.path()).into_keys().collect();
    for name in &ours {
        let open = match scene.stored(name).is_dir() {
            true => 0o755,
            false => 0o644,
        };
        set_mode(scene.stored(name), open);
    }
    // What is beside it, and what is from nobody's backup.
    write(scene.stored("photos/me.jpg"), "x");
    write(scene.stored("home/a/tool"), "x");
    set_mode(scene.stored("home/a/tool"), 0o755);
    write(scene.original("outside"), "x");
    fs::hard_link(scene.original("outside"), scene.stored("home/a/linked")).expect("a hard link");
    symlink(scene.original("outside"), scene.stored("home/a/link")).expect("a link");
    for name in ["photos/me.jpg", "home/a/linked"] {
        set_mode(scene.stored(name), 0o644);
    }
    set_mode(scene.stored("photos"), 0o755);
    set_mode(scene.store.path(), 0o755);

    run(&service, "home");
    for name in &ours {
        let expected = match scene.stored(name).is_dir() {
            true => 0o700,
            false => 0o600,
        };
        let mode = mode(scene.stored(name));
        assert_eq!(mode, expected, "{name} has {mode:o}");
    }
    for (name, expected) in [
        (".", 0o755),
        ("photos", 0o755),
        ("photos/me.jpg", 0o644),
        ("home/a/tool", 0o755),
        ("home/a/linked", 0o644),
    ] {
        assert_eq!(mode(scene.stored(name)), expected, "{name}");
    }
    let told = format!("corrected={}", ours.len());
    scene.place.wait_for_log(&told, 1);

    // That costs a look at every file, so it is not done again.
    set_mode(scene.stored("home/b"), 0o644);
    run(&service, "home");
    assert_eq!(
        mode(scene.stored("home/b")),
        0o644,
        "all was looked at again"
    );
    assert_eq!(
        scene.place.log().matches("other users could read").count(),
        1
    );
}

/// Whoever owns the disk leads the agent elsewhere, in each way that a job takes there.
fn leads_nowhere() {
    let outside = dir();
    let scene = Scene::new("", "delete = \"mirror\"\nmax_delete = 100");
    for name in ["keep/a", "sub/f", "sub/gone", "top"] {
        write(scene.original(name), name);
    }
    write(scene.original("large"), vec![7; LONG]);
    let service = scene.place.start();
    run(&service, "home");

    // `place` becomes a link to what is outside, and then it is what it was.
    let with_link = |place: &str, work: &dyn Fn()| {
        let (place, aside) = (scene.stored(place), scene.stored("aside"));
        fs::rename(&place, &aside).expect("move it away");
        symlink(outside.path(), &place).expect("make a link");
        work();
        fs::remove_file(&place).expect("remove the link");
        fs::rename(&aside, &place).expect("move it back");
    };
    let expect_refused = |job: &str| {
        let outcome = service.fairbat(&["start", job, "--wait"]);
        assert!([Some(1), Some(3)].contains(&outcome.code), "{outcome}");
        outcome.expect_said(&["symbolic link"]);
    };
    let expect_untouched = |names: &[&str]| {
        let found: Vec<_> = modes(outside.path()).into_keys().collect();
        assert_eq!(found, names);
    };

    // Written.
    write(scene.original("sub/f"), "changed");
    with_link("home/sub", &|| expect_refused("home"));
    expect_untouched(&[]);
    write(scene.original("large"), vec![8; LONG]);
    with_link(".fairbat/unfinished", &|| expect_refused("home"));
    expect_untouched(&[]);
    write(scene.original("new"), "new");
    with_link("home/.fairbat/manifest", &|| expect_refused("home"));
    expect_untouched(&[]);
    with_link(".fairbat", &|| expect_refused("home"));
    expect_untouched(&[]);
    run(&service, "home");

    // Deleted.
    write(outside.path().join("gone"), "mine");
    fs::remove_file(scene.original("sub/gone")).expect("remove a file");
    with_link("home/sub", &|| expect_refused("home"));
    expect_untouched(&["gone"]);
    run(&service, "home");
    assert!(!scene.stored("home/sub/gone").exists());

    // Read.
    fs::remove_file(outside.path().join("gone")).expect("remove a file");
    write(outside.path().join("a"), "keep/a");
    with_link("home/keep", &|| expect_refused("copy"));
    assert!(!scene.place.join("copy/keep/a").exists());
    run(&service, "copy");
    let copied = fs::read(scene.place.join("copy/keep/a")).expect("read a file");
    assert_eq!(copied, b"keep/a");
    expect_untouched(&["a"]);
}

#[test]
fn no_link_in_a_store_leads_elsewhere() {
    leads_nowhere();
}

#[test]
fn no_link_in_a_store_leads_elsewhere_where_a_filter_forbids_openat2() {
    without_openat2(leads_nowhere);
}

/// The unfinished file of the upload under way.
fn unfinished(scene: &Scene) -> PathBuf {
    wait_for("an unfinished file", SOON, || {
        let names = fs::read_dir(scene.stored(".fairbat/unfinished")).ok()?;
        let paths = names.map(|entry| entry.expect("an entry").path());
        paths.into_iter().find(|path| {
            let found = fs::metadata(path);
            found.is_ok_and(|found| found.len() > 0)
        })
    })
}

#[test]
fn an_upload_does_not_go_on_in_a_file_that_another_user_has_planted() {
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root, to own files of another user");
    }
    // Three parts, and time to plant something between them.
    let content: Vec<u8> = (0..20_000_000_u32).map(|at| (at / 1000) as u8).collect();
    for is_linked in [true, false] {
        let scene = Scene::new("", "limit_rate = \"8M\"");
        write(scene.original("large"), &content);
        let victim = scene.stored("victim");
        write(&victim, "mine");
        set_mode(&victim, 0o644);
        if !is_linked {
            chown(&victim, Some(NOBODY), None).expect("give it away");
        }
        let service = scene.place.start();
        service.order(&["start", "home"]);
        let planted = unfinished(&scene);
        match is_linked {
            true => {
                let aside = scene.stored("aside");
                fs::hard_link(&victim, &aside).expect("a hard link");
                fs::rename(&aside, &planted).expect("plant it");
            }
            false => fs::rename(&victim, &planted).expect("plant it"),
        }
        // Held open, as the other user has it.
        let held = match is_linked {
            true => fs::File::open(&victim),
            false => fs::File::open(&planted),
        };
        let held = held.expect("it is there");
        service.wait_for_task("ended", "home", |task| {
            task["phase"] != "running" && !task["last"].is_null()
        });
        run(&service, "home");
        let found = held.metadata().expect("it is open");
        assert_eq!(found.len(), 4, "linked: {is_linked}");
        assert_eq!(found.permissions().mode() & 0o7777, 0o644);
        let stored = fs::read(scene.stored("home/large")).expect("it is stored");
        assert!(stored == content, "linked: {is_linked}");
    }
}

#[test]
fn a_store_that_cannot_be_repaired_is_tried_again() {
    let scene = Scene::new("", "");
    for name in ["a/key", "b"] {
        write(scene.original(name), name);
    }
    let service = scene.place.start();
    run(&service, "home");
    for (name, mode) in [
        (".fairbat", 0o755),
        ("home/a", 0o2755),
        ("home/a/key", 0o644),
        ("home/b", 0o644),
    ] {
        set_mode(scene.stored(name), mode);
    }
    let file = scene.stored("home/b");
    let Some(fixed) = Bind::mount(&file, &file) else {
        return;
    };
    fixed.make_read_only();
    run(&service, "home");
    assert_eq!(mode(scene.stored("home/a")), 0o2700, "the group stays");
    assert_eq!(mode(scene.stored("home/a/key")), 0o600);
    assert_eq!(mode(&file), 0o644);
    assert_eq!(mode(scene.stored(".fairbat")), 0o755, "it is not done");
    let log = scene.place.log();
    for said in ["failed=1", "home/b", "Read-only", "chmod -R go="] {
        assert!(log.contains(said), "{said} is not in: {log}");
    }
    drop(fixed);
    run(&service, "home");
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(scene.stored(".fairbat")), 0o700);
    assert!(scene.place.log().contains("file_mode"));
}

#[test]
fn the_directory_of_a_store_or_a_pull_is_no_link_that_another_user_has_made() {
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root, to own files of another user");
    }
    let (source, store, parent) = (dir(), dir(), dir());
    let outside = [dir(), dir()];
    write(source.path().join("f"), "f");
    let (disk, copy) = (parent.path().join("disk"), parent.path().join("copy"));
    let place = Place::new();
    place.configure(
        "",
        &format!(
            "[stores.direct]\ntype = \"local\"\npath = {:?}\n\
             [stores.disk]\ntype = \"local\"\npath = {disk:?}\n\
             [[jobs]]\nname = \"direct\"\nsource = {source:?}\ndestination = \"direct:home\"\n\
             [[jobs]]\nname = \"home\"\nsource = {source:?}\ndestination = \"disk:other\"\n\
             [[jobs]]\nname = \"copy\"\ndirection = \"pull\"\nsource = \"direct:home\"\n\
             destination = {copy:?}\n",
            store.path(),
            source = source.path(),
        ),
    );
    let service = place.start();
    run(&service, "direct");
    chown(parent.path(), Some(NOBODY), None).expect("give it away");
    for (link, outside) in [&disk, &copy].into_iter().zip(&outside) {
        symlink(outside.path(), link).expect("a link");
        lchown(link, Some(NOBODY), None).expect("give it away");
    }
    for job in ["home", "copy"] {
        let outcome = service.fairbat(&["start", job, "--wait"]);
        assert_ne!(outcome.code, Some(0), "{outcome}");
        outcome.expect_said(&["another user has made"]);
    }
    for outside in &outside {
        let found = fs::read_dir(outside.path()).expect("it is there");
        assert_eq!(found.count(), 0);
    }
    // The administrator's own links are followed.
    for link in [&disk, &copy] {
        lchown(link, Some(0), None).expect("take it back");
    }
    for job in ["home", "copy"] {
        run(&service, job);
    }
    assert!(outside[0].path().join("other/f").exists());
    assert!(outside[1].path().join("f").exists());
}
