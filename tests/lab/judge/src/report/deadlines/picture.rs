//! When each transfer was there, and what the foreground kept meanwhile: a dot
//! for each run, a panel for each scenario. The upper half to the left of the
//! deadline is good.

use std::path::Path;

use crate::report::select::{Row, all_rows, color, colors, greedy, has_greedy, on_paths};
use crate::report::words::{title, variants};
use crate::results::{ALONE, MatrixRecord, RunSummary};
use lab_run::chart::{ChartResult, Grid, Sheet, dot_style};
use lab_run::scenario::Scenario;

/// The sizes of one foreground beside each other.
const GRID: Grid = Grid {
    columns: 3,
    panel: (270, 200),
    pitch: (345, 310),
    first: (60, 160),
};

/// What is better than alone is drawn up to here, %.
const MAX_KEPT: f64 = 115.0;

/// Draws the matrix into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let matrix = &on_paths(matrix, &variants(&matrix.name));
    let all = all_rows(matrix);
    let words = format!(
        "{}: when each transfer was there, and what the foreground kept",
        matrix.name
    );
    let lines = [
        "Left of the upright line: in time. Up: less harm. A dot for each run; filled: the server \
         sends with CUBIC, hollow: with another. At the right edge: not there when the run ended.",
        "Dashed: no harm; dotted, beside greedy flows: what the bytes of the transfer must take.",
    ];
    let sheet = Sheet::headed(path, GRID.size(all.len()), &words, &lines)?;
    let colors = colors(matrix);
    let named = colors.iter().map(|(name, color)| (title(name), *color));
    sheet.legend(&named.collect::<Vec<_>>(), 88, true)?;
    for (index, (name, scenario, rows)) in all.iter().enumerate() {
        let background = &scenario.background;
        let window = background.window_s().unwrap_or(scenario.duration_s);
        let end = 100.0 * (scenario.duration_s - background.start_s) / window;
        // Room for the dots at the edge.
        let x = 0.0..end.max(100.0) * 1.03;
        let mut plot = sheet.plot(GRID.frame(index), x, 0.0..MAX_KEPT, (7, 6))?;
        let is_greedy = has_greedy(scenario);
        let words = match is_greedy {
            true => "goodput of greedy flows, % of alone",
            false => "speed of web fetches, % of alone",
        };
        plot.titles(name, words)?;
        plot.axis("there after, % of the time there was", 36)?;
        plot.upright(100.0, 100)?;
        plot.across(100.0, 4)?;
        if let Some(share) = needed(scenario, rows).filter(|_| is_greedy) {
            plot.across(100.0 * (1.0 - share).max(0.0), 1)?;
        }
        for row in rows.iter().filter(|row| row.contender != ALONE) {
            let dots = row.succeeded().filter_map(|run| {
                let after = run.summary.deadline.as_ref()?.finish_s / window;
                let kept = kept(scenario, run, row.alone_with(run)?)?;
                Some((100.0 * after, (100.0 * kept).min(MAX_KEPT)))
            });
            let style = dot_style(color(&colors, row.contender), row.is_hollow());
            plot.dots(dots, 4, style)?;
        }
    }
    sheet.finish()
}

/// What there is to move in parts of what greedy flows had alone meanwhile; by
/// the first run alone.
fn needed(scenario: &Scenario, rows: &[Row<'_>]) -> Option<f64> {
    let alone = rows.iter().find(|row| row.contender == ALONE)?;
    let had = alone.values(|it| greedy(scenario, it)).first().copied()?;
    let window = scenario.background.window_s()?;
    let sizes = scenario.background.due().into_iter();
    let mbit: f64 = sizes.map(|transfer| transfer.size_mb * 8.0).sum();
    (had > 0.0).then(|| mbit / window / had)
}

/// Goodput of greedy flows, and without them how fast web fetches are, in parts of
/// what that is alone.
fn kept(scenario: &Scenario, own: &RunSummary, alone: &RunSummary) -> Option<f64> {
    let (own, alone) = (&own.summary, &alone.summary);
    let kept = match has_greedy(scenario) {
        true => greedy(scenario, own)? / greedy(scenario, alone)?,
        false => alone.fetch_mean_s? / own.fetch_mean_s?,
    };
    kept.is_finite().then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::deadlines::deadlines;

    #[test]
    fn every_run_is_a_dot() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deadlines.svg");
        draw(&deadlines(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(svg.len() < 200_000, "{} bytes", svg.len());
        // Three contenders, two servers, five seeds, two scenarios; and those
        // that say what a colour means.
        assert_eq!(svg.matches("<circle").count(), 3 * 2 * 5 * 2 + 3);
        assert!(svg.contains("fairbat get, no deadline"));
        assert!(!svg.contains("NaN"));
    }
}
