//! Units of systemd: by `--unit`, and by the service that holds them for good.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fairbat_tests::bin::{Fairbat, agent_binary};
use fairbat_tests::poll::{wait_for, wait_until};
use fairbat_tests::workdir::Workdir;
use serde_json::Value;

use super::attached::{downloads, end, server};
use super::control_group::ControlGroup;
use super::watched::{connections, wait_until_held};

/// The control group of a unit, as systemd makes it, and the unit's name.
fn unit(of: &str) -> Option<(ControlGroup, String)> {
    let (own, unit) = (std::process::id(), format!("fairbat-{of}.service"));
    let path = format!("fairbat-{of}-{own}.slice/fairbat-{of}-{own}-b.slice/{unit}");
    ControlGroup::new(&path).map(|group| (group, unit))
}

#[test]
fn a_unit_is_found_by_its_name_below_slices() {
    let Some((group, unit)) = unit("found") else {
        return;
    };
    let work = Workdir::new();
    let run = |name: &str| {
        let run = Fairbat::new(work.path());
        run.args(["run", "--include-local", "--unit", name])
    };
    let outcome = run("fairbat-not-there.service").run();
    outcome
        .expect_code(2)
        .expect_said(&["no unit of this name runs"]);
    let nginx = server();
    let child = downloads(&nginx);
    let number = child.id().cast_signed();
    wait_until("a connection", Duration::from_secs(10), || {
        !connections(number).is_empty()
    });
    group.take(number);
    let mut running = run(unit.trim_end_matches(".service")).spawn();
    wait_until_held(number, true);
    running.signal("TERM");
    running.wait().expect_code(0);
    wait_until_held(number, false);
    end(child);
}

/// The service as its unit starts it: a user of no files, with the rights of a debugger.
fn service(work: &Workdir) -> Child {
    Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--pdeathsig=KILL",
        ])
        .args([
            "--inh-caps=-all,+sys_ptrace",
            "--ambient-caps=-all,+sys_ptrace",
        ])
        .args(["--bounding-set=-all,+sys_ptrace", "--no-new-privs"])
        .arg(agent_binary())
        .args(["hold", "--config", "agent.toml"])
        .current_dir(work.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start setpriv")
}

/// What the service tells the agent of the one unit that it has.
fn told(work: &Workdir) -> Option<Value> {
    let text = fs::read(work.path().join("open/status.json")).ok()?;
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    Some(document["holds"][0].clone())
}

fn wait_until_told(work: &Workdir, what: &str, is_so: impl Fn(&Value) -> bool) {
    wait_until(what, Duration::from_secs(10), || {
        told(work).is_some_and(|hold| is_so(&hold))
    });
}

/// A directory that everybody may write to.
fn open_to_all(directory: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::create_dir_all(directory).expect("make a directory");
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).expect("open it");
}

#[test]
fn the_service_holds_a_unit_that_starts_and_stops() {
    let Some((group, unit)) = unit("service") else {
        return;
    };
    let work = Workdir::new();
    open_to_all(&work.path().join("open"));
    let directory = work.path().join("open").display().to_string();
    let config = format!(
        "[agent]\nstate = \"{directory}/state\"\nhold_status = \"{directory}/status.json\"\n\
         [[hold]]\nunit = \"{unit}\"\ninclude_local = true\nwithin = \"1h\"\n"
    );
    fs::write(work.path().join("agent.toml"), config).expect("write it");
    let mut service = service(&work);
    wait_until_told(&work, "a unit that does not run", |hold| {
        hold["phase"] == "waiting"
    });
    let nginx = server();
    for bytes_are_planned in [false, true] {
        let child = downloads(&nginx);
        let number = child.id().cast_signed();
        group.take(number);
        wait_until_held(number, true);
        wait_until_told(&work, "a unit that moves", |hold| {
            hold["phase"] == "holding"
                && hold["connections"] == 1
                && hold["bytes_done"].as_u64() > Some(0)
                && hold["bytes"].is_u64() == bytes_are_planned
        });
        end(child);
        wait_until_told(&work, "a unit that has ended", |hold| {
            hold["phase"] == "waiting"
        });
    }
    let runs = fs::read_to_string(
        work.path()
            .join("open/state/holds/fairbat-service.service.jsonl"),
    );
    assert_eq!(runs.expect("noted").lines().count(), 2);

    let child = downloads(&nginx);
    let number = child.id().cast_signed();
    group.take(number);
    wait_until_held(number, true);
    let _ = Command::new("kill").arg(service.id().to_string()).status();
    let status = service.wait().expect("it ends");
    assert!(status.success(), "{status}");
    wait_until_held(number, false);
    end(child);
    let total = wait_for("the last word", Duration::from_secs(1), || told(&work));
    assert_eq!(total["totals"]["connections"], 3, "{total}");
}
