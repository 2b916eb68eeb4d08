//! The arithmetic of the congestion laws, which knows no kernel: compiled for
//! this machine and run, as no eBPF program can be without root.
//!
//! What C leaves undefined stops the program (a signal). The one thing that eBPF
//! defines and C does not, division by zero, is guarded by `scaled()` in arithmetic.h.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;

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
    // Each test may be a process of its own: the first one compiles for all.
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let lock = File::create(directory.join("laws.lock")).expect("cargo has made the directory");
    lock.lock().expect("files can be locked");
    let program = directory.join("laws");
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let changed = ["src/bpf", "tests/laws", "tests/laws.rs"]
        .map(|name| last_change(&crate_directory.join(name)));
    if fs::metadata(&program).is_ok_and(|made| changed.iter().all(|at| *at < modified(&made))) {
        return Some(program);
    }
    let compiled = Command::new(&clang)
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"])
        // By a trap: it needs no library of the compiler's.
        .args(["-fsanitize=undefined", "-fsanitize-trap=undefined", "-o"])
        .arg(&program)
        .arg(crate_directory.join("tests/laws/laws.c"))
        .output()
        .expect("it has just run");
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    Some(program)
});

fn modified(file: &Metadata) -> SystemTime {
    file.modified().expect("file systems here note it")
}

/// When a file or directory, or what is in it, was last changed.
fn last_change(path: &Path) -> SystemTime {
    let own = modified(&fs::metadata(path).expect("it is there"));
    let entries = fs::read_dir(path).into_iter().flatten();
    let entries = entries.map(|entry| last_change(&entry.expect("an entry").path()));
    entries.fold(own, SystemTime::max)
}

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
fn whole_windows_add_up_to_the_wanted_window_and_keep_the_floor() {
    holds("whole_windows");
}

#[test]
fn the_mean_round_trip_time_follows_the_shortest_path_too() {
    holds("mean_round_trip");
}

#[test]
fn round_trips_without_a_measurement_leave_the_mean() {
    holds("unmeasured_round_trips");
}

#[test]
fn the_second_largest_answer_of_the_last_trains_counts() {
    holds("trains_answers");
}

#[test]
fn packets_that_leave_one_by_one_are_no_train() {
    holds("trains_of_what_there_was");
}

#[test]
fn a_weight_is_good_for_its_share_of_a_known_capacity() {
    holds("weights_bound");
}

#[test]
fn cdg_neither_grows_nor_backs_off_while_a_back_off_takes_effect() {
    holds("waits_for_the_effect_of_a_back_off");
}

#[test]
fn cdg_of_full_weight_is_reno() {
    holds("full_weight_is_reno");
}

#[test]
fn cdg_grows_by_what_was_acknowledged() {
    holds("grows_by_what_was_acknowledged");
}

#[test]
fn cdg_moves_its_scale_until_the_window_is_the_share() {
    holds("steers_towards_the_share");
}

#[test]
fn cdg_grows_faster_than_reno_the_less_it_weighs() {
    holds("refills_less_with_more_weight");
}

#[test]
fn a_weight_is_good_for_its_share_under_cdg_too() {
    holds("a_share_by_cdg");
}

#[test]
fn a_flow_that_yields_fills_an_idle_path_within_seconds() {
    holds("fills_an_idle_path");
}

#[test]
fn a_flow_that_yields_stays_at_the_floor_beside_a_queue_of_others() {
    holds("yields_to_others");
}

#[test]
fn a_flow_that_yields_goes_to_the_floor_when_others_come_back_in_a_test() {
    holds("others_come_back");
}

#[test]
fn a_flow_knocks_ever_more_rarely_at_a_queue_that_stays_short() {
    holds("knocks_at_a_short_queue");
}

#[test]
fn a_flow_comes_back_when_a_knock_is_answered() {
    holds("an_answer_to_a_knock");
}

#[test]
fn a_knock_ends_when_it_loses_data() {
    holds("a_knock_that_loses_data");
}

#[test]
fn a_level_is_proven_when_nobody_comes_back_in_a_test() {
    holds("nobody_comes_back");
}

#[test]
fn a_loss_in_a_test_belongs_to_the_same_burst_only_at_first() {
    holds("losses_in_a_test");
}

#[test]
fn what_gets_through_while_a_loss_is_repaired_is_the_level() {
    holds("a_repair_shows_the_level");
}

#[test]
fn a_climb_that_meets_others_early_gives_up_for_more_than_a_second() {
    holds("a_climb_that_meets_others");
}

#[test]
fn a_long_queue_that_has_gone_hides_nobody() {
    holds("a_long_queue_that_has_gone_hides_nobody");
}

#[test]
fn the_window_doubles_when_others_that_stayed_have_left() {
    holds("others_that_stayed_have_left");
}

#[test]
fn a_rate_that_varies_shows_by_tests_and_not_by_a_queue_that_stays() {
    holds("a_rate_that_varies");
}

#[test]
fn a_flow_within_a_machine_keeps_its_window_while_it_waits_for_a_processor() {
    holds("waits_for_a_processor");
}

#[test]
fn a_flow_on_a_path_shorter_than_the_least_round_trip_grows_by_what_is_acknowledged() {
    holds("shorter_than_the_least");
}

#[test]
fn packets_that_come_in_bursts_may_be_late_by_the_time_between_two() {
    holds("bursts");
}

#[test]
fn flows_of_a_group_divide_its_window_among_those_that_use_it() {
    holds("parts_of_a_group");
}

#[test]
fn flows_of_a_group_share_it_by_their_priorities() {
    holds("priorities_of_a_group");
}

#[test]
fn a_turn_lasts_as_long_as_the_flows_are_many_and_no_longer_than_8_s() {
    holds("turns_of_a_group");
}

#[test]
fn a_flow_that_outlives_its_group_counts_as_a_new_one() {
    holds("silence_of_a_flow");
}

#[test]
fn a_group_climbs_no_faster_than_its_flows_learn_of_it() {
    holds("growth_of_a_group");
}

#[test]
fn a_flow_leaves_its_group_or_is_forgotten_when_it_is_silent() {
    holds("flows_of_a_group");
}

#[test]
fn one_flow_of_a_group_finds_the_path_for_all() {
    holds("opener_of_a_group");
}

#[test]
fn a_round_trip_of_a_group_is_of_all_its_flows() {
    holds("round_trips_of_a_group");
}

#[test]
fn packet_intervals_vary_as_in_a_worked_example() {
    holds("variations_of_an_example");
}

#[test]
fn packets_less_than_20_ms_apart_make_no_interval() {
    holds("variations_of_distant_packets");
}

#[test]
fn a_longer_route_is_known_soon() {
    holds("a_longer_route");
}

#[test]
fn a_queue_that_falls_when_a_flow_gives_way_is_no_longer_route() {
    holds("a_newcomer_is_no_longer_route");
}

#[test]
fn a_queue_that_has_become_shorter_is_no_longer_route() {
    holds("a_shorter_queue_is_no_longer_route");
}

#[test]
fn timestamps_may_wrap_and_packets_may_overtake_each_other() {
    holds("variations_of_odd_timestamps");
}

#[test]
fn a_constant_delay_makes_no_variation() {
    holds("variations_of_a_constant_delay");
}

#[test]
fn a_clock_that_stands_still_does_not_fill_the_queue() {
    holds("variations_of_a_clock_that_stands_still");
}

#[test]
fn a_packet_makes_at_most_one_interval_whatever_the_clocks_say() {
    holds("variations_of_arbitrary_clocks");
}

#[test]
fn the_senders_tick_is_found() {
    holds("tick_of_the_sender");
}

#[test]
fn the_bytes_of_a_round_trip_follow_a_window_that_doubles_and_halves() {
    holds("bytes_per_round_trip");
}
