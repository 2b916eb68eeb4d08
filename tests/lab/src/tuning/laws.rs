//! The laws that are compared: the defaults, each of them changed, the law
//! without damping.

use fairbat::lane::{AdmissionSettings, Gain};

/// More than any limit here.
const M_MAX: u32 = 64;

/// A law and what to call it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Law {
    pub(super) name: &'static str,
    pub(super) settings: AdmissionSettings,
}

/// The defaults.
pub(super) fn defaults() -> AdmissionSettings {
    AdmissionSettings {
        m_max: M_MAX,
        ..AdmissionSettings::immediate()
    }
}

/// Eq. (2) as it is in the paper, with the constant gamma that settles soonest.
pub(crate) fn undamped() -> AdmissionSettings {
    AdmissionSettings {
        kappa: 0.0,
        gain: Gain::Constant(0.05),
        ..defaults()
    }
}

/// All that are compared; the first is the defaults.
pub(super) fn all() -> Vec<Law> {
    let law = |name, settings| Law { name, settings };
    let defaults = defaults();
    let with = |tau, kappa, gain| AdmissionSettings {
        tau,
        kappa,
        gain,
        ..defaults
    };
    let settling = |initial, floor, half_after, far| Gain::Settling {
        initial,
        floor,
        half_after,
        far,
        empty_after: 3,
    };
    let usual = defaults.gain;
    vec![
        law("defaults", defaults),
        law("tau 10", with(10.0, 1.0, usual)),
        law("tau 30", with(30.0, 1.0, usual)),
        law("kappa 0.5", with(20.0, 0.5, usual)),
        law("kappa 1.5", with(20.0, 1.5, usual)),
        law(
            "gamma from 0.05",
            with(20.0, 1.0, settling(0.05, 0.0025, 10.0, 30.0)),
        ),
        law(
            "gamma from 0.01",
            with(20.0, 1.0, settling(0.01, 0.0005, 10.0, 30.0)),
        ),
        law(
            "gamma down to 0.0003",
            with(20.0, 1.0, settling(0.02, 0.0003, 10.0, 30.0)),
        ),
        law(
            "half after 5",
            with(20.0, 1.0, settling(0.02, 0.001, 5.0, 30.0)),
        ),
        law(
            "half after 20",
            with(20.0, 1.0, settling(0.02, 0.001, 20.0, 30.0)),
        ),
        law(
            "no step in load seen",
            with(
                20.0,
                1.0,
                Gain::Settling {
                    initial: 0.02,
                    floor: 0.001,
                    half_after: 10.0,
                    far: 1e9,
                    empty_after: u32::MAX,
                },
            ),
        ),
        law(
            "constant, as at first",
            with(20.0, 1.0, Gain::Constant(0.02)),
        ),
        law("constant, weak", with(20.0, 0.1, Gain::Constant(0.001))),
        law("undamped, gamma 0.05", undamped()),
        law(
            "undamped, gamma 0.01",
            with(20.0, 0.0, Gain::Constant(0.01)),
        ),
        law("undamped, settling", with(20.0, 0.0, usual)),
        law(
            "undamped, Kesten's rule",
            with(
                20.0,
                0.0,
                Gain::Decreasing {
                    initial: 0.05,
                    floor: 0.001,
                    restore_after: 250,
                },
            ),
        ),
    ]
}
