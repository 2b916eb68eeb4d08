//! The price that the connection meets, and the one at which a model of its
//! congestion control says that it would have the rate that is wanted: what
//! DA-LBE's model-based control compares. Pure.
//!
//! DA-LBE (Hayes et al. 2017, NEAT D3.2 Appendix B): the price of CUBIC is the
//! share of packets that were indications of loss, that of Vegas the delay in
//! queues (fig. 7), whose price ratio phi follows eqs (22)–(26). CDG's is that
//! of the link ([`PriceModel::Cdg`]).

use std::collections::VecDeque;
use std::time::Duration;

use dalbe::ebpf::{CongestionLaw, CongestionState};
use dalbe::model::PriceModel;
use dalbe::model::{CongestionSignal, Phi, PhiSettings};
use dalbe::model::{IncreaseLimiter, MAX_PHI_INCREASE};

use super::weigh::Seen;

/// Losses that a price is taken from: who sends little loses rarely, and a price
/// over a time without losses would be none (RFC 5348, section 5.4, has as many).
const LOSSES: usize = 8;

/// CUBIC's share of the window that is left after a loss (RFC 9438, section
/// 4.6).
const CUBIC_BETA: f64 = 0.7;

/// Packets that our Vegas keeps in the queue as one best-effort flow
/// (crates/dalbe/src/bpf/paper_vegas.h). The paper does not tell its own.
const VEGAS_ALPHA: f64 = 3.0;

/// The prices of one connection.
#[derive(Debug)]
pub(super) struct Prices {
    law: CongestionLaw,
    phi: Phi,
    /// Counters when they were last looked at.
    counted: CongestionState,
    /// Packets from loss to loss, the last of them, and since.
    intervals: VecDeque<f64>,
    since_loss: f64,
    /// Sum of round-trip times of the period, s, and how many.
    round_trips: (f64, f64),
}

impl Prices {
    /// For a connection that follows this law with this phi and period T_w.
    pub(super) fn new(law: CongestionLaw, phi: f64, period: Duration, began: Duration) -> Self {
        let settings = PhiSettings {
            own: vec![CongestionSignal::Loss, CongestionSignal::Delay],
            standard: vec![CongestionSignal::Loss],
            // At least; ten times as long where losses are rare. The paper's is six
            // times T_w.
            period,
            limiter: IncreaseLimiter {
                step: MAX_PHI_INCREASE,
            },
        };
        Self {
            law,
            phi: Phi::new(settings, phi, began),
            counted: CongestionState::default(),
            intervals: VecDeque::new(),
            since_loss: 0.0,
            round_trips: (0.0, 0.0),
        }
    }

    /// phi now.
    pub(super) fn phi(&self) -> f64 {
        self.phi.phi()
    }

    /// Takes a round-trip time.
    pub(super) fn watch(&mut self, seen: &Seen) {
        self.round_trips.0 += seen.rtt.as_secs_f64();
        self.round_trips.1 += 1.0;
    }

    /// q of the period that is over, and the price at which the next would have
    /// the rate `zeta`, byte/s. `capacity` is what the path carries altogether,
    /// byte/s.
    pub(super) fn compare(&mut self, zeta: f64, seen: &Seen, capacity: f64) -> (f64, f64) {
        self.count(seen);
        let (sum, count) = std::mem::take(&mut self.round_trips);
        let rtt = if count > 0.0 { sum / count } else { 0.0 };
        let base = seen.base_rtt();
        let segment = seen.segment;
        let (price, model) = match self.law {
            CongestionLaw::CubicPhantom | CongestionLaw::CubicBeta => (
                self.loss_price(),
                PriceModel::Cubic {
                    beta: CUBIC_BETA,
                    rtt: Duration::from_secs_f64(rtt),
                    segment,
                },
            ),
            CongestionLaw::Vegas | CongestionLaw::VegasPaper => (
                (rtt - base).max(0.0),
                PriceModel::Vegas {
                    alpha: VEGAS_ALPHA,
                    phi: self.phi(),
                    segment,
                },
            ),
            CongestionLaw::Cdg | CongestionLaw::CdgPaper => (
                1.0 / capacity,
                PriceModel::Cdg {
                    base_rtt: Duration::from_secs_f64(base),
                    capacity,
                },
            ),
        };
        (price, model.wanted_price(zeta))
    }

    /// Counts what has happened since the last time.
    fn count(&mut self, seen: &Seen) {
        let Some(state) = seen.state else {
            return;
        };
        let before = std::mem::replace(&mut self.counted, state);
        let since = |now: u32, before: u32| f64::from(now.saturating_sub(before));
        let packets = state.packets.saturating_sub(before.packets) as f64;
        let losses = since(state.losses, before.losses);
        let delays = since(state.delays, before.delays);
        self.since_loss += packets;
        if losses > 0.0 {
            let interval = std::mem::take(&mut self.since_loss) / losses;
            let count = (losses as usize).min(LOSSES);
            self.intervals.extend(std::iter::repeat_n(interval, count));
            let over = self.intervals.len().saturating_sub(LOSSES);
            self.intervals.drain(..over);
        }
        if matches!(self.law, CongestionLaw::Vegas | CongestionLaw::VegasPaper) {
            self.phi.packets(packets);
            // What a loss takes from the flows that it competes with.
            self.phi
                .indications(CongestionSignal::Loss, losses, 1.0 - CUBIC_BETA);
            let removed = (state.delay_share - before.delay_share).max(0.0);
            let kappa = if delays > 0.0 { removed / delays } else { 0.0 };
            self.phi.indications(CongestionSignal::Delay, delays, kappa);
            self.phi.update(seen.now);
        }
    }

    /// Indications of loss per packet; 0 before the first. What has come since the
    /// last counts if that makes it less.
    fn loss_price(&self) -> f64 {
        let sum: f64 = self.intervals.iter().sum();
        let count = self.intervals.len() as f64;
        if sum <= 0.0 {
            return 0.0;
        }
        let with_last = (count + 1.0) / (sum + self.since_loss);
        (count / sum).min(with_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After so many packets of 1000 bytes, with these counts.
    fn seen(t: u64, packets: u64, losses: u32, delays: u32, delay_share: f64) -> Seen {
        Seen {
            now: Duration::from_secs(t),
            acked: 1000 * packets,
            carried: 0,
            rtt: Duration::from_millis(50),
            least_rtt: Duration::from_millis(30),
            segment: 1000.0,
            state: Some(CongestionState {
                packets,
                losses,
                delays,
                delay_share,
                ..CongestionState::default()
            }),
        }
    }

    #[test]
    fn cubic_pays_for_losses_as_rare_as_they_are() {
        let period = Duration::from_secs(1);
        let mut prices = Prices::new(CongestionLaw::CubicPhantom, 1.0, period, Duration::ZERO);
        let mut price = |seen: Seen| {
            prices.watch(&seen);
            prices.compare(1e5, &seen, 1e6).0
        };
        assert_eq!(price(seen(1, 500, 0, 0, 0.0)), 0.0);
        assert_eq!(price(seen(2, 1000, 2, 0, 0.0)), 0.002);
        // No news while few packets come without any, and then less.
        assert_eq!(price(seen(3, 1400, 2, 0, 0.0)), 0.002);
        assert_eq!(price(seen(4, 3000, 2, 0, 0.0)), 0.001);
        // Of many losses the last count.
        assert_eq!(price(seen(5, 4000, 22, 0, 0.0)), 20.0 / 3000.0);
    }

    #[test]
    fn vegas_pays_for_delay_and_its_phi_follows_what_signals_remove() {
        let period = Duration::from_secs(1);
        let mut prices = Prices::new(CongestionLaw::VegasPaper, 1.0, period, Duration::ZERO);
        let mut last = 0.0;
        for t in 1..=100_u64 {
            let count = t as u32;
            // A loss and ten delays a second, each of which removes a tenth.
            let seen = seen(t, 1000 * t, count, 10 * count, f64::from(count));
            prices.watch(&seen);
            let (price, wanted) = prices.compare(1e5, &seen, 1e6);
            assert!((price - 0.02).abs() < 1e-12, "{price}");
            // alpha packets in the queue, times phi.
            let expected = prices.phi() * VEGAS_ALPHA * 1000.0 / 1e5;
            assert!((wanted - expected).abs() < 1e-12, "{wanted}");
            assert!(prices.phi() >= last, "it rises");
            last = prices.phi();
        }
        // (0.3 + 1) / 0.3 are 4.3, and it rises by a tenth of that at a time.
        assert!(last > 2.0 && last < 4.4, "{last}");
    }

    #[test]
    fn cdg_pays_for_the_link() {
        let period = Duration::from_secs(1);
        let mut prices = Prices::new(CongestionLaw::CdgPaper, 1.0, period, Duration::ZERO);
        let seen = seen(1, 100, 0, 0, 0.0);
        let (price, wanted) = prices.compare(2e5, &seen, 1e6);
        assert_eq!(price, 1e-6);
        assert!(price < wanted, "less than its full weight");
    }
}
