//! Marks (ECN) in place of losses.

use crate::turn::shared;
use crate::{expect_success, is_root, lab_with, record_in};

#[test]
fn tcp_asks_for_marks_where_a_link_gives_them() {
    const SCENARIO: &str = "
        description = 'One greedy CUBIC flow over CoDel with ECN'
        duration_s = 8
        measure_from_s = 3
        [[link]]
        rate_mbit = 10
        delay_ms = 20
        queue = { packets = 200 }
        discipline = 'codel'
        ecn = true
        [[foreground]]
        traffic = { greedy = {} }
    ";
    if !is_root() {
        return;
    }
    let _turn = shared();
    let directory = tempfile::tempdir().expect("a temp dir");
    let output = lab_with(SCENARIO, "none", directory.path()).output();
    expect_success(&output.expect("start lab"));
    let counters = record_in(directory.path()).links[0].forward.counters;
    assert!(counters.marked > 0, "{counters:?}");
    // All data may be marked, but not what TCP opens and closes a connection with, or
    // sends again (RFC 3168, section 6.1): one or two of these may meet the control law.
    let dropped = counters.aqm_dropped;
    assert!(4 * dropped <= counters.marked, "{counters:?}");
}
