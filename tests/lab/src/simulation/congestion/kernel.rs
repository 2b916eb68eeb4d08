//! The product's own congestion controls, whose programs run in the kernel: here the same C
//! is compiled for this machine (`native/flow.c`, which has the other half of what is
//! below).

#![allow(
    unsafe_code,
    reason = "it calls C. Each call gets a flow that `new` has made and `drop` has not \
        freed, and a view that outlives the call"
)]

use std::fmt;
use std::ptr::NonNull;
use std::rc::Rc;

use dalbe::ebpf::{CongestionParameters, CongestionState as Told};

use crate::simulation::congestion::state::{Acknowledged, CongestionState, Phase};
use crate::simulation::packet::SEGMENT;

/// The kernel's threshold before the first loss (`TCP_INFINITE_SSTHRESH`).
pub(crate) const INFINITE_THRESHOLD: u32 = 0x7fff_ffff;

/// What the kernel paces by: so many times the window in a round trip, in early slow start
/// and later (`net.ipv4.tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
const EARLY_PACING: f64 = 2.0;
const PACING: f64 = 1.2;

/// `struct flow`.
#[repr(C)]
struct Flow {
    _private: [u8; 0],
}

/// `struct parameters`.
#[repr(C, align(4))]
struct Parameters([u8; 32]);

/// `struct telemetry`.
#[repr(C, align(8))]
struct Telemetry([u8; 88]);

/// `struct view`.
#[repr(C)]
struct View {
    now_us: u64,
    next_us: u64,
    acknowledged: u32,
    next: u32,
    window: u32,
    threshold: u32,
    delivered: u32,
    outstanding: u32,
    max_outstanding: u32,
    segment: u32,
    least_rtt_us: u32,
    phase: u8,
    is_window_limited: u8,
    is_paced: u8,
    at_once: u8,
    offered: u32,
    rate: u32,
}

/// `struct host`.
#[repr(C)]
struct RawHost {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn host_new() -> *mut RawHost;
    fn host_free(host: *mut RawHost);
    fn flow_new(parameters: *const Parameters, seed: u64, host: *mut RawHost) -> *mut Flow;
    fn flow_set(flow: *mut Flow, parameters: *const Parameters);
    fn flow_tell(flow: *const Flow, told: *mut Telemetry);
    fn flow_free(flow: *mut Flow);
    fn flow_begin(flow: *mut Flow, view: *mut View);
    fn flow_acknowledged(flow: *mut Flow, view: *mut View, packets: u32, rtt_us: i32);
    fn flow_avoid(flow: *mut Flow, view: *mut View, acknowledged: u32);
    fn flow_threshold(flow: *mut Flow, view: *mut View) -> u32;
    fn flow_changed(flow: *mut Flow, view: *mut View, phase: u8);
}

/// A host that connections are sent to, which yield as one.
#[derive(Debug)]
pub(crate) struct Host {
    raw: NonNull<RawHost>,
}

impl Host {
    pub(crate) fn new() -> Self {
        let raw = unsafe { host_new() };
        Self {
            raw: NonNull::new(raw).expect("there is memory for a host"),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        unsafe { host_free(self.raw.as_ptr()) }
    }
}

/// A congestion control of the kernel at work.
pub(crate) struct Kernel {
    flow: NonNull<Flow>,
    /// The flow refers to it.
    _host: Rc<Host>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Kernel")
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        unsafe { flow_free(self.flow.as_ptr()) }
    }
}

impl Kernel {
    /// One with these parameters, together with others to the host.
    pub(crate) fn new(parameters: &CongestionParameters, seed: u64, host: Rc<Host>) -> Self {
        let parameters = Parameters(parameters.to_bytes());
        let flow = unsafe { flow_new(&raw const parameters, seed, host.raw.as_ptr()) };
        Self {
            flow: NonNull::new(flow).expect("there is memory for a flow"),
            _host: host,
        }
    }

    /// Sets other parameters. Their law must be of the same congestion control, which is
    /// chosen once.
    pub(crate) fn set(&mut self, parameters: &CongestionParameters) {
        let parameters = Parameters(parameters.to_bytes());
        unsafe { flow_set(self.flow.as_ptr(), &raw const parameters) }
    }

    /// The state that it shows to a process; `None` before the first round trip.
    pub(crate) fn told(&self) -> Option<Told> {
        let mut told = Telemetry([0; 88]);
        unsafe { flow_tell(self.flow.as_ptr(), &raw mut told) }
        Told::from_bytes(told.0)
    }

    /// Calls the program with the state of the connection, and takes what it has set.
    fn call(&mut self, state: &mut CongestionState, program: impl FnOnce(*mut Flow, &mut View)) {
        let mut view = view(state);
        let before = (view.window, view.threshold);
        program(self.flow.as_ptr(), &mut view);
        if view.window != before.0 {
            state.window = f64::from(view.window);
        }
        if view.threshold != before.1 {
            state.threshold = f64::from(view.threshold);
        }
        state.min_burst = u32::from(view.at_once);
        state.pacing = (view.is_paced != 0).then(|| match view.rate {
            0 => pacing(state),
            rate => f64::from(rate),
        });
    }

    pub(crate) fn begin(&mut self, state: &mut CongestionState) {
        self.call(state, |flow, view| unsafe { flow_begin(flow, view) });
    }

    pub(crate) fn measure(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        let rtt_us = ack.rtt.map_or(-1, |rtt| rtt.as_micros() as i32);
        self.call(state, |flow, view| unsafe {
            flow_acknowledged(flow, view, ack.segments, rtt_us);
        });
    }

    pub(crate) fn avoid(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        self.call(state, |flow, view| unsafe {
            flow_avoid(flow, view, ack.segments);
        });
    }

    pub(crate) fn threshold(&mut self, state: &CongestionState) -> f64 {
        let mut view = view(state);
        let threshold = unsafe { flow_threshold(self.flow.as_ptr(), &mut view) };
        f64::from(threshold)
    }

    pub(crate) fn enter(&mut self, state: &mut CongestionState, phase: Phase) {
        self.call(state, |flow, view| unsafe {
            flow_changed(flow, view, number(phase));
        });
    }
}

/// In `enum tcp_ca_state`.
pub(crate) fn number(phase: Phase) -> u8 {
    match phase {
        Phase::Open => 0,
        Phase::Reduction => 2,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    }
}

/// Numbers of bytes and packets wrap, as the kernel's do.
fn view(state: &CongestionState) -> View {
    let now_us = state.now.as_micros() as u64;
    View {
        now_us,
        next_us: now_us,
        acknowledged: state.acknowledged as u32,
        next: state.next as u32,
        window: state.window as u32,
        threshold: if state.threshold.is_finite() {
            state.threshold as u32
        } else {
            INFINITE_THRESHOLD
        },
        delivered: state.delivered as u32,
        outstanding: state.outstanding,
        max_outstanding: state.max_outstanding,
        segment: SEGMENT as u32,
        least_rtt_us: state.min_rtt.as_micros() as u32,
        phase: number(state.phase),
        is_window_limited: u8::from(state.is_window_limited),
        is_paced: 0,
        at_once: 0,
        offered: u32::try_from(state.offered).unwrap_or(u32::MAX),
        rate: 0,
    }
}

/// The rate of a paced connection, byte/s (`tcp_update_pacing_rate`).
fn pacing(state: &CongestionState) -> f64 {
    let is_early = state.window < state.threshold / 2.0;
    let factor = if is_early { EARLY_PACING } else { PACING };
    let window = state.window.max(f64::from(state.outstanding));
    factor * window * SEGMENT as f64 / state.rtt.max(1e-6)
}
