//! `fairbat setup` that does not come to its end, and several at once.

use std::os::unix::process::ExitStatusExt as _;
use std::thread;
use std::time::Instant;

use super::machine::{Machine, assert_says};
use super::{NOT_SET_UP, SET_UP};

/// At how many moments of its run it is killed: with the other tests, and in a campaign.
const FEW: u32 = 3;
const MANY: u32 = 16;

/// Kills `fairbat` with these arguments at so many moments all over its run, whose
/// time is measured. `prepare` goes first each time, `check` afterwards.
fn kill_all_over(
    kills: u32,
    machine: &Machine,
    args: &[&str],
    prepare: impl Fn(),
    mut check: impl FnMut(),
) -> u32 {
    prepare();
    let begin = Instant::now();
    assert_says(&machine.root(args), 0, "");
    let whole = begin.elapsed();
    let mut killed = 0;
    for nth in 0..kills {
        prepare();
        let mut child = machine.start(args);
        thread::sleep(whole * nth / kills);
        child.kill().expect("it is ours");
        let status = child.wait().expect("it is ours");
        killed += u32::from(status.signal().is_some());
        check();
    }
    killed
}

fn go_on(kills: u32) {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut controls = Vec::new();
    let clean = || {
        assert_says(&machine.root(&["setup", "--remove"]), 0, "");
    };
    let killed = kill_all_over(kills, &machine, &["setup"], clean, || {
        controls.extend(machine.controls());
        let status = machine.somebody(&["setup", "--status"]);
        assert!(
            status.status.code().is_some_and(|code| code <= 1),
            "{status:?}"
        );
        assert_says(&machine.root(&["setup"]), 0, "");
        assert_says(&machine.somebody(&["setup", "--status"]), 0, SET_UP);
        controls.extend(machine.controls());
    });
    assert!(killed > 0, "none was killed before its end");
    clean();
    machine.assert_clean(&controls);
}

fn remove_what_is_left(kills: u32) {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut controls = Vec::new();
    let clean = || {
        assert_says(&machine.root(&["setup", "--remove"]), 0, "");
    };
    kill_all_over(kills, &machine, &["setup"], clean, || {
        controls.extend(machine.controls());
        clean();
        machine.assert_clean(&[]);
    });
    machine.assert_clean(&controls);
}

fn repeat_removal(kills: u32) {
    let Some(machine) = Machine::new() else {
        return;
    };
    let prepare = || {
        assert_says(&machine.root(&["setup"]), 0, "");
    };
    let mut controls = Vec::new();
    let killed = kill_all_over(kills, &machine, &["setup", "--remove"], prepare, || {
        controls.extend(machine.controls());
        assert_says(&machine.root(&["setup", "--remove"]), 0, "");
        machine.assert_clean(&[]);
    });
    assert!(killed > 0, "none was killed before its end");
    assert_says(&machine.somebody(&["setup", "--status"]), 1, NOT_SET_UP);
    machine.assert_clean(&controls);
}

#[test]
fn of_several_at_once_one_sets_it_up() {
    let Some(machine) = Machine::new() else {
        return;
    };
    for _ in 0..5 {
        let runs: Vec<_> = thread::scope(|scope| {
            let starts = [(); 4].map(|()| scope.spawn(|| machine.root(&["setup"])));
            starts
                .into_iter()
                .map(|run| run.join().expect("ran"))
                .collect()
        });
        let mut first = 0;
        for run in &runs {
            assert_says(run, 0, "observer: set up");
            let said = String::from_utf8_lossy(&run.stderr).into_owned();
            first += said.matches("until the machine restarts").count();
        }
        assert_eq!(first, 2, "each part once: {runs:?}");
        let controls = machine.controls();
        assert_eq!(controls.len(), 3, "{controls:?}");
        assert_says(&machine.root(&["setup", "--remove"]), 0, "removed");
        machine.assert_clean(&controls);
    }
}

#[test]
fn the_next_setup_goes_on_where_one_was_killed() {
    go_on(FEW);
}

#[test]
fn what_a_killed_setup_left_can_be_removed() {
    remove_what_is_left(FEW);
}

#[test]
fn a_killed_removal_can_be_repeated() {
    repeat_removal(FEW);
}

#[test]
#[ignore = "takes a minute"]
fn the_next_setup_goes_on_where_one_was_killed_at_many_moments() {
    go_on(MANY);
}

#[test]
#[ignore = "takes a minute"]
fn what_a_killed_setup_left_can_be_removed_at_many_moments() {
    remove_what_is_left(MANY);
}

#[test]
#[ignore = "takes a minute"]
fn a_killed_removal_can_be_repeated_at_many_moments() {
    repeat_removal(MANY);
}
