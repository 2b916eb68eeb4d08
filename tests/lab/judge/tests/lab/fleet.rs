//! Hosts behind one uplink that push, in the lane of their site, whatever fails there, and by
//! rclone at fixed rates.

use lab_run::record::Record;

use crate::turn::shared;
use crate::{is_root, only_contender, record_of, side_by_side};

/// Three hosts, which have some seconds to find each other.
const SITE: &str = "
    description = 'Hosts that push'
    measure_from_s = 12
    [[link]]
    rate_mbit = 10
    delay_ms = 10
    queue = { bdp = 1.0 }
    [background]
    start_s = 12
";

/// Transfers that are soon there.
const SHORT: &str = "
    transfer = [
        { size_mb = 1.5, deadline_s = 20 },
        { size_mb = 0.5, deadline_s = 14 },
        { size_mb = 0.5, deadline_s = 24 },
    ]
";

/// Transfers that are under way when something fails for the first time, 14 s after the start.
const LONG: &str = "
    transfer = [
        { size_mb = 8, deadline_s = 40 },
        { size_mb = 8, deadline_s = 50 },
        { size_mb = 8, deadline_s = 60 },
    ]
";

/// What `contender` has pushed of this, within so many seconds; `None` where it cannot.
fn pushed(contender: &str, what: &str, duration_s: u32) -> Option<Record> {
    let scenario = format!("duration_s = {duration_s}\n{SITE}{what}");
    Some(all_is_there(record_of(&scenario, contender)?))
}

/// The same record, of a run that has pushed everything.
fn all_is_there(record: Record) -> Record {
    assert_eq!(record.failure(), None);
    let all = &only_contender(&record).transfers;
    assert!(all.iter().all(|one| one.done.is_some()), "{all:?}");
    // It is the background, and nobody else, that crosses the link.
    let bytes: u64 = all.iter().map(|one| one.bytes).sum();
    let directions = record.links.iter().map(|link| &link.forward);
    let crossed: u64 = directions
        .flat_map(|direction| &direction.samples.background)
        .sum();
    assert!((bytes..2 * bytes).contains(&crossed), "{crossed}");
    record
}

#[test]
fn hosts_in_one_lane_push_in_the_order_of_their_deadlines() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    let Some(record) = pushed("fleet", SHORT, 40) else {
        return;
    };
    let fleet = only_contender(&record);
    let control = fleet.held_by.as_deref().expect("a congestion control");
    assert!(control.starts_with("fairbat_vegas"), "{control}");
    assert_eq!(fleet.transfers[1].place, Some(1), "{:?}", fleet.transfers);
    let last = fleet.progress.last().expect("they tell how far they are");
    assert_eq!(last.bytes.len(), 3);
    assert!(fleet.faults.is_empty());
}

#[test]
fn hosts_push_whatever_fails() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    let scenario = format!("duration_s = 70\n{SITE}{LONG}");
    let contenders = [
        "fleet-coordinator-killed",
        "fleet-nats-killed",
        "fleet-partitioned",
    ];
    let records = side_by_side(contenders.map(|contender| (&scenario[..], contender)));
    for (contender, record) in contenders.into_iter().zip(records) {
        let Some(record) = record.map(all_is_there) else {
            continue;
        };
        let faults = &only_contender(&record).faults;
        assert!(!faults.is_empty(), "{contender}");
    }
}

#[test]
fn hosts_push_by_rclone() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    if let Some(record) = pushed("rclone-static", SHORT, 40) {
        assert_eq!(only_contender(&record).bytes, Some(2_500_000));
    }
}
