//! The manual pages and the completions that the commands make for the package.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use fairbat_tests::bin::{agent_binary, fairbat_binary};
use fairbat_tests::netns::skipped;

/// Whether a program starts at all.
fn is_there(program: &str) -> bool {
    let status = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok()
}

fn binaries() -> [&'static Path; 2] {
    [fairbat_binary(), agent_binary()]
}

#[test]
fn groff_has_nothing_to_say_of_the_manual_pages() {
    if !is_there("groff") {
        skipped("needs groff (Debian package groff-base)");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    for binary in binaries() {
        let made = Command::new(binary)
            .args(["man", "--dir"])
            .arg(directory.path())
            .status();
        assert!(made.expect("the binary runs").success());
    }
    let mut names = Vec::new();
    for page in fs::read_dir(directory.path()).expect("a directory") {
        let page = page.expect("an entry");
        names.push(page.file_name().into_string().expect("a name in ASCII"));
        let output = Command::new("groff")
            .args(["-man", "-ww", "-z", "-K", "utf8", "-T", "utf8"])
            .arg(page.path())
            .output()
            .expect("groff");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.is_empty(), "{}: {said}", page.path().display());
        assert!(output.status.success(), "{}", page.path().display());
    }
    for name in [
        "fairbat.1",
        "fairbat-setup.1",
        "fairbat-agent.8",
        "fairbat-agent.toml.5",
    ] {
        assert!(names.iter().any(|page| page == name), "{name} is missing");
    }
}

/// Each shell that is there reads the script of its own as one without mistakes.
#[test]
fn shells_read_the_completions() {
    for shell in ["bash", "zsh", "fish"] {
        if !is_there(shell) {
            skipped(&format!("needs {shell} for its completions"));
            continue;
        }
        for binary in binaries() {
            let script = Command::new(binary).args(["completions", shell]).output();
            let script = script.expect("the binary runs");
            assert!(script.status.success(), "{script:?}");
            let directory = tempfile::tempdir().expect("a temporary directory");
            let path = directory.path().join("script");
            fs::write(&path, script.stdout).expect("written");
            let read = Command::new(shell).arg("-n").arg(&path).output();
            let read = read.expect("the shell runs");
            assert!(read.status.success() && read.stderr.is_empty(), "{read:?}");
        }
    }
}
