//! Transfers that arrive at random.

use super::*;

#[test]
fn plain_tcp_takes_transfers_as_they_arrive() {
    takes_transfers_as_they_arrive(Contender::Tcp, 2.0, 0.5);
}

#[test]
fn utp_takes_transfers_as_they_arrive() {
    // Whoever loses the last packet waits for a timeout, half a second or more.
    takes_transfers_as_they_arrive(Contender::Utp(TargetDelay::Standard), 4.0, 2.0);
}

#[test]
fn a_queue_takes_transfers_as_they_arrive() {
    // The law looks at what waits once a second.
    takes_transfers_as_they_arrive(Contender::Queue(Admitting::Plain), 6.0, 3.0);
}

#[test]
fn a_queue_with_levers_takes_transfers_as_they_arrive() {
    takes_transfers_as_they_arrive(Contender::Queue(Admitting::Levers), 6.0, 3.0);
}

/// What has arrived within so many seconds is there after so many more, but
/// for a few: a transfer takes a hundredth of a second.
fn takes_transfers_as_they_arrive(contender: Contender, seconds: f64, grace_s: f64) {
    let scenario = scenario("jobs = { load = 0.5, mean_kb = 100.0 }");
    let Some(lab) = Lab::new(contender, &scenario) else {
        return;
    };
    let (running, clock) = lab.start(contender, &scenario);
    wait(clock, || {
        running.is_done() || clock.seconds() > START_S + seconds
    });
    assert!(!running.is_done(), "there is more to come");
    let before = clock.seconds();
    let record = running.finish();
    let ended = clock.seconds();
    assert_eq!((&record.failure, record.done), (&None, None));
    // 48 a second are to be expected, and 50 in half of the time anyway.
    let jobs = &record.jobs;
    let most = (ended - START_S) * 70.0;
    assert!((50..most as usize).contains(&jobs.len()), "{}", jobs.len());
    assert!(jobs.iter().all(|job| (START_S..ended).contains(&job.t)));
    let older = jobs.iter().copied().filter(|job| job.t < before - grace_s);
    let (over, others): (Vec<_>, Vec<_>) = older.partition(|job| job.seconds.is_some());
    assert!(over.len() > others.len() * 9, "{others:?}");
    // None is faster than the link.
    let is_possible = |job: &crate::record::Fetch| {
        let least = job.bytes.saturating_sub(100_000) as f64 / 10e6;
        job.seconds.is_none_or(|seconds| seconds > least)
    };
    assert!(jobs.iter().all(is_possible), "{jobs:?}");
    // Each has a connection of its own, or nearly: see Contender::Queue.
    if !matches!(contender, Contender::Utp(_)) {
        let done = jobs.iter().filter(|job| job.seconds.is_some()).count();
        let connections = opened(&lab.hosts[1]);
        assert!(connections * 10 > done * 9, "{connections} for {done}");
    }
    let there: u64 = over.iter().map(|job| job.bytes).sum();
    let bytes = record.bytes.expect("it knows what it has moved");
    assert!(
        (there..carried(ended - START_S)).contains(&bytes),
        "{bytes}, {there}"
    );
    lab.assert_empty();
}

/// How many TCP connections this host has opened.
fn opened(host: &Host) -> usize {
    let counts = host.within(|| std::fs::read_to_string("/proc/thread-self/net/snmp"));
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
        matches!(
            contender.check(&scenario),
            Err(ContenderError::TakesNoJobs(_))
        )
    });
    assert_eq!(refused.collect::<Vec<_>>(), refusing);
}
