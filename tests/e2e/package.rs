//! The Debian package, as far as it can be tried without being built: its files are
//! there, its configuration is accepted, and systemd and groff take what is theirs
//! without a word.

mod pages;
mod units;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fairbat_tests::bin::agent_binary;

/// What is made when the package is.
const MADE: &str = "target/release/";

fn repository() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("tests is in the repository")
}

fn crate_directory() -> PathBuf {
    repository().join("crates/agent")
}

/// What cargo-deb is told.
fn description() -> toml::Value {
    let manifest = fs::read_to_string(crate_directory().join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    manifest["package"]["metadata"]["deb"].clone()
}

fn list<'a>(description: &'a toml::Value, name: &str) -> &'a [toml::Value] {
    description[name].as_array().expect("a list")
}

fn text(value: &toml::Value) -> &str {
    value.as_str().expect("a string")
}

/// Where the files of the package come from.
fn sources(description: &toml::Value) -> Vec<PathBuf> {
    let assets = list(description, "assets").iter().map(|asset| {
        let from = text(&asset[0]);
        if from.starts_with(MADE) {
            PathBuf::from(from)
        } else {
            crate_directory().join(from)
        }
    });
    // cargo-deb adds them by itself.
    let services = list(description, "systemd-units").iter().map(|unit| {
        let directory = crate_directory().join(text(&unit["unit-scripts"]));
        directory.join(format!("{}.service", text(&unit["unit-name"])))
    });
    assets.chain(services).collect()
}

#[test]
fn the_files_of_the_package_are_there() {
    let description = description();
    let (made, kept): (Vec<_>, Vec<_>) = sources(&description)
        .into_iter()
        .partition(|from| from.starts_with(MADE));
    for from in &kept {
        assert!(from.is_file(), "{} is missing", from.display());
    }
    for program in ["fairbat", "fairbat-agent"] {
        assert!(
            made.contains(&PathBuf::from(MADE).join(program)),
            "{program}"
        );
    }
    // No unit is forgotten.
    for unit in fs::read_dir(repository().join("dist/systemd")).expect("a directory") {
        let name = unit.expect("an entry").file_name();
        let is_in = kept
            .iter()
            .any(|from| from.file_name() == Some(name.as_os_str()));
        assert!(is_in, "{} is not in the package", name.display());
    }
    for script in ["postinst", "postrm"] {
        let scripts = crate_directory().join(text(&description["maintainer-scripts"]));
        let script = fs::read_to_string(scripts.join(script)).expect("a script");
        assert!(script.contains("\n#DEBHELPER#\n"), "{script}");
    }
}

/// What `fairbat-agent check` says of a configuration, and how it ends.
fn check(config: &str) -> (Option<i32>, String) {
    let output = Command::new(agent_binary())
        .args(["check", "--config"])
        .arg(repository().join(config))
        .env_clear()
        .output()
        .expect("the binary runs");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).expect("messages are UTF-8");
    (output.status.code(), said)
}

#[test]
fn the_configuration_of_the_package_does_nothing_yet() {
    let (code, said) = check("dist/debian/agent.toml");
    assert_eq!(code, Some(0), "{said}");
    let (warnings, user) = said.split_once('\n').expect("two lines");
    assert_eq!(warnings, "warning: there are no jobs; add [[jobs]]");
    assert!(user.starts_with("checked as the user "), "{said}");
}

/// With the signs of a comment taken away it is a job; it names one store.
#[test]
fn what_the_configuration_of_the_package_proposes_is_right() {
    let text = fs::read_to_string(repository().join("dist/debian/agent.toml")).expect("a file");
    let proposed: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .filter(|line| !line.starts_with(' '))
        .collect();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("agent.toml");
    fs::write(&path, proposed.join("\n")).expect("written");
    let (code, said) = check(path.to_str().expect("UTF-8"));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("home: push /home to offsite:"), "{said}");
}

/// The unit says where they are, and lets the agent write nowhere else.
#[test]
fn the_example_leaves_state_and_socket_to_the_service() {
    let text = fs::read_to_string(repository().join("docs/agent.toml")).expect("a file");
    let example: toml::Table = text.parse().expect("TOML");
    let agent = example["agent"].as_table().expect("a table");
    for key in ["state", "socket"] {
        assert!(!agent.contains_key(key), "{key} is set");
        assert!(text.contains(&format!("\n#{key} = ")), "{key} is not shown");
    }
}

#[test]
fn the_example_is_accepted() {
    let (code, said) = check("docs/agent.toml");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("media: pull nas:media"), "{said}");
}
