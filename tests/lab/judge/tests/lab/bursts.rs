//! A download over a link that carries packets in bursts, as Wi-Fi does.

use crate::use_alone;

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
    // It was a twentieth by chance when they did.
    use_alone(ALONE, ["fairbat-no-deadline"], 0.8);
}
