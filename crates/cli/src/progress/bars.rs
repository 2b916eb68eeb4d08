//! Progress bars: one for each unfinished file, and below them one line with the state of
//! the control loop.

use std::collections::HashMap;
use std::path::Path;

use dalbe::receive_window::ReceiveWindowState;
use fairbat::event::{Control, Event, FileProgress};
use fairbat::printable::printable;
use indicatif::{
    HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};

use super::messages::span;

/// Largest number of bars at a time. More would not fit on a screen.
const MAX_BARS: usize = 10;

// Without the bar, a line has at most 60 columns, so that a narrow terminal does not wrap
// it.
const KNOWN_SIZE: &str = "{prefix:12!} {wide_bar:.cyan/blue} {percent:>3}% \
    {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} ETA {eta}";
const UNKNOWN_SIZE: &str = "{prefix:12!} {spinner:.cyan} {binary_bytes} {binary_bytes_per_sec}";
const STATUS: &str = "{wide_msg:.dim}";

#[derive(Debug)]
pub(crate) struct Bars {
    multi: MultiProgress,
    status: ProgressBar,
    /// By URL: the bars on the screen.
    shown: HashMap<String, ProgressBar>,
    /// By URL: the names of the files.
    names: HashMap<String, String>,
    counts: StatusCounts,
}

/// The values of the status line.
#[derive(Debug, Default)]
struct StatusCounts {
    files: usize,
    finished: usize,
    failed: usize,
    retries: u64,
    /// An upload has one connection, so m means nothing, and at most one deadline.
    is_upload: bool,
    /// The expected delay of an upload after its deadline, s.
    late_s: Option<f64>,
}

impl Bars {
    pub(crate) fn new(multi: MultiProgress) -> Self {
        let status = multi.add(ProgressBar::no_length().with_style(style(STATUS)));
        Self {
            multi,
            status,
            shown: HashMap::new(),
            names: HashMap::new(),
            counts: StatusCounts::default(),
        }
    }

    pub(crate) fn update(&mut self, event: &Event) {
        match event {
            Event::Start { urls, .. } | Event::Sending { urls, .. } => {
                self.counts.files = urls.len();
                self.counts.is_upload = matches!(event, Event::Sending { .. });
                self.status.set_message("connecting");
            }
            Event::File {
                url,
                path,
                bytes,
                resumed_bytes,
                ..
            } => {
                self.names.insert(url.clone(), name(path));
                self.show(&FileProgress {
                    url: url.clone(),
                    bytes_done: *resumed_bytes,
                    bytes_total: *bytes,
                });
            }
            Event::Forecast { late_s, .. } => self.counts.late_s = Some(*late_s),
            Event::Control(control) => {
                for file in &control.files {
                    self.show(file);
                }
                if control.lag.is_some_and(|lag| lag <= 0.0) {
                    self.counts.late_s = None;
                }
                self.status.set_message(self.counts.status(control));
            }
            Event::Retry {
                reason, after_s, ..
            } => {
                self.counts.retries += 1;
                self.status
                    .set_message(printable(&format!("next try in {after_s:.1} s: {reason}")));
            }
            Event::Source { next: None, .. }
            | Event::Prediction { .. }
            | Event::Path { .. }
            | Event::Bottleneck { .. } => {}
            Event::Source {
                next: Some(next), ..
            } => self
                .status
                .set_message(printable(&format!("asking {next}"))),
            Event::Done { url, .. } | Event::Sent { url, .. } | Event::Error { url, .. } => {
                match event {
                    Event::Error { .. } => self.counts.failed += 1,
                    _ => self.counts.finished += 1,
                }
                self.names.remove(url);
                if let Some(bar) = self.shown.remove(url) {
                    bar.finish_and_clear();
                    self.multi.remove(&bar);
                }
            }
        }
    }

    pub(crate) fn clear(&self) {
        for bar in self.shown.values() {
            bar.finish_and_clear();
        }
        self.status.finish_and_clear();
    }

    /// Moves the bar of a file. Makes the bar if the file has begun and there is room.
    fn show(&mut self, file: &FileProgress) {
        if let Some(bar) = self.shown.get(&file.url) {
            // Draw even if nothing moved, because the rate falls.
            bar.update(|state| state.set_pos(file.bytes_done));
            return;
        }
        let Some(name) = self.names.get(&file.url) else {
            return;
        };
        if self.shown.len() >= MAX_BARS {
            return;
        }
        // Hide the bar until it is ready. Otherwise the bytes of earlier runs would count
        // as a rate.
        let hidden = ProgressDrawTarget::hidden();
        let bar = ProgressBar::with_draw_target(file.bytes_total, hidden)
            .with_style(match file.bytes_total {
                Some(_) => style(KNOWN_SIZE),
                None => style(UNKNOWN_SIZE),
            })
            .with_prefix(name.clone());
        bar.update(|state| state.set_pos(file.bytes_done));
        bar.reset_eta();
        let bar = self.multi.insert_before(&self.status, bar);
        bar.tick();
        self.shown.insert(file.url.clone(), bar);
    }
}

impl StatusCounts {
    fn status(&self, control: &Control) -> String {
        let mut parts = vec![];
        if control.brake == Some(ReceiveWindowState::Yielding) {
            parts.push("yielding".to_owned());
        }
        if !self.is_upload {
            parts.push(format!("m {:.2}", control.m));
        } else if let Some(lag) = control.lag {
            parts.push(format!("w {:.2}", control.w));
            parts.push(self.outlook(lag));
        }
        parts.push(plural(control.active as u64, "connection", "connections"));
        if let Some(rtt) = control.rtt_ms {
            parts.push(format!("rtt {rtt:.0} ms"));
        }
        parts.push(plural(self.retries, "retry", "retries"));
        match self.files {
            // Files whose URLs come during the run.
            0 => parts.push(format!(
                "{:.0} waiting, {} done",
                control.n,
                plural(self.finished as u64, "file", "files")
            )),
            1 => {}
            files => parts.push(format!("{} of {files} files", self.finished)),
        }
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        parts.join(", ")
    }

    /// The outlook of an upload that is `lag` bytes behind an even rate.
    fn outlook(&self, lag: f64) -> String {
        match self.late_s {
            Some(late_s) => format!("probably {} late", span(late_s)),
            None if lag > 0.0 => "behind schedule".to_owned(),
            None => "on schedule".to_owned(),
        }
    }
}

fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// The name of a bar: the file without its directory.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    printable(&name.to_string_lossy())
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the templates are constant and well-formed")
        .with_key("eta", eta)
}

/// The time left at the present rate. A dash while nothing moves; indicatif would show 0 s.
fn eta(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // indicatif handles errors of the terminal.
    let _ = if state.per_sec() < 1.0 {
        out.write_char('-')
    } else {
        write!(out, "{:#}", HumanDuration(state.eta()))
    };
}
