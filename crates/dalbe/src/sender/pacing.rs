//! The plain sender rung: the rate of the packets is held below a ceiling
//! (`SO_MAX_PACING_RATE`), by what the kernel reports of the connection.

mod samples;

use std::time::Duration;

use self::samples::AckSamples;
use crate::brake::{Arrivals, Brake, BrakeState, Order};
use crate::socket::TcpInfo;

const SOONEST: Duration = Duration::from_millis(10);
const LATEST: Duration = Duration::from_millis(50);
const LOOKS: u32 = 4;

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Ceiling on the rate of the packets, byte/s; `None` for no ceiling.
    pub rate: Option<u64>,
    /// Whether it holds the flow back for somebody else.
    pub is_yielding: bool,
    /// Until the next look.
    pub next: Duration,
}

/// The rate of one connection under control.
#[derive(Debug, Clone)]
pub struct Pacer {
    brake: Brake,
    samples: AckSamples,
    rtt: Option<Duration>,
    pub debug: (f64, f64),
}

impl Pacer {
    /// For a connection of which nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self { brake: Brake::new().doubting(1.5), samples: AckSamples::default(), rtt: None, debug: (0.0, 0.0) }
    }

    pub fn brake(&self) -> &Brake {
        &self.brake
    }

    pub fn update(&mut self, now: Duration, info: &TcpInfo, order: Order) -> Option<Pace> {
        let newest = self.samples.newest(info);
        self.rtt = newest.or(self.rtt);
        let rtt = self.rtt?;
        let bytes = info.bytes_acked?;
        let mss = info.snd_mss.max(536);
        self.brake.arrived(
            now,
            &Arrivals {
                delay_us: newest.map(|rtt| rtt.as_micros() as i64),
                tick: Duration::from_micros(1),
                ..Arrivals::default()
            },
        );
        let seen = TcpInfo {
            rcv_mss: mss,
            rtt: Some(rtt),
            rcv_rtt: Some(rtt),
            bytes_received: Some(bytes),
            data_segs_in: Some((bytes / u64::from(mss)) as u32),
            rcv_ooopack: Some(info.total_retrans.wrapping_mul(3)),
            min_rtt: None,
            ..*info
        };
        let window = f64::from(self.brake.update(now, &seen, order, None)?);
        let rate = match self.brake.pause() {
            Some(pause) => 2.0 * f64::from(mss) / pause.as_secs_f64(),
            None => window / rtt.as_secs_f64(),
        };
        self.debug = (window / f64::from(mss), rtt.as_secs_f64());
        Some(Pace {
            rate: (order.w < 1.0).then_some((rate as u64).max(1000)),
            is_yielding: self.brake.state() == BrakeState::Yielding,
            next: (rtt / LOOKS).clamp(SOONEST, LATEST),
        })
    }
}
