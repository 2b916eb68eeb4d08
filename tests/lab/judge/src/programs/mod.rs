//! `lab programs`: programs of others that move data over an idle link, plain and under
//! `fairbat run` or through `fairbat proxy`: whether they do the same, and how much longer they
//! take.
//!
//! Everything is real: the programs, their servers at the other end of the link, and what they
//! move. A program runs in pairs, plain and held back, one right after the other, and
//! who begins changes from pair to pair. Its directory is empty each time, so nothing comes from
//! a cache. Each command is written here as [the recipes](../../../../../docs/recipes.md) have it,
//! with the same names of hosts: the mount namespace of the lab has files of its own in the place
//! of `/etc/hosts`, `/srv` and the configuration of ssh.
//!
//! It must not know how connections are held back.

mod backups;
mod copies;
mod directories;
mod downloads;
mod languages;
mod packages;
mod program;
mod record;
mod report;
mod services;
mod stage;
mod way;

use std::error::Error;
use std::io;

use fairbat_tests::bin::{fairbat_binary, s3_server_binary};
use fairbat_tests::environment::{first_line, nginx_version};

use crate::programs::directories::Directories;
use crate::programs::program::Program;
pub use crate::programs::record::{Pair, ProgramRecord, Record, Run};
pub use crate::programs::report::{terminal, write_all, write_pages};
use crate::programs::stage::{Hold, Stage};
pub use crate::programs::way::Way;
use lab_run::versions;

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Pairs of runs of each program.
    pub repeats: u32,
    /// Names of programs; all of them if there is none.
    pub only: Vec<String>,
    /// How they are held back.
    pub way: Way,
}

impl Plan {
    /// Some 20 minutes.
    pub const REPEATS: u32 = 5;

    /// To see whether it works.
    pub const QUICK_REPEATS: u32 = 1;
}

/// All programs, in the order in which they run.
fn all() -> impl Iterator<Item = &'static Program> {
    [
        downloads::PROGRAMS,
        copies::PROGRAMS,
        backups::PROGRAMS,
        packages::PROGRAMS,
        languages::PROGRAMS,
    ]
    .into_iter()
    .flatten()
}

/// The programs that a plan asks for.
fn chosen(plan: &Plan) -> Result<Vec<&'static Program>, String> {
    let is_there = |name: &&String| all().any(|program| program.name == **name);
    if let Some(unknown) = plan.only.iter().find(|name| !is_there(name)) {
        let names: Vec<_> = all().map(|program| program.name).collect();
        return Err(format!(
            "there is no program {unknown:?}; there are: {}",
            names.join(", ")
        ));
    }
    let is_chosen =
        |program: &&Program| plan.only.is_empty() || plan.only.iter().any(|it| it == program.name);
    let chosen: Vec<_> = all().filter(is_chosen).collect();
    match chosen.iter().find(|it| holds(it, plan.way).is_empty()) {
        Some(program) if !plan.only.is_empty() => {
            Err(format!("{} knows no proxy from http_proxy", program.name))
        }
        _ => Ok(chosen),
    }
}

/// How a program is held back in this way: under which names, and how.
fn holds(program: &Program, way: Way) -> Vec<(String, Hold)> {
    match way {
        Way::Run => vec![(program.name.to_owned(), Hold::Run)],
        Way::Proxy => {
            let named = |&protocol: &&'static str| {
                let name = format!("{} ({protocol})", program.name);
                (name, Hold::Proxy(protocol))
            };
            program.proxies.iter().map(named).collect()
        }
    }
}

/// Builds what is to be built, before the sandbox.
///
/// # Errors
/// When the plan names a program that there is not.
///
/// # Panics
/// When it cannot be built.
pub fn prepare(plan: &Plan) -> Result<(), String> {
    chosen(plan)?;
    let _ = (fairbat_binary(), s3_server_binary());
    Ok(())
}

/// Runs all of it, and says what came of each program. `command` is what does it again, `work`
/// a directory of the lab's own.
///
/// # Errors
/// When the network or the directories cannot be made. What goes wrong with a program is in its
/// record.
pub fn measure(
    plan: &Plan,
    command: &str,
    work: &std::path::Path,
    said: &mut dyn FnMut(&str),
) -> Result<Record, Box<dyn Error>> {
    let directories = stage::prepare(work)?;
    let mut programs = Vec::new();
    let chosen = chosen(plan)?.into_iter();
    let all = chosen.flat_map(|program| {
        let holds = holds(program, plan.way).into_iter();
        holds.map(move |(name, hold)| (program, name, hold))
    });
    for (program, name, hold) in all {
        let fairbat = first_line(&[&fairbat_binary().to_string_lossy(), "--version"]);
        let mut record = ProgramRecord {
            name,
            moves: program.moves.to_owned(),
            command: program.command.to_owned(),
            version: String::new(),
            provenance: versions::provenance(
                command.to_owned(),
                vec![fairbat, nginx_version()],
                "1 lab".to_owned(),
            ),
            pairs: Vec::new(),
            missing: program.missing(&directories),
            failure: None,
        };
        if let Some(missing) = &record.missing {
            said(&format!("{}: SKIPPED: {missing}", record.name));
        } else {
            record.failure = run(program, hold, plan.repeats, &directories, &mut record)
                .err()
                .map(|error| error.to_string());
            said(&record.line());
        }
        programs.push(record);
    }
    Ok(Record::new(plan.way, programs))
}

/// Runs a program as often as planned, and puts what it sees into the record.
fn run(
    program: &'static Program,
    hold: Hold,
    repeats: u32,
    directories: &Directories,
    record: &mut ProgramRecord,
) -> io::Result<()> {
    let stage = Stage::build(program, hold, directories)?;
    record.version = stage.version()?;
    // What is used for the first time comes from a disk.
    stage.run_plain()?;
    for number in 0..repeats {
        let (plain, run);
        if number % 2 == 0 {
            plain = stage.run_plain()?;
            run = stage.run_held()?;
        } else {
            run = stage.run_held()?;
            plain = stage.run_plain()?;
        }
        record.pairs.push(Pair { plain, run });
    }
    stage.finish()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn there_are_twenty_programs_that_move_data_and_no_name_twice() {
        let mut names: Vec<_> = all().filter(|it| it.connects).map(|it| it.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(count >= 20, "{count}");
    }

    /// Who wrote these knows how to start them.
    const WITHOUT_RECIPE: [&str; 6] = [
        "true",
        "curl-unprivileged",
        "python",
        "java",
        "node",
        "daemon",
    ];

    #[test]
    fn the_recipes_have_the_commands_as_they_run() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/recipes.md");
        let recipes = fs::read_to_string(path).unwrap();
        for program in all().filter(|it| !WITHOUT_RECIPE.contains(&it.name)) {
            let command = program.command.trim();
            let lines: Vec<_> = command.lines().map(|line| format!("    {line}")).collect();
            let lines = lines.join("\n");
            assert!(recipes.contains(&lines), "no recipe has {command:?}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let plan = Plan {
            repeats: 1,
            only: vec!["none-such".to_owned()],
            way: Way::Run,
        };
        let error = chosen(&plan).unwrap_err();
        assert!(error.contains("\"none-such\""), "{error}");
        assert!(error.contains("curl"), "{error}");
    }
}
