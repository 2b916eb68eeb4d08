//! The bottleneck between two hosts, in user space: a TUN device in each, and
//! a thread that carries packets from one to the other as late as a real link
//! would.

pub mod bottleneck;
mod forwarder;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tun_rs::{DeviceBuilder, SyncDevice};

use crate::host::{Class, Host};
use crate::link::bottleneck::{Bottleneck, Settings};
use crate::link::forwarder::Forwarder;
use crate::machine::{Clock, Context as _};
use crate::samples::{Lateness, LinkRecord};
use crate::scenario::DirectionSpec;

/// Size of the largest packet, bytes.
pub const MTU: u16 = 1500;

/// Payload of the largest packet, bytes: without 20 of IP, 20 of TCP and 12 of
/// its timestamps.
pub const PAYLOAD: u16 = 1448;

/// Share of the largest packet that is payload.
pub const PAYLOAD_SHARE: f64 = PAYLOAD as f64 / MTU as f64;

/// A link at work; ends when dropped.
#[derive(Debug)]
pub struct Link {
    hosts: [Host; 2],
    device: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<LinkRecord>>>,
}

impl Link {
    /// Joins two hosts by devices named `device` in each. Routes are the
    /// caller's business. The record of it goes up to `end`.
    ///
    /// # Errors
    /// When there is no TUN, or no right to use it.
    pub fn start(
        left: &Host,
        right: &Host,
        device: &str,
        forward: Settings,
        backward: Settings,
        clock: Clock,
        end: Duration,
    ) -> io::Result<Self> {
        let forwarder = Forwarder::new(
            [open(left, device)?, open(right, device)?],
            [Bottleneck::new(forward), Bottleneck::new(backward)],
            clock,
        );
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("link".to_owned())
            .spawn(move || forwarder.run(&stopped, end))?;
        Ok(Self {
            hosts: [left.clone(), right.clone()],
            device: device.to_owned(),
            stop,
            thread: Some(thread),
        })
    }

    /// Ends it and returns what it saw.
    ///
    /// # Errors
    /// When a device failed while it was running.
    ///
    /// # Panics
    /// When its thread did.
    pub fn finish(mut self) -> io::Result<LinkRecord> {
        // The devices go away with the thread.
        let [forward, backward] = &self.hosts;
        let overruns = [
            overrun(forward, &self.device)?,
            overrun(backward, &self.device)?,
        ];
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is finished once");
        let record = thread.join().expect("the link does not panic");
        let mut record = record.doing(format_args!("carry packets over {}", self.device))?;
        [
            record.forward.counters.overrun,
            record.backward.counters.overrun,
        ] = overruns;
        Ok(record)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// How long the thread may take to notice that it shall end.
const PATIENCE: Duration = Duration::from_millis(50);

/// Packets that a device has dropped because nobody took them in time.
fn overrun(host: &Host, device: &str) -> io::Result<u64> {
    // Eight columns of what was received; then bytes, packets, errors, drops.
    counter(host, device, 11)
}

/// What is in this column of the kernel's counters of a device; the first is bytes
/// received.
pub(crate) fn counter(host: &Host, device: &str, column: usize) -> io::Result<u64> {
    let path = "/proc/thread-self/net/dev";
    let table = host.within(move || std::fs::read_to_string(path));
    let table = table.doing(format_args!("read {path}"))?;
    let line = table
        .lines()
        .find_map(|line| line.trim().strip_prefix(&format!("{device}:")));
    let value = line.and_then(|line| line.split_whitespace().nth(column)?.parse().ok());
    value.ok_or_else(|| io::Error::other(format!("no counters of {device}")))
}

fn open(host: &Host, name: &str) -> io::Result<SyncDevice> {
    let name = name.to_owned();
    host.within(move || {
        let device = DeviceBuilder::new().name(&name).mtu(MTU).build_sync();
        let device = device.doing(format_args!(
            "make the TUN device {name} (is there /dev/net/tun?)"
        ))?;
        let set = device.set_nonblocking(true);
        set.doing(format_args!("set up the TUN device {name}"))?;
        Ok(device)
    })
}

/// A rate of so many Mbit/s, in byte/s.
#[must_use]
pub fn bytes_per_s(rate_mbit: f64) -> f64 {
    rate_mbit * 1e6 / 8.0
}

/// A rate that may change at given moments.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// From when (s) which rate (byte/s) holds; the first from 0.
    steps: Vec<(f64, f64)>,
}

impl Rate {
    /// The rate of this direction.
    #[must_use]
    pub fn of(spec: &DirectionSpec) -> Self {
        let changes = spec
            .schedule
            .iter()
            .map(|step| (step.at_s, bytes_per_s(step.rate_mbit)));
        Self {
            steps: std::iter::once((0.0, bytes_per_s(spec.rate_mbit)))
                .chain(changes)
                .collect(),
        }
    }

    /// When something of so many bytes has been sent, begun at `start`.
    #[must_use]
    pub fn finish(&self, start: Duration, bytes: usize) -> Duration {
        let mut now = start.as_secs_f64();
        let mut left = bytes as f64;
        let begun = self.steps.partition_point(|step| step.0 <= now);
        for index in begun.max(1)..=self.steps.len() {
            let rate = self.steps[index - 1].1;
            let end = now + left / rate;
            match self.steps.get(index) {
                Some(&(change, _)) if end > change => {
                    left -= (change - now) * rate;
                    now = change;
                }
                _ => return Duration::from_secs_f64(end),
            }
        }
        unreachable!("the last rate holds for ever")
    }

    /// Bytes that fit between two moments (s).
    #[must_use]
    pub fn capacity(&self, from: f64, to: f64) -> f64 {
        let ends = self.steps.iter().skip(1).map(|step| step.0);
        self.steps
            .iter()
            .zip(ends.chain(std::iter::once(f64::INFINITY)))
            .map(|(&(begin, rate), end)| (end.min(to) - begin.max(from)).max(0.0) * rate)
            .sum()
    }
}

/// A packet, to a bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Length with all headers, bytes.
    pub bytes: usize,
    /// Payload of TCP or UDP, bytes.
    pub payload: usize,
    /// Whose it is.
    pub class: Option<Class>,
    /// Ports of source and destination.
    pub ports: (u16, u16),
}

impl Packet {
    /// Reads the headers of an IP packet.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let nobody = Self {
            bytes: bytes.len(),
            payload: 0,
            class: None,
            ports: (0, 0),
        };
        if bytes.len() < 20 || bytes[0] >> 4 != 4 {
            return nobody;
        }
        let ip_header = usize::from(bytes[0] & 0x0f) * 4;
        let transport_header = match bytes[9] {
            6 => bytes
                .get(ip_header + 12)
                .map_or(0, |offset| usize::from(offset >> 4) * 4),
            17 => 8,
            _ => return nobody,
        };
        let port = |at: usize| match bytes.get(at..at + 2) {
            Some(&[high, low]) => u16::from_be_bytes([high, low]),
            _ => 0,
        };
        // The last octet of the destination; the source's is the same.
        let octet = bytes[19];
        Self {
            payload: bytes.len().saturating_sub(ip_header + transport_header),
            class: Class::ALL.into_iter().find(|class| class.octet() == octet),
            ports: (port(ip_header), port(ip_header + 2)),
            ..nobody
        }
    }
}

/// Width of a step.
const STEP: Duration = Duration::from_micros(10);

/// Steps; later than all of them is counted in the last.
const STEPS: usize = 1000;

/// Counted delays.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    max: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; STEPS],
            max: Duration::ZERO,
        }
    }
}

impl Histogram {
    /// Counts one delay.
    pub(crate) fn count(&mut self, late: Duration) {
        let step = (late.as_nanos() / STEP.as_nanos()) as usize;
        self.counts[step.min(STEPS - 1)] += 1;
        self.max = self.max.max(late);
    }

    /// Upper bounds of the steps that hold the percentiles.
    pub(crate) fn summary(&self) -> Lateness {
        let total: u64 = self.counts.iter().sum();
        let percentile = |share: f64| {
            let rank = (total as f64 * share).ceil().max(1.0) as u64;
            let mut seen = 0;
            let step = self.counts.iter().position(|count| {
                seen += count;
                seen >= rank
            });
            let bound = match step {
                // The last step has no upper bound.
                Some(step) if step + 1 < STEPS => STEP * (step as u32 + 1),
                _ => self.max,
            };
            bound.min(self.max).as_secs_f64() * 1e3
        };
        Lateness {
            median_ms: percentile(0.5),
            p99_ms: percentile(0.99),
            max_ms: self.max.as_secs_f64() * 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{LinkSpec, QueueSpec, RateStep};

    fn rate(mbit: f64, schedule: &[(f64, f64)]) -> Rate {
        let schedule = schedule.iter();
        Rate::of(&DirectionSpec {
            schedule: schedule
                .map(|&(at_s, rate_mbit)| RateStep { at_s, rate_mbit })
                .collect(),
            ..LinkSpec::plain(mbit, 0.0, QueueSpec::Packets(1)).forward()
        })
    }

    #[test]
    fn a_packet_takes_its_length_over_the_rate() {
        let start = Duration::from_secs(3);
        let took = rate(10.0, &[]).finish(start, 1500) - start;
        assert_eq!(took, Duration::from_micros(1200));
    }

    #[test]
    fn a_packet_across_a_change_is_sent_at_both_rates() {
        // 1 Mbit/s is 125 kB/s: half a second for 62.5 kB, the rest at twice
        // the rate.
        let rate = rate(1.0, &[(1.0, 2.0), (10.0, 1.0)]);
        let start = Duration::from_millis(500);
        assert_eq!(rate.finish(start, 125_000), Duration::from_millis(1250));
        assert_eq!(
            rate.finish(Duration::from_secs(1), 125_000),
            Duration::from_millis(1500)
        );
        assert_eq!(
            rate.finish(Duration::from_secs(20), 125_000),
            Duration::from_secs(21)
        );
    }

    #[test]
    fn capacity_adds_up_over_changes() {
        let rate = rate(8.0, &[(2.0, 16.0), (4.0, 8.0)]);
        assert!((rate.capacity(1.0, 5.0) - 6e6).abs() < 1e-6);
        assert!((rate.capacity(6.0, 7.0) - 1e6).abs() < 1e-6);
    }

    #[test]
    fn a_tcp_segment_is_its_payload_and_its_class() {
        let mut bytes = vec![0; 1500];
        bytes[0] = 0x45;
        bytes[9] = 6;
        bytes[19] = 2;
        bytes[20..24].copy_from_slice(&[0, 80, 0x12, 0x34]);
        // 32 bytes of TCP header, with timestamps.
        bytes[32] = 8 << 4;
        let packet = Packet::read(&bytes);
        assert_eq!((packet.bytes, packet.payload), (1500, 1448));
        assert_eq!(packet.class, Some(Class::Background));
        assert_eq!(packet.ports, (80, 0x1234));
    }

    #[test]
    fn what_is_not_ipv4_is_nobodys() {
        assert_eq!(Packet::read(&[0x60; 60]).class, None);
        assert_eq!(Packet::read(&[]).payload, 0);
        assert_eq!(Packet::read(&[0x4f; 20]).class, None);
    }

    #[test]
    fn percentiles_are_upper_bounds() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.summary(), Lateness::default());
        for micros in 0..1000 {
            histogram.count(Duration::from_micros(micros));
        }
        histogram.count(Duration::from_millis(30));
        let summary = histogram.summary();
        assert!((summary.median_ms - 0.51).abs() < 1e-9, "{summary:?}");
        assert!((summary.p99_ms - 1.0).abs() < 1e-9, "{summary:?}");
        assert!((summary.max_ms - 30.0).abs() < 1e-9, "{summary:?}");
        let mut late = Histogram::default();
        late.count(Duration::from_millis(30));
        assert!((late.summary().p99_ms - 30.0).abs() < 1e-9);
    }
}
