//! The units, as systemd-analyze(1) judges them. Whether the agent works under them
//! takes a machine that systemd has started.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use fairbat_tests::bin::{agent_binary, fairbat_binary};
use fairbat_tests::netns::skipped;
use tempfile::TempDir;

use super::repository;

/// The first version of systemd that judges units which are not installed.
const OFFLINE_SINCE: u32 = 250;

/// More than this systemd calls exposed, to some degree.
const MOST_EXPOSED: f64 = 2.0;

/// The units, and what would be installed with them: the binaries under test.
struct Units {
    directory: TempDir,
}

impl Units {
    /// `None`, which has been said, where they cannot be judged.
    fn new() -> Option<Self> {
        let version = Command::new("systemd-analyze").arg("--version").output();
        let version = version.ok().and_then(|output| {
            let text = String::from_utf8(output.stdout).ok()?;
            let number = text.strip_prefix("systemd ")?.split_whitespace().next()?;
            // As in "252" or "256~rc1".
            let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().ok()
        });
        if version.is_none_or(|version| version < OFFLINE_SINCE) {
            skipped("needs systemd-analyze 250 or newer (Debian package systemd)");
            return None;
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        for unit in fs::read_dir(repository().join("dist/systemd")).expect("a directory") {
            let path = unit.expect("an entry").path();
            let mut text = fs::read_to_string(&path).expect("a unit is text");
            for (installed, here) in [
                ("/usr/bin/fairbat-agent ", agent_binary()),
                ("/usr/bin/fairbat ", fairbat_binary()),
            ] {
                text = text.replace(installed, &format!("{} ", here.display()));
            }
            let name = path.file_name().expect("a file");
            fs::write(directory.path().join(name), text).expect("written");
        }
        Some(Self { directory })
    }

    fn paths(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.directory.path()).expect("a directory");
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect()
    }

    fn analyze(&self, args: &[&str], paths: &[PathBuf]) -> Output {
        let output = Command::new("systemd-analyze")
            .args(args)
            .args(paths)
            .current_dir(self.directory.path())
            .output();
        output.expect("systemd-analyze")
    }
}

#[test]
fn systemd_has_nothing_to_say_of_the_units() {
    let Some(units) = Units::new() else {
        return;
    };
    let args = ["verify", "--man=no", "--recursive-errors=no"];
    let output = units.analyze(&args, &units.paths());
    let said = String::from_utf8_lossy(&output.stderr);
    // It looks at what else there is on this machine as well.
    let ours: Vec<_> = said
        .lines()
        .filter(|line| line.contains("fairbat"))
        .collect();
    assert!(ours.is_empty(), "{said}");
    assert!(output.status.success(), "{}: {said}", output.status);
}

#[test]
fn a_mistake_in_a_unit_would_be_seen() {
    let Some(units) = Units::new() else {
        return;
    };
    let path = units.directory.path().join("fairbat-agent.service");
    let text = fs::read_to_string(&path).expect("a unit");
    fs::write(&path, text.replace("ProtectSystem=", "ProtectSystm=")).expect("written");
    let args = ["verify", "--man=no", "--recursive-errors=no"];
    let output = units.analyze(&args, &[path]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("ProtectSystm"), "{said}");
}

#[test]
fn the_services_are_hardly_exposed() {
    let Some(units) = Units::new() else {
        return;
    };
    for name in [
        "fairbat-agent.service",
        "fairbat-bpf.service",
        "fairbat-hold.service",
    ] {
        let path = units.directory.path().join(name);
        let args = ["--no-pager", "security", "--offline=yes"];
        let output = units.analyze(&args, &[path]);
        let text = String::from_utf8_lossy(&output.stdout);
        let level = text.lines().find_map(|line| {
            let (_, level) = line.split_once(&format!("exposure level for {name}: "))?;
            level.split_whitespace().next()?.parse::<f64>().ok()
        });
        let level = level.unwrap_or_else(|| panic!("{name} is not judged: {output:?}"));
        assert!(level <= MOST_EXPOSED, "{name}: {text}");
    }
}
