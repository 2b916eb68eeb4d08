//! `lab sender-cost`: what our congestion controls, which are eBPF programs,
//! cost the machine that sends, beside the kernel's Reno, which is compiled into
//! it and does next to nothing.
//!
//! A thread writes and another reads, over loopback in a network namespace of
//! its own. What is measured is the processor time of the whole machine: on
//! loopback the congestion control runs when an acknowledgement arrives, in a
//! softirq, which the kernel does inside a call of the receiver, of the sender,
//! or of nobody (a timer that paces packets, `ksoftirqd`); `getrusage` knows only
//! what happened while one of the two threads ran. Its figure is beside that of
//! the machine, without what else the machine did.
//!
//! That the laws are compared and not what surrounds them:
//! - Each transfer is compared with the mean of the transfers by Reno right
//!   before it and right after it, so that a machine that slows down or warms up
//!   is no difference. How far Reno differs from itself in this way is shown.
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

mod report;
mod transfer;

use std::io;

use dalbe::ebpf::{CongestionLaw, CongestionParameters, EbpfUnavailable, WeightedCongestion};
use dalbe::socket::TcpSocket;
use dalbe::weight::MIN_WEIGHT;
use serde::{Deserialize, Serialize};

use crate::contender::{CongestionControl, Contender, ContenderError, Sending};
use crate::host::Host;
use crate::record::Provenance;
pub use crate::sender_cost::report::{write_all, write_page};
pub use crate::sender_cost::transfer::Transfer;
use crate::sender_cost::transfer::{BLOCK, BUFFER, Pair};
use crate::statistics::{Quartiles, mean};
use crate::versions;

/// Name of the record and of the page.
pub const NAME: &str = "sender-cost";

/// What a sender follows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Control {
    /// The kernel's, which the others are compared with.
    Reno,
    /// A law of the project's own, with this weight.
    Ours(CongestionLaw, f64),
}

/// Ours, as one best-effort flow and as a flow that yields to anybody. The
/// papers' laws are parts of the same programs.
const OURS: [Control; 6] = [
    Control::Ours(CongestionLaw::Vegas, 1.0),
    Control::Ours(CongestionLaw::Vegas, MIN_WEIGHT),
    Control::Ours(CongestionLaw::Cdg, 1.0),
    Control::Ours(CongestionLaw::Cdg, MIN_WEIGHT),
    Control::Ours(CongestionLaw::CubicPhantom, 1.0),
    Control::Ours(CongestionLaw::CubicPhantom, MIN_WEIGHT),
];

impl Control {
    /// The sender of the lab's that follows it.
    fn contender(self) -> Contender {
        Contender::Sender(match self {
            Self::Reno => Sending::Kernel(CongestionControl::Reno),
            Self::Ours(law, _) => Sending::Law(law),
        })
    }

    fn weight(self) -> Option<f64> {
        match self {
            Self::Reno => None,
            Self::Ours(_, w) => Some(w),
        }
    }
}

/// In what packets the data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packets {
    /// Up to 64 kB, as on any loopback.
    Large,
    /// Up to 1500 bytes, handed over two at a time: as on an Ethernet whose
    /// network card does nothing for TCP, with an acknowledgement for two or
    /// three.
    Small,
}

impl Packets {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Large, Self::Small];

    /// What they are, for people.
    fn title(self) -> &'static str {
        match self {
            Self::Large => "Packets of 64 kB",
            Self::Small => "Packets of 1500 bytes",
        }
    }

    /// What ip(8) is told.
    fn setting(self) -> &'static str {
        match self {
            Self::Large => "link set lo mtu 65536 gso_max_segs 65535",
            Self::Small => "link set lo mtu 1500 gso_max_segs 2",
        }
    }
}

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

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum SenderCostError {
    /// There are no congestion controls of ours to be had.
    #[error("{0}")]
    Setup(#[from] ContenderError),
    /// They are there and cannot be used.
    #[error("open the congestion controls: {0}")]
    Open(#[from] EbpfUnavailable),
    /// The network could not be made.
    #[error("make a network of the lab's own: {0}")]
    Network(#[source] io::Error),
    /// A transfer failed.
    #[error("{who}: {source}")]
    Transfer {
        /// Whose.
        who: String,
        /// Why.
        source: io::Error,
    },
}

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
) -> Result<Record, SenderCostError> {
    // All of them are set up together.
    OURS[0].contender().set_up()?;
    let provenance = provenance(command);
    let site = Site {
        congestion: WeightedCongestion::open()?,
        host: Host::new(0).map_err(SenderCostError::Network)?,
    };
    let mut runs = Vec::new();
    for packets in Packets::ALL {
        let set = site.host.ip(packets.setting());
        set.map_err(SenderCostError::Network)?;
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
    let round = OURS.map(|control| [Control::Reno, control]);
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
    fn run(&self, packets: Packets, control: Control, bytes: u64) -> Result<Run, SenderCostError> {
        let transfer = self.transfer(control, bytes);
        let mut run = Run {
            packets,
            contender: control.contender().to_string(),
            weight: control.weight(),
            transfer: Transfer::default(),
        };
        run.transfer = transfer.map_err(|source| SenderCostError::Transfer {
            who: run.name(),
            source,
        })?;
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
                };
                self.congestion.set(&socket, &parameters)?;
            }
        }
        pair.carry(bytes)
    }
}

fn provenance(command: &str) -> Provenance {
    Provenance {
        command: command.to_owned(),
        commit: versions::commit(),
        kernel: versions::kernel(),
        machine: versions::machine(),
        versions: versions::of(Control::Reno.contender()),
        started: versions::now(),
        side_by_side: "1 lab".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_always_between_two_of_the_kernels() {
        let turns = turns(3);
        assert_eq!(turns.len(), 3 * 2 * OURS.len() + 1);
        for (index, &control) in turns.iter().enumerate() {
            assert_eq!(control == Control::Reno, index % 2 == 0, "{index}");
        }
        for control in OURS {
            assert_eq!(turns.iter().filter(|&&one| one == control).count(), 3);
        }
    }
}

/// All of it; tests/lab/results/sender-cost.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`NAME`].
    pub name: String,
    /// Where and how it was measured.
    pub provenance: Provenance,
    /// How often each law had its turn.
    pub rounds: u32,
    /// Buffer of either end, bytes.
    pub buffer: usize,
    /// What is written with one call, and read at most, bytes.
    pub block: usize,
    /// The figures, by packets and laws.
    pub summary: Vec<Summary>,
    /// Each transfer, in the order in which they were made.
    pub runs: Vec<Run>,
}

/// One transfer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// In what packets.
    pub packets: Packets,
    /// The contender that has this congestion control.
    pub contender: String,
    /// Its weight, if it has one.
    pub weight: Option<f64>,
    /// What it cost.
    pub transfer: Transfer,
}

/// What the transfers of one law come to. A GB is 10^9 bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// In what packets.
    pub packets: Packets,
    /// The contender that has this congestion control.
    pub contender: String,
    /// Its weight, if it has one.
    pub weight: Option<f64>,
    /// Processor time of the machine, s per GB.
    pub machine: Option<Quartiles>,
    /// The same, each in parts of the mean of Reno's before it and after it.
    pub machine_ratio: Option<Quartiles>,
    /// Processor time of the two threads, s per GB.
    pub threads: Option<Quartiles>,
    /// The same, in parts of Reno's.
    pub threads_ratio: Option<Quartiles>,
    /// Payload, GB/s.
    pub goodput: Option<Quartiles>,
    /// The same, in parts of Reno's.
    pub goodput_ratio: Option<Quartiles>,
    /// Packets that arrived, per GB.
    pub packets_per_gb: Option<Quartiles>,
    /// Acknowledgements, per GB.
    pub acknowledgements_per_gb: Option<Quartiles>,
    /// Context switches of the two threads, per GB.
    pub switches_per_gb: Option<Quartiles>,
    /// Packets sent again, per GB.
    pub repeated_per_gb: Option<Quartiles>,
}

impl Record {
    /// Of these transfers, in the order in which they were made.
    pub(crate) fn new(provenance: Provenance, rounds: u32, runs: Vec<Run>) -> Self {
        Self {
            name: NAME.to_owned(),
            provenance,
            rounds,
            buffer: BUFFER,
            block: BLOCK,
            summary: summary(&runs),
            runs,
        }
    }
}

impl Run {
    /// Who it is, for people.
    pub(crate) fn name(&self) -> String {
        match self.weight {
            Some(w) => format!("{}, w = {w}", self.contender),
            None => self.contender.clone(),
        }
    }

    /// What it came to, for people.
    pub(crate) fn line(&self) -> String {
        let transfer = &self.transfer;
        format!(
            "{:<32}{:>8.4} CPU s per GB of the machine, {:>8.4} of both ends, {:>7.3} GB/s",
            self.name(),
            machine(transfer),
            threads(transfer),
            goodput(transfer)
        )
    }

    fn is_of(&self, control: Control) -> bool {
        self.contender == control.contender().to_string() && self.weight == control.weight()
    }
}

/// Figures of a transfer that are compared.
fn machine(transfer: &Transfer) -> f64 {
    transfer.per_gb(transfer.machine_s)
}

fn threads(transfer: &Transfer) -> f64 {
    transfer.per_gb(transfer.threads_s())
}

fn goodput(transfer: &Transfer) -> f64 {
    1.0 / transfer.per_gb(transfer.elapsed_s)
}

fn summary(runs: &[Run]) -> Vec<Summary> {
    let mut all = Vec::new();
    for packets in Packets::ALL {
        let of_these = runs.iter().filter(|run| run.packets == packets);
        let runs: Vec<&Run> = of_these.collect();
        all.extend([Control::Reno].iter().chain(&OURS).map(|&control| Summary {
            packets,
            contender: control.contender().to_string(),
            weight: control.weight(),
            machine: values(&runs, control, machine),
            machine_ratio: ratios(&runs, control, machine),
            threads: values(&runs, control, threads),
            threads_ratio: ratios(&runs, control, threads),
            goodput: values(&runs, control, goodput),
            goodput_ratio: ratios(&runs, control, goodput),
            packets_per_gb: values(&runs, control, |it| it.per_gb(it.packets as f64)),
            acknowledgements_per_gb: values(&runs, control, |it| {
                it.per_gb(it.acknowledgements as f64)
            }),
            switches_per_gb: values(&runs, control, |it| it.per_gb(it.switches as f64)),
            repeated_per_gb: values(&runs, control, |it| it.per_gb(it.repeated as f64)),
        }));
    }
    all
}

fn values(runs: &[&Run], control: Control, figure: impl Fn(&Transfer) -> f64) -> Option<Quartiles> {
    let own = runs.iter().filter(|run| run.is_of(control));
    Quartiles::of(&own.map(|run| figure(&run.transfer)).collect::<Vec<_>>())
}

/// Each in parts of the mean of the nearest by Reno, before it and after it.
/// Without one of the two there is nothing to compare with.
fn ratios(runs: &[&Run], control: Control, figure: impl Fn(&Transfer) -> f64) -> Option<Quartiles> {
    let is_reno = |run: &&&Run| run.is_of(Control::Reno);
    let ratio = |(index, run): (usize, &&Run)| {
        let before = runs[..index].iter().rfind(is_reno)?;
        let after = runs[index + 1..].iter().find(is_reno)?;
        let around = mean(&[figure(&before.transfer), figure(&after.transfer)])?;
        Some(figure(&run.transfer) / around)
    };
    let own = runs
        .iter()
        .enumerate()
        .filter(|(_, run)| run.is_of(control));
    Quartiles::of(&own.filter_map(ratio).collect::<Vec<_>>())
}

#[cfg(test)]
pub(crate) mod record_tests {
    use super::*;

    /// Transfers of 2 GB that cost the machine so much for each GB, s: by
    /// Reno, and by Vegas in between.
    pub(crate) fn record(costs: &[f64]) -> Record {
        let vegas = OURS[0];
        let run = |(index, &cost): (usize, &f64)| {
            let control = if index % 2 == 0 { Control::Reno } else { vegas };
            Run {
                packets: Packets::Large,
                contender: control.contender().to_string(),
                weight: control.weight(),
                transfer: Transfer {
                    bytes: 2_000_000_000,
                    elapsed_s: 0.5,
                    machine_s: 2.0 * cost,
                    sender_s: cost,
                    receiver_s: 0.8 * cost,
                    switches: 8000,
                    packets: 40_000,
                    acknowledgements: 14_000,
                    repeated: 0,
                    window: 40,
                    stolen_s: 0.0,
                },
            }
        };
        let provenance = Provenance {
            command: "lab sender-cost".to_owned(),
            commit: "0123456789ab".to_owned(),
            kernel: "Linux 6.18".to_owned(),
            machine: "a processor, 2 cores".to_owned(),
            versions: vec!["dalbe 0.1.0".to_owned()],
            started: "2026-01-01T00:00:00Z".to_owned(),
            side_by_side: "1 lab".to_owned(),
        };
        Record::new(provenance, 2, costs.iter().enumerate().map(run).collect())
    }

    fn of(record: &Record, control: Control) -> &Summary {
        let name = control.contender().to_string();
        let mut all = record.summary.iter();
        let found = all.find(|it| {
            it.packets == Packets::Large && it.contender == name && it.weight == control.weight()
        });
        found.expect("a summary")
    }

    #[test]
    fn each_is_compared_with_renos_around_it() {
        // The machine becomes slower all the time.
        let record = record(&[0.10, 0.12, 0.14, 0.16, 0.18]);
        let vegas = of(&record, OURS[0]);
        let ratio = vegas.machine_ratio.expect("a ratio");
        assert!((ratio.lower - 1.0).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.upper - 1.0).abs() < 1e-9, "{ratio:?}");
        let reno = of(&record, Control::Reno);
        let ratio = reno.machine_ratio.expect("the one in the middle");
        assert!((ratio.median - 1.0).abs() < 1e-9, "{ratio:?}");
        let cdg = of(&record, OURS[2]);
        assert_eq!((cdg.machine, cdg.machine_ratio), (None, None));
    }

    #[test]
    fn figures_have_the_units_they_claim() {
        let record = record(&[0.2, 0.3, 0.2]);
        let vegas = of(&record, OURS[0]);
        let median = |it: Option<Quartiles>| it.expect("a figure").median;
        let near = |figure: Option<Quartiles>, expected: f64| {
            let found = median(figure);
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        };
        near(vegas.machine, 0.3);
        near(vegas.machine_ratio, 1.5);
        near(vegas.threads, 0.27);
        near(vegas.threads_ratio, 1.5);
        near(vegas.goodput, 4.0);
        near(vegas.goodput_ratio, 1.0);
        near(vegas.packets_per_gb, 20_000.0);
        near(vegas.acknowledgements_per_gb, 7_000.0);
        near(vegas.switches_per_gb, 4_000.0);
        near(vegas.repeated_per_gb, 0.0);
    }

    #[test]
    fn a_record_survives_its_file() {
        let record = record(&[0.25, 0.5, 0.25]);
        let text = serde_json::to_string(&record).unwrap();
        let read: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(read, record);
    }
}
