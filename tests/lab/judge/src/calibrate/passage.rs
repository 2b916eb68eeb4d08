//! Datagrams through a link of their own.

use std::io;
use std::time::Duration;

use crate::calibrate::datagrams::{Arrival, Pattern, Receiver, send};
use crate::calibrate::{build, with_link};
use lab_run::samples::LinkRecord;
use lab_run::scenario::LinkSpec;

/// Length of a full packet, bytes.
pub(crate) const FULL: usize = 1500;

/// Which way packets go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// In the direction of the data.
    Forward,
    /// In the other one.
    Backward,
}

impl Way {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Forward => "",
            Self::Backward => ", backward",
        }
    }
}

/// Sends patterns through a link of their own, all at once, waits for the last to
/// come, and returns all that came and what the link says.
pub(crate) fn through(
    link: &LinkSpec,
    patterns: &[Pattern],
    way: Way,
    patience: Duration,
) -> io::Result<(Vec<Arrival>, LinkRecord)> {
    let (topology, clock) = build(&with_link(link.clone()))?;
    let [left, right] = topology.hosts() else {
        unreachable!("one link joins two hosts");
    };
    let (from, to) = match way {
        Way::Forward => (left, right),
        Way::Backward => (right, left),
    };
    let receiver = Receiver::start(to, clock)?;
    std::thread::scope(|scope| {
        let senders = patterns.iter();
        let senders = senders.map(|pattern| scope.spawn(|| send(from, to, *pattern, clock)));
        let senders: Vec<_> = senders.collect();
        let mut sent = senders.into_iter();
        sent.try_for_each(|sender| sender.join().expect("a sender does not panic"))
    })?;
    clock.sleep_until(clock.now() + Duration::from_secs_f64(link.delay_ms / 1e3) + patience);
    let arrivals = receiver.finish()?;
    let mut links = topology.finish()?;
    for pattern in patterns {
        let in_order = of_flow(&arrivals, pattern.flow).is_sorted_by_key(|one| one.number);
        assert!(in_order, "a link must not reorder packets of a flow");
    }
    Ok((arrivals, links.remove(0)))
}

/// What came of a flow.
pub(crate) fn of_flow(arrivals: &[Arrival], flow: u64) -> Vec<Arrival> {
    let all = arrivals.iter().filter(|arrival| arrival.flow == flow);
    all.copied().collect()
}

/// What came from one moment to another (s).
pub(crate) fn between(arrivals: &[Arrival], from: f64, until: f64) -> Vec<Arrival> {
    let all = arrivals.iter();
    let all = all.filter(|arrival| (from..until).contains(&arrival.came));
    all.copied().collect()
}

/// How long each was on its way, ms.
pub(crate) fn delays(arrivals: &[Arrival]) -> Vec<f64> {
    let all = arrivals.iter();
    all.map(|arrival| (arrival.came - arrival.sent) * 1e3)
        .collect()
}

/// What came between the first and the last, Mbit/s.
pub(crate) fn rate_of(arrivals: &[Arrival]) -> f64 {
    let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else {
        return 0.0;
    };
    let bytes: usize = arrivals[1..].iter().map(|arrival| arrival.bytes).sum();
    bytes as f64 * 8.0 / 1e6 / (last.came - first.came).max(1e-9)
}
