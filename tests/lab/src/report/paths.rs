//! On which path each variant of a matrix is run. A record has the names of its
//! variants; what they change is in the file of its matrix.

use std::fmt::Write;

use super::MatrixRecord;
use super::words::terms;
use crate::files;
use crate::matrix::{Matrix, Variant};
use crate::places;
use crate::scenario::Scenario;

/// The variants of a matrix as its file has them; none if there is no such file.
pub(super) fn variants(name: &str) -> Vec<Variant> {
    let matrix = files::by_name::<Matrix>(&places::matrices(), name);
    matrix.map_or(Vec::new(), |matrix| matrix.variants)
}

/// A line of a list for each scenario, as [`line()`].
pub(super) fn lines(matrix: &MatrixRecord, variants: &[Variant]) -> String {
    let all = matrix.scenarios.iter();
    all.map(|(name, scenario)| line(matrix, (name, scenario), variants))
        .collect()
}

/// A line of a list, with one below it for each variant if these are run on paths
/// of their own: what a scenario says of its path is not so then.
pub(super) fn line(
    matrix: &MatrixRecord,
    (name, scenario): (&str, &Scenario),
    variants: &[Variant],
) -> String {
    let what = scenario.description.trim();
    if !is_elsewhere(matrix, name, variants) {
        return format!("- {name}: {what}. {}\n", terms(scenario));
    }
    let mut text = format!(
        "- {name}: {what}. That is the path of the scenario; in its place are those of the \
         variants:\n"
    );
    for name in names(matrix, name) {
        let variant = variants.iter().find(|one| one.name == name);
        let _ = writeln!(text, "  - {name}: {}", of(variant, scenario));
    }
    text
}

/// Whether variants of a scenario are run on paths of their own.
pub(super) fn is_elsewhere(matrix: &MatrixRecord, scenario: &str, variants: &[Variant]) -> bool {
    let names = names(matrix, scenario);
    let mut paths = variants.iter().filter(|one| one.path.is_some());
    paths.any(|one| names.contains(&one.name.as_str()))
}

/// The names of the variants of a scenario, in the order of first appearance.
fn names<'a>(matrix: &'a MatrixRecord, scenario: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let runs = matrix.runs.iter().filter(|run| run.scenario == scenario);
    for name in runs.filter_map(|run| run.variant.as_deref()) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn of(variant: Option<&Variant>, scenario: &Scenario) -> String {
    match variant.map(|variant| variant.as_run(scenario)) {
        Some(Ok(run)) => terms(&run),
        Some(Err(_)) | None => "what it was run on is not in the file of the matrix".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{matrix, run};
    use super::*;

    fn varied(names: &[&str]) -> MatrixRecord {
        let mut matrix = matrix();
        matrix.scenarios.retain(|name, _| name == "greedy");
        let runs = names.iter().map(|name| {
            let mut run = run("greedy", "sender-vegas", 1, &[5.0]);
            run.variant = Some((*name).to_owned());
            run
        });
        matrix.runs = runs.collect();
        matrix
    }

    fn variant(name: &str, path: Option<&str>) -> Variant {
        Variant {
            name: name.to_owned(),
            path: path.map(|path| path.parse().unwrap()),
            ..Variant::default()
        }
    }

    #[test]
    fn variants_have_the_path_on_which_they_were_run() {
        let matrix = varied(&["short", "long", "gone"]);
        let variants = [
            variant("long", Some("40,180,0.5")),
            variant("short", Some("10,20,1")),
            variant("other", Some("2,20,1")),
        ];
        let text = lines(&matrix, &variants);
        let found: Vec<_> = text.lines().collect();
        assert_eq!(found.len(), 4, "{text}");
        assert!(found[0].starts_with("- greedy: A test. That is the path of"));
        let times = "60 s, measured from 15 to 60 s.";
        assert_eq!(
            found[1],
            format!("  - short: 10 Mbit/s, 10 ms one way, queue 1 BDP; {times}")
        );
        assert_eq!(
            found[2],
            format!("  - long: 40 Mbit/s, 90 ms one way, queue 0.5 BDP; {times}")
        );
        assert!(found[3].starts_with("  - gone: what it was run on is not in"));
    }

    #[test]
    fn variants_on_the_path_of_the_scenario_need_no_lines() {
        let variants = [variant("w 1", None), variant("other", Some("2,20,1"))];
        let text = lines(&varied(&["w 1"]), &variants);
        assert_eq!(
            text,
            "- greedy: A test. 10 Mbit/s, 50 ms one way, queue 1 BDP; 60 s, measured from 15 to \
             60 s.\n"
        );
    }

    #[test]
    fn the_variants_are_those_of_the_matrix_that_is_there() {
        let found = variants("sender-released");
        assert!(found.iter().any(|one| one.path.is_some()), "{found:?}");
        assert_eq!(variants("no such matrix"), []);
    }
}
