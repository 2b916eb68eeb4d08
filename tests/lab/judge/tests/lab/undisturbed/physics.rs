//! What is known of TCP comes out.

use std::path::Path;
use std::process::Child;

use lab_run::record::Record;
use lab_run::statistics::jain;

use crate::turn::alone;
use crate::{expect_success, is_root, lab, record_in, while_the_machine_runs};

/// Payload of a link of 10 Mbit/s, in full packets with timestamps.
const PAYLOAD_MBIT: f64 = 10.0 * 1448.0 / 1500.0;

/// Round-trip time of the scenarios without a queue, ms.
const BASE_RTT: f64 = 40.0;

/// How long their queue is when full: 33 packets of 1.2 ms.
const FULL_QUEUE: f64 = 33.0 * 1.2;

fn start(scenario: &str, output: &Path) -> Child {
    let directory = output.to_str().expect("a path in UTF-8");
    lab(&["run", scenario, "--contender", "none", "--seed", "1"])
        .args(["--output", directory])
        .spawn()
        .expect("start lab")
}

/// Runs them side by side.
fn run<const N: usize>(scenarios: [&str; N]) -> [Record; N] {
    let directories = scenarios.map(|_| tempfile::tempdir().expect("a temp dir"));
    let mut running: Vec<_> = scenarios
        .iter()
        .zip(&directories)
        .map(|(scenario, directory)| start(scenario, directory.path()))
        .collect();
    directories.map(|directory| {
        let output = running.remove(0).wait_with_output().expect("wait for lab");
        expect_success(&output);
        record_in(directory.path())
    })
}

#[test]
fn tcp_behaves_as_known() {
    if !is_root() {
        return;
    }
    let _turn = alone();
    while_the_machine_runs(|| {
        let [one, two, constant] = run(["physics-one", "physics-two", "physics-constant"]);
        one_flow_fills_the_link_and_the_queue(&one);
        two_flows_share(&two);
        a_live_stream_sees_no_queue(&constant);
    });
}

fn one_flow_fills_the_link_and_the_queue(record: &Record) {
    let goodput = record.summary.foreground_mbit[0];
    assert!(
        (0.95 * PAYLOAD_MBIT..=PAYLOAD_MBIT * 1.005).contains(&goodput),
        "{goodput} Mbit/s"
    );
    // CUBIC fills the queue, and takes away three tenths of its window.
    let median = record.summary.rtt_median_ms.expect("probes came back");
    let high = record.summary.rtt_p95_ms.expect("probes came back");
    let full = BASE_RTT + FULL_QUEUE;
    assert!(median > BASE_RTT + 0.4 * FULL_QUEUE, "median {median} ms");
    assert!((full - 6.0..full + 2.0).contains(&high), "95 % {high} ms");
    let forward = &record.links[0].forward;
    assert!(forward.counters.dropped > 0, "a full queue drops");
    let longest = forward.samples.queue_packets.iter().max();
    assert_eq!(longest, Some(&33), "the queue is as long as it may be");
}

fn two_flows_share(record: &Record) {
    let flows = &record.summary.foreground_mbit;
    assert_eq!(flows.len(), 2);
    let index = jain(flows).expect("there are flows");
    assert!(index >= 0.95, "Jain's index {index} of {flows:?}");
    let sum: f64 = flows.iter().sum();
    assert!(sum > 0.95 * PAYLOAD_MBIT, "{sum} Mbit/s");
}

fn a_live_stream_sees_no_queue(record: &Record) {
    let goodput = record.summary.foreground_mbit[0];
    assert!((5.94..6.06).contains(&goodput), "{goodput} Mbit/s");
    // At most a packet of its own is in the way: 1.2 ms.
    let median = record.summary.rtt_median_ms.expect("probes came back");
    let high = record.summary.rtt_p95_ms.expect("probes came back");
    assert!((BASE_RTT..BASE_RTT + 1.6).contains(&median), "{median} ms");
    assert!(high < BASE_RTT + 4.0, "95 % {high} ms");
    assert_eq!(record.links[0].forward.counters.dropped, 0);
}
