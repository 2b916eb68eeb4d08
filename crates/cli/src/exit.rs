//! The exit codes: one table for the process, the help and the manual pages.

use fairbat::download::{Outcome, Report};
use fairbat::error::ErrorKind;
use fairbat::path_measurement::forecast::Verdict;

/// The result of a command, for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ExitCode {
    /// All files are complete.
    Done = 0,
    /// An error without a code of its own.
    Other = 1,
    /// The command line or the environment is wrong.
    Usage = 2,
    /// Some files are complete, some are not.
    Partial = 3,
    /// The data does not match its checksum or its version.
    Integrity = 4,
    /// A problem of the network or a server. Another try may help.
    Temporary = 5,
    /// A problem of the local disk.
    Disk = 6,
    /// Stopped by `--max-time`.
    MaxTime = 10,
    /// With `--fail-late`: all files are complete, but late. In `plan`: the deadline
    /// cannot be met.
    Late = 11,
    /// A file is larger than `--max-size`, or grows without measure while it is decompressed.
    TooLarge = 12,
    /// Stopped by SIGINT or SIGTERM (128 + SIGINT, as shells report it).
    Interrupted = 130,
}

impl ExitCode {
    /// All codes in ascending order.
    pub(crate) const ALL: [Self; 11] = [
        Self::Done,
        Self::Other,
        Self::Usage,
        Self::Partial,
        Self::Integrity,
        Self::Temporary,
        Self::Disk,
        Self::MaxTime,
        Self::Late,
        Self::TooLarge,
        Self::Interrupted,
    ];

    /// The codes of single transfers. The first of them in a run decides its code.
    const BY_SEVERITY: [Self; 8] = [
        Self::Interrupted,
        Self::MaxTime,
        Self::Integrity,
        Self::Disk,
        Self::TooLarge,
        Self::Other,
        Self::Temporary,
        Self::Late,
    ];

    /// The meaning of the code, for the help and the manual pages.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done; also if late, without --fail-late",
            Self::Other => "the server refuses (404, 403), or another error",
            Self::Usage => "wrong usage, or a list or Metalink that cannot be read",
            Self::Partial => {
                "some of several URLs failed with 1, 5 or 12; codes 130, 10, 4 and 6 take precedence"
            }
            Self::Integrity => "wrong checksum, or the file kept changing",
            Self::Temporary => "a problem of the network or the server; try again",
            Self::Disk => "the disk is full, or a file or directory is missing or not writable",
            Self::MaxTime => "stopped by --max-time; the same command continues",
            Self::Late => "done after the deadline, with --fail-late; plan: impossible",
            Self::TooLarge => "a file is larger than --max-size; nothing of it is kept",
            Self::Interrupted => "interrupted; the same command continues",
        }
    }

    /// The code of a run.
    ///
    /// An interruption and the time limit come first, because they explain all other
    /// failures. Wrong data and a broken disk come next, because a user must not miss
    /// them. Any other mixed result is [`ExitCode::Partial`].
    pub(crate) fn of_report(report: &Report, fail_late: bool) -> Self {
        let outcomes = report.outcomes.iter();
        let codes = outcomes.map(|outcome| match *outcome {
            Outcome::Done { late: true } if fail_late => Self::Late,
            Outcome::Done { .. } => Self::Done,
            Outcome::Failed(kind) => Self::of_kind(kind),
        });
        let codes: Vec<_> = codes.chain(report.cut_off.map(Self::of_kind)).collect();
        let any = |code| codes.contains(&code);
        match Self::BY_SEVERITY.into_iter().find(|code| any(*code)) {
            Some(Self::TooLarge | Self::Other | Self::Temporary)
                if any(Self::Done) || any(Self::Late) =>
            {
                Self::Partial
            }
            worst => worst.unwrap_or(Self::Done),
        }
    }

    /// The code of a single failure of this kind.
    pub(crate) fn of_kind(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Refused | ErrorKind::Other => Self::Other,
            ErrorKind::Network | ErrorKind::Server => Self::Temporary,
            ErrorKind::Integrity => Self::Integrity,
            ErrorKind::Disk => Self::Disk,
            ErrorKind::TooLarge => Self::TooLarge,
            ErrorKind::MaxTime => Self::MaxTime,
            ErrorKind::Interrupted => Self::Interrupted,
        }
    }

    /// The code of a forecast. A deadline that one connection cannot meet stops a script
    /// early, before the transfer is late.
    pub(crate) fn of_verdict(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Comfortable | Verdict::Tight | Verdict::Unknown => Self::Done,
            Verdict::Impossible => Self::Late,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Outcome = Outcome::Done { late: false };
    const LATE: Outcome = Outcome::Done { late: true };

    fn failed(kind: ErrorKind) -> Outcome {
        Outcome::Failed(kind)
    }

    fn code(outcomes: &[Outcome], fail_late: bool) -> u8 {
        let report = Report {
            outcomes: outcomes.to_vec(),
            cut_off: None,
        };
        ExitCode::of_report(&report, fail_late) as u8
    }

    #[test]
    fn a_stream_that_was_cut_off_says_so() {
        let report = Report {
            outcomes: vec![DONE],
            cut_off: Some(ErrorKind::Interrupted),
        };
        assert_eq!(ExitCode::of_report(&report, false), ExitCode::Interrupted);
    }

    #[test]
    fn one_url_exits_by_its_kind() {
        use ErrorKind::*;
        for (kind, expected) in [
            (Refused, 1),
            (Other, 1),
            (Integrity, 4),
            (Network, 5),
            (Server, 5),
            (Disk, 6),
            (TooLarge, 12),
            (MaxTime, 10),
            (Interrupted, 130),
        ] {
            assert_eq!(code(&[failed(kind)], false), expected, "{kind:?}");
        }
    }

    #[test]
    fn lateness_matters_only_when_asked_and_nothing_failed() {
        assert_eq!(code(&[DONE, DONE], true), 0);
        assert_eq!(code(&[DONE, LATE], false), 0);
        assert_eq!(code(&[DONE, LATE], true), 11);
        assert_eq!(code(&[LATE, failed(ErrorKind::Network)], true), 3);
    }

    #[test]
    fn mixed_results_are_partial_unless_bytes_or_disk_are_wrong() {
        use ErrorKind::*;
        for (kind, expected) in [
            (Refused, 3),
            (Other, 3),
            (Network, 3),
            (Server, 3),
            (TooLarge, 3),
            (Integrity, 4),
            (Disk, 6),
            (MaxTime, 10),
            (Interrupted, 130),
        ] {
            assert_eq!(code(&[DONE, failed(kind)], false), expected, "{kind:?}");
            assert_eq!(code(&[failed(kind), DONE], false), expected, "{kind:?}");
        }
    }

    #[test]
    fn the_most_serious_failure_decides() {
        use ErrorKind::*;
        let order = [Network, Refused, Disk, Integrity, MaxTime, Interrupted];
        for (i, &low) in order.iter().enumerate() {
            for &high in &order[i..] {
                let expected = ExitCode::of_kind(high) as u8;
                assert_eq!(code(&[failed(low), failed(high)], false), expected);
                assert_eq!(code(&[failed(high), failed(low)], false), expected);
            }
        }
    }

    #[test]
    fn only_an_impossible_plan_fails() {
        for (verdict, code) in [
            (Verdict::Comfortable, 0),
            (Verdict::Tight, 0),
            (Verdict::Unknown, 0),
            (Verdict::Impossible, 11),
        ] {
            assert_eq!(ExitCode::of_verdict(verdict) as u8, code, "{verdict:?}");
        }
    }

    #[test]
    fn the_table_is_complete_and_sorted() {
        let codes: Vec<u8> = ExitCode::ALL.iter().map(|&code| code as u8).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 130]);
    }
}
