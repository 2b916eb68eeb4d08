//! The background over IPv6.

use crate::use_alone;

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
    let contenders = ["fairbat-no-deadline", "fairbat-served", "curl", "utp"];
    use_alone(SCENARIO, contenders, 0.7);
}
