//! `fairbat plan`: look at a file, forecast, tell the answer on standard
//! output. Writes no file.

mod answer;

use std::io::{self, Write};

use fairbat::error::{ErrorKind, TransferError};
use fairbat::http::without_credentials;
use fairbat::path_measurement::{PathMeasurement, survey};
use tracing_subscriber::EnvFilter;

use self::answer::Answer;
use crate::args::PlanArgs;
use crate::clock;
use crate::console::Console;
use crate::exit::ExitCode;
use crate::log;
use crate::progress::failed;
use crate::settings::{self, Question, UsageError};
use crate::signals::Signals;

/// Runs the command.
pub(crate) fn run(args: &PlanArgs) -> ExitCode {
    let console = Console::plain();
    let (question, filter) = match prepare(args) {
        Ok(prepared) => prepared,
        Err(error) => {
            console.line(&format!("error: {error}"));
            return ExitCode::Usage;
        }
    };
    log::begin(filter, &args.log, &console);
    let url = without_credentials(&question.url);
    if !args.log.quiet && !question.measure.is_zero() {
        let most = question.measure;
        console.line(&format!("looking at {url}, for at most {most:?}"));
    }
    match look(&question) {
        Ok(survey) => {
            let answer = Answer::new(&question, &survey, &clock::now());
            tell(&answer, args.messages.json)
        }
        Err(error) => {
            let said = failed(url.as_str(), error.kind, &error.message, &error.hint);
            said.iter().for_each(|text| console.line(text));
            ExitCode::of_kind(error.kind)
        }
    }
}

fn prepare(args: &PlanArgs) -> Result<(Question, EnvFilter), UsageError> {
    let variable = |name: &str| std::env::var_os(name);
    Ok((
        settings::question(args, &clock::now(), &variable)?,
        log::filter(&args.log)?,
    ))
}

/// The one library call, until a signal ends it.
fn look(question: &Question) -> Result<PathMeasurement, TransferError> {
    let other = |what: &str, error: &io::Error| {
        TransferError::new(ErrorKind::Other, format!("{what}: {error}"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| other("cannot start", &error))?;
    let result = runtime.block_on(async {
        let mut signals =
            Signals::listen().map_err(|error| other("cannot catch signals", &error))?;
        tokio::select! {
            survey = survey(&question.http, &question.url, question.measure) => survey,
            () = signals.next() => {
                Err(TransferError::new(ErrorKind::Interrupted, "interrupted"))
            }
        }
    });
    // The name service may be asked in a thread that would be waited for.
    runtime.shutdown_background();
    result
}

fn tell(answer: &Answer, json: bool) -> ExitCode {
    let mut text = if json {
        answer.json()
    } else {
        answer.to_string()
    };
    text.push('\n');
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match crate::written(written) {
        ExitCode::Done => ExitCode::of_verdict(answer.verdict),
        failed => failed,
    }
}
