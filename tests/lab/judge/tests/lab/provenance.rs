//! What a record says of its origin.

use std::process::Command;

use crate::{expect_success, lab};

#[test]
fn the_commit_is_that_of_the_build() {
    // Where there is neither a checkout nor a git(1) to ask.
    let output = lab(&["--version"])
        .env_clear()
        .current_dir("/")
        .output()
        .expect("start lab");
    let said = expect_success(&output);
    let described = Command::new("git")
        .args(["describe", "--always", "--abbrev=12"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let commit = described.ok().filter(|output| output.status.success());
    let expected = commit.map_or_else(
        || "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    let version = env!("CARGO_PKG_VERSION");
    let begin = format!("lab {version} ({expected}");
    assert!(said.starts_with(&begin), "{said:?}, not {begin:?}");
}
