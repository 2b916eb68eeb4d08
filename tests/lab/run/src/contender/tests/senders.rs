//! What only senders of the lab's do.

use super::*;
use crate::samples::SenderSample;

#[test]
fn what_is_for_some_is_refused_by_others() {
    let sender = |name: &str| -> Contender { name.parse().expect("a contender") };
    for (key, heeding, others) in [
        ("g_ms = 2.0", "sender-cdg-paper", ["sender-vegas", "curl"]),
        ("phi = 2.0", "sender-vegas-paper", ["sender-paced", "tcp"]),
        (
            "priorities = [3, 1]",
            "sender-vegas",
            ["sender-cubic-phantom", "fairbat"],
        ),
        (
            "weights = [{ at_s = 9.0, weight = 0.5 }]",
            "sender-paced",
            ["sender-kernel-cubic", "fairbat"],
        ),
        (
            "controller = \"pid\"\nsize_mb = 5.0\ndeadline_s = 20.0",
            "fairbat",
            ["fairbat-served", "curl"],
        ),
    ] {
        let scenario = scenario(key);
        let refuses = |contender: Contender| {
            let why = contender.does_not_heed(&scenario.background);
            why.is_some_and(|why| why.starts_with("does not heed background."))
        };
        assert!(!refuses(sender(heeding)), "{heeding}: {key}");
        assert!(!refuses(Contender::None), "{key}");
        for other in others {
            assert!(refuses(sender(other)), "{other}: {key}");
        }
    }
}

#[test]
fn senders_tell_what_they_saw_and_change_their_weights() {
    undisturbed(BEARABLE, || {
        let contender = Contender::Sender(Sending::Paced);
        let later = START_S + 1.5;
        let scenario = scenario(&format!(
            "weight = 0.1\nweights = [{{ at_s = {later:?}, weight = 0.5 }}]"
        ));
        let Some(lab) = Lab::new(contender, &scenario) else {
            return;
        };
        let (running, clock) = lab.start(contender, &scenario);
        wait(clock, || clock.seconds() > START_S + 5.5);
        let record = running.finish();
        assert_eq!(record.failure, None);
        let told: Vec<_> = record.sender.iter().map(|one| (one.t, one.w)).collect();
        assert!(told.len() >= 3, "{told:?}");
        for (t, w) in told {
            assert_eq!(w, if t < later { 0.1 } else { 0.5 }, "at {t}");
        }
        // What came is known by 100 ms, and nothing before it was sent.
        let received = &record.received;
        assert_eq!(received[(10.0 * START_S) as usize - 1], 0, "{received:?}");
        assert_eq!(received.last().copied(), record.bytes, "{received:?}");
        let is_known = |one: &SenderSample| one.cwnd > 0 && one.base_rtt_ms > 0.0;
        assert!(record.sender.iter().all(is_known), "{:?}", record.sender);
        lab.assert_empty();
    });
}
