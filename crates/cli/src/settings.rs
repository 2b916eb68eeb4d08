//! Values of the command line, parsed and checked. Each error names the flag and says
//! what to write instead.
//!
//! Nothing here reads a clock, a terminal or the environment: [`Environment`] carries
//! what the settings depend on.

pub(crate) mod paths;
pub(crate) mod urls;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::BufRead;
use std::path::PathBuf;
use std::time::Duration;

use fairbat::retry::DEFAULT_MAX_RETRY_AFTER;
use fairbat::settings::{Credentials, HttpSettings, RetrySettings};
use fairbat::units::{DeadlineError, parse_deadline};
use http::{HeaderName, HeaderValue, header};

use crate::args::{FailureArgs, RequestArgs, TimeoutArgs};

/// Failures in a row before a transfer is given up. With the default waits, that is
/// about eight minutes without a network.
const DEFAULT_RETRIES: u32 = 20;
/// The same before the first answer of a server: a few seconds. At that point, a typing
/// error in the host name is more likely than a bad network.
const DEFAULT_RETRIES_BEFORE_CONTACT: u32 = 5;
/// Longest wait between two tries.
const DEFAULT_RETRY_MAX_WAIT: Duration = Duration::from_secs(30);

/// Headers that decide which bytes arrive and how they are framed. fairbat sets them
/// itself: with other values, the file would be wrong.
const RESERVED_HEADERS: [HeaderName; 15] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::EXPECT,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// An error of the command line or of a variable, with advice.
#[derive(Debug)]
pub(crate) struct UsageError(String);

impl UsageError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Everything outside the command line that settings depend on.
pub(crate) struct Environment<'a> {
    /// The present moment in the local time zone.
    pub(crate) now: &'a jiff::Zoned,
    /// Reads an environment variable.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Standard input.
    pub(crate) stdin: &'a mut dyn BufRead,
    /// The seed for a run without `--seed`.
    pub(crate) seed: u64,
}

/// A limit of a flag; zero means none.
pub(crate) fn nonzero<T: Default + PartialEq>(limit: T) -> Option<T> {
    Some(limit).filter(|limit| *limit != T::default())
}

/// Parses a deadline. A deadline in the past is valid: it is soft, and a second run of
/// the same command must still be able to finish the transfer.
pub(crate) fn deadline(text: &str, now: &jiff::Zoned) -> Result<jiff::Timestamp, DeadlineError> {
    match parse_deadline(text, now) {
        Err(DeadlineError::Past { moment, .. }) => Ok(moment),
        deadline => deadline,
    }
}

/// Parses `--deadline`.
pub(crate) fn deadline_flag(text: &str, now: &jiff::Zoned) -> Result<jiff::Timestamp, UsageError> {
    deadline(text, now).map_err(|error| UsageError(format!("--deadline: {error}")))
}

/// Parses `--deadline` if it is given.
pub(crate) fn optional_deadline(
    text: Option<&str>,
    now: &jiff::Zoned,
) -> Result<Option<jiff::Timestamp>, UsageError> {
    text.map(|text| deadline_flag(text, now)).transpose()
}

/// Resolves the flags for failures.
pub(crate) fn retry(flags: &FailureArgs) -> Result<RetrySettings, UsageError> {
    let (limit, limit_before_contact) = match flags.retry {
        None => (Some(DEFAULT_RETRIES), Some(DEFAULT_RETRIES_BEFORE_CONTACT)),
        Some(limit) => (limit, limit),
    };
    let base = flags.retry_wait;
    let cap = match flags.retry_max_wait {
        None => DEFAULT_RETRY_MAX_WAIT.max(base),
        Some(cap) if cap < base => {
            return Err(UsageError::new(
                "--retry-max-wait is less than --retry-wait: raise the first or lower the second",
            ));
        }
        Some(cap) => cap,
    };
    Ok(RetrySettings {
        limit,
        limit_before_contact,
        base,
        cap,
        max_retry_after: flags.retry_max_wait.unwrap_or(DEFAULT_MAX_RETRY_AFTER),
    })
}

/// Resolves the flags for requests and timeouts.
pub(crate) fn http(
    flags: &RequestArgs,
    timeouts: &TimeoutArgs,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<HttpSettings, UsageError> {
    Ok(HttpSettings {
        headers: flags
            .header
            .iter()
            // FAIRBAT_HEADER may end with a line break.
            .filter(|line| !line.trim().is_empty())
            .map(|line| request_header(line))
            .collect::<Result<_, _>>()?,
        user: flags.user.as_deref().map(user).transpose()?,
        netrc: match flags.netrc {
            true => Some(netrc_path(variable)?),
            false => None,
        },
        cacert: flags.cacert.clone(),
        has_flags: true,
        local_end: None,
        connect_timeout: nonzero(timeouts.connect_timeout),
        stall_timeout: nonzero(timeouts.stall_timeout),
        http3: flags.http3.into(),
        early_data: false,
        http3_memory: cache_directory(variable).map(|cache| cache.join("http3.json")),
    })
}

/// Where FAIRBAT keeps what can be found out again (XDG Base Directory Specification).
fn cache_directory(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|it| it.is_absolute())
    };
    let home = || Some(absolute("HOME")?.join(".cache"));
    let cache = absolute("XDG_CACHE_HOME").or_else(home)?;
    Some(cache.join("fairbat"))
}

/// Parses `Name: value`. Errors never show the value: it may be a secret.
fn request_header(line: &str) -> Result<(HeaderName, HeaderValue), UsageError> {
    let Some((name, value)) = line.split_once(':') else {
        return Err(UsageError::new(
            "--header: there is no colon; write 'Name: value'",
        ));
    };
    let name = name.trim();
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        UsageError(format!(
            "--header: '{name}' is not the name of a header; write 'Name: value'"
        ))
    })?;
    if RESERVED_HEADERS.contains(&name) {
        return Err(UsageError(format!(
            "--header: fairbat sets {name} itself; leave it out"
        )));
    }
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| {
        UsageError(format!(
            "--header: the value of {name} has characters that a header cannot carry"
        ))
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Parses `USER:PASSWORD`. The password may contain colons and may be empty. The error
/// does not show the text: it may be a password.
fn user(text: &str) -> Result<Credentials, UsageError> {
    let Some((user, password)) = text.split_once(':') else {
        return Err(UsageError::new(
            "--user: there is no colon; write USER:PASSWORD, or USER: for an empty password",
        ));
    };
    Ok(Credentials {
        user: user.to_owned(),
        password: password.to_owned(),
    })
}

/// The path of the netrc file: `$NETRC`, or else `~/.netrc`.
fn netrc_path(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, UsageError> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(path) = set("NETRC") {
        return Ok(path.into());
    }
    match set("HOME") {
        Some(home) => Ok(PathBuf::from(home).join(".netrc")),
        None => Err(UsageError::new(
            "--netrc: neither NETRC nor HOME is set; set NETRC to the path of the file",
        )),
    }
}
