//! `lab sender-cost`: what our congestion controls, which are eBPF programs,
//! cost the machine that sends, beside the kernel's Reno, which is compiled into
//! it and does next to nothing.
//!
//! A thread writes and another reads, over loopback in a network namespace of
//! its own. What is measured is the processor time of the whole machine: on
//! loopback the congestion control runs when an acknowledgement arrives, in a
//! softirq, which the kernel does inside a call of the receiver, of the sender,
//! or of neither (a timer that paces packets, `ksoftirqd`); `getrusage` knows only
//! what happened while one of the two threads ran. Its figure is beside that of
//! the machine, without what else the machine did.
//!
//! That the laws are compared and not what surrounds them:
//! - Each transfer is compared with the mean of the transfers by Reno right
//!   before it and right after it, so that a machine that slows down or warms up
//!   makes no difference. How far Reno differs from itself in this way is shown.
//! - Both ends have buffers of the same, fixed size, the same data in the same
//!   calls, and a processor of their own.
//! - A law that holds a smaller window wakes its ends up more often for the same
//!   bytes, and that costs more than any law. So packets, acknowledgements and
//!   context switches are told beside the cost: where they are the same, only
//!   the law is left.
//!
//! Copying hides laws where a packet has 64 kB ([`Packets::Large`]). So all of it
//! is done again with packets as they are on an Ethernet ([`Packets::Small`]).
//!
//! It must not know how the laws work, nor of links and scenarios.

mod record;
mod report;
mod transfer;

use std::error::Error;
use std::io;

use dalbe::ebpf::{CongestionParameters, WeightedCongestion};
use dalbe::sender::SenderCoupling;
use dalbe::socket::TcpSocket;

use crate::sender_cost::record::{Control, EBPF_CONTROLS};
pub use crate::sender_cost::record::{NAME, Packets, Record, Run, Summary};
pub use crate::sender_cost::report::{write_all, write_page};
use crate::sender_cost::transfer::Pair;
pub use crate::sender_cost::transfer::Transfer;
use lab_run::host::Host;
use lab_run::machine::Context as _;
use lab_run::versions;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// How often each law has its turn.
    pub rounds: u32,
    /// Bytes of a transfer in large packets.
    pub large: u64,
    /// Bytes of a transfer in small packets, each of which costs as much.
    pub small: u64,
}

impl Plan {
    /// A transfer takes a second or two, all of it some seven minutes.
    pub const FULL: Self = Self {
        rounds: 9,
        large: 16_000_000_000,
        small: 1_500_000_000,
    };

    /// To see whether it works: ten seconds, and figures that mean nothing.
    pub const QUICK: Self = Self {
        rounds: 1,
        large: 1_000_000_000,
        small: 100_000_000,
    };

    fn bytes(&self, packets: Packets) -> u64 {
        match packets {
            Packets::Large => self.large,
            Packets::Small => self.small,
        }
    }
}

/// What is being done when the network cannot be made.
const NETWORK: &str = "make a network of the lab's own";

/// Measures all of it, and says each transfer as it is done. `command` is what
/// does it again.
///
/// # Errors
/// Without the rights of root, on a kernel that takes no congestion controls of
/// ours, and when a transfer fails.
pub fn measure(
    plan: &Plan,
    command: &str,
    said: &mut dyn FnMut(&str),
) -> Result<Record, Box<dyn Error>> {
    // All of them are set up together.
    EBPF_CONTROLS[0].contender().set_up()?;
    let versions = versions::of(Control::Reno.contender());
    let provenance = versions::provenance(command.to_owned(), versions, "1 lab".to_owned());
    let site = Site {
        congestion: WeightedCongestion::open()
            .map_err(|error| format!("open the congestion controls: {error}"))?,
        host: Host::new(0).doing(NETWORK)?,
    };
    let mut runs = Vec::new();
    for packets in Packets::ALL {
        let set = site.host.ip(packets.setting());
        set.doing(NETWORK)?;
        let bytes = plan.bytes(packets);
        // Code and buffers that are used for the first time.
        site.run(packets, Control::Reno, bytes)?;
        let turns = turns(plan.rounds);
        said(&format!("{}:", packets.title()));
        for (index, &control) in turns.iter().enumerate() {
            let run = site.run(packets, control, bytes)?;
            said(&format!("{}/{} {}", index + 1, turns.len(), run.line()));
            runs.push(run);
        }
    }
    Ok(Record::new(provenance, plan.rounds, runs))
}

/// Each of ours between two transfers by Reno, round after round.
fn turns(rounds: u32) -> Vec<Control> {
    let round = EBPF_CONTROLS.map(|control| [Control::Reno, control]);
    let mut turns = round.as_flattened().repeat(rounds as usize);
    turns.push(Control::Reno);
    turns
}

/// Where it is measured.
struct Site {
    congestion: WeightedCongestion,
    host: Host,
}

impl Site {
    fn run(&self, packets: Packets, control: Control, bytes: u64) -> Result<Run, Box<dyn Error>> {
        let transfer = self.transfer(control, bytes);
        let mut run = Run {
            packets,
            contender: control.contender().to_string(),
            weight: control.weight(),
            transfer: Transfer::default(),
        };
        run.transfer = transfer.doing(run.name())?;
        Ok(run)
    }

    fn transfer(&self, control: Control, bytes: u64) -> io::Result<Transfer> {
        let pair = Pair::open(&self.host)?;
        let socket = TcpSocket::from_fd(pair.descriptor()?);
        // After connecting: the route would overwrite it.
        match control {
            Control::Reno => {
                let chosen = socket.sender().set_congestion("reno");
                chosen.map_err(io::Error::other)?;
            }
            Control::Ours(law, w) => {
                let parameters = CongestionParameters {
                    law,
                    w,
                    phi: 1.0,
                    g_ms: None,
                    capacity: 0.0,
                    coupling: SenderCoupling::EQUAL,
                };
                self.congestion.set(&socket, &parameters)?;
            }
        }
        pair.carry(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_always_between_two_of_the_kernels() {
        let turns = turns(3);
        assert_eq!(turns.len(), 3 * 2 * EBPF_CONTROLS.len() + 1);
        for (index, &control) in turns.iter().enumerate() {
            assert_eq!(control == Control::Reno, index % 2 == 0, "{index}");
        }
        for control in EBPF_CONTROLS {
            assert_eq!(turns.iter().filter(|&&one| one == control).count(), 3);
        }
    }
}
