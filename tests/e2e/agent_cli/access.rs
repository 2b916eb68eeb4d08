//! Who reaches the agent, and what the others hear.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command as Process;

use fairbat_tests::bin::fairbat_for_all;

use super::scripted::Agent;
use super::{night, run};

#[test]
fn without_an_agent_it_says_what_to_look_at() {
    let mut agent = Agent::willing(night());
    agent.end();
    let commands: [&[&str]; 4] = [
        &["status"],
        &["pause", "home"],
        &["start", "home", "--wait"],
        &["status", "--watch", "--json"],
    ];
    for args in commands {
        // A socket that nobody listens on, and none.
        run(&agent, args)
            .expect_code(5)
            .expect_said(&["systemctl status fairbat-agent"]);
        let socket = ["--socket", "/nonexistent/agent.sock"];
        let outcome = run(&agent, &[args, &socket].concat());
        outcome
            .expect_code(5)
            .expect_said(&["is fairbat-agent running?"]);
        assert_eq!(outcome.stdout, "", "{outcome}");
    }
}

/// Runs a copy of the command that everybody may read as another user, of this
/// group.
fn as_nobody(agent: &Agent, group: u32) -> std::process::Output {
    let (_directory, command) = fairbat_for_all();
    Process::new("setpriv")
        .args([
            "--reuid=65534",
            "--clear-groups",
            &format!("--regid={group}"),
        ])
        .arg(&command)
        .arg("status")
        .env("FAIRBAT_SOCKET", agent.socket())
        .output()
        .expect("start setpriv: is the package `util-linux` installed?")
}

#[test]
fn who_has_no_right_hears_which_group_has_it() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: needs root, to be somebody else");
        return;
    }
    /// `daemon` has this number on every Linux (LSB).
    const DAEMON: u32 = 1;
    let agent = Agent::willing(night());
    let socket = agent.socket();
    let directory = socket.parent().expect("it is in one");
    let let_in = |path: &Path, mode| {
        std::os::unix::fs::chown(path, None, Some(DAEMON)).expect("root may");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("root may");
    };
    let_in(&socket, 0o660);
    // The socket can be seen, and then its directory only.
    for mode in [0o755, 0o750] {
        let_in(directory, mode);
        let refused = as_nobody(&agent, 65534);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(
            said.contains("no permission to use the agent's socket"),
            "{said}"
        );
        assert!(said.contains("the group daemon"), "{said}");
        let taken = as_nobody(&agent, DAEMON);
        let said = String::from_utf8_lossy(&taken.stderr);
        assert_eq!(taken.status.code(), Some(0), "{said}");
    }
}
