//! Many runs at once.

use crate::lab;

#[test]
fn scenarios_and_matrices_can_all_be_read() {
    let output = lab(&["list"]).output().expect("start lab");
    let stdout = crate::expect_success(&output);
    for name in [
        "vulture-constant",
        "cdg-100ms",
        "dalbe-30",
        "fairbat-b20-k3",
        "peers",
    ] {
        assert!(stdout.contains(name), "{name}: {stdout}");
    }
}

#[test]
fn what_is_not_there_is_a_clear_error() {
    for (args, expected) in [
        (&["run", "no-such-scenario"][..], "lab list"),
        (&["run", "dalbe-10", "--contender", "none-such"], "fairbat"),
        (&["matrix", "none-such"], "lab list"),
    ] {
        let output = lab(args).output().expect("start lab");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(stderr.contains(expected), "{stderr}");
    }
}
