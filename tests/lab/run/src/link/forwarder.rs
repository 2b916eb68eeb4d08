//! The thread that is a link: reads packets from one device, asks the
//! bottleneck when they arrive, and writes them to the other at that moment.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::ClockId;
use tun_rs::SyncDevice;

use crate::lateness::Histogram;
use crate::link::bottleneck::{Arriving, Bottleneck};
use crate::link::packet::{Packet, mark_congestion};
use crate::link::{MTU, PATIENCE};
use crate::machine::{Clock, be_punctual};
use crate::samples::LinkRecord;

/// Packets read in one go before those that are due are looked at again.
const READ_AT_ONCE: usize = 32;

/// What a TUN device answers that is down.
const DOWN: i32 = Errno::EIO as i32;

/// Both directions of a link; direction 0 goes from device 0 to device 1.
pub(crate) struct Forwarder {
    devices: [SyncDevice; 2],
    bottlenecks: [Bottleneck; 2],
    /// Packets, each where its bottleneck says; what is in the others is of no use.
    buffers: Vec<Vec<u8>>,
    /// Buffers without a packet.
    spare: Vec<usize>,
    lateness: Histogram,
    clock: Clock,
}

impl Forwarder {
    pub(crate) fn new(
        devices: [SyncDevice; 2],
        bottlenecks: [Bottleneck; 2],
        clock: Clock,
    ) -> Self {
        Self {
            devices,
            bottlenecks,
            buffers: Vec::new(),
            spare: Vec::new(),
            lateness: Histogram::default(),
            clock,
        }
    }

    /// Carries packets until told to stop; the record goes up to `end`.
    pub(crate) fn run(mut self, stop: &AtomicBool, end: Duration) -> io::Result<LinkRecord> {
        // A packet is due when it is due, whatever sender and receiver are
        // doing on the same processor; this never needs a whole one. Where it
        // is not granted the link is less exact, and says so in its record.
        be_punctual()?;
        let cpu_before = thread_cpu()?;
        while !stop.load(Ordering::Relaxed) {
            for direction in 0..2 {
                self.deliver(direction)?;
            }
            let readable = self.wait()?;
            for (direction, readable) in readable.into_iter().enumerate() {
                if readable {
                    self.take_in(direction)?;
                }
            }
        }
        let end = self.clock.now().min(end);
        let [forward, backward] = self.bottlenecks;
        Ok(LinkRecord {
            forward: forward.finish(end),
            backward: backward.finish(end),
            cpu_s: (thread_cpu()? - cpu_before).as_secs_f64(),
            lateness: self.lateness.summary(),
        })
    }

    /// Waits for a packet to come or to be due; returns which devices have
    /// one to read.
    fn wait(&self) -> io::Result<[bool; 2]> {
        let due = self.bottlenecks.iter();
        let due = due.filter_map(Bottleneck::next_arrival).min();
        let now = self.clock.now();
        let patience = due.map_or(PATIENCE, |due| due.saturating_sub(now).min(PATIENCE));
        let [left, right] = &self.devices;
        let mut polled = [left, right].map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN));
        match ppoll(&mut polled, Some(TimeSpec::from_duration(patience)), None) {
            Ok(_) => Ok(polled.map(|polled| polled.any().unwrap_or(false))),
            Err(Errno::EINTR) => Ok([false; 2]),
            Err(error) => Err(error.into()),
        }
    }

    fn take_in(&mut self, direction: usize) -> io::Result<()> {
        for _ in 0..READ_AT_ONCE {
            let buffer = self.spare.pop().unwrap_or_else(|| {
                self.buffers.push(Vec::new());
                self.buffers.len() - 1
            });
            let bytes = &mut self.buffers[buffer];
            bytes.resize(usize::from(MTU), 0);
            let length = match self.devices[direction].recv(bytes) {
                Ok(length) => length,
                Err(error) => {
                    self.spare.push(buffer);
                    let is_empty = error.kind() == io::ErrorKind::WouldBlock;
                    return if is_empty { Ok(()) } else { Err(error) };
                }
            };
            bytes.truncate(length);
            let packet = Packet::read(bytes, buffer);
            let bottleneck = &mut self.bottlenecks[direction];
            bottleneck.arrive(self.clock.now(), packet);
            let dropped = bottleneck.take_dropped();
            self.spare.extend(dropped.map(|packet| packet.buffer));
        }
        Ok(())
    }

    /// Hands over what is due.
    fn deliver(&mut self, direction: usize) -> io::Result<()> {
        let bottleneck = &mut self.bottlenecks[direction];
        if bottleneck.next_arrival().is_none() {
            return Ok(());
        }
        let now = self.clock.now();
        while let Some(Arriving { arrives, packet }) = bottleneck.deliver(now) {
            self.lateness.count(now - arrives);
            let bytes = &mut self.buffers[packet.buffer];
            if packet.is_marked {
                mark_congestion(bytes);
            }
            match self.devices[1 - direction].send(bytes) {
                // The device is down, as that of a path that has gone away.
                Err(error) if error.raw_os_error() == Some(DOWN) => bottleneck.lose(&packet),
                sent => drop(sent?),
            }
            self.spare.push(packet.buffer);
        }
        let dropped = bottleneck.take_dropped();
        self.spare.extend(dropped.map(|packet| packet.buffer));
        Ok(())
    }
}

/// Processor time of this thread.
fn thread_cpu() -> io::Result<Duration> {
    Ok(ClockId::CLOCK_THREAD_CPUTIME_ID.now()?.into())
}
