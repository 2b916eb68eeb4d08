//! What a weight gets beside one greedy flow, whose sender's congestion
//! control is CUBIC (RFC 9438), as water: both have what they have in flight,
//! and share the link as they share that.

use std::collections::VecDeque;

use super::link::{SEGMENT, info};
use super::*;

/// Between two looks, s.
const LOOK: f64 = 0.02;

/// Segments per second: 10 Mbit/s.
const RATE: f64 = 833.0;

/// beta_cubic and C, RFC 9438 sections 4.6 and 4.1; C in segments/s³.
const BETA: f64 = 0.7;
const C: f64 = 0.4;

/// Gain of the kernel's mean of the round-trip time.
const GAIN: f64 = 0.125;

struct Greedy {
    /// s
    base: f64,
    /// Windows in segments: the greedy flow's, when it was last reduced and
    /// what it was before (W_max), and Reno's instead (section 4.3).
    window: f64,
    reduced: f64,
    most: f64,
    reno: f64,
    now: f64,
    smoothed: f64,
    received: f64,
    /// What our sender has in flight at most, segments.
    limit: f64,
    /// Windows on their way to our sender.
    under_way: VecDeque<f64>,
}

impl Greedy {
    fn new(base_ms: u64) -> Self {
        let base = base_ms as f64 / 1e3;
        Self {
            base,
            window: RATE * base,
            reduced: 0.0,
            most: RATE * base,
            reno: RATE * base,
            now: 0.0,
            smoothed: base,
            received: 0.0,
            limit: f64::INFINITY,
            under_way: VecDeque::new(),
        }
    }

    /// One look at our connection; returns our rate, as a share.
    fn look(&mut self, limiter: &mut ReceiveWindowLimiter, order: FlowTarget) -> f64 {
        let round_trip = ((self.smoothed / LOOK) as usize).max(1);
        let mut ours = 2.0;
        while self.under_way.len() >= round_trip {
            ours = self.under_way.pop_front().unwrap();
        }
        let ours = self.under_way.front().map_or(ours, |&w| w).min(self.limit);
        let rtt = ((self.window + ours) / RATE).max(self.base);
        if rtt > 2.0 * self.base && self.now > self.reduced + 2.0 * rtt {
            self.most = self.window;
            self.window *= BETA;
            self.reno = self.window;
            self.reduced = self.now;
        }
        let since = self.now - self.reduced;
        let plateau = (self.most * (1.0 - BETA) / C).cbrt();
        self.reno += 3.0 * (1.0 - BETA) / (1.0 + BETA) * LOOK / rtt;
        let cubic = C * (since - plateau).powi(3) + self.most;
        self.window = self.window.max(cubic).max(self.reno);
        let rate = ours / rtt;
        self.received += rate * LOOK;
        let updates = (rate * LOOK / 2.0).max(1.0);
        self.smoothed += (rtt - self.smoothed) * (1.0 - (1.0 - GAIN).powf(updates));
        self.now += LOOK;
        let smoothed = Duration::from_secs_f64(self.smoothed);
        let seen = info(smoothed, (self.received * SEGMENT) as u64, 0);
        let now = Duration::from_secs_f64(self.now);
        let window = limiter.update(now, &seen, order, None).unwrap();
        self.under_way.push_back(f64::from(window) / SEGMENT);
        rate / RATE
    }

    /// Our mean share over so many seconds.
    fn run(&mut self, limiter: &mut ReceiveWindowLimiter, order: FlowTarget, seconds: f64) -> f64 {
        let looks = (seconds / LOOK) as usize;
        let sum: f64 = (0..looks).map(|_| self.look(limiter, order)).sum();
        sum / looks as f64
    }
}

/// The path is known, what it carries is not.
fn beside(base_ms: u64) -> (Greedy, ReceiveWindowLimiter) {
    let mut limiter = ReceiveWindowLimiter::new(ReceiverPolicy::Delay);
    limiter.delays.learn(Duration::ZERO, ms(base_ms));
    (Greedy::new(base_ms), limiter)
}

#[test]
fn a_weight_gets_its_share_of_a_path_that_was_always_busy() {
    for base in [20, 50, 100] {
        let mut before = 0.0;
        for w in [0.02, 0.1, 0.25, 0.5, 0.75] {
            let (mut greedy, mut limiter) = beside(base);
            greedy.run(&mut limiter, weight(w, 0.0), 30.0);
            let share = greedy.run(&mut limiter, weight(w, 0.0), 40.0);
            let ideal = w / (1.0 + w);
            println!("{base} ms, w {w}: {share:.3} of {ideal:.3}");
            assert!(
                share > 0.95 * before,
                "{base} ms, w {w}: {share} after {before}"
            );
            assert!(
                w < 0.25 || (share / ideal - 1.0).abs() < 0.2,
                "{base} ms, w {w}: {share} of {ideal}"
            );
            before = share;
        }
    }
}

#[test]
fn the_share_is_steady() {
    let (mut greedy, mut limiter) = beside(50);
    let order = weight(0.5, 0.0);
    greedy.run(&mut limiter, order, 30.0);
    let shares: Vec<f64> = (0..20)
        .map(|_| greedy.run(&mut limiter, order, 2.0))
        .collect();
    let mean = shares.iter().sum::<f64>() / 20.0;
    assert!(
        shares.iter().all(|share| (share / mean - 1.0).abs() < 0.2),
        "{shares:?}"
    );
}

#[test]
fn a_new_weight_soon_gets_its_share() {
    let (mut greedy, mut limiter) = beside(50);
    greedy.run(&mut limiter, weight(0.5, 0.0), 30.0);
    greedy.run(&mut limiter, weight(0.25, 0.0), 1.0);
    let less = greedy.run(&mut limiter, weight(0.25, 0.0), 5.0);
    greedy.run(&mut limiter, weight(0.5, 0.0), 1.0);
    let more = greedy.run(&mut limiter, weight(0.5, 0.0), 5.0);
    assert!(
        (less - 0.2).abs() < 0.05 && (more - 1.0 / 3.0).abs() < 0.07,
        "{less}, {more}"
    );
}

#[test]
fn a_sender_that_does_not_fill_its_window_does_not_widen_it() {
    let (mut greedy, mut limiter) = beside(100);
    greedy.limit = 20.0;
    let order = weight(0.75, 0.0);
    greedy.run(&mut limiter, order, 60.0);
    let widest = greedy.under_way.iter().copied().fold(0.0, f64::max);
    assert!(widest < 40.0, "{widest}");
    greedy.limit = f64::INFINITY;
    greedy.run(&mut limiter, order, 30.0);
    let share = greedy.run(&mut limiter, order, 30.0);
    assert!((share - 3.0 / 7.0).abs() < 0.09, "{share}");
}
