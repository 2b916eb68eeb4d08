//! A matrix whose runs differ in their weight: what each weight gets beside others.

use crate::report::select::{Figure, Runs, distinct};
use crate::report::senders::{ascending, by_rtt, curves, required};
use crate::report::words::{all_failures, head, how, median_over, terms_of_all, title};
use crate::requirement::{Part, Requirement};
use crate::results::{MatrixRecord, RunSummary};
use crate::verdict::Bound;
use lab_run::statistics::Spread;
use lab_run::table::{Table, or_nothing, shown};

/// From this weight on a share is to be w/(1 + w).
const MODEL_FROM: f64 = 0.25;
/// How far from it a share may be, %.
const MAX_OFF: f64 = 25.0;
/// One flow as the kernel has it.
const RENO: &str = "sender-kernel-reno";
/// How far from its share that of w = 1 may be, %.
const MAX_OFF_RENO: f64 = 10.0;
/// The least weight.
const MIN_WEIGHT: f64 = 0.02;
/// What that may have where round trips are shorter than [`LONG_MS`], %.
const MAX_SHARE_SHORT: f64 = 7.0;
/// The same of longer ones, %.
const MAX_SHARE_LONG: f64 = 4.0;
/// Round trips from here on are long, ms.
const LONG_MS: u128 = 50;

/// What the background gets of the payload of both, %.
const SHARE: Figure = Figure::Own(|it| {
    let both = it.goodput_mbit() + it.foreground_together_mbit;
    (both > 0.0).then(|| 100.0 * it.goodput_mbit() / both)
});

/// Whether what varies is the weight.
pub(crate) fn is_about_weights(matrix: &MatrixRecord) -> bool {
    !matrix.runs.is_empty() && matrix.runs.iter().all(|run| run.weight.is_some())
}

/// The page.
pub(crate) fn page(matrix: &MatrixRecord) -> String {
    let contenders = distinct(matrix.runs.iter().map(|run| run.contender.as_str()));
    let has_headings = contenders.len() > 1;
    let tables = contenders.into_iter().map(|contender| {
        let heading = match has_headings {
            true => format!("\n## {}\n", title(contender)),
            false => String::new(),
        };
        let table = table(matrix, contender, has_headings);
        format!("{heading}\n{table}")
    });
    format!(
        "{}What the background gets of the payload of both, %{}. Beside it what a weight is to get \
         beside one best-effort flow, w/(1 + w); the least weight is to get only what the others \
         leave. A sender's payload is what its receiver got, as the others'; a download's is that of \
         the last link, what was sent twice included.\n{}{}\n{}{}{}",
        head(matrix),
        median_over(matrix).map_or(String::new(), |words| format!(": {words}")),
        tables.collect::<String>(),
        required(matrix),
        terms_of_all(matrix),
        all_failures(matrix),
        how(matrix)
    )
}

/// A row for each weight, a column for each scenario and server. The contender
/// is in the heading or in the columns.
fn table(matrix: &MatrixRecord, contender: &str, has_heading: bool) -> Table<f64> {
    let names = matrix.scenarios.keys();
    let runs = names.flat_map(|name| matrix.runs.iter().filter(|it| it.scenario == *name));
    let runs = runs.filter(|run| run.contender == contender);
    let columns = distinct(runs.map(|run| (&run.scenario, run.congestion_control.as_deref())));
    let name = |(scenario, server): &(&String, Option<&str>)| match server {
        None if has_heading => (*scenario).clone(),
        Some(server) if has_heading => format!("{scenario}, {server}"),
        _ => format!("{scenario}, {}, {}", title(contender), or_nothing(*server)),
    };
    Table::over(all_weights(matrix))
        .column("w", ToString::to_string)
        .column("w/(1 + w)", |w| format!("{:.1}", 100.0 * w / (1.0 + w)))
        .columns(columns, name, |w, (scenario, server)| {
            let shares = shares(matrix, (scenario, contender, *server), *w);
            shown(Spread::of(&shares), 1)
        })
}

/// What a contender gets in a scenario with a server, with each seed, %, whatever the
/// variant is called that has this weight.
fn shares(
    matrix: &MatrixRecord,
    (scenario, contender, server): (&str, &str, Option<&str>),
    weight: f64,
) -> Vec<f64> {
    let is_one = |run: &RunSummary| {
        run.scenario == scenario
            && run.contender == contender
            && run.congestion_control.as_deref() == server
            && run.weight == Some(weight)
    };
    Runs::of([matrix]).values(is_one, SHARE)
}

/// All weights, ascending.
fn all_weights(matrix: &MatrixRecord) -> Vec<f64> {
    ascending(matrix, |run| run.weight)
}

/// What is required of a law.
pub(crate) fn requirements(matrix: &MatrixRecord, law: &str) -> Vec<Requirement> {
    let (paths, weights) = (by_rtt(matrix), all_weights(matrix));
    let of = |name: &str, w| shares(matrix, (name, law, None), w);
    let rising = Requirement::rising(
        "no larger weight with a lesser share, at any round-trip time",
        &curves(matrix, &weights, of),
    );
    let as_model = paths.iter().map(|(rtt, name)| {
        let modelled = weights.iter().filter(|w| (MODEL_FROM..1.0).contains(*w));
        let parts = modelled.map(|&w| {
            let off = |share: f64| share / (w / (1.0 + w)) - 100.0;
            let off: Vec<_> = of(name, w).into_iter().map(off).collect();
            Part::over(format!("w {w}"), &off, Bound::Within(-MAX_OFF, MAX_OFF))
        });
        let what = format!(
            "{rtt} ms: from w = {MODEL_FROM} on, below 1, a share within {MAX_OFF:.0} % of w/(1 + w); by \
             how much it is above, %"
        );
        Requirement::of_parts(what, 1, &parts.collect::<Vec<_>>())
    });
    let whole = paths.iter().filter_map(|(rtt, name)| {
        // The kernel's has no weight: whatever the variant, it is the same.
        let reno = weights
            .iter()
            .flat_map(|w| shares(matrix, (name, RENO, None), *w));
        let reno = Spread::of(&reno.collect::<Vec<_>>())?.median;
        let off: Vec<_> = of(name, 1.0)
            .iter()
            .map(|it| 100.0 * (it / reno - 1.0))
            .collect();
        let bound = Bound::Within(-MAX_OFF_RENO, MAX_OFF_RENO);
        Some(Part::over(format!("{rtt} ms"), &off, bound))
    });
    let what = format!(
        "w = 1: a share within {MAX_OFF_RENO:.0} % of what the kernel's Reno has there; by how much it is \
         above, %"
    );
    let whole: Vec<_> = whole.collect();
    let whole = (!whole.is_empty()).then(|| Requirement::of_parts(what, 1, &whole));
    let least = paths.iter().map(|(rtt, name)| {
        let most = match *rtt < LONG_MS {
            true => MAX_SHARE_SHORT,
            false => MAX_SHARE_LONG,
        };
        let shares = of(name, MIN_WEIGHT);
        Part::over(format!("{rtt} ms"), &shares, Bound::AtMost(most))
    });
    let what = format!(
        "w = {MIN_WEIGHT}: a share of at most {MAX_SHARE_LONG} %, and {MAX_SHARE_SHORT} % at less than \
         {LONG_MS} ms; %"
    );
    let least = Requirement::of_parts(what, 2, &least.collect::<Vec<_>>());
    [rising]
        .into_iter()
        .chain(as_model)
        .chain(whole)
        .chain([least])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::senders::{DEFAULT_LAW, OTHER_LAW};
    use crate::report::tests::synthetic::{line, matrix, run};

    fn weighed(weight: f64, seed: u64, [background, foreground]: [f64; 2]) -> RunSummary {
        let mut run = run("greedy", "fairbat-no-deadline", seed, &[foreground]);
        run.variant = Some(format!("w {weight}"));
        run.weight = Some(weight);
        run.summary.background_mbit = background;
        run
    }

    #[test]
    fn the_share_is_of_both_payloads_and_the_median_of_seeds() {
        let mut matrix = matrix();
        matrix.runs = vec![
            weighed(1.0, 1, [4.0, 4.0]),
            weighed(0.25, 1, [2.0, 6.0]),
            weighed(0.25, 2, [1.0, 7.0]),
            weighed(0.25, 3, [3.0, 3.0]),
        ];
        let mut other = weighed(1.0, 1, [7.5, 2.5]);
        other.congestion_control = Some("bbr".to_owned());
        matrix.runs.push(other);
        assert!(is_about_weights(&matrix));
        let page = page(&matrix);
        assert!(page.contains("%: the median over 1 to 3 seeds"), "{page}");
        let lines: Vec<_> = page.lines().filter(|line| line.starts_with('|')).collect();
        let ours = title("fairbat-no-deadline");
        assert_eq!(
            lines,
            [
                &format!("| w | w/(1 + w) | greedy, {ours}, cubic | greedy, {ours}, bbr |"),
                "|---|---|---|---|",
                "| 0.25 | 20.0 | 25.0 (12.5\u{2013}50.0) | \u{2013} |",
                "| 1 | 50.0 | 50.0 | 75.0 |",
            ]
        );
    }

    #[test]
    fn a_weight_is_gathered_from_all_variants_that_have_it() {
        let mut matrix = matrix();
        let mut other = weighed(0.5, 2, [4.0, 6.0]);
        other.variant = Some("half".to_owned());
        matrix.runs = vec![weighed(0.5, 1, [2.0, 6.0]), other];
        let page = page(&matrix);
        let row = "| 0.5 | 33.3 | 32.5 (25.0\u{2013}40.0) |";
        assert!(page.contains(row), "{page}");
    }

    #[test]
    fn several_contenders_have_a_table_each() {
        let mut matrix = matrix();
        let sender = |name: &str, background| {
            let mut run = weighed(0.5, 1, [background, 6.0]);
            (run.contender, run.congestion_control) = (name.to_owned(), None);
            run
        };
        matrix.runs = vec![sender("sender-vegas", 2.0), sender("sender-cdg", 3.0)];
        let page = page(&matrix);
        let lines: Vec<_> = page
            .lines()
            .filter(|line| line.starts_with('|') || line.starts_with("## sender"))
            .collect();
        let table = |name: &str, share: &str| {
            [
                format!("## {}", title(name)),
                "| w | w/(1 + w) | greedy |".to_owned(),
                "|---|---|---|".to_owned(),
                format!("| 0.5 | 33.3 | {share} |"),
            ]
        };
        let expected = [table("sender-vegas", "25.0"), table("sender-cdg", "33.3")];
        assert_eq!(lines, expected.concat());
    }

    #[test]
    fn nothing_moved_is_no_share_and_failures_are_listed() {
        let mut matrix = matrix();
        let mut failed = weighed(0.5, 2, [1.0, 1.0]);
        failed.failure = Some("no route".to_owned());
        matrix.runs = vec![weighed(0.5, 1, [0.0, 0.0]), failed];
        let page = page(&matrix);
        assert!(page.contains("| 0.5 | 33.3 | \u{2013} |"), "{page}");
        assert!(page.contains("seed 2: no route"), "{page}");
    }

    fn sent(contender: &str, w: f64, share: f64, seed: u64) -> RunSummary {
        let mut run = run("greedy", contender, seed, &[100.0 - share]);
        (run.weight, run.congestion_control) = (Some(w), None);
        run.summary.background_mbit = 1.1 * share;
        run.summary.received_mbit = Some(share);
        run
    }

    /// At 100 ms, where the kernel's Reno has a share of 40 %.
    fn judged(law: &str, shares: [f64; 4]) -> String {
        let mut matrix = matrix();
        matrix.name = "sender-weights".to_owned();
        matrix.scenarios.retain(|name, _| name == "greedy");
        let all = [0.02, 0.1, 0.25, 1.0].into_iter().zip(shares);
        let runs = all.flat_map(|(w, share)| {
            (1..=3).flat_map(move |seed| {
                let other = sent("sender-paced", w, 99.0, seed);
                [sent(law, w, share, seed), other, sent(RENO, w, 40.0, seed)]
            })
        });
        matrix.runs = runs.collect();
        required(&matrix)
    }

    #[test]
    fn shares_are_judged_by_what_a_weight_is_to_get() {
        let text = judged(DEFAULT_LAW, [4.0, 8.0, 24.9, 43.9]);
        assert!(
            line(&text, "| no larger").ends_with("| 1 of 1 | holds |"),
            "{text}"
        );
        let meant = line(&text, "| 100 ms: from w = 0.25");
        assert!(meant.ends_with("| w 0.25 24.5 | holds |"), "{meant}");
        let whole = line(&text, "| w = 1:");
        assert!(whole.ends_with("| 100 ms 9.7 | holds |"), "{whole}");
        assert!(
            line(&text, "| w = 0.02").ends_with("| 100 ms 4.00 | holds |"),
            "{text}"
        );
        let text = judged(DEFAULT_LAW, [4.1, 4.0, 14.0, 35.0]);
        let falls = line(&text, "| no larger");
        let words = "| 100 ms **4.10 at 0.02, 4.00 at 0.1** | **does not hold** |";
        assert!(falls.ends_with(words), "{falls}");
        let meant = line(&text, "| 100 ms: from w = 0.25");
        let words = "| w 0.25 **-30.0** | **does not hold** |";
        assert!(meant.ends_with(words), "{meant}");
        let whole = line(&text, "| w = 1:");
        let words = "| 100 ms **-12.5** | **does not hold** |";
        assert!(whole.ends_with(words), "{whole}");
        let least = line(&text, "| w = 0.02");
        assert!(
            least.ends_with("| 100 ms **4.10** | **does not hold** |"),
            "{least}"
        );
    }

    #[test]
    fn the_other_law_is_asked_the_same() {
        let text = judged(OTHER_LAW, [4.0, 8.0, 24.9, 43.9]);
        let other = &text[text.find(title(OTHER_LAW)).unwrap()..];
        assert!(line(other, "| w = 1:").ends_with("| 100 ms 9.7 | holds |"));
    }
}
