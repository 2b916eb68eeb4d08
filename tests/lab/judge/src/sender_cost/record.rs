//! What `lab sender-cost` writes down: each transfer, and what the transfers of
//! each congestion control come to.

use dalbe::ebpf::CongestionLaw;
use dalbe::weight::MIN_WEIGHT;
use serde::{Deserialize, Serialize};

use crate::sender_cost::transfer::{BLOCK, BUFFER, Transfer};
use lab_run::contender::{CongestionControl, Contender, Sending};
use lab_run::record::Provenance;
use lab_run::statistics::{Quartiles, mean};

/// Name of the record and of the page.
pub const NAME: &str = "sender-cost";

/// What a sender follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Control {
    /// The kernel's, which the others are compared with.
    Reno,
    /// A law of the project's own, with this weight.
    Ours(CongestionLaw, f64),
}

/// Ours, as one best-effort flow and as a flow that yields to anybody. The
/// papers' laws are parts of the same programs.
pub(crate) const EBPF_CONTROLS: [Control; 6] = [
    Control::Ours(CongestionLaw::Vegas, 1.0),
    Control::Ours(CongestionLaw::Vegas, MIN_WEIGHT),
    Control::Ours(CongestionLaw::Cdg, 1.0),
    Control::Ours(CongestionLaw::Cdg, MIN_WEIGHT),
    Control::Ours(CongestionLaw::CubicPhantom, 1.0),
    Control::Ours(CongestionLaw::CubicPhantom, MIN_WEIGHT),
];

impl Control {
    /// The one of the lab's senders that follows it.
    pub(crate) fn contender(self) -> Contender {
        Contender::Sender(match self {
            Self::Reno => Sending::Kernel(CongestionControl::Reno),
            Self::Ours(law, _) => Sending::Law(law),
        })
    }

    pub(crate) fn weight(self) -> Option<f64> {
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
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Large => "Packets of 64 kB",
            Self::Small => "Packets of 1500 bytes",
        }
    }

    /// What ip(8) is told.
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Self::Large => "link set lo mtu 65536 gso_max_segs 65535",
            Self::Small => "link set lo mtu 1500 gso_max_segs 2",
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
        all.extend(
            [Control::Reno]
                .iter()
                .chain(&EBPF_CONTROLS)
                .map(|&control| Summary {
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
                }),
        );
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
pub(crate) mod tests {
    use super::*;

    /// Transfers of 2 GB that cost the machine so much for each GB, s: by
    /// Reno, and by Vegas in between.
    pub(crate) fn record(costs: &[f64]) -> Record {
        let vegas = EBPF_CONTROLS[0];
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
        let vegas = of(&record, EBPF_CONTROLS[0]);
        let ratio = vegas.machine_ratio.expect("a ratio");
        assert!((ratio.lower - 1.0).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.upper - 1.0).abs() < 1e-9, "{ratio:?}");
        let reno = of(&record, Control::Reno);
        let ratio = reno.machine_ratio.expect("the one in the middle");
        assert!((ratio.median - 1.0).abs() < 1e-9, "{ratio:?}");
        let cdg = of(&record, EBPF_CONTROLS[2]);
        assert_eq!((cdg.machine, cdg.machine_ratio), (None, None));
    }

    #[test]
    fn figures_have_the_units_they_claim() {
        let record = record(&[0.2, 0.3, 0.2]);
        let vegas = of(&record, EBPF_CONTROLS[0]);
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
