//! `--json`: one JSON object per line on standard output, as `docs/json.md`
//! describes them.
//!
//! A reader that goes away ends the lines, not the downloads: the files are
//! what the command was started for, and its exit code still tells how they
//! ended.

use std::io::{self, Write};
use std::path::PathBuf;

use fairbat::event::{Event, TimedEvent};

/// Writes events as JSON lines, each one complete before the next begins.
#[derive(Debug)]
pub(crate) struct JsonLines<W> {
    /// `None` after the first write that failed.
    out: Option<W>,
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out: Some(out) }
    }

    /// Writes one event and flushes it, so that a reader sees it now.
    pub(crate) fn write(&mut self, event: &TimedEvent) {
        let Some(out) = &mut self.out else { return };
        let written = line(event).and_then(|line| {
            out.write_all(line.as_bytes())?;
            out.flush()
        });
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                tracing::info!("nobody reads the JSON lines any more: writing no more of them");
                self.out = None;
            }
            Err(error) => {
                tracing::error!("cannot write JSON lines any more: {error}");
                self.out = None;
            }
        }
    }
}

/// The event as one line.
fn line(event: &TimedEvent) -> io::Result<String> {
    let mut line = match path_in_unicode(event) {
        None => serde_json::to_string(event)?,
        Some(event) => serde_json::to_string(&event)?,
    };
    line.push('\n');
    Ok(line)
}

/// A copy of the event with a replacement character for each part of its path
/// that is not Unicode, which JSON cannot carry; `None` if there is none.
fn path_in_unicode(event: &TimedEvent) -> Option<TimedEvent> {
    let (Event::File { path, .. } | Event::Done { path, .. } | Event::Sent { path, .. }) =
        &event.event
    else {
        return None;
    };
    if path.to_str().is_some() {
        return None;
    }
    let mut event = event.clone();
    if let Event::File { path, .. } | Event::Done { path, .. } | Event::Sent { path, .. } =
        &mut event.event
    {
        *path = PathBuf::from(path.to_string_lossy().into_owned());
    }
    Some(event)
}

#[cfg(test)]
mod tests;
