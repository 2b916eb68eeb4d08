//! What arrives at random: drawn before the run, so that nothing that happens
//! on the network changes it. Knows neither clients nor servers.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;

/// A value of the exponential distribution with this mean.
pub fn exponential(rng: &mut StdRng, mean: f64) -> f64 {
    // 1 − u is in (0, 1]: the logarithm is finite.
    -mean * (1.0 - rng.random::<f64>()).ln()
}

/// A transfer to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it begins.
    pub at: Duration,
    /// Its size, bytes; at least 1.
    pub bytes: u64,
}

/// Arrivals from `start` until before `stop` as a Poisson process of this
/// rate, 1/s, with sizes of exponential distribution around this mean, bytes.
pub fn draw(
    rng: &mut StdRng,
    (start, stop): (Duration, Duration),
    rate: f64,
    mean_bytes: f64,
) -> Vec<Arrival> {
    let length = stop.saturating_sub(start).as_secs_f64();
    let mut arrivals = Vec::new();
    let mut after = 0.0;
    loop {
        after += exponential(rng, 1.0 / rate);
        let bytes = exponential(rng, mean_bytes).round().max(1.0) as u64;
        if after >= length {
            return arrivals;
        }
        let at = start + Duration::from_secs_f64(after);
        arrivals.push(Arrival { at, bytes });
    }
}

/// The link, in bytes and seconds; `T` tells one flow's kind from another's.
#[derive(Debug)]
pub struct SharedLink<T> {
    /// Bytes per second.
    rate: f64,
    /// Flows that never end.
    lasting: u32,
    /// What each flow that was there from the first has been served, bytes.
    served: f64,
    flows: BinaryHeap<Flow<T>>,
}

/// A flow that ends.
#[derive(Debug)]
struct Flow<T> {
    /// It ends when [`SharedLink::served`] is here, bytes.
    end: f64,
    kind: T,
}

impl<T> Ord for Flow<T> {
    /// The first to end is the greatest: what a heap has on top.
    fn cmp(&self, other: &Self) -> Ordering {
        other.end.total_cmp(&self.end)
    }
}

impl<T> PartialOrd for Flow<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Flow<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Flow<T> {}

impl<T> SharedLink<T> {
    /// A link of this rate, byte/s, and nothing on it.
    pub fn new(rate: f64) -> Self {
        Self {
            rate,
            lasting: 0,
            served: 0.0,
            flows: BinaryHeap::new(),
        }
    }

    /// So many flows never end, from now on.
    pub fn lasting(&mut self, flows: u32) {
        self.lasting = flows;
    }

    /// A flow of so many bytes begins.
    pub fn begin(&mut self, bytes: f64, kind: T) {
        let end = self.served + bytes;
        self.flows.push(Flow { end, kind });
    }

    /// How long it takes until the next flow ends if none begins, s.
    pub fn until_end(&self) -> f64 {
        let next = self.flows.peek();
        next.map_or(f64::INFINITY, |flow| {
            (flow.end - self.served).max(0.0) / self.share()
        })
    }

    /// Lets so much time pass, s; at most until a flow ends.
    pub fn pass(&mut self, seconds: f64) {
        if seconds > 0.0 {
            self.served += seconds * self.share();
        }
    }

    /// Ends the flow whose turn it is.
    pub fn end(&mut self) -> Option<T> {
        let flow = self.flows.pop()?;
        self.served = flow.end;
        Some(flow.kind)
    }

    /// What each flow gets, byte/s.
    fn share(&self) -> f64 {
        let flows = self.lasting as usize + self.flows.len();
        self.rate / flows.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    const START: Duration = Duration::from_secs(3);
    const STOP: Duration = Duration::from_secs(1003);

    fn drawn(seed: u64, stop: Duration) -> Vec<Arrival> {
        let mut rng = StdRng::seed_from_u64(seed);
        draw(&mut rng, (START, stop), 5.0, 30_000.0)
    }

    #[test]
    fn same_source_same_arrivals() {
        assert_eq!(drawn(7, STOP), drawn(7, STOP));
        assert_ne!(drawn(7, STOP), drawn(8, STOP));
    }

    #[test]
    fn a_longer_time_begins_like_a_shorter_one() {
        assert!(drawn(7, 2 * STOP).starts_with(&drawn(7, STOP)));
    }

    #[test]
    fn rate_and_sizes_are_as_asked() {
        let drawn = drawn(1, STOP);
        // 5000 expected; the standard deviation of the count is 71.
        assert!((4700..5300).contains(&drawn.len()), "{}", drawn.len());
        let total: u64 = drawn.iter().map(|arrival| arrival.bytes).sum();
        let mean = total as f64 / drawn.len() as f64;
        // The standard deviation of the mean is 30000/sqrt(5000) = 424.
        assert!((28_000.0..32_000.0).contains(&mean), "{mean}");
        assert!(drawn.iter().all(|arrival| arrival.bytes >= 1));
        assert!(drawn.is_sorted_by_key(|arrival| arrival.at));
        assert!(drawn[0].at >= START);
        assert!(drawn[drawn.len() - 1].at < STOP);
    }

    #[test]
    fn what_is_there_is_shared_equally() {
        let mut link = SharedLink::new(100.0);
        link.begin(100.0, 'a');
        link.begin(200.0, 'b');
        assert_eq!(link.until_end(), 2.0);
        link.pass(2.0);
        assert_eq!(link.end(), Some('a'));
        // 100 bytes are left of it, and half of the link.
        link.lasting(1);
        assert_eq!(link.until_end(), 2.0);
        link.lasting(0);
        link.pass(0.5);
        assert_eq!(link.until_end(), 0.5);
        link.pass(0.5);
        assert_eq!(link.end(), Some('b'));
        assert_eq!(link.until_end(), f64::INFINITY);
        assert_eq!(link.end(), None);
    }
}
