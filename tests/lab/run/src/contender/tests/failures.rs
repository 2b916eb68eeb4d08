//! What contenders say, or what is said of them, when something is wrong.

use super::*;

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
        let scenario = scenario("");
        let Some(lab) = Lab::new(contender, &scenario) else {
            continue;
        };
        let (running, clock) = lab.start(contender, &scenario);
        fs::remove_file(lab.work.path().join("origin/file")).expect("it is there");
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
    let scenario = scenario("");
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
fn utp_tells_of_a_file_that_cannot_be_written() {
    let scenario = scenario("");
    let Some(lab) = Lab::new(Contender::Utp(TargetDelay::Standard), &scenario) else {
        return;
    };
    let (running, clock) = lab.start(Contender::Utp(TargetDelay::Standard), &scenario);
    let download = lab.work.path().join("download");
    fs::remove_dir(&download).expect("it is there, and empty");
    fs::write(&download, "in the way").expect("a file");
    wait(clock, || running.is_done());
    let failure = running.finish().failure.expect("it failed");
    assert!(failure.contains("Not a directory"), "{failure}");
    lab.assert_empty();
}

/// Whether it only does where the congestion controls are loaded: these tests
/// set no machine up.
fn is_loaded(contender: Contender) -> bool {
    contender.needs() == Some(dalbe::ebpf::EbpfPart::CongestionControls)
}

#[test]
fn whoever_moves_nothing_has_failed() {
    undisturbed(BEARABLE, || {
        let start_s = 4.0 * START_S;
        let scenario = scenario_from(start_s, "");
        // One after the other: who begins late has failed as well.
        let from = |place: usize| start_s + 0.2 * place as f64;
        let all = Contender::ALL.into_iter();
        // Those that push have an end, and miss a deadline then; of those that move what
        // comes nobody knows whether anything has.
        let is_other = |one: &Contender| one.pushes() || wants_jobs(*one);
        let is_one =
            |one: &Contender| *one != Contender::None && !is_loaded(*one) && !is_other(one);
        let all = all.filter(is_one);
        let can_run: Vec<_> = all
            .filter(|contender| Lab::new(*contender, &scenario).is_some())
            .collect();
        let Some(lab) = Lab::new(Contender::None, &scenario) else {
            return;
        };
        let clock = Clock::start();
        let running: Vec<_> = can_run
            .iter()
            .enumerate()
            .map(|(place, one)| {
                let scenario = scenario_from(from(place), "");
                lab.start_at(*one, &scenario, clock, &one.to_string())
            })
            .collect();
        // Everything is ready. From now on clients send to a machine that is not
        // there.
        wait(clock, || clock.seconds() > start_s - 1.0);
        let server = lab.hosts[0].address(Class::Background);
        lab.hosts[1]
            .ip(&format!(
                "neigh replace {server} lladdr 02:00:00:00:00:01 dev eth"
            ))
            .expect("mislead the client");
        wait(clock, || clock.seconds() > from(can_run.len()) + 1.0);
        for (contender, running) in can_run.into_iter().zip(running) {
            let failure = running.finish().failure;
            let expected = Some("it moved nothing");
            assert_eq!(failure.as_deref(), expected, "{contender}");
        }
        lab.assert_empty();
    });
}

#[test]
fn whoever_begins_late_has_failed() {
    for contender in [Contender::Engine, Contender::Curl, Contender::Tcp] {
        let scenario = scenario_from(0.0, "size_mb = 1.0");
        let Some(lab) = Lab::new(contender, &scenario) else {
            continue;
        };
        // As if the preparation had taken so long.
        let clock = Clock::start();
        clock.sleep_until(Duration::from_secs(1));
        let running = lab.start_at(contender, &scenario, clock, "");
        wait(clock, || running.is_done());
        let record = running.finish();
        let failure = record.failure.expect("it was late");
        assert!(failure.starts_with("it began "), "{contender}: {failure}");
        assert!(failure.ends_with(" s late"), "{contender}: {failure}");
        assert!(record.done.is_some(), "{contender}");
    }
}

#[test]
fn a_file_is_looked_at_when_the_run_is_over() {
    undisturbed(BEARABLE, || {
        for contender in [Contender::Engine, Contender::Curl] {
            let scenario = scenario("size_mb = 1.0");
            let Some(lab) = Lab::new(contender, &scenario) else {
                continue;
            };
            let (running, clock) = lab.start(contender, &scenario);
            wait(clock, || running.is_done());
            // Were it looked at before, nobody would notice.
            let arrived = lab.work.path().join("download/file");
            fs::write(arrived, "something else").expect("a file");
            let failure = running.finish().failure.expect("it is another file");
            let expected = "the file that has arrived is not the one that was served";
            assert!(failure.starts_with(expected), "{contender}: {failure}");
        }
    });
}
