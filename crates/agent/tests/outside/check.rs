//! `fairbat-agent check` as a process: what it prints, and how it ends.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `check` in this directory with these variables, in UTC.
fn check(directory: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairbat-agent"))
        .arg("check")
        .args(args)
        .current_dir(directory)
        .env_clear()
        .env("TZ", "UTC")
        .envs(variables.iter().copied())
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("messages are UTF-8")
}

/// The warnings, without the line that names the user.
fn warnings(output: &Output) -> String {
    let said = text(&output.stderr);
    let (warnings, user) = match said.trim_end().rsplit_once('\n') {
        Some((warnings, user)) => (format!("{warnings}\n"), user),
        None => (String::new(), said.trim_end()),
    };
    assert!(user.starts_with("checked as the user "), "{said}");
    warnings
}

/// Where the agent itself writes.
const AGENT: &str = "[agent]\nstate = \"DIR/state\"\nsocket = \"DIR/agent.sock\"\n";

/// A directory with a configuration. `DIR` in its text is the directory itself.
fn with_config(config: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().display().to_string();
    let config = config.replace("DIR", &path);
    fs::write(directory.path().join("agent.toml"), config).expect("a writable directory");
    directory
}

const GOOD: &str = r#"
[stores.disk]
type = "local"
path = "DIR/store"

[[jobs]]
name = "home"
source = "DIR/home"
destination = "disk:home"
schedule = "2199-06-01 22:00"
by = "06:00"
delete = "mirror"
max_delete = "12.5%"

[[jobs]]
name = "often"
source = "DIR/home"
destination = "disk:often"
every = "90m"
within = "1h"

[[jobs]]
name = "back"
direction = "pull"
source = "disk:"
destination = "DIR/back"
"#;

#[test]
fn each_job_is_a_line() {
    let directory = with_config(&format!("{AGENT}{GOOD}"));
    for name in ["home", "store"] {
        fs::create_dir(directory.path().join(name)).expect("a new directory");
    }
    let output = check(directory.path(), &["--config", "agent.toml"], &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(warnings(&output), "");
    let path = directory.path().display();
    let expected = format!(
        "home: push {path}/home to disk:home, deleting at most 12.5 % of the files; \
         next Sat 2199-06-01 22:00:00 UTC, by Sun 2199-06-02 06:00:00 UTC\n\
         often: push {path}/home to disk:often; every 1h 30m, within 1h of its start\n\
         back: pull disk: to {path}/back; only by hand\n"
    );
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn the_file_is_named_by_the_environment_as_well() {
    let directory = with_config("");
    let variables = [("FAIRBAT_CONFIG", "agent.toml")];
    let output = check(directory.path(), &[], &variables);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("there are no jobs"));
    let output = check(directory.path(), &["--config", "other.toml"], &variables);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let directory = with_config("[agent]\nconections = 4\n\n[[job]]\nname = \"a\"\n");
    let output = check(directory.path(), &["--config", "./agent.toml"], &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(
        text(&output.stderr),
        "./agent.toml:2:1: unknown key `conections` in [agent]; did you mean `connections`?\n\
         ./agent.toml:4:3: unknown key `job`; did you mean `jobs`?\n"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_another_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = check(directory.path(), &["--config", "none.toml"], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = text(&output.stderr);
    assert!(
        message.contains("none.toml") && message.contains("No such file"),
        "{message}"
    );
    assert_eq!(
        check(directory.path(), &["--nonsense"], &[]).status.code(),
        Some(2)
    );
}

#[test]
fn what_stands_in_the_way_is_warned_of() {
    let directory = with_config(&format!(
        "{AGENT}{}",
        r#"
[stores.nas]
type = "webdav"
url = "https://nas.example.org/"
credentials = "nas"

[stores.open]
type = "webdav"
url = "https://open.example.org/"
credentials = "DIR/credentials"
cacert = "DIR/ca.pem"

[stores.s3]
type = "s3"
bucket = "b"

[stores.disk]
type = "local"
path = "DIR/mnt"

[[jobs]]
name = "a"
source = "DIR/a"
destination = "nas:a"
schedule = "2020-01-01"

[[jobs]]
name = "b"
direction = "pull"
source = "disk:b"
destination = "DIR/b"
"#,
    ));
    let credentials = directory.path().join("credentials");
    fs::write(&credentials, "token = hunter2\n").expect("a writable directory");
    let mode = PermissionsExt::from_mode(0o644);
    fs::set_permissions(&credentials, mode).expect("a file of our own");
    let variables = [("AWS_ACCESS_KEY_ID", "hunter2")];
    let output = check(directory.path(), &["--config", "agent.toml"], &variables);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let warnings = warnings(&output);
    let path = directory.path().display();
    for (start, part) in [
        ("store `disk`: ", "/mnt: No such file"),
        ("store `nas`: ", "LoadCredential=nas:FILE"),
        ("store `open`: ", &format!("chmod 600 {path}/credentials")),
        ("store `open`: ", "/ca.pem: No such file"),
        ("store `s3`: ", "the secret access key is missing"),
        ("job `a`: ", "no moment in the future"),
        ("job `a`: ", "/a: No such file"),
    ] {
        let start = format!("warning: {start}");
        let found = warnings
            .lines()
            .any(|line| line.starts_with(&start) && line.contains(part));
        assert!(found, "{part:?} is not in\n{warnings}");
    }
    assert_eq!(warnings.lines().count(), 7, "{warnings}");
    assert!(!warnings.contains("hunter2"), "{warnings}");
    assert!(text(&output.stdout).contains("; never again\n"));
}

#[test]
fn secrets_in_plain_text_are_warned_of() {
    let config = |url: &str| {
        format!(
            "{AGENT}[stores.nas]\ntype = \"webdav\"\nurl = {url:?}\n\
             credentials = \"DIR/credentials\"\n\
             [[jobs]]\nname = \"a\"\nsource = \"DIR\"\ndestination = \"nas:a\"\n"
        )
    };
    for (url, is_warned) in [
        ("http://nas.example.org/", true),
        ("https://nas.example.org/", false),
        ("http://127.0.0.1:1/", false),
    ] {
        let directory = with_config(&config(url));
        let credentials = directory.path().join("credentials");
        fs::write(&credentials, "token = hunter2\n").expect("a writable directory");
        let mode = PermissionsExt::from_mode(0o600);
        fs::set_permissions(&credentials, mode).expect("a file of our own");
        let output = check(directory.path(), &["--config", "agent.toml"], &[]);
        let warnings = warnings(&output);
        let expected = "warning: store `nas`: the token crosses the network unencrypted; \
                        use https\n";
        assert_eq!(warnings, if is_warned { expected } else { "" }, "{url}");
    }
}

#[test]
fn files_that_keep_the_agent_from_its_site_are_warned_of() {
    let config = format!(
        "{AGENT}[fleet]\nurl = \"tls://nats.example.org:4222\"\nsite = \"berlin\"\nhost = \"a\"\n\
         credentials = \"DIR/a.creds\"\ncacert = \"DIR/ca.pem\"\n\
         [[jobs]]\nname = \"a\"\nsource = \"/etc\"\ndestination = \"disk:a\"\n\
         [stores.disk]\ntype = \"local\"\npath = \"DIR\"\n"
    );
    let directory = with_config(&config);
    let [credentials, cacert] = ["a.creds", "ca.pem"].map(|name| directory.path().join(name));
    let said = || warnings(&check(directory.path(), &["--config", "agent.toml"], &[]));
    let found = said();
    for key in ["credentials", "cacert"] {
        assert!(
            found.contains(&format!("warning: [fleet]: `{key}`: ")),
            "{found}"
        );
    }
    fs::write(&credentials, "junk").expect("a writable directory");
    fs::write(&cacert, "-----BEGIN CERTIFICATE-----\n").expect("a writable directory");
    fs::set_permissions(&credentials, fs::Permissions::from_mode(0o644)).expect("its mode");
    let found = said();
    assert!(found.contains("chmod 600"), "{found}");
    assert!(!found.contains("cacert"), "{found}");
    fs::set_permissions(&credentials, fs::Permissions::from_mode(0o600)).expect("its mode");
    let found = said();
    assert!(found.contains("no credentials for NATS"), "{found}");
}

#[test]
fn what_the_user_may_not_read_or_write_is_warned_of() {
    let directory = with_config(
        r#"
[agent]
state = "DIR/state"
socket = "DIR/run/agent.sock"

[stores.disk]
type = "local"
path = "DIR/store"

[[jobs]]
name = "home"
source = "DIR/home"
destination = "disk:home"
exclude = ["skipped"]

[[jobs]]
name = "back"
direction = "pull"
source = "disk:"
destination = "DIR/state/back"
"#,
    );
    let path = directory.path();
    let set = |name: &str, mode| {
        fs::set_permissions(path.join(name), fs::Permissions::from_mode(mode))
            .expect("a file of our own");
    };
    for name in ["state", "run", "store", "home", "home/closed"] {
        fs::create_dir(path.join(name)).expect("a new directory");
    }
    for name in ["home/open", "home/secret", "home/skipped"] {
        fs::write(path.join(name), "x").expect("a writable directory");
    }
    set("", 0o755);
    set("agent.toml", 0o644);
    set("home/open", 0o644);
    for name in ["state", "run", "store", "home"] {
        set(name, 0o555);
    }
    for name in ["home/closed", "home/secret", "home/skipped"] {
        set(name, 0);
    }
    // By descriptor: the checkout may be below a directory that this user must not enter.
    let program = fs::File::open(env!("CARGO_BIN_EXE_fairbat-agent")).expect("the agent");
    let mut check = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    check
        .args(["check", "--config", "agent.toml"])
        .current_dir(path);
    if fs::metadata(path).expect("it is there").uid() == 0 {
        check.uid(65_534).gid(65_534);
    }
    let output = check.output().expect("the binary runs");
    set("home/closed", 0o700);
    let (warnings, path) = (warnings(&output), path.display());
    for expected in [
        format!("`state`: {path}/state cannot be written: Permission denied"),
        format!("`socket`: {path}/run cannot be written: Permission denied"),
        format!("store `disk`: {path}/store cannot be written: Permission denied"),
        format!("job `home`: {path}/home: closed cannot be opened: Permission denied"),
        format!("job `back`: {path}/state cannot be written: Permission denied"),
    ] {
        assert!(
            warnings.contains(&format!("warning: {expected}")),
            "{expected}\n{warnings}"
        );
    }
    assert!(
        warnings.contains("; and 1 more are like that"),
        "{warnings}"
    );
    assert_eq!(warnings.lines().count(), 5, "{warnings}");
}
