//! How far along the command is, by what it writes itself. Pure.

use serde_json::Value;

use crate::args::ProgressFormat;

/// Longest line that is read, bytes. Longer ones tell nothing.
const LONGEST_LINE: usize = 64 * 1024;

/// Finds what is told in a stream of bytes.
#[derive(Debug)]
pub(super) struct ProgressReader {
    format: ProgressFormat,
    line: Vec<u8>,
}

impl ProgressReader {
    pub(super) fn new(format: ProgressFormat) -> Self {
        Self {
            format,
            line: Vec::new(),
        }
    }

    /// Takes the next bytes; returns the share of the work that is done by the last line that
    /// tells it, 0 to 1.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Option<f64> {
        let mut told = None;
        for &byte in bytes {
            // A line that replaces the one before on a terminal ends with a carriage return.
            if byte != b'\n' && byte != b'\r' {
                if self.line.len() <= LONGEST_LINE {
                    self.line.push(byte);
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if line.len() <= LONGEST_LINE {
                told = share(self.format, &line).or(told);
            }
        }
        told.filter(|share| (0.0..=1.0).contains(share))
    }
}

/// The share that this line tells.
fn share(format: ProgressFormat, line: &[u8]) -> Option<f64> {
    match format {
        ProgressFormat::ResticJson => {
            let line: Value = serde_json::from_slice(line).ok()?;
            let is_status = line["message_type"] == "status";
            is_status.then(|| line["percent_done"].as_f64())?
        }
        ProgressFormat::RcloneJson => {
            let line: Value = serde_json::from_slice(line).ok()?;
            let all = line["stats"]["totalBytes"].as_f64()?;
            let done = line["stats"]["bytes"].as_f64()?;
            (all > 0.0).then_some(done / all)
        }
        ProgressFormat::Rsync => {
            // 32,768  12%  1.23MB/s  0:00:10 (xfr#1, to-chk=3/5)
            let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
            let bytes = words.next()?;
            let percent = words.next()?.strip_suffix('%')?;
            let are_bytes = bytes
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b',');
            are_bytes.then(|| percent.parse::<f64>().ok().map(|it| it / 100.0))?
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(format: ProgressFormat, texts: &[&str]) -> Vec<Option<f64>> {
        let mut reader = ProgressReader::new(format);
        let read = texts.iter().map(|text| reader.read(text.as_bytes()));
        read.collect()
    }

    #[test]
    fn restic_tells_in_status_messages() {
        let status = "{\"message_type\":\"status\",\"percent_done\":0.25,\"total_files\":3}\n";
        let other = "{\"message_type\":\"summary\",\"percent_done\":9}\nnot JSON\n";
        assert_eq!(
            told(
                ProgressFormat::ResticJson,
                &[status, other, &status[..20], &status[20..]]
            ),
            [Some(0.25), None, None, Some(0.25)]
        );
    }

    #[test]
    fn rclone_tells_in_statistics() {
        let line = "{\"level\":\"info\",\"stats\":{\"bytes\":30,\"totalBytes\":40,\"eta\":1}}\n";
        let none = "{\"stats\":{\"bytes\":0,\"totalBytes\":0}}\n";
        assert_eq!(
            told(ProgressFormat::RcloneJson, &[line, none]),
            [Some(0.75), None]
        );
    }

    #[test]
    fn rsync_tells_on_a_line_that_it_replaces() {
        let lines = "\r          1,000   1%    0.00kB/s    0:00:00  \
                     \r    500,000  50%  1.23MB/s    0:00:10 (xfr#1, to-chk=3/5)\r";
        let names = "home/50% of it\nsent 1 12% bytes\n";
        assert_eq!(
            told(ProgressFormat::Rsync, &[lines, names]),
            [Some(0.5), None]
        );
    }

    #[test]
    fn what_cannot_be_is_not_told() {
        let status = |share| format!("{{\"message_type\":\"status\",\"percent_done\":{share}}}\n");
        let long = format!("{}\n{}", "x".repeat(LONGEST_LINE + 9), status("0.5"));
        assert_eq!(
            told(
                ProgressFormat::ResticJson,
                &[&status("1.5"), &status("-1"), &long]
            ),
            [None, None, Some(0.5)]
        );
    }
}
