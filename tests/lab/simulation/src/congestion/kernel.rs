//! The product's own congestion controls, whose programs run in the kernel: here the same C
//! is compiled for this machine (`ebpf/native.rs` of dalbe).

use dalbe::ebpf::native::{INFINITE_THRESHOLD, NativeFlow, NativeHost, SenderPhase, SenderView};
use dalbe::ebpf::{CongestionParameters, CongestionState as Told};

use crate::congestion::state::{Acknowledged, CongestionState, Phase};
use crate::packet::SEGMENT;

/// What the kernel paces by: so many times the window in a round trip, in early slow start
/// and later (`net.ipv4.tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
const EARLY_PACING: f64 = 2.0;
const PACING: f64 = 1.2;

/// A congestion control of the kernel at work.
#[derive(Debug)]
pub(crate) struct Kernel {
    flow: NativeFlow,
}

impl Kernel {
    /// One with these parameters, together with others to the host.
    pub(crate) fn new(parameters: &CongestionParameters, seed: u64, host: NativeHost) -> Self {
        Self {
            flow: NativeFlow::new(parameters, seed, host),
        }
    }

    /// Sets other parameters. Their law must be of the same congestion control, which is
    /// chosen once.
    pub(crate) fn set(&mut self, parameters: &CongestionParameters) {
        self.flow.set(parameters);
    }

    /// The state that it shows to a process; `None` before the first round trip.
    pub(crate) fn told(&self) -> Option<Told> {
        self.flow.told()
    }

    /// Calls the program with the state of the connection, and takes what it has set.
    fn call(
        &mut self,
        state: &mut CongestionState,
        program: impl FnOnce(&mut NativeFlow, &mut SenderView),
    ) {
        let mut view = view(state);
        let before = (view.window, view.threshold);
        program(&mut self.flow, &mut view);
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
        self.call(state, NativeFlow::begin);
    }

    pub(crate) fn measure(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        self.call(state, |flow, view| {
            flow.acknowledged(view, ack.segments, ack.rtt);
        });
    }

    pub(crate) fn avoid(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        self.call(state, |flow, view| flow.avoid(view, ack.segments));
    }

    pub(crate) fn threshold(&mut self, state: &CongestionState) -> f64 {
        f64::from(self.flow.threshold(&mut view(state)))
    }

    pub(crate) fn enter(&mut self, state: &mut CongestionState, phase: Phase) {
        self.call(state, |flow, view| flow.changed(view, told(phase)));
    }
}

/// In the words of the program.
fn told(phase: Phase) -> SenderPhase {
    match phase {
        Phase::Open => SenderPhase::Open,
        Phase::Reduction => SenderPhase::Reduction,
        Phase::Recovery => SenderPhase::Recovery,
        Phase::Loss => SenderPhase::Loss,
    }
}

/// In `enum tcp_ca_state`.
pub(crate) fn number(phase: Phase) -> u8 {
    told(phase) as u8
}

/// Numbers of bytes and packets wrap, as the kernel's do.
fn view(state: &CongestionState) -> SenderView {
    let now_us = state.now.as_micros() as u64;
    SenderView {
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
        noise_us: 0,
        phase: told(state.phase),
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
