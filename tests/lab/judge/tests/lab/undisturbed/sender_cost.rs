//! What congestion controls of ours cost, as far as that it is measured: how
//! much it is depends on what else the machine does.

use std::fs;

use lab::sender_cost::{Packets, Record};

use crate::turn::alone;
use crate::{expect_success, is_root, lab, was_possible};

#[test]
fn the_cost_of_all_laws_is_measured() {
    if !is_root() {
        return;
    }
    let _turn = alone();
    let directory = tempfile::tempdir().expect("a temp dir");
    let output = lab(&["sender-cost", "--quick", "--output"])
        .arg(directory.path())
        .output()
        .expect("start lab");
    if !was_possible(&output) {
        return;
    }
    expect_success(&output);
    let bytes = fs::read(directory.path().join("sender-cost.json")).expect("read the record");
    let record: Record = serde_json::from_slice(&bytes).expect("a record");
    let page = fs::read_to_string(directory.path().join("sender-cost.md")).expect("read the page");
    for packets in Packets::ALL {
        for (contender, title) in [
            ("sender-vegas", "Vegas"),
            ("sender-cdg", "CDG"),
            ("sender-cubic-phantom", "CUBIC with phantom signals"),
        ] {
            for w in [0.02, 1.0] {
                let mut all = record.summary.iter();
                let found = all.find(|one| {
                    let who = (one.packets, one.contender.as_str(), one.weight);
                    who == (packets, contender, Some(w))
                });
                let one = found.unwrap_or_else(|| panic!("no {contender}, {w}: {record:?}"));
                for figure in [one.machine, one.machine_ratio, one.threads_ratio] {
                    let median = figure.map(|it| it.median);
                    assert!(median.is_some_and(|it| it > 0.0), "{one:?}");
                }
                assert!(page.contains(&format!("| {title} | {w} | ")), "{page}");
            }
        }
    }
    each_transfer_is_what_it_says(&record);
}

fn each_transfer_is_what_it_says(record: &Record) {
    for run in &record.runs {
        let transfer = &run.transfer;
        // A packet that was sent again in vain counts twice.
        let packets = [transfer.packets, transfer.packets - transfer.repeated];
        let [at_least, at_most] = packets.map(|packets| transfer.bytes as f64 / packets as f64);
        let (least, most) = match run.packets {
            Packets::Large => (40_000.0, 65_536.0),
            Packets::Small => (1_400.0, 1_460.0),
        };
        assert!(at_most >= least && at_least < most, "{run:?}");
        assert!(transfer.acknowledgements > 0, "{run:?}");
        assert!(transfer.sender_s > 0.0, "{run:?}");
        assert!(transfer.receiver_s > 0.0, "{run:?}");
    }
    let is_reno = |name: &str| name == "sender-kernel-reno";
    let renos = record.runs.iter().filter(|run| is_reno(&run.contender));
    // Around each of ours, in both kinds of packets.
    assert_eq!(renos.count(), record.runs.len() / 2 + 1);
}
