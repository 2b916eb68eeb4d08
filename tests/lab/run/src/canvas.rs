//! What our pictures have in common: colours, type, the frame of a panel and
//! labels that stand beside what they name. Knows no data.
//!
//! Series are told apart by colours of Okabe and Ito's palette (2008), which
//! people with any kind of colour vision can tell apart, and by a label of
//! the same colour, so that no legend is needed.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A picture being drawn.
pub type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A panel of a picture, with its axes.
pub type Panel<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Whatever went wrong while drawing or saving.
pub type ChartResult<T> = Result<T, Box<dyn std::error::Error>>;

/// Text and axes.
pub const INK: RGBColor = RGBColor(0x26, 0x26, 0x26);
/// Text of less weight, and axes.
pub const GREY: RGBColor = RGBColor(0x6e, 0x6e, 0x6e);
/// Lines that mark a moment or a bound.
pub const MARK: RGBColor = RGBColor(0x9a, 0x9a, 0x9a);
/// Grid lines.
pub const FAINT: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
/// Okabe and Ito's blue.
pub const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
/// Okabe and Ito's sky blue, half as strong: for what is behind a blue line.
pub const PALE_BLUE: RGBColor = RGBColor(0xa4, 0xd5, 0xf3);
/// Okabe and Ito's vermilion.
pub const VERMILION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
/// Okabe and Ito's bluish green.
pub const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);

/// plotters takes a font size for the height of a line, which is 1.24 times
/// what CSS and SVG call the font size.
const LINE_HEIGHT: f64 = 1.24;

/// Type size of labels, px.
pub const LABEL: f64 = 13.0;
/// Type size of titles, px.
pub const TITLE: f64 = 15.0;

/// Height that one line of labels needs, px.
const LABEL_LINE: i32 = 17;

/// Room between two labels, px.
const LABEL_GAP: i32 = 6;

/// Text of this size and colour, at its point as `anchor` says.
#[must_use]
pub fn text(size: f64, color: RGBColor, anchor: Pos) -> TextStyle<'static> {
    ("sans-serif", size * LINE_HEIGHT)
        .into_font()
        .color(&color)
        .pos(anchor)
}

/// Like [`text`], in bold.
#[must_use]
pub fn bold(size: f64, color: RGBColor, anchor: Pos) -> TextStyle<'static> {
    ("sans-serif", size * LINE_HEIGHT, FontStyle::Bold)
        .into_font()
        .color(&color)
        .pos(anchor)
}

/// Text begins at its point, centred in height.
pub const FROM: Pos = Pos {
    h_pos: HPos::Left,
    v_pos: VPos::Center,
};
/// Text ends at its point, centred in height.
pub const UPTO: Pos = Pos {
    h_pos: HPos::Right,
    v_pos: VPos::Center,
};
/// Text is centred on its point.
pub const AROUND: Pos = Pos {
    h_pos: HPos::Center,
    v_pos: VPos::Center,
};

/// Where on the canvas a panel's plotting area lies, px.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Left edge.
    pub left: i32,
    /// Right edge.
    pub right: i32,
    /// Upper edge.
    pub top: i32,
    /// Lower edge; numbers of the x axis stand below it.
    pub bottom: i32,
}

/// Room for the numbers of an axis, px.
const NUMBERS: i32 = 40;

/// Draws an empty panel: numbers on both axes, horizontal grid lines.
///
/// # Errors
/// What plotters says.
pub fn panel<'a>(
    canvas: &Canvas<'a>,
    frame: Frame,
    x: Range<f64>,
    y: Range<f64>,
    marks: (usize, usize),
) -> ChartResult<Panel<'a>> {
    let (width, height) = canvas.dim_in_pixel();
    let mut panel = ChartBuilder::on(canvas)
        .margin_left(frame.left - NUMBERS)
        .margin_right(width as i32 - frame.right)
        .margin_top(frame.top)
        .margin_bottom(height as i32 - frame.bottom - NUMBERS)
        .x_label_area_size(NUMBERS)
        .y_label_area_size(NUMBERS)
        .build_cartesian_2d(x, y)?;
    panel
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .axis_style(GREY)
        .set_all_tick_mark_size(4)
        .label_style(text(LABEL, INK, FROM))
        .x_labels(marks.0)
        .y_labels(marks.1)
        .x_label_formatter(&number)
        .y_label_formatter(&number)
        .draw()?;
    Ok(panel)
}

/// A number without needless digits.
fn number(value: &f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    // No "-0".
    format!("{}", rounded + 0.0)
}

/// A label beside a panel: lines of text and the height they would like.
#[derive(Debug, Clone)]
pub struct Label {
    /// Lines of text.
    pub lines: Vec<String>,
    /// Colour of the series it names.
    pub color: RGBColor,
    /// Where its middle would best be, px from the top.
    pub y: i32,
}

/// Writes labels one below the other from `x` on, each as near to where it
/// would like to be as the others allow, none outside of `top..bottom` as
/// long as there is room.
///
/// # Errors
/// What plotters says.
pub fn write_labels(
    canvas: &Canvas<'_>,
    x: i32,
    bounds: Range<i32>,
    mut labels: Vec<Label>,
) -> ChartResult<()> {
    labels.sort_by_key(|label| label.y);
    let heights: Vec<_> = labels.iter().map(Label::height).collect();
    let wanted: Vec<_> = labels.iter().map(|label| label.y).collect();
    let tops = stack(&wanted, &heights, bounds);
    for (label, top) in labels.iter().zip(tops) {
        for (line, text_line) in label.lines.iter().enumerate() {
            let y = top + (LABEL_GAP + LABEL_LINE) / 2 + line as i32 * LABEL_LINE;
            let style = text(LABEL, label.color, FROM);
            canvas.draw_text(text_line, &style, (x, y))?;
        }
    }
    Ok(())
}

impl Label {
    fn height(&self) -> i32 {
        self.lines.len() as i32 * LABEL_LINE + LABEL_GAP
    }
}

/// Upper edges of boxes of these heights with these middles (ascending), moved
/// as little downwards, then upwards, as keeps them apart and within bounds.
fn stack(middles: &[i32], heights: &[i32], bounds: Range<i32>) -> Vec<i32> {
    let mut tops = Vec::with_capacity(middles.len());
    let mut free = bounds.start;
    for (middle, height) in middles.iter().zip(heights) {
        let top = (middle - height / 2).max(free);
        free = top + height;
        tops.push(top);
    }
    let mut end = bounds.end;
    for (top, height) in tops.iter_mut().zip(heights).rev() {
        *top = (*top).min(end - height);
        end = *top;
    }
    tops
}

/// A line through points that are cut off where they leave `0..=most`: plotters
/// draws beyond its panel.
#[must_use]
pub fn clipped(points: &[(f64, f64)], most: f64) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut piece: Vec<(f64, f64)> = Vec::new();
    for (index, &(x, y)) in points.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| points[before]);
        if let Some((x0, y0)) = before
            && (y0 > most) != (y > most)
        {
            piece.push((x0 + (x - x0) * (most - y0) / (y - y0), most));
        }
        if y <= most {
            piece.push((x, y));
        } else if !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_apart_and_within_bounds() {
        assert_eq!(stack(&[50, 100], &[20, 20], 0..200), [40, 90], "untouched");
        assert_eq!(stack(&[50, 52, 54], &[20; 3], 0..200), [40, 60, 80]);
        assert_eq!(stack(&[0, 199, 200], &[20; 3], 0..200), [0, 160, 180]);
    }

    #[test]
    fn a_line_is_cut_where_it_leaves_the_panel() {
        let line = [(0.0, 0.0), (1.0, 4.0), (2.0, 0.0), (3.0, 1.0)];
        assert_eq!(
            clipped(&line, 2.0),
            [
                vec![(0.0, 0.0), (0.5, 2.0)],
                vec![(1.5, 2.0), (2.0, 0.0), (3.0, 1.0)]
            ]
        );
        assert_eq!(clipped(&line, 9.0), [line.to_vec()]);
        assert!(clipped(&[(0.0, 3.0)], 2.0).is_empty());
    }

    #[test]
    fn numbers_have_no_needless_digits() {
        let written: Vec<_> = [0.0, -0.0, 1.5, 10.0, 0.1 + 0.2]
            .iter()
            .map(number)
            .collect();
        assert_eq!(written, ["0", "0", "1.5", "10", "0.3"]);
    }
}
