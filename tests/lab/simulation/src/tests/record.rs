//! Simulations as records of runs.

use std::path::PathBuf;
use std::time::Duration;

use dalbe::ebpf::CongestionLaw;

use super::{GREEDY, scenario};
use crate::{check, record};
use lab_run::contender::{Contender, Sending};
use lab_run::record::Record;
use lab_run::run::Plan;
use lab_run::scenario::Scenario;

fn recorded(scenario: Scenario, law: CongestionLaw, seed: u64) -> Record {
    let plan = Plan {
        name: "test".to_owned(),
        scenario,
        quick: false,
        seed,
        contender: Contender::Sender(Sending::Law(law)),
        sampling: Duration::from_millis(100),
        command: "lab run --simulate test".to_owned(),
        side_by_side: "1 lab".to_owned(),
        work: PathBuf::new(),
    };
    record(&plan).unwrap()
}

#[test]
fn a_transfer_with_a_deadline_is_steered_to_it() {
    let due =
        format!("{GREEDY}[background]\nsize_mb = 8.0\ndeadline_s = 60.0\ncontroller = \"mbc\"\n");
    let record = recorded(scenario(80.0, &due), CongestionLaw::CubicPhantom, 1);
    let background = &record.background[0];
    assert_eq!(background.received.last(), Some(&8_000_000));
    let done = background.transfers[0].done.unwrap();
    assert!((40.0..75.0).contains(&done), "{done}");
    let weights: Vec<f64> = background.sender.iter().map(|sample| sample.w).collect();
    let between = |w: &f64| *w > 0.03 && *w < 0.9;
    assert!(weights.iter().any(between), "{weights:?}");
    assert!(background.sender.iter().any(|sample| sample.phantoms > 0));
    let figures = record.summary;
    assert!(figures.deadline.unwrap().is_done);
    assert_eq!(figures.beside.unwrap().flows[0].name, "greedy 1");
    assert!(!figures.course.unwrap().w.is_empty());
}

#[test]
fn every_flow_is_recorded_as_its_own() {
    let scenario = scenario(
        20.0,
        "[[foreground]]
        traffic = { greedy = { flows = 2 } }
        stop_s = 12.0
        [[foreground]]
        traffic = { udp = { rate_mbit = 1.0 } }
        [[foreground]]
        traffic = { greedy = {} }
        backward = true
        [[foreground]]
        traffic = { web = { load = 0.1, mean_kb = 30.0 } }
        [[foreground]]
        traffic = { greedy = {} }
        start_s = 14.0
        [background]
        weight = 0.5
        connections = 2
        start_s = 3.0
        stagger_s = 4.0
        ",
    );
    let record = recorded(scenario, CongestionLaw::Vegas, 1);
    let names: Vec<_> = record.flows.iter().map(|flow| flow.name.as_str()).collect();
    let expected = [
        "greedy 1",
        "greedy 2",
        "udp",
        "backward greedy 1",
        "web",
        "greedy 3",
    ];
    assert_eq!(names, expected);
    // What a receiver got within these seconds, kB.
    let within = |received: &[u64], from: usize, until: usize| {
        let by = |s: usize| if s == 0 { 0 } else { received[10 * s - 1] };
        (by(until) - by(from)) / 1000
    };
    for flow in &record.flows {
        // Element i is the moment (i + 1) * 0.1.
        assert_eq!(flow.received.len(), 200, "{}", flow.name);
        assert!(flow.received.is_sorted(), "{}", flow.name);
    }
    let of = |index: usize, from, until| within(&record.flows[index].received, from, until);
    assert!(of(0, 0, 13) > 2000 && of(1, 0, 13) > 2000);
    assert_eq!((of(0, 14, 20), of(1, 14, 20)), (0, 0));
    // 28 bytes of each packet of 1500 are headers, and some packets are lost.
    assert!((1900..2480).contains(&of(2, 0, 20)), "{}", of(2, 0, 20));
    assert!(record.flows[3].backward && of(3, 0, 20) > 5000);
    let fetched: u64 = record.fetches.iter().map(|fetch| fetch.bytes / 1000).sum();
    assert!((500..=fetched).contains(&of(4, 0, 20)), "{}", of(4, 0, 20));
    assert!(of(5, 0, 14) == 0 && of(5, 14, 20) > 500);
    let [first, second] = &record.background[..] else {
        panic!("two connections");
    };
    for (one, start) in [(first, 3), (second, 7)] {
        assert_eq!(within(&one.received, 0, start), 0, "{start}");
        assert!(within(&one.received, start, 20) > 500, "{start}");
        let began = one.began.unwrap() - start as f64;
        assert!((0.0..=0.1).contains(&began), "{start}: {began}");
        assert!(one.sender.len() > 10, "{start}");
    }
    let figures = record.summary;
    assert_eq!(figures.connections.len(), 2);
    assert!(figures.connections[1].short_flow_s.unwrap() > 0.1);
}

#[test]
fn the_same_seed_records_the_same() {
    let steps = "[background]\nweight = 0.1\nweights = [{ at_s = 8.0, weight = 1.0 }]\n";
    let text = format!("{GREEDY}{steps}");
    let run = |seed| recorded(scenario(16.0, &text), CongestionLaw::Vegas, seed);
    let (one, same, other) = (run(1), run(1), run(2));
    assert_eq!(one.background, same.background);
    assert_ne!(one.background, other.background);
    let weights = one.background[0].sender.iter().map(|it| (it.t, it.w));
    let (before, after): (Vec<_>, Vec<_>) = weights.partition(|(t, _)| *t < 8.0);
    assert!(
        before.len() >= 4 && before.iter().all(|(_, w)| *w == 0.1),
        "{before:?}"
    );
    assert!(
        after.len() >= 6 && after.iter().all(|(_, w)| *w == 1.0),
        "{after:?}"
    );
}

#[test]
fn what_would_lack_something_is_no_record() {
    let refused = |text: &str, contender: &str| {
        let error = check(&scenario(20.0, text), contender.parse().unwrap());
        error.unwrap_err().to_string()
    };
    assert!(refused(GREEDY, "curl").contains("no record of contender curl"));
    let call = "[[foreground]]\ntraffic = { call = {} }\n";
    assert!(refused(call, "sender-vegas").contains("no record of calls"));
    let jobs = "[background]\njobs = { load = 0.1, mean_kb = 30.0 }\n";
    assert!(refused(jobs, "none").contains("no jobs"));
}
