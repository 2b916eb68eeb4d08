//! `fairbat put`: resolve, call the library once, show what it reports, and
//! turn the result into an exit code.

use fairbat::upload::{self, UploadRequest, UploadSettings};
use tracing_subscriber::EnvFilter;

use crate::args::PutArgs;
use crate::clock;
use crate::exit::ExitCode;
use crate::log;
use crate::session::{self, Manner, random_seed, warn_if_late};
use crate::settings::{self, UsageError};

/// Runs the command.
pub(crate) fn run(args: &PutArgs) -> ExitCode {
    session::prepared(prepare(args), |prepared| transfer(args, prepared))
}

/// What is known to be right before anything starts.
struct Prepared {
    settings: UploadSettings,
    request: UploadRequest,
    filter: EnvFilter,
}

fn prepare(args: &PutArgs) -> Result<Prepared, UsageError> {
    let variable = |name: &str| std::env::var_os(name);
    let (settings, request) = settings::upload(args, &clock::now(), &variable, random_seed())?;
    Ok(Prepared {
        settings,
        request,
        filter: log::filter(&args.log)?,
    })
}

fn transfer(args: &PutArgs, prepared: Prepared) -> ExitCode {
    let Prepared {
        settings,
        request,
        filter,
    } = prepared;
    let manner = Manner {
        messages: &args.messages,
        log: &args.log,
        filter,
        fail_late: args.pace.fail_late,
        stopping: "stopping; the same command starts the upload over",
    };
    session::run(manner, |stop, events| {
        warn_if_late(request.deadline);
        upload::run(settings, request, stop, events)
    })
}
