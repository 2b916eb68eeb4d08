//! Senders of the lab's with congestion controls of ours.

use lab_run::record::Record;

use crate::turn::shared;
use crate::{
    expect_success, is_root, lab_with, record_in, record_of, was_possible, while_the_machine_runs,
};

/// Beside a greedy flow, with the weight of one for 8 s and the least then.
const SCENARIO: &str = "
    description = 'A weight that falls'
    duration_s = 18
    measure_from_s = 4
    [[link]]
    rate_mbit = 10
    delay_ms = 20
    queue = { bdp = 1.0 }
    [[foreground]]
    traffic = { greedy = {} }
    [background]
    start_s = 2
    weight = 1
    weights = [{ at_s = 10, weight = 0.02 }]
";

#[test]
fn a_weight_that_falls_gives_the_link_to_others() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    let runs = ["sender-vegas", "sender-cubic-phantom"].map(|contender| {
        let directory = tempfile::tempdir().expect("a temp dir");
        let run = lab_with(SCENARIO, contender, directory.path()).spawn();
        (contender, directory, run.expect("start lab"))
    });
    // All have ended before one is judged.
    let ended = runs.map(|(contender, directory, run)| {
        let output = run.wait_with_output().expect("wait for lab");
        (contender, directory, output)
    });
    for (contender, directory, output) in ended {
        // Some kernels take no congestion controls of ours.
        if was_possible(&output) {
            expect_success(&output);
            gives_the_link_to_others(contender, &record_in(directory.path()));
        }
    }
}

/// Two connections to one host, alone on the link.
const BY_PRIORITY: &str = "
    description = 'Connections with priorities'
    duration_s = 24
    measure_from_s = 6
    [[link]]
    rate_mbit = 20
    delay_ms = 20
    queue = { bdp = 1.0 }
    [background]
    connections = 2
    priorities = [3, 1]
";

#[test]
fn connections_to_one_host_share_by_their_priorities() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    while_the_machine_runs(|| {
        if let Some(record) = record_of(BY_PRIORITY, "sender-vegas") {
            shares_by_priority(&record);
        }
    });
}

fn shares_by_priority(record: &Record) {
    // Payload from 6 to 24 s, by intervals of 100 ms.
    let got = record.background.iter().map(|one| {
        let last = one.received.last().copied().unwrap_or_default();
        (last - one.received[59]) as f64
    });
    let got: Vec<f64> = got.collect();
    assert_eq!(got.len(), 2, "{got:?}");
    let ratio = got[0] / got[1];
    println!("priorities 3 and 1: {got:?}, {ratio:.2}");
    assert!((2.7..3.3).contains(&ratio), "{got:?}");
    // They fill the link.
    assert!(got.iter().sum::<f64>() > 0.9 * 2.4e6 * 18.0, "{got:?}");
}

fn gives_the_link_to_others(contender: &str, record: &Record) {
    let samples = record.sender();
    assert!(samples.len() > 10, "{samples:?}");
    let rate = |from: f64, until: f64| {
        let within = samples.iter().filter(|one| (from..until).contains(&one.t));
        let rates: Vec<f64> = within.map(|one| one.rate).collect();
        rates.iter().sum::<f64>() / rates.len() as f64
    };
    let before = rate(5.0, 10.0);
    let after = if contender == "sender-cubic-phantom" {
        // The paper stops phantom signals three mean times between losses after the last
        // one, so this law grows again until its next loss: some seconds only are slow.
        let mut yielding = samples.iter().filter(|one| one.t > 11.0);
        assert!(yielding.all(|one| one.phantoms > 0), "{samples:?}");
        let rates = (11..17).map(|second| rate(f64::from(second), f64::from(second + 2)));
        rates.fold(f64::INFINITY, f64::min)
    } else {
        rate(14.0, 18.0)
    };
    assert!(after < before / 2.0, "{contender}: {before}, {after}");
    for one in samples {
        assert_eq!(one.w, if one.t < 10.0 { 1.0 } else { 0.02 }, "{one:?}");
        assert!(one.cwnd > 0 && one.is_yielding.is_some(), "{one:?}");
    }
    // The path takes 40 ms, and a packet 1 ms.
    let base = samples.last().map(|one| one.base_rtt_ms);
    assert!(base.is_some_and(|base| base > 39.0), "{base:?}");
    let beside = record.summary.beside.as_ref().expect("it is a sender");
    assert_eq!((beside.flows.len(), beside.acted_s.len()), (1, 1));
}
