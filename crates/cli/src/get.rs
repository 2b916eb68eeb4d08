//! `fairbat get`: turns its flags into settings and makes the library call.

mod follow;
mod metalink;

use std::io;
use std::path::PathBuf;

use fairbat::download::{self, Arrivals, RunMode};
use fairbat::lane::{AdmissionSettings, InvalidSettings, LawChanges};
use fairbat::metalink::MetalinkFile;
use fairbat::settings::{
    FileAllocation, Http3Policy, HttpSettings, KnownFile, Mirror, Settings, Target, TransferRequest,
};

use self::follow::{Following, UrlReader};
use crate::args::{AllocationMethod, GetArgs, Http3Choice, LawName, ReceiverMethod, StreamArgs};
use crate::console::log_filter;
use crate::exit::ExitCode;
use crate::session::{self, Options, now, random_seed, warn_if_late};
use crate::settings::{
    Environment, UsageError, http, nonzero, optional_deadline, paths, retry, urls,
};

/// Default of `--max-connections` (m_max). Four connections are enough to catch up on a
/// long path, and no server minds them.
const DEFAULT_MAX_CONNECTIONS: u32 = 4;

/// Runs the command.
pub(crate) fn run(args: &GetArgs) -> ExitCode {
    let metalink = match metalink::read(args) {
        Ok(metalink) => metalink,
        Err(code) => return code,
    };
    let arguments = resolve(
        args,
        &mut Environment {
            now: &now(),
            variable: &|name| std::env::var_os(name),
            stdin: &mut io::stdin().lock(),
            seed: random_seed(),
        },
        metalink,
    );
    let arguments = arguments.and_then(|arguments| Ok((arguments, log_filter(&args.log)?)));
    session::with_valid(arguments, |((settings, work), filter)| {
        let options = Options {
            messages: &args.messages,
            log: &args.log,
            filter,
            fail_late: args.limits.fail_late,
            stopping: "stopping; run the same command again to resume",
        };
        match work {
            Downloads::Batch(requests) => session::run(options, |stop, events| {
                warn_if_late(requests.iter().filter_map(|request| request.deadline));
                download::run(settings, RunMode::Batch(requests), stop, events)
            }),
            Downloads::Follow(following) => {
                let (reader, requests) = UrlReader::new(following.first, following.target);
                let law = following.law;
                let skipped = reader.skipped();
                let code = session::run(options, |stop, events| {
                    reader.read(following.input);
                    let arrivals = Arrivals { requests, law };
                    download::run(settings, RunMode::Stream(arrivals), stop, events)
                });
                match code {
                    ExitCode::Done if skipped.has_any() => ExitCode::Usage,
                    code => code,
                }
            }
        }
    })
}

/// What a run downloads.
#[derive(Debug)]
pub(crate) enum Downloads {
    /// These files.
    Batch(Vec<TransferRequest>),
    /// Those whose URLs come.
    Follow(Following),
}

/// Turns the arguments into the arguments of the library call.
///
/// # Errors
/// The first invalid argument.
pub(crate) fn resolve(
    args: &GetArgs,
    environment: &mut Environment<'_>,
    metalink: Vec<MetalinkFile>,
) -> Result<(Settings, Downloads), UsageError> {
    let paths = paths::of_flags(&args.speed.paths)?;
    let settings = Settings {
        http: HttpSettings {
            early_data: args.speed.early_data,
            http3: http3(args.speed.receiver, args.requests.http3)?,
            ..http(&args.requests, &args.timeouts, environment.variable)?
        },
        paths,
        split: args.speed.split,
        max_connections: max_connections(args.speed.split, args.speed.max_connections)?,
        weight: args.speed.weight,
        max_weight: args.speed.max_weight,
        receiver: args.speed.receiver.into(),
        controller: args.speed.controller.into(),
        chunk_size: args.speed.chunk_size,
        file_allocation: match args.files.file_allocation {
            AllocationMethod::None => FileAllocation::None,
            AllocationMethod::Falloc => FileAllocation::Falloc,
        },
        retry: retry(&args.failures)?,
        limit_rate: args.limits.limit_rate.and_then(nonzero),
        max_size: args.files.max_size,
        machine: args.lane.machine("get", args.speed.weight),
        resume: args.files.resume,
        max_time: args.limits.max_time.and_then(nonzero),
        seed: args.messages.seed.unwrap_or(environment.seed),
    };
    let work = match &args.files.input_file {
        Some(input) if args.stream.follow => Downloads::Follow(Following {
            input: urls::checked(input)?.to_owned(),
            first: urls::given(&args.urls)?,
            target: target(args)?,
            law: law(&args.stream, &settings)?,
        }),
        _ => Downloads::Batch(transfers(args, environment, metalink)?),
    };
    Ok((settings, work))
}

/// When HTTP/3 is spoken: Vulture goes by packet intervals, which QUIC does not show.
fn http3(receiver: ReceiverMethod, when: Http3Choice) -> Result<Http3Policy, UsageError> {
    match (receiver, when) {
        (ReceiverMethod::Vulture, Http3Choice::Only) => Err(UsageError::new(
            "--receiver vulture goes by packet intervals, which HTTP/3 does not show: leave out \
             one of --receiver vulture and --http3 only",
        )),
        (ReceiverMethod::Vulture, Http3Choice::Auto) => Ok(Http3Policy::Never),
        (_, when) => Ok(when.into()),
    }
}

/// The law for a stream.
fn law(args: &StreamArgs, settings: &Settings) -> Result<AdmissionSettings, UsageError> {
    let max_connections = settings.max_connections;
    // Where none yields, less than one leaves an idle link unused: only if somebody asks.
    let least = (settings.weight >= 1.0).then_some(1.0);
    let named = match args.law {
        LawName::Damped => AdmissionSettings::stream(),
        LawName::Paper => AdmissionSettings::paper(),
    };
    let changes = LawChanges {
        tau: args.tau,
        gamma: args.gamma,
        kappa: args.kappa,
        m_min: args.min_connections.or(least),
    };
    named.changed(changes, max_connections).map_err(|wrong| {
        let what = match wrong {
            InvalidSettings::Target => "--tau must be a number above 0".to_owned(),
            InvalidSettings::Gain => "--gamma must be a number above 0".to_owned(),
            InvalidSettings::Damping => "--kappa must be a number from 0 on".to_owned(),
            InvalidSettings::Period | InvalidSettings::Limits => format!(
                "--min-connections must be above 0 and at most --max-connections, \
                 {max_connections}"
            ),
        };
        UsageError::new(what)
    })
}

fn max_connections(split: u32, given: Option<u32>) -> Result<u32, UsageError> {
    match given {
        None => Ok(DEFAULT_MAX_CONNECTIONS.max(split)),
        Some(max) if max < split => Err(UsageError::new(format!(
            "--max-connections {max} is less than --split {split}: raise the first or lower \
             the second"
        ))),
        Some(max) => Ok(max),
    }
}

fn transfers(
    args: &GetArgs,
    environment: &mut Environment<'_>,
    metalink: Vec<MetalinkFile>,
) -> Result<Vec<TransferRequest>, UsageError> {
    let deadline = optional_deadline(args.speed.deadline.as_deref(), environment.now)?;
    let checksum = &args.files.checksum;
    let urls = urls::all(&args.urls, args.files.input_file.as_deref(), environment)?;
    let count = urls.len() + metalink.len();
    let only_one = |flag: &str, advice: &str| {
        UsageError::new(format!(
            "{flag} is for one file, but there are {count}: {advice}"
        ))
    };
    if count > 1 && args.files.output.is_some() {
        return Err(only_one("--output", "use --directory for several"));
    }
    let mirrors = urls::mirrors(&args.files.mirrors)?;
    if count > 1 && !mirrors.is_empty() {
        let advice = "write the mirrors of each after it, in the lines of --input-file";
        return Err(only_one("--mirror", advice));
    }
    if count > 1 && checksum.is_some() {
        return Err(only_one("--checksum", "run one command for each"));
    }
    let target = target(args)?;
    let named = |url| Mirror {
        url,
        is_named: true,
    };
    let mirrors: Vec<Mirror> = mirrors.into_iter().map(named).collect();
    let request = |listed: urls::ListedUrl| TransferRequest {
        url: listed.url,
        mirrors: listed
            .mirrors
            .into_iter()
            .map(named)
            .chain(mirrors.clone())
            .collect(),
        target: target.clone(),
        deadline: listed.deadline.or(deadline),
        checksum: checksum.clone(),
        known: KnownFile::default(),
    };
    let mut requests: Vec<TransferRequest> = urls.into_iter().map(request).collect();
    for file in metalink {
        let mut request = metalink::request(file, &target);
        request.deadline = deadline;
        request.mirrors.extend(mirrors.clone());
        request.checksum = checksum.clone().or(request.checksum);
        requests.push(request);
    }
    Ok(requests)
}

/// Joins `--output` to `--directory`, as curl and aria2 do. So a directory from the
/// environment and a name on the command line go together.
fn target(args: &GetArgs) -> Result<Target, UsageError> {
    let directory = args.files.directory.clone();
    let Some(output) = &args.files.output else {
        return Ok(Target::Directory(directory.unwrap_or_default()));
    };
    if output.as_os_str() == "-" {
        return Err(UsageError::new(
            "--output -: a file that is checked before it appears cannot go to standard \
             output; name a file (./- for a file named -)",
        ));
    }
    if output.file_name().is_none() || output.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(UsageError::new(format!(
            "--output {}: not the name of a file; use --directory to name a directory",
            output.display()
        )));
    }
    let file = PathBuf::from(output);
    Ok(match directory {
        Some(directory) if file.is_relative() => Target::FileIn { directory, file },
        Some(_) | None => Target::File(file),
    })
}

#[cfg(test)]
mod tests;
