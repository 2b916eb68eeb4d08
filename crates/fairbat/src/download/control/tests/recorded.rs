//! Recorded control events of a run: deadlines, sizes that become known, a limit
//! on the rate, and a clock that is set.

use super::*;
use crate::tests::{Script, expect_recorded, line, set_clock};

fn drive(out: &mut String, seed: u64, settings: &Settings, deadlines: &[Option<i64>]) {
    let mut script = Script::new(seed);
    let mut drift = SignedDuration::ZERO;
    set_clock(Duration::ZERO, drift);
    let (mut run, mut events) = run_of(settings, deadlines);
    let mut share = 1.0;
    for second in 1..400_u64 {
        if second == 130 || second == 300 {
            drift += SignedDuration::from_secs(if second == 130 { 25 } else { -60 });
        }
        let now = secs(second);
        set_clock(now, drift);
        run.now = now;
        if script.below(30) == 0 {
            share = 0.05 + 0.95 * script.share();
        }
        let index = script.below(deadlines.len() as u64) as usize;
        if script.below(20) == 0 && run.transfers[index].total.is_none() {
            run.transfers[index].total = Some((1 + script.below(60)) * 10 * MIB);
        }
        let rate = 2e6 * share;
        let transfer = &mut run.transfers[index];
        let known = transfer.total.unwrap_or(0);
        let bytes = (rate as u64).min(known - transfer.done.min(known));
        transfer.done += bytes;
        transfer.ways()[0].member.moved(bytes);
        if known > 0 && run.transfers[index].done == known {
            run.transfers[index].stage = Stage::Finishing(None);
        }
        run.on_tick();
        while let Ok(TimedEvent { event, .. }) = events.try_recv() {
            let known = |value: Option<f64>| value.unwrap_or(-1.0);
            match event {
                Event::Control(Control {
                    n,
                    m,
                    w,
                    zeta,
                    lag,
                    rate,
                    ..
                }) if second % 3 == 0 => {
                    line(out, &[n, m, w, known(zeta), known(lag), rate]);
                }
                Event::Forecast {
                    late_s,
                    zeta,
                    rate,
                    url,
                } => {
                    let number = url.rsplit('/').next().unwrap().parse().unwrap();
                    line(out, &[late_s, zeta, rate, number]);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn the_same_inputs_give_the_samples_that_were_recorded() {
    let mut out = String::new();
    let deadlines = [Some(200), None, Some(350), Some(350), None];
    drive(&mut out, 1, &settings(), &deadlines);
    let limited = Settings {
        limit_rate: Some(1_500_000),
        split: 2,
        max_connections: 9,
        ..settings()
    };
    drive(&mut out, 2, &limited, &deadlines);
    drive(&mut out, 3, &settings(), &[None, None]);
    expect_recorded("run.txt", &out);
}
