//! A directory that was a mount point and is none: it is missed until somebody says
//! that this is how it stays.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fairbat_tests::bin::agent_binary;
use fairbat_tests::tmpfs::{Bind, TmpFs};
use tempfile::TempDir;

use crate::round_trip::dir;
use crate::service::{Place, Service};

fn write(path: &Path, name: &str) {
    fs::create_dir_all(path).expect("make a directory");
    fs::write(path.join(name), name).expect("write a file");
}

/// A run of the job with these flags ends well, or with what it says.
fn run(service: &Service<'_>, flags: &[&str], refused: &[&str]) {
    let outcome = service.fairbat(&[&["start", "home", "--wait"], flags].concat());
    if refused.is_empty() {
        outcome.expect_code(0);
    } else {
        assert!(
            [Some(1), Some(3), Some(5)].contains(&outcome.code),
            "{outcome}"
        );
        for said in refused {
            outcome.expect_said(&[said]);
        }
    }
}

/// What was mounted at this directory, and was pushed, goes away for good.
fn stays_away(at: &str, accepted: impl Fn(&Path) -> String) {
    let (work, disk, store) = (dir(), dir(), dir());
    let source = work.path().join("source");
    let at = source.join(at);
    write(&source, "a");
    write(&at, "beneath");
    write(disk.path(), "on-disk");
    let Some(mounted) = Bind::mount(disk.path(), &at) else {
        return;
    };
    let place = Place::new();
    place.configure(
        "",
        &format!(
            "[stores.disk]\ntype = \"local\"\npath = {:?}\n\
             [[jobs]]\nname = \"home\"\nsource = {source:?}\ndestination = \"disk:home\"\n",
            store.path(),
        ),
    );
    let service = place.start();
    let below = at.strip_prefix(&source).expect("it is below");
    let stored = |name: &str| store.path().join("home").join(below).join(name).exists();
    run(&service, &[], &[]);
    assert!(stored("on-disk"));
    drop(mounted);

    // The hint says how to go on.
    run(
        &service,
        &[],
        &["mounted", "fairbat start JOB --accept-unmounted PATH"],
    );
    run(
        &service,
        &["--accept-unmounted", "/elsewhere"],
        &["/elsewhere is not in the source"],
    );
    let other = source.join("b").display().to_string();
    run(&service, &["--accept-unmounted", &other], &["mounted"]);
    if at != source {
        // What is above was none, and says nothing about others below.
        let above = at.parent().expect("it is below").display().to_string();
        run(
            &service,
            &["--accept-unmounted", &above],
            &["nothing was mounted", &below.display().to_string()],
        );
        // From the shell, a relative path begins where the shell is.
        let relative = below.display().to_string();
        let not_there = ["is not in the source"];
        run(&service, &["--accept-unmounted", &relative], &not_there);
    }
    run(&service, &[], &["mounted"]);
    assert!(!stored("beneath"));
    // It is kept, whether or not the store is there.
    let gone = work.path().join("gone");
    fs::rename(store.path(), &gone).expect("take the store away");
    run(
        &service,
        &["--accept-unmounted", &accepted(&at)],
        &["no directory"],
    );
    fs::rename(&gone, store.path()).expect("bring the store back");
    run(&service, &[], &[]);
    assert!(stored("beneath"));
    // Said once.
    run(&service, &[], &[]);

    // And what is mounted there again is missed again.
    let mounted = Bind::mount(disk.path(), &at).expect("it was mounted before");
    run(&service, &[], &[]);
    drop(mounted);
    run(&service, &[], &["mounted"]);
}

#[test]
fn a_directory_that_is_no_mount_point_any_more_is_pushed_once_that_is_accepted() {
    stays_away("media/disk", |at| at.display().to_string());
}

#[test]
fn a_source_that_is_no_mount_point_any_more_is_pushed_once_that_is_accepted() {
    stays_away("", |source| source.display().to_string());
}

/// `fairbat-agent COMMAND --config ...` fails, and says this.
fn agent_refuses(place: &Place, command: &[&str], said: &str) {
    let outcome = Command::new(agent_binary())
        .args(command)
        .arg("--config")
        .arg(place.join("agent.toml"))
        .output()
        .expect("start the agent");
    let told = String::from_utf8_lossy(&[outcome.stdout, outcome.stderr].concat()).into_owned();
    assert!(!outcome.status.success(), "{command:?}: {told}");
    assert!(told.contains(said), "{command:?}: {told}");
}

/// A local store on a disk that can be taken away, and what is pushed there.
struct StoreOnDisk {
    work: TempDir,
    source: TempDir,
    disk: TmpFs,
    /// Where the disk is mounted, and the store on it.
    at: PathBuf,
    store: PathBuf,
}

impl StoreOnDisk {
    /// With a file in the source; `None` where nothing can be mounted.
    fn new() -> Option<Self> {
        let (work, source) = (dir(), dir());
        let (at, store) = (work.path().join("disk"), work.path().join("disk/store"));
        write(source.path(), "first");
        let disk = TmpFs::mount(8 << 20)?;
        // Also there when the disk is not.
        for store in [&store, &disk.path().join("store")] {
            fs::create_dir_all(store).expect("make a directory");
        }
        Some(Self {
            work,
            source,
            disk,
            at,
            store,
        })
    }

    fn mount(&self) -> Option<Bind> {
        Bind::mount(self.disk.path(), &self.at)
    }

    /// An agent whose job pushes there, with more in its configuration.
    fn agent(&self, more: &str) -> Place {
        let place = Place::new();
        let (store, source) = (&self.store, self.source.path());
        place.configure(
            "",
            &format!(
                "[stores.disk]\ntype = \"local\"\npath = {store:?}\n\
                 [[jobs]]\nname = \"home\"\nsource = {source:?}\ndestination = \"disk:home\"\n\
                 {more}"
            ),
        );
        place
    }

    /// What is said while the disk is not mounted.
    fn missed(&self) -> String {
        format!("nothing is mounted at {}", self.at.display())
    }
}

#[test]
fn a_local_store_is_not_written_to_while_its_disk_is_not_mounted() {
    let Some(disk) = StoreOnDisk::new() else {
        return;
    };
    let copy = disk.work.path().join("copy");
    let place = disk.agent(&format!(
        "[[jobs]]\nname = \"copy\"\ndirection = \"pull\"\nsource = \"disk:home\"\n\
         destination = {copy:?}\n"
    ));
    let Some(mounted) = disk.mount() else {
        return;
    };
    let (at, store) = (&disk.at, &disk.store);
    let service = place.start();
    run(&service, &[], &[]);
    write(disk.source.path(), "second");
    drop(mounted);

    let missed = disk.missed();
    let is_empty = || fs::read_dir(store).expect("read it").next().is_none();
    let hint = "fairbat start JOB --accept-unmounted PATH";
    run(&service, &[], &[&missed, hint]);
    agent_refuses(&place, &["check", "--store"], &missed);
    let pulled = service.fairbat(&["start", "copy", "--wait"]);
    pulled.expect_code(5).expect_said(&[&missed]);
    // Only what was mounted is accepted.
    let path = store.display().to_string();
    run(
        &service,
        &["--accept-unmounted", &path],
        &["nothing was mounted"],
    );
    run(
        &service,
        &["--accept-unmounted", "/elsewhere"],
        &["is not in the source"],
    );
    // It is kept.
    service.kill();
    agent_refuses(&place, &["gc"], &missed);
    agent_refuses(&place, &["check", "--store"], &missed);
    let service = place.start();
    run(&service, &[], &[&missed]);
    assert!(is_empty());

    // What is mounted again is used again.
    let mounted = disk.mount().expect("it was mounted before");
    run(&service, &[], &[]);
    assert!(store.join("home/second").exists());
    drop(mounted);
    run(&service, &[], &[&missed]);
    assert!(is_empty());
    run(
        &service,
        &["--accept-unmounted", &at.display().to_string()],
        &[],
    );
    assert!(store.join("home/first").exists());
    // Said once.
    run(&service, &[], &[]);
}

#[test]
fn the_disk_of_a_local_store_counts_from_a_first_push_on_that_broke_off() {
    let Some(disk) = StoreOnDisk::new() else {
        return;
    };
    let place = disk.agent("");
    let Some(mounted) = disk.mount() else {
        return;
    };
    fs::write(disk.store.join("home"), "in the way").expect("write a file");
    let service = place.start();
    run(&service, &[], &["directory"]);
    drop(mounted);

    run(&service, &[], &[&disk.missed()]);
    let below = fs::read_dir(&disk.store).expect("read a directory").count();
    assert_eq!(below, 0, "the disk below was written to");
}
