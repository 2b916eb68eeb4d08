//! Scenarios with paths side by side, each with one file: whether it is right and in time, what
//! came twice, what others at the same path keep, and what a metered path had to carry.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use fairbat_tests::content::Content;

use crate::multipath::carrier::Carrier;
use crate::multipath::ground::{Ground, Task};
use crate::multipath::judge::{self, Place, Punctuality};
use crate::multipath::plan::{PathsPlan, Runs};
use crate::multipath::record::{Results, RunRow};
use crate::multipath::{Setup, side_by_side};
use crate::requirement::Requirement;
use crate::verdict::{Bound, Verdict};
use lab_run::link::{PAYLOAD_SHARE, bytes_per_s};
use lab_run::machine::Clock;
use lab_run::samples::RECEIVED_EVERY;
use lab_run::scenario::{Cost, Scenario};
use lab_run::statistics::Spread;
use lab_run::table::{NOTHING, Table, or_nothing, shown};
use lab_run::traffic::Sources;

/// How often the links are sampled.
const SAMPLING: Duration = Duration::from_millis(100);

/// What the file is called.
const FILE: &str = "file";

/// Where paths go away, so much may come over the links beyond the file, in parts of it.
const BEYOND: f64 = 0.05;

/// So many departures are to be survived.
const DEPARTURES: usize = 50;

/// What others at the same path keep at least of what they have without the transfer.
const KEPT: f64 = 0.99;

/// What a metered path carries at most, in parts of what it had to in hindsight.
const METERED: f64 = 1.1;

/// Measures all of it; the tables and verdicts.
pub(super) fn measure(
    plan: &PathsPlan,
    runs: &Runs,
    setup: &Setup,
    results: &Mutex<Results>,
    say: &(dyn Fn(&str) + Sync),
) -> io::Result<String> {
    let scenarios = runs.all().map_err(io::Error::other)?;
    let mut tasks = Vec::new();
    for (name, scenario) in &scenarios {
        for &seed in &runs.seeds {
            let alone = (!scenario.foreground.is_empty()).then_some(Carrier::None);
            let carriers = plan
                .carriers
                .iter()
                .copied()
                .filter(|one| *one != Carrier::None);
            tasks.extend(alone.into_iter().chain(carriers).map(|carrier| Run {
                name: name.clone(),
                scenario,
                seed,
                carrier,
            }));
        }
    }
    let rows = side_by_side(&tasks, setup.jobs, &setup.work, |run, work| {
        let row = run.carry_out(work)?;
        say(&words(&row));
        let mut results = results.lock().expect("nobody panics with it");
        results.add(&row)?;
        Ok(row)
    })?;
    Ok(page(&scenarios, &rows))
}

/// A run of a scenario.
struct Run<'a> {
    name: String,
    scenario: &'a Scenario,
    seed: u64,
    carrier: Carrier,
}

impl Run<'_> {
    fn carry_out(&self, work: &Path) -> io::Result<RunRow> {
        let Self { scenario, seed, .. } = *self;
        let background = &scenario.background;
        let content = Content::new(seed, size(scenario));
        let clock = Clock::start();
        let ground = Ground::start(scenario, seed, SAMPLING, work, clock)?;
        let sources = Sources::start(scenario, ground.hosts(), seed, clock)?;
        ground.put(FILE, &content);
        clock.sleep_until(Duration::from_secs_f64(background.start_s));
        let began_s = clock.seconds();
        let left = Duration::from_secs_f64(scenario.duration_s).saturating_sub(clock.now());
        let transfer = match self.carrier {
            Carrier::None => None,
            carrier => Some(ground.carry(&Task {
                carrier,
                name: FILE.to_owned(),
                content,
                deadline_s: background.deadline_s,
                patience: left,
            })?),
        };
        let ended_s = clock.seconds();
        // What others get until the end of the run is not of interest without others.
        let received = match scenario.foreground.is_empty() {
            true => Vec::new(),
            false => sources.finish()?.flows,
        };
        let links = ground.finish()?;
        let away = scenario.departures(seed);
        let counts = away.iter().map(|away| {
            let before = away.iter().filter(|one| one.from_s < ended_s);
            before.count()
        });
        let forward = received.iter().filter(|flow| !flow.backward);
        let foreground = forward.fold(Vec::new(), |mut all: Vec<u64>, flow| {
            all.resize(flow.received.len().max(all.len()), 0);
            all.iter_mut()
                .zip(&flow.received)
                .for_each(|(sum, bytes)| *sum += bytes);
            all
        });
        let counters = links.iter().map(|link| link.forward.counters);
        let machine = Punctuality::of(&links);
        Ok(RunRow {
            scenario: self.name.clone(),
            seed,
            carrier: self.carrier,
            bytes: content.len(),
            transfer,
            began_s,
            departures: counts.collect(),
            payload: counters.map(|one| one.background_payload).collect(),
            foreground,
            late_p99_ms: machine.late_p99_ms,
            overrun: machine.overrun,
        })
    }
}

/// Bytes of the file.
fn size(scenario: &Scenario) -> u64 {
    (scenario.background.size_mb.unwrap_or_default() * 1e6).round() as u64
}

fn words(row: &RunRow) -> String {
    let RunRow {
        scenario,
        carrier,
        seed,
        ..
    } = row;
    let outcome = match &row.transfer {
        None => "nobody fetches".to_owned(),
        Some(transfer) => match (transfer.seconds, &transfer.failure) {
            (Some(seconds), _) => format!("{seconds:.2} s"),
            (None, failure) => format!("FAILED: {}", failure.as_deref().unwrap_or("no file")),
        },
    };
    let late = match row.overrun {
        0 => String::new(),
        overrun => format!("; {overrun} packets came too late for the link"),
    };
    format!("{scenario} {carrier} {seed}: {outcome}{late}")
}

impl RunRow {
    fn seconds(&self) -> Option<f64> {
        self.transfer.as_ref()?.seconds
    }

    fn is_right(&self) -> bool {
        self.seconds().is_some()
    }

    /// What came over the links beyond the file, in parts of it.
    fn beyond(&self) -> Option<f64> {
        self.seconds()?;
        let all: u64 = self.payload.iter().sum();
        Some(all as f64 / self.bytes as f64 - 1.0)
    }

    /// What the foreground got while this transfer was there, in parts of what it got then without
    /// it. All of the measured time, if it never was done.
    fn kept(&self, scenario: &Scenario, alone: &Self) -> Option<f64> {
        let end = scenario.measured().end;
        let until = self
            .seconds()
            .map_or(end, |seconds| end.min(self.began_s + seconds));
        let got = |row: &Self| {
            let at = |moment: f64| {
                let index = (moment / RECEIVED_EVERY.as_secs_f64()).round() as usize;
                let before = index.checked_sub(1);
                let last = row.foreground.len().saturating_sub(1);
                before.map_or(0, |index| {
                    row.foreground.get(index.min(last)).copied().unwrap_or(0)
                })
            };
            at(until) as f64 - at(self.began_s) as f64
        };
        let alone = got(alone);
        (alone > 0.0).then(|| got(self) / alone)
    }

    /// What the metered paths carried, in parts of what they had to: what the free ones could not
    /// carry at their full rate, or the user's limit, until the deadline.
    fn metered(&self, scenario: &Scenario) -> Option<f64> {
        self.seconds()?;
        let needed = needed(scenario)?;
        let of = |cost: Cost| {
            let links = scenario.link.iter().zip(&self.payload);
            let of_cost = links.filter(move |(link, _)| link.cost == cost);
            of_cost.map(|(_, bytes)| *bytes as f64).sum::<f64>()
        };
        Some(of(Cost::Metered) / needed)
    }
}

/// Bytes that metered paths have to carry, in hindsight; `None` without any, or without a deadline.
fn needed(scenario: &Scenario) -> Option<f64> {
    let deadline = scenario.background.deadline_s?;
    let metered = scenario.link.iter().any(|link| link.cost == Cost::Metered);
    let free = scenario.link.iter().filter(|link| link.cost == Cost::Free);
    let rate: f64 = free
        .map(|link| {
            let limit = link.limit_mbit.map_or(f64::INFINITY, bytes_per_s);
            limit.min(bytes_per_s(link.rate_mbit) * PAYLOAD_SHARE)
        })
        .sum();
    let needed = size(scenario) as f64 - rate * deadline;
    (metered && needed > 0.0).then_some(needed)
}

/// Tables and verdicts.
fn page(scenarios: &[(String, Scenario)], rows: &[RunRow]) -> String {
    let mut page = "What is required, and whether it holds:\n\n".to_owned();
    let all = scenarios
        .iter()
        .flat_map(|(name, scenario)| required(name, scenario, rows));
    page.push_str(&Requirement::table(all.collect()).to_string());
    for (name, scenario) in scenarios {
        page.push_str(&format!("\n## {name}\n\n{}\n\n", scenario.description));
        page.push_str(&table(name, scenario, rows));
    }
    let machine = rows.iter().map(|row| Punctuality {
        late_p99_ms: row.late_p99_ms,
        overrun: row.overrun,
    });
    page.push_str(&Punctuality::worst(&machine.collect::<Vec<_>>()).words());
    page
}

/// A run and the one with the same seed in which nobody fetches.
fn with_alone<'a>(name: &str, carrier: Carrier, rows: &'a [RunRow]) -> Vec<Compared<'a>> {
    let here = || rows.iter().filter(|row| row.scenario == name);
    let alone = |seed| here().find(|row| row.carrier == Carrier::None && row.seed == seed);
    let own = here().filter(|row| row.carrier == carrier);
    own.map(|row| (row, alone(row.seed))).collect()
}

fn required(name: &str, scenario: &Scenario, rows: &[RunRow]) -> Vec<Requirement> {
    let runs = with_alone(name, Carrier::Fairbat, rows);
    let has_departures = scenario.link.iter().any(|link| link.departures.is_some());
    let mut all = vec![in_all(name, "the file is there and right", &runs, |row| {
        row.is_right()
    })];
    if let Some(deadline) = scenario.background.deadline_s {
        let is_met = |row: &RunRow| row.seconds().is_some_and(|seconds| seconds <= deadline);
        all.push(in_all(name, "it is there by its deadline", &runs, is_met));
    }
    if has_departures {
        all.push(departures(name, &runs));
    }
    let mut add = |what: &str, values: Vec<f64>, bound: Bound| {
        let place = Place {
            name: "`fairbat`".to_owned(),
            values,
        };
        let what = format!("{name}: {what}");
        all.push(judge::at_all(&what, &[place], bound, 3));
    };
    if has_departures {
        let beyond = runs.iter().filter_map(|(row, _)| row.beyond());
        let what = "beyond the file came over the links, parts of it";
        add(what, beyond.collect(), Bound::AtMost(BEYOND));
    }
    if !scenario.foreground.is_empty() {
        let kept = runs.iter();
        let kept = kept.filter_map(|(row, alone)| row.kept(scenario, (*alone)?));
        let what = "the foreground keeps, parts";
        add(what, kept.collect(), Bound::AtLeast(KEPT));
    }
    if needed(scenario).is_some() {
        let metered = runs.iter().filter_map(|(row, _)| row.metered(scenario));
        let what = "metered paths carry, parts of what they had to";
        add(what, metered.collect(), Bound::AtMost(METERED));
    }
    all
}

/// A run and, if there is one, that in which nobody fetches.
type Compared<'a> = (&'a RunRow, Option<&'a RunRow>);

/// It must be so in each of the runs.
fn in_all(
    name: &str,
    what: &str,
    runs: &[Compared<'_>],
    is_so: impl Fn(&RunRow) -> bool,
) -> Requirement {
    let good = runs.iter().filter(|(row, _)| is_so(row)).count();
    let holds = (!runs.is_empty()).then_some(good == runs.len());
    let measured = holds.map(|_| format!("{good} of {}", runs.len()));
    Requirement::new(
        format!("{name}: {what}, runs"),
        or_nothing(measured),
        Verdict::of_seeds(holds, runs.len(), false),
    )
}

/// With fewer departures than are asked for, nothing is known.
fn departures(name: &str, runs: &[Compared<'_>]) -> Requirement {
    let all: usize = runs.iter().flat_map(|(row, _)| &row.departures).sum();
    let verdict = match all >= DEPARTURES {
        true => Verdict::Holds,
        false => Verdict::NotMeasured,
    };
    let what = format!("{name}: departures before it was there, in all runs \u{2265} {DEPARTURES}");
    Requirement::new(what, all.to_string(), verdict)
}

fn table(name: &str, scenario: &Scenario, rows: &[RunRow]) -> String {
    let carriers = Carrier::ALL.into_iter();
    let all = carriers.map(|carrier| (carrier, with_alone(name, carrier, rows)));
    let spread = |values: Vec<f64>, digits| shown(Spread::of(&values), digits);
    Table::over(all.filter(|(_, runs)| !runs.is_empty()))
        .column("", |(carrier, _)| carrier.to_string())
        .column("right, of runs", |(_, runs)| {
            let fetched = runs.iter().all(|(row, _)| row.transfer.is_some());
            let right = runs.iter().filter(|(row, _)| row.is_right());
            if !fetched {
                return NOTHING.to_owned();
            }
            format!("{} of {}", right.count(), runs.len())
        })
        .column("done after, s", |(_, runs)| {
            spread(
                runs.iter().filter_map(|(row, _)| row.seconds()).collect(),
                1,
            )
        })
        .column("departures", |(_, runs)| {
            let all: usize = runs.iter().flat_map(|(row, _)| &row.departures).sum();
            all.to_string()
        })
        .columns(
            scenario.paths().map(|(path, _)| path).enumerate(),
            |(_, path)| format!("over {path}, MB"),
            |(_, runs), (path, _)| {
                let payload = runs.iter().map(|(row, _)| row.payload[*path] as f64 / 1e6);
                spread(payload.collect(), 1)
            },
        )
        .column("beyond the file, %", |(_, runs)| {
            spread(
                runs.iter()
                    .filter_map(|(row, _)| Some(100.0 * row.beyond()?))
                    .collect(),
                1,
            )
        })
        .column_if(
            !scenario.foreground.is_empty(),
            "foreground keeps, %",
            |(_, runs)| {
                let kept = runs
                    .iter()
                    .filter_map(|(row, alone)| row.kept(scenario, (*alone)?));
                spread(kept.map(|kept| 100.0 * kept).collect(), 1)
            },
        )
        .column_if(
            needed(scenario).is_some(),
            "metered, parts of what it had to",
            |(_, runs)| {
                spread(
                    runs.iter()
                        .filter_map(|(row, _)| row.metered(scenario))
                        .collect(),
                    2,
                )
            },
        )
        .to_string()
}

#[cfg(test)]
mod tests;
