//! The log for people: what to log, and where it goes.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::args::LogArgs;
use crate::console::Console;
use crate::settings::UsageError;

/// What to log: `FAIRBAT_LOG`, else by `--verbose` and `--quiet`.
///
/// # Errors
/// `FAIRBAT_LOG` is no filter.
pub(crate) fn filter(args: &LogArgs) -> Result<EnvFilter, UsageError> {
    let directives = match std::env::var("FAIRBAT_LOG") {
        Ok(directives) if !directives.is_empty() => directives,
        _ => match (args.verbose, args.quiet) {
            (0, true) => "error",
            (0, false) => "warn",
            (1, _) => "warn,fairbat=info,dalbe=info",
            (2, _) => "warn,fairbat=debug,dalbe=debug",
            _ => "debug,fairbat=trace,dalbe=trace",
        }
        .to_owned(),
    };
    EnvFilter::builder().parse(&directives).map_err(|error| {
        UsageError::new(format!(
            "FAIRBAT_LOG={directives}: {error}; write a level (info) or TARGET=LEVEL,..."
        ))
    })
}

/// Begins to log on this console.
pub(crate) fn begin(filter: EnvFilter, args: &LogArgs, console: &Console) {
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(console.clone())
        .event_format(Lines(
            tracing_subscriber::fmt::format()
                .with_target(args.verbose > 0)
                .with_level(false)
                .without_time(),
        ))
        .init();
}

/// Records that begin as all other lines for people do: `warning: ...`.
struct Lines(Format<Full, ()>);

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        write!(writer, "{level}: ")?;
        self.0.format_event(context, writer, event)
    }
}
