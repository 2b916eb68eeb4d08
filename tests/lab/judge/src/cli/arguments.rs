//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use dalbe::weight::ControllerPolicy;
use lab::matrix::Variant;
use lab::multipath::Carrier;
use lab_run::contender::Contender;
use lab_run::run::SAMPLING;
use lab_run::scenario::Path;
use lab_run::versions;

/// Measures transfers beside real foreground traffic over an emulated
/// bottleneck. Needs root where it emulates, and touches nothing outside its own
/// namespaces.
///
/// Exits with 77 where this machine does not allow what was asked for: its
/// kernel lacks what `fairbat setup` needs, or nothing may be loaded into it.
#[derive(Debug, Parser)]
#[command(name = "lab", version = versions::VERSION, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List scenarios, contenders and matrices
    List,
    /// Run one scenario: a table here, and its samples and a picture in files
    Run(RunArguments),
    /// Calculate a scenario packet by packet: a table; no root needed
    Simulate(SimulateArguments),
    /// Run all of a matrix, several labs side by side, into the results
    Matrix(MatrixArguments),
    /// Make tables and pictures of the results again
    Report(ReportArguments),
    /// The DA-LBE paper's numerical experiments, into the results; no root needed
    Numerical(DirectoryArguments),
    /// How the law for streams of jobs settles, into the results; no root needed
    Tuning(DirectoryArguments),
    /// What our congestion controls cost beside the kernel's, into the results
    SenderCost(SenderCostArguments),
    /// Programs of others over an idle link, plain and held back, into the results
    Programs(ProgramsArguments),
    /// Files over several paths side by side: `fairbat --interface`, one path, MPTCP, simple rules
    Multipath(MultipathArguments),
    /// Compare the emulated link with theory; fails when it is out of tolerance
    Calibrate,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Name of a scenario, or path of a file that ends in .toml
    pub(crate) scenario: String,
    /// Run the quick variant
    #[arg(long)]
    pub(crate) quick: bool,
    /// Make every moment and length of time so many times as long
    #[arg(long, value_name = "FACTOR", conflicts_with = "quick", value_parser = positive)]
    pub(crate) time_scale: Option<f64>,
    /// Take figures from the last so many seconds, in place of what the scenario says
    #[arg(long, value_name = "S", conflicts_with = "quick", value_parser = positive)]
    pub(crate) measure_last: Option<f64>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// What the background is; `lab list` names them
    #[arg(long, default_value = "fairbat")]
    pub(crate) contender: Contender,
    /// Congestion control of the server that sends, in place of the scenario's
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion_control: Option<String>,
    /// The least weight of the contender's connections, in place of the scenario's
    #[arg(long, value_name = "W")]
    pub(crate) weight: Option<f64>,
    /// Connections that the contender begins with, in place of the scenario's
    #[arg(long, value_name = "N")]
    pub(crate) connections: Option<u32>,
    /// Priorities of the connections of the lab's senders, in place of the scenario's
    #[arg(long, value_name = "P,P", value_delimiter = ',')]
    pub(crate) priorities: Vec<u32>,
    /// CDG's back-off scale of the lab's senders, ms, in place of the scenario's
    #[arg(long, value_name = "MS")]
    pub(crate) g_ms: Option<f64>,
    /// The deadline controller, in place of the scenario's: share, pid or mbc
    #[arg(long, value_name = "NAME", value_parser = controller)]
    pub(crate) controller: Option<ControllerPolicy>,
    /// Another path in place of the scenario's: Mbit/s, RTT in ms, queue in BDP, and perhaps how
    /// packets are queued, as 40,180,0.25,codel,ecn
    #[arg(long, value_name = "RATE,RTT,QUEUE,...")]
    pub(crate) path: Option<Path>,
    /// How often the links are sampled, ms
    #[arg(long, value_name = "MS", default_value_t = SAMPLING.as_millis() as u64, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) sampling: u64,
    /// Calculate it packet by packet in place of running it; no root needed
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Directory for the files [default: target/lab]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// How many labs run side by side; goes into the record
    #[arg(long, default_value = "1 lab", hide = true)]
    pub(crate) side_by_side: String,
}

impl RunArguments {
    /// What they change in the scenario's own background and path.
    pub(crate) fn changes(&self) -> Variant {
        Variant {
            sampling_ms: Some(self.sampling),
            weight: self.weight,
            connections: self.connections,
            priorities: self.priorities.clone(),
            g_ms: self.g_ms,
            controller: self.controller,
            path: self.path,
            ..Variant::default()
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct MultipathArguments {
    /// Name of a plan, or path of a file that ends in .toml: two-paths, paths-come-and-go, paths-deadline
    pub(crate) plan: String,
    /// Only this one of its carriers; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) carrier: Vec<Carrier>,
    /// Only files up to 1 MB, each once, and one seed
    #[arg(long)]
    pub(crate) quick: bool,
    /// Networks of two paths at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) jobs: usize,
    /// Directory for the figures and the page [default: target/lab]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    /// Name of a scenario, or path of a file that ends in .toml
    pub(crate) scenario: String,
    /// What the background is; may be repeated
    #[arg(long, default_value = "fairbat-no-deadline")]
    pub(crate) contender: Vec<Contender>,
    /// Another path in place of the scenario's: Mbit/s, RTT in ms, queue in BDP, and more
    #[arg(long, value_name = "RATE,RTT,QUEUE")]
    pub(crate) path: Option<Path>,
    /// Congestion control of the server that sends, in place of the scenario's
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion_control: Option<String>,
    /// The least weight of the contender's connections, in place of the scenario's
    #[arg(long, value_name = "W")]
    pub(crate) weight: Option<f64>,
    /// Seeds from 1 up to this; figures are medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
    /// Print what the background does so often, s, with the first seed
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub(crate) trace: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct MatrixArguments {
    /// Name of a matrix, or path of a file that ends in .toml
    pub(crate) matrix: String,
    /// Run the quick variants, one seed
    #[arg(long)]
    pub(crate) quick: bool,
    /// At most so many labs side by side [default: what the matrix says, or a calibration allows]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<usize>,
    /// Run only this scenario; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Vec<String>,
    /// Run only this contender; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) contender: Vec<Contender>,
    /// Run only this variant; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Vec<String>,
    /// Run only this seed; may be repeated
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Vec<u64>,
    /// Keep the runs that these results of the matrix have, and run only what they lack
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    pub(crate) keep: Option<PathBuf>,
    /// Directory for the results [default: those of the repository; of --quick or a part target/lab/NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

impl MatrixArguments {
    /// Whether it is all of the matrix, as it stands.
    pub(crate) fn is_whole(&self) -> bool {
        let names = self.scenario.len() + self.variant.len();
        let parts = names + self.contender.len() + self.seed.len();
        !self.quick && parts == 0
    }
}

#[derive(Debug, Args)]
pub(crate) struct ProgramsArguments {
    /// Run one pair of each: to see whether it works
    #[arg(long)]
    pub(crate) quick: bool,
    /// Through `fairbat proxy`, in place of under `fairbat run`: those that know proxies
    #[arg(long)]
    pub(crate) through_proxy: bool,
    /// Only the program of this name; may be repeated. The results keep the others as they are
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// So many pairs of each program [default: 5; with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeats: Option<u32>,
    /// Directory for the results [default: those of the repository; of --quick target/lab]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SenderCostArguments {
    /// Run one short round: to see whether it works
    #[arg(long)]
    pub(crate) quick: bool,
    /// So many rounds [default: 9; with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Directory for the results [default: those of the repository; of --quick target/lab]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Directory with the results of matrices [default: those of the repository]
    pub(crate) directory: Option<PathBuf>,
    /// Take the figures of a matrix anew from the samples of its runs, which are in
    /// this directory: target/lab/NAME
    #[arg(long, value_name = "DIR")]
    pub(crate) samples: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DirectoryArguments {
    /// Directory for the results [default: those of the repository]
    pub(crate) directory: Option<PathBuf>,
}

fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs) if (1..=64).contains(&jobs) => Ok(jobs),
        _ => Err("must be a number from 1 to 64".to_owned()),
    }
}

fn controller(name: &str) -> Result<ControllerPolicy, String> {
    let found = ControllerPolicy::ALL
        .into_iter()
        .find(|one| one.name() == name);
    found.ok_or_else(|| "must be share, pid or mbc".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("must be a number above 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lab::matrix::Matrix;
    use lab_run::files;

    use super::*;

    #[test]
    fn a_run_of_a_matrix_takes_all_that_a_variant_changes() {
        let matrices: BTreeMap<String, Matrix> = files::all(&files::matrices()).unwrap();
        for (name, matrix) in matrices {
            for variant in &matrix.variants {
                let mut words = vec!["lab".to_owned(), "run".to_owned(), "a scenario".to_owned()];
                for (option, value) in variant.options() {
                    words.extend([option.to_owned(), value]);
                }
                let Command::Run(arguments) = Arguments::parse_from(words).command else {
                    panic!("{name}: {}: no run", variant.name);
                };
                let expected = Variant {
                    name: String::new(),
                    why: None,
                    jobs: None,
                    sampling_ms: variant.sampling_ms.or(Some(SAMPLING.as_millis() as u64)),
                    ..variant.clone()
                };
                assert_eq!(arguments.changes(), expected, "{name}: {}", variant.name);
            }
        }
    }
}
