//! What a congestion control makes of a price of the network, and which price
//! would make it send at a given rate.
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

mod cdg;
mod loss;

use std::time::Duration;

pub use cdg::{cdg_scale, cdg_share};

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
        /// What the path carries altogether, byte/s.
        capacity: f64,
    },
    /// Any flow that takes w parts where one best-effort flow beside it takes
    /// one. The price is that of the link, 1/capacity, s/byte.
    Share {
        /// What the path carries altogether, byte/s.
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
            Self::Reno { rtt, segment } => loss::reno_price(window(zeta, rtt, segment)),
            Self::Cubic { beta, rtt, segment } => {
                loss::cubic_price(window(zeta, rtt, segment), beta, rtt)
            }
            Self::Vegas {
                alpha,
                phi,
                segment,
            } => phi * alpha * segment / zeta,
            Self::Cdg { base_rtt, capacity } => {
                1.0 / (capacity * cdg::weight(zeta / capacity, base_rtt))
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
            Self::Reno { rtt, segment } => loss::reno_window(met) * segment / rtt.as_secs_f64(),
            Self::Cubic { beta, rtt, segment } => {
                loss::cubic_window(met, beta, rtt) * segment / rtt.as_secs_f64()
            }
            Self::Vegas {
                alpha,
                phi,
                segment,
            } => phi * alpha * segment / met,
            Self::Cdg { base_rtt, capacity } => {
                capacity * cdg::share_of_weight(1.0 / (capacity * met), base_rtt)
            }
            Self::Share { capacity } => 1.0 / (met + 1.0 / capacity),
        }
    }
}

/// Packets on their way at this rate.
fn window(rate: f64, rtt: Duration, segment: f64) -> f64 {
    rate * rtt.as_secs_f64() / segment
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
    fn what_cannot_be_had_has_the_price_0_and_nothing_an_infinite_one() {
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
        fn more_weight_is_never_less_rate(
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
