//! `lab matrix`.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use dalbe::ebpf::EbpfPart;
use fairbat_tests::target::output_directory;
use lab::calibrate::cost;
use lab::matrix::{Budget, Cell, Job, Matrix, USUAL_LABS, Variant, estimate_s, run_all, weight};
use lab::report;
use lab::results::{MatrixRecord, RunSummary};
use lab_run::machine::Clock;
use lab_run::record::{Record, Summary};
use lab_run::scenario::Scenario;
use lab_run::{files, sandbox, versions};

use super::arguments::MatrixArguments;
use super::{Outcome, command_line};

/// A matrix that can be run.
pub(super) struct Plan<'a> {
    arguments: &'a MatrixArguments,
    name: String,
    matrix: Matrix,
    /// As they will be run, by the names that the matrix gives.
    scenarios: BTreeMap<String, Scenario>,
}

impl<'a> Plan<'a> {
    /// Reads the matrix and its scenarios; all contenders can do those that they run in.
    pub(super) fn new(arguments: &'a MatrixArguments) -> Result<Self, Box<dyn Error>> {
        let (name, matrix): (_, Matrix) = files::find(&files::matrices(), &arguments.matrix)?;
        let mut matrix = matrix.expanded()?;
        matrix.only_variants(&arguments.variant)?;
        if arguments.quick {
            matrix.more.clear();
            if arguments.variant.is_empty() {
                matrix.only_quick_variants()?;
            }
        }
        matrix.only(&arguments.scenario, &arguments.contender, &arguments.seed)?;
        if arguments.quick {
            matrix.seeds.truncate(1);
        }
        let mut scenarios = BTreeMap::new();
        for name in &matrix.scenarios {
            let scenario: Scenario = files::by_name(&files::scenarios(), name)?;
            let scenario = matrix
                .as_run(&scenario, arguments.quick)
                .map_err(|error| format!("{name}: {error}"))?;
            scenarios.insert(name.clone(), scenario);
        }
        let mut runs = Vec::new();
        for way in matrix.ways() {
            let mut seen = HashSet::new();
            let cells = matrix.cells(way).into_iter();
            for cell in
                cells.filter(|it| seen.insert((it.scenario.clone(), it.contender.to_string())))
            {
                let scenario = &scenarios[&cell.scenario];
                let run = way.map_or_else(|| Ok(scenario.clone()), |way| way.as_run(scenario));
                let run = run.map_err(|error| format!("{}: {error}", cell.scenario))?;
                if matrix.simulated {
                    lab_simulation::check(&run, cell.contender)?;
                }
                runs.push((cell.contender, run));
            }
        }
        if !matrix.simulated {
            sandbox::require_root()?;
        }
        for (contender, run) in runs {
            contender.check(&run)?;
        }
        Ok(Self {
            arguments,
            name,
            matrix,
            scenarios,
        })
    }

    /// What the first of its contenders that depends on `fairbat setup` needs of
    /// it.
    pub(super) fn needs(&self) -> Option<EbpfPart> {
        self.matrix.contenders.iter().find_map(|one| one.needs())
    }

    /// Whether it is calculated.
    pub(super) fn is_simulated(&self) -> bool {
        self.matrix.simulated
    }

    /// Runs all of it and writes the results.
    pub(super) fn run(self) -> Outcome {
        // All of the machine sees what is loaded: once, for all that run side by
        // side.
        let mut needing = self.matrix.contenders.iter().copied();
        if let Some(contender) = needing.find(|one| one.needs().is_some() && !self.is_simulated()) {
            contender.set_up()?;
        }
        let usual = match self.arguments.jobs {
            Some(jobs) => Budget::fixed(jobs),
            None if self.is_simulated() => Budget::fixed(versions::cores()),
            None => {
                let labs = self.matrix.labs.unwrap_or(USUAL_LABS);
                Budget::of(cost()?, versions::cores(), labs)
            }
        };
        let directory = output_directory("lab").join(&self.name);
        let mut batches = self.batches(usual, &directory);
        // Now: files may be changed while it runs.
        let mut record = self.record(&batches);
        if let Some(file) = &self.arguments.keep {
            let failed = |error| format!("{}: {error}", file.display());
            record.keep(MatrixRecord::read(file)?).map_err(failed)?;
            for batch in &mut batches {
                batch.leave_out(&record.runs);
            }
            batches.retain(|batch| !batch.cells.is_empty());
            let mut cells = batches.iter().flat_map(|batch| &batch.cells);
            if let Some(Cell {
                scenario,
                contender,
                ..
            }) = cells.find(|it| record.has_curves(&it.scenario, &it.contender.to_string()))
            {
                return Err(failed(format!(
                    "{contender} in {scenario} has curves over all of its runs: do all of them again"
                ))
                .into());
            }
        }
        // What an earlier run left would be taken for this one's.
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory)?;
        let mut results = Results {
            kept: record.runs.clone(),
            record,
            file: MatrixRecord::file(&directory, &self.name),
            done: Vec::new(),
        };
        let mut first = 0;
        // Those that may run side by side do.
        let chunks = || batches.chunk_by(|one, next| one.budget == next.budget);
        let estimate: f64 = chunks().map(|together| self.estimate_s(together)).sum();
        if !self.is_simulated() {
            println!("this should take {}", span(estimate));
        }
        for together in chunks() {
            self.run_together(together, first, &mut results)?;
            first += together
                .iter()
                .map(|batch| batch.cells.len())
                .sum::<usize>();
        }
        let to = match &self.arguments.output {
            Some(output) => output.clone(),
            None if !self.arguments.is_whole() => directory.clone(),
            None => files::results(),
        };
        fs::create_dir_all(&to)?;
        results.file = MatrixRecord::file(&to, &self.name);
        results.record.write(&results.file)?;
        for path in report::write_all(&to)? {
            println!("{}", path.display());
        }
        let runs = &results.record.runs;
        match runs.iter().filter(|run| run.failure.is_some()).count() {
            0 => Ok(ExitCode::SUCCESS),
            failed => {
                let (all, logs) = (runs.len(), directory.display());
                Err(format!("{failed} of {all} runs failed; their logs: {logs}").into())
            }
        }
    }

    /// One batch for each variant, or the only one.
    fn batches(&self, usual: Budget, directory: &Path) -> Vec<Batch<'_>> {
        let batch = |variant| Batch {
            variant,
            cells: self.matrix.cells(variant),
            budget: variant
                .and_then(|variant| variant.jobs)
                .map_or(usual, Budget::fixed),
            directory: variant.map_or_else(
                || directory.to_owned(),
                |variant| directory.join(&variant.name),
            ),
        };
        self.matrix.ways().map(batch).collect()
    }

    /// A record without any runs yet.
    fn record(&self, batches: &[Batch<'_>]) -> MatrixRecord {
        let mut side_by_side: Vec<_> = batches.iter().map(|batch| batch.budget.words()).collect();
        side_by_side.dedup();
        MatrixRecord {
            name: self.name.clone(),
            description: self.matrix.description.clone(),
            provenance: versions::provenance(
                command_line(),
                matrix_versions(&self.matrix),
                side_by_side.join("; "),
            ),
            scenarios: self.scenarios.clone(),
            earlier: Vec::new(),
            simulated: self.matrix.simulated,
            planned: self.matrix.planned(),
            runs: Vec::new(),
        }
    }

    /// How long batches with one budget take, s.
    fn estimate_s(&self, batches: &[Batch<'_>]) -> f64 {
        let runs = self.in_order(batches, 0).into_iter();
        let runs = runs.map(|(_, (batch, cell))| {
            let scenario = &self.scenarios[&cell.scenario];
            (batch.load(scenario), scenario.duration_s)
        });
        estimate_s(&runs.collect::<Vec<_>>(), batches[0].budget)
    }

    /// All cells, each with its place from `first` on, in the order in which they
    /// are run: as in a batch, what changes slowly on the machine meets all alike.
    fn in_order<'b>(
        &self,
        batches: &'b [Batch<'b>],
        first: usize,
    ) -> Vec<(usize, (&'b Batch<'b>, &'b Cell))> {
        let cells = batches
            .iter()
            .flat_map(|batch| batch.cells.iter().map(move |cell| (batch, cell)));
        let mut cells: Vec<_> = (first..).zip(cells).collect();
        let seeds = self.matrix.all_seeds();
        cells.sort_by_key(|(_, (_, cell))| seeds.iter().position(|s| *s == cell.seed));
        cells
    }

    /// Runs every cell as a command of its own, says how far it is, and
    /// writes what there is after each. The first has the place `first` among
    /// all.
    fn run_together(
        &self,
        batches: &[Batch<'_>],
        first: usize,
        results: &mut Results,
    ) -> Result<(), Box<dyn Error>> {
        let cells = self.in_order(batches, first);
        let (all, budget) = (cells.len(), batches[0].budget);
        for batch in batches {
            println!(
                "{} runs{}; samples and pictures: {}",
                batch.cells.len(),
                batch
                    .variant
                    .map_or(String::new(), |one| format!(" {}", one.name)),
                batch.directory.display()
            );
            fs::create_dir_all(&batch.directory)?;
        }
        println!("{all} runs, {} side by side", budget.words());
        let mut jobs = Vec::new();
        for (_, (batch, cell)) in &cells {
            jobs.push(Job {
                command: self.cell_command(batch, cell)?,
                weight: batch.load(&self.scenarios[&cell.scenario]),
            });
        }
        let mut written = Ok(());
        let clock = Clock::start();
        let mut ended = 0;
        run_all(jobs, budget, |number, status| {
            let (place, (batch, cell)) = cells[number];
            let run = batch.summary(cell, status);
            ended += 1;
            let name = cell.file_name();
            let variant = batch
                .variant
                .map_or(String::new(), |one| format!("  {}", one.name));
            let remark = if run.failure.is_none() {
                ""
            } else {
                "  FAILED"
            };
            println!(
                "{:6.0} s  {ended}/{all}  {name}{variant}{remark}",
                clock.seconds()
            );
            let result = results.add(place, run);
            if written.is_ok() {
                written = result;
            }
        })?;
        written
    }

    fn cell_command(&self, batch: &Batch<'_>, cell: &Cell) -> Result<Command, Box<dyn Error>> {
        let log = fs::File::create(batch.file(cell, "log"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["run", &cell.scenario])
            .args(["--seed", &cell.seed.to_string()])
            .args(["--contender", &cell.contender.to_string()])
            .args(["--side-by-side", &batch.budget.words()])
            .arg("--output")
            .arg(&batch.directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let whole = Some(&self.matrix).filter(|_| !self.arguments.quick);
        let number = |value: Option<f64>| value.map(|value| value.to_string());
        let options = [
            ("--congestion-control", cell.congestion_control.clone()),
            ("--time-scale", number(whole.and_then(|it| it.time_scale))),
            (
                "--measure-last",
                number(whole.and_then(|it| it.measure_last_s)),
            ),
        ];
        let options = options.into_iter();
        let options = options.filter_map(|(option, value)| Some((option, value?)));
        let changes = batch.variant.map(Variant::options);
        for (option, value) in options.chain(changes.into_iter().flatten()) {
            command.args([option, &value]);
        }
        if self.arguments.quick {
            command.arg("--quick");
        }
        // Built once, and not beside runs.
        command.envs(cell.contender.programs());
        match self.is_simulated() {
            true => drop(command.arg("--simulate")),
            false => sandbox::of_its_own(&mut command),
        }
        Ok(command)
    }
}

/// A length of time for people.
fn span(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil();
    if minutes < 90.0 {
        format!("{minutes} min")
    } else {
        format!("{:.1} h", minutes / 60.0)
    }
}

/// All cells of a matrix, run in one way.
struct Batch<'a> {
    variant: Option<&'a Variant>,
    cells: Vec<Cell>,
    budget: Budget,
    directory: PathBuf,
}

impl Batch<'_> {
    fn weight(&self) -> Option<f64> {
        self.variant?.weight
    }

    /// How much a scenario weighs on the machine, as it is run here.
    fn load(&self, scenario: &Scenario) -> f64 {
        let run = self.variant.map(|variant| variant.as_run(scenario));
        // It was looked at before.
        run.and_then(Result::ok)
            .map_or_else(|| weight(scenario), |run| weight(&run))
    }

    /// Leaves out what these runs have measured.
    fn leave_out(&mut self, runs: &[RunSummary]) {
        let variant = self.variant.map(|variant| &variant.name);
        let measured: HashSet<_> = runs
            .iter()
            .filter(|run| run.variant.as_ref() == variant)
            .map(RunSummary::file_name)
            .collect();
        self.cells
            .retain(|cell| !measured.contains(&cell.file_name()));
    }

    fn file(&self, cell: &Cell, suffix: &str) -> PathBuf {
        self.directory
            .join(format!("{}.{suffix}", cell.file_name()))
    }

    /// What the run of a cell has left, which ended like this.
    fn summary(&self, cell: &Cell, status: ExitStatus) -> RunSummary {
        let record = fs::read(self.file(cell, "json"))
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
        let failure = match &record {
            Some(record) if status.success() => record.failure(),
            _ => {
                let said = fs::read_to_string(self.file(cell, "log")).unwrap_or_default();
                let last = said.lines().last().unwrap_or("it left nothing");
                Some(last.to_owned())
            }
        };
        RunSummary {
            scenario: cell.scenario.clone(),
            contender: cell.contender.to_string(),
            congestion_control: cell.congestion_control.clone(),
            variant: self.variant.map(|variant| variant.name.clone()),
            weight: self.weight(),
            g_ms: self.variant.and_then(|variant| variant.g_ms),
            controller: self.variant.and_then(|variant| variant.controller),
            seed: cell.seed,
            summary: record.map_or_else(Summary::default, |record| record.summary),
            failure,
        }
    }
}

/// What there is so far, in memory and in a file.
struct Results {
    record: MatrixRecord,
    file: PathBuf,
    /// Runs of earlier results.
    kept: Vec<RunSummary>,
    /// Runs by the place that they have in the order of the matrix.
    done: Vec<Option<RunSummary>>,
}

impl Results {
    fn add(&mut self, place: usize, run: RunSummary) -> Result<(), Box<dyn Error>> {
        if self.done.len() <= place {
            self.done.resize(place + 1, None);
        }
        self.done[place] = Some(run);
        let runs = self.kept.iter().chain(self.done.iter().flatten());
        self.record.runs = runs.cloned().collect();
        self.record.write(&self.file)
    }
}

fn matrix_versions(matrix: &Matrix) -> Vec<String> {
    let mut all: Vec<_> = matrix
        .contenders
        .iter()
        .flat_map(|&contender| versions::of(contender))
        .collect();
    all.sort();
    all.dedup();
    all
}
