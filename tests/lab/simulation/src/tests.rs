//! What the flows of a simulation do on the lab's links.

mod record;
mod weights;

use super::*;
use crate::congestion::control::Control;
use crate::congestion::rival::RivalControl;
use crate::congestion::state::{Acknowledged, CongestionState};
use dalbe::ebpf::CongestionLaw;
use lab_run::contender::{CongestionControl, Contender, Receiver, Sending};
use lab_run::rivals::Rival;
use lab_run::scenario::{QueueSpec, Scenario};
use std::time::Duration;

const FAIRBAT: Contender = Contender::FairbatNoDeadline(Receiver::Plain);

/// The product's sender, whose law is the program that runs in the kernel.
const SENDER: Contender = Contender::Sender(Sending::Law(CongestionLaw::Vegas));

const GREEDY: &str = "[[foreground]]\ntraffic = { greedy = {} }\n";

/// 10 Mbit/s, 100 ms, a queue of one bandwidth-delay product.
fn scenario(duration_s: f64, more: &str) -> Scenario {
    let text = format!(
        "description = \"a test\"\nduration_s = {duration_s:?}\nmeasure_from_s = 8.0\n\
         [[link]]\nrate_mbit = 10.0\ndelay_ms = 50.0\nqueue = {{ packets = 86 }}\n{more}"
    );
    toml::from_str(&text).unwrap()
}

fn run(scenario: &Scenario, contender: Contender) -> Figures {
    simulate(scenario, contender, 1, None).unwrap()
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    lab_run::statistics::median(&figures.collect::<Vec<_>>()).unwrap()
}

/// The figures with each of three seeds.
fn runs(scenario: &Scenario, contender: Contender) -> [Figures; 3] {
    [1, 2, 3].map(|seed| simulate(scenario, contender, seed, None).unwrap())
}

/// The median of what is kept beside a contender.
fn kept(scenario: &Scenario, contender: Contender) -> f64 {
    let beside = runs(scenario, contender);
    let alone = runs(scenario, Contender::None);
    let kept = beside.iter().zip(&alone);
    median(kept.map(|(beside, alone)| beside.kept(alone).unwrap()))
}

#[test]
fn one_that_gets_nothing_counts_among_those_that_share() {
    let jain = |copies: u32, stagger_s: f64| {
        let background = format!("[background]\ncopies = {copies}\nstagger_s = {stagger_s:?}\n");
        let control = Contender::Iperf3(CongestionControl::Cubic);
        run(&scenario(18.0, &background), control).jain()
    };
    assert_eq!(jain(1, 0.0), None);
    // The second would begin after the end.
    assert_eq!(jain(2, 17.0), Some(0.5));
    let together = jain(2, 0.0).unwrap();
    assert!((0.6..=1.0).contains(&together), "{together}");
}

#[test]
fn each_congestion_control_fills_a_link_alone() {
    use CongestionControl::{Bbr, Cubic, Reno};
    for (control, least) in [(Cubic, 0.97), (Reno, 0.95), (Bbr, 0.9)] {
        let figures = run(&scenario(25.0, ""), Contender::Iperf3(control));
        let used = figures.rest_used().unwrap();
        // Half a packet more may have left within the time.
        assert!((least..=1.001).contains(&used), "{control:?}: {used}");
        assert!(
            (1.19e6..1.21e6).contains(&figures.capacity),
            "{}",
            figures.capacity
        );
    }
}

#[test]
fn cubic_has_the_sawtooth_of_its_rfc() {
    let every = Duration::from_millis(100);
    let cubic = Contender::Iperf3(CongestionControl::Cubic);
    let figures = simulate(&scenario(40.0, ""), cubic, 1, Some(every)).unwrap();
    let windows: Vec<f64> = figures
        .trace
        .iter()
        .filter(|point| point.at_s > 8.0)
        .map(|point| point.congestion_window)
        .collect();
    let most = windows.iter().copied().fold(0.0, f64::max);
    let least = windows.iter().copied().fold(f64::INFINITY, f64::min);
    // Link and queue hold 169 segments; a loss leaves 0.7 of the window.
    assert!((160.0..190.0).contains(&most), "{most}");
    assert!((0.65..0.75).contains(&(least / most)), "{least} {most}");
}

#[test]
fn ledbat_holds_its_target_delay() {
    use lab_run::contender::TargetDelay;
    // The queue holds 100 ms; 25 of them are the target.
    let figures = run(&scenario(40.0, ""), Contender::Utp(TargetDelay::Early));
    let delay = figures.delay().unwrap();
    assert!((0.015..0.035).contains(&delay), "{delay}");
}

/// The same with a queue of so many packets.
fn with_queue(packets: u32, more: &str) -> Scenario {
    let mut scenario = scenario(60.0, more);
    scenario.measure_from_s = 20.0;
    scenario.link[0].queue = QueueSpec::Packets(packets);
    scenario
}

#[test]
fn each_rival_carries_most_of_an_idle_link() {
    for packets in [86, 300] {
        for rival in Rival::ALL {
            let figures = run(&with_queue(packets, ""), Contender::Rival(rival));
            let used = figures.rest_used().unwrap();
            if rival == Rival::TcpLpLinux {
                // Without a loss nothing ends its slow start, which makes a queue of half of
                // its window and takes that for others.
                assert!(
                    (0.04..0.4).contains(&used),
                    "{rival:?}, {packets} packets: {used}"
                );
                continue;
            }
            assert!(used > 0.7, "{rival:?}, {packets} packets: {used}");
        }
    }
    // A short queue is what kept TCP-LP at one packet for good.
    for rival in [Rival::TcpLp, Rival::TcpLpLinux, Rival::LedbatEarly] {
        let used = run(&with_queue(10, ""), Contender::Rival(rival));
        let used = used.rest_used().unwrap();
        assert!(used > 0.5, "{rival:?}, a short queue: {used}");
    }
}

#[test]
fn rivals_of_one_packet_leave_a_greedy_flow_nearly_all() {
    let scenario = with_queue(86, GREEDY);
    let alone = run(&scenario, Contender::None);
    for rival in [Rival::TcpLp, Rival::LedbatEarly] {
        let kept = run(&scenario, Contender::Rival(rival))
            .kept(&alone)
            .unwrap();
        assert!(kept > 0.9, "{rival:?}: {kept}");
    }
}

/// Whoever answers late makes a queue out of nothing at one packet.
#[test]
fn a_receiver_that_waits_for_a_second_packet_keeps_a_rival_at_one() {
    let control = |quick_acks: bool| {
        let mut connection = Control::Rival(RivalControl::new(Rival::LedbatEarly));
        let mut state = CongestionState::new();
        connection.begin(&mut state);
        state.window = 1.0;
        state.is_window_limited = true;
        // The least delay is of a time with more packets.
        for round in 0..20_u64 {
            let late = if quick_acks || round == 0 { 0 } else { 40 };
            state.now = Duration::from_millis(100 * round);
            state.rtt = 0.1;
            state.outstanding = 1;
            state.max_outstanding = 1;
            let ack = Acknowledged {
                segments: 1,
                rtt: Some(Duration::from_millis(100 + late)),
                echoed_ms: Some(50 + late as u32),
                ..Acknowledged::default()
            };
            connection.measure(&mut state, &ack);
            connection.avoid(&mut state, &ack);
            state.max_outstanding = state.window as u32;
        }
        state.window
    };
    assert_eq!(control(false), 1.0);
    assert!(control(true) > 2.0, "{}", control(true));
}

#[test]
fn two_greedy_flows_share_a_link() {
    let scenario = scenario(60.0, GREEDY);
    let alone = run(&scenario, Contender::None);
    let kept = run(&scenario, Contender::Curl).kept(&alone).unwrap();
    assert!((0.35..0.75).contains(&kept), "{kept}");
}

#[test]
fn the_law_leaves_a_greedy_flow_nearly_all() {
    let scenario = scenario(40.0, GREEDY);
    let alone = run(&scenario, Contender::None);
    let kept = run(&scenario, FAIRBAT).kept(&alone).unwrap();
    assert!(kept >= 0.95, "{kept}");
}

#[test]
fn the_law_fills_a_link_alone_with_a_short_queue() {
    let figures = run(&scenario(25.0, ""), FAIRBAT);
    let (used, delay) = (figures.rest_used().unwrap(), figures.delay().unwrap());
    assert!(used > 0.9, "{used}");
    assert!(delay < 0.015, "{delay}");
}

#[test]
fn two_ends_that_hold_back_ask_only_once() {
    let alone = scenario(30.0, "");
    let used = runs(&alone, Contender::FairbatServed).map(|run| run.rest_used().unwrap());
    // It was 0.92 when the receiver asked again.
    let used = median(used.into_iter());
    assert!(used >= 0.95, "{used}");
}

#[test]
fn the_law_goes_on_after_losses_of_its_own() {
    // A queue of a quarter of the path: slow start and growth lose data with nobody there.
    let mut alone = scenario(60.0, "");
    alone.put_on(&"20,180,0.25".parse().unwrap());
    let used = runs(&alone, FAIRBAT).map(|run| run.rest_used().unwrap());
    let used = median(used.into_iter());
    assert!(used >= 0.65, "{used}");
}

#[test]
fn a_sender_in_the_kernel_fills_a_link_alone_and_leaves_a_greedy_flow_nearly_all() {
    // With CoDel and with a short queue, a greedy flow lacks more.
    for (path, least) in [
        ("10,100,1", 0.97),
        ("10,100,4,codel", 0.8),
        ("40,10,0.25", 0.85),
    ] {
        let on_path = |more| {
            let mut scenario = scenario(40.0, more);
            scenario.put_on(&path.parse().unwrap());
            scenario
        };
        let alone = run(&on_path(""), SENDER);
        let (used, delay) = (alone.rest_used().unwrap(), alone.delay().unwrap());
        assert!(used > 0.85, "{path}: {used}");
        assert!(delay < 0.01, "{path}: {delay}");
        let greedy = on_path(GREEDY);
        let kept = run(&greedy, SENDER).kept(&run(&greedy, Contender::None));
        assert!(kept >= Some(least), "{path}: {kept:?}");
    }
}

#[test]
fn connections_to_one_host_yield_as_one() {
    let background = |connections: u32| format!("[background]\nconnections = {connections}\n");
    for (connections, least_used) in [(4, 0.92), (64, 0.3)] {
        let more = background(connections);
        let used = runs(&scenario(40.0, &more), SENDER).map(|run| run.rest_used().unwrap());
        let used = median(used.into_iter());
        assert!(
            used > least_used,
            "{connections} use {used} of an idle link"
        );
        let beside = kept(&scenario(40.0, &(GREEDY.to_owned() + &more)), SENDER);
        assert!(
            beside > 0.96,
            "beside {connections} a greedy flow keeps {beside}"
        );
    }
}

/// Bottlenecks at which a fixed delay tells nothing of others: with active queue
/// management, and with a queue of half and of a quarter of a bandwidth-delay product.
const SHORT_QUEUES: [&str; 4] = ["10,100,4,codel", "10,50,4,pie", "20,50,0.5", "40,10,0.25"];

#[test]
fn the_law_yields_at_short_queues_as_well() {
    for path in SHORT_QUEUES {
        let mut greedy = scenario(40.0, GREEDY);
        greedy.put_on(&path.parse().unwrap());
        let (beside, curl) = (kept(&greedy, FAIRBAT), kept(&greedy, Contender::Curl));
        println!("{path}: a greedy flow keeps {beside}, beside curl {curl}");
        assert!(
            beside >= 0.65 && beside > curl + 0.1,
            "{path}: {beside} {curl}"
        );
        let rate = greedy.link[0].rate_mbit;
        let live = format!(
            "[[foreground]]\ntraffic = {{ constant = {{ rate_mbit = {:?} }} }}\n",
            0.6 * rate
        );
        let mut stream = scenario(40.0, &live);
        stream.put_on(&path.parse().unwrap());
        let (beside, curl) = (kept(&stream, FAIRBAT), kept(&stream, Contender::Curl));
        println!("{path}: a stream keeps {beside}, beside curl {curl}");
        assert!(beside >= 0.85 && beside > curl, "{path}: {beside} {curl}");
    }
}

#[test]
fn a_rate_that_varies_by_itself_is_used_alone_and_left_to_others() {
    // Of the receiver's law before, 60 to 70 %; of the sender's, 47 %.
    for (path, contender, least) in [
        ("10,100,1,radio=200:0.4", FAIRBAT, 0.75),
        ("20,50,2,radio=50:0.4", FAIRBAT, 0.85),
        ("10,60,2,radio=50:0.4:0.1", SENDER, 0.65),
    ] {
        let on_path = |more| {
            let mut scenario = scenario(40.0, more);
            scenario.put_on(&path.parse().unwrap());
            scenario
        };
        let figures = |contender| {
            let runs = runs(&on_path(""), contender);
            let used = runs.iter().map(|run| run.rest_used().unwrap());
            (
                median(used),
                median(runs.iter().map(|run| run.delay().unwrap())),
            )
        };
        let (alone, curl) = (figures(contender), figures(Contender::Curl));
        println!(
            "{path}: uses {}, with a queue of {} s; curl {curl:?}",
            alone.0, alone.1
        );
        assert!(alone.0 >= least * curl.0, "{path}: {alone:?} {curl:?}");
        assert!(alone.1 <= 0.5 * curl.1, "{path}: {alone:?} {curl:?}");
        let beside = kept(&on_path(GREEDY), contender);
        assert!(beside >= 0.95, "{path}: a greedy flow keeps {beside}");
    }
}

#[test]
fn the_same_seed_is_the_same_run_and_another_one_another() {
    let web = "[[foreground]]\ntraffic = { web = { load = 0.3, mean_kb = 100.0 } }\n\
               [[foreground]]\ntraffic = { udp = { rate_mbit = 0.1, packet_bytes = 200 } }\n";
    let scenario = scenario(15.0, web);
    let seeded = |seed| simulate(&scenario, FAIRBAT, seed, None).unwrap();
    let figures = seeded(1);
    assert!(figures.fetches.len() > 5 && figures.datagram_delays.len() > 300);
    assert_eq!(figures, seeded(1));
    assert_ne!(figures, seeded(2));
}

#[test]
fn what_is_not_modelled_is_refused() {
    let deadline = "[background]\nsize_mb = 1.0\ndeadline_s = 9.0\n";
    let refused = |more: &str, contender| simulate(&scenario(10.0, more), contender, 1, None);
    assert!(refused(deadline, Contender::Curl).is_err());
    let error = refused("", Contender::Aria2).unwrap_err();
    assert_eq!(error.to_string(), "a simulation has no contender aria2c");
}
