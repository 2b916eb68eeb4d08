//! One chart: curves over the last hour, each with its name and its last value at
//! its end, so that nothing depends on colours.
//!
//! The curves stretch with the page and the words do not: so they are in pictures
//! of their own, and only what is stretched has coordinates of its own.

use super::html::Html;
use crate::web::series::POINTS;

/// Height of a chart, px.
const HEIGHT: f64 = 120.0;
/// Of that, above the highest value: room for what it is.
const HEAD: f64 = 16.0;
/// Of that, below zero: room for half a line.
const FOOT: f64 = 4.0;
/// Height of a name with its value below, px.
const LABEL: f64 = 30.0;
/// Coordinates that the highest value has above zero.
const RISE: f64 = 100.0;

/// What is drawn.
pub(super) struct Chart<'a> {
    pub(super) title: &'static str,
    /// What it means, in a few words.
    pub(super) meaning: &'static str,
    /// The value at the upper line, above 0, and how it is told.
    pub(super) top: (f64, String),
    pub(super) curves: Vec<Curve<'a>>,
}

/// A curve, and how its values are told.
pub(super) struct Curve<'a> {
    pub(super) name: &'static str,
    /// How it is called where the script reads its points.
    pub(super) series: &'static str,
    pub(super) style: Style,
    pub(super) unit: Unit,
    pub(super) points: &'a [Option<f64>],
}

/// How a curve is told from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// A line, filled below.
    Main,
    /// A dashed line.
    Other,
}

/// What its values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Byte/s.
    Rate,
    /// A pure number.
    Number,
    /// Milliseconds.
    Milliseconds,
}

impl Unit {
    /// How the script knows it.
    fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Number => "number",
            Self::Milliseconds => "ms",
        }
    }

    pub(super) fn tell(self, value: f64) -> String {
        match self {
            Self::Rate => super::words::rate(value),
            // The shortest form of two decimals.
            Self::Number => ((value * 100.0).round() / 100.0).to_string(),
            Self::Milliseconds if value < 9.95 => format!("{value:.1} ms"),
            Self::Milliseconds => format!("{value:.0} ms"),
        }
    }
}

/// The least round number that is not below any of these, nor below `least`.
pub(super) fn round_top(least: f64, points: &[&[Option<f64>]]) -> f64 {
    let values = points.iter().flat_map(|points| points.iter().flatten());
    let most = values.fold(least, |most, value| most.max(*value));
    let power = 10_f64.powf(most.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0];
    let round = steps.map(|step| step * power);
    let fits = |top: &&f64| **top >= most * (1.0 - 1e-9);
    *round.iter().find(fits).unwrap_or(&(10.0 * power))
}

pub(super) fn write(html: &mut Html, chart: &Chart<'_>) {
    html.raw("<figure class=\"chart\">\n<figcaption><strong>");
    html.raw(chart.title)
        .raw("</strong> <span class=\"muted\">");
    html.raw(chart.meaning).raw("</span></figcaption>\n");
    html.raw("<div class=\"plot\">\n<svg class=\"field\" role=\"img\" aria-label=\"");
    html.text(&in_words(chart)).raw("\">\n");
    grid(html, chart);
    html.raw("<svg class=\"curves\" viewBox=\"0 0 ");
    html.number(POINTS as f64).raw(" ").number(RISE);
    html.raw("\" preserveAspectRatio=\"none\" width=\"100%\" y=\"")
        .number(HEAD);
    html.raw("\" height=\"")
        .number(HEIGHT - HEAD - FOOT)
        .raw("\">\n");
    for curve in &chart.curves {
        path(html, curve, chart.top.0);
    }
    html.raw("</svg>\n<line class=\"cursor\" y1=\"")
        .number(HEAD);
    html.raw("\" y2=\"")
        .number(HEIGHT - FOOT)
        .raw("\" visibility=\"hidden\"/>\n</svg>\n");
    labels(html, chart);
    html.raw("</div>\n");
}

/// What a picture says to those who do not see it.
fn in_words(chart: &Chart<'_>) -> String {
    let tell = |curve: &Curve<'_>| {
        let most = curve.points.iter().flatten().copied().reduce(f64::max);
        match (last(curve), most) {
            (Some(now), Some(most)) => {
                let (now, most) = (curve.unit.tell(now), curve.unit.tell(most));
                format!("{} now {now}, at most {most}", curve.name)
            }
            (None, Some(most)) => {
                let most = curve.unit.tell(most);
                format!("{} now none, at most {most}", curve.name)
            }
            (_, None) => format!("{} none", curve.name),
        }
    };
    let curves: Vec<_> = chart.curves.iter().map(tell).collect();
    format!("{}, the last hour: {}", chart.title, curves.join("; "))
}

fn grid(html: &mut Html, chart: &Chart<'_>) {
    let middle = (HEAD + HEIGHT - FOOT) / 2.0;
    for y in [HEAD, middle, HEIGHT - FOOT] {
        // Between two pixels a line of one pixel would be two grey ones.
        let y = y.round() + 0.5;
        html.raw("<line class=\"grid\" x2=\"100%\" y1=\"").number(y);
        html.raw("\" y2=\"").number(y).raw("\"/>");
    }
    html.raw("<text class=\"tick\" y=\"").number(HEAD - 5.0);
    html.raw("\">").text(&chart.top.1).raw("</text>\n");
}

fn path(html: &mut Html, curve: &Curve<'_>, top: f64) {
    let x = |i: usize| i as f64 + 0.5;
    let y = |value: f64| RISE - RISE * (value / top).clamp(0.0, 1.0);
    let runs = runs(curve.points);
    if curve.style == Style::Main {
        html.raw("<path class=\"area\" d=\"");
        for run in &runs {
            html.raw("M").number(x(run[0].0)).raw(" ").number(RISE);
            for (i, value) in run {
                html.raw("L").number(x(*i)).raw(" ").number(y(*value));
            }
            html.raw("V").number(RISE).raw("Z");
        }
        html.raw("\"/>\n");
    }
    html.raw(match curve.style {
        Style::Main => "<path class=\"line main\" d=\"",
        Style::Other => "<path class=\"line other\" d=\"",
    });
    for run in &runs {
        let mut command = "M";
        for (i, value) in run {
            html.raw(command).number(x(*i)).raw(" ").number(y(*value));
            command = "L";
        }
        // A lone point is seen too.
        html.raw("h0.01");
    }
    html.raw("\"/>\n");
}

/// Points that follow each other without a gap, with their places.
fn runs(points: &[Option<f64>]) -> Vec<Vec<(usize, f64)>> {
    let mut runs: Vec<Vec<_>> = Vec::new();
    let mut is_open = false;
    for (i, point) in points.iter().enumerate() {
        match point {
            Some(value) if is_open => {
                if let Some(run) = runs.last_mut() {
                    run.push((i, *value));
                }
            }
            Some(value) => runs.push(vec![(i, *value)]),
            None => {}
        }
        is_open = point.is_some();
    }
    runs
}

/// The value at the end, if there is one. The last point may have only begun.
fn last(curve: &Curve<'_>) -> Option<f64> {
    let end = &curve.points[curve.points.len().saturating_sub(2)..];
    end.iter().rev().copied().flatten().next()
}

fn labels(html: &mut Html, chart: &Chart<'_>) {
    let ends: Vec<_> = chart
        .curves
        .iter()
        .map(|curve| {
            let share = last(curve).unwrap_or_default() / chart.top.0;
            HEIGHT - FOOT - (HEIGHT - HEAD - FOOT) * share.clamp(0.0, 1.0)
        })
        .collect();
    html.raw("<svg class=\"labels\" aria-hidden=\"true\">\n");
    for (curve, middle) in chart.curves.iter().zip(apart(&ends)) {
        html.raw(match curve.style {
            Style::Main => "<text class=\"label main\" y=\"",
            Style::Other => "<text class=\"label other\" y=\"",
        });
        html.number(middle - 3.0).raw("\">").raw(curve.name);
        html.raw("</text><text class=\"value\" data-series=\"");
        html.raw(curve.series).raw("\" data-unit=\"");
        html.raw(curve.unit.name()).raw("\" y=\"");
        html.number(middle + 12.0).raw("\">");
        let value = last(curve).map(|value| curve.unit.tell(value));
        html.text(value.as_deref().unwrap_or("–")).raw("</text>\n");
    }
    html.raw("</svg>\n");
}

/// Where the middles of labels go that are to be near these: in the same order, none
/// over another, all inside.
fn apart(wanted: &[f64]) -> Vec<f64> {
    let mut order: Vec<_> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut places = wanted.to_vec();
    let mut free = LABEL / 2.0;
    for i in &order {
        places[*i] = places[*i].max(free);
        free = places[*i] + LABEL;
    }
    let mut free = HEIGHT - LABEL / 2.0;
    for i in order.iter().rev() {
        places[*i] = places[*i].min(free);
        free = places[*i] - LABEL;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_line_is_a_round_number_above_all_values() {
        let cases = [
            (0.1, 1.0),
            (1.01, 1.5),
            (7.0, 8.0),
            (9.0, 10.0),
            (20e6, 20e6),
        ];
        for (value, top) in cases {
            assert_eq!(round_top(1.0, &[&[None, Some(value)]]), top, "{value}");
        }
        assert_eq!(round_top(2.0, &[]), 2.0);
    }

    #[test]
    fn labels_keep_apart_and_inside() {
        assert_eq!(apart(&[60.0]), [60.0]);
        assert_eq!(apart(&[0.0, 120.0]), [15.0, 105.0]);
        assert_eq!(apart(&[118.0, 117.0]), [105.0, 75.0]);
        assert_eq!(apart(&[0.0, 1.0]), [15.0, 45.0]);
    }

    #[test]
    fn what_is_not_known_is_a_gap() {
        let points = [Some(1.0), Some(2.0), None, Some(3.0)];
        let expected = vec![vec![(0, 1.0), (1, 2.0)], vec![(3, 3.0)]];
        assert_eq!(runs(&points), expected);
    }
}
