//! What is refused, and by which name.

use super::*;

const GOOD: &str = r#"
    description = "good"
    duration_s = 60
    measure_from_s = 10
    [[link]]
    rate_mbit = 10
    delay_ms = 20
    queue = { packets = 50 }
    outage = [{ from_s = 7, until_s = 9 }]
    schedule = [{ at_s = 20, rate_mbit = 5 }, { at_s = 40, rate_mbit = 10 }]
    [[foreground]]
    traffic = { greedy = { flows = 2 } }
    start_s = 5
    stop_s = 50
    [[foreground]]
    traffic = { on_off = { on_s = 1, off_s = 3 } }
    [[foreground]]
    traffic = { web = { load = 0.3, mean_kb = 300 } }
    [[foreground]]
    traffic = { udp = { rate_mbit = 1, packet_bytes = 1000 } }
    [background]
    start_s = 3
    size_mb = 70
    deadline_s = 50
    weight = 0.3
    connections = 8
    server_kb_s = 300
    stopped = { from_s = 6, until_s = 8 }
    copies = 4
    stagger_s = 6
"#;

fn check(text: &str) -> Result<(), String> {
    let scenario: Scenario = toml::from_str(text).unwrap();
    scenario.check()
}

#[test]
fn what_can_be_run_is_taken() {
    assert_eq!(check(GOOD), Ok(()));
    for bound in [
        "radio = { every_ms = 50, least = 0.4, walk = 0.6 }",
        "radio = { every_ms = 50, least = 0.9, walk = 0.1 }",
        "discipline = { pie = { target_ms = 2 } }",
        "discipline = { codel = { target_ms = 99, interval_ms = 100 } }",
    ] {
        let good = GOOD.replacen("delay_ms = 20", &format!("delay_ms = 20\n{bound}"), 1);
        assert_eq!(check(&good), Ok(()), "{bound}");
    }
}

#[test]
fn processors_are_taken_away_from_one_program_for_less_than_a_period() {
    let stalls = |copies: u32, stalls: &str| {
        let good = GOOD.replacen("stopped = { from_s = 6, until_s = 8 }", stalls, 1);
        check(&good.replacen("copies = 4", &format!("copies = {copies}"), 1))
    };
    let good = "stalls = { every_ms = 500, least_ms = 10, most_ms = 200 }";
    assert_eq!(stalls(1, good), Ok(()));
    for (bad, why) in [
        (good.replacen("200", "501", 1), "most_ms"),
        (good.replacen("10,", "201,", 1), "least_ms"),
        (good.replacen("500", "9", 1), "every_ms"),
    ] {
        let error = stalls(1, &bad).unwrap_err();
        assert!(
            error.starts_with(&format!("background: stalls: {why}")),
            "{error}"
        );
    }
    assert!(stalls(2, good).unwrap_err().contains("of one program"));
    let both = format!("{good}\n    stopped = {{ from_s = 6, until_s = 8 }}");
    assert!(stalls(1, &both).unwrap_err().contains("of one program"));
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    for (good, bad, field) in [
        ("duration_s = 60", "duration_s = 1e30", "duration_s"),
        ("duration_s = 60", "duration_s = 0.0001", "duration_s"),
        ("duration_s = 60", "duration_s = nan", "duration_s"),
        (
            "measure_from_s = 10",
            "measure_from_s = 60",
            "measure_from_s",
        ),
        (
            "measure_from_s = 10",
            "measure_from_s = -1",
            "measure_from_s",
        ),
        ("rate_mbit = 10", "rate_mbit = 1e-30", "link 1: rate_mbit"),
        ("rate_mbit = 10", "rate_mbit = 1001", "link 1: rate_mbit"),
        ("delay_ms = 20", "delay_ms = 1e30", "link 1: delay_ms"),
        ("delay_ms = 20", "delay_ms = 20\nloss = 1", "link 1: loss"),
        (
            "delay_ms = 20",
            "delay_ms = 20\nthinned_acks = 1",
            "link 1: thinned_acks",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\njitter_ms = -1",
            "link 1: jitter_ms",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\njitter_share = 1.1",
            "link 1: jitter_share",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\naggregate_ms = -4",
            "link 1: aggregate_ms",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\ndiscipline = { codel = { target_ms = 0 } }",
            "link 1: discipline: target_ms",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\ndiscipline = \"fair\"\necn = true",
            "link 1: ecn needs",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\nradio = { every_ms = 50, least = 0 }",
            "link 1: radio: least",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\nradio = { every_ms = 50, least = 0.4, walk = 0 }",
            "link 1: radio: walk",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\nradio = { every_ms = 50, least = 0.4, walk = 0.61 }",
            "link 1: radio: walk must be at most 1 - least",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\ndiscipline = { pie = { target_ms = 1.9 } }",
            "link 1: discipline: target_ms",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\ndiscipline = { codel = { target_ms = 100 } }",
            "link 1: discipline: target_ms must be less",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\ndiscipline = { fq_codel = { target_ms = 6, interval_ms = 5 } }",
            "link 1: discipline: target_ms must be less",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\ndelay_steps = [{ at_s = 0, delay_ms = 7 }]",
            "link 1: delay_steps: at_s",
        ),
        (
            "delay_ms = 20",
            "delay_ms = 20\ndelay_steps = [{ at_s = 9, delay_ms = -7 }]",
            "link 1: delay_steps: delay_ms",
        ),
        ("until_s = 9", "until_s = 7", "link 1: outage: until_s"),
        ("from_s = 7", "from_s = nan", "link 1: outage: from_s"),
        ("packets = 50", "packets = 0", "queue.packets"),
        ("packets = 50", "packets = 1000001", "queue.packets"),
        ("packets = 50", "bytes = 1499", "queue.bytes"),
        ("packets = 50", "bytes = 1000000001", "queue.bytes"),
        ("packets = 50", "bdp = 1001", "queue.bdp"),
        ("packets = 50", "bdp = 0", "queue.bdp"),
        ("at_s = 20", "at_s = inf", "schedule: at_s"),
        ("at_s = 40", "at_s = 20", "schedule: at_s"),
        (
            "at_s = 20, rate_mbit = 5",
            "at_s = 20, rate_mbit = 0",
            "schedule: rate_mbit",
        ),
        ("flows = 2", "flows = 0", "foreground 1: flows"),
        ("flows = 2", "flows = 1001", "foreground 1: flows"),
        ("start_s = 5", "start_s = 1e30", "foreground 1: start_s"),
        ("stop_s = 50", "stop_s = 5", "foreground 1: stop_s"),
        ("stop_s = 50", "stop_s = 1e30", "foreground 1: stop_s"),
        ("stop_s = 50", "link = 2", "foreground 1: link"),
        ("on_s = 1", "on_s = 1e-12", "foreground 2: on_s"),
        ("off_s = 3", "off_s = 0", "foreground 2: off_s"),
        ("load = 0.3", "load = 11", "foreground 3: load"),
        ("mean_kb = 300", "mean_kb = 0", "foreground 3: mean_kb"),
        (
            "rate_mbit = 1,",
            "rate_mbit = 1e300,",
            "foreground 4: rate_mbit",
        ),
        (
            "packet_bytes = 1000",
            "packet_bytes = 1501",
            "foreground 4: packet_bytes",
        ),
        ("start_s = 3", "start_s = -1", "background: start_s"),
        ("size_mb = 70", "size_mb = 1e30", "background: size_mb"),
        (
            "size_mb = 70",
            "jobs = { load = 0, mean_kb = 3 }",
            "background: jobs.load",
        ),
        (
            "size_mb = 70",
            "jobs = { load = 1, mean_kb = 3, until_s = 3 }",
            "background: jobs.until_s must be later",
        ),
        (
            "size_mb = 70",
            "jobs = { load = 1, mean_kb = 3, until_s = nan }",
            "background: jobs.until_s",
        ),
        (
            "size_mb = 70",
            "size_mb = 1\njobs = { load = 1, mean_kb = 3 }",
            "size_mb or jobs",
        ),
        (
            "deadline_s = 50",
            "deadline_s = 0",
            "background: deadline_s",
        ),
        ("weight = 0.3", "weight = 0.01", "background: weight"),
        ("weight = 0.3", "weight = 1.01", "background: weight"),
        ("weight = 0.3", "weight = nan", "background: weight"),
        (
            "connections = 8",
            "connections = 0",
            "background: connections",
        ),
        (
            "server_kb_s = 300",
            "server_kb_s = 0",
            "background: server_kb_s",
        ),
        (
            "until_s = 8",
            "until_s = 1e9",
            "background: stopped: until_s",
        ),
        ("copies = 4", "copies = 0", "background: copies"),
        (
            "copies = 4",
            "transfer = [{ size_mb = 1, deadline_s = 9 }]",
            "background: it has either",
        ),
        (
            "measure_from_s = 10",
            "measure_from_s = 10\npressure_until_s = 61",
            "pressure_until_s",
        ),
        ("stagger_s = 6", "stagger_s = 1e30", "background: stagger_s"),
        (
            "copies = 4",
            "congestion_control = \"cu bic\"",
            "background: congestion_control",
        ),
        (
            "copies = 4",
            "congestion_control = \"\"",
            "background: congestion_control",
        ),
    ] {
        assert!(GOOD.contains(good), "{good}");
        let error = check(&GOOD.replacen(good, bad, 1)).expect_err(bad);
        assert!(error.contains(field), "{bad}: {error}");
    }
}

#[test]
fn every_one_of_several_transfers_is_checked() {
    let several = "transfer = [{ size_mb = 1, deadline_s = 9 }, { size_mb = 2, deadline_s = 5 }]";
    let good = GOOD.replacen("size_mb = 70\n    deadline_s = 50", several, 1);
    assert_eq!(check(&good), Ok(()));
    for (good_part, bad, field) in [
        ("size_mb = 2", "size_mb = 0", "transfer 2: size_mb"),
        (
            "deadline_s = 9",
            "deadline_s = 1e30",
            "transfer 1: deadline_s",
        ),
        (
            "copies = 4",
            "jobs = { load = 1, mean_kb = 3 }",
            "it has either",
        ),
    ] {
        assert!(good.contains(good_part), "{good_part}");
        let error = check(&good.replacen(good_part, bad, 1)).expect_err(bad);
        assert!(error.contains(field), "{bad}: {error}");
    }
}

#[test]
fn a_link_of_its_own_for_the_way_back_is_checked_as_well() {
    let text = "
        description = 'bad'
        duration_s = 60
        measure_from_s = 10
        [[link]]
        rate_mbit = 10
        delay_ms = 20
        queue = { packets = 50 }
        backward = { rate_mbit = 10, delay_ms = -1, queue = { packets = 50 } }
    ";
    let error = check(text).unwrap_err();
    assert!(error.starts_with("link 1: backward: delay_ms"), "{error}");
}
