//! What an agent gives up if root starts it without a service manager.

use std::fs;
use std::path::Path;

use fairbat_tests::content::Content;
use fairbat_tests::netns::skipped;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::tmpfs::TmpFs;

use crate::round_trip::dir;
use crate::service::Place;
use crate::tree::expect_same;

/// A field of the status of a process.
fn field(pid: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value
        .expect("a field")
        .trim_start_matches(':')
        .trim()
        .to_owned()
}

fn configuration(source: &Path, disk: &Path) -> String {
    format!(
        "[stores.disk]\ntype = \"local\"\npath = {disk:?}\n[[jobs]]\nname = \"home\"\n\
         source = {source:?}\ndestination = \"disk:home\"\n"
    )
}

#[test]
fn an_agent_of_root_keeps_the_right_to_read_and_writes_where_it_is_told() {
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root, to give something up");
    }
    // Not below /tmp, where everybody may write.
    let below = |name: &str| {
        let path = Path::new("/run").join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("make a directory");
        path
    };
    let nginx = Nginx::start(&Config::default());
    nginx.put("file", &Content::new(7, 1_000));
    let (source, disk) = (dir(), below("fairbat-disk"));
    let (named, other) = (below("fairbat-named"), below("fairbat-other"));
    fs::write(source.path().join("f"), "x").expect("write a file");
    let place = Place::new();
    let keys = format!("write_paths = [{named:?}]");
    place.configure(&keys, &configuration(source.path(), &disk));
    let service = place.start();
    // CAP_DAC_READ_SEARCH is the third one.
    for set in ["CapPrm", "CapEff", "CapBnd"] {
        assert_eq!(field(service.pid(), set), "0000000000000004", "{set}");
    }
    assert_eq!(field(service.pid(), "NoNewPrivs"), "1");
    place.wait_for_log("started as root", 1);
    service.order(&["start", "home", "--wait"]);
    let shown = |path: &Path| path.display().to_string();
    let to = shown(&named.join("back"));
    service.order(&["restore", "home", "--wait", "--to", &to]);
    expect_same(source.path(), Path::new(&to));

    if place.log().contains("no Landlock") {
        skipped("the kernel has no Landlock");
    } else {
        let to = shown(&other.join("back"));
        let refused = service.fairbat(&["restore", "home", "--to", &to]);
        refused.expect_code(1).expect_said(&["write_paths"]);
        let refused = service.fairbat(&["add", "-d", &shown(&other), &nginx.url("file")]);
        refused.expect_code(1).expect_said(&["write_paths"]);
        // A disk that is mounted over a place is another place.
        if let Some(mounted) = TmpFs::mount(1 << 20) {
            let _bind = fairbat_tests::tmpfs::Bind::mount(mounted.path(), &disk);
            service.fairbat(&["start", "home", "--wait"]);
            let task = service.task("home").expect("it is there");
            let problem = task["last"]["problem"].as_str().unwrap_or_default();
            assert!(problem.contains("may not write"), "{task:#}");
        }
    }
    drop(service);
    for path in [disk, named, other] {
        fs::remove_dir_all(path).expect("our own");
    }
}
