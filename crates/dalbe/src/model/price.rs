//! The rate of a congestion control at a price of the network, and the price that
//! makes it send at a given rate.
//!
//! DA-LBE (Hayes et al. 2017, NEAT D3.2 Appendix B) sees a flow of weight w
//! as a best-effort flow that meets the price q/w where others meet q (eq. 5).
//! A model M gives the price q̂ at which a best-effort flow would have the rate
//! zeta (eqs 11 and 12); so with w = q/q̂ it has zeta at the price q (eq. 14,
//! [`crate::model`]).
//!
//! A price is whatever the congestion control reacts to, and each model has
//! its own unit; w is a ratio of two prices of the same model. Rates are in
//! byte/s of payload. No model knows how prices are measured.

use std::time::Duration;

/// The model of one congestion control on the path of the moment. All fields
/// are finite and above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PriceModel {
    /// Reno. The price is the probability that a packet is lost.
    Reno {
        /// Round-trip time.
        rtt: Duration,
        /// Payload of a packet, byte.
        segment: f64,
    },
    /// Cubic where it is faster than Reno. The price is the probability that
    /// a packet is lost.
    Cubic {
        /// Share of the window that is left after a loss, below 1; 0.7 in
        /// RFC 9438.
        beta: f64,
        /// Round-trip time.
        rtt: Duration,
        /// Payload of a packet, byte.
        segment: f64,
    },
    /// Vegas. The price is the queueing delay RTT − RTT_min, s.
    Vegas {
        /// Packets of its own that it keeps in the queue.
        alpha: f64,
        /// The effective price ratio ([`crate::model`]); 1 beside flows that
        /// react to delay as well.
        phi: f64,
        /// Payload of a packet, byte.
        segment: f64,
    },
    /// CDG beside one best-effort flow. The price is that of the link,
    /// 1/capacity, s/byte.
    Cdg {
        /// Round-trip time without queues.
        base_rtt: Duration,
        /// Capacity of the path, byte/s.
        capacity: f64,
    },
    /// Any flow that takes w parts where one best-effort flow beside it takes
    /// one. The price is that of the link, 1/capacity, s/byte.
    Share {
        /// Capacity of the path, byte/s.
        capacity: f64,
    },
}

impl PriceModel {
    /// q̂, the price at which a best-effort flow would have the rate `zeta`,
    /// byte/s; infinite for 0, 0 for what it cannot have at any price.
    ///
    /// - Vegas: x = alpha/(RTT − RTT_min) packets (Low, Peterson and Wang
    ///   2002), so that q/q̂ is DA-LBE's w_base = tau*zeta/(phi*alpha_base)
    ///   (fig. 7).
    /// - Share: beside one best-effort flow a flow of weight w has
    ///   capacity*w/(1 + w), so that q̂ = 1/zeta − 1/capacity.
    #[must_use]
    pub fn wanted_price(&self, zeta: f64) -> f64 {
        match *self {
            Self::Reno { rtt, segment } => reno_price(window(zeta, rtt, segment)),
            Self::Cubic { beta, rtt, segment } => {
                cubic_price(window(zeta, rtt, segment), beta, rtt)
            }
            Self::Vegas {
                alpha,
                phi,
                segment,
            } => phi * alpha * segment / zeta,
            Self::Cdg { base_rtt, capacity } => {
                1.0 / (capacity * cdg_weight(zeta / capacity, base_rtt))
            }
            // `f64::max` would take 0 for a rate that is not a number.
            Self::Share { capacity } if zeta >= capacity => 0.0,
            Self::Share { capacity } => 1.0 / zeta - 1.0 / capacity,
        }
    }

    /// The rate of a flow of weight `w` where the network's price is `price`,
    /// byte/s: the inverse of [`wanted_price`](Self::wanted_price), with
    /// price/w in place of q̂. 0 without weight; at price 0 infinite, or all
    /// that the model's link has for it.
    #[must_use]
    pub fn rate(&self, price: f64, w: f64) -> f64 {
        let met = price / w;
        match *self {
            Self::Reno { rtt, segment } => reno_window(met) * segment / rtt.as_secs_f64(),
            Self::Cubic { beta, rtt, segment } => {
                cubic_window(met, beta, rtt) * segment / rtt.as_secs_f64()
            }
            Self::Vegas {
                alpha,
                phi,
                segment,
            } => phi * alpha * segment / met,
            Self::Cdg { base_rtt, capacity } => {
                capacity * cdg_share_of_weight(1.0 / (capacity * met), base_rtt)
            }
            Self::Share { capacity } => 1.0 / (met + 1.0 / capacity),
        }
    }
}

/// Packets on their way at this rate.
fn window(rate: f64, rtt: Duration, segment: f64) -> f64 {
    rate * rtt.as_secs_f64() / segment
}

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
///
/// It is that of a CDG that neither grows nor takes a gradient in the round trip
/// after a back-off, as Linux's, which the paper measured. One that does both
/// takes 1.4 to 2.1 times as much with a small `g`. The least share is between
/// that of one flow beside one and that of two beside two: at the smallest
/// window, two flows take twice as much as one.
#[must_use]
pub fn cdg_share(g: f64, base_rtt: Duration) -> f64 {
    let r = millis(base_rtt);
    let (lo, hi) = cdg_bounds(r);
    // In this form infinity is defined.
    lo + (hi - lo) / (1.0 + (g / half_scale(r)).powf(-STEEPNESS))
}

/// The share at the weight `w`, of any size.
fn cdg_share_of_weight(w: f64, base_rtt: Duration) -> f64 {
    cdg_share(cdg_scale(w, base_rtt), base_rtt)
}

/// The weight that gives this share: 0 if any weight gives more, infinite if
/// none gives as much.
fn cdg_weight(share: f64, base_rtt: Duration) -> f64 {
    let r = millis(base_rtt);
    let (lo, hi) = cdg_bounds(r);
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
fn cdg_bounds(r: f64) -> (f64, f64) {
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

/// Mathis et al. 1997: the window is sqrt(3/2) over the root of the loss rate.
const RENO_SQUARED: f64 = 1.5;

/// C, how fast Cubic grows, packets/s^3 (RFC 9438, section 5).
const CUBIC_GROWTH: f64 = 0.4;

/// Reno's window, sqrt(3/(2p)).
fn reno_window(p: f64) -> f64 {
    (RENO_SQUARED / p).sqrt()
}

/// The probability of loss at which Reno has this window.
fn reno_price(window: f64) -> f64 {
    RENO_SQUARED / (window * window)
}

/// Cubic's window, (C(3+beta)/(4(1−beta)))^(1/4) * (RTT/p)^(3/4).
fn cubic_window(p: f64, beta: f64, rtt: Duration) -> f64 {
    cubic_factor(beta).powf(0.25) * (rtt.as_secs_f64() / p).powf(0.75)
}

/// The probability of loss at which Cubic has this window,
/// RTT/window^(4/3) * (C(3+beta)/(4(1−beta)))^(1/3).
fn cubic_price(window: f64, beta: f64, rtt: Duration) -> f64 {
    cubic_factor(beta).cbrt() * rtt.as_secs_f64() / window.powf(4.0 / 3.0)
}

/// C(3+beta)/(4(1−beta)), packets/s^3.
fn cubic_factor(beta: f64) -> f64 {
    CUBIC_GROWTH * (3.0 + beta) / (4.0 * (1.0 - beta))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    /// 10 Mbit/s in byte/s.
    const CAPACITY: f64 = 1.25e6;
    const SEGMENT: f64 = 1448.0;

    fn all() -> [PriceModel; 5] {
        let (rtt, segment) = (RTT, SEGMENT);
        [
            PriceModel::Reno { rtt, segment },
            PriceModel::Cubic {
                beta: 0.7,
                rtt,
                segment,
            },
            PriceModel::Vegas {
                alpha: 3.0,
                phi: 0.5,
                segment,
            },
            PriceModel::Cdg {
                base_rtt: RTT,
                capacity: CAPACITY,
            },
            PriceModel::Share { capacity: CAPACITY },
        ]
    }

    #[test]
    fn a_weight_is_the_ratio_of_two_prices() {
        // tau = 20 ms, zeta = 50 packets/s: 20 ms * 50/s / (0.5 * 3).
        let [.., vegas, _, share] = all();
        let w = 0.02 / vegas.wanted_price(50.0 * SEGMENT);
        assert!((w - 2.0 / 3.0).abs() < 1e-12, "{w}");
        let w = 1.0 / CAPACITY / share.wanted_price(0.2 * CAPACITY);
        assert!((w - 0.25).abs() < 1e-12, "a quarter of one: {w}");
        assert!((share.rate(1.0 / CAPACITY, 1.0) - CAPACITY / 2.0).abs() < 1e-6);
    }

    #[test]
    fn an_impossible_rate_has_price_0_and_no_rate_an_infinite_one() {
        for model in all() {
            assert_eq!(model.wanted_price(0.0), f64::INFINITY, "{model:?}");
            assert_eq!(model.wanted_price(f64::INFINITY), 0.0, "{model:?}");
            assert!(model.wanted_price(f64::NAN).is_nan(), "{model:?}");
        }
        let [.., cdg, share] = all();
        assert_eq!(share.wanted_price(1.1 * CAPACITY), 0.0);
        assert_eq!(cdg.wanted_price(0.5 * CAPACITY), 0.0, "not at 100 ms");
        assert_eq!(cdg.wanted_price(0.01 * CAPACITY), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn the_weight_that_a_model_gives_yields_zeta(
            index in 0_usize..5,
            // Within what CDG can be tuned to at 100 ms.
            share in 0.04_f64..0.35,
            price in 1e-9_f64..1.0,
        ) {
            let model = all()[index];
            let zeta = share * CAPACITY;
            let w = price / model.wanted_price(zeta);
            let rate = model.rate(price, w);
            prop_assert!((rate / zeta - 1.0).abs() < 1e-9, "{model:?}: {rate} for {zeta}");
        }

        #[test]
        fn more_weight_never_gives_less_rate(
            index in 0_usize..5,
            price in 1e-9_f64..1.0,
            w in 0.001_f64..1.0,
            more in 1.0_f64..10.0,
        ) {
            let model = all()[index];
            prop_assert!(model.rate(price, w * more) >= model.rate(price, w));
        }
    }
}

#[cfg(test)]
mod cdg_tests {
    use proptest::prelude::*;

    use super::*;

    /// Base RTT, ms, and G, ms, and aggregate share of two CDG flows, per
    /// cent: means of two runs of the last 60 of 100 s against two CUBIC
    /// flows, 10 Mbit/s, one bandwidth-delay product of queue. The flows waited
    /// for a round trip after each back-off, as LAW_CDG_PAPER in the kernel does.
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
    /// per cent, which belong to G = 0.1 ms and 120 ms. The lower end "assumes
    /// only one CDG flow", the upper end is that of as many flows of both kinds.
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
    fn g_covers_the_useful_range_on_each_path() {
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

#[cfg(test)]
mod loss_tests {
    use super::*;

    #[test]
    fn windows_equal_those_of_the_literature() {
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
