//! Weights against a connection that carries what its weight is good for.

use super::*;

/// What the link carries, byte/s.
const LINK: f64 = 1e6;

/// A transfer of 30 % of what the link carries in its window.
const WINDOW_S: f64 = 100.0;
const SIZE: u64 = 30_000_000;

fn background(text: &str) -> Background {
    toml::from_str(text).unwrap()
}

/// Of a packet of 1000 bytes and a round trip of 50 ms, 20 of them in queues;
/// one of 500 packets is lost, and one of 100 is an indication by delay, which
/// takes a tenth of the window.
fn seen(t: f64, before: f64, acked: f64) -> Reading {
    let packets = (acked / 1000.0) as u64;
    Reading {
        now: Duration::from_secs_f64(t),
        acked: acked as u64,
        carried: acked as u64 - before as u64,
        rtt: Duration::from_millis(50),
        least_rtt: Duration::from_millis(40),
        segment: 1000.0,
        state: Some(CongestionState {
            base_rtt: 0.03,
            packets,
            losses: (packets / 500) as u32,
            delays: (packets / 100) as u32,
            delay_share: (packets / 100) as f64 / 10.0,
            ..CongestionState::default()
        }),
    }
}

/// When everything was there, the weights on the way, and the last phi: a weight w is good for
/// w/(1 + w) of the link, and the least weight for nothing.
fn transfer(controller: &str, law: Option<CongestionLaw>) -> (f64, Vec<f64>, f64) {
    let text = format!("size_mb = 30.0\ndeadline_s = {WINDOW_S:?}\n{controller}");
    let mut weigher = Weigher::new(&background(&text), Some(SIZE), law, Duration::ZERO);
    let (mut t, mut acked, mut weights) = (0.0, 0.0, Vec::new());
    while acked < SIZE as f64 && t < 3.0 * WINDOW_S {
        let w = weigher.order(Duration::from_secs_f64(t)).w;
        weights.push(w);
        let before = acked;
        acked += 0.1 * LINK * w / (1.0 + w);
        t += 0.1;
        weigher.look(&seen(t, before, acked));
    }
    (t, weights, weigher.phi())
}

#[test]
fn a_weight_is_that_of_the_scenario_from_its_moments_on() {
    let text = "weight = 0.1\nweights = [{ at_s = 5.0, weight = 0.5 }, { at_s = 9.0, weight = 1 }]";
    let mut weigher = Weigher::new(&background(text), None, None, Duration::from_secs(2));
    let mut at = |t: f64| {
        weigher.look(&seen(t, 0.0, 0.0));
        weigher.order(Duration::from_secs_f64(t)).w
    };
    assert_eq!([at(4.9), at(5.0), at(8.9), at(9.1)], [0.1, 0.5, 0.5, 1.0]);
    assert_eq!(weigher.zeta(), None);
    let weigher = Weigher::new(&background(""), None, None, Duration::ZERO);
    assert_eq!(
        (weigher.order(Duration::ZERO).w, weigher.phi()),
        (MIN_WEIGHT, 1.0)
    );
}

#[test]
fn every_controller_is_in_time() {
    for (controller, law) in [
        ("", None),
        ("", Some(CongestionLaw::Cdg)),
        ("controller = \"pid\"", Some(CongestionLaw::CubicBeta)),
        ("controller = \"mbc\"", Some(CongestionLaw::CubicPhantom)),
        ("controller = \"mbc\"", Some(CongestionLaw::VegasPaper)),
        ("controller = \"mbc\"", Some(CongestionLaw::Cdg)),
    ] {
        let (done, weights, _) = transfer(controller, law);
        let latest = 1.1 * WINDOW_S;
        assert!(done < latest, "{controller} {law:?}: {done} s");
        let most = weights.iter().copied().fold(0.0, f64::max);
        // A constant weight of 0.43 would do.
        assert!(most > 0.4 && done > 0.5 * WINDOW_S, "{controller} {law:?}");
    }
}

#[test]
fn phi_follows_the_prices_where_a_controller_of_the_papers_is_asked_for() {
    let phi = |controller, law| transfer(controller, Some(law)).2;
    for controller in ["controller = \"pid\"", "controller = \"mbc\""] {
        // (0.3 * 1/500 + 0.1 * 1/100) / (0.3 * 1/500) are 2.7.
        let last = phi(controller, CongestionLaw::VegasPaper);
        assert!((2.0..3.0).contains(&last), "{controller}: {last}");
    }
    assert_eq!(phi("", CongestionLaw::VegasPaper), 1.0);
    assert_eq!(
        phi("controller = \"pid\"", CongestionLaw::CubicPhantom),
        1.0
    );
}

#[test]
fn what_has_no_weight_is_let_be() {
    let (_, weights, _) = transfer("controller = \"mbc\"", None);
    assert!(weights.iter().all(|w| *w == MIN_WEIGHT));
}

#[test]
fn without_a_told_base_the_least_round_trip_is_one() {
    let told = seen(1.0, 0.0, 0.0);
    assert_eq!(told.base_rtt(), 0.03);
    let not = Reading {
        state: None,
        ..told
    };
    assert_eq!(not.base_rtt(), 0.04);
}

/// After so many packets of 1000 bytes, with these counts.
fn counted(t: u64, packets: u64, losses: u32, delays: u32, delay_share: f64) -> Reading {
    Reading {
        now: Duration::from_secs(t),
        acked: 1000 * packets,
        carried: 0,
        rtt: Duration::from_millis(50),
        least_rtt: Duration::from_millis(30),
        segment: 1000.0,
        state: Some(CongestionState {
            packets,
            losses,
            delays,
            delay_share,
            ..CongestionState::default()
        }),
    }
}

#[test]
fn cubic_pays_for_losses_as_rare_as_they_are() {
    let period = Duration::from_secs(1);
    let mut prices = Prices::new(CongestionLaw::CubicPhantom, 1.0, period, Duration::ZERO);
    let mut price = |seen: Reading| {
        prices.watch(&seen);
        prices.compare(1e5, &seen, 1e6).0
    };
    assert_eq!(price(counted(1, 500, 0, 0, 0.0)), 0.0);
    assert_eq!(price(counted(2, 1000, 2, 0, 0.0)), 0.002);
    // No news while few packets come without any, and then less.
    assert_eq!(price(counted(3, 1400, 2, 0, 0.0)), 0.002);
    assert_eq!(price(counted(4, 3000, 2, 0, 0.0)), 0.001);
    // Of many losses the last count.
    assert_eq!(price(counted(5, 4000, 22, 0, 0.0)), 20.0 / 3000.0);
}

#[test]
fn vegas_pays_for_delay_and_its_phi_follows_what_signals_remove() {
    let period = Duration::from_secs(1);
    let mut prices = Prices::new(CongestionLaw::VegasPaper, 1.0, period, Duration::ZERO);
    let mut last = 0.0;
    for t in 1..=100_u64 {
        let count = t as u32;
        // A loss and ten delays a second, each of which removes a tenth.
        let seen = counted(t, 1000 * t, count, 10 * count, f64::from(count));
        prices.watch(&seen);
        let (price, wanted) = prices.compare(1e5, &seen, 1e6);
        assert!((price - 0.02).abs() < 1e-12, "{price}");
        // alpha packets in the queue, times phi.
        let expected = prices.phi() * VEGAS_ALPHA * 1000.0 / 1e5;
        assert!((wanted - expected).abs() < 1e-12, "{wanted}");
        assert!(prices.phi() >= last, "it rises");
        last = prices.phi();
    }
    // (0.3 + 1) / 0.3 are 4.3, and it rises by a tenth of that at a time.
    assert!(last > 2.0 && last < 4.4, "{last}");
}

#[test]
fn cdg_pays_for_the_link() {
    let period = Duration::from_secs(1);
    let mut prices = Prices::new(CongestionLaw::CdgPaper, 1.0, period, Duration::ZERO);
    let seen = counted(1, 100, 0, 0, 0.0);
    let (price, wanted) = prices.compare(2e5, &seen, 1e6);
    assert_eq!(price, 1e-6);
    assert!(price < wanted, "less than its full weight");
}
