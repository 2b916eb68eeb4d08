//! Congestion controls of others, whose programs run in the kernel: here the same C is
//! compiled for this machine (`native/rivals.c`, which has the other half of what is below).

#![allow(
    unsafe_code,
    reason = "it calls C. Each call gets a rival that `new` has made and `drop` has not \
        freed, and a view that outlives the call"
)]

use std::fmt;
use std::ptr::NonNull;

use dalbe::ebpf::native::INFINITE_THRESHOLD;

use crate::congestion::kernel::number;
use crate::congestion::state::{Acknowledged, CongestionState, Phase};
use lab_run::rivals::{LedbatParameters, Rival};

/// `struct rival`.
#[repr(C)]
struct RawRival {
    _private: [u8; 0],
}

/// `struct rival_parameters`.
#[repr(C)]
struct Parameters {
    program: u32,
    target_us: u32,
    gain_q16: u32,
    least_window: u32,
    has_slow_start: u32,
}

/// `struct rival_view`.
#[repr(C)]
struct View {
    now_us: u64,
    acknowledged: u32,
    next: u32,
    window: u32,
    threshold: u32,
    outstanding: u32,
    max_outstanding: u32,
    rtt_us: u32,
    delay_ms: u32,
    is_window_limited: u8,
    has_hole: u8,
}

unsafe extern "C" {
    fn rival_new(parameters: *const Parameters) -> *mut RawRival;
    fn rival_free(rival: *mut RawRival);
    fn rival_begin(rival: *mut RawRival, view: *mut View);
    fn rival_acknowledged(rival: *mut RawRival, view: *mut View, packets: u32, rtt_us: i32);
    fn rival_avoid(rival: *mut RawRival, view: *mut View, acknowledged: u32);
    fn rival_threshold(rival: *mut RawRival, view: *mut View) -> u32;
    fn rival_changed(rival: *mut RawRival, view: *mut View, phase: u8);
}

/// A rival at work.
pub(crate) struct RivalControl {
    raw: NonNull<RawRival>,
    /// What the last acknowledgement said of the delay, ms.
    delay_ms: u32,
}

impl fmt::Debug for RivalControl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RivalControl")
    }
}

impl Drop for RivalControl {
    fn drop(&mut self) {
        unsafe { rival_free(self.raw.as_ptr()) }
    }
}

impl RivalControl {
    pub(crate) fn new(rival: Rival) -> Self {
        // Other programs have no parameters.
        let ledbat = rival.ledbat().unwrap_or(LedbatParameters::RFC);
        let parameters = Parameters {
            program: program(rival),
            target_us: ledbat.target_us,
            gain_q16: ledbat.gain_q16,
            least_window: ledbat.least_window,
            has_slow_start: u32::from(ledbat.has_slow_start),
        };
        let raw = unsafe { rival_new(&raw const parameters) };
        Self {
            raw: NonNull::new(raw).expect("there is memory for a rival"),
            delay_ms: 0,
        }
    }

    /// Calls the program with the state of the connection, and takes what it has set.
    fn call(
        &mut self,
        state: &mut CongestionState,
        program: impl FnOnce(*mut RawRival, &mut View),
    ) {
        let mut view = view(state, self.delay_ms);
        let before = (view.window, view.threshold);
        program(self.raw.as_ptr(), &mut view);
        if view.window != before.0 {
            state.window = f64::from(view.window);
        }
        if view.threshold != before.1 {
            state.threshold = f64::from(view.threshold);
        }
    }

    pub(crate) fn begin(&mut self, state: &mut CongestionState) {
        self.call(state, |rival, view| unsafe { rival_begin(rival, view) });
    }

    pub(crate) fn measure(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        self.delay_ms = ack.echoed_ms.unwrap_or(self.delay_ms);
        let rtt_us = match ack.echoed_ms {
            Some(_) => ack.rtt.map_or(-1, |rtt| rtt.as_micros() as i32),
            None => -1,
        };
        self.call(state, |rival, view| unsafe {
            rival_acknowledged(rival, view, ack.segments, rtt_us);
        });
    }

    pub(crate) fn avoid(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        self.call(state, |rival, view| unsafe {
            rival_avoid(rival, view, ack.segments);
        });
    }

    pub(crate) fn threshold(&mut self, state: &CongestionState) -> f64 {
        let mut view = view(state, self.delay_ms);
        let threshold = unsafe { rival_threshold(self.raw.as_ptr(), &mut view) };
        f64::from(threshold)
    }

    pub(crate) fn enter(&mut self, state: &mut CongestionState, phase: Phase) {
        self.call(state, |rival, view| unsafe {
            rival_changed(rival, view, number(phase));
        });
    }
}

/// In `enum program`.
fn program(rival: Rival) -> u32 {
    match rival {
        Rival::Ledbat | Rival::LedbatA | Rival::LedbatEarly => 0,
        Rival::LedbatPlusPlus => 1,
        Rival::TcpLp => 2,
        Rival::TcpLpLinux => 3,
    }
}

/// Numbers of bytes and clocks wrap, as the kernel's do.
fn view(state: &CongestionState, delay_ms: u32) -> View {
    View {
        now_us: state.now.as_micros() as u64,
        acknowledged: state.acknowledged as u32,
        next: state.next as u32,
        window: state.window as u32,
        threshold: if state.threshold.is_finite() {
            state.threshold as u32
        } else {
            INFINITE_THRESHOLD
        },
        outstanding: state.outstanding,
        max_outstanding: state.max_outstanding,
        rtt_us: (1e6 * state.rtt) as u32,
        delay_ms,
        is_window_limited: u8::from(state.is_window_limited),
        has_hole: u8::from(state.has_hole),
    }
}
