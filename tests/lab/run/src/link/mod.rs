//! The bottleneck between two hosts, in user space: a TUN device in each, and
//! a thread that carries packets from one to the other as late as a real link
//! would.

pub mod bottleneck;
mod codel;
mod discipline;
mod fair;
mod fifo;
mod forwarder;
mod fq_codel;
pub mod packet;
mod pie;
mod policer;
mod propagation;
mod rate;
mod recorder;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tun_rs::{DeviceBuilder, SyncDevice};

use crate::host::Host;
use crate::link::bottleneck::{Bottleneck, Settings};
use crate::link::forwarder::Forwarder;
pub use crate::link::rate::{Rate, bytes_per_s};
use crate::machine::{Clock, Context as _};
use crate::samples::LinkRecord;

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
        forward: &Settings,
        backward: &Settings,
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
///
/// # Errors
/// When there is no such interface.
pub fn counter(host: &Host, device: &str, column: usize) -> io::Result<u64> {
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
