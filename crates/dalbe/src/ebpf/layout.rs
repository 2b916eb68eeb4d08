//! The structures that the programs in the kernel and this process share: the
//! counterpart of `observer.h` and `congestion.h` in `src/bpf`, which explain
//! the fields. Both sides assert the sizes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `OBSERVER_VERSION`. A build without the programs loads nothing to compare it with.
#[cfg(any(feature = "bpf", test))]
pub(crate) const OBSERVER_VERSION: u32 = 1;

/// Intervals that are kept.
pub(crate) const SLOTS: usize = 32;
/// `DELAY_BUCKETS`.
pub(crate) const DELAY_BUCKETS: usize = 48;
/// `DELAY_UNIT_SHIFT`.
pub(crate) const DELAY_UNIT_SHIFT: u32 = 7;

/// `struct watch`.
#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct RawWatch {
    pub(crate) interval_us: u32,
    pub(crate) reserved: u32,
}

/// `struct interval`.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct Slot {
    pub(crate) began_us: u64,
    pub(crate) epoch: u32,
    pub(crate) tick_us: u32,
    pub(crate) bytes: u64,
    pub(crate) packets: u32,
    pub(crate) out_of_order: u32,
    pub(crate) holes: u32,
    pub(crate) delays: u32,
    pub(crate) delay_sum_us: i64,
    pub(crate) delay_min_us: i64,
    pub(crate) delay_reference_us: i64,
    pub(crate) piv_sum_us: i64,
    pub(crate) piv_positive: u32,
    pub(crate) piv_bands: [u32; 5],
    pub(crate) round_bytes: u64,
    pub(crate) round_us: u32,
    pub(crate) rounds: u32,
    pub(crate) delay_buckets: [u16; DELAY_BUCKETS],
}

/// `struct statistics`, whose end is the kernel's alone.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct RawStatistics {
    pub(crate) version: u32,
    pub(crate) interval_us: u32,
    pub(crate) epoch: u32,
    pub(crate) tick_us: u32,
    pub(crate) slots: [Slot; SLOTS],
    pub(crate) private: [u8; 592],
}

// As in observer.h.
const _: () = assert!(size_of::<RawWatch>() == 8);
const _: () = assert!(size_of::<Slot>() == 208);
const _: () = assert!(size_of::<RawStatistics>() == 7264);

/// The beginning of the names of our congestion controls, ...
pub(crate) const PREFIX: &str = "fairbat_";
/// ... and their ends.
pub(crate) const FAMILIES: [&str; 3] = ["vegas", "cdg", "cubic"];

/// Whether a congestion control of this name belongs to this family. A number
/// follows the family if the name without one was taken.
pub(crate) fn is_name_of(name: &str, family: &str) -> bool {
    let number = name.strip_prefix(PREFIX);
    let number = number.and_then(|name| name.strip_prefix(family));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `ONE_Q16`.
pub(crate) const ONE: f64 = 65536.0;

/// `struct parameters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct RawParameters {
    pub(crate) law: u32,
    pub(crate) w_q16: u32,
    pub(crate) phi_q16: u32,
    pub(crate) g_us: u32,
    pub(crate) capacity: u32,
    pub(crate) priority: u32,
    pub(crate) until_s: u32,
    pub(crate) reserved: u32,
}

/// `struct telemetry`.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct RawTelemetry {
    pub(crate) version: u32,
    pub(crate) law: u32,
    pub(crate) cwnd: u32,
    pub(crate) rtt_us: u32,
    pub(crate) base_us: u32,
    pub(crate) gradient_min_us: i32,
    pub(crate) gradient_max_us: i32,
    pub(crate) losses: u32,
    pub(crate) delays: u32,
    pub(crate) phantoms: u32,
    pub(crate) backoffs: u32,
    pub(crate) is_yielding: u32,
    pub(crate) g_us: u32,
    pub(crate) reserved: u32,
    pub(crate) packets: u64,
    pub(crate) loss_share_q16: u64,
    pub(crate) delay_share_q16: u64,
    pub(crate) updated_us: u64,
}

/// `struct state` of `../bpf/congestion.h`, whose end is the kernel's alone.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct RawState {
    pub(crate) seen: RawTelemetry,
    pub(crate) private: [u8; 584],
}

// As in congestion.h and congestion.bpf.c.
const _: () = assert!(size_of::<RawParameters>() == 32);
const _: () = assert!(size_of::<RawTelemetry>() == 88);
const _: () = assert!(size_of::<RawState>() == 672);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_have_the_same_numbers() {
        let header = include_str!("../bpf/observer.h");
        for (name, value) in [
            ("OBSERVER_VERSION", u64::from(OBSERVER_VERSION)),
            ("SLOTS", SLOTS as u64),
            ("DELAY_BUCKETS", DELAY_BUCKETS as u64),
            ("DELAY_UNIT_SHIFT", u64::from(DELAY_UNIT_SHIFT)),
        ] {
            let line = format!("#define {name} {value}\n");
            assert!(header.contains(&line), "{line}");
        }
    }
}

#[cfg(test)]
mod congestion_tests {
    use super::*;
    use crate::ebpf::{CONGESTION_VERSION, CongestionLaw, SenderCoupling};
    use crate::weight::MIN_WEIGHT;

    #[test]
    fn both_sides_have_the_same_numbers() {
        let header = include_str!("../bpf/congestion.h");
        let least = (MIN_WEIGHT * ONE).round() as u64;
        for (name, value) in [
            ("CONGESTION_VERSION", u64::from(CONGESTION_VERSION)),
            ("ONE_Q16", ONE as u64),
            ("MIN_WEIGHT_Q16", least),
            ("MAX_PRIORITY", u64::from(SenderCoupling::MAX_PRIORITY)),
        ] {
            let line = format!("#define {name} {value}\n");
            assert!(header.contains(&line), "{line}");
        }
        for (law, name) in [
            (CongestionLaw::Vegas, "VEGAS"),
            (CongestionLaw::VegasPaper, "VEGAS_PAPER"),
            (CongestionLaw::Cdg, "CDG"),
            (CongestionLaw::CdgPaper, "CDG_PAPER"),
            (CongestionLaw::CubicPhantom, "CUBIC_PHANTOM"),
            (CongestionLaw::CubicBeta, "CUBIC_BETA"),
        ] {
            let line = format!("LAW_{name} = {},\n", law.number());
            assert!(header.contains(&line), "{line}");
        }
    }

    #[test]
    fn another_size_of_the_state_has_another_version() {
        // Whoever changes one of these numbers changes the other.
        assert_eq!((size_of::<RawState>(), CONGESTION_VERSION), (672, 23));
    }
}
