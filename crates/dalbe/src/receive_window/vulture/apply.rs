//! Vulture's algorithm 5: a decision is carried out bit by bit, by as much
//! as each acknowledgement acknowledges. So a window that has been offered
//! is not withdrawn (RFC 9293 section 3.8.6), and a sender gets no sudden
//! leave for a burst.

use super::decide::WindowPolicy;

/// A decision under way. Windows in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Application {
    policy: WindowPolicy,
    /// Where it ends.
    target: f64,
}

impl Application {
    /// Nothing is under way.
    pub(super) fn none() -> Self {
        Self {
            policy: WindowPolicy::Fix,
            target: 0.0,
        }
    }

    /// Begins at the window `rwnd`, with segments of this size; does not go
    /// below `floor`.
    pub(super) fn of(policy: WindowPolicy, rwnd: f64, segment: f64, floor: f64) -> Self {
        let target = match policy {
            WindowPolicy::Double => 2.0 * rwnd,
            WindowPolicy::Increase => rwnd + segment,
            WindowPolicy::Halve => (rwnd / 2.0).max(floor),
            WindowPolicy::Fix => rwnd,
        };
        Self { policy, target }
    }

    /// What is under way.
    pub(super) fn policy(&self) -> WindowPolicy {
        self.policy
    }

    /// The window after so many more bytes have been acknowledged.
    pub(super) fn acknowledged(&self, rwnd: f64, bytes: u64) -> f64 {
        if bytes == 0 {
            return rwnd;
        }
        let bytes = bytes as f64;
        match self.policy {
            WindowPolicy::Double => (rwnd + bytes).min(self.target).max(rwnd),
            // At once, with the first acknowledgement.
            WindowPolicy::Increase => self.target.max(rwnd),
            WindowPolicy::Halve => (rwnd - bytes).max(self.target).min(rwnd),
            WindowPolicy::Fix => rwnd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: f64 = 1000.0;

    /// The windows as 3000 bytes at a time are acknowledged.
    fn windows(policy: WindowPolicy, rwnd: f64) -> Vec<f64> {
        let application = Application::of(policy, rwnd, SEGMENT, 2.0 * SEGMENT);
        let mut window = rwnd;
        let step = |_| {
            window = application.acknowledged(window, 3000);
            window
        };
        (0..5).map(step).collect()
    }

    #[test]
    fn each_policy_ends_where_it_should() {
        let windows = |policy| windows(policy, 10_000.0);
        let doubled = [13_000.0, 16_000.0, 19_000.0, 20_000.0, 20_000.0];
        assert_eq!(windows(WindowPolicy::Double), doubled);
        assert_eq!(windows(WindowPolicy::Increase), [11_000.0; 5]);
        let halved = [7_000.0, 5_000.0, 5_000.0, 5_000.0, 5_000.0];
        assert_eq!(windows(WindowPolicy::Halve), halved);
        assert_eq!(windows(WindowPolicy::Fix), [10_000.0; 5]);
    }

    #[test]
    fn two_segments_stay() {
        assert_eq!(windows(WindowPolicy::Halve, 3000.0), [2000.0; 5]);
        assert_eq!(windows(WindowPolicy::Halve, 1500.0), [1500.0; 5]);
    }

    #[test]
    fn without_acknowledgements_nothing_changes() {
        for policy in [
            WindowPolicy::Double,
            WindowPolicy::Increase,
            WindowPolicy::Halve,
            WindowPolicy::Fix,
        ] {
            let application = Application::of(policy, 9000.0, SEGMENT, 2.0 * SEGMENT);
            assert_eq!(application.acknowledged(9000.0, 0), 9000.0, "{policy:?}");
        }
    }
}
