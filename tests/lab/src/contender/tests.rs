//! Each contender at work, as root: between two hosts with a slow link, which
//! carries nothing but what goes between their addresses for the background.

use std::io::Write;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::host::Class;

/// Longest time that a contender may take for a few megabytes, s.
const PATIENCE_S: f64 = 30.0;

/// Rate of the link, as tc(8) writes it.
const RATE: &str = "80mbit";

/// A scenario with this background, on a link of this rate.
fn scenario(background: &str) -> Scenario {
    let text = format!(
        "description = \"a test\"\nduration_s = {PATIENCE_S:?}\nmeasure_from_s = 0.0\n\
         [[link]]\nrate_mbit = 80.0\ndelay_ms = 0.0\nqueue = {{ packets = 100 }}\n\
         [background]\n{background}\n"
    );
    toml::from_str(&text).expect("a scenario")
}

/// Two hosts with a link.
struct Lab {
    hosts: [Host; 2],
    work: TempDir,
}

impl Lab {
    /// Without the rights for it, or without what the contender needs, says
    /// so and returns `None`.
    fn new(contender: Contender, scenario: &Scenario) -> Option<Self> {
        let hosts = match Host::new(0).and_then(|first| Ok([first, Host::new(1)?])) {
            Ok(hosts) => hosts,
            Err(error) => return skipped(&format!("needs root ({error})")),
        };
        match contender.check(scenario) {
            Ok(()) => {}
            Err(error @ ContenderError::Missing { .. }) => return skipped(&error.to_string()),
            Err(error) => panic!("{error}"),
        }
        join(&hosts);
        Some(Self {
            hosts,
            work: tempfile::tempdir().expect("a temp dir"),
        })
    }

    fn start(&self, contender: Contender, scenario: &Scenario) -> (Running, Clock) {
        let clock = Clock::start();
        let running = contender.start(scenario, &self.hosts, 1, clock, self.work.path());
        (running.expect("it starts"), clock)
    }

    /// That nothing is left running in the hosts.
    fn assert_empty(&self) {
        let link = |process: &Path| std::fs::read_link(process.join("ns/net")).ok();
        let own = self
            .hosts
            .clone()
            .map(|host| host.within(move || link(Path::new("/proc/thread-self"))));
        assert!(own.iter().all(Option::is_some), "a thread has a namespace");
        let processes = std::fs::read_dir("/proc").expect("read /proc");
        for process in processes.filter_map(Result::ok) {
            if own.contains(&link(&process.path()).or(Some("none".into()))) {
                let words = std::fs::read_to_string(process.path().join("cmdline"));
                panic!("left running: {words:?}");
            }
        }
    }
}

/// Joins the hosts by a veth link.
fn join([first, second]: &[Host; 2]) {
    // ip(8) finds a namespace without a name by a process in it.
    let mut process = second
        .within(|| Command::new("sleep").arg("60").spawn())
        .expect("start sleep");
    let made = first.ip(&format!(
        "link add eth type veth peer eth netns {}",
        process.id()
    ));
    process.kill().expect("end sleep");
    process.wait().expect("wait for sleep");
    made.expect("make a link");
    for (host, other) in [(first, second), (second, first)] {
        host.ip("link set eth up").expect("use the link");
        let (own, other) = (
            host.address(Class::Background),
            other.address(Class::Background),
        );
        host.ip(&format!("route add {other} dev eth src {own}"))
            .expect("add a route");
    }
    let shaped = first.within(|| {
        let words = ["qdisc", "add", "dev", "eth", "root", "tbf", "rate", RATE];
        Command::new("tc")
            .args(words)
            .args(["burst", "32kb", "latency", "50ms"])
            .status()
    });
    assert!(shaped.expect("start tc").success(), "tc failed");
}

/// Past the test runner's capture.
fn skipped<T>(why: &str) -> Option<T> {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {why}");
    None
}

fn wait(clock: Clock, mut is_done: impl FnMut() -> bool) {
    while !is_done() && clock.seconds() < PATIENCE_S {
        clock.sleep_until(clock.now() + Duration::from_millis(5));
    }
}

/// It moves 5 MB, and says when it was done.
fn finishes(contender: Contender) -> Option<BackgroundRecord> {
    let scenario = scenario("start_s = 0.4\nsize_mb = 5.0\ndeadline_s = 20.0");
    let lab = Lab::new(contender, &scenario)?;
    let (running, clock) = lab.start(contender, &scenario);
    wait(clock, || running.is_done());
    let now = clock.seconds();
    let record = running.finish();
    assert_eq!(record.failure, None);
    let done = record.done.expect("it is done");
    // 5 MB take 0.5 s.
    assert!((0.85..=now).contains(&done), "{done}, {now}");
    let bytes = record.bytes.expect("it knows what it has moved");
    // iperf3 sends in blocks.
    assert!((5_000_000..5_200_000).contains(&bytes), "{bytes}");
    lab.assert_empty();
    eprintln!("{contender}: done at {done:.2} s, {bytes} bytes");
    Some(record)
}

/// One without an end is ended, which is no failure.
fn is_ended(contender: Contender) -> Option<BackgroundRecord> {
    let scenario = scenario("start_s = 0.3");
    let lab = Lab::new(contender, &scenario)?;
    let (running, clock) = lab.start(contender, &scenario);
    wait(clock, || running.is_done() || clock.seconds() > 2.0);
    let is_done = running.is_done();
    let before = clock.seconds();
    let record = running.finish();
    let took = clock.seconds() - before;
    assert_eq!(
        (is_done, record.done, &record.failure),
        (false, None, &None)
    );
    // 1.7 s are 17 MB.
    let bytes = record.bytes.expect("it knows what it has moved");
    assert!((100_000..20_000_000).contains(&bytes), "{bytes}");
    lab.assert_empty();
    eprintln!("{contender}: {bytes} bytes, ended within {took:.2} s");
    Some(record)
}

macro_rules! moves {
    ($($name:ident: $contender:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn finishes_a_transfer_with_an_end() {
                finishes($contender);
            }

            #[test]
            fn is_ended_when_there_is_no_end() {
                is_ended($contender);
            }
        }
    )*};
}

moves! {
    engine: Contender::Engine;
    fairbat: Contender::Fairbat;
    curl: Contender::Curl;
    aria2: Contender::Aria2;
    rclone: Contender::Rclone;
    utp: Contender::Utp;
    iperf3_reno: Contender::Iperf3(CongestionControl::Reno);
    iperf3_cubic: Contender::Iperf3(CongestionControl::Cubic);
    iperf3_bbr: Contender::Iperf3(CongestionControl::Bbr);
    tcp: Contender::Tcp;
}

#[test]
fn ours_tell_the_state_of_their_control_loop() {
    for contender in [Contender::Engine, Contender::Fairbat] {
        let Some(record) = is_ended(contender) else {
            return;
        };
        let [sample] = record.control[..] else {
            panic!("{contender}: {:?}", record.control);
        };
        assert!((1.3..1.8).contains(&sample.t), "{contender}: {sample:?}");
        assert!(sample.rate > 1e6, "{contender}: {sample:?}");
    }
}

#[test]
fn none_does_nothing() {
    let scenario = scenario("start_s = 0.0\njobs = { load = 0.3, mean_kb = 100.0 }");
    let Some(lab) = Lab::new(Contender::None, &scenario) else {
        return;
    };
    let (running, _) = lab.start(Contender::None, &scenario);
    assert!(!running.is_done());
    assert_eq!(running.finish(), BackgroundRecord::default());
}

#[test]
fn plain_tcp_takes_transfers_as_they_arrive() {
    let scenario = scenario("start_s = 0.2\njobs = { load = 0.5, mean_kb = 100.0 }");
    let Some(lab) = Lab::new(Contender::Tcp, &scenario) else {
        return;
    };
    let (running, clock) = lab.start(Contender::Tcp, &scenario);
    wait(clock, || running.is_done() || clock.seconds() > 2.0);
    assert!(!running.is_done(), "there is more to come");
    let record = running.finish();
    assert_eq!((&record.failure, record.done), (&None, None));
    // 48 a second are to be expected.
    let jobs = &record.jobs;
    assert!((50..140).contains(&jobs.len()), "{} jobs", jobs.len());
    assert!(jobs.iter().all(|job| (0.2..2.1).contains(&job.t)));
    let over: Vec<_> = jobs.iter().filter_map(|job| job.seconds).collect();
    assert!(over.len() * 10 > jobs.len() * 9, "{} over", over.len());
    // None is faster than the link.
    let is_possible = |job: &crate::record::Fetch| {
        let least = job.bytes.saturating_sub(100_000) as f64 / 10e6;
        job.seconds.is_none_or(|seconds| seconds > least)
    };
    assert!(jobs.iter().all(is_possible), "{jobs:?}");
    lab.assert_empty();
}

#[test]
fn whoever_takes_no_jobs_says_so() {
    let scenario = scenario("jobs = { load = 0.3, mean_kb = 100.0 }");
    let error = Contender::Fairbat.check(&scenario).unwrap_err();
    assert_eq!(
        error.to_string(),
        "fairbat takes no transfers while it runs: a scenario with [background.jobs] is for \
         none and tcp"
    );
    let refusing = Contender::ALL.into_iter().filter(|contender| {
        matches!(
            contender.check(&scenario),
            Err(ContenderError::TakesNoJobs(_))
        )
    });
    assert_eq!(refusing.count(), Contender::ALL.len() - 2);
}

#[test]
fn a_failure_is_told() {
    for contender in [
        Contender::Engine,
        Contender::Fairbat,
        Contender::Curl,
        Contender::Aria2,
        Contender::Rclone,
        Contender::Tcp,
    ] {
        let scenario = scenario("start_s = 0.3");
        let Some(lab) = Lab::new(contender, &scenario) else {
            continue;
        };
        let (running, clock) = lab.start(contender, &scenario);
        std::fs::remove_file(lab.work.path().join("origin/file")).expect("it is there");
        wait(clock, || running.is_done());
        let record = running.finish();
        let failure = record.failure.expect("it failed");
        eprintln!("{contender}: {failure}");
        let says = |what| failure.contains(what);
        assert!(says("404") || says("not found"), "{contender}: {failure}");
        assert_eq!(record.done, None);
        lab.assert_empty();
    }
}

#[test]
fn iperf3_tells_of_a_network_that_is_gone() {
    let contender = Contender::Iperf3(CongestionControl::Reno);
    let scenario = scenario("start_s = 0.3");
    let Some(lab) = Lab::new(contender, &scenario) else {
        return;
    };
    let (running, clock) = lab.start(contender, &scenario);
    let gone = format!("route del {}", lab.hosts[0].address(Class::Background));
    lab.hosts[1].ip(&gone).expect("remove a route");
    wait(clock, || running.is_done());
    let failure = running.finish().failure.expect("it failed");
    assert!(failure.contains("Network is unreachable"), "{failure}");
    lab.assert_empty();
}

#[test]
fn utp_tells_of_a_port_that_is_taken() {
    let scenario = scenario("start_s = 0.3");
    let Some(lab) = Lab::new(Contender::Utp, &scenario) else {
        return;
    };
    let taken = lab.hosts[0].within(|| TcpListener::bind("0.0.0.0:6881"));
    let (running, clock) = lab.start(Contender::Utp, &scenario);
    wait(clock, || running.is_done());
    let failure = running.finish().failure.expect("it failed");
    assert!(failure.contains("Address already in use"), "{failure}");
    drop(taken);
    lab.assert_empty();
}

#[test]
fn one_that_is_ended_before_its_start_has_done_nothing() {
    for contender in Contender::ALL {
        let scenario = scenario("start_s = 25.0");
        let Some(lab) = Lab::new(contender, &scenario) else {
            continue;
        };
        let (running, clock) = lab.start(contender, &scenario);
        let record = running.finish();
        assert!(clock.seconds() < 5.0, "{contender}: {} s", clock.seconds());
        assert_eq!(record.bytes.unwrap_or_default(), 0, "{contender}");
        assert_eq!(record.done, None, "{contender}");
        lab.assert_empty();
    }
}
