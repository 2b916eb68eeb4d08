//! Messages for people on standard error during a run: progress bars on a terminal, a few
//! lines elsewhere, and errors in any case.

mod bars;
mod messages;

use std::collections::HashMap;

use dalbe::receive_window::ReceiveWindowState;
use fairbat::error::ErrorKind;
use fairbat::event::{Event, TimedEvent};
use indicatif::{MultiProgress, ProgressDrawTarget};

use self::bars::Bars;
pub(crate) use self::messages::{error, failed, failed_to_start, span};
use crate::console::Console;

/// Shortest time between two messages about yielding, s. Other traffic may start and stop
/// every few seconds, which would fill a log.
const MIN_YIELDING_INTERVAL_S: f64 = 60.0;

/// How much to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Display {
    /// Bars, start, results and errors.
    Bars,
    /// One line each for start, yielding, retries, results and errors.
    Lines,
    /// Errors only.
    Errors,
}

/// What decides about [`Display`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances {
    /// `--quiet`.
    pub(crate) quiet: bool,
    /// `--json`.
    pub(crate) json: bool,
    /// Standard output is a terminal.
    pub(crate) stdout_terminal: bool,
    /// Standard error is a terminal that can move its cursor.
    pub(crate) stderr_terminal: bool,
}

impl Display {
    /// Bars need a terminal without JSON lines on it.
    pub(crate) fn choose(on: Circumstances) -> Self {
        if on.quiet {
            Self::Errors
        } else if on.stderr_terminal && !(on.json && on.stdout_terminal) {
            Self::Bars
        } else {
            Self::Lines
        }
    }
}

/// Shows events to people.
#[derive(Debug)]
pub(crate) struct ProgressDisplay {
    display: Display,
    console: Console,
    bars: Option<Bars>,
    /// By URL: the bytes that earlier runs had fetched.
    resumed: HashMap<String, u64>,
    /// The first message of an upload. It waits until the file is open, so that nothing
    /// comes before the error for a wrong file.
    upload: Option<String>,
    /// The last message about yielding: its time, s, and whether the run yielded.
    said_yielding: Option<(f64, bool)>,
}

impl ProgressDisplay {
    pub(crate) fn new(display: Display) -> Self {
        Self::on(display, ProgressDrawTarget::stderr())
    }

    fn on(display: Display, target: ProgressDrawTarget) -> Self {
        let (console, bars) = match display {
            Display::Lines | Display::Errors => (Console::plain(), None),
            Display::Bars => {
                let multi = MultiProgress::with_draw_target(target);
                (Console::with_bars(multi.clone()), Some(Bars::new(multi)))
            }
        };
        Self {
            display,
            console,
            bars,
            resumed: HashMap::new(),
            upload: None,
            said_yielding: None,
        }
    }

    /// The console for all other messages during the run.
    pub(crate) fn console(&self) -> &Console {
        &self.console
    }

    /// Shows one event.
    pub(crate) fn show(&mut self, event: &TimedEvent) {
        let TimedEvent { t, ref event } = *event;
        match event {
            Event::File {
                url, resumed_bytes, ..
            } => {
                self.resumed.insert(url.clone(), *resumed_bytes);
            }
            Event::Sending {
                urls,
                lever,
                sender,
                weight,
                ..
            } => self.upload = Some(messages::sending(urls, *lever, *sender, *weight)),
            _ => {}
        }
        if let Some(bars) = &mut self.bars {
            bars.update(event);
        }
        if let Some(text) = self.message(event) {
            self.console.line(&text);
        }
        if let Event::Control(control) = event
            && let Some(text) = self.yielding(t, control.brake)
        {
            self.console.line(text);
        }
    }

    /// The message that yielding has begun or ended. Bars show it themselves.
    fn yielding(&mut self, t: f64, brake: Option<ReceiveWindowState>) -> Option<&'static str> {
        let is_yielding = brake? == ReceiveWindowState::Yielding;
        let is_news = is_yielding != self.said_yielding.is_some_and(|(_, said)| said)
            && self
                .said_yielding
                .is_none_or(|(at, _)| t >= at + MIN_YIELDING_INTERVAL_S);
        if self.display != Display::Lines || !is_news {
            return None;
        }
        self.said_yielding = Some((t, is_yielding));
        Some(messages::yielding(is_yielding))
    }

    /// Removes the bars. The lines above them stay.
    pub(crate) fn finish(&mut self) {
        if let Some(bars) = &self.bars {
            bars.clear();
        }
    }

    /// The message for an event, if it has one.
    fn message(&self, event: &Event) -> Option<String> {
        let lines = self.display == Display::Lines;
        let results = lines || self.display == Display::Bars;
        match event {
            Event::Start {
                urls,
                lever,
                receiver,
                ..
            } if results => Some(messages::started(urls, *lever, *receiver)),
            Event::File { .. } if results => self.upload.clone(),
            Event::Retry {
                url,
                reason,
                after_s,
                ..
            } if lines => Some(messages::retrying(url, reason, *after_s)),
            Event::Source {
                url,
                source,
                reason,
                next,
            } if results => Some(messages::dropped(url, source, reason, next.as_deref())),
            Event::Path { interface, up } if results => {
                Some(messages::path_changed(interface, *up))
            }
            Event::Bottleneck { interface, with } if results => {
                Some(messages::bottleneck(interface, with))
            }
            Event::Done {
                url,
                path,
                bytes,
                elapsed_s,
                deadline_met,
                protocol,
                ..
            } if results => {
                let resumed = self.resumed.get(url).copied().unwrap_or_default();
                let fetched = (bytes.saturating_sub(resumed), *elapsed_s, *protocol);
                Some(messages::saved(path, *bytes, fetched, *deadline_met))
            }
            Event::Sent {
                path,
                bytes,
                elapsed_s,
                status,
                deadline_met,
                protocol,
                ..
            } if results => {
                let sent = (*bytes, *elapsed_s, *protocol);
                Some(messages::sent(path, sent, *status, *deadline_met))
            }
            Event::Forecast {
                url,
                late_s,
                zeta,
                rate,
            } if results => Some(messages::late(url, *late_s, *zeta, *rate)),
            Event::Error {
                url,
                kind,
                message,
                hint,
            } => match kind {
                // These errors are about the file, and the message names it.
                ErrorKind::Disk | ErrorKind::Integrity if self.upload.is_some() => {
                    Some(error(message, hint))
                }
                _ => failed(url, *kind, message, hint),
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
