//! The rights that pulls and restores give: no more than their owner had.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fairbat_tests::netns::skipped;

use crate::round_trip::dir;
use crate::service::Place;

fn mode(path: &Path) -> u32 {
    let found = fs::symlink_metadata(path).expect("look at it");
    found.permissions().mode() & 0o7777
}

#[test]
fn a_store_makes_no_program_that_runs_as_another_user() {
    let (source, store, pulled) = (dir(), dir(), dir());
    for (name, bits) in [("as-owner", 0o4755), ("as-group", 0o2755), ("plain", 0o755)] {
        fs::write(source.path().join(name), name).expect("write a file");
        fs::set_permissions(source.path().join(name), PermissionsExt::from_mode(bits))
            .expect("set a mode");
    }
    let shared = source.path().join("shared");
    fs::create_dir(&shared).expect("make a directory");
    fs::set_permissions(&shared, PermissionsExt::from_mode(0o2775)).expect("set a mode");
    let configure = |place: &Place, keys: &str| {
        place.configure(
            "",
            &format!(
                "[stores.disk]\ntype = \"local\"\npath = {:?}\n\
                 [[jobs]]\nname = \"home\"\nsource = {:?}\ndestination = \"disk:home\"\n\
                 [[jobs]]\nname = \"copy\"\ndirection = \"pull\"\nsource = \"disk:home\"\n\
                 destination = {:?}\n{keys}\n",
                store.path(),
                source.path(),
                pulled.path(),
            ),
        );
    };
    let expect = |directory: &Path, as_owner: u32, as_group: u32| {
        for (name, expected) in [
            ("as-owner", as_owner),
            ("as-group", as_group),
            ("plain", 0o755),
            ("shared", 0o2775),
        ] {
            let mode = mode(&directory.join(name));
            assert_eq!(mode, expected, "{name} has {mode:o}");
        }
    };
    let place = Place::new();
    configure(&place, "");
    let mut service = place.start();
    service.order(&["start", "home", "--wait"]);
    service.order(&["start", "copy", "--wait"]);
    expect(pulled.path(), 0o755, 0o755);
    place.wait_for_log("do not get their set-user-ID", 1);
    assert!(
        place.log().contains("2 of the files do not"),
        "{}",
        place.log()
    );
    let told = service.task("copy").expect("it is there")["last"]["notes"].to_string();
    assert!(told.contains("--setuid"), "{told}");
    let restore = |name: &str, flags: &[&str]| {
        let to = place.join(name);
        let text = to.to_str().expect("a plain path");
        service.order(&[&["restore", "home", "--wait", "--to", text], flags].concat());
        to
    };
    expect(&restore("plain", &[]), 0o755, 0o755);
    expect(&restore("trusted", &["--setuid"]), 0o4755, 0o2755);

    configure(&place, "setuid = true");
    service.signal("HUP");
    place.wait_for_log("changed, from its next run on", 1);
    service.order(&["start", "copy", "--wait"]);
    expect(pulled.path(), 0o4755, 0o2755);
    configure(&place, "");
    service.signal("HUP");
    place.wait_for_log("changed, from its next run on", 2);
    service.order(&["start", "copy", "--wait"]);
    expect(pulled.path(), 0o755, 0o755);
}

#[test]
fn what_a_restore_leaves_out_is_said_once_with_how_to_have_it() {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root, to give a file away");
    }
    let (source, store) = (dir(), dir());
    fs::write(source.path().join("of-nobody"), "x").expect("write a file");
    std::os::unix::fs::chown(source.path().join("of-nobody"), Some(NOBODY), None)
        .expect("give it away");
    fs::write(source.path().join("program"), "x").expect("write a file");
    fs::set_permissions(
        source.path().join("program"),
        PermissionsExt::from_mode(0o4755),
    )
    .expect("set a mode");
    let place = Place::new();
    let job = format!(
        "[stores.disk]\ntype = \"local\"\npath = {:?}\n[[jobs]]\nname = \"home\"\n\
         source = {:?}\ndestination = \"disk:home\"\n",
        store.path(),
        source.path(),
    );
    place.configure("", &job);
    let service = place.start();
    service.order(&["start", "home", "--wait"]);
    let to = place.join("back").display().to_string();
    let restored = service.fairbat(&["restore", "home", "--wait", "--to", &to]);
    restored.expect_code(0);
    for said in [restored.stderr, place.log()] {
        assert_eq!(said.matches("restore_owners = true").count(), 1, "{said}");
        assert_eq!(
            said.matches("fairbat restore --setuid").count(),
            1,
            "{said}"
        );
    }
}
