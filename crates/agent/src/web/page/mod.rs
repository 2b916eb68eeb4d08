//! The page: what there is to do and how far it is, and the last hour of each
//! lane. It is whole without its script, which only keeps it fresh and tells the
//! values under the pointer.
//!
//! Everything is in one answer, and works at any width, by day and by night.

mod curve;
mod html;
mod lanes;
mod summary;
mod tasks;
mod words;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use self::html::Html;
use super::series::Series;
use crate::daemon::handle::Handle;
use crate::status::AgentStatus;

/// How it looks.
pub(super) const STYLE: &str = include_str!("style.css");

/// What keeps it fresh.
pub(super) const SCRIPT: &str = include_str!("script.js");

/// Three bars of which the highest gives way: the icon, as a URL.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E\
    %3Crect width='16' height='16' rx='4' fill='%23205ea6'/%3E\
    %3Cpath d='M4 12V8M8 12V4M12 12V9' stroke='white' stroke-width='2' stroke-linecap='round'/%3E\
    %3C/svg%3E";

/// How the agent stands, with times of day in this zone.
pub(super) fn render(handle: &Handle, zone: &TimeZone) -> String {
    let status = handle.status();
    let mut html = Html::default();
    html.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>")
        .text(&summary::title(&status))
        .raw("</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        .raw("<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"")
        .raw(ICON)
        .raw("\">\n<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>\n<style>")
        .raw(STYLE)
        .raw("</style>\n</head>\n<body>\n")
        .raw("<p id=\"away\" role=\"alert\" hidden><strong>The agent does not answer.</strong> ")
        .raw("This is how it stood when it last did.</p>\n<main id=\"now\">\n");
    head(&mut html, &status, zone);
    tasks::write(&mut html, &status, zone);
    let now = epoch(status.now);
    for lane in &status.lanes {
        let series = Series::of(&handle.history(lane.direction), now);
        lanes::write(&mut html, lane, &series, zone);
    }
    html.raw("</main>\n<footer><p>fairbat-agent ")
        .text(&status.version)
        .raw(
            " &middot; <a href=\"metrics\">metrics</a> &middot; <span id=\"fresh\">reloaded every ",
        )
        .raw("10 seconds</span></p></footer>\n<script>")
        .raw(SCRIPT)
        .raw("</script>\n</body>\n</html>\n");
    html.finish()
}

fn head(html: &mut Html, status: &AgentStatus, zone: &TimeZone) {
    let running = words::span(words::between(status.started, status.now));
    let now = status.now.to_zoned(zone.clone());
    html.raw("<header>\n<p class=\"brand\">fairbat</p>\n<h1>")
        .text(&summary::headline(status))
        .raw("</h1>\n<p class=\"muted\"><span class=\"whole\">as of <time datetime=\"")
        .text(&status.now.to_string())
        .raw("\">")
        .text(&now.strftime("%a %-d %b, %H:%M:%S").to_string())
        .raw("</time> &middot;</span> <span class=\"whole\">running for ")
        .text(&running)
        .raw("</span></p>\n</header>\n");
}

/// Seconds since 1970.
pub(super) fn epoch(moment: Timestamp) -> f64 {
    moment.as_millisecond() as f64 / 1e3
}
