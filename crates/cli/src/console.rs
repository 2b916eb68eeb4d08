//! Standard error, for people: messages and log records, above the progress bars. And the
//! lines of text for people on standard output.

use std::fmt;
use std::io::{self, Write};

use fairbat::printable::printable;
use indicatif::{BinaryBytes, MultiProgress};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use crate::args::LogArgs;
use crate::exit::ExitCode;
use crate::settings::UsageError;

/// Columns of a text line on standard output.
pub(crate) const WIDTH: usize = 80;

/// Writes lines to standard error, above the progress bars if there are any.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    bars: Option<MultiProgress>,
}

impl Console {
    /// Standard error without progress bars.
    pub(crate) fn plain() -> Self {
        Self { bars: None }
    }

    /// Standard error with these progress bars at the bottom.
    pub(crate) fn with_bars(bars: MultiProgress) -> Self {
        Self { bars: Some(bars) }
    }

    /// Writes `text`, which may have several lines, and a line break.
    pub(crate) fn line(&self, text: &str) {
        let lines: Vec<_> = text.split('\n').map(printable).collect();
        let text = lines.join("\n");
        // An error of standard error cannot be reported anywhere.
        let _ = match &self.bars {
            Some(bars) => bars.println(text),
            None => writeln!(io::stderr(), "{text}"),
        };
    }
}

/// The exit code of a command that only writes to standard output. A closed pipe is no
/// error: in `fairbat man | head`, the reader is satisfied.
pub(crate) fn written(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::Done,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::Done,
        Err(error) => {
            Console::plain().line(&format!("error: {error}"));
            ExitCode::Other
        }
    }
}

/// Writes an answer to standard output.
pub(crate) fn shown(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    written(writeln!(out, "{text}").and_then(|()| out.flush()))
}

/// A rate for people, from byte/s; a rate beyond u64 is cut off.
pub(crate) fn per_second(rate: f64) -> String {
    format!("{}/s", BinaryBytes(rate as u64))
}

/// The log filter: `FAIRBAT_LOG`, or else the one for `--verbose` and `--quiet`.
///
/// # Errors
/// `FAIRBAT_LOG` is not a filter.
pub(crate) fn log_filter(args: &LogArgs) -> Result<EnvFilter, UsageError> {
    let directives = match std::env::var("FAIRBAT_LOG") {
        Ok(directives) if !directives.is_empty() => directives,
        _ => match (args.verbose, args.quiet) {
            (0, true) => "error",
            // A packet that cannot be sent is a lost one, which QUIC sends again.
            (0, false) => "warn,quinn_udp=error",
            (1, _) => "warn,quinn_udp=error,fairbat=info,dalbe=info",
            (2, _) => "warn,fairbat=debug,dalbe=debug",
            _ => "debug,fairbat=trace,dalbe=trace",
        }
        .to_owned(),
    };
    EnvFilter::builder().parse(&directives).map_err(|error| {
        UsageError::new(format!(
            "FAIRBAT_LOG={directives}: {error}; write a level such as info, or TARGET=LEVEL,..."
        ))
    })
}

/// Starts the log on this console.
pub(crate) fn start_log(filter: EnvFilter, args: &LogArgs, console: &Console) {
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(console.clone())
        .event_format(LogFormat(
            tracing_subscriber::fmt::format()
                .with_target(args.verbose > 0)
                .with_level(false)
                .without_time(),
        ))
        .init();
}

/// Writes log records in the form of all other messages: `warning: ...`.
struct LogFormat(Format<Full, ()>);

impl<S, N> FormatEvent<S, N> for LogFormat
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

impl MakeWriter<'_> for Console {
    type Writer = LogRecord;

    fn make_writer(&self) -> LogRecord {
        LogRecord(self.clone())
    }
}

/// Takes one log record. `tracing-subscriber` writes each record with a single call.
pub(crate) struct LogRecord(Console);

impl Write for LogRecord {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(record);
        self.0.line(&printable(text.trim_end_matches('\n')));
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The text in lines of at most `width` bytes, broken between words.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("starts with one line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
