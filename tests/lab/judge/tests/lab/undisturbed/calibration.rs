//! Acceptance of the link.

use crate::turn::alone;
use crate::{expect_success, is_root, lab, was_possible};

#[test]
fn the_link_is_what_theory_says() {
    if !is_root() {
        return;
    }
    let _turn = alone();
    let output = lab(&["calibrate"]).output().expect("start lab");
    if !was_possible(&output) {
        return;
    }
    let stdout = expect_success(&output);
    // Something was compared, and printed.
    assert!(stdout.matches(" ok\n").count() >= 70, "{stdout}");
}
