//! `make demo`: the main job on a real link, in a minute. It needs root, and touches nothing
//! outside its own namespaces.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fairbat_tests::target::output_directory;
use lab_run::contender::{Contender, told_so_far};
use lab_run::files;
use lab_run::machine::Clock;
use lab_run::picture::save;
use lab_run::record::ControlSample;
use lab_run::run::{Plan, SAMPLING, run};
use lab_run::sandbox::{self, Side};
use lab_run::scenario::Scenario;
use lab_run::terminal::terminal;

/// Name of its scenario.
const NAME: &str = "demo";

const CONTENDER: Contender = Contender::Fairbat;

fn main() -> ExitCode {
    run_inside().unwrap_or_else(|error| {
        eprintln!("demo: {error}");
        ExitCode::FAILURE
    })
}

fn run_inside() -> Result<ExitCode, Box<dyn Error>> {
    let scenario = scenario()?;
    match sandbox::enter(None)? {
        Side::Outside(code) => Ok(code),
        Side::Inside(work) => demo(scenario, &work),
    }
}

/// The scenario of the demo.
fn scenario() -> Result<Scenario, Box<dyn Error>> {
    let scenario = files::by_name(&files::scenarios(), NAME)?;
    // Built now, if need be, and not when the time has begun.
    sandbox::require_root()?;
    CONTENDER.check(&scenario)?;
    Ok(scenario)
}

/// Downloads a file by a deadline over a link that others use.
fn demo(scenario: Scenario, work: &Path) -> Result<ExitCode, Box<dyn Error>> {
    println!("{}.\n", scenario.description);
    announce(&scenario, work);
    let background = &scenario.background;
    let due = background.start_s + background.deadline_s.unwrap_or_default();
    let record = run(&Plan {
        name: NAME.to_owned(),
        scenario,
        quick: false,
        seed: 1,
        contender: CONTENDER,
        sampling: SAMPLING,
        command: "make demo".to_owned(),
        side_by_side: "1 lab".to_owned(),
        work: work.to_owned(),
    })?;
    let (_, svg) = save(&record, &output_directory("demo"))?;
    println!("\n{}", terminal(&record));
    println!("picture: {}", shown(&svg).display());
    if let Some(failure) = record.failure() {
        return Err(failure.into());
    }
    let Some(done) = record.done() else {
        return Err("the file was not there at the end of the run".into());
    };
    let in_time = if done <= due { "in time" } else { "LATE" };
    println!(
        "the file: due at {due:.0} s, there at {done:.1} s, {in_time}, byte for byte what was served"
    );
    Ok(if done <= due {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// From one line on the progress to the next.
const LINE_EVERY: f64 = 5.0;

/// Says what happens when it happens, and how far it is in between.
fn announce(scenario: &Scenario, work: &Path) {
    let background = &scenario.background;
    let size = background.size_mb.unwrap_or_default();
    let deadline = background.deadline_s.unwrap_or_default();
    let mut moments = vec![(
        background.start_s,
        Some(format!(
            "$ fairbat get --deadline {deadline}s URL   ({size} MB)"
        )),
    )];
    for foreground in &scenario.foreground {
        let what = foreground.traffic.title();
        moments.push((foreground.start_s, Some(format!("{what} begins"))));
        if let Some(stop) = foreground.stop_s {
            moments.push((stop, Some(format!("{what} ends"))));
        }
    }
    let due = background.start_s + deadline;
    moments.push((due, Some("the deadline".to_owned())));
    let lines = (1..).map(|line| background.start_s + f64::from(line) * LINE_EVERY);
    let until = due.min(scenario.duration_s);
    moments.extend(
        lines
            .take_while(|line| *line < until)
            .map(|line| (line, None)),
    );
    moments.sort_by(|a, b| a.0.total_cmp(&b.0));
    let clock = Clock::start();
    let work = work.join("contender-0");
    std::thread::spawn(move || {
        let mut is_done = false;
        for (moment, what) in moments {
            clock.sleep_until(Duration::from_secs_f64(moment));
            let told = told_so_far(&work);
            let line = match (what, told.control.last()) {
                (Some(what), _) => what,
                (None, _) if is_done => continue,
                (None, _) if told.done.is_some() => {
                    is_done = true;
                    "complete".to_owned()
                }
                (None, Some(sample)) => progress(sample),
                (None, None) => "nothing yet".to_owned(),
            };
            println!("{moment:5.0} s  {line}");
        }
    });
}

fn progress(sample: &ControlSample) -> String {
    let mbit = |rate: f64| rate * 8e-6;
    format!(
        "gets {:.1} Mbit/s, needs {:.1}: w = {:.2}, m = {:.2}, {} in use",
        mbit(sample.rate),
        mbit(sample.zeta.unwrap_or(0.0)),
        sample.w,
        sample.m,
        sample.active
    )
}

/// Relative to where the user is, if it is below.
fn shown(path: &Path) -> &Path {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path)
}
