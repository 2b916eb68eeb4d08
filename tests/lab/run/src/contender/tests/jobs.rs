//! Transfers that arrive at random.

use super::*;
use crate::link;
use crate::samples::Fetch;

/// How much the link lets through at once, bytes, and then some.
const AT_ONCE: u64 = 40_000;

/// While jobs arrive, s.
const ARRIVING_S: f64 = 2.0;

#[test]
fn plain_tcp_takes_transfers_as_they_arrive() {
    undisturbed(BEARABLE, || {
        takes_transfers_as_they_arrive(Contender::Tcp, 3.0);
    });
}

#[test]
fn utp_takes_transfers_as_they_arrive() {
    // libtorrent gives a handshake that was lost three seconds.
    undisturbed(BEARABLE, || {
        takes_transfers_as_they_arrive(Contender::Utp(TargetDelay::Standard), 8.0);
    });
}

#[test]
fn a_queue_takes_transfers_as_they_arrive() {
    // The law looks at what waits once a second.
    undisturbed(BEARABLE, || {
        takes_transfers_as_they_arrive(Contender::Queue(Admitting::Plain), 3.0);
    });
}

#[test]
fn a_queue_with_levers_takes_transfers_as_they_arrive() {
    undisturbed(BEARABLE, || {
        takes_transfers_as_they_arrive(Contender::Queue(Admitting::Levers), 3.0);
    });
}

/// All that arrives is fetched, each when it has come and at the link's rate at
/// most, and the contender goes on until it is told to end. Who has fetched
/// nothing for `quiet_s` is taken to have nothing more to fetch.
fn takes_transfers_as_they_arrive(contender: Contender, quiet_s: f64) {
    let scenario = scenario(&format!(
        "jobs = {{ load = 0.5, mean_kb = 100.0, until_s = {:?} }}",
        START_S + ARRIVING_S
    ));
    let Some(lab) = Lab::new(contender, &scenario) else {
        return;
    };
    let (running, clock) = lab.start(contender, &scenario);
    wait(clock, || clock.seconds() > START_S + ARRIVING_S);
    let (mut known, mut since) = (fetched(&lab.hosts[1]), clock.seconds());
    wait(clock, || {
        let now = fetched(&lab.hosts[1]);
        // What tells each other that they are still there is no fetch.
        if now > known + 10_000 {
            (known, since) = (now, clock.seconds());
        }
        clock.seconds() > since + quiet_s
    });
    assert!(!running.is_done(), "the run is not over");
    let record = running.finish();
    let ended = clock.seconds();
    assert_eq!((&record.failure, record.done), (&None, None));
    // 100 are to be expected.
    let jobs = &record.jobs;
    assert!((50..150).contains(&jobs.len()), "{}", jobs.len());
    let arriving = START_S..START_S + ARRIVING_S;
    assert!(jobs.iter().all(|job| arriving.contains(&job.t)));
    // None is forgotten, none is faster than the link.
    let is_possible = |job: &Fetch| {
        let least = job.bytes.saturating_sub(AT_ONCE) as f64 / 10e6;
        job.seconds.is_some_and(|seconds| seconds > least)
    };
    assert!(jobs.iter().all(is_possible), "{jobs:?}");
    // Each has a connection of its own, or nearly: see Contender::Queue.
    if !matches!(contender, Contender::Utp(_)) {
        let connections = opened(&lab.hosts[1]);
        let count = jobs.len();
        assert!(connections * 10 > count * 9, "{connections} for {count}");
    }
    let there: u64 = jobs.iter().map(|job| job.bytes).sum();
    let bytes = record.bytes.expect("it knows what it has moved");
    assert!(
        (there..carried(ended - START_S)).contains(&bytes),
        "{bytes}, {there}"
    );
    lab.assert_empty();
}

/// Bytes that have come to this host.
fn fetched(host: &Host) -> u64 {
    link::counter(host, "eth", 0).expect("it has a link")
}

/// How many TCP connections this host has opened.
fn opened(host: &Host) -> usize {
    let counts = host.within(|| fs::read_to_string("/proc/thread-self/net/snmp"));
    let counts = counts.expect("read /proc");
    let mut lines = counts.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = lines.next().zip(lines.next()).expect("TCP is counted");
    let mut counts = names.split(' ').zip(values.split(' '));
    let count = counts.find(|(name, _)| *name == "ActiveOpens");
    count.expect("it is counted").1.parse().expect("a number")
}

#[test]
fn whoever_takes_no_jobs_says_so() {
    let scenario = scenario("jobs = { load = 0.3, mean_kb = 100.0 }");
    let error = Contender::Fairbat.check(&scenario).unwrap_err();
    let all = Contender::ALL.into_iter();
    let (taking, refusing): (Vec<_>, Vec<_>) = all.partition(|one| one.takes_jobs());
    let names: Vec<_> = taking.iter().map(Contender::to_string).collect();
    let expected = format!(
        "fairbat takes no transfers while it runs: a scenario with [background.jobs] is for {}",
        names.join(", ")
    );
    assert_eq!(error.to_string(), expected);
    let refused = Contender::ALL.into_iter().filter(|contender| {
        let why = contender.unfit(&scenario).unwrap_or_default();
        why.starts_with("takes no transfers while it runs")
    });
    assert_eq!(refused.collect::<Vec<_>>(), refusing);
}
