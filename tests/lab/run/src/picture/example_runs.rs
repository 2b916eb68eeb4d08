//! Runs that look like real ones, for looking at pictures of them.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::link::PAYLOAD_SHARE;
use crate::record::{
    BackgroundRecord, ControlSample, Counters, DirectionRecord, Fetch, FlowRecord, Lateness,
    LinkRecord, Probe, Provenance, Record, Samples, SenderSample, Summary,
};
use crate::scenario::Scenario;
use crate::summary::{Measured, summarise};

/// Interval of samples, ms.
const INTERVAL: u64 = 20;

const PATH: &str = "[[link]]\nrate_mbit = 10.0\ndelay_ms = 50.0\nqueue = { packets = 86 }\n";
const GREEDY: &str = "[[foreground]]\ntraffic = { greedy = {} }\n";
const CONSTANT: &str = "[[foreground]]\ntraffic = { constant = { rate_mbit = 6.0 } }\n";

/// All of them, with names.
pub(crate) fn all() -> Vec<(&'static str, Record)> {
    let path = |more: &str| format!("{PATH}{more}");
    let web = "[[foreground]]\ntraffic = { web = { load = 0.3, mean_kb = 300.0 } }\n";
    let reverse = "[[foreground]]\nbackward = true\ntraffic = { greedy = { flows = 2 } }\n";
    let steps =
        "schedule = [{ at_s = 20.0, rate_mbit = 4.0 }, { at_s = 40.0, rate_mbit = 20.0 }]\n";
    let two = format!(
        "{PATH}{}",
        PATH.replace("10.0", "8.0").replace("50.0", "20.0")
    );
    let mut runs = vec![
        ("curl", run("curl", 45.0, &path(CONSTANT), 1.0)),
        ("none", run("none", 45.0, &path(CONSTANT), 0.0)),
        ("alone", run("ledbat", 60.0, PATH, 0.3)),
        ("web", run("aria2c -x4", 60.0, &path(web), 1.0)),
        ("long", run("fairbat", 1700.0, &path(GREEDY), 0.2)),
        ("long-web", run("curl", 1700.0, &path(web), 1.0)),
        (
            "schedule",
            run("curl", 60.0, &format!("{PATH}{steps}{GREEDY}"), 0.7),
        ),
        (
            "two-links",
            run("curl", 100.0, &format!("{two}{GREEDY}"), 0.8),
        ),
        ("reverse", run("curl", 60.0, &path(reverse), 0.8)),
        ("ours", run("fairbat", 300.0, &path(GREEDY), 0.1)),
        ("sender", run("sender-vegas", 300.0, &path(GREEDY), 0.1)),
        ("silent", run("curl", 45.0, &path(GREEDY), 1.0)),
        ("empty", run("none", 20.0, PATH, 0.0)),
    ];
    for (name, record) in &mut runs {
        change(name, record);
    }
    runs
}

/// What is peculiar to a run.
fn change(name: &str, record: &mut Record) {
    let duration = record.setup.duration_s;
    match name {
        "web" | "long-web" => record.fetches = fetches(duration),
        "sender" => {
            record.background[0].control = control(duration);
            record.background[0].sender = sender(duration);
        }
        "ours" | "long" => {
            record.setup.background.size_mb = Some(200.0);
            record.setup.background.deadline_s = Some(0.9 * duration);
            record.background[0].done = Some(0.87 * duration);
            record.background[0].control = control(duration);
        }
        "reverse" => {
            let seen = record.links[0].forward.samples.clone();
            record.links[0].backward.samples = seen;
            record.background[0].jobs = fetches(duration);
        }
        "silent" => {
            for probe in &mut record.rtt {
                probe.ms = None;
            }
            record.background[0].failure =
                Some("curl: (56) Recv failure: connection reset".to_owned());
        }
        "empty" => {
            record.links[0].forward = DirectionRecord::default();
            record.rtt.clear();
        }
        _ => return,
    }
    record.summary = summary(record);
}

fn run(contender: &str, duration: f64, rest: &str, fill: f64) -> Record {
    let text = format!(
        "description = \"Synthetic: a drop-tail queue of one bandwidth-delay product, after the \
         comparison of less-than-best-effort transports (RFC 6297, section 5), and words enough \
         for a second line\"\nduration_s = {duration:?}\nmeasure_from_s = {:?}\n{rest}",
        (duration / 4.0).min(15.0)
    );
    let setup: Scenario = toml::from_str(&text).unwrap();
    let wants = if setup.foreground.is_empty() {
        0.0
    } else {
        0.6
    };
    let links: Vec<_> = (0..setup.link.len())
        .map(|link| one_link(&setup, link, wants, fill))
        .collect();
    let base: f64 = setup.link.iter().map(|link| 2.0 * link.delay_ms).sum();
    let queue = &links[0].forward.samples.queue_packets;
    let rtt = queue
        .iter()
        .enumerate()
        .step_by(5)
        .map(|(index, &queue)| Probe {
            t: index as f64 * INTERVAL as f64 / 1e3,
            ms: (index % 400 != 0).then(|| base + f64::from(queue) * 1.2),
        });
    let mut record = Record {
        scenario: "constant-1bdp".to_owned(),
        quick: false,
        seed: 7,
        contender: contender.to_owned(),
        congestion_control: Some("cubic".to_owned()),
        rtt: rtt.collect(),
        flows: setup
            .foreground
            .iter()
            .map(|_| FlowRecord {
                name: "flow".to_owned(),
                backward: false,
                received: (1..=(duration * 10.0) as u64).map(|i| i * 60_000).collect(),
                packets: Vec::new(),
            })
            .collect(),
        fetches: Vec::new(),
        setup,
        provenance: Provenance {
            command: "lab run".to_owned(),
            commit: "0".to_owned(),
            kernel: "Linux".to_owned(),
            machine: "2 cores".to_owned(),
            versions: Vec::new(),
            started: "2026-01-01".to_owned(),
            side_by_side: "1".to_owned(),
        },
        summary: Summary::default(),
        links,
        background: vec![BackgroundRecord::default()],
    };
    record.summary = summary(&record);
    record
}

fn summary(record: &Record) -> Summary {
    summarise(&Measured {
        setup: &record.setup,
        links: &record.links,
        rtt: &record.rtt,
        flows: &record.flows,
        fetches: &record.fetches,
        background: &record.background,
        lab_cpu_s: 10.0,
        waited_s: None,
    })
}

/// A sawtooth of a background over a foreground that wants a share of the
/// link, and a queue under both.
fn one_link(setup: &Scenario, link: usize, wants: f64, fill: f64) -> LinkRecord {
    let mut random = StdRng::seed_from_u64(link as u64);
    let spec = setup.link[link].forward();
    let mut samples = Samples {
        interval_ms: INTERVAL,
        ..Samples::default()
    };
    let count = (setup.duration_s * 1e3) as u64 / INTERVAL;
    for index in 0..count {
        let t = (index * INTERVAL) as f64 / 1e3;
        let mut steps = spec.schedule.iter().filter(|step| step.at_s <= t);
        let rate = steps
            .next_back()
            .map_or(spec.rate_mbit, |step| step.rate_mbit);
        let whole = rate * PAYLOAD_SHARE * INTERVAL as f64 * 1e3 / 8.0;
        let tooth = (t % 8.0) / 8.0;
        let noise: f64 = random.random();
        let starts = if t > 2.0 { fill } else { 0.0 };
        let foreground = whole * wants * (1.0 - 0.4 * starts * tooth) * (0.8 + 0.4 * noise);
        let background = if starts > 0.0 {
            whole - foreground
        } else {
            0.0
        };
        let queue = 2.0 * noise + starts * 84.0 * (0.4 + 0.6 * tooth);
        samples.queue_packets.push(queue as u32);
        samples.queue_bytes.push(queue as u64 * 1500);
        samples.foreground.push(foreground.max(0.0) as u64);
        samples.background.push(background.max(0.0) as u64);
        let payload = foreground.max(0.0) + background.max(0.0);
        samples.carried.push((payload / PAYLOAD_SHARE) as u64);
    }
    LinkRecord {
        forward: DirectionRecord {
            counters: Counters {
                arrived: 40_000,
                dropped: 137,
                ..Counters::default()
            },
            samples,
            ..DirectionRecord::default()
        },
        backward: DirectionRecord::default(),
        cpu_s: 4.0,
        lateness: Lateness::default(),
    }
}

fn fetches(duration: f64) -> Vec<Fetch> {
    let mut random = StdRng::seed_from_u64(3);
    let mut t = 0.5;
    let mut fetches = Vec::new();
    while t < duration {
        let size: f64 = random.random();
        let seconds = 0.3 - 1.5 * size.ln();
        fetches.push(Fetch {
            t,
            bytes: 300_000,
            seconds: (t + seconds < duration).then_some(seconds),
        });
        t -= 0.8 * random.random::<f64>().ln();
    }
    fetches
}

fn control(duration: f64) -> Vec<ControlSample> {
    let size = 2e8;
    let samples = (3..(0.87 * duration) as u32).map(|second| {
        let t = f64::from(second) + 0.01;
        let wave = (t * 40.0 / duration).sin();
        ControlSample {
            t,
            n: 0.0,
            m: 1.5 + wave,
            active: if wave > 0.0 { 2 } else { 1 },
            w: (0.5 + 0.6 * wave).clamp(0.02, 1.0),
            zeta: Some(size * (1.0 - t / duration) / (0.9 * duration - t)),
            rate: 4e5 + 3e5 * wave,
        }
    });
    samples.collect()
}

fn sender(duration: f64) -> Vec<SenderSample> {
    let samples = (3..duration as u32).map(|second| SenderSample {
        t: f64::from(second) + 0.01,
        cwnd: 10 + second % 20,
        ..SenderSample::default()
    });
    samples.collect()
}
