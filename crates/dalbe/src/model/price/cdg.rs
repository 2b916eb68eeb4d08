//! CDG's share beside CUBIC as a function of its back-off scale G and the base
//! RTT, and G as a function of w.
//!
//! The price view: CDG backs off with the probability P = 1 − exp(−g/G) at a
//! delay gradient g (Tangenes et al. 2017, eq. 5); for g << G that is g/G, so
//! dividing G by k multiplies the price by k, and inflating it by 1/w
//! (DA-LBE, Hayes et al. 2017, eq. 5) is
//!
//! ```text
//! G(w) = w * G_be
//! ```
//!
//! with G_be the value at which CDG brakes as little as it can. What share of
//! the capacity that gives is an empirical law, a sigmoid in ln G between two
//! shares that fall with the base RTT R (ms), around a G_half that rises:
//!
//! ```text
//! share = lo + (hi − lo) * x/(1 + x)     x = (G / G_half)^1.13
//! lo = 0.159 / (1 + (R/37.7)^1.30)       small G: backs off on any growth
//! hi = 0.5   / (1 + (R/212)^1.83)        large G: Reno's growth, which is
//! G_half = 19.4 ms * (R/100)^1.26        slower than CUBIC's on long paths
//! ```
//!
//! MinFilter squares of the relative error over 38 shares of two CDG flows
//! against two CUBIC flows, 10 Mbit/s, one bandwidth-delay product of buffer:
//! 24 measured at R = 20 to 200 ms, and the 14 ends of the tuning ranges in
//! Table I of the paper, R = 20 to 300 ms, G from 0.1 to 120 ms. Its root mean
//! square is 10 % of the share, at most 21 % (both at the low end, where the
//! two sources differ by 30 % from each other); absolutely at most 4.4 points
//! of 100. It says nothing of other buffers, other numbers of flows, or
//! variants of CDG, and is the share of flows in the same number as their
//! competitors.

use std::time::Duration;

/// The largest G that changed anything in the paper, ms.
const G_MOST: f64 = 120.0;

/// Base RTT at which the parameters that scale are given, ms.
const R_0: f64 = 100.0;
/// G_half at R_0, ms (fit).
const G_HALF: f64 = 19.4;
/// How G_half grows with the base RTT (fit).
const G_HALF_POWER: f64 = 1.26;
/// Steepness in ln G (fit).
const STEEPNESS: f64 = 1.13;

/// The largest share, with a base RTT of 0: an even one.
const HI: f64 = 0.5;
/// Base RTT at which it is half of that, ms (fit).
const HI_R: f64 = 212.0;
/// How it falls (fit).
const HI_POWER: f64 = 1.83;

/// The smallest share, with a base RTT of 0 (fit).
const LO: f64 = 0.159;
/// Base RTT at which it is half of that, ms (fit).
const LO_R: f64 = 37.7;
/// How it falls (fit).
const LO_POWER: f64 = 1.30;

/// G in ms for the weight `w` in [0, 1] on a path of this base RTT; rises
/// with both, up to 120 ms.
///
/// G_be is 6.2 times G_half, 120 ms at a base RTT of 100 ms: there CDG has
/// 89 % of the way from its smallest share to its largest.
#[must_use]
pub fn cdg_scale(w: f64, base_rtt: Duration) -> f64 {
    w * best_effort_scale(millis(base_rtt))
}

/// The share of the capacity, 0 to 0.5, that CDG has with the scale `g` in ms
/// beside as many CUBIC flows; rises with `g`, falls with the base RTT.
#[must_use]
pub fn cdg_share(g: f64, base_rtt: Duration) -> f64 {
    let r = millis(base_rtt);
    let (lo, hi) = bounds(r);
    // In this form infinity is defined.
    lo + (hi - lo) / (1.0 + (g / half_scale(r)).powf(-STEEPNESS))
}

/// The share at the weight `w`, of any size.
pub(super) fn share_of_weight(w: f64, base_rtt: Duration) -> f64 {
    cdg_share(cdg_scale(w, base_rtt), base_rtt)
}

/// The weight that gives this share: 0 if any weight gives more, infinite if
/// none gives as much.
pub(super) fn weight(share: f64, base_rtt: Duration) -> f64 {
    let r = millis(base_rtt);
    let (lo, hi) = bounds(r);
    if share <= lo {
        0.0
    } else if share >= hi {
        f64::INFINITY
    } else {
        let x = (share - lo) / (hi - share);
        half_scale(r) * x.powf(1.0 / STEEPNESS) / best_effort_scale(r)
    }
}

/// The smallest share and the largest at the base RTT `r`, ms.
fn bounds(r: f64) -> (f64, f64) {
    (
        LO / (1.0 + (r / LO_R).powf(LO_POWER)),
        HI / (1.0 + (r / HI_R).powf(HI_POWER)),
    )
}

/// G_half at the base RTT `r`, both in ms.
fn half_scale(r: f64) -> f64 {
    G_HALF * (r / R_0).powf(G_HALF_POWER)
}

/// G_be at the base RTT `r`, both in ms.
fn best_effort_scale(r: f64) -> f64 {
    (G_MOST * (r / R_0).powf(G_HALF_POWER)).min(G_MOST)
}

/// Below a tenth of a millisecond nothing is known, and 0 has no scale.
fn millis(base_rtt: Duration) -> f64 {
    (base_rtt.as_secs_f64() * 1e3).max(0.1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Base RTT, ms, and G, ms, and aggregate share of two CDG flows, per
    /// cent: means of two runs of the last 60 of 100 s against two CUBIC
    /// flows, 10 Mbit/s, one bandwidth-delay product of queue.
    const MEASURED: [(u64, [(f64, f64); 6]); 4] = [
        (
            20,
            [
                (0.1, 13.95),
                (0.5, 15.8),
                (2.0, 23.2),
                (6.0, 35.95),
                (20.0, 47.35),
                (120.0, 48.7),
            ],
        ),
        (
            50,
            [
                (0.1, 7.85),
                (0.5, 9.1),
                (2.0, 15.05),
                (6.0, 24.7),
                (20.0, 40.35),
                (120.0, 42.2),
            ],
        ),
        (
            100,
            [
                (0.1, 3.85),
                (0.5, 4.15),
                (2.0, 6.05),
                (6.0, 12.65),
                (20.0, 21.25),
                (120.0, 31.75),
            ],
        ),
        (
            200,
            [
                (0.1, 2.1),
                (0.5, 1.9),
                (2.0, 2.4),
                (6.0, 3.3),
                (20.0, 7.85),
                (120.0, 20.25),
            ],
        ),
    ];

    /// Table I of the paper: base RTT, ms, and the ends of the tuning range,
    /// per cent, which belong to G = 0.1 ms and 120 ms.
    const PAPER: [(u64, f64, f64); 7] = [
        (20, 10.3, 49.0),
        (50, 6.7, 49.0),
        (75, 4.05, 44.5),
        (100, 3.0, 37.3),
        (150, 2.0, 26.3),
        (200, 1.5, 19.6),
        (300, 1.0, 12.3),
    ];

    /// Prints what the law is off by; returns the root mean square and the
    /// largest relative error, and the largest absolute one in points.
    fn errors(title: &str, shares: &[(u64, f64, f64)]) -> (f64, f64, f64) {
        let (mut squares, mut relative, mut absolute) = (0.0, 0.0_f64, 0.0_f64);
        for &(rtt, g, share) in shares {
            let fit = 100.0 * cdg_share(g, Duration::from_millis(rtt));
            let off = fit / share - 1.0;
            println!(
                "{title}: {rtt} ms, G {g} ms: {share} %, fit {fit:.2} % ({:+.0} %)",
                off * 100.0
            );
            squares += off * off;
            relative = relative.max(off.abs());
            absolute = absolute.max((fit - share).abs());
        }
        let rms = (squares / shares.len() as f64).sqrt();
        println!("{title}: rms {rms:.3}, at most {relative:.3}, {absolute:.2} points");
        (rms, relative, absolute)
    }

    #[test]
    fn the_fit_is_as_good_as_it_says_for_both_tables() {
        let measured: Vec<_> = MEASURED
            .iter()
            .flat_map(|(rtt, row)| row.iter().map(|&(g, share)| (*rtt, g, share)))
            .collect();
        let paper: Vec<_> = PAPER
            .iter()
            .flat_map(|&(rtt, least, most)| [(rtt, 0.1, least), (rtt, 120.0, most)])
            .collect();
        for (title, shares) in [("measured", measured), ("paper", paper)] {
            let (rms, relative, absolute) = errors(title, &shares);
            assert!(rms < 0.11, "{title}: {rms}");
            assert!(relative < 0.22, "{title}: {relative}");
            assert!(absolute < 4.5, "{title}: {absolute}");
        }
    }

    #[test]
    fn g_spans_what_is_useful_on_each_path() {
        let g = |w, rtt| cdg_scale(w, Duration::from_millis(rtt));
        assert_eq!(g(1.0, 100), 120.0);
        assert_eq!(g(1.0, 300), 120.0);
        assert!((15.0..20.0).contains(&g(1.0, 20)), "{}", g(1.0, 20));
        assert!((0.1..0.2).contains(&g(0.01, 20)), "{}", g(0.01, 20));
    }

    proptest! {
        #[test]
        fn the_law_is_monotone(
            g in 0.01_f64..200.0,
            more in 1.0_f64..10.0,
            rtt in 1_u64..1000,
            longer in 0_u64..1000,
        ) {
            let (near, far) = (Duration::from_millis(rtt), Duration::from_millis(rtt + longer));
            let share = cdg_share(g, near);
            prop_assert!((0.0..=0.5).contains(&share));
            prop_assert!(cdg_share(g * more, near) >= share);
            prop_assert!(cdg_share(g, far) <= share);
            let w = (g / 200.0).min(1.0);
            prop_assert!(cdg_scale(w, near) <= cdg_scale(w, far));
            prop_assert!(cdg_scale(w / more, near) <= cdg_scale(w, near));
        }
    }
}
