//! Each contender at work, as root: between two hosts with a slow link, which
//! carries nothing but what goes between their addresses for the background.

mod conditions;
mod failures;
mod jobs;
mod senders;

use std::process::Command;
use std::time::Duration;

use fairbat_tests::netns::skipped;
use tempfile::TempDir;

use super::*;
use crate::host::Class;
use crate::machine::undisturbed;
use crate::samples::ControlSample;

/// Longest time that a contender may take for a few megabytes, s.
const PATIENCE_S: f64 = 60.0;

/// When transfers begin, s: time enough to prepare them, two Pythons for
/// libtorrent too, on a machine with a lot else to do.
const START_S: f64 = 3.0;

/// What goes wrong while the host of a virtual machine has its processors for longer
/// is tried again: who begins a fifth of a second late has failed.
const BEARABLE: Duration = Duration::from_millis(50);

/// Rate of the link, as tc(8) writes it.
const RATE: &str = "80mbit";

/// A scenario with this background, which begins at [`START_S`], on a link of
/// [`RATE`].
fn scenario(background: &str) -> Scenario {
    scenario_from(START_S, background)
}

fn scenario_from(start_s: f64, background: &str) -> Scenario {
    let text = format!(
        "description = \"a test\"\nduration_s = {PATIENCE_S:?}\nmeasure_from_s = 0.0\n\
         [[link]]\nrate_mbit = 80.0\ndelay_ms = 0.0\nqueue = {{ packets = 100 }}\n\
         [background]\nstart_s = {start_s:?}\n{background}\n"
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
        let hosts = [Host::for_test(0)?, Host::for_test(1)?];
        match contender.check(scenario) {
            Ok(()) => {}
            Err(error @ ContenderError::Missing { .. }) => {
                skipped(&error.to_string());
                return None;
            }
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
        (self.start_at(contender, scenario, clock, ""), clock)
    }

    /// One of several, in a directory of its own.
    fn start_at(
        &self,
        contender: Contender,
        scenario: &Scenario,
        clock: Clock,
        directory: &str,
    ) -> Running {
        let work = self.work.path().join(directory);
        fs::create_dir_all(&work).expect("a directory");
        let laid_out = contender.lay_out(&scenario.background, 1, &work);
        laid_out.expect("room for files");
        let running = contender.start(scenario, &self.hosts, 1, clock, &work);
        running.expect("it starts")
    }

    /// That nothing is left running in the hosts.
    fn assert_empty(&self) {
        let link = |process: &Path| fs::read_link(process.join("ns/net")).ok();
        let own = self
            .hosts
            .clone()
            .map(|host| host.within(move || link(Path::new("/proc/thread-self"))));
        assert!(own.iter().all(Option::is_some), "a thread has a namespace");
        let processes = fs::read_dir("/proc").expect("read /proc");
        for process in processes.filter_map(Result::ok) {
            let process = process.path();
            let is_here = || own.contains(&link(&process).or(Some("none".into())));
            let words = || fs::read_to_string(process.join("cmdline")).unwrap_or_default();
            // One that has been killed has given its memory back, and thereby its words,
            // a moment before its namespace.
            let clock = Clock::start();
            wait(clock, || !is_here() || !words().is_empty());
            assert!(!is_here(), "left running: {:?}", words());
        }
    }
}

/// Joins the hosts by a veth link.
fn join([first, second]: &[Host; 2]) {
    first.wire(second, "eth");
    for (host, other) in [(first, second), (second, first)] {
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

fn wait(clock: Clock, mut is_done: impl FnMut() -> bool) {
    while !is_done() && clock.seconds() < PATIENCE_S {
        clock.sleep_until(clock.now() + Duration::from_millis(5));
    }
}

/// It moves 5 MB, and says when it was done.
fn finishes(contender: Contender) -> Option<BackgroundRecord> {
    let scenario = scenario("size_mb = 5.0\ndeadline_s = 20.0");
    let lab = Lab::new(contender, &scenario)?;
    let (running, clock) = lab.start(contender, &scenario);
    wait(clock, || running.is_done());
    let now = clock.seconds();
    let record = running.finish();
    assert_eq!(record.failure, None);
    let done = record.done.expect("it is done");
    // 5 MB take 0.5 s.
    assert!((START_S + 0.45..=now).contains(&done), "{done}, {now}");
    let bytes = record.bytes.expect("it knows what it has moved");
    // iperf3 sends in blocks.
    assert!((5_000_000..5_200_000).contains(&bytes), "{bytes}");
    lab.assert_empty();
    eprintln!("{contender}: done at {done:.2} s, {bytes} bytes");
    Some(record)
}

/// It runs until it is done, without a failure.
fn done(contender: Contender, scenario: &Scenario) -> Option<(Lab, BackgroundRecord)> {
    let lab = Lab::new(contender, scenario)?;
    let (running, clock) = lab.start(contender, scenario);
    wait(clock, || running.is_done());
    let record = running.finish();
    assert_eq!(record.failure, None);
    Some((lab, record))
}

/// One without an end is ended after so many seconds, which is no failure.
fn is_ended(contender: Contender, seconds: f64) -> Option<BackgroundRecord> {
    let scenario = scenario("");
    let lab = Lab::new(contender, &scenario)?;
    let (running, clock) = lab.start(contender, &scenario);
    wait(clock, || {
        running.is_done() || clock.seconds() > START_S + seconds
    });
    let is_done = running.is_done();
    let before = clock.seconds();
    let record = running.finish();
    let ended = clock.seconds();
    let took = ended - before;
    assert_eq!(
        (is_done, record.done, &record.failure),
        (false, None, &None)
    );
    let bytes = record.bytes.expect("it knows what it has moved");
    assert!(bytes > 100_000, "{bytes}");
    assert!(bytes < carried(ended - START_S), "{bytes} by {ended} s");
    lab.assert_empty();
    eprintln!("{contender}: {bytes} bytes, ended within {took:.2} s");
    Some(record)
}

/// What the link carries at most in this time, with what its bucket and its
/// queue hold, bytes.
fn carried(seconds: f64) -> u64 {
    (seconds * 10e6) as u64 + 1_000_000
}

macro_rules! moves {
    ($($name:ident: $contender:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn finishes_a_transfer_with_an_end() {
                undisturbed(BEARABLE, || {
                    finishes($contender);
                });
            }

            #[test]
            fn is_ended_when_there_is_no_end() {
                undisturbed(BEARABLE, || {
                    is_ended($contender, 4.0);
                });
            }
        }
    )*};
}

moves! {
    engine: Contender::Engine;
    fairbat: Contender::Fairbat;
    fairbat_no_deadline: Contender::FairbatNoDeadline(Receiver::Plain);
    curl: Contender::Curl;
    aria2: Contender::Aria2;
    rclone: Contender::Rclone;
    utp: Contender::Utp(TargetDelay::Standard);
    iperf3_reno: Contender::Iperf3(CongestionControl::Reno);
    iperf3_cubic: Contender::Iperf3(CongestionControl::Cubic);
    iperf3_bbr: Contender::Iperf3(CongestionControl::Bbr);
    tcp: Contender::Tcp;
    sender_kernel_cubic: Contender::Sender(Sending::Kernel(CongestionControl::Cubic));
    sender_paced: Contender::Sender(Sending::Paced);
}

#[test]
fn ours_tell_the_state_of_their_control_loop() {
    undisturbed(BEARABLE, || {
        for contender in [Contender::Engine, Contender::Fairbat] {
            // The first is due after one second.
            let Some(record) = is_ended(contender, 3.0) else {
                return;
            };
            let control = &record.control;
            let first = control.first().expect("there is a sample");
            assert!(first.t > START_S + 0.9, "{contender}: {control:?}");
            assert!(control.is_sorted_by(|a, b| a.t < b.t), "{control:?}");
            let is_fast = |sample: &ControlSample| sample.rate > 1e6;
            assert!(control.iter().any(is_fast), "{contender}: {control:?}");
        }
    });
}

#[test]
fn none_does_nothing() {
    let scenario = scenario_from(0.0, "jobs = { load = 0.3, mean_kb = 100.0 }");
    let Some(lab) = Lab::new(Contender::None, &scenario) else {
        return;
    };
    let (running, _) = lab.start(Contender::None, &scenario);
    assert!(!running.is_done());
    assert_eq!(running.finish(), BackgroundRecord::default());
}

/// Whether it moves what comes and nothing else.
fn wants_jobs(contender: Contender) -> bool {
    matches!(contender, Contender::Queue(_) | Contender::AgentStream)
}

#[test]
fn whoever_moves_one_thing_says_so() {
    let scenario = scenario("transfer = [{ size_mb = 1.0, deadline_s = 9.0 }]");
    let error = Contender::Curl.check(&scenario).unwrap_err().to_string();
    assert!(error.starts_with("curl moves one thing: "), "{error}");
    let takes = |contender: &Contender| {
        let why = contender.unfit(&scenario).unwrap_or_default();
        !why.starts_with("moves one thing")
    };
    let one_thing = || Contender::ALL.into_iter().filter(|one| !wants_jobs(*one));
    let taking: Vec<_> = one_thing().filter(takes).collect();
    let expected = one_thing().filter(|one| {
        let takes_list = matches!(
            one,
            Contender::None
                | Contender::Agent
                | Contender::Hosts(_)
                | Contender::Other(Downloader::Gets, _)
        );
        takes_list || one.is_fairbat()
    });
    assert_eq!(taking, expected.collect::<Vec<_>>());
}

#[test]
fn whoever_goes_over_ipv4_only_says_so() {
    let scenario = scenario("ipv6 = true\nsize_mb = 1.0");
    let error = Contender::Agent.check(&scenario).unwrap_err().to_string();
    assert!(error.starts_with("agent goes over IPv4: "), "{error}");
    let ours = Contender::FairbatNoDeadline(Receiver::Plain);
    assert_eq!(ours.unfit(&scenario), None);
}

#[test]
fn several_files_are_told_apart() {
    undisturbed(BEARABLE, || {
        let contender = Contender::FairbatNoDeadline(Receiver::Plain);
        let scenario = scenario(
            "transfer = [{ size_mb = 4.0, deadline_s = 20.0 }, { size_mb = 1.0, deadline_s = 10.0 }]",
        );
        let Some((lab, record)) = done(contender, &scenario) else {
            return;
        };
        assert_eq!(record.bytes, Some(5_000_000));
        let [four, one] = &record.transfers[..] else {
            panic!("{:?}", record.transfers);
        };
        assert_eq!((four.bytes, one.bytes), (4_000_000, 1_000_000));
        assert_eq!((four.met, one.met), (Some(true), Some(true)));
        let last = [four, one].into_iter().max_by_key(|it| it.place);
        assert_eq!(record.done, last.and_then(|last| last.done));
        lab.assert_empty();
    });
}

#[test]
fn copies_run_beside_each_other() {
    undisturbed(BEARABLE, || {
        for contender in [
            Contender::Utp(TargetDelay::Standard),
            Contender::Iperf3(CongestionControl::Cubic),
            Contender::Engine,
        ] {
            let scenario = scenario("");
            let Some(lab) = Lab::new(contender, &scenario) else {
                continue;
            };
            let clock = Clock::start();
            let copies = ["0", "1"].map(|copy| lab.start_at(contender, &scenario, clock, copy));
            // Whichever is second has to wait for a while until it has a share.
            wait(clock, || clock.seconds() > START_S + 3.0);
            for running in copies {
                let record = running.finish();
                assert_eq!(record.failure, None, "{contender}");
                let bytes = record.bytes.expect("it knows what it has moved");
                eprintln!("{contender}: {bytes} bytes");
                assert!(bytes > 100_000, "{contender}: {bytes}");
            }
            lab.assert_empty();
        }
    });
}

#[test]
fn one_that_is_ended_before_its_start_has_done_nothing() {
    // These take congestion controls, and a test sets no machine up.
    let is_set_up = |one: &Contender| match one {
        Contender::FairbatServed | Contender::Agent => true,
        Contender::Hosts(pushing) => pushing.has_agents(),
        _ => false,
    };
    let all = Contender::ALL.into_iter();
    for contender in all.filter(|one| !is_set_up(one)) {
        let what = if contender.pushes() {
            "size_mb = 1.0"
        } else if wants_jobs(contender) {
            "jobs = { load = 0.3, mean_kb = 100.0 }"
        } else {
            ""
        };
        let scenario = scenario_from(50.0, what);
        let Some(lab) = Lab::new(contender, &scenario) else {
            continue;
        };
        let (running, clock) = lab.start(contender, &scenario);
        let record = running.finish();
        assert!(clock.seconds() < 40.0, "{contender}: {} s", clock.seconds());
        assert_eq!(record.bytes.unwrap_or_default(), 0, "{contender}");
        assert_eq!(record.done, None, "{contender}");
        lab.assert_empty();
    }
}

#[test]
fn whoever_begins_late_says_so() {
    assert_eq!(late(Some(2.19), 2.0, 30.0, MAX_START_DELAY), None);
    let said = late(Some(3.5), 2.0, 30.0, MAX_START_DELAY);
    assert_eq!(said.as_deref(), Some("it began 1.5 s late"));
}

#[test]
fn whoever_takes_jobs_has_some_time_if_nothing_is_measured_yet() {
    assert_eq!(max_start_delay_with_jobs(40.0), 2.0);
    assert_eq!(max_start_delay_with_jobs(-3.0), MAX_START_DELAY);
    assert_eq!(
        late(Some(3.5), 2.0, 30.0, max_start_delay_with_jobs(40.0)),
        None
    );
}

#[test]
fn whoever_has_not_begun_is_late_only_when_it_was_time() {
    assert_eq!(late(None, 2.0, 1.0, MAX_START_DELAY), None);
    let said = late(None, 2.0, 5.0, MAX_START_DELAY);
    let expected = "it had not begun 3.0 s after its time, when the run was over";
    assert_eq!(said.as_deref(), Some(expected));
}
