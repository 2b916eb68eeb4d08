//! Text from outside, made safe for terminals, logs and other programs.
//!
//! Servers, stores and file systems choose names and messages. A control character in one
//! of them would move the cursor or start a line of its own, and a bidirectional one would
//! show a name as another one (Trojan Source, CVE-2021-42574).

use std::fmt::Write as _;
use std::io::{self, Write};

/// Whether a character acts on what is around it: control characters (C0, C1), line
/// separators, the characters that change the direction of text (Unicode Bidi_Control), and
/// the byte order mark.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
        )
}

/// `text` on one line, its unsafe characters escaped as in Rust: `\n`, `\u{202e}`.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_unsafe(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// The same JSON document, its unsafe characters escaped as in JSON: `\u202e`. White space
/// between values stays.
#[must_use]
pub fn printable_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.push(c),
            // All of them have four digits.
            c if is_unsafe(c) => write!(shown, "\\u{:04x}", u32::from(c)).expect("a string"),
            c => shown.push(c),
        }
    }
    shown
}

/// Writes the records of a log, each on one line and printable. Each write is one record,
/// as `tracing-subscriber` has it.
#[derive(Debug)]
pub struct LogWriter<W>(pub W);

impl<W: Write> Write for LogWriter<W> {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(record);
        let line = printable(text.trim_end_matches('\n')) + "\n";
        self.0.write_all(line.as_bytes())?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\x1b[2J\u{202e}b\rc\u{9b}d\u{7f}\u{2066}\n\u{200f}\u{61c}";

    #[test]
    fn what_acts_on_a_terminal_is_escaped() {
        let shown = printable(HOSTILE);
        assert!(!shown.contains(is_unsafe), "{shown:?}");
        assert!(
            shown.starts_with("a\\u{1b}[2J\\u{202e}b\\rc\\u{9b}d"),
            "{shown}"
        );
        assert_eq!(printable("über أهلا 日本"), "über أهلا 日本");
    }

    #[test]
    fn json_means_the_same() {
        let json = serde_json::to_string_pretty(&[HOSTILE, "über"]).unwrap();
        let shown = printable_json(&json);
        assert!(!shown.replace('\n', "").contains(is_unsafe), "{shown:?}");
        let read: Vec<String> = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, [HOSTILE, "über"]);
    }

    #[test]
    fn a_record_is_one_line() {
        let mut out = LogWriter(Vec::new());
        out.write_all("warning: \u{202e}x\nerror: y\n".as_bytes())
            .unwrap();
        assert_eq!(out.0, b"warning: \\u{202e}x\\nerror: y\n");
    }
}
