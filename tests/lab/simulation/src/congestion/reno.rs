//! Reno (RFC 5681).

use crate::congestion::state::{Acknowledged, CongestionState};

pub(crate) fn avoid(state: &mut CongestionState, ack: &Acknowledged) {
    if !state.may_grow() {
        return;
    }
    let mut acknowledged = f64::from(ack.segments);
    if state.is_slow_start() {
        acknowledged = state.slow_start(acknowledged);
    }
    state.window += acknowledged / state.window;
}

/// Half of the window.
pub(crate) fn threshold(state: &CongestionState) -> f64 {
    (state.window / 2.0).floor().max(2.0)
}
