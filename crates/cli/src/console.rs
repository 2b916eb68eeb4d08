//! Standard error, where people read: whole lines that do not tear the
//! progress bars, and never a panic when nobody reads any more.
//!
//! It must not know what the lines say.

use std::io::{self, Write};

use indicatif::MultiProgress;
use tracing_subscriber::fmt::MakeWriter;

/// Writes lines to standard error, above the progress bars if there are any.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    bars: Option<MultiProgress>,
}

impl Console {
    /// Standard error without progress bars.
    pub(crate) fn plain() -> Self {
        Self { bars: None }
    }

    /// Standard error with these progress bars at its bottom.
    pub(crate) fn with_bars(bars: MultiProgress) -> Self {
        Self { bars: Some(bars) }
    }

    /// Writes `text` and a line break. Control characters are made visible:
    /// servers choose part of the text, and a terminal would obey them.
    pub(crate) fn line(&self, text: &str) {
        let text = printable(text);
        // Nowhere to report to if standard error itself fails.
        let _ = match &self.bars {
            Some(bars) => bars.println(text),
            None => writeln!(io::stderr(), "{text}"),
        };
    }
}

/// `text` with every control character but the line break escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Log records go the same way as all other lines.
impl MakeWriter<'_> for Console {
    type Writer = LogLine;

    fn make_writer(&self) -> LogLine {
        LogLine(self.clone())
    }
}

/// Receives one whole log record per write, as `tracing-subscriber` does it.
pub(crate) struct LogLine(Console);

impl Write for LogLine {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(record);
        self.0.line(text.trim_end_matches('\n'));
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\rc\u{9b}d"), "a\\u{1b}[2Jb\\rc\\u{9b}d");
        assert_eq!(printable("über\nzwei Zeilen"), "über\nzwei Zeilen");
    }
}
