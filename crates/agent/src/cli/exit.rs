//! The exit codes: one table for the process and the help.

/// What the process tells its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ExitCode {
    /// Everything is well, but for what was warned of.
    Done = 0,
    /// The configuration cannot be read, the agent cannot start, a store cannot be
    /// reached, or the answer not be written.
    Other = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
}

/// The same, for the help.
pub(crate) const EXIT_STATUS: &str = "Exit status:\n  \
    0  fine, but perhaps for warnings\n  \
    1  the configuration cannot be read, or something failed\n  \
    2  the configuration or the command line is wrong";

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
