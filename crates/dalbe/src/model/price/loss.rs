//! Models of congestion controls that react to loss: the mean window, in
//! packets, at a probability of loss per packet, and its inverse.
//!
//! Reno: M. Mathis et al., "The macroscopic behavior of the TCP congestion
//! avoidance algorithm", 1997, eq. (3) without delayed acknowledgements.
//! Cubic: RFC 9438, section 5.1, which DA-LBE's fig. 3 solves for the price.
//! Neither knows time-outs, slow start or a full buffer.

use std::time::Duration;

/// Mathis et al. 1997: the window is sqrt(3/2) over the root of the loss rate.
const RENO_SQUARED: f64 = 1.5;

/// C, how fast Cubic grows, packets/s^3 (RFC 9438, section 5).
const CUBIC_GROWTH: f64 = 0.4;

/// Reno's window, sqrt(3/(2p)).
pub(super) fn reno_window(p: f64) -> f64 {
    (RENO_SQUARED / p).sqrt()
}

/// The probability of loss at which Reno has this window.
pub(super) fn reno_price(window: f64) -> f64 {
    RENO_SQUARED / (window * window)
}

/// Cubic's window, (C(3+beta)/(4(1−beta)))^(1/4) * (RTT/p)^(3/4).
pub(super) fn cubic_window(p: f64, beta: f64, rtt: Duration) -> f64 {
    cubic_factor(beta).powf(0.25) * (rtt.as_secs_f64() / p).powf(0.75)
}

/// The probability of loss at which Cubic has this window,
/// RTT/window^(4/3) * (C(3+beta)/(4(1−beta)))^(1/3).
pub(super) fn cubic_price(window: f64, beta: f64, rtt: Duration) -> f64 {
    cubic_factor(beta).cbrt() * rtt.as_secs_f64() / window.powf(4.0 / 3.0)
}

/// C(3+beta)/(4(1−beta)), packets/s^3.
fn cubic_factor(beta: f64) -> f64 {
    CUBIC_GROWTH * (3.0 + beta) / (4.0 * (1.0 - beta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_literature() {
        // RFC 9438, table 1 (RTT 0.1 s): averages of Reno and Cubic.
        let rtt = Duration::from_millis(100);
        let near = |value: f64, table: f64| {
            assert!((value / table - 1.0).abs() < 0.03, "{value} for {table}");
        };
        near(reno_window(1e-4), 120.0);
        near(reno_window(1e-6), 1200.0);
        near(cubic_window(1e-4, 0.7, rtt), 187.0);
        near(cubic_window(1e-6, 0.7, rtt), 5926.0);
    }
}
