//! `fairbat get`: resolve, call the library once, show what it reports, and
//! turn the result into an exit code.

use std::io;

use fairbat::download::{self, RunMode};
use fairbat::settings::{Settings, TransferRequest};
use tracing_subscriber::EnvFilter;

use crate::args::GetArgs;
use crate::clock;
use crate::exit::ExitCode;
use crate::log;
use crate::session::{self, Manner, random_seed, warn_if_late};
use crate::settings::{self, Surroundings, UsageError};

/// Runs the command.
pub(crate) fn run(args: &GetArgs) -> ExitCode {
    session::prepared(prepare(args), |prepared| transfer(args, prepared))
}

/// What is known to be right before anything starts.
struct Prepared {
    settings: Settings,
    requests: Vec<TransferRequest>,
    filter: EnvFilter,
}

fn prepare(args: &GetArgs) -> Result<Prepared, UsageError> {
    let (settings, requests) = settings::resolve(
        args,
        &mut Surroundings {
            now: &clock::now(),
            variable: &|name| std::env::var_os(name),
            stdin: &mut io::stdin().lock(),
            seed: random_seed(),
        },
    )?;
    Ok(Prepared {
        settings,
        requests,
        filter: log::filter(&args.log)?,
    })
}

fn transfer(args: &GetArgs, prepared: Prepared) -> ExitCode {
    let Prepared {
        settings,
        requests,
        filter,
    } = prepared;
    let manner = Manner {
        messages: &args.messages,
        log: &args.log,
        filter,
        fail_late: args.pace.fail_late,
        stopping: "stopping; run the same command again to resume",
    };
    session::run(manner, |stop, events| {
        warn_if_late(requests.iter().filter_map(|request| request.deadline));
        download::run(settings, RunMode::Batch(requests), stop, events)
    })
}
