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
/// ... for this time. No traffic keeps such a queue: CUBIC's sawtooth takes
/// some seconds, and BBR probes every eight round trips. A flat delay is the
/// path's own, if it is longer than it may change: CoDel keeps a queue of 5 ms.
const MIN_TIME: Duration = Duration::from_secs(10);
/// A queue of others gets shorter when a flow gives up most of what the path carries. If the
/// delay is as long as with that load, it is the path's own after this time.
const MIN_TIME_AS_LOADED: Duration = Duration::from_secs(3);
/// That would not show in a delay of fewer times what it may change. A longer one may once be
/// longer still: that is a processor that was taken away.
const MIN_CHANGES: f64 = 4.0;

/// The delay of a flow at rest.
#[derive(Debug, Clone, Default)]
pub(super) struct FlatDelay {
    /// The last queueing delay while the flow carried most of what the path carries, s.
    loaded: Option<f64>,
    /// The last one at rest, s.
    last: Option<f64>,
    flat: Option<Flat>,
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

impl FlatDelay {
    /// Takes the queueing delay of a flow that is not at rest, s, and whether it carries most
    /// of what the path carries.
    pub(super) fn move_on(&mut self, queue: Option<f64>, carries_most: bool) {
        self.loaded = queue.filter(|_| carries_most).or(self.loaded);
        self.last = None;
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
        let least = self.last.map_or(queue, |last| last.min(queue));
        self.last = Some(queue);
        let is_long = least > MIN_CHANGES * varies;
        let queue = if is_long { least } else { queue };
        let fresh = Flat {
            since: now,
            min: queue,
            max: queue,
            out_of_order,
        };
        let flat = self.flat.get_or_insert(fresh);
        flat.min = flat.min.min(queue);
        flat.max = flat.max.max(queue);
        if flat.max - flat.min > varies || out_of_order != flat.out_of_order {
            *flat = fresh;
            return false;
        }
        let is_as_loaded = is_long && self.loaded.is_some_and(|most| most <= flat.max + varies);
        let min_time = if is_as_loaded {
            MIN_TIME_AS_LOADED
        } else {
            MIN_TIME
        };
        let is_longer = now >= flat.since + min_time && flat.min > varies;
        if is_longer {
            *self = Self::default();
        }
        is_longer
    }
}

#[cfg(test)]
mod tests {
    use crate::receive_window::delays::QueueDelays;
    use crate::socket::TcpInfo;

    use super::*;

    /// The base after a path of 60 ms, which becomes one of `before`, and then these averages
    /// of the kernel, in µs, over and over again, of a flow at rest that gets two segments
    /// every quarter of a second.
    fn base_after(before: u64, averages: &[u64], seconds: usize, carried_most: bool) -> Duration {
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
                ..TcpInfo::parse(&[0; 240]).unwrap()
            };
            let sample = delays.update(now, &info, rtt, 2 * look, true);
            if look < ACTIVE {
                delays.move_on(&sample, carried_most);
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
    fn it_is_known_soon_if_the_delay_is_as_long_as_with_most_of_the_load() {
        assert_eq!(base_after(101_000, &LONGER, 2, true), SHORT);
        assert!(base_after(101_000, &LONGER, 6, true) > SHORT);
        // A single one that is longer is none.
        let with_late = [LONGER.as_slice(), &[102_500]].concat();
        assert!(base_after(101_000, &with_late, 6, true) > SHORT);
        // A queue of others has become shorter.
        assert_eq!(base_after(130_000, &LONGER, 9, true), SHORT);
    }

    #[test]
    fn a_queue_that_rises_and_falls_is_no_longer_path() {
        // CUBIC's sawtooth, of some seconds, in a short queue.
        let queue: Vec<_> = (0..24).map(|look| 90_000 + 250 * look).collect();
        assert_eq!(base_after(90_000, &queue, 60, true), SHORT);
        // CoDel's, which is never longer than a flat one may change.
        let queue = [60_500, 61_500, 62_000, 61_200];
        assert_eq!(base_after(60_500, &queue, 60, true), SHORT);
    }
}
