//! A delay that does not change: the path has become longer.
//!
//! A flow that is at rest beside other traffic cannot see the round-trip time without a
//! queue, and must not forget it. But no traffic keeps a queue of one length for long. All
//! functions follow from their arguments.

use std::time::Duration;

/// A delay is flat if it changes by no more than this, s, ...
const MAX_CHANGE: f64 = 0.002;
/// ... plus this share of the base, ...
const MAX_CHANGE_SHARE: f64 = 0.01;
/// ... nor by more than this share of itself: CoDel keeps short queues that change, ...
const MAX_CHANGE_OF_SHORT: f64 = 0.5;
/// ... for this time. No traffic keeps such a queue: CUBIC's sawtooth takes
/// some seconds, and BBR probes every eight round trips. A flat delay is the
/// path's own. A short one may be the wait for a burst of which little is seen at rest.
const MIN_TIME: Duration = Duration::from_secs(10);

/// A queue of others becomes shorter within a round trip when a flow gives up much of what
/// the path carries. A delay that does not is the path's own after this time ...
const MIN_TIME_AS_LOADED: Duration = Duration::from_secs(3);
/// ... and so many samples, ...
const MIN_SAMPLES_AS_LOADED: u32 = 10;
/// ... if it is more than this many times what it may change.
const MIN_LONG_CHANGES: f64 = 4.0;

/// The delay of a flow at rest.
#[derive(Debug, Clone, Default)]
pub(super) struct FlatDelay {
    flat: Option<Flat>,
    loaded: Option<Loaded>,
}

/// Since when the delay is flat.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Flat {
    since: Duration,
    /// Queueing delay, s.
    min: f64,
    max: f64,
    /// Segments received out of order so far.
    out_of_order: u32,
}

/// The delay while the flow carried much, as long as it has not changed since.
#[derive(Debug, Clone, Copy)]
struct Loaded {
    /// Least and longest queueing delay with load and since then, s.
    min: f64,
    max: f64,
    /// When the flow came to rest.
    rested: Option<Duration>,
    /// Samples since then.
    samples: u32,
    /// Whether the last sample was later.
    was_late: bool,
}

impl Loaded {
    /// Takes the queueing delay of a flow at rest, s, which may change by `varies`, s. Returns
    /// the same for the next one if the delay is as before.
    fn at_rest(mut self, now: Duration, queue: f64, varies: f64) -> Option<Self> {
        // A single one that is late tells nothing: the host may have paused.
        let is_late = queue > self.min + varies;
        let is_shorter = queue < self.max - varies;
        if is_shorter || is_late && self.was_late || self.min < MIN_LONG_CHANGES * varies {
            return None;
        }
        if !is_late {
            (self.min, self.max) = (self.min.min(queue), self.max.max(queue));
        }
        self.was_late = is_late;
        self.rested.get_or_insert(now);
        self.samples += 1;
        Some(self)
    }

    /// Whether the delay has been the same for long enough.
    fn is_proven(&self, now: Duration) -> bool {
        self.samples >= MIN_SAMPLES_AS_LOADED
            && self.rested.is_some_and(|at| now >= at + MIN_TIME_AS_LOADED)
    }
}

impl FlatDelay {
    /// Takes the queueing delay of a flow that is not at rest, s, and whether it carries much
    /// of what the path carries.
    pub(super) fn move_on(&mut self, queue: Option<f64>, carries_much: bool) {
        let last = self.loaded.map(|loaded| loaded.max);
        let delay = queue.or(last).filter(|_| carries_much);
        self.loaded = delay.map(|delay| Loaded {
            min: delay,
            max: delay,
            rested: None,
            samples: 0,
            was_late: false,
        });
        self.flat = None;
    }

    /// Takes the queueing delay of a flow at rest, s, on a path of this round-trip time without
    /// a queue, s, which has received so many segments out of order so far. Returns whether the
    /// path has become longer.
    pub(super) fn is_longer_path(
        &mut self,
        now: Duration,
        queue: f64,
        base: f64,
        out_of_order: u32,
    ) -> bool {
        let varies = MAX_CHANGE + MAX_CHANGE_SHARE * base;
        let loaded = self.loaded.take();
        self.loaded = loaded.and_then(|loaded| loaded.at_rest(now, queue, varies));
        let fresh = Flat {
            since: now,
            min: queue,
            max: queue,
            out_of_order,
        };
        let flat = self.flat.get_or_insert(fresh);
        flat.min = flat.min.min(queue);
        flat.max = flat.max.max(queue);
        let short = MAX_CHANGE_OF_SHORT * flat.min;
        if flat.max - flat.min > varies.min(short) || out_of_order != flat.out_of_order {
            *flat = fresh;
        }
        let is_flat = now >= flat.since + MIN_TIME && flat.min > 0.0;
        let is_longer = is_flat || self.loaded.is_some_and(|loaded| loaded.is_proven(now));
        if is_longer {
            *self = Self::default();
        }
        is_longer
    }
}

#[cfg(test)]
mod tests {
    use crate::receive_window::LeastRtt;
    use crate::receive_window::delays::QueueDelays;
    use crate::socket::TcpInfo;

    use super::*;

    /// The base after a path of 60 ms, which becomes one of `before`, and then these averages
    /// of the kernel, in µs, over and over again, of a flow at rest that gets two segments
    /// every quarter of a second.
    fn base_after(before: u64, averages: &[u64], seconds: usize, carries_much: bool) -> Duration {
        const ACTIVE: u32 = 30;
        let mut delays = QueueDelays::default();
        let first = [[60_000; 20].as_slice(), &[before; 10]].concat();
        let rest = averages.iter().copied().cycle();
        let all = first.into_iter().chain(rest.take(4 * seconds));
        let mut base = Duration::ZERO;
        for (look, average) in (0..).zip(all) {
            let now = Duration::from_millis(250 * u64::from(look));
            let rtt = Duration::from_micros(average);
            let info = TcpInfo {
                rcv_rtt: Some(rtt),
                data_segs_in: Some(2 * look),
                ..TcpInfo::parse(&[0; 240]).unwrap()
            };
            let sample = delays.update(now, &info, rtt, LeastRtt::default(), true);
            if look < ACTIVE {
                delays.move_on(&sample, carries_much);
            } else {
                delays.keep(now, &sample, 0);
            }
            base = sample.base;
        }
        base
    }

    const SHORT: Duration = Duration::from_millis(60);
    /// Samples of 101 and 102 ms; and once in a while the kernel takes over the time of a
    /// whole window, 101 ms, as it is. Computed back, that would be a sample of 96 ms.
    const LONGER: [u64; 7] = [
        101_000, 101_125, 101_234, 101_330, 101_414, 101_487, 101_552,
    ];

    #[test]
    fn a_longer_path_is_known_by_a_flat_delay() {
        assert_eq!(base_after(101_000, &LONGER, 9, false), SHORT);
        let base = base_after(101_000, &LONGER, 15, false);
        assert!((101_000..=101_600).contains(&base.as_micros()), "{base:?}");
    }

    #[test]
    fn a_flow_that_is_in_step_with_bursts_does_not_starve() {
        let in_step = [62_000, 62_000, 62_030, 62_010, 61_980, 62_000];
        assert_eq!(base_after(60_100, &in_step, 9, true), SHORT);
        assert!(base_after(60_100, &in_step, 15, true) > Duration::from_micros(61_500));
    }

    #[test]
    fn it_is_known_soon_if_the_delay_is_as_long_as_with_load() {
        let longer = Duration::from_micros(101_000)..Duration::from_micros(101_600);
        assert_eq!(base_after(101_000, &LONGER, 2, true), SHORT);
        let base = base_after(101_000, &LONGER, 6, true);
        assert!(longer.contains(&base), "{base:?}");
        // A single sample that is late is none.
        let late = [LONGER.as_slice(), &[102_100, 101_500]].concat();
        let base = base_after(101_000, &late, 6, true);
        assert!(longer.contains(&base), "{base:?}");
    }

    #[test]
    fn a_queue_that_changes_when_the_flow_gives_up_its_part_is_no_longer_path() {
        // Somebody has left, or somebody has come who fills the queue from then on.
        for before in [130_000, 61_000, 75_000] {
            assert_eq!(base_after(before, &LONGER, 9, true), SHORT);
        }
        // It falls for a round trip, and then is as long as before.
        let falls = [[80_000].as_slice(), &[101_300; 100]].concat();
        assert_eq!(base_after(101_000, &falls, 9, true), SHORT);
    }

    #[test]
    fn a_queue_that_rises_and_falls_is_no_longer_path() {
        // CUBIC's sawtooth, of some seconds, in a short queue.
        let queue: Vec<_> = (0..24).map(|look| 90_000 + 250 * look).collect();
        assert_eq!(base_after(90_000, &queue, 60, true), SHORT);
        // CoDel's, which is short, but changes.
        let queue = [60_500, 61_500, 62_000, 61_200];
        assert_eq!(base_after(60_500, &queue, 60, true), SHORT);
    }
}
