//! Directories that are pushed to a store across the link, by the agent and by
//! rclone.

use lab_run::record::Record;

use crate::turn::shared;
use crate::{is_root, only_contender, record_of};

/// Where it happens: 4 Mbit/s of the link are somebody else's.
const LINK: &str = "
    description = 'Directories that are pushed'
    duration_s = 14
    measure_from_s = 4
    [[link]]
    rate_mbit = 10
    delay_ms = 10
    queue = { bdp = 1.0 }
    [[foreground]]
    traffic = { constant = { rate_mbit = 4 } }
    [background]
    start_s = 3
";

/// What `contender` has pushed of this; `None` where it cannot.
fn pushed(contender: &str, what: &str) -> Option<Record> {
    let record = record_of(&format!("{LINK}{what}"), contender)?;
    assert_eq!(record.failure(), None);
    Some(record)
}

#[test]
fn the_agent_pushes_jobs_in_the_order_of_their_deadlines_and_is_held_back_by_ours() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    let jobs = "transfer = [{ size_mb = 1.5, deadline_s = 10 }, { size_mb = 0.5, deadline_s = 6 }]";
    let Some(record) = pushed("agent", jobs) else {
        return;
    };
    let agent = only_contender(&record);
    let control = agent.held_by.as_deref().expect("a congestion control");
    assert!(control.starts_with("fairbat_vegas"), "{control}");
    let places: Vec<_> = agent.transfers.iter().map(|one| one.place).collect();
    assert_eq!(places, [Some(2), Some(1)], "{:?}", agent.transfers);
    assert!(agent.control.iter().any(|sample| sample.zeta.is_some()));
    let last = agent.progress.last().expect("it tells how far it is");
    assert_eq!(last.bytes.len(), 2);
    // What crossed the link is what was to be pushed, and what it takes to say so.
    let directions = record.links.iter().map(|link| &link.forward);
    let crossed: u64 = directions
        .flat_map(|direction| &direction.samples.background)
        .sum();
    assert!((2_000_000..2_600_000).contains(&crossed), "{crossed}");
}

#[test]
fn rclone_pushes_the_same_files() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    let what = "size_mb = 2\ndeadline_s = 10";
    let Some(record) = pushed("rclone-push", what) else {
        return;
    };
    let rclone = only_contender(&record);
    assert_eq!((rclone.bytes, &rclone.failure), (Some(2_000_000), &None));
    assert!(rclone.transfers[0].met == Some(true), "{rclone:?}");
}
