//! From raw arguments to what the library takes: every value is parsed and
//! checked here, and every complaint says what to do instead.
//!
//! It must not read a clock, a terminal or the environment by itself: all of
//! that is in [`Surroundings`].

mod agent;
mod attributes;
mod plan;
mod put;
mod requests;
mod urls;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::BufRead;
use std::path::PathBuf;
use std::time::Duration;

use dalbe::receive_window::ReceiverPolicy;
use dalbe::weight::MIN_WEIGHT;
use fairbat::settings::{
    FileAllocation, HttpSettings, RetrySettings, Settings, Target, TransferRequest,
};
use fairbat::units::parse_duration;
use fairbat::units::{DeadlineError, parse_deadline};
use fairbat::units::{SizeError, parse_size};

pub(crate) use self::agent::{addition, restoration};
pub(crate) use self::plan::{Question, question};
pub(crate) use self::put::upload;
use crate::args::{
    AllocationMethod, FailureArgs, GetArgs, ReceiverMethod, RequestArgs, TimeoutArgs,
};

/// m_max when nobody says otherwise: enough to catch up on a long path, few
/// enough for any server.
const MAX_CONNECTIONS: u32 = 4;
/// Failures in a row before a transfer is given up: with the default waits
/// some eight minutes without a network.
const RETRIES: u32 = 20;
/// The same before the first answer, when a mistyped host is more likely than
/// a bad network: a few seconds.
const RETRIES_BEFORE_CONTACT: u32 = 5;
/// Longest wait between two tries.
const RETRY_MAX_WAIT: Duration = Duration::from_secs(30);

/// What the command line or the environment got wrong, and what to do.
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

/// Everything outside the command line that the settings depend on.
pub(crate) struct Surroundings<'a> {
    /// The present moment, in the local time zone.
    pub(crate) now: &'a jiff::Zoned,
    /// Reads an environment variable.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Standard input.
    pub(crate) stdin: &'a mut dyn BufRead,
    /// The seed, unless one was given.
    pub(crate) seed: u64,
}

/// Turns the arguments of `fairbat get` into a library call.
///
/// # Errors
/// The first thing that is wrong with them.
pub(crate) fn resolve(
    args: &GetArgs,
    around: &mut Surroundings<'_>,
) -> Result<(Settings, Vec<TransferRequest>), UsageError> {
    let settings = Settings {
        http: http(&args.requests, &args.timeouts, around.variable)?,
        split: args.pace.split,
        max_connections: max_connections(args.pace.split, args.pace.max_connections)?,
        weight: value("--weight", &args.pace.weight, weight)?,
        receiver: match args.pace.receiver {
            ReceiverMethod::Delay => ReceiverPolicy::Delay,
            ReceiverMethod::Vulture => ReceiverPolicy::Vulture,
        },
        chunk_size: optional("--chunk-size", &args.pace.chunk_size, parse_size)?,
        file_allocation: match args.files.file_allocation {
            AllocationMethod::None => FileAllocation::None,
            AllocationMethod::Falloc => FileAllocation::Falloc,
        },
        retry: retry(&args.failures)?,
        limit_rate: optional("--limit-rate", &args.pace.limit_rate, rate)?.flatten(),
        resume: args.files.resume,
        max_time: max_time(&args.pace.max_time)?,
        seed: args.messages.seed.unwrap_or(around.seed),
    };
    Ok((settings, transfers(args, around)?))
}

/// Parses the value of a flag; the complaint names the flag.
fn value<T, E: Display>(
    flag: &str,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, UsageError> {
    parse(text).map_err(|error| UsageError(format!("{flag}: {error}")))
}

fn optional<T, E: Display>(
    flag: &str,
    text: &Option<String>,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, UsageError> {
    text.as_deref()
        .map(|text| value(flag, text, parse))
        .transpose()
}

/// Parses the limit on the time of a run, of which zero means none.
fn max_time(text: &Option<String>) -> Result<Option<Duration>, UsageError> {
    let time = optional("--max-time", text, parse_duration)?;
    Ok(time.filter(|time| !time.is_zero()))
}

/// Parses a timeout, of which zero means never.
fn timeout(flag: &str, text: &str) -> Result<Option<Duration>, UsageError> {
    let timeout = value(flag, text, parse_duration)?;
    Ok(Some(timeout).filter(|timeout| !timeout.is_zero()))
}

fn max_connections(split: u32, given: Option<u32>) -> Result<u32, UsageError> {
    match given {
        None => Ok(MAX_CONNECTIONS.max(split)),
        Some(max) if max < split => Err(UsageError(format!(
            "--max-connections {max} is less than --split {split}: raise the one or lower \
             the other"
        ))),
        Some(max) => Ok(max),
    }
}

/// Parses a ceiling on the rate, of which zero means none: so the command
/// line can lift one from the environment.
fn rate(text: &str) -> Result<Option<u64>, SizeError> {
    match parse_size(text) {
        Err(SizeError::Zero(_)) => Ok(None),
        rate => rate.map(Some),
    }
}

/// Parses the least weight of a connection.
fn weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok();
    weight
        .filter(|weight| (MIN_WEIGHT..=1.0).contains(weight))
        .ok_or_else(|| {
            format!(
                "{text:?} is not a weight; write a number from {MIN_WEIGHT} (yields to anybody) \
                 to 1 (never yields), such as 0.3"
            )
        })
}

/// Parses a deadline; one that is over counts too. It is soft, and the command
/// that missed it must still be able to finish the job when it is run again.
fn deadline(text: &str, now: &jiff::Zoned) -> Result<jiff::Timestamp, DeadlineError> {
    match parse_deadline(text, now) {
        Err(DeadlineError::Past { moment, .. }) => Ok(moment),
        deadline => deadline,
    }
}

fn retry(flags: &FailureArgs) -> Result<RetrySettings, UsageError> {
    let (limit, limit_before_contact) = match flags.retry.as_deref() {
        None => (Some(RETRIES), Some(RETRIES_BEFORE_CONTACT)),
        Some("inf") => (None, None),
        Some(text) => {
            let limit = text.parse().map_err(|_| {
                UsageError(format!(
                    "--retry: {text:?} is not a whole number; write one, or inf to never give up"
                ))
            })?;
            (Some(limit), Some(limit))
        }
    };
    let base = value("--retry-wait", &flags.retry_wait, parse_duration)?;
    let given = &flags.retry_max_wait;
    let cap = match optional("--retry-max-wait", given, parse_duration)? {
        None => RETRY_MAX_WAIT.max(base),
        Some(cap) if cap < base => {
            return Err(UsageError::new(
                "--retry-max-wait is less than --retry-wait: raise the one or lower the other",
            ));
        }
        Some(cap) => cap,
    };
    Ok(RetrySettings {
        limit,
        limit_before_contact,
        base,
        cap,
    })
}

fn http(
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
            .map(|line| requests::header(line))
            .collect::<Result<_, _>>()?,
        user: flags.user.as_deref().map(requests::user).transpose()?,
        netrc: match flags.netrc {
            true => Some(requests::netrc_path(variable)?),
            false => None,
        },
        cacert: flags.cacert.clone(),
        connect_timeout: timeout("--connect-timeout", &timeouts.connect_timeout)?,
        stall_timeout: timeout("--stall-timeout", &timeouts.stall_timeout)?,
    })
}

fn transfers(
    args: &GetArgs,
    around: &mut Surroundings<'_>,
) -> Result<Vec<TransferRequest>, UsageError> {
    let deadline = optional("--deadline", &args.pace.deadline, |text| {
        deadline(text, around.now)
    })?;
    let checksum = optional("--checksum", &args.files.checksum, str::parse)?;
    let urls = urls::all(&args.urls, args.files.input_file.as_deref(), around)?;
    if urls.len() > 1 {
        if args.files.output.is_some() {
            return Err(only_one(
                "--output",
                urls.len(),
                "use --directory for several",
            ));
        }
        if checksum.is_some() {
            return Err(only_one("--checksum", urls.len(), "run one command each"));
        }
    }
    let target = target(args)?;
    Ok(urls
        .into_iter()
        .map(|named| TransferRequest {
            url: named.url,
            target: target.clone(),
            deadline: named.attributes.deadline.or(deadline),
            checksum: checksum.clone(),
        })
        .collect())
}

fn only_one(flag: &str, urls: usize, advice: &str) -> UsageError {
    UsageError(format!(
        "{flag} is for one URL, but there are {urls}: {advice}"
    ))
}

/// `--output` within `--directory`, as curl and aria2 join them: so a
/// directory from the environment does not stand against a name on the
/// command line.
fn target(args: &GetArgs) -> Result<Target, UsageError> {
    let directory = args.files.directory.clone();
    let Some(output) = &args.files.output else {
        return Ok(Target::Directory(directory.unwrap_or_default()));
    };
    if output.as_os_str() == "-" {
        return Err(UsageError::new(
            "--output -: a file that is checked before it appears cannot go to standard \
             output; name a file (./- for one called -)",
        ));
    }
    if output.file_name().is_none() || output.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(UsageError(format!(
            "--output {}: not the name of a file; use --directory to name a directory",
            output.display()
        )));
    }
    Ok(Target::File(match directory {
        Some(directory) => directory.join(output),
        None => PathBuf::from(output),
    }))
}

#[cfg(test)]
mod tests;
