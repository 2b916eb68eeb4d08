//! A download over a link that carries packets in bursts, as Wi-Fi does.

use crate::{is_root, lab_with, recorded, shared, while_the_machine_runs};

/// Nobody else is there.
const ALONE: &str = "
    description = 'A download over a link that carries packets in bursts'
    duration_s = 42
    measure_from_s = 20
    [[link]]
    rate_mbit = 10
    delay_ms = 25
    aggregate_ms = 8
    queue = { bdp = 1.0 }
    [background]
    start_s = 2
";

#[test]
fn packets_that_wait_for_their_burst_do_not_hold_a_download_back() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    while_the_machine_runs(|| {
        let directory = tempfile::tempdir().expect("a temp dir");
        let lab = lab_with(ALONE, "fairbat-no-deadline", directory.path());
        let Some(record) = recorded(lab, directory.path()) else {
            return;
        };
        // It was a twentieth by chance when they did.
        let used = record.summary.utilisation;
        assert!(
            used > 0.8,
            "it used {used} of the link: {:?}",
            record.summary
        );
    });
}
