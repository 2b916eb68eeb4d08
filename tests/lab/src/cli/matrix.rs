//! `lab matrix`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use fairbat_lab::calibrate::cost;
use fairbat_lab::clock::Clock;
use fairbat_lab::matrix::{Budget, Cell, Job, Matrix, Variant, run_all, weight};
use fairbat_lab::record::{Provenance, Record, Summary};
use fairbat_lab::report::{self, MatrixRecord, RunSummary};
use fairbat_lab::scenario::{self, Scenario};
use fairbat_lab::{places, sandbox, versions};
use fairbat_tests::target::output_directory;

use super::Outcome;
use super::arguments::MatrixArguments;

/// Runs a matrix and writes its results.
pub(super) fn matrix(arguments: &MatrixArguments) -> Outcome {
    let (name, mut matrix) = Matrix::find(&places::matrices(), &arguments.matrix)?;
    if arguments.quick {
        matrix.seeds.truncate(1);
    }
    let scenarios = scenarios(&matrix, arguments.quick)?;
    for contender in &matrix.contenders {
        for scenario in scenarios.values() {
            contender.check(scenario)?;
        }
    }
    let usual = match arguments.jobs {
        Some(jobs) => Budget::fixed(jobs),
        None => Budget::of(cost()?, versions::cores()),
    };
    let directory = output_directory("lab").join(&name);
    // What an earlier run left would be taken for this one's.
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory)?;
    let started = versions::now();
    let (mut runs, mut side_by_side) = (Vec::new(), Vec::new());
    for batch in batches(&matrix, usual, &directory) {
        println!(
            "{} runs{}, {} side by side; samples and pictures: {}",
            batch.cells.len(),
            batch
                .name()
                .map_or(String::new(), |name| format!(" {name}")),
            batch.budget.words(),
            batch.directory.display()
        );
        fs::create_dir_all(&batch.directory)?;
        batch.run(&scenarios, arguments.quick)?;
        runs.extend(batch.collect()?);
        side_by_side.push(batch.budget.words());
    }
    let record = MatrixRecord {
        name: name.clone(),
        description: matrix.description.clone(),
        provenance: Provenance {
            command: format!("lab matrix {name}"),
            commit: versions::commit(),
            kernel: versions::kernel(),
            machine: versions::machine(),
            versions: matrix_versions(&matrix),
            started,
            side_by_side: side_by_side.join("; "),
        },
        scenarios,
        runs,
    };
    let results = if arguments.quick {
        directory.clone()
    } else {
        places::results()
    };
    fs::write(
        results.join(format!("{name}.json")),
        serde_json::to_vec_pretty(&record)?,
    )?;
    for path in report::write_all(&results)? {
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The scenarios of a matrix as they will be run, by name.
fn scenarios(matrix: &Matrix, quick: bool) -> Result<BTreeMap<String, Scenario>, Box<dyn Error>> {
    let mut scenarios = BTreeMap::new();
    for name in &matrix.scenarios {
        let named = scenario::find(&places::scenarios(), name)?;
        let scenario = if quick {
            named
                .scenario
                .quick_variant()
                .map_err(|error| format!("{name}: {error}"))?
        } else {
            named.scenario
        };
        scenarios.insert(named.name, scenario);
    }
    Ok(scenarios)
}

/// All cells of a matrix, run in one way.
struct Batch<'a> {
    variant: Option<&'a Variant>,
    cells: Vec<Cell>,
    budget: Budget,
    directory: PathBuf,
}

/// One batch for each variant, or the only one.
fn batches<'a>(matrix: &'a Matrix, usual: Budget, directory: &Path) -> Vec<Batch<'a>> {
    if matrix.variants.is_empty() {
        return vec![Batch {
            variant: None,
            cells: matrix.cells(),
            budget: usual,
            directory: directory.to_owned(),
        }];
    }
    let batch = |variant: &'a Variant| Batch {
        variant: Some(variant),
        cells: matrix.cells(),
        budget: variant.jobs.map_or(usual, Budget::fixed),
        directory: directory.join(&variant.name),
    };
    matrix.variants.iter().map(batch).collect()
}

impl Batch<'_> {
    fn name(&self) -> Option<String> {
        Some(self.variant?.name.clone())
    }

    /// Runs every cell as a command of its own, and says how far it is.
    fn run(
        &self,
        scenarios: &BTreeMap<String, Scenario>,
        quick: bool,
    ) -> Result<(), Box<dyn Error>> {
        let clock = Clock::start();
        let mut jobs = Vec::new();
        for cell in &self.cells {
            jobs.push(Job {
                command: self.command(cell, quick)?,
                weight: weight(&scenarios[&cell.scenario]),
            });
        }
        let mut ended = 0;
        run_all(jobs, self.budget, |number, status| {
            ended += 1;
            let name = self.cells[number].file_name();
            let remark = if status.success() { "" } else { "  FAILED" };
            let (seconds, all) = (clock.seconds(), self.cells.len());
            println!("{seconds:6.0} s  {ended}/{all}  {name}{remark}");
        })?;
        Ok(())
    }

    fn command(&self, cell: &Cell, quick: bool) -> Result<Command, Box<dyn Error>> {
        let log = fs::File::create(self.directory.join(format!("{}.log", cell.file_name())))?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["run", &cell.scenario])
            .args(["--seed", &cell.seed.to_string()])
            .args(["--contender", &cell.contender.to_string()])
            .args(["--side-by-side", &self.budget.words()])
            .arg("--output")
            .arg(&self.directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        if let Some(name) = &cell.congestion_control {
            command.args(["--congestion-control", name]);
        }
        if let Some(interval) = self.variant.and_then(|variant| variant.sampling_ms) {
            command.args(["--sampling", &interval.to_string()]);
        }
        if quick {
            command.arg("--quick");
        }
        sandbox::of_its_own(&mut command);
        Ok(command)
    }

    /// What the runs have left.
    fn collect(&self) -> Result<Vec<RunSummary>, Box<dyn Error>> {
        self.cells.iter().map(|cell| self.summary(cell)).collect()
    }

    fn summary(&self, cell: &Cell) -> Result<RunSummary, Box<dyn Error>> {
        let file = |suffix| {
            self.directory
                .join(format!("{}.{suffix}", cell.file_name()))
        };
        let (summary, failure) = match fs::read(file("json")) {
            Ok(bytes) => {
                let record: Record = serde_json::from_slice(&bytes)?;
                let failure = record.failure();
                (record.summary, failure)
            }
            Err(_) => {
                let said = fs::read_to_string(file("log")).unwrap_or_default();
                let last = said.lines().last().unwrap_or("it left nothing");
                (Summary::default(), Some(last.to_owned()))
            }
        };
        Ok(RunSummary {
            scenario: cell.scenario.clone(),
            contender: cell.contender.to_string(),
            congestion_control: cell.congestion_control.clone(),
            variant: self.name(),
            seed: cell.seed,
            summary,
            failure,
        })
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
