//! One run: builds the network of a scenario, lets foreground and background
//! loose on it, and writes down what happened.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::resource::{Usage, UsageWho, getrusage};

use crate::contender::{Contender, ContenderError, Running};
use crate::host::Host;
use crate::machine::{Clock, Context as _, waited};
use crate::record::{Provenance, Record};
use crate::rivals::LoadedRival;
use crate::samples::{BackgroundRecord, Fetch, FlowRecord, LinkRecord, Probe};
use crate::scenario::Scenario;
use crate::summary::{Measured, summarise};
use crate::topology;
use crate::topology::Topology;
use crate::traffic::Sources;
use crate::traffic::prober;
use crate::versions;

/// How often the links are sampled if nothing else is said.
pub const SAMPLING: Duration = Duration::from_millis(10);

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Name of the scenario.
    pub name: String,
    /// What happens.
    pub scenario: Scenario,
    /// Whether that is the quick variant.
    pub quick: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// What the background is.
    pub contender: Contender,
    /// How often the links are sampled.
    pub sampling: Duration,
    /// The command that does it again.
    pub command: String,
    /// How many labs may run side by side, this one included.
    pub side_by_side: String,
    /// An empty directory for working files.
    pub work: PathBuf,
}

/// Runs it; takes as long as the scenario says.
///
/// # Errors
/// When it could not be set up, or a link failed. What a contender does wrong
/// is in the record.
pub fn run(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    plan.contender.check(&plan.scenario)?;
    // Until the run is over.
    let rival = plan.contender.load()?;
    let loaded = rival.as_ref().map(LoadedRival::name);
    let plan = &Plan {
        scenario: plan.contender.as_run(&plan.scenario, loaded),
        ..plan.clone()
    };
    let Plan { scenario, seed, .. } = plan;
    let provenance = plan.provenance();
    plan.contender.set_up()?;
    let hosts = topology::hosts(scenario)?;
    let copies = Copy::all(plan)?;
    let clock = Clock::start();
    let topology = Topology::join(scenario, hosts, *seed, plan.sampling, clock)?;
    let cpu_before = own_cpu()?;
    let waited_before = waited();
    let end = Duration::from_secs_f64(scenario.duration_s);
    let hosts_of_run = topology.hosts();
    let (server, client) = (&hosts_of_run[0], &hosts_of_run[hosts_of_run.len() - 1]);
    let prober = prober::start(client, server, clock, end)?;
    let sources = Sources::start(scenario, topology.hosts(), *seed, clock)?;
    let contenders = start_contenders(plan, &copies, topology.hosts(), clock)?;
    clock.sleep_until(end);
    let cpu_s = (own_cpu()? - cpu_before).as_secs_f64();
    let waited_s = waited().zip(waited_before);
    let waited_s = waited_s.map(|(after, before)| (after - before).as_secs_f64());
    let background = finish_all(contenders);
    let received = sources.finish()?;
    let rtt = prober.finish();
    let links = topology.finish()?;
    let seen = Seen {
        links,
        rtt,
        flows: received.flows,
        fetches: received.fetches,
        background,
        lab_cpu_s: cpu_s,
        waited_s,
    };
    Ok(plan.record(provenance, seen))
}

/// What was seen of a run; see [`Record`] and [`Measured`].
#[derive(Debug, Default)]
pub struct Seen {
    /// What was seen at each link.
    pub links: Vec<LinkRecord>,
    /// The probes.
    pub rtt: Vec<Probe>,
    /// The flows of the foreground.
    pub flows: Vec<FlowRecord>,
    /// The web fetches of the foreground.
    pub fetches: Vec<Fetch>,
    /// What each background did.
    pub background: Vec<BackgroundRecord>,
    /// Processor time of the lab itself, s.
    pub lab_cpu_s: f64,
    /// How long the run waited for its turn, s.
    pub waited_s: Option<f64>,
}

impl Plan {
    /// Where and how it is run, from now on.
    pub fn provenance(&self) -> Provenance {
        let versions = versions::of(self.contender);
        versions::provenance(self.command.clone(), versions, self.side_by_side.clone())
    }

    /// What it has left behind.
    pub fn record(&self, provenance: Provenance, seen: Seen) -> Record {
        let summary = summarise(&Measured {
            setup: &self.scenario,
            links: &seen.links,
            rtt: &seen.rtt,
            flows: &seen.flows,
            fetches: &seen.fetches,
            background: &seen.background,
            lab_cpu_s: seen.lab_cpu_s,
            waited_s: seen.waited_s,
        });
        Record {
            scenario: self.name.clone(),
            quick: self.quick,
            seed: self.seed,
            contender: self.contender.to_string(),
            congestion_control: self
                .contender
                .heeds_server_congestion_control()
                .then(|| self.scenario.background.congestion_control.clone()),
            setup: self.scenario.clone(),
            provenance,
            summary,
            links: seen.links,
            rtt: seen.rtt,
            flows: seen.flows,
            fetches: seen.fetches,
            background: seen.background,
        }
    }
}

/// One of the contenders: a scenario asks for one or more.
struct Copy {
    scenario: Scenario,
    seed: u64,
    work: PathBuf,
}

impl Copy {
    /// As many as there are, each with a directory of its own, and files in it.
    fn all(plan: &Plan) -> Result<Vec<Self>, Box<dyn Error>> {
        let background = &plan.scenario.background;
        let copies = match plan.contender {
            Contender::None => 0,
            // Each of the lab's senders is one connection.
            Contender::Sender(_) => background.copies * background.connections.unwrap_or(1),
            _ => background.copies,
        };
        (0..copies)
            .map(|index| Self::lay_out(plan, index))
            .collect()
    }

    fn lay_out(plan: &Plan, index: u32) -> Result<Self, Box<dyn Error>> {
        let mut scenario = plan.scenario.clone();
        scenario.background.start_s += scenario.background.stagger_s * f64::from(index);
        scenario.background.priorities = vec![scenario.background.priority(index)];
        let seed = plan.seed ^ (u64::from(index) << 40);
        let work = plan.work.join(format!("contender-{index}"));
        let made = std::fs::create_dir(&work);
        made.doing(format_args!("make {}", work.display()))?;
        plan.contender.lay_out(&scenario.background, seed, &work)?;
        Ok(Self {
            scenario,
            seed,
            work,
        })
    }
}

fn start_contenders(
    plan: &Plan,
    copies: &[Copy],
    hosts: &[Host],
    clock: Clock,
) -> Result<Vec<Running>, ContenderError> {
    let start = |copy: &Copy| {
        let Copy {
            scenario,
            seed,
            work,
        } = copy;
        plan.contender.start(scenario, hosts, *seed, clock, work)
    };
    copies.iter().map(start).collect()
}

/// Ends all at the same time, so that none goes on while another stops.
fn finish_all(contenders: Vec<Running>) -> Vec<BackgroundRecord> {
    let ending: Vec<_> = contenders
        .into_iter()
        .map(|contender| std::thread::spawn(|| contender.finish()))
        .collect();
    let joined = |ending: JoinHandle<_>| ending.join().expect("finishing does not panic");
    ending.into_iter().map(joined).collect()
}

/// Processor time of this process.
///
/// # Errors
/// When the kernel does not tell.
pub fn own_cpu() -> io::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF);
    let usage = usage.doing("ask for the lab's processor time")?;
    Ok(processor_time(&usage))
}

/// In user mode and in the kernel.
pub fn processor_time(usage: &Usage) -> Duration {
    let length = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1000)
    };
    length(usage.user_time()) + length(usage.system_time())
}
