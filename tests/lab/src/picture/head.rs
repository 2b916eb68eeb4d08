//! What stands above the panels: what was run, and what came of it.

use fairbat_tests::chart::{
    Canvas, ChartResult, FROM, GREY, INK, LABEL, TITLE, VERMILION, bold, text,
};
use plotters::style::RGBColor;

use crate::record::Record;

/// Height of a line, px.
const LINE: i32 = 20;
/// Middle of the first line, px from the top.
const FIRST: i32 = 24;
/// Most letters in a line of this width.
const LETTERS: usize = 130;

/// A line of the head.
pub(super) struct Line {
    words: String,
    color: RGBColor,
    is_title: bool,
}

/// What there is to say of this run.
pub(super) fn lines(record: &Record) -> Vec<Line> {
    let line = |words: String, color| Line {
        words,
        color,
        is_title: false,
    };
    let quick = if record.quick { ", quick variant" } else { "" };
    let mut lines = vec![Line {
        words: format!(
            "{}: {}, seed {}{quick}",
            record.scenario, record.contender, record.seed
        ),
        color: INK,
        is_title: true,
    }];
    let description = wrapped(&record.setup.description, LETTERS);
    lines.extend(description.into_iter().map(|words| line(words, GREY)));
    let figures = wrapped(&figures(record), LETTERS);
    lines.extend(figures.into_iter().map(|words| line(words, INK)));
    if let Some(failure) = record.failure() {
        let failure = wrapped(&format!("The background failed: {failure}"), LETTERS);
        lines.extend(failure.into_iter().map(|words| line(words, VERMILION)));
    }
    lines
}

/// Room for these lines, px.
pub(super) fn height(lines: &[Line]) -> i32 {
    FIRST + lines.len() as i32 * LINE
}

pub(super) fn draw(canvas: &Canvas<'_>, lines: &[Line]) -> ChartResult<()> {
    for (index, line) in lines.iter().enumerate() {
        let style = if line.is_title {
            bold(TITLE, line.color, FROM)
        } else {
            text(LABEL, line.color, FROM)
        };
        let y = FIRST + index as i32 * LINE;
        canvas.draw_text(&line.words, &style, (super::SIDES.0, y))?;
    }
    Ok(())
}

/// The key figures, in one line.
fn figures(record: &Record) -> String {
    let summary = &record.summary;
    let mut figures = Vec::new();
    if !summary.foreground_mbit.is_empty() {
        let together = summary.foreground_together_mbit;
        figures.push(format!("foreground got {together:.2} Mbit/s"));
    }
    figures.push(format!("background {:.2} Mbit/s", summary.background_mbit));
    figures.push(format!("link {:.0} % in use", 100.0 * summary.utilisation));
    if let (Some(median), Some(p95)) = (summary.rtt_median_ms, summary.rtt_p95_ms) {
        figures.push(format!("RTT median {median:.1} ms, 95 % below {p95:.1} ms"));
    }
    if let Some(mean) = summary.fetch_mean_s {
        figures.push(format!("mean fetch {mean:.2} s"));
    }
    figures.join("; ")
}

/// Lines of no more than so many letters, as long as no word is longer.
fn wrapped(words: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("immeasurable", 7), ["immeasurable"]);
        assert!(wrapped("", 7).is_empty());
    }
}
