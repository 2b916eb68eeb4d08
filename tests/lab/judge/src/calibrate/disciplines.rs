//! The figures of disciplines, each as its text has it, under a load that heeds
//! neither drops nor marks.

use std::io;
use std::time::Duration;

use crate::calibrate::datagrams::{Arrival, Pattern};
use crate::calibrate::passage::{FULL, Way, between, delays, of_flow, rate_of, through};
use crate::calibrate::{Figure, usual_link};
use lab_run::samples::LinkRecord;
use lab_run::scenario::{Discipline, LinkSpec, QueueSpec};
use lab_run::statistics::{mean, percentile};

/// What is checked.
pub(super) const CHECKS: [fn() -> io::Result<Vec<Figure>>; 8] = [
    codel_drops,
    codel_delay,
    codel_marks,
    pie_marks,
    pie,
    fair,
    fq_codel,
    policer,
];

/// CoDel's interval, ms, and how long PIE's delay is to be.
const INTERVAL_MS: f64 = 100.0;
const PIE_MS: f64 = 15.0;

/// When CoDel drops first of an overload of 50 %, ms: 5 ms of queue after 15 ms, and
/// an interval later.
const FIRST_DROP_MS: f64 = 15.0 + INTERVAL_MS;

/// What a full packet takes on the link, ms.
const WIRE_MS: f64 = 1.2;

/// Longer than what any of these loads puts into it.
const LONG: QueueSpec = QueueSpec::Packets(2000);

fn link(discipline: Discipline) -> LinkSpec {
    LinkSpec {
        queue: LONG,
        discipline,
        ..usual_link()
    }
}

fn codel() -> Discipline {
    Discipline::Codel {
        target_ms: 5.0,
        interval_ms: INTERVAL_MS,
    }
}

/// So many times what the link carries, for so long.
fn overload(link: &LinkSpec, by: f64, seconds: f64) -> io::Result<(Vec<Arrival>, LinkRecord)> {
    let pattern = Pattern {
        is_ect: link.ecn,
        ..Pattern::at(by * link.rate_mbit, FULL, seconds)
    };
    let drained = Duration::from_secs_f64((by - 1.0) * seconds);
    through(
        link,
        &[pattern],
        Way::Forward,
        drained + Duration::from_millis(100),
    )
}

/// The spacing of drops.
fn codel_drops() -> io::Result<Vec<Figure>> {
    const DROPS: usize = 30;
    let (arrivals, record) = overload(&link(codel()), 1.5, 1.5)?;
    // Whatever is missing before a packet was dropped when that began to be sent.
    let mut drops = Vec::new();
    for two in arrivals.windows(2) {
        let missing = two[1].number - two[0].number - 1;
        drops.extend((0..missing).map(|_| two[1].came));
    }
    let first = drops.first().copied().unwrap_or(0.0);
    let last = drops.get(DROPS - 1).copied().unwrap_or(0.0);
    let theory: f64 = (1..DROPS)
        .map(|count| INTERVAL_MS / (count as f64).sqrt())
        .sum();
    let began = arrivals.first().map_or(0.0, |arrival| arrival.came);
    Ok(vec![
        Figure::new(
            "CoDel: the first drop, ms after the overload began",
            FIRST_DROP_MS,
            (first - began) * 1e3,
            (FIRST_DROP_MS - 4.0 * WIRE_MS, FIRST_DROP_MS + 4.0 * WIRE_MS),
        ),
        Figure::new(
            format!("  the {DROPS}th, ms after the first (control law)"),
            theory,
            (last - first) * 1e3,
            (theory - 2.0 * WIRE_MS, theory + 2.0 * WIRE_MS),
        ),
        Figure::exactly(
            "  dropped, as the link counts",
            drops.len() as f64,
            record.forward.counters.aqm_dropped as f64,
        ),
    ])
}

/// The standing delay that a slight overload leaves.
fn codel_delay() -> io::Result<Vec<Figure>> {
    let link = link(codel());
    let (arrivals, _) = overload(&link, 1.02, 4.0)?;
    let late = between(&arrivals, 1.0, f64::INFINITY);
    let queueing = percentile(&delays(&late), 0.5).unwrap_or(0.0) - link.delay_ms - WIRE_MS;
    // The target, and up to a packet and what it takes to drop one.
    Ok(vec![Figure::new(
        "CoDel: median wait at 2 % too much, ms",
        5.0 + WIRE_MS,
        queueing,
        (4.0, 8.0),
    )])
}

/// CoDel's marks in place of drops, as many by the same law.
fn codel_marks() -> io::Result<Vec<Figure>> {
    let link = LinkSpec {
        ecn: true,
        ..link(codel())
    };
    let (arrivals, record) = overload(&link, 1.5, 1.0)?;
    // Marks follow each other as drops do, from the first until the queue is empty.
    // The sum of the first n of 1 over the root of k is about 2 sqrt(n) + zeta(1/2),
    // and 0.73 is -zeta(1/2) / 2.
    let theory = ((1500.0 - FIRST_DROP_MS) / (2.0 * INTERVAL_MS) + 0.73).powi(2);
    let marked = arrivals.iter().filter(|arrival| arrival.is_marked).count();
    let counters = record.forward.counters;
    Ok(vec![
        Figure::new(
            "CoDel with ECN: marked, at the receiver",
            theory,
            marked as f64,
            (theory - 3.0, theory + 3.0),
        ),
        Figure::exactly(
            "  as the link counts",
            marked as f64,
            counters.marked as f64,
        ),
        Figure::exactly(
            "  dropped",
            0.0,
            (counters.dropped + counters.aqm_dropped) as f64,
        ),
    ])
}

/// PIE's marks in place of drops, until it drops whatever comes.
fn pie_marks() -> io::Result<Vec<Figure>> {
    let link = LinkSpec {
        ecn: true,
        ..link(Discipline::Pie { target_ms: PIE_MS })
    };
    let (arrivals, record) = overload(&link, 1.1, 1.0)?;
    let marks = arrivals.iter().filter(|arrival| arrival.is_marked);
    let marked = marks.clone().count();
    let last = marks.map(|arrival| arrival.number).max().unwrap_or(0);
    let before = arrivals.iter().filter(|arrival| arrival.number < last);
    let missing = last as f64 - before.count() as f64;
    let counters = record.forward.counters;
    Ok(vec![
        // Its probability takes some tens of packets to rise to a tenth.
        Figure::new(
            "PIE with ECN: marked, at the receiver",
            10.0,
            marked as f64,
            (4.0, 30.0),
        ),
        Figure::exactly(
            "  as the link counts",
            marked as f64,
            counters.marked as f64,
        ),
        Figure::exactly("  dropped while it marks", 0.0, missing),
    ])
}

/// The delay under a constant overload.
fn pie() -> io::Result<Vec<Figure>> {
    let link = link(Discipline::Pie { target_ms: PIE_MS });
    let (arrivals, record) = overload(&link, 1.2, 8.0)?;
    let late = between(&arrivals, 4.0, 7.9);
    let queueing = mean(&delays(&late)).unwrap_or(0.0) - link.delay_ms - WIRE_MS;
    let counters = record.forward.counters;
    Ok(vec![
        Figure::new(
            "PIE: mean wait at 20 % too much, ms",
            PIE_MS,
            queueing,
            (PIE_MS - 2.0, PIE_MS + 2.0),
        ),
        Figure::within_share(
            "  rate meanwhile, Mbit/s".to_owned(),
            link.rate_mbit,
            rate_of(&late),
            0.01,
        ),
        Figure::exactly("  dropped by a full queue", 0.0, counters.dropped as f64),
    ])
}

/// Two flows that take all they get, with packets of different sizes, and one that
/// wants less than its share.
fn three(link: &LinkSpec) -> io::Result<[Vec<Arrival>; 3]> {
    const SECONDS: f64 = 2.0;
    let rate = link.rate_mbit;
    let flows = [(rate, FULL), (rate, 500), (0.1 * rate, 250)];
    let patterns = (0..).zip(flows).map(|(flow, (mbit, bytes))| Pattern {
        flow,
        ..Pattern::at(mbit, bytes, SECONDS)
    });
    let patterns: Vec<_> = patterns.collect();
    let (arrivals, _) = through(link, &patterns, Way::Forward, Duration::from_millis(200))?;
    // While all of them send.
    let during = between(&arrivals, 0.5, SECONDS);
    Ok([0, 1, 2].map(|flow| of_flow(&during, flow)))
}

fn shares(name: &str, link: &LinkSpec) -> io::Result<(Vec<Figure>, Vec<Arrival>)> {
    let [large, small, sparse] = three(link)?;
    let even = 0.45 * link.rate_mbit;
    let of = |what: String, expected, arrivals: &[Arrival]| {
        Figure::within_share(what, expected, rate_of(arrivals), 0.03)
    };
    let figures = vec![
        of(format!("{name}: 1500 bytes a packet, Mbit/s"), even, &large),
        of("  500 bytes a packet".to_owned(), even, &small),
        of("  who wants less".to_owned(), 0.1 * link.rate_mbit, &sparse),
    ];
    Ok((figures, sparse))
}

/// The wait of a flow that wants less than its share, 99 %, at most so long.
fn sparse(link: &LinkSpec, arrivals: &[Arrival], most: f64) -> Figure {
    let own = 250.0 * 8.0 / (link.rate_mbit * 1e3);
    let waits = percentile(&delays(arrivals), 0.99).unwrap_or(f64::INFINITY);
    Figure::new(
        "  its wait, 99 %, ms",
        most,
        waits - link.delay_ms - own,
        (0.0, most + 1.0),
    )
}

fn fair() -> io::Result<Vec<Figure>> {
    let link = LinkSpec {
        queue: QueueSpec::Packets(100),
        ..link(Discipline::Fair)
    };
    let (mut figures, arrivals) = shares("fair queueing", &link)?;
    // Each of the others has a turn before it, and one packet is being sent.
    figures.push(sparse(&link, &arrivals, 4.0 * WIRE_MS));
    Ok(figures)
}

fn fq_codel() -> io::Result<Vec<Figure>> {
    let link = link(Discipline::FqCodel {
        target_ms: 5.0,
        interval_ms: INTERVAL_MS,
    });
    let (mut figures, arrivals) = shares("fq_codel", &link)?;
    // It is new each time: it waits for the packet that is being sent, and rarely for
    // another.
    figures.push(sparse(&link, &arrivals, WIRE_MS));
    Ok(figures)
}

/// A burst as large as the bucket, then the rate, and no wait.
fn policer() -> io::Result<Vec<Figure>> {
    const BUCKET: u64 = 40;
    let link = LinkSpec {
        queue: QueueSpec::Packets(BUCKET as u32),
        ..link(Discipline::Policer)
    };
    let burst = Pattern::new(FULL, 3 * BUCKET, Duration::ZERO);
    let patience = Duration::from_millis(100);
    let (arrivals, _) = through(&link, &[burst], Way::Forward, patience)?;
    let passed = arrivals.len() as f64;
    let (arrivals, _) = overload(&link, 1.5, 1.5)?;
    // The bucket is empty after three times its size.
    let late = between(&arrivals, 0.3, f64::INFINITY);
    let delay = percentile(&delays(&late), 0.99).unwrap_or(f64::INFINITY);
    Ok(vec![
        Figure::new(
            format!("policer: of a burst of {} pass", burst.count),
            BUCKET as f64,
            passed,
            // What comes in during the burst.
            (BUCKET as f64, BUCKET as f64 + 3.0),
        ),
        Figure::within_share(
            "  rate then, Mbit/s".to_owned(),
            link.rate_mbit,
            rate_of(&late),
            0.01,
        ),
        Figure::new(
            "  delay, 99 %, ms",
            link.delay_ms,
            delay,
            (link.delay_ms - 0.001, link.delay_ms + 1.0),
        ),
    ])
}
