//! Which colour a contender has in the pictures of a matrix.

use fairbat_tests::chart::{BLUE, GREEN, GREY, INK, VERMILION};
use plotters::style::RGBColor;

use super::{ALONE, MatrixRecord, OURS, PUSHING};

/// Okabe and Ito's reddish purple.
pub(super) const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);
/// Okabe and Ito's orange, darker, so that it can be read on white.
pub(super) const ORANGE: RGBColor = RGBColor(0xb8, 0x7a, 0x00);
/// Colours of the others, in the order of their names' appearance.
const COLORS: [RGBColor; 5] = [VERMILION, GREEN, PURPLE, ORANGE, GREY];

/// Each contender's colour: blue is ours.
pub(super) fn colors(matrix: &MatrixRecord) -> Vec<(&str, RGBColor)> {
    let mut colors: Vec<(&str, RGBColor)> = Vec::new();
    let mut others = COLORS.into_iter().cycle();
    for run in &matrix.runs {
        let name = run.contender.as_str();
        if name == ALONE || colors.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let color = if [OURS, PUSHING].contains(&name) {
            Some(BLUE)
        } else {
            others.next()
        };
        colors.extend(color.map(|color| (name, color)));
    }
    colors
}

pub(super) fn color(colors: &[(&str, RGBColor)], contender: &str) -> RGBColor {
    let found = colors.iter().find(|(name, _)| *name == contender);
    found.map_or(INK, |&(_, color)| color)
}
