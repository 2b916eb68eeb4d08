//! The command lines of the download tools: what one would type to have the
//! file.

use super::Contender;
use super::site::{FILE, Site};
use crate::link::rate::bytes_per_s;
use crate::scenario::Background;

/// Share of the slowest link that a careful person would leave to a transfer
/// in the background when there is nothing but a fixed limit to set: enough to
/// get somewhere, little enough for the others not to be driven out.
const CAREFUL_SHARE: f64 = 0.3;

/// A download tool and its arguments, to be run in the directory that the file
/// goes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tool {
    /// Who it is.
    pub(super) contender: Contender,
    /// Its arguments, without its own name.
    pub(super) arguments: Vec<String>,
}

impl Tool {
    /// How this contender fetches what the words of `source` name.
    ///
    /// # Panics
    /// For a contender that is not a download tool.
    pub(super) fn of(contender: Contender, site: &Site, source: Vec<String>) -> Self {
        let directory = site.download.display().to_string();
        let file = site.download.join(FILE).display().to_string();
        let words: Vec<String> = match contender {
            Contender::Curl => words(&["-sS", "-f", "-o", &file]),
            Contender::Aria2 => words(&[
                "-x4",
                "-s4",
                "-k1M",
                "--no-conf",
                "--file-allocation=none",
                "--auto-file-renaming=false",
                // In place of -q, which would keep errors to itself.
                "--console-log-level=error",
                "--show-console-readout=false",
                "--summary-interval=0",
                "--download-result=hide",
                "-d",
                &directory,
            ]),
            Contender::Rclone => {
                let limit = careful_rate(site.slowest_mbit);
                let mut words = words(&["copyurl", "--config", "/dev/null"]);
                // As with fairbat below.
                words.push("--local-no-preallocate".to_owned());
                words.extend(["--bwlimit".to_owned(), limit]);
                words.extend(source);
                words.push(file);
                return Self {
                    contender,
                    arguments: words,
                };
            }
            Contender::Fairbat | Contender::FairbatServed | Contender::FairbatNoDeadline(_) => {
                let mut words = words(&["get", "--json", "-d", &directory]);
                let deadline = site.background.deadline_s;
                if let Some(deadline) = deadline.filter(|_| contender.has_deadline()) {
                    words.extend(["--deadline".to_owned(), format!("{deadline:.3}s")]);
                }
                if let Contender::FairbatNoDeadline(receiver) = contender {
                    words.extend(receiver.words().iter().map(ToString::to_string));
                }
                words.extend(flags(&site.background));
                if site.end().is_none() {
                    // The file is far larger than what will be there of it,
                    // and its space is memory.
                    words.push("--file-allocation=none".to_owned());
                }
                words
            }
            other => unreachable!("{other} is not a download tool"),
        };
        Self {
            contender,
            arguments: words.into_iter().chain(source).collect(),
        }
    }
}

/// For fairbat, what the scenario says of its connections.
fn flags(background: &Background) -> Vec<String> {
    let weight = background.weight.map(|weight| weight.to_string());
    let split = background.connections.map(|split| split.to_string());
    [("--weight", weight), ("--split", split)]
        .into_iter()
        .filter_map(|(flag, value)| Some([flag.to_owned(), value?]))
        .flatten()
        .collect()
}

/// For rclone: whole bytes per second, as a unit would be a power of 1024.
fn careful_rate(link_mbit: f64) -> String {
    format!("{:.0}B", bytes_per_s(link_mbit) * CAREFUL_SHARE)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_described_where_the_scenario_does() {
        let mut background = Background::default();
        assert!(flags(&background).is_empty());
        background.weight = Some(0.3);
        assert_eq!(flags(&background), ["--weight", "0.3"]);
        background.connections = Some(8);
        assert_eq!(flags(&background)[2..], ["--split", "8"]);
    }

    #[test]
    fn a_careful_rate_is_whole_bytes() {
        assert_eq!(careful_rate(10.0), "375000B");
        assert_eq!(careful_rate(0.333), "12488B");
    }
}
