//! How long the processors of the machine were busy, and how long a thread.
//!
//! A machine is busy, in user mode, in the kernel or in interrupts, when it is not
//! idle. Linux times how long a processor idles (`CONFIG_NO_HZ_IDLE`, as in all
//! distributions), while the parts of the rest (`user`, `system`, `softirq`) are
//! as a rule a sample at each tick, every 4 ms: too coarse for a second or two.
//! What the host of a virtual machine takes for others is neither.

use std::fs;
use std::io;

use nix::sys::resource::{UsageWho, getrusage};

use crate::run::processor_time;

/// What `/proc/stat` counts in, s (proc_stat(5): 1/100 s on most
/// architectures, all that this runs on among them).
const UNIT: f64 = 0.01;

/// What processors did not do, since the machine began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Machine {
    processors: f64,
    /// Idle, with nothing or nothing but a disk to wait for, s.
    idle: f64,
    /// Taken by the host for others, s.
    stolen: f64,
}

impl Machine {
    pub(super) fn now() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        Self::parse(&text).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "/proc/stat does not tell how long processors were idle",
            )
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<f64> = all
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        // user, nice, system, idle, iowait, irq, softirq, steal, ...
        let [_, _, _, idle, waiting, _, _, stolen, ..] = times[..] else {
            return None;
        };
        let is_processor = |line: &&str| {
            let number = line.strip_prefix("cpu");
            number.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        };
        Some(Self {
            processors: text.lines().filter(is_processor).count() as f64,
            idle: (idle + waiting) * UNIT,
            stolen: stolen * UNIT,
        })
    }

    /// How long its processors were busy from `before` to now, which are so
    /// many seconds apart; all of them together, s.
    pub(super) fn busy_since(&self, before: &Self, elapsed_s: f64) -> f64 {
        let others = self.idle - before.idle + self.stolen_since(before);
        (self.processors * elapsed_s - others).max(0.0)
    }

    /// What the host has taken for others from `before` to now, s.
    pub(super) fn stolen_since(&self, before: &Self) -> f64 {
        self.stolen - before.stolen
    }
}

/// What a thread has cost since it began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Thread {
    /// Processor time, s, with what interrupts did meanwhile.
    pub(super) busy_s: f64,
    /// How often it gave its processor away, or lost it.
    pub(super) switches: u64,
}

impl Thread {
    /// Of the one that asks.
    pub(super) fn now() -> io::Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
        let switches = usage.voluntary_context_switches() + usage.involuntary_context_switches();
        Ok(Self {
            busy_s: processor_time(&usage).as_secs_f64(),
            switches: switches as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processors after 100 s.
    const BEFORE: &str = "\
cpu  1000 0 2000 16000 500 0 450 50 0 0
cpu0 500 0 1000 8000 250 0 225 25 0 0
cpu1 500 0 1000 8000 250 0 225 25 0 0
intr 12345 6
ctxt 777
";

    /// Two seconds later.
    const AFTER: &str = "\
cpu  1050 0 2150 16100 505 0 520 75 0 0
cpu0 525 0 1075 8050 252 0 260 37 0 0
cpu1 525 0 1075 8050 253 0 260 38 0 0
intr 22345 6
ctxt 888
";

    #[test]
    fn what_is_neither_idle_nor_stolen_is_busy() {
        let (before, after) = (Machine::parse(BEFORE), Machine::parse(AFTER));
        let (before, after) = (before.unwrap(), after.unwrap());
        assert_eq!(before.processors, 2.0);
        // 4 s, without 1.05 idle and 0.25 stolen; the ticks say 2.7.
        let busy = after.busy_since(&before, 2.0);
        assert!((busy - 2.7).abs() < 1e-9, "{busy}");
        assert!((after.stolen_since(&before) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_account_of_processors_is_none() {
        assert_eq!(Machine::parse("cpu  1 2 3\ncpu0 1 2 3\n"), None);
        assert_eq!(Machine::parse(""), None);
    }

    #[test]
    fn who_works_is_seen_to() {
        let (machine, thread) = (Machine::now().unwrap(), Thread::now().unwrap());
        let clock = crate::clock::Clock::start();
        let mut spun = 0_u64;
        while Thread::now().unwrap().busy_s - thread.busy_s < 0.2 {
            spun = std::hint::black_box(spun + 1);
        }
        let after = Machine::now().unwrap();
        let busy = after.busy_since(&machine, clock.seconds());
        let stolen = after.stolen_since(&machine);
        // It counts in hundredths of a second, and what is stolen from a processor
        // that wakes up as idle as well.
        assert!(busy + stolen >= 0.16, "{busy} s, {stolen} s stolen");
    }
}
