//! Control samples that were recorded from an earlier version. The same inputs
//! must give the same samples, to the last bit.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use jiff::SignedDuration;

use crate::clock::SCRIPTED;

/// Compares `text` with the recorded file of this name. With `FAIRBAT_RECORD`
/// set, records it.
pub(crate) fn expect_recorded(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    if std::env::var_os("FAIRBAT_RECORD").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap();
    for (number, (line, expected)) in text.lines().zip(recorded.lines()).enumerate() {
        assert_eq!(line, expected, "{name}, line {}", number + 1);
    }
    assert_eq!(text.lines().count(), recorded.lines().count(), "{name}");
}

/// One line of numbers, each written so that it is read back to the bit.
pub(crate) fn line(out: &mut String, numbers: &[f64]) {
    for (index, number) in numbers.iter().enumerate() {
        let space = if index > 0 { " " } else { "" };
        write!(out, "{space}{number}").unwrap();
    }
    out.push('\n');
}

/// Sets the clocks of this thread.
pub(crate) fn set_clock(time: Duration, drift: SignedDuration) {
    SCRIPTED.set(Some((time, drift)));
}

/// Numbers that look random and are the same each time (Knuth's MMIX generator).
pub(crate) struct Script(u64);

impl Script {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 0 up to `bound`, without it.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }
}
