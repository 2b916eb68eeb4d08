//! The loop without randomness: chunks and service flow like water, so that
//! what is left of a transient is the law's own.

use fairbat::lane::{Admission, AdmissionSettings};

use super::lane::{CAPACITY, MEAN_SIZE, WEB_LOAD};

/// m is settled while it is within this share of its limiting value.
const BAND: f64 = 0.1;

/// The m whose service is the load. The web flows take their load out of every
/// flow's share alike, so m connections beside k long-lived flows get m/(m + k)
/// of what the web leaves.
pub(crate) fn limiting_m(load: f64, long_lived: f64) -> f64 {
    long_lived * load / (1.0 - WEB_LOAD - load)
}

/// A constant load of background chunks on a link with web load and
/// long-lived flows; starts with an empty queue and m = m_min.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fluid {
    /// Load of the background chunks, as a share of the capacity.
    pub(crate) load: f64,
    /// Long-lived flows beside; at least one, else one connection is enough
    /// for every load that fits.
    pub(crate) long_lived: f64,
    pub(crate) settings: AdmissionSettings,
}

impl Fluid {
    /// Periods after which m stays within 10 % of its limiting value until
    /// the end of the horizon; `None` if it is outside again in the last
    /// tenth of it, which means that it swings on.
    pub(crate) fn periods_to_settle(&self, horizon: u32) -> Option<u32> {
        let mut admission = Admission::new(self.settings).expect("the scenario's settings");
        let chunks = CAPACITY / MEAN_SIZE * self.settings.period.as_secs_f64();
        let limiting = limiting_m(self.load, self.long_lived);
        let (mut n, mut settled) = (0.0_f64, 0);
        for period in 1..=horizon {
            let m = admission.update(n).m;
            let service = (1.0 - WEB_LOAD) * m / (m + self.long_lived);
            n = (n + (self.load - service) * chunks).max(0.0);
            if (m / limiting - 1.0).abs() > BAND {
                settled = period;
            }
        }
        (settled < horizon / 10 * 9).then_some(settled)
    }
}
