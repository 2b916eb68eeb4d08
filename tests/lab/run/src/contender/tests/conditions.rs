//! Contenders under conditions that a scenario may make for them.

use super::*;

#[test]
fn a_program_that_is_stopped_goes_on_and_finishes() {
    undisturbed(BEARABLE, || {
        let contender = Contender::FairbatNoDeadline(Receiver::Plain);
        let until_s = START_S + 2.0;
        let scenario = scenario(&format!(
            "size_mb = 20.0\nstopped = {{ from_s = {:?}, until_s = {until_s:?} }}",
            START_S + 0.1
        ));
        let Some((lab, record)) = done(contender, &scenario) else {
            return;
        };
        assert!(record.done.expect("it is done") > until_s, "{record:?}");
        let error = Contender::Tcp.check(&scenario).unwrap_err().to_string();
        assert!(error.starts_with("tcp is not stopped under way"), "{error}");
        lab.assert_empty();
    });
}

#[test]
fn a_program_whose_host_is_away_waits_for_it() {
    undisturbed(BEARABLE, || {
        let contender = Contender::Curl;
        // Away from the first tenth of a second on, in which a tenth of it may come.
        assert_eq!(START_S % 3.0, 0.0);
        let stalls = "stalls = { every_ms = 3000.0, least_ms = 2900.0, most_ms = 2900.0 }";
        let scenario = scenario(&format!("size_mb = 10.0\n{stalls}"));
        let Some((lab, record)) = done(contender, &scenario) else {
            return;
        };
        assert!(
            record.done.expect("it is done") > START_S + 2.9,
            "{record:?}"
        );
        let error = Contender::Tcp.check(&scenario).unwrap_err().to_string();
        assert!(error.starts_with("tcp is not stopped under way"), "{error}");
        lab.assert_empty();
    });
}

#[test]
fn a_slow_server_is_slow_and_a_program_costs_time() {
    undisturbed(BEARABLE, || {
        let contender = Contender::Curl;
        let scenario = scenario("server_kb_s = 500.0");
        let Some(lab) = Lab::new(contender, &scenario) else {
            return;
        };
        let (running, clock) = lab.start(contender, &scenario);
        wait(clock, || clock.seconds() > START_S + 3.0);
        let record = running.finish();
        let time = clock.seconds() - START_S;
        let bytes = record.bytes.expect("it knows what it has moved") as f64;
        // nginx begins with a second's piece, and counts seconds of its clock: it may have
        // counted one more than have passed.
        assert!(
            (500_000.0..=500_000.0 * (time + 2.0)).contains(&bytes),
            "{bytes}"
        );
        let cpu_s = record.cpu_s.expect("it was there to the end");
        assert!(cpu_s > 0.0 && cpu_s < time, "{cpu_s} s");
        lab.assert_empty();
        let error = Contender::Utp(TargetDelay::Standard)
            .check(&scenario)
            .unwrap_err()
            .to_string();
        assert!(error.contains("whose server is nginx"), "{error}");
    });
}
