//! phi: how much price this congestion control meets for each unit that the
//! standard one meets.
//!
//! DA-LBE (Hayes et al. 2017, NEAT D3.2 Appendix B) eqs (22)–(26), for a
//! congestion control that reacts to other signals than its competitors:
//!
//! ```text
//! P^z = I^z / N              indications of the type z per packet     (22)
//! W^z = mean of kappa        the share of cwnd that one removes       (23)
//! phi = sum over own z of W^z*P^z / sum over standard z of W^z*P^z    (24), (25)
//! mu  = w * phi                                                       (26)
//! ```
//!
//! phi may fall as it likes; its increase is limited as in (19). The paper
//! updates it every T_phi = 60 s and finds that too short where losses are
//! rare. Here an interval ends after T_phi only if it has seen ten standard
//! and ten own indications; if not, it goes on until it has, for ten times
//! T_phi at most, and is then taken as it is. Where one of the sums is 0 even
//! then, there is nothing to compare and phi stays as it was.
//!
//! Since W^z*P^z is the sum of kappa over N, N cancels from phi; it is kept
//! because P^z is a price that [`crate::model`] can use. Knows no congestion
//! control.

use std::time::Duration;

use crate::model::IncreaseLimiter;

/// Least number of indications on each side of a comparison. The mean of ten
/// independent ones is good to about a third.
const MIN_INDICATIONS: f64 = 10.0;

/// An interval lasts at most this many times T_phi.
const MAX_INTERVAL_PERIODS: u32 = 10;

/// What tells a sender of congestion (z).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionSignal {
    /// A lost packet.
    Loss,
    /// Delay, or its growth.
    Delay,
    /// A mark of explicit congestion notification.
    Ecn,
}

impl CongestionSignal {
    const COUNT: usize = 3;
}

/// The signals that a [`Phi`] compares, and its period.
#[derive(Debug, Clone, PartialEq)]
pub struct PhiSettings {
    /// The signals that this congestion control reacts to (Z_s).
    pub own: Vec<CongestionSignal>,
    /// The signals that the standard one reacts to (Z_std); loss for Cubic and Reno.
    pub standard: Vec<CongestionSignal>,
    /// T_phi, how long an interval is at least; 60 s in the paper.
    pub period: Duration,
    /// Of the increases of phi; l_phi in the paper.
    pub limiter: IncreaseLimiter,
}

/// Indications of one type in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Indications {
    /// I^z.
    count: f64,
    /// Sum of kappa.
    removed: f64,
}

/// Counts packets and indications, and compares prices.
#[derive(Debug, Clone, PartialEq)]
pub struct Phi {
    settings: PhiSettings,
    phi: f64,
    /// When the interval began.
    since: Duration,
    /// N.
    packets: f64,
    indications: [Indications; CongestionSignal::COUNT],
}

/// What an interval came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhiSample {
    /// phi, finite and at least 0.
    pub phi: f64,
    /// Whether an interval ended with both sums above 0.
    pub updated: bool,
    /// Whether the limiter held its increase back.
    pub limited: bool,
}

impl Phi {
    /// Begins an interval at `now` with this phi, which is finite and above 0;
    /// 1 means that both meet the same price.
    #[must_use]
    pub fn new(settings: PhiSettings, phi: f64, now: Duration) -> Self {
        Self {
            settings,
            phi,
            since: now,
            packets: 0.0,
            indications: Default::default(),
        }
    }

    /// phi of the moment.
    #[must_use]
    pub fn phi(&self) -> f64 {
        self.phi
    }

    /// mu for this weight, eq. (26): what takes the place of w.
    #[must_use]
    pub fn mu(&self, w: f64) -> f64 {
        w * self.phi
    }

    /// Counts packets that were sent, or are expected to be. A value that is
    /// not a number of packets counts as nothing.
    pub fn packets(&mut self, count: f64) {
        if is_count(count) {
            self.packets += count;
        }
    }

    /// Counts indications of congestion, as many or as many as are expected,
    /// each of which removes the share `kappa` of the window (Reno 0.5, Cubic
    /// 1 − beta, Vegas 1/cwnd), or would remove it from a standard flow. What
    /// is no number of indications, or no share, counts as nothing.
    pub fn indications(&mut self, kind: CongestionSignal, count: f64, kappa: f64) {
        if is_count(count) && (0.0..=1.0).contains(&kappa) {
            let sum = &mut self.indications[kind as usize];
            sum.count += count;
            sum.removed += count * kappa;
        }
    }

    /// P^z of the interval so far, eq. (22): indications per packet, 0 before
    /// the first packet.
    #[must_use]
    pub fn price(&self, kind: CongestionSignal) -> f64 {
        if self.packets > 0.0 {
            self.indications[kind as usize].count / self.packets
        } else {
            0.0
        }
    }

    /// Ends the interval if it is time to.
    pub fn update(&mut self, now: Duration) -> PhiSample {
        let unchanged = PhiSample {
            phi: self.phi,
            updated: false,
            limited: false,
        };
        let lasted = now.saturating_sub(self.since);
        let PhiSettings { period, .. } = self.settings;
        let (own, standard) = (
            self.sum(&self.settings.own),
            self.sum(&self.settings.standard),
        );
        let enough = own.count >= MIN_INDICATIONS && standard.count >= MIN_INDICATIONS;
        if lasted < period || (!enough && lasted < period.saturating_mul(MAX_INTERVAL_PERIODS)) {
            return unchanged;
        }
        *self = Self::new(self.settings.clone(), self.phi, now);
        let ratio = own.removed / standard.removed;
        if !(ratio > 0.0 && ratio.is_finite()) {
            return unchanged;
        }
        let limited = self.settings.limiter.limit(self.phi, ratio);
        self.phi = limited.value;
        PhiSample {
            phi: self.phi,
            updated: true,
            limited: limited.limited,
        }
    }

    fn sum(&self, kinds: &[CongestionSignal]) -> Indications {
        kinds.iter().fold(Indications::default(), |sum, &kind| {
            let Indications { count, removed } = self.indications[kind as usize];
            Indications {
                count: sum.count + count,
                removed: sum.removed + removed,
            }
        })
    }
}

/// Whether this is a finite number, at least 0. The upper limit keeps sums
/// finite.
fn is_count(count: f64) -> bool {
    (0.0..=1e12).contains(&count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::MAX_PHI_INCREASE;

    fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    /// Vegas among Cubic flows.
    fn vegas(phi: f64) -> Phi {
        let settings = PhiSettings {
            own: vec![CongestionSignal::Delay],
            standard: vec![CongestionSignal::Loss],
            period: secs(60),
            limiter: IncreaseLimiter {
                step: MAX_PHI_INCREASE,
            },
        };
        Phi::new(settings, phi, Duration::ZERO)
    }

    #[test]
    fn phi_is_the_ratio_of_what_the_indications_remove() {
        let mut phi = vegas(3.0);
        phi.packets(1e4);
        phi.indications(CongestionSignal::Delay, 100.0, 0.02);
        phi.indications(CongestionSignal::Loss, 10.0, 0.3);
        assert_eq!(phi.price(CongestionSignal::Loss), 1e-3);
        assert!(!phi.update(secs(59)).updated);
        let sample = phi.update(secs(60));
        assert!(sample.updated && !sample.limited, "{sample:?}");
        assert!((sample.phi - 2.0 / 3.0).abs() < 1e-9, "{sample:?}");
        assert!((phi.mu(0.5) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(phi.price(CongestionSignal::Loss), 0.0, "a new interval");
    }

    #[test]
    fn the_increase_of_phi_is_limited() {
        let mut phi = vegas(0.5);
        phi.indications(CongestionSignal::Delay, 100.0, 0.06);
        phi.indications(CongestionSignal::Loss, 10.0, 0.3);
        let sample = phi.update(secs(60));
        assert!(
            sample.limited && (sample.phi - 0.7).abs() < 1e-9,
            "{sample:?}"
        );
    }

    #[test]
    fn an_interval_lasts_until_it_has_seen_enough() {
        let mut phi = vegas(3.0);
        phi.indications(CongestionSignal::Delay, 100.0, 0.02);
        phi.indications(CongestionSignal::Loss, 4.0, 0.3);
        assert!(!phi.update(secs(60)).updated);
        phi.indications(CongestionSignal::Loss, 6.0, 0.3);
        assert!(phi.update(secs(70)).updated);
        // Or for ten times as long.
        phi.indications(CongestionSignal::Delay, 10.0, 0.1);
        phi.indications(CongestionSignal::Loss, 1.0, 0.5);
        assert!(!phi.update(secs(70 + 599)).updated);
        let sample = phi.update(secs(70 + 600));
        assert!(sample.updated, "{sample:?}");
    }

    #[test]
    fn phi_stays_without_anything_to_compare() {
        let mut phi = vegas(0.8);
        assert_eq!(phi.update(secs(600)).phi, 0.8);
        phi.indications(CongestionSignal::Delay, 100.0, 0.1);
        let no_loss = phi.update(secs(1200));
        assert_eq!((no_loss.phi, no_loss.updated), (0.8, false));
        phi.indications(CongestionSignal::Loss, 100.0, 0.3);
        phi.indications(CongestionSignal::Delay, 1.0, f64::NAN);
        phi.indications(CongestionSignal::Delay, f64::INFINITY, 0.1);
        assert_eq!(phi.update(secs(1800)).phi, 0.8, "no delay");
    }

    proptest! {
        #[test]
        fn phi_is_finite_and_never_negative(
            seen in prop::collection::vec((0_u8..3, any::<f64>(), any::<f64>(), 0_u64..200), 0..60),
        ) {
            let mut phi = vegas(1.0);
            let mut now = 0;
            for (kind, count, kappa, later) in seen {
                let kind = [CongestionSignal::Loss, CongestionSignal::Delay, CongestionSignal::Ecn][kind as usize];
                phi.indications(kind, count, kappa);
                phi.indications(kind, count.abs().fract(), kappa.abs().fract());
                now += later;
                let sample = phi.update(secs(now));
                prop_assert!(sample.phi.is_finite() && sample.phi >= 0.0, "{sample:?}");
            }
        }
    }
}
