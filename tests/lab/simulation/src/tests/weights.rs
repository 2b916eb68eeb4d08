//! What senders with a weight take beside greedy flows.

use std::time::Duration;

use dalbe::ebpf::CongestionLaw;
use dalbe::model::cdg_share;

use super::{median, simulate};
use lab_run::contender::{CongestionControl, Contender, Sending};
use lab_run::scenario::Scenario;

/// 10 Mbit/s, a queue of one bandwidth-delay product.
fn on_path(rtt_ms: u64, duration_s: u32, more: &str) -> Scenario {
    let text = format!(
        "description = \"a test\"\nduration_s = {duration_s}\nmeasure_from_s = 17\n\
         [[link]]\nrate_mbit = 10.0\ndelay_ms = {:?}\nqueue = {{ bdp = 1.0 }}\n{more}",
        rtt_ms as f64 / 2.0
    );
    toml::from_str(&text).unwrap()
}

/// The background's share of the payload, the median of so many seeds.
fn share(scenario: &Scenario, contender: Contender, seeds: u64) -> f64 {
    median((1..=seeds).map(|seed| {
        let figures = simulate(scenario, contender, seed, None).unwrap();
        figures.background / (figures.background + figures.foreground)
    }))
}

/// Beside one greedy flow. A few datagrams keep two flows from falling into step, which
/// nothing else here does.
fn share_of_weight(rtt_ms: u64, w: f64, contender: Contender, seeds: u64) -> f64 {
    let more = format!(
        "[[foreground]]\ntraffic = {{ greedy = {{}} }}\n\
         [[foreground]]\ntraffic = {{ udp = {{ rate_mbit = 0.3, packet_bytes = 300 }} }}\n\
         [background]\nweight = {w:?}\n"
    );
    share(&on_path(rtt_ms, 77, &more), contender, seeds)
}

const CDG: Contender = Contender::Sender(Sending::Law(CongestionLaw::Cdg));

#[test]
fn a_weight_is_a_share_under_cdg() {
    for rtt_ms in [20, 50, 100] {
        for w in [0.25, 0.5, 0.75] {
            let (share, due) = (share_of_weight(rtt_ms, w, CDG, 3), w / (1.0 + w));
            println!("{rtt_ms} ms, w = {w}: {share:.3} of {due:.3}");
            assert!(
                (share / due - 1.0).abs() < 0.25,
                "{rtt_ms} ms, {w}: {share}"
            );
        }
    }
}

/// Two loss-based flows share a link by chance for minutes: a single run has 25 to 60 %. That
/// this law is Reno's is tested in `cdg_cases.h`.
#[test]
#[ignore = "takes minutes: chance needs many seeds"]
fn cdg_of_full_weight_takes_what_reno_takes() {
    let reno = Contender::Sender(Sending::Kernel(CongestionControl::Reno));
    for rtt_ms in [20, 50, 100] {
        let (cdg, reno) = [CDG, reno]
            .map(|one| share_of_weight(rtt_ms, 1.0, one, 15))
            .into();
        println!("{rtt_ms} ms: {cdg:.3}, Reno {reno:.3}");
        assert!((cdg / reno - 1.0).abs() < 0.1, "{rtt_ms} ms: {cdg} {reno}");
    }
}

#[test]
fn published_cdg_has_the_shares_of_its_model() {
    let published = Contender::Sender(Sending::Law(CongestionLaw::CdgPaper));
    for rtt_ms in [50, 100] {
        for g_ms in [0.1, 2.0, 20.0] {
            let more = format!(
                "[[foreground]]\ntraffic = {{ greedy = {{ flows = 2 }} }}\n\
                 [background]\ncopies = 2\ng_ms = {g_ms:?}\n"
            );
            let share = share(&on_path(rtt_ms, 120, &more), published, 3);
            let model = cdg_share(g_ms, Duration::from_millis(rtt_ms));
            println!("{rtt_ms} ms, G = {g_ms} ms: {share:.3}, the model says {model:.3}");
            assert!(
                (share / model - 1.0).abs() < 0.3,
                "{rtt_ms} ms, {g_ms}: {share} {model}"
            );
        }
    }
}
