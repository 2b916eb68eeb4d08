//! The background over IPv6.

use crate::uses;

const SCENARIO: &str = "
    description = 'Alone on the link, over IPv6'
    duration_s = 12
    measure_from_s = 5
    [[link]]
    rate_mbit = 10
    delay_ms = 10
    queue = { bdp = 1.0 }
    [background]
    ipv6 = true
";

#[test]
fn downloads_and_utp_use_the_link_over_ipv6() {
    for contender in ["fairbat-no-deadline", "fairbat-served", "curl", "utp"] {
        uses(SCENARIO, contender, 0.7);
    }
}
