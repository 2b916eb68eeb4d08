//! A directory that was a mount point and is none: it is missed until somebody says
//! that this is how it stays.

use std::fs;
use std::path::Path;

use fairbat_tests::tmpfs::Bind;

use crate::round_trip::dir;
use crate::service::{Place, Service};

fn write(path: &Path, name: &str) {
    fs::create_dir_all(path).expect("make a directory");
    fs::write(path.join(name), name).expect("write a file");
}

/// A run of the job with these flags ends well, or with what it says.
fn run(service: &Service<'_>, flags: &[&str], refused: &[&str]) {
    let outcome = service.fairbat(&[&["run", "home", "--wait"], flags].concat());
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
        &["mounted", "fairbat run JOB --accept-unmounted PATH"],
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
