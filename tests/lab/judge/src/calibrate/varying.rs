//! The figures of a link that does not stay as it is.

use std::io;
use std::time::Duration;

use crate::calibrate::datagrams::{Arrival, Pattern};
use crate::calibrate::passage::{FULL, Way, between, delays, rate_of, through};
use crate::calibrate::{Figure, usual_link};
use lab_run::scenario::{DelayStep, LinkSpec, Radio};
use lab_run::statistics::percentile;

/// What is checked.
pub(super) const CHECKS: [fn() -> io::Result<Vec<Figure>>; 5] =
    [radio, walk, aggregation, delay_steps, jitter_share];

/// How often the share of a rate is drawn, ms.
const EVERY_MS: f64 = 50.0;

/// The least share.
const LEAST: f64 = 0.4;

/// How long a rate that varies is watched, s.
const SECONDS: f64 = 4.0;

fn radio() -> io::Result<Vec<Figure>> {
    let shares = fading(None)?;
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    // Of independent draws with a uniform distribution.
    let deviation = (1.0 - LEAST) / (12.0 * shares.len() as f64).sqrt();
    let middle = f64::midpoint(LEAST, 1.0);
    let mut figures = vec![Figure::new(
        "radio, 40 to 100 % each 50 ms: mean (4 standard deviations)",
        middle,
        mean,
        (middle - 4.0 * deviation, middle + 4.0 * deviation),
    )];
    figures.extend(range(&shares));
    Ok(figures)
}

fn walk() -> io::Result<Vec<Figure>> {
    const STEP: f64 = 0.1;
    let shares = fading(Some(STEP))?;
    let steps = shares.windows(2).map(|two| (two[1] - two[0]).abs());
    let mut figures = vec![Figure::new(
        "radio, a random walk by up to 10 %: the largest step",
        STEP,
        steps.fold(0.0, f64::max),
        (0.7 * STEP, STEP + 2.0 * packet_share()),
    )];
    figures.extend(range(&shares));
    Ok(figures)
}

/// The shares of its rate that a full link carried, one for each draw.
fn fading(walk: Option<f64>) -> io::Result<Vec<f64>> {
    let mut link = usual_link();
    link.radio = Some(Radio {
        every_ms: EVERY_MS,
        least: LEAST,
        walk,
    });
    let pattern = Pattern::at(1.2 * link.rate_mbit, FULL, SECONDS);
    let patience = Duration::from_millis(300);
    let (arrivals, _) = through(&link, &[pattern], Way::Forward, patience)?;
    let every = EVERY_MS / 1e3;
    let start = link.delay_ms / 1e3;
    // From the first whole one on; at the end nothing is sent any more.
    let first = arrivals.first().map_or(0.0, |one| one.came);
    let draws = (SECONDS / every) as u32 - 2;
    let begin = ((first - start) / every).ceil() + 1.0;
    let shares = (0..draws).map(|draw| {
        let from = start + (begin + f64::from(draw)) * every;
        carried(&arrivals, from, from + every) / (link.rate_mbit * 1e6 / 8.0 * every)
    });
    Ok(shares.collect())
}

/// A packet in parts of what the whole rate carries between two draws.
fn packet_share() -> f64 {
    FULL as f64 * 8.0 / (usual_link().rate_mbit * 1e3 * EVERY_MS)
}

fn range(shares: &[f64]) -> [Figure; 2] {
    let packet = packet_share();
    let least = shares.iter().copied().fold(1.0, f64::min);
    let most = shares.iter().copied().fold(0.0, f64::max);
    [
        Figure::new(
            "  the least share",
            LEAST,
            least,
            (LEAST - packet, LEAST + 0.15),
        ),
        Figure::new("  the largest", 1.0, most, (0.85, 1.0 + packet)),
    ]
}

/// Bytes that came between two moments, the first and the last packet by the part of
/// its transmission that lies within.
fn carried(arrivals: &[Arrival], from: f64, until: f64) -> f64 {
    let pairs = arrivals.windows(2);
    let parts = pairs.map(|two| {
        let (begin, end) = (two[0].came, two[1].came);
        let within = (end.min(until) - begin.max(from)).max(0.0);
        let bytes = two[1].bytes as f64;
        if end > begin {
            bytes * within / (end - begin)
        } else if (from..until).contains(&end) {
            bytes
        } else {
            0.0
        }
    });
    parts.sum()
}

/// Packets that leave in bursts.
fn aggregation() -> io::Result<Vec<Figure>> {
    let link = LinkSpec {
        aggregate_ms: 4.0,
        ..usual_link()
    };
    let pattern = Pattern::at(1.2 * link.rate_mbit, FULL, 1.0);
    let patience = Duration::from_millis(200);
    let (arrivals, _) = through(&link, &[pattern], Way::Forward, patience)?;
    let gaps = arrivals.windows(2).map(|two| two[1].came - two[0].came);
    let gaps: Vec<_> = gaps.map(|gap| gap * 1e3).collect();
    // Two packets of a burst are as close as they can be.
    let between: Vec<_> = gaps.iter().copied().filter(|gap| *gap > 1.0).collect();
    let packets = arrivals.len() as f64 / (between.len() + 1) as f64;
    Ok(vec![
        Figure::new(
            "bursts each 4 ms: median distance, ms",
            link.aggregate_ms,
            percentile(&between, 0.5).unwrap_or(0.0),
            (link.aggregate_ms - 0.3, link.aggregate_ms + 0.3),
        ),
        Figure::within_share(
            "  packets in one".to_owned(),
            link.aggregate_ms * link.rate_mbit * 1e3 / 8.0 / FULL as f64,
            packets,
            0.03,
        ),
        Figure::within_share(
            "  rate, Mbit/s".to_owned(),
            link.rate_mbit,
            rate_of(&arrivals),
            0.01,
        ),
    ])
}

/// Another route.
fn delay_steps() -> io::Result<Vec<Figure>> {
    let steps = [(0.5, 40.0), (1.0, 20.0)];
    let link = LinkSpec {
        delay_steps: steps
            .iter()
            .map(|&(at_s, delay_ms)| DelayStep { at_s, delay_ms })
            .collect(),
        ..usual_link()
    };
    let pattern = Pattern::new(200, 750, Duration::from_millis(2));
    let patience = Duration::from_millis(100);
    let (arrivals, _) = through(&link, &[pattern], Way::Forward, patience)?;
    let wire = pattern.bytes as f64 * 8.0 / (link.rate_mbit * 1e3);
    let all = [(0.0, link.delay_ms)].into_iter().chain(steps);
    let figures = all.map(|(at, delay_ms)| {
        // What is on its way when the delay falls is not overtaken.
        let during = between(&arrivals, at + 0.1, at + 0.45);
        let expected = delay_ms + wire;
        Figure::new(
            format!("delay after {at} s, median, ms"),
            expected,
            percentile(&delays(&during), 0.5).unwrap_or(0.0),
            (expected - 0.001, expected + 0.3),
        )
    });
    Ok(figures.collect())
}

/// Jitter that hits some packets only.
fn jitter_share() -> io::Result<Vec<Figure>> {
    let link = LinkSpec {
        rate_mbit: 50.0,
        jitter_ms: 5.0,
        jitter_share: 0.1,
        ..usual_link()
    };
    let pattern = Pattern::new(200, 500, Duration::from_millis(6));
    let patience = Duration::from_millis(50);
    let (arrivals, _) = through(&link, &[pattern], Way::Forward, patience)?;
    let base = link.delay_ms + pattern.bytes as f64 * 8.0 / (link.rate_mbit * 1e3);
    // Less is what the machine may add.
    const SEEN: f64 = 0.5;
    let late = delays(&arrivals).into_iter();
    let late = late.filter(|delay| delay - base > SEEN).count() as f64;
    let share = link.jitter_share * (1.0 - SEEN / link.jitter_ms);
    let expected = share * pattern.count as f64;
    let deviation = (expected * (1.0 - share)).sqrt();
    Ok(vec![Figure::new(
        "late of 500 packets, 10 % with jitter (4 deviations)",
        expected,
        late,
        (expected - 4.0 * deviation, expected + 4.0 * deviation),
    )])
}
