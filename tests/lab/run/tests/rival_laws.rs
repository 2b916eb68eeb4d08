//! The laws of the rivals, which know no kernel: compiled for this machine and run.
//!
//! What C leaves undefined stops the program (a signal).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The compiled cases; none without a compiler, where nothing else needs one.
static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let runs = Command::new(&clang).arg("--version").output();
    if !runs.is_ok_and(|output| output.status.success()) {
        if cfg!(feature = "bpf") {
            panic!(
                "{} cannot be run, and the feature bpf needs it",
                clang.display()
            );
        }
        return None;
    }
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rival-laws");
    let compiled = Command::new(&clang)
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"])
        // By a trap: it needs no library of the compiler's.
        .args(["-fsanitize=undefined", "-fsanitize-trap=undefined", "-I"])
        .arg(lab.join("../../../crates/dalbe/src/bpf"))
        .arg("-o")
        .arg(&program)
        .arg(lab.join("tests/rival_laws/laws.c"))
        .output()
        .expect("it has just run");
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    Some(program)
});

fn holds(case: &str) {
    let Some(program) = &*PROGRAM else {
        eprintln!("SKIPPED, no clang to compile the laws with");
        return;
    };
    let run = Command::new(program).arg(case).output();
    let run = run.expect("what was compiled runs");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{case}, {}:\n{said}", run.status);
}

#[test]
fn the_base_delay_is_the_least_of_ten_minutes() {
    holds("base_delay");
}

#[test]
fn delays_of_clocks_that_wrap_are_compared() {
    holds("clocks_wrap");
}

#[test]
fn ledbat_grows_by_its_gain_in_a_round_trip_and_stands_still_at_its_target() {
    holds("ledbat_steps");
}

#[test]
fn ledbat_does_not_grow_beyond_what_is_in_flight() {
    holds("ledbat_limited");
}

#[test]
fn the_gain_of_ledbat_pp_is_by_the_base_delay() {
    holds("gains");
}

#[test]
fn ledbat_pp_takes_at_most_half_of_its_window_in_a_round_trip() {
    holds("decrease");
}

#[test]
fn ledbat_pp_slows_down_for_two_round_trips_and_waits_nine_times_as_long() {
    holds("slowdowns");
}

#[test]
fn ledbat_pp_leaves_slow_start_at_three_quarters_of_its_target() {
    holds("slow_start_ends");
}

#[test]
fn tcp_lp_is_told_early_at_fifteen_percent_of_the_range() {
    holds("early_indication");
}

#[test]
fn tcp_lp_goes_to_one_packet_at_a_second_indication_within_its_time_out() {
    holds("inference");
}

#[test]
fn early_ledbat_goes_down_to_one_packet_and_grows_from_there() {
    holds("ledbat_early");
}

#[test]
fn tcp_lp_infers_one_event_from_a_queue_that_a_halving_empties() {
    holds("one_event");
}

#[test]
fn tcp_lp_does_not_hear_the_queue_of_a_loss_behind_it() {
    holds("after_a_loss");
}

#[test]
fn tcp_lp_stays_at_one_packet_beside_others_and_grows_when_they_are_gone() {
    holds("one_packet");
}

#[test]
fn tcp_lp_of_linux_takes_the_queue_that_it_finds_for_the_least() {
    holds("linux_rebases");
}

#[test]
fn tcp_lp_of_linux_goes_to_one_packet_at_a_second_indication_within_three_round_trips() {
    holds("linux_infers");
}
