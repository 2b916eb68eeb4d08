//! The benchmark as a picture: each run a dot, each median a stroke and a
//! number; one row per tool, one column per figure.

use std::path::Path;

use plotters::prelude::*;

use super::record::{Medium, Record, Series, Spread};
use lab_run::canvas::{
    AROUND, BLUE, Canvas, ChartResult, FAINT, FROM, GREY, INK, LABEL, MARK, TITLE, UPTO, bold, text,
};

const WIDTH: i32 = 920;
/// Where the rows begin, below the names of the columns, px.
const TOP: i32 = 84;
const ROW: i32 = 28;
/// Where the columns begin: room for the names of the tools, px.
const LEFT: i32 = 170;
const COLUMN: i32 = 250;
/// Of a column, what dots may use; the rest is for the number, px.
const SCALE: i32 = 178;

/// A figure, with its unit.
struct Column {
    title: &'static str,
    digits: usize,
    spread: fn(&Series) -> Spread,
}

const COLUMNS: [Column; 3] = [
    Column {
        title: "throughput, MB/s",
        digits: 0,
        spread: Series::throughput,
    },
    Column {
        title: "processor time, s per GB",
        digits: 2,
        spread: Series::cpu_per_gb,
    },
    Column {
        title: "peak memory, MB",
        digits: 1,
        spread: Series::peak_rss,
    },
];

/// Draws the record into an SVG file.
///
/// # Errors
/// What plotters says.
pub fn draw(record: &Record, path: &Path) -> ChartResult<()> {
    let groups = [(Medium::Memory, "to memory"), (Medium::Disk, "to the disk")];
    let rows = record.speed.len() as i32 + groups.len() as i32;
    let bottom = TOP + rows * ROW;
    let size = (WIDTH as u32, (bottom + 28) as u32);
    let canvas = SVGBackend::new(path, size).into_drawing_area();
    canvas.fill(&WHITE)?;
    let title = format!(
        "{:.2} GB over loopback from nginx: {} runs each, and their median",
        record.speed[0].bytes as f64 / 1e9,
        record.rounds
    );
    canvas.draw_text(&title, &bold(TITLE, INK, FROM), (20, 26))?;
    for (index, column) in COLUMNS.iter().enumerate() {
        let left = LEFT + index as i32 * COLUMN;
        canvas.draw_text(column.title, &text(LABEL, INK, FROM), (left, TOP - 22))?;
        line(&canvas, (left, TOP - 6), (left, bottom), MARK)?;
        canvas.draw_text("0", &text(LABEL, GREY, AROUND), (left, bottom + 12))?;
    }
    let mut y = TOP + ROW / 2;
    for (medium, name) in groups {
        canvas.draw_text(name, &bold(LABEL, INK, FROM), (20, y))?;
        y += ROW;
        for series in record.speed.iter().filter(|series| series.medium == medium) {
            draw_row(&canvas, record, series, y)?;
            y += ROW;
        }
    }
    canvas.present()?;
    Ok(())
}

fn draw_row(canvas: &Canvas<'_>, record: &Record, series: &Series, y: i32) -> ChartResult<()> {
    let color = if series.tool.starts_with("fairbat") {
        BLUE
    } else {
        GREY
    };
    canvas.draw_text(&series.tool, &text(LABEL, color, UPTO), (LEFT - 12, y))?;
    for (index, column) in COLUMNS.iter().enumerate() {
        let left = LEFT + index as i32 * COLUMN;
        let largest = record
            .speed
            .iter()
            .map(|series| (column.spread)(series).max())
            .fold(0.0, f64::max);
        let at = |value: f64| left + (value / largest * f64::from(SCALE)).round() as i32;
        let spread = (column.spread)(series);
        line(canvas, (left, y), (at(spread.max()), y), FAINT)?;
        for &value in spread.values() {
            canvas.draw(&Circle::new((at(value), y), 4, color.mix(0.35).filled()))?;
        }
        let median = spread.median();
        let stroke = [(at(median), y - 8), (at(median), y + 8)];
        canvas.draw(&PathElement::new(stroke, color.stroke_width(3)))?;
        let number = format!("{median:.0$}", column.digits);
        let place = (at(spread.max()) + 12, y);
        canvas.draw_text(&number, &text(LABEL, color, FROM), place)?;
    }
    Ok(())
}

fn line(canvas: &Canvas<'_>, from: (i32, i32), to: (i32, i32), color: RGBColor) -> ChartResult<()> {
    canvas.draw(&PathElement::new([from, to], color.stroke_width(1)))?;
    Ok(())
}
