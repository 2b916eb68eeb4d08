//! Why credentials cannot be had, and what to do.

use std::io;
use std::path::PathBuf;

use super::Wanted;

/// Why credentials cannot be had. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// There is no directory of credentials.
    #[error(
        "credential {0:?}: $CREDENTIALS_DIRECTORY is not set; systemd sets it for a service with \
         LoadCredential={0}:FILE. Elsewhere write the absolute path of a file"
    )]
    NoDirectory(String),
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A directory, a pipe, a device.
    #[error("{}: not a regular file", .0.display())]
    NoFile(PathBuf),
    /// Others may read the file.
    #[error("{}: others may use it (mode {mode:04o}); run chmod 600 {0}, and take new credentials \
        if others are not to be trusted", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// More than credentials take.
    #[error("{}: larger than 64 KiB, so these are no credentials", .0.display())]
    TooLarge(PathBuf),
    /// Bytes that are no text.
    #[error("{}: not UTF-8", .0.display())]
    NotUtf8(PathBuf),
    /// A line of another form.
    #[error("{}:{line}: {what}; write lines of the form KEY = VALUE with {}",
        path.display(), keys(*wanted))]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
        /// What should be in the file.
        wanted: Wanted,
    },
    /// A combination that a store does not take.
    #[error("{from}: {what}; {}", keys(*wanted))]
    Incomplete {
        /// The file, or the environment.
        from: String,
        /// What is wrong.
        what: &'static str,
        /// What should be there.
        wanted: Wanted,
    },
    /// A variable that is no text.
    #[error("${0} is not UTF-8")]
    Variable(String),
}

/// What a store takes.
fn keys(wanted: Wanted) -> &'static str {
    match wanted {
        Wanted::Keys => "access_key_id and secret_access_key, and session_token if there is one",
        Wanted::Login => "user and password, or token alone",
    }
}
