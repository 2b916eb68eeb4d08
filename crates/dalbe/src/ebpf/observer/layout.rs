//! What the kernel's side and this one share: the counterpart of
//! `observer.h`, where the fields are explained.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `OBSERVER_VERSION`.
pub(crate) const OBSERVER_VERSION: u32 = 1;

/// Intervals that are kept.
pub(super) const SLOTS: usize = 32;
/// `DELAY_BUCKETS`.
pub(super) const DELAY_BUCKETS: usize = 48;
/// `DELAY_UNIT_SHIFT`.
pub(super) const DELAY_UNIT_SHIFT: u32 = 7;

/// `struct watch`.
#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Watch {
    pub(super) interval_us: u32,
    pub(super) reserved: u32,
}

/// `struct interval`.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct Slot {
    pub(super) began_us: u64,
    pub(super) epoch: u32,
    pub(super) tick_us: u32,
    pub(super) bytes: u64,
    pub(super) packets: u32,
    pub(super) out_of_order: u32,
    pub(super) holes: u32,
    pub(super) delays: u32,
    pub(super) delay_sum_us: i64,
    pub(super) delay_least_us: i64,
    pub(super) delay_reference_us: i64,
    pub(super) piv_sum_us: i64,
    pub(super) piv_positive: u32,
    pub(super) piv_bands: [u32; 5],
    pub(super) round_bytes: u64,
    pub(super) round_us: u32,
    pub(super) rounds: u32,
    pub(super) delay_buckets: [u16; DELAY_BUCKETS],
}

/// `struct statistics`, whose end is the kernel's alone.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct Statistics {
    pub(super) version: u32,
    pub(super) interval_us: u32,
    pub(super) epoch: u32,
    pub(super) tick_us: u32,
    pub(super) slots: [Slot; SLOTS],
    pub(super) private: [u8; 592],
}

// As in observer.h.
const _: () = assert!(size_of::<Watch>() == 8);
const _: () = assert!(size_of::<Slot>() == 208);
const _: () = assert!(size_of::<Statistics>() == 7264);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_have_the_same_numbers() {
        let header = include_str!("observer.h");
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
