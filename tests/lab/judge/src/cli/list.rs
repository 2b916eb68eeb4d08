//! `lab list`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use lab::matrix::Matrix;
use lab::multipath::PathsPlan;
use lab_run::contender::Contender;
use lab_run::files;
use lab_run::scenario::Scenario;

use super::Outcome;

/// A line: name, remark, description.
type Line = (String, char, String);

/// Prints all there is to choose from.
pub(super) fn list() -> Outcome {
    let scenarios: BTreeMap<String, Scenario> = files::all(&files::scenarios())?;
    let matrices: BTreeMap<String, Matrix> = files::all(&files::matrices())?;
    let plans: BTreeMap<String, PathsPlan> = files::all(&files::multipath())?;
    let scenarios = scenarios.into_iter().map(|(name, scenario)| {
        let quick = if scenario.quick.is_some() { '*' } else { ' ' };
        (name, quick, scenario.description)
    });
    let contenders = Contender::ALL.map(|one| (one.to_string(), ' ', one.title().to_owned()));
    let matrices = matrices
        .into_iter()
        .map(|(name, matrix)| (name, ' ', matrix.description));
    let plans = plans.into_iter();
    let plans = plans.map(|(name, plan)| (name, ' ', plan.description));
    let sections: [(&str, Vec<Line>); 4] = [
        (
            "Scenarios (lab run NAME; * has a quick variant)",
            scenarios.collect(),
        ),
        ("Contenders (--contender NAME)", contenders.into()),
        ("Matrices (lab matrix NAME)", matrices.collect()),
        (
            "Plans for several paths (lab multipath NAME)",
            plans.collect(),
        ),
    ];
    let lines = sections.iter().flat_map(|(_, lines)| lines);
    let width = lines.map(|(name, ..)| name.len()).max().unwrap_or(0);
    for (index, (title, lines)) in sections.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        println!("{gap}{title}:\n");
        for (name, remark, description) in lines {
            println!("  {name:<width$} {remark} {description}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
