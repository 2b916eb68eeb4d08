//! A lane: how it stands, and its last hour.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::curve::{self, Chart, Curve, Style, Unit, round_top};
use super::html::Html;
use super::words::{amount, rate, span};
use crate::status::{LaneDirection, LaneStatus};
use crate::web::series::{POINTS, STEP, Series};

pub(super) fn write(html: &mut Html, lane: &LaneStatus, series: &Series, zone: &TimeZone) {
    let name = lane.direction.name();
    html.raw("<section class=\"lane\" data-lane=\"").text(name);
    html.raw("\" aria-labelledby=\"lane-").text(name);
    html.raw("\">\n<h2 id=\"lane-").text(name).raw("\">");
    html.raw(match lane.direction {
        LaneDirection::Push => "From this machine",
        LaneDirection::Pull => "To this machine",
    });
    html.raw(" <span class=\"muted\">").text(name);
    html.raw("</span></h2>\n");
    now(html, lane);
    if series.is_empty() {
        html.raw("<p class=\"card muted\">Nothing was measured in the last hour.</p>\n");
    } else {
        charts(html, series, zone);
    }
    html.raw("</section>\n");
}

/// What the lane does, in a line, and whether it can yield.
fn now(html: &mut Html, lane: &LaneStatus) {
    let sample = &lane.sample;
    let connections = match sample.active {
        1 => "1 connection".to_owned(),
        active => format!("{active} connections"),
    };
    let mut facts = match sample.active {
        0 => vec!["idle".to_owned()],
        _ => vec![rate(sample.rate), connections],
    };
    if let Some(rtt) = sample.rtt_s {
        let rtt = Unit::Milliseconds.tell(rtt * 1e3);
        facts.push(format!("round trip {rtt}"));
    }
    facts.push(format!("{} since the start", amount(lane.bytes as f64)));
    if lane.yielded_s >= 1.0 {
        facts.push(format!("gave way for {}", span(lane.yielded_s)));
    }
    html.raw("<p class=\"facts\">");
    for (i, fact) in facts.iter().enumerate() {
        html.raw(if i == 0 { "<span>" } else { " <span>" });
        html.text(fact).raw("</span>");
    }
    html.raw(" <span>held back by ");
    html.text(&lane.lever).raw("</span></p>\n");
    if !lane.can_yield {
        html.raw("<p class=\"warning\"><strong>It does not give way to others.</strong> ");
        html.raw("Run <code>fairbat doctor</code> on this machine: it says why, and what to do.");
        html.raw("</p>\n");
    }
}

fn charts(html: &mut Html, series: &Series, zone: &TimeZone) {
    let curve = |name, key, style, unit, points| Curve {
        name,
        series: key,
        style,
        unit,
        points,
    };
    let top = |unit: Unit, least, points: &[&[Option<f64>]]| {
        let top = round_top(least, points);
        (top, unit.tell(top))
    };
    let (rate, number, ms) = (Unit::Rate, Unit::Number, Unit::Milliseconds);
    let (main, other) = (Style::Main, Style::Other);
    let all = [
        Chart {
            title: "Rate",
            meaning: "and what the deadlines need",
            top: top(rate, 1e3, &[&series.rate, &series.zeta]),
            curves: vec![
                curve("rate", "rate", main, rate, &series.rate),
                curve("needed", "zeta", other, rate, &series.zeta),
            ],
        },
        Chart {
            title: "Weight",
            meaning: "1 is as much as an ordinary connection",
            top: top(number, 1.0, &[]),
            curves: vec![curve("weight w", "w", main, number, &series.w)],
        },
        Chart {
            title: "Connections",
            meaning: "allowed, and chunks that wait for one",
            top: top(number, 2.0, &[&series.m, &series.n]),
            curves: vec![
                curve("allowed m", "m", main, number, &series.m),
                curve("waiting n", "n", other, number, &series.n),
            ],
        },
        Chart {
            title: "Queueing delay",
            meaning: "on the way, of all traffic together",
            top: top(ms, 10.0, &[&series.queue]),
            curves: vec![curve("delay", "queue", main, ms, &series.queue)],
        },
    ];
    html.raw("<div class=\"charts card\">\n");
    for chart in &all {
        curve::write(html, chart);
        hours(html, series, zone);
        html.raw("</figure>\n");
    }
    html.raw("</div>\n");
}

/// The times below a chart.
fn hours(html: &mut Html, series: &Series, zone: &TimeZone) {
    let time = |share: f64| {
        let seconds = series.start + share * STEP * POINTS as f64;
        let moment = Timestamp::from_second(seconds as i64).unwrap_or_default();
        let moment = moment.to_zoned(zone.clone());
        moment.strftime("%H:%M").to_string()
    };
    html.raw("<div class=\"hours\" aria-hidden=\"true\"><span>");
    html.text(&time(0.0)).raw("</span><span>");
    html.text(&time(0.5)).raw("</span><span>");
    html.text(&time(1.0))
        .raw("</span><span class=\"at\">now</span></div>\n");
}
