//! FAIRBAT's law for streams of jobs as it is evaluated, and when its limit on connections
//! counts as found: the same on links that are emulated and on one that is only calculated.

use fairbat::lane::{AdmissionSettings, Gain};

/// The law for streams as the paper's evaluation has it: a target that the queue rarely falls
/// short of, and plain TCP, which has no part of a connection.
#[must_use]
pub fn stream_law() -> AdmissionSettings {
    AdmissionSettings {
        tau: 20.0,
        m_min: 1.0,
        ..AdmissionSettings::stream()
    }
}

/// Eq. (2) as it is in the paper, with the constant gamma that settles soonest.
#[must_use]
pub fn undamped() -> AdmissionSettings {
    AdmissionSettings {
        kappa: 0.0,
        gain: Gain::Constant(0.05),
        ..stream_law()
    }
}

/// m has to be within this share of its limit...
pub const BAND: f64 = 0.2;
/// ...and the mean over seeds to stay there for so many chunk times.
pub const STAYS: usize = 10;
/// In a single run m is the mean over so many chunk times.
pub const SMOOTH: usize = 5;
/// It should take no longer, chunk times.
pub const SOON: usize = 20;
