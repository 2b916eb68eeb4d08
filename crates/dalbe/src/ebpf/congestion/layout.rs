//! What the kernel's side and this one share: the counterpart of
//! `../bpf/congestion.h`, where the fields are explained.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `ONE_Q16`.
pub(super) const ONE: f64 = 65536.0;

/// `struct parameters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct RawParameters {
    pub(super) law: u32,
    pub(super) w_q16: u32,
    pub(super) phi_q16: u32,
    pub(super) g_us: u32,
    pub(super) capacity: u32,
    pub(super) reserved: u32,
}

/// `struct telemetry`.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct RawTelemetry {
    pub(super) version: u32,
    pub(super) law: u32,
    pub(super) cwnd: u32,
    pub(super) rtt_us: u32,
    pub(super) base_us: u32,
    pub(super) gradient_min_us: i32,
    pub(super) gradient_max_us: i32,
    pub(super) losses: u32,
    pub(super) delays: u32,
    pub(super) phantoms: u32,
    pub(super) backoffs: u32,
    pub(super) is_yielding: u32,
    pub(super) packets: u64,
    pub(super) loss_share_q16: u64,
    pub(super) delay_share_q16: u64,
    pub(super) updated_us: u64,
}

/// `struct state` of `../bpf/flow.h`, whose end is the kernel's alone.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct RawState {
    pub(super) seen: RawTelemetry,
    pub(super) private: [u8; 360],
}

// As in congestion.h and congestion.bpf.c.
const _: () = assert!(size_of::<RawParameters>() == 24);
const _: () = assert!(size_of::<RawTelemetry>() == 80);
const _: () = assert!(size_of::<RawState>() == 440);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ebpf::CongestionLaw;
    use crate::weight::MIN_WEIGHT;

    #[test]
    fn both_sides_have_the_same_numbers() {
        let header = include_str!("../../bpf/congestion.h");
        let least = (MIN_WEIGHT * ONE).round() as u64;
        for (name, value) in [
            (
                "CONGESTION_VERSION",
                u64::from(super::super::CONGESTION_VERSION),
            ),
            ("ONE_Q16", ONE as u64),
            ("LEAST_WEIGHT_Q16", least),
        ] {
            let line = format!("#define {name} {value}\n");
            assert!(header.contains(&line), "{line}");
        }
        for law in CongestionLaw::ALL {
            let line = format!("= {},\n", law.number());
            assert!(header.contains(&line), "{line}");
        }
    }
}
