//! What the pages have in common: how they begin and end, names, and where it was all
//! measured.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::matrix::{Matrix, Variant};
use crate::report::select::{Row, distinct, rows};
use crate::results::{MatrixRecord, RunSummary};
use lab_run::contender::Contender;
use lab_run::files;
use lab_run::scenario::{Discipline, QueueSpec, Scenario};
use lab_run::table::{Table, or_nothing};

/// What people call a contender.
pub(crate) fn title(name: &str) -> &str {
    let mut all = Contender::ALL.into_iter();
    match all.find(|contender| contender.to_string() == name) {
        Some(contender) => contender.title(),
        None => name,
    }
}

/// How every page begins: its name, where it is from, and what it is about.
pub(crate) fn head(matrix: &MatrixRecord) -> String {
    let name = &matrix.name;
    format!(
        "# {name}\n\n\
         <!-- Made by `lab report` from {name}.jsonl, where every run is. -->\n\n\
         {}\n\n",
        matrix.description.trim()
    )
}

/// A table of rows: what each of them is, and against which server.
pub(crate) fn table<'b, 'a>(rows: impl IntoIterator<Item = &'b Row<'a>>) -> Table<&'b Row<'a>>
where
    'a: 'b,
{
    Table::over(rows)
        .column("", |row| heading(row))
        .column("server", |row| or_nothing(row.congestion_control))
}

/// What people call the contender of a row, and how many of its runs failed.
pub(crate) fn heading(row: &Row<'_>) -> String {
    let variant = row.variant.map(|variant| format!(", {variant}"));
    let remark = match row.failures().count() {
        0 => String::new(),
        failed => format!(" (**{failed} of {} failed**)", row.len()),
    };
    format!(
        "{}{}{remark}",
        title(row.contender),
        variant.unwrap_or_default()
    )
}

/// The runs of a matrix that failed and why, a list for each scenario.
pub(crate) fn all_failures(matrix: &MatrixRecord) -> String {
    let names = matrix.scenarios.keys();
    names.map(|name| failures(&rows(matrix, name))).collect()
}

/// Runs that failed and why, as a list with a line before it; nothing without
/// any.
pub(crate) fn failures(rows: &[Row<'_>]) -> String {
    let failures: Vec<_> = rows.iter().flat_map(failed).collect();
    if failures.is_empty() {
        return String::new();
    }
    format!("\nFailed:\n\n- {}\n", failures.join("\n- "))
}

/// The runs of a row that failed, and why.
pub(crate) fn failed(row: &Row<'_>) -> Vec<String> {
    let failures = row.failures();
    let words = failures.map(|(run, failure)| {
        let words: Vec<_> = failure.split_whitespace().collect();
        format!("{}, seed {}: {}", row.name(), run.seed, words.join(" "))
    });
    words.collect()
}

/// The path and the times of each scenario, a line each.
pub(crate) fn terms_of_all(matrix: &MatrixRecord) -> String {
    let scenarios = matrix.scenarios.iter();
    scenarios
        .map(|(name, it)| format!("- {name}: {}\n", terms(it)))
        .collect()
}

/// The path and the times of a scenario, in a sentence.
pub(crate) fn terms(scenario: &Scenario) -> String {
    let links = scenario.link.iter().map(|link| {
        let mut words = format!(
            "{} Mbit/s, {} ms one way, queue {}",
            link.rate_mbit,
            link.delay_ms,
            queue(link.queue)
        );
        if link.discipline != Discipline::DropTail {
            let _ = write!(words, ", {}", link.discipline);
        }
        if link.ecn {
            words.push_str(" with ECN");
        }
        if let Some(radio) = link.radio {
            let _ = write!(
                words,
                ", {} to 100 % of the rate, drawn every {} ms",
                100.0 * radio.least,
                radio.every_ms
            );
            if radio.walk.is_some() {
                words.push_str(" (random walk)");
            }
        }
        if link.aggregate_ms > 0.0 {
            let _ = write!(words, ", arriving together every {} ms", link.aggregate_ms);
        }
        let back = link.backward().rate_mbit;
        if back != link.rate_mbit {
            let _ = write!(words, ", {back} Mbit/s back");
        }
        let thinned = 100.0 * link.thinned_acks.max(link.backward().thinned_acks);
        if thinned > 0.0 {
            let _ = write!(
                words,
                ", {thinned} % of acknowledgements left out where others follow"
            );
        }
        if link.loss > 0.0 {
            let _ = write!(words, ", {} % lost at random", 100.0 * link.loss);
        }
        if link.jitter_ms > 0.0 {
            let jitter = link.jitter_ms;
            let _ = if link.jitter_share < 1.0 {
                let share = 100.0 * link.jitter_share;
                write!(words, ", {share} % of packets up to {jitter} ms later")
            } else {
                write!(words, ", packets up to {jitter} ms later")
            };
            words.push_str(" at random");
        }
        for outage in &link.outage {
            let (from, until) = (outage.from_s, outage.until_s);
            let _ = write!(words, ", nothing from {from} to {until} s");
        }
        for step in &link.schedule {
            let _ = write!(words, ", {} Mbit/s from {} s", step.rate_mbit, step.at_s);
        }
        for step in &link.delay_steps {
            let _ = write!(words, ", {} ms one way from {} s", step.delay_ms, step.at_s);
        }
        words
    });
    let links: Vec<_> = links.collect();
    let stalls = scenario.background.stalls.map_or(String::new(), |stalls| {
        format!(
            "; every {} ms, the processors of the receiver are away for {} to {} ms",
            stalls.every_ms, stalls.least_ms, stalls.most_ms
        )
    });
    // A scenario that a matrix makes shorter has odd times.
    let tenths = |time_s: f64| (10.0 * time_s).round() / 10.0;
    let measured = scenario.measured();
    format!(
        "{}{stalls}; {} s, measured from {} to {} s.",
        links.join("; then "),
        tenths(scenario.duration_s),
        tenths(measured.start),
        tenths(measured.end)
    )
}

fn queue(queue: QueueSpec) -> String {
    match queue {
        QueueSpec::Packets(packets) => format!("{packets} packets"),
        QueueSpec::Bytes(bytes) => format!("{} kB", bytes as f64 / 1e3),
        QueueSpec::Bdp(times) => format!("{times} BDP"),
    }
}

/// Where and how a matrix was measured, under a heading.
pub(crate) fn how(matrix: &MatrixRecord) -> String {
    format!("\n## How\n{}", measured(matrix))
}

/// Where and how a matrix was measured.
pub(crate) fn measured(matrix: &MatrixRecord) -> String {
    let provenance = &matrix.provenance;
    let seeds: Vec<_> = seeds(matrix).iter().map(ToString::to_string).collect();
    let most = |figure: fn(&RunSummary) -> f64| {
        let figures = matrix.runs.iter().map(figure);
        figures.fold(0.0, f64::max)
    };
    let waited = matrix.runs.iter().filter_map(|run| run.summary.waited);
    let waited = waited.reduce(f64::max).map_or_else(String::new, |share| {
        let percent = 100.0 * share;
        format!(
            " Where a run tells, something waited for a processor at most {percent:.0} % of it."
        )
    });
    let exactness = match matrix.simulated {
        true => "Calculated packet by packet: nothing was sent, and nothing is late.".to_owned(),
        false => format!(
            "Labs side by side: {}. The busiest run took {:.2} of a core for its links and {:.2} for \
             the lab as a whole. The least exact handed 99 % of its packets over within {:.2} ms of \
             their time.{waited}",
            provenance.side_by_side,
            most(|run| run.summary.link_cores),
            most(|run| run.summary.lab_cores),
            most(|run| run.summary.late_p99_ms),
        ),
    };
    let mut text = format!(
        "\n`{}`, commit {}, seeds {}{}, begun {}. {}, {}. {exactness}\n\n",
        provenance.command,
        provenance.commit,
        seeds.join(", "),
        if matrix.planned.is_empty() {
            ""
        } else {
            " (not all with every contender)"
        },
        provenance.started,
        provenance.kernel,
        provenance.machine,
    );
    for earlier in &matrix.earlier {
        let _ = writeln!(
            text,
            "Some of the runs were measured before: `{}`, commit {}, begun {}, {}.\n",
            earlier.command, earlier.commit, earlier.started, earlier.kernel,
        );
    }
    for version in &provenance.versions {
        let _ = writeln!(text, "- {version}");
    }
    text
}

/// All seeds, ascending.
pub(crate) fn seeds(matrix: &MatrixRecord) -> Vec<u64> {
    let seeds: BTreeSet<_> = matrix.runs.iter().map(|run| run.seed).collect();
    seeds.into_iter().collect()
}

/// What a figure is of several seeds; `None` of one.
pub(crate) fn median_over(matrix: &MatrixRecord) -> Option<String> {
    let most = seeds(matrix).len();
    let mut counts = BTreeMap::<_, usize>::new();
    for run in &matrix.runs {
        let place = (&run.scenario, &run.variant, &run.contender);
        let server = &run.congestion_control;
        *counts.entry((place, server)).or_default() += 1;
    }
    let least = counts.into_values().min().unwrap_or_default();
    (most > 1).then(|| match least < most {
        true => format!("the median over {least} to {most} seeds (least\u{2013}most)"),
        false => format!("the median over {most} seeds (least\u{2013}most)"),
    })
}

/// The variants of a matrix as its file has them; none if there is no such file.
pub(crate) fn variants(name: &str) -> Vec<Variant> {
    let matrix = files::by_name::<Matrix>(&files::matrices(), name);
    let expanded = matrix.ok().and_then(|matrix| matrix.expanded().ok());
    expanded.map_or(Vec::new(), |matrix| matrix.variants)
}

/// A line of a list for each scenario, as [`line()`].
pub(crate) fn lines(matrix: &MatrixRecord, variants: &[Variant]) -> String {
    let all = matrix.scenarios.iter();
    all.map(|(name, scenario)| line(matrix, (name, scenario), variants))
        .collect()
}

/// A line of a list, with one below it for each variant if these are run on paths
/// of their own: what a scenario says of its path is not so then.
pub(crate) fn line(
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
pub(crate) fn is_elsewhere(matrix: &MatrixRecord, scenario: &str, variants: &[Variant]) -> bool {
    let names = names(matrix, scenario);
    let mut paths = variants.iter().filter(|one| one.path.is_some());
    paths.any(|one| names.contains(&one.name.as_str()))
}

/// The names of the variants of a scenario, in the order of first appearance.
fn names<'a>(matrix: &'a MatrixRecord, scenario: &str) -> Vec<&'a str> {
    let runs = matrix.runs.iter().filter(|run| run.scenario == scenario);
    distinct(runs.filter_map(|run| run.variant.as_deref()))
}

fn of(variant: Option<&Variant>, scenario: &Scenario) -> String {
    match variant.map(|variant| variant.as_run(scenario)) {
        Some(Ok(run)) => terms(&run),
        Some(Err(_)) | None => "what it was run on is not in the file of the matrix".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::synthetic::{matrix, run};
    use lab_run::scenario::{DelayStep, DirectionSpec, Stalls};

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
    fn a_path_is_told_with_its_discipline_and_its_narrower_way_back() {
        let path = "10,20,1,codel,ecn,radio=50:0.4:0.1,aggregate=4,backward=0.5";
        let text = lines(&varied(&["radio"]), &[variant("radio", Some(path))]);
        let told = "10 Mbit/s, 10 ms one way, queue 1 BDP, codel with ECN, 40 to 100 % of the \
                    rate, drawn every 50 ms (random walk), arriving together every 4 ms, 0.5 Mbit/s back; ";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn a_faster_way_back_jitter_and_another_route_are_told() {
        let mut matrix = matrix();
        let scenario = matrix.scenarios.get_mut("greedy").unwrap();
        let link = &mut scenario.link[0];
        link.backward = Some(DirectionSpec {
            rate_mbit: 20.0,
            ..link.backward()
        });
        (link.jitter_ms, link.jitter_share) = (5.0, 0.1);
        link.thinned_acks = 0.75;
        link.delay_steps = vec![DelayStep {
            at_s: 20.0,
            delay_ms: 70.0,
        }];
        scenario.background.stalls = Some(Stalls {
            every_ms: 500.0,
            least_ms: 10.0,
            most_ms: 200.0,
        });
        let text = terms(scenario);
        let told = ", 20 Mbit/s back, 75 % of acknowledgements left out where others follow, \
                    10 % of packets up to 5 ms later at random, 70 ms one way from 20 s; \
                    every 500 ms, the processors of the receiver are away for 10 to 200 ms; ";
        assert!(text.contains(told), "{text}");
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
