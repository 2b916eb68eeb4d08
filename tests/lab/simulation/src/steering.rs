//! A sender of the lab's while it sends: what [`lab_run::contender::steering`] makes of what
//! is seen of it, in virtual time.

use std::time::Duration;

use crate::congestion::control::Control;
use crate::packet::SEGMENT;
use crate::sender::Sender;
use lab_run::contender::Sending;
use lab_run::contender::steering::{SenderLaw, Steered};
use lab_run::contender::weigh::Reading;
use lab_run::samples::BackgroundRecord;
use lab_run::scenario::Background;

/// How often the sender is looked at, as in the lab.
pub(crate) const STEER: Duration = Duration::from_millis(10);

/// What steers one connection.
#[derive(Debug)]
pub(crate) struct Steering {
    steered: Steered,
    /// `None` where the kernel's own congestion control sends.
    law: Option<SenderLaw>,
    /// Segments that had been delivered when the sender was last looked at.
    delivered: u64,
}

impl Steering {
    /// Of the connection with this number that moves so many bytes from `start` on, or has no
    /// end.
    pub(crate) fn new(
        background: &Background,
        sending: Sending,
        size: Option<u64>,
        number: u32,
        start: Duration,
    ) -> Self {
        let law = sending.law();
        Self {
            steered: Steered::new(background, size, law, start),
            law: law.map(|law| SenderLaw::of(law, background, number)),
            delivered: 0,
        }
    }

    /// Looks at the sender, and has it do what there is to do now.
    pub(crate) fn look(&mut self, now: Duration, sender: &mut Sender) {
        let mut kernel = match &mut sender.control {
            Control::Kernel(kernel) => Some(kernel),
            _ => None,
        };
        let state = &sender.state;
        let before = std::mem::replace(&mut self.delivered, state.delivered);
        let reading = Reading {
            now,
            acked: state.acknowledged,
            carried: (state.delivered - before) * SEGMENT,
            rtt: Duration::from_secs_f64(state.rtt),
            least_rtt: state.min_rtt,
            segment: SEGMENT as f64,
            state: kernel.as_ref().and_then(|kernel| kernel.told()),
        };
        let order = self.steered.look(&reading, state.window as u32);
        if let (Some(kernel), Some(law)) = (&mut kernel, &self.law) {
            kernel.set(&law.parameters(order));
        }
    }

    /// The samples that were taken.
    pub(crate) fn into_record(self) -> BackgroundRecord {
        self.steered.into_record()
    }
}
