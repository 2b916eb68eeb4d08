//! What came of a run, and the figures of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use dalbe::receive_window::PathFindings;

use crate::connection::Connection;
use lab_run::link::{PAYLOAD_SHARE, Rate};
use lab_run::samples::DirectionRecord;
use lab_run::scenario::Scenario;
use lab_run::statistics::{jain, mean, percentile};
use lab_run::traffic::sources::{Turn, Turns};

/// Rates are byte/s of payload over the time that is measured; delays are those at the
/// bottleneck above propagation, s; all of it in the direction of the data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// What the link could have carried.
    pub capacity: f64,
    /// What it carried of the foreground.
    pub foreground: f64,
    /// What it carried of the background.
    pub background: f64,
    /// Delays of the foreground's packets.
    pub foreground_delays: Vec<f64>,
    /// Delays of the background's packets.
    pub background_delays: Vec<f64>,
    /// Delays of datagrams.
    pub datagram_delays: Vec<f64>,
    /// Datagrams that were dropped.
    pub datagrams_lost: u64,
    /// How long fetches took, s, of those that began in that time. One that is not over
    /// when the run is has its time until then.
    pub fetches: Vec<f64>,
    /// Of those, how many were not over.
    pub unfinished: usize,
    /// What came of each connection of the background and of those that went on for it,
    /// bytes, by the number of the first. What was sent twice counts twice.
    pub shares: BTreeMap<usize, f64>,
    /// What the background took of turns, and used of pauses, bytes.
    pub turns: Option<TurnFigures>,
    /// What the last connection of the background has seen of its path, if the product's
    /// law holds its window.
    pub findings: Option<PathFindings>,
    /// The background, from time to time.
    pub trace: Vec<TracePoint>,
}

/// Of a foreground with pauses: the background's payload, and that of the full link,
/// bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TurnFigures {
    /// While the foreground sends.
    pub on: (f64, f64),
    /// While it is silent.
    pub off: (f64, f64),
}

/// The newest connection of the background at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracePoint {
    /// When, s.
    pub at_s: f64,
    /// The sender's congestion window, segments.
    pub congestion_window: f64,
    /// The receive window on offer, segments.
    pub offered: f64,
    /// From one read to the next, ms, if reads are paused.
    pub pause_ms: Option<f64>,
    /// The sender's smoothed round-trip time, ms.
    pub rtt_ms: f64,
    /// Rate since the point before, Mbit/s: of the foreground, of the background.
    pub mbit: (f64, f64),
}

/// What is left of a run that is recorded.
pub(crate) struct Remains {
    /// What the link saw, in the direction of the data and against it.
    pub(crate) directions: [DirectionRecord; 2],
    /// What the receivers of each flow had got by each 100 ms, bytes: those of the
    /// foreground, then each connection of the background.
    pub(crate) received: Vec<Vec<u64>>,
    /// All of them, those of the background in the order of these flows.
    pub(crate) connections: Vec<Connection>,
}

impl Figures {
    /// Takes what the link saw.
    pub(crate) fn take_record(
        &mut self,
        scenario: &Scenario,
        record: &DirectionRecord,
        turns: Option<Turns>,
    ) {
        let measured = scenario.measured();
        let rate = Rate::of(&scenario.link[0].forward());
        let samples = &record.samples;
        let step = samples.interval_ms as f64 / 1e3;
        let mut sums = (0.0, 0.0, 0.0);
        let mut by_turn = TurnFigures::default();
        for (index, (&foreground, &background)) in samples
            .foreground
            .iter()
            .zip(&samples.background)
            .enumerate()
        {
            let from = index as f64 * step;
            if !is_within(&measured, from + step / 2.0) {
                continue;
            }
            let capacity = match samples.capacity.get(index) {
                Some(&bytes) => bytes as f64,
                None => rate.capacity(from, from + step),
            };
            let capacity = capacity * PAYLOAD_SHARE;
            let background = background as f64;
            sums.0 += capacity;
            sums.1 += foreground as f64;
            sums.2 += background;
            let moment = Duration::from_secs_f64(from + step / 2.0);
            let turn = match turns.map(|turns| turns.at(moment)) {
                Some(Turn::On(_)) => &mut by_turn.on,
                Some(Turn::Off(_)) => &mut by_turn.off,
                Some(Turn::Over) | None => continue,
            };
            *turn = (turn.0 + background, turn.1 + capacity);
        }
        let length = measured.end - measured.start;
        self.capacity = sums.0 / length;
        self.foreground = sums.1 / length;
        self.background = sums.2 / length;
        self.turns = turns.map(|_| by_turn);
    }

    /// The foreground's goodput in parts of what it has alone; `None` where it has none.
    #[must_use]
    pub fn kept(&self, alone: &Self) -> Option<f64> {
        (alone.foreground > 0.0).then(|| self.foreground / alone.foreground)
    }

    /// Jain's index of the background's connections; `None` of a single one.
    #[must_use]
    pub fn jain(&self) -> Option<f64> {
        let shares: Vec<f64> = self.shares.values().copied().collect();
        jain(&shares).filter(|_| shares.len() > 1)
    }

    /// The background's part of what the foreground left.
    #[must_use]
    pub fn rest_used(&self) -> Option<f64> {
        let rest = self.capacity - self.foreground;
        (rest > 0.0).then(|| self.background / rest)
    }

    /// The mean fetch time in parts of that without the background.
    #[must_use]
    pub fn fetch_time(&self, alone: &Self) -> Option<f64> {
        Some(mean(&self.fetches)? / mean(&alone.fetches)?)
    }

    /// The mean delay of the foreground's packets, or of the background's where there
    /// are none, s.
    #[must_use]
    pub fn delay(&self) -> Option<f64> {
        mean(&self.foreground_delays).or_else(|| mean(&self.background_delays))
    }

    /// The delay that 1 % of the datagrams exceed, s.
    #[must_use]
    pub fn datagram_delay(&self) -> Option<f64> {
        percentile(&self.datagram_delays, 0.99)
    }

    /// The share of the datagrams that was dropped.
    #[must_use]
    pub fn datagram_loss(&self) -> Option<f64> {
        let lost = self.datagrams_lost as f64;
        let all = lost + self.datagram_delays.len() as f64;
        (all > 0.0).then(|| lost / all)
    }
}

impl TurnFigures {
    /// The background's part of the link while the foreground is silent.
    #[must_use]
    pub fn pauses_used(&self) -> f64 {
        self.off.0 / self.off.1
    }

    /// The background's part of the link while the foreground sends.
    #[must_use]
    pub fn turns_taken(&self) -> f64 {
        self.on.0 / self.on.1
    }
}

/// Whether a moment is measured.
pub(crate) fn is_within(measured: &Range<f64>, moment_s: f64) -> bool {
    measured.contains(&moment_s)
}
