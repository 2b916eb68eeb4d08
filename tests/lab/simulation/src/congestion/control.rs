//! The congestion controls of senders, as one. The order of calls is Linux's: `measure`,
//! then `threshold` and `enter` where the phase changes, then `avoid` unless the sender
//! reduces the window itself.

use std::time::Duration;

use crate::congestion::bbr::Bbr;
use crate::congestion::cubic::Cubic;
use crate::congestion::kernel::Kernel;
use crate::congestion::ledbat::Ledbat;
use crate::congestion::reno;
use crate::congestion::rival::RivalControl;
use crate::congestion::state::{Acknowledged, CongestionState, Phase};

/// One of them at work.
#[derive(Debug)]
pub(crate) enum Control {
    Cubic(Cubic),
    Reno,
    Bbr(Box<Bbr>),
    Ledbat(Ledbat),
    Kernel(Kernel),
    Rival(RivalControl),
}

impl Control {
    /// The one of this name, as Linux has it.
    pub(crate) fn named(name: &str, seed: u64) -> Option<Self> {
        match name {
            "cubic" => Some(Self::Cubic(Cubic::default())),
            "reno" => Some(Self::Reno),
            "bbr" => Some(Self::Bbr(Box::new(Bbr::new(seed)))),
            _ => None,
        }
    }

    /// The connection is open.
    pub(crate) fn begin(&mut self, state: &mut CongestionState) {
        match self {
            Self::Bbr(bbr) => bbr.begin(state),
            Self::Kernel(kernel) => kernel.begin(state),
            Self::Rival(rival) => rival.begin(state),
            Self::Cubic(_) | Self::Reno | Self::Ledbat(_) => {}
        }
    }

    /// An acknowledgement has come.
    pub(crate) fn measure(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        match self {
            Self::Cubic(cubic) => cubic.measure(state, ack),
            Self::Kernel(kernel) => kernel.measure(state, ack),
            Self::Rival(rival) => rival.measure(state, ack),
            Self::Reno | Self::Bbr(_) | Self::Ledbat(_) => {}
        }
    }

    /// Sets the window after it.
    pub(crate) fn avoid(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        match self {
            Self::Cubic(cubic) => cubic.avoid(state, ack),
            Self::Reno => reno::avoid(state, ack),
            Self::Bbr(bbr) => bbr.update(state, ack),
            Self::Ledbat(ledbat) => ledbat.avoid(state, ack),
            Self::Kernel(kernel) => kernel.avoid(state, ack),
            Self::Rival(rival) => rival.avoid(state, ack),
        }
    }

    /// The threshold after a loss or a mark, segments.
    pub(crate) fn threshold(&mut self, state: &CongestionState) -> f64 {
        match self {
            Self::Cubic(cubic) => cubic.threshold(state),
            Self::Reno | Self::Ledbat(_) => reno::threshold(state),
            Self::Bbr(bbr) => bbr.threshold(state),
            Self::Kernel(kernel) => kernel.threshold(state),
            Self::Rival(rival) => rival.threshold(state),
        }
    }

    /// A phase begins.
    pub(crate) fn enter(&mut self, state: &mut CongestionState, phase: Phase) {
        match self {
            Self::Cubic(cubic) if phase == Phase::Loss => *cubic = Cubic::default(),
            Self::Bbr(bbr) => bbr.enter(state, phase),
            Self::Kernel(kernel) => kernel.enter(state, phase),
            Self::Rival(rival) => rival.enter(state, phase),
            Self::Cubic(_) | Self::Reno | Self::Ledbat(_) => {}
        }
    }

    /// The connection was idle for so long.
    pub(crate) fn resume(&mut self, now: Duration, idle: Duration) {
        if let Self::Cubic(cubic) = self {
            cubic.resume(now, idle);
        }
    }

    /// Whether it sets the window itself: in recovery, and after an idle time.
    pub(crate) fn owns_window(&self) -> bool {
        matches!(self, Self::Bbr(_))
    }
}
