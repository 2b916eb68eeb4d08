//! A matrix as a page of Markdown: one table per scenario.

use crate::report::overview;
use crate::report::select::{Draw, Row, all_rows, goodput, has_contenders, has_goodput, has_web};
use crate::report::words::{failures, head, how, median_over, table, terms};
use crate::results::MatrixRecord;
use lab_run::record::Summary;
use lab_run::scenario::Scenario;
use lab_run::table::shown;

/// The page, and what draws its picture.
pub(crate) fn page(matrix: &MatrixRecord) -> (String, Option<Draw>) {
    let draw: Option<Draw> = has_contenders(matrix).then_some(overview::draw);
    let sections = all_rows(matrix).into_iter();
    let sections = sections.map(|(name, scenario, rows)| section(name, scenario, &rows));
    let text = format!(
        "{}{}{}{}",
        head(matrix),
        reading(matrix),
        sections.collect::<String>(),
        how(matrix)
    );
    (text, draw)
}

/// How the tables are to be read.
fn reading(matrix: &MatrixRecord) -> String {
    let median = median_over(matrix).map(|words| {
        format!(
            "Each figure is {words}; what is relative is relative to the run of the same seed. "
        )
    });
    let picture = has_contenders(matrix).then(|| {
        format!(
            "\n![What each contender takes and what the foreground keeps]({}.svg)\n",
            matrix.name
        )
    });
    format!(
        "{}{}{}",
        median.unwrap_or_default(),
        include_str!("../text/general-reading.md"),
        picture.unwrap_or_default()
    )
}

fn section(name: &str, scenario: &Scenario, rows: &[Row<'_>]) -> String {
    let (has_goodput, has_web) = (has_goodput(scenario), has_web(scenario));
    // Where the way of running is what is compared, its cost is of interest.
    let is_varied = rows.iter().any(|row| row.variant.is_some());
    let jain = |it: &Summary| it.transfers_jain;
    let has_several = rows.iter().any(|row| row.spread(jain).is_some());
    let own = |digits: usize, figure: fn(&Summary) -> Option<f64>| {
        move |row: &&Row<'_>| shown(row.spread(figure), digits)
    };
    let kept = |row: &&Row<'_>| shown(row.relative(goodput).map(|it| it.times(100.0)), 0);
    let longer = |row: &&Row<'_>| shown(row.relative(|it| it.fetch_mean_s), 2);
    let table = table(rows)
        .column_if(has_goodput, "foreground, Mbit/s", own(2, goodput))
        .column_if(has_goodput, "of alone, %", kept)
        .column_if(has_web, "fetch mean, s", own(2, |it| it.fetch_mean_s))
        .column_if(has_web, "times alone", longer)
        .column_if(has_web, "fetch p95, s", own(2, |it| it.fetch_p95_s))
        .column_if(
            has_web,
            "unfinished",
            own(0, |it| Some(it.unfinished as f64)),
        )
        .column("RTT median, ms", own(1, |it| it.rtt_median_ms))
        .column("RTT p95, ms", own(1, |it| it.rtt_p95_ms))
        .column("probes lost, %", own(1, |it| Some(100.0 * it.probe_loss)))
        .column("background, Mbit/s", own(2, |it| Some(it.background_mbit)))
        .column("link in use, %", own(0, |it| Some(100.0 * it.utilisation)))
        .column_if(has_several, "Jain's index of transfers", own(3, jain))
        .column_if(is_varied, "lab, cores", own(3, |it| Some(it.lab_cores)))
        .column_if(
            is_varied,
            "packets late, 99 %, ms",
            own(2, |it| Some(it.late_p99_ms)),
        );
    format!(
        "\n## {name}\n\n{}\n\n{}\n\n{table}{}",
        scenario.description.trim(),
        terms(scenario),
        failures(rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::synthetic::{line, matrix, run};

    #[test]
    fn a_page_compares_with_the_foreground_alone() {
        let mut matrix = matrix();
        let mut runs = Vec::new();
        for (seed, kept, queue) in [(1, 4.5, 75.0), (2, 3.0, 80.0), (3, 6.0, 60.0)] {
            let mut curl = run("constant", "curl", seed, &[kept]);
            curl.summary.rtt_median_ms = Some(100.0 + queue);
            curl.summary.background_mbit = 5.1;
            curl.summary.utilisation = 0.994;
            runs.push(curl);
            runs.push(run("constant", "none", seed, &[6.0]));
        }
        runs[0].congestion_control = Some("bbr".to_owned());
        matrix.runs = runs;
        let page = page(&matrix).0;
        assert_eq!(
            line(&page, "| none"),
            "| none | \u{2013} | 6.00 | 100 | 102.0 | 110.0 | 0.0 | 0.00 | 0 |"
        );
        assert_eq!(
            line(&page, "| curl | bbr"),
            "| curl | bbr | 4.50 | 75 | 175.0 | 110.0 | 0.0 | 5.10 | 99 |"
        );
        assert_eq!(
            line(&page, "| curl | cubic"),
            "| curl | cubic | 4.50 (3.00\u{2013}6.00) | 75 (50\u{2013}100) | \
             170.0 (160.0\u{2013}180.0) | 110.0 | 0.0 | 5.10 | 99 |"
        );
        let none = page.find("| none").unwrap();
        assert!(none < page.find("| curl").unwrap(), "alone comes first");
        assert!(page.contains("from test.jsonl, where every run is. -->"));
        assert!(page.contains("median over 1 to 3 seeds"));
        assert!(page.contains("seeds 1, 2, 3"));
        assert!(
            page.contains("10 Mbit/s, 50 ms one way, queue 1 BDP; 60 s, measured from 15 to 60 s.")
        );
        assert!(!page.contains("fetch mean"), "no web in this scenario");
    }

    #[test]
    fn fetches_have_columns_where_there_are_any() {
        let mut matrix = matrix();
        let mut alone = run("web", "none", 1, &[3.0]);
        alone.summary.fetch_mean_s = Some(0.5);
        let mut curl = run("web", "curl", 1, &[2.7]);
        curl.summary.fetch_mean_s = Some(1.25);
        curl.summary.fetch_p95_s = Some(3.0);
        curl.summary.unfinished = 4;
        matrix.runs = vec![alone, curl];
        let page = page(&matrix).0;
        assert_eq!(
            line(&page, "| curl"),
            "| curl | cubic | 1.25 | 2.50 | 3.00 | 4 | 102.0 | 110.0 | 0.0 | 0.00 | 0 |"
        );
        assert!(!page.contains("## constant"), "nothing was run of it");
    }

    #[test]
    fn failures_are_shown() {
        let mut matrix = matrix();
        let mut curl = run("constant", "curl", 5, &[0.0]);
        curl.failure = Some("exit 7:\nno connection".to_owned());
        matrix.runs = vec![curl, run("constant", "curl", 6, &[4.0])];
        let page = page(&matrix).0;
        let row = line(&page, "| curl");
        assert!(row.starts_with("| curl (**1 of 2 failed**) | cubic | 4.00 | \u{2013} |"));
        assert!(page.contains("- curl, cubic, seed 5: exit 7: no connection\n"));
    }
}
