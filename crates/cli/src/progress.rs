//! What people see on standard error while a run works: progress bars on a
//! terminal, a few plain lines elsewhere, errors in any case.

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

/// Without bars a change between yielding and not is told no more often, s:
/// web pages come every few seconds, and a log is read later.
const YIELDING_AGAIN_S: f64 = 60.0;

/// The status of an upload that has been taken in and not been stored yet
/// (RFC 9110 section 15.3.3).
const ACCEPTED: u16 = 202;

/// How much to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Display {
    /// Bars, start, results and errors.
    Bars,
    /// A line each for start, yielding, retries, results and errors.
    Lines,
    /// Errors only.
    Errors,
}

/// What the choice of [`Display`] depends on.
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
    /// Bars need a terminal of their own: JSON lines on the same one would
    /// tear them.
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
pub(crate) struct Progress {
    display: Display,
    console: Console,
    bars: Option<Bars>,
    /// Bytes that earlier runs left, by URL, of the transfers that began.
    resumed: HashMap<String, u64>,
    /// What is said of an upload as soon as its file has been opened: who named
    /// the wrong file reads of nothing else.
    upload: Option<String>,
    /// What was last said of yielding, and when, s.
    said_yielding: Option<(f64, bool)>,
}

impl Progress {
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

    /// Where all other lines for people have to go while this is shown.
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

    /// The line that says, without bars, that yielding has begun or ended.
    fn yielding(&mut self, t: f64, brake: Option<ReceiveWindowState>) -> Option<&'static str> {
        let is_yielding = brake? == ReceiveWindowState::Yielding;
        let is_news = is_yielding != self.said_yielding.is_some_and(|(_, said)| said)
            && self
                .said_yielding
                .is_none_or(|(at, _)| t >= at + YIELDING_AGAIN_S);
        if self.display != Display::Lines || !is_news {
            return None;
        }
        self.said_yielding = Some((t, is_yielding));
        Some(messages::yielding(is_yielding))
    }

    /// Removes the bars; what was written above them stays.
    pub(crate) fn finish(&mut self) {
        if let Some(bars) = &self.bars {
            bars.clear();
        }
    }

    /// The line that an event leaves behind, if any.
    fn message(&self, event: &Event) -> Option<String> {
        let lines = self.display == Display::Lines;
        let results = lines || self.display == Display::Bars;
        match event {
            Event::Start {
                urls,
                lever,
                receiver,
            } if results => Some(messages::started(urls, *lever, *receiver)),
            Event::File { .. } if results => self.upload.clone(),
            Event::Retry {
                url,
                reason,
                after_s,
                ..
            } if lines => Some(messages::retrying(url, reason, *after_s)),
            Event::Done {
                url,
                path,
                bytes,
                elapsed_s,
                deadline_met,
                ..
            } if results => Some(messages::saved(&messages::Saved {
                path,
                bytes: *bytes,
                resumed_bytes: self.resumed.get(url).copied().unwrap_or_default(),
                elapsed_s: *elapsed_s,
                deadline_met: *deadline_met,
            })),
            Event::Sent {
                path,
                bytes,
                elapsed_s,
                status,
                deadline_met,
                ..
            } if results => Some(messages::sent(&messages::Sent {
                path,
                bytes: *bytes,
                elapsed_s: *elapsed_s,
                is_promise: *status == ACCEPTED,
                deadline_met: *deadline_met,
            })),
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
                // Of the file, and the message begins with it.
                ErrorKind::Disk | ErrorKind::Integrity if self.upload.is_some() => {
                    Some(messages::failed_locally(message, hint))
                }
                _ => failed(url, *kind, message, hint),
            },
            Event::Start { .. }
            | Event::Sending { .. }
            | Event::File { .. }
            | Event::Control(_)
            | Event::Forecast { .. }
            | Event::Retry { .. }
            | Event::Done { .. }
            | Event::Sent { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
