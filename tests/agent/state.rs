//! The state of the agent: who may read it, a disk that is full, and a file that is
//! damaged.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fairbat_tests::bin::agent_binary;
use fairbat_tests::netns::skipped;
use fairbat_tests::tmpfs::TmpFs;

use crate::checks::files_below;
use crate::round_trip::dir;
use crate::service::Place;

/// A job that pushes a directory to another one, by hand.
fn home(source: &Path, store: &Path) -> String {
    format!(
        "[stores.disk]\ntype = \"local\"\npath = {store:?}\n[[jobs]]\nname = \"home\"\n\
         source = {source:?}\ndestination = \"disk:home\"\n"
    )
}

fn write_files(source: &Path, names: &str, count: usize) {
    for i in 0..count {
        fs::write(source.join(format!("{names}-{i}")), names).expect("write a file");
    }
}

/// Takes all the room that is left.
fn fill(disk: &TmpFs) -> PathBuf {
    let path = disk.path().join("filler");
    let mut filler = fs::File::create(&path).expect("a file");
    let mut step = 65_536;
    while step > 0 {
        match filler.write_all(&vec![1; step]) {
            Ok(()) => {}
            Err(_) => step /= 4,
        }
    }
    path
}

#[test]
fn a_full_disk_fails_a_run_and_not_those_after_it() {
    /// Lines of the log, from the full disk to the end. It was one for each file.
    const MAX_LINES: usize = 60;
    let Some(disk) = TmpFs::mount(32 << 20) else {
        return;
    };
    let (source, store) = (dir(), dir());
    write_files(source.path(), "first", 50);
    let place = Place::new();
    symlink(disk.path(), place.join("state")).expect("a link");
    place.configure("", &home(source.path(), store.path()));
    let service = place.start();
    service.order(&["start", "home", "--wait"]);

    let filler = fill(&disk);
    let lines_before = place.log().lines().count();
    write_files(source.path(), "second", 600);
    let failed = service.fairbat(&["start", "home", "--wait"]);
    assert_ne!(failed.code, Some(0), "{failed}");
    let task = service.task("home").expect("it is there");
    let problem = task["last"]["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("No space left on device"), "{task:#}");
    let hint = task["last"]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("room"), "{task:#}");

    fs::remove_file(filler).expect("remove a file");
    // The agent may have begun to try again.
    service.fairbat(&["start", "home"]);
    service.wait_for_task("in step", "home", |task| task["last"]["ok"] == true);
    let log = place.log();
    let lines = log.lines().count() - lines_before;
    assert!(lines <= MAX_LINES, "{lines} lines");
    // What was pushed is known, also to an agent that starts anew.
    service.kill();
    let service = place.start();
    service.order(&["start", "home", "--wait"]);
    let task = service.task("home").expect("it is there");
    assert_eq!(task["last"]["files"]["same"], 650, "{task:#}");
    assert_eq!(task["last"]["files"]["moved"], 0, "{task:#}");
}

fn mode(path: &Path) -> u32 {
    let found = fs::metadata(path).expect("it is there");
    found.permissions().mode() & 0o777
}

#[test]
fn only_its_user_reads_the_state() {
    let place = Place::new();
    place.configure("", "");
    let (directory, file) = (place.join("state"), place.join("state/agent.redb"));
    place.start().kill();
    assert_eq!((mode(&directory), mode(&file)), (0o700, 0o600));

    // As an earlier version has left it.
    for (path, mode) in [(&directory, 0o755), (&file, 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own");
    }
    place.start().kill();
    assert_eq!((mode(&directory), mode(&file)), (0o700, 0o600));
    place.wait_for_log("other users had access", 2);

    // A directory that is not only the agent's keeps its mode.
    fs::write(directory.join("of somebody else"), "").expect("write a file");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("our own");
    place.start().kill();
    assert_eq!((mode(&directory), mode(&file)), (0o755, 0o600));
    place.wait_for_log("a directory of its own", 1);
}

/// Runs a command of the agent to its end.
fn run_to_the_end(place: &Place, command: &[&str]) -> Output {
    Command::new(agent_binary())
        .args(command)
        .arg("--config")
        .arg(place.join("agent.toml"))
        .env_remove("NOTIFY_SOCKET")
        .output()
        .expect("start the agent")
}

#[test]
fn a_damaged_state_is_not_tried_again_and_can_be_moved_away() {
    let (source, store) = (dir(), dir());
    write_files(source.path(), "file", 20);
    let place = Place::new();
    place.configure("", &home(source.path(), store.path()));
    let service = place.start();
    service.order(&["start", "home", "--wait"]);
    service.kill();
    let file = place.join("state/agent.redb");
    let whole = fs::read(&file).expect("read the state");
    let mut overwritten = whole.clone();
    overwritten[..4096].fill(0xa5);
    let damaged = [
        b"this is not a state".to_vec(),
        whole[..whole.len() / 2].to_vec(),
        overwritten,
    ];
    for damaged in damaged {
        fs::write(&file, damaged).expect("write the state");
        for command in [&["run"][..], &["gc"], &["check", "--store"]] {
            let ended = run_to_the_end(&place, command);
            let said = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(4), "{said}");
            assert!(said.contains(&file.display().to_string()), "{said}");
            assert!(said.contains("hint: move it away"), "{said}");
        }
    }
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/systemd/fairbat-agent.service");
    let unit = fs::read_to_string(unit).expect("read the unit");
    assert!(unit.contains("\nRestartPreventExitStatus=2 4\n"), "{unit}");

    fs::rename(&file, place.join("damaged")).expect("move it away");
    let service = place.start();
    service.order(&["start", "home", "--wait"]);
    let task = service.task("home").expect("it is there");
    assert_eq!(task["last"]["files"]["moved"], 0, "{task:#}");
    assert_eq!(task["last"]["files"]["same"], 20, "{task:#}");
}

#[test]
fn what_root_makes_by_hand_belongs_to_the_user_of_the_state() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can make files of other users");
    }
    const USER: u32 = 65_534;
    let (source, store) = (dir(), dir());
    for command in [
        &["gc"][..],
        &["check", "--store"],
        &["key", "home", "--import"],
    ] {
        let place = Place::new();
        place.configure("", &home(source.path(), store.path()));
        let state = place.join("state");
        fs::create_dir(&state).expect("make a directory");
        chown(&state, Some(USER), Some(USER)).expect("root may");
        let mut child = Command::new(agent_binary())
            .args(command)
            .arg("--config")
            .arg(place.join("agent.toml"))
            .stdin(Stdio::piped())
            .spawn()
            .expect("start the agent");
        let mut stdin = child.stdin.take().expect("it is a pipe");
        // Other commands do not read it.
        let _ = writeln!(stdin, "{}", "5a".repeat(32));
        drop(stdin);
        child.wait().expect("it ends");
        let made = files_below(&state);
        assert!(!made.is_empty(), "{command:?}");
        for path in made
            .iter()
            .flat_map(|file| [file.as_path(), file.parent().expect("it is below")])
        {
            let owner = path.metadata().expect("it is there").uid();
            assert_eq!(owner, USER, "{command:?}: {}", path.display());
        }
    }
}

#[test]
fn a_state_that_was_emptied_is_told() {
    let (source, store) = (dir(), dir());
    let place = Place::new();
    place.configure("", &home(source.path(), store.path()));
    place.start().kill();
    fs::write(place.join("state/agent.redb"), "").expect("empty the state");
    place.start().kill();
    place.wait_for_log("agent.redb is empty", 1);
}

#[test]
fn root_follows_no_link_to_write_a_key() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can make files of other users");
    }
    let (source, store, elsewhere) = (dir(), dir(), dir());
    let place = Place::new();
    place.configure("", &home(source.path(), store.path()));
    let state = place.join("state");
    fs::create_dir(&state).expect("make a directory");
    chown(&state, Some(65_534), Some(65_534)).expect("root may");
    symlink(elsewhere.path(), state.join("keys")).expect("a link");
    let mut child = Command::new(agent_binary())
        .args(["key", "home", "--import", "--config"])
        .arg(place.join("agent.toml"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("start the agent");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    writeln!(stdin, "{}", "5a".repeat(32)).expect("it reads");
    drop(stdin);
    assert!(!child.wait().expect("it ends").success());
    assert_eq!(files_below(elsewhere.path()), Vec::<PathBuf>::new());
    let owner = elsewhere.path().metadata().expect("it is there").uid();
    assert_eq!(owner, 0, "the link's target was given away");
}
