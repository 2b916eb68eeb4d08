//! Uploads that are under way when the congestion controls are replaced, and
//! then removed.

use std::time::Duration;

use fairbat_tests::bin::signal;
use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_content;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::wait_until;
use fairbat_tests::ss::connections;
use fairbat_tests::workdir::Workdir;

use super::machine::{BINARY, Machine, assert_says};

/// Some seconds at 2 MiB/s.
const FILE: Content = Content::new(210, 30_000_000);

#[test]
fn uploads_that_are_under_way_go_on_as_they_are() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let nginx = Nginx::start(&Config {
        upload_limit: Some(0),
        ..Config::default()
    });
    let work = Workdir::new();
    FILE.write_to(&work.join("file")).expect("written");
    let file = work.join("file");
    let file = file.to_str().expect("UTF-8");
    machine.shell(&format!("cp {file} /run/file; chmod 644 /run/file"));
    assert_says(&machine.root(&["setup"]), 0, "");
    let old = machine.controls();
    let vegas = old.iter().find(|name| name.starts_with("fairbat_vegas"));
    let vegas = format!(" {} ", vegas.expect("the default"));

    let url = nginx.url("stored");
    let port = url.split(&[':', '/']).nth(4).expect("a port");
    let port = port.parse().expect("a number");
    let words = ["put", "-q", "--limit-rate", "2M", "/run/file", &url];
    let mut upload = machine.start_somebody(&[&[BINARY], &words[..]].concat());
    wait_until("its congestion control", Duration::from_secs(20), || {
        connections(port).contains(&vegas)
    });
    // Changing the controls can take longer than the file, so it stands still meanwhile.
    signal(&upload, "STOP");

    machine.shell("mv /run/fairbat/bpf/congestion/v* /run/fairbat/bpf/congestion/v900");
    assert_says(&machine.root(&["setup"]), 0, "in place of version 900");
    let new = machine.controls();
    assert!(connections(port).contains(&vegas), "{new:?}");
    let removal = machine.root(&["setup", "--remove"]);
    assert_says(
        &removal,
        0,
        "connections that follow one keep it until they end",
    );
    assert!(connections(port).contains(&vegas));
    assert!(upload.try_wait().expect("ours").is_none(), "too soon");

    signal(&upload, "CONT");
    assert!(upload.wait().expect("ours").success());
    assert_content(&nginx.path("stored"), &FILE);
    machine.shell("rm /run/file");
    machine.assert_clean(&[old, new].concat());
}
