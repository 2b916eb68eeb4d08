//! The figures of a link that theory knows.

use std::io;
use std::time::Duration;

use crate::calibrate::datagrams::Pattern;
use crate::calibrate::passage::{FULL, Way, delays, rate_of, through};
use crate::calibrate::{ATTEMPTS, Figure, VAIN_ATTEMPTS, disciplines, usual_link, varying};
use lab_run::machine::{Clock, Watch, is_harmless};
use lab_run::scenario::{Interval, LinkSpec, QueueSpec, RateStep};
use lab_run::statistics::{mean, percentile};

/// What the figures of a link come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All are within their tolerances.
    Right,
    /// Of some nothing can be said: whenever they were out of their
    /// tolerances, the machine was late itself.
    Unknown,
    /// Some are out of their tolerances.
    Wrong,
}

/// Checks the link, printing each figure by `print`.
///
/// # Errors
/// Without the rights of root, or TUN.
pub fn check(print: &mut dyn FnMut(&str)) -> io::Result<Verdict> {
    print(&Figure::heading());
    let mut worst = Verdict::Right;
    let mut measure = |what: &dyn Fn() -> io::Result<Vec<Figure>>| -> io::Result<()> {
        worst = worst.max(measure(what, print)?);
        Ok(())
    };
    for (rate_mbit, seconds) in [(1.0, 2.0), (10.0, 1.5), (50.0, 1.0), (200.0, 1.0)] {
        measure(&|| rate(rate_mbit, seconds, Way::Forward))?;
    }
    measure(&|| rate(10.0, 1.0, Way::Backward))?;
    for rate_mbit in [1.0, 10.0, 200.0] {
        measure(&|| delay(rate_mbit))?;
    }
    measure(&|| queue("86 packets", QueueSpec::Packets(86), 86))?;
    measure(&|| queue("45000 bytes", QueueSpec::Bytes(45_000), 30))?;
    measure(&loss)?;
    measure(&jitter)?;
    measure(&outage)?;
    measure(&schedule)?;
    for check in varying::CHECKS.iter().chain(&disciplines::CHECKS) {
        measure(check)?;
    }
    Ok(worst)
}

/// Measures until it is right, or it has been wrong too often.
fn measure(
    what: &dyn Fn() -> io::Result<Vec<Figure>>,
    print: &mut dyn FnMut(&str),
) -> io::Result<Verdict> {
    let (mut wrong, mut vain) = (0, 0);
    loop {
        let watch = Watch::start(Clock::start())?;
        let figures = what()?;
        let lateness = watch.lateness()?;
        figures.iter().for_each(|figure| print(&figure.line()));
        if figures.iter().all(Figure::is_right) {
            return Ok(Verdict::Right);
        }
        if !is_harmless(lateness) {
            vain += 1;
            print(&format!(
                "  does not count: the machine was up to {:.1} ms late by itself, \
                 99 % within {:.1} ms",
                lateness.max_ms, lateness.p99_ms
            ));
        } else {
            wrong += 1;
        }
        if wrong == ATTEMPTS {
            return Ok(Verdict::Wrong);
        }
        if vain == VAIN_ATTEMPTS {
            return Ok(Verdict::Unknown);
        }
        print("  again:");
    }
}

/// More than the link can carry, for so long: what comes out is its rate, and
/// what it took to carry it.
fn rate(rate_mbit: f64, seconds: f64, way: Way) -> io::Result<Vec<Figure>> {
    let link = LinkSpec {
        rate_mbit,
        ..usual_link()
    };
    let pattern = Pattern::at(1.3 * rate_mbit, FULL, seconds);
    let (arrivals, record) = through(&link, &[pattern], way, Duration::from_millis(100))?;
    // Well under a tenth of a core for 10 Mbit/s, less than one for 200.
    let cores = record.cpu_s / seconds;
    let most = (0.04 + 0.005 * rate_mbit).min(1.0);
    // That is said of an optimised build; another takes about twice as much.
    let most = if cfg!(debug_assertions) {
        2.0 * most
    } else {
        most
    };
    Ok(vec![
        Figure::within_share(
            format!("rate of a full link, {rate_mbit} Mbit/s{}", way.words()),
            rate_mbit,
            rate_of(&arrivals),
            0.01,
        ),
        Figure::new(
            "  processor time of the link, cores",
            0.0,
            cores,
            (0.0, most),
        ),
        Figure::late(
            "  handed over late, median, ms",
            record.lateness.median_ms,
            0.3,
        ),
        Figure::late("  handed over late, 99 %, ms", record.lateness.p99_ms, 1.0),
    ])
}

/// Single packets through an idle link.
fn delay(rate_mbit: f64) -> io::Result<Vec<Figure>> {
    let link = LinkSpec {
        rate_mbit,
        ..usual_link()
    };
    let pattern = Pattern::new(128, 300, Duration::from_millis(4));
    let (arrivals, _) = through(&link, &[pattern], Way::Forward, Duration::from_millis(50))?;
    let expected = link.delay_ms + pattern.bytes as f64 * 8.0 / (rate_mbit * 1e3);
    let delays = delays(&arrivals);
    let percentile = |share| percentile(&delays, share).unwrap_or(f64::INFINITY);
    let figure = |what: &str, measured, above| {
        Figure::new(
            format!("delay at {rate_mbit} Mbit/s, {what}, ms"),
            expected,
            measured,
            (expected - 0.001, expected + above),
        )
    };
    Ok(vec![
        figure("median", percentile(0.5), 0.3),
        figure("99 %", percentile(0.99), 1.0),
    ])
}

/// A burst of more than the queue holds.
fn queue(words: &str, queue: QueueSpec, packets: u64) -> io::Result<Vec<Figure>> {
    let link = LinkSpec {
        rate_mbit: 5.0,
        queue,
        ..usual_link()
    };
    let pattern = Pattern::new(FULL, packets * 3, Duration::ZERO);
    let wire = FULL as f64 * 8.0 / (link.rate_mbit * 1e3);
    let drained = Duration::from_secs_f64((packets as f64 + 5.0) * wire / 1e3);
    let (arrivals, record) = through(
        &link,
        &[pattern],
        Way::Forward,
        drained + Duration::from_millis(50),
    )?;
    let counters = record.forward.counters;
    let came = arrivals.len() as f64;
    let first_full = arrivals.get(packets as usize - 1);
    let last_delay = first_full.map_or(0.0, |arrival| (arrival.came - arrival.sent) * 1e3);
    let theory = link.delay_ms + packets as f64 * wire;
    // The burst itself takes up to two packets' time.
    Ok(vec![
        Figure::new(
            format!("queue of {words}: a burst of {}, carried", pattern.count),
            packets as f64,
            came,
            (packets as f64, packets as f64 + 2.0),
        ),
        Figure::exactly(
            "  dropped, as the link counts",
            pattern.count as f64 - came,
            counters.dropped as f64,
        ),
        Figure::new(
            "  delay of the last that found room at once, ms",
            theory,
            last_delay,
            (theory - 2.0 * wire, theory + 1.0),
        ),
    ])
}

/// Losses at random.
fn loss() -> io::Result<Vec<Figure>> {
    let link = LinkSpec {
        rate_mbit: 50.0,
        loss: 0.05,
        ..usual_link()
    };
    let pattern = Pattern::new(200, 4000, Duration::from_micros(250));
    let (arrivals, record) = through(&link, &[pattern], Way::Forward, Duration::from_millis(50))?;
    let counters = record.forward.counters;
    let expected = pattern.count as f64 * link.loss;
    let deviation = (expected * (1.0 - link.loss)).sqrt();
    Ok(vec![
        Figure::new(
            "lost of 4000 packets at 5 % (4 standard deviations)",
            expected,
            counters.lost as f64,
            (expected - 4.0 * deviation, expected + 4.0 * deviation),
        ),
        Figure::exactly(
            "  missing at the receiver",
            counters.lost as f64,
            pattern.count as f64 - arrivals.len() as f64,
        ),
    ])
}

/// Delay that varies, with packets so far apart that none waits for another.
fn jitter() -> io::Result<Vec<Figure>> {
    let link = LinkSpec {
        rate_mbit: 50.0,
        jitter_ms: 5.0,
        ..usual_link()
    };
    let pattern = Pattern::new(200, 400, Duration::from_millis(6));
    let (arrivals, _) = through(&link, &[pattern], Way::Forward, Duration::from_millis(50))?;
    let base = link.delay_ms + pattern.bytes as f64 * 8.0 / (link.rate_mbit * 1e3);
    let delays = delays(&arrivals).into_iter();
    let delays: Vec<_> = delays.map(|delay| delay - base).collect();
    let deviation = link.jitter_ms / (12.0 * pattern.count as f64).sqrt();
    let middle = link.jitter_ms / 2.0;
    Ok(vec![
        Figure::new(
            "jitter of 5 ms, mean, ms (4 standard deviations)",
            middle,
            mean(&delays).unwrap_or(f64::INFINITY),
            (middle - 4.0 * deviation, middle + 4.0 * deviation + 0.3),
        ),
        Figure::new(
            "  95 % of the packets, ms",
            0.95 * link.jitter_ms,
            percentile(&delays, 0.95).unwrap_or(f64::INFINITY),
            (0.9 * link.jitter_ms, link.jitter_ms + 0.3),
        ),
    ])
}

/// A link that carries nothing for a while.
fn outage() -> io::Result<Vec<Figure>> {
    let link = LinkSpec {
        outage: vec![Interval {
            from_s: 0.5,
            until_s: 1.0,
        }],
        ..usual_link()
    };
    let pattern = Pattern::new(200, 750, Duration::from_millis(2));
    let (arrivals, record) = through(&link, &[pattern], Way::Forward, Duration::from_millis(50))?;
    let gaps = arrivals.windows(2).map(|two| two[1].sent - two[0].sent);
    Ok(vec![
        Figure::new(
            "an outage of 0.5 s: the longest gap, s",
            0.5,
            gaps.fold(0.0, f64::max),
            (0.496, 0.51),
        ),
        Figure::exactly(
            "  missing at the receiver",
            record.forward.counters.lost as f64,
            pattern.count as f64 - arrivals.len() as f64,
        ),
    ])
}

/// A link that becomes slower and faster.
fn schedule() -> io::Result<Vec<Figure>> {
    let steps = [(0.0, 10.0), (1.0, 2.0), (2.0, 20.0)];
    let link = LinkSpec {
        rate_mbit: steps[0].1,
        queue: QueueSpec::Packets(20),
        schedule: steps[1..]
            .iter()
            .map(|&(at_s, rate_mbit)| RateStep { at_s, rate_mbit })
            .collect(),
        ..usual_link()
    };
    let pattern = Pattern::new(FULL, 6000, Duration::from_micros(500));
    let (arrivals, _) = through(&link, &[pattern], Way::Forward, Duration::from_millis(50))?;
    let delay = link.delay_ms / 1e3;
    let figures = steps.iter().map(|&(at, rate_mbit)| {
        let during: Vec<_> = arrivals
            .iter()
            .filter(|arrival| (at + 0.2..at + 0.95).contains(&(arrival.came - delay)))
            .copied()
            .collect();
        Figure::within_share(
            format!("rate of the schedule after {at} s, Mbit/s"),
            rate_mbit,
            rate_of(&during),
            0.01,
        )
    });
    Ok(figures.collect())
}
