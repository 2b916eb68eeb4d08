//! Recorded samples of a lane that several members share.

use std::pin::Pin;
use std::task::{Context, Waker};

use super::*;
use crate::tests::{Script, expect_recorded, line, set_clock};

/// What a member waits for.
type Turn<'a> = Pin<Box<dyn Future<Output = Permit> + 'a>>;

/// Four members come, ask, move, are refused and leave, for ten minutes in which
/// the wall clock is set twice.
fn drive(out: &mut String, seed: u64, settings: LaneSettings) {
    let start = Timestamp::UNIX_EPOCH;
    let mut script = Script::new(seed);
    let mut drift = SignedDuration::ZERO;
    set_clock(Duration::ZERO, drift);
    let lane = Lane::start(settings).unwrap();
    let due = |s: i64| Some(start + SignedDuration::from_secs(s));
    let members = [
        lane.enter("busy", Service::of_batch(due(200))),
        lane.enter("busy", Service::of_batch(None)),
        lane.enter("other", Service::of_batch(due(500))),
        lane.enter("other", Service::of_batch(None)),
    ];
    members[2].set_weight(0.2);
    let mut left = [300e6, 900e6, 700e6, 200e6];
    let mut waiting: Vec<(usize, Turn<'_>)> = Vec::new();
    let mut held: Vec<(usize, Permit)> = Vec::new();
    let mut share = 1.0;
    for second in 1..600_u64 {
        let now = Duration::from_secs(second);
        if second == 150 || second == 400 {
            drift += SignedDuration::from_secs(if second == 150 { 40 } else { -90 });
        }
        set_clock(now, drift);
        if script.below(30) == 0 {
            share = 0.05 + 0.95 * script.share();
        }
        for (index, member) in members.iter().enumerate() {
            let has_asked = waiting.iter().any(|(of, _)| *of == index);
            if left[index] > 0.0 && !has_asked {
                waiting.push((index, Box::pin(member.admit())));
            }
        }
        let mut still = Vec::new();
        for (index, mut turn) in waiting.drain(..) {
            match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                std::task::Poll::Ready(permit) => held.push((index, permit)),
                std::task::Poll::Pending => still.push((index, turn)),
            }
        }
        waiting = still;
        let w = lane.samples().borrow().w;
        let weight = w * held.len() as f64;
        let rate = 5e6 * (weight / (weight + 1.0 / share - 0.99)).clamp(0.03, 1.0);
        if !held.is_empty() {
            let each = rate / held.len() as f64;
            for (index, _) in &held {
                left[*index] = (left[*index] - each).max(0.0);
                let rtt = (script.below(5) > 0).then(|| Duration::from_millis(20));
                lane.moved(each as u64, rtt, Service::Scavenge);
            }
        }
        for (member, left) in members.iter().zip(left) {
            let (bytes, inactive) = (left as u64, (left / 5e6) as u64);
            member.set_backlog(Backlog {
                bytes,
                inactive,
                ..Backlog::default()
            });
        }
        if script.below(3) == 0 && !held.is_empty() {
            let at = script.below(held.len() as u64) as usize;
            let (index, permit) = held.swap_remove(at);
            drop(permit);
            if script.below(20) == 0 {
                let wait = Duration::from_secs(script.below(40));
                // Recorded with two calls. `Permit::refused` makes them one, which another
                // test covers.
                let id = members[index].id();
                lane.with_core(|core, now| core.pushed_back(now, id, wait));
            }
        }
        lane.notice_clock();
        lane.sample();
        let sample = *lane.samples().borrow();
        if second % 3 == 0 {
            let known = |value: Option<f64>| value.unwrap_or(-1.0);
            let ends = members.iter().map(|member| {
                let end = member.forecast().finish(1e6).map(|end| end.as_secs_f64());
                known(end) + known(member.forecast().lateness(1e6))
            });
            let mut numbers = vec![
                sample.n,
                sample.m,
                sample.active as f64,
                sample.waiting as f64,
                sample.w,
                known(sample.zeta),
                sample.rate,
                known(sample.mean),
                known(sample.rtt.map(|rtt| rtt.as_secs_f64())),
                sample.capacity,
                known(sample.attainable),
            ];
            numbers.extend(ends);
            line(out, &numbers);
        }
    }
}

#[tokio::test]
async fn the_same_inputs_give_the_samples_that_were_recorded() {
    let mut out = String::new();
    drive(&mut out, 1, SETTINGS);
    let limit_rate = Some(2_000_000);
    let unheld = LaneSettings {
        limit_rate,
        is_held: false,
        max_connections: 6,
        ..SETTINGS
    };
    drive(&mut out, 2, unheld);
    let heavier = LaneSettings {
        weight: 0.3,
        max_connections: 1,
        ..SETTINGS
    };
    drive(&mut out, 3, heavier);
    expect_recorded("lane.txt", &out);
}
