//! `fairbat doctor --path`: looks at a path and says what kind of bottleneck it has. Writes
//! no file.

use std::fmt::{self, Display};
use std::time::Duration;

use dalbe::receive_window::BottleneckKind;
use fairbat::http::without_credentials;
use fairbat::path_measurement::diagnosis::{PathDiagnosis, diagnose};
use fairbat::settings::HttpSettings;
use indicatif::BinaryBytes;
use serde::Serialize;
use url::Url;

use crate::args::DoctorArgs;
use crate::console::{Console, WIDTH, log_filter, per_second, shown, start_log, wrapped};
use crate::exit::ExitCode;
use crate::session;
use crate::settings::{UsageError, http, urls};

/// Runs the command for the path to this URL.
pub(crate) fn run(url: &str, args: &DoctorArgs) -> ExitCode {
    let arguments = resolve(url, args);
    let arguments = arguments.and_then(|request| Ok((request, log_filter(&args.log)?)));
    session::with_valid(arguments, |(request, filter)| {
        let console = Console::plain();
        start_log(filter, &args.log, &console);
        let url = without_credentials(&request.url);
        if !args.log.quiet {
            let limit = request.measure;
            console.line(&format!("downloading from {url}, for at most {limit:?}"));
        }
        let call = diagnose(&request.http, &request.url, request.measure);
        match session::ask(&console, &url, call) {
            Ok(seen) => print(&DiagnosisReport::new(url.into(), &seen), args.messages.json),
            Err(code) => code,
        }
    })
}

/// The arguments, checked: what kind of bottleneck is on this path?
#[derive(Debug)]
struct DiagnosisRequest {
    url: Url,
    measure: Duration,
    http: HttpSettings,
}

/// Checks the arguments.
///
/// # Errors
/// The first invalid argument.
fn resolve(url: &str, args: &DoctorArgs) -> Result<DiagnosisRequest, UsageError> {
    if args.measure.is_zero() {
        return Err(UsageError::new(
            "--measure 0: a path shows nothing in no time; leave the flag out",
        ));
    }
    let variable = |name: &str| std::env::var_os(name);
    Ok(DiagnosisRequest {
        url: urls::one(url)?,
        measure: args.measure,
        http: http(&args.requests, &args.timeouts, &variable)?,
    })
}

fn print(report: &DiagnosisReport, json: bool) -> ExitCode {
    let text = if json {
        serde_json::to_string(report).expect("numbers, texts and options only")
    } else {
        report.to_string()
    };
    shown(&text)
}

/// The report. Its field names are an interface, described in `docs/json.md`.
#[derive(Debug, Serialize)]
struct DiagnosisReport {
    /// The URL as given, without credentials.
    url: String,
    bottleneck: Option<BottleneckKind>,
    /// What was seen, and what it means.
    explanation: String,
    /// How well a download yields there.
    yielding: &'static str,
    /// The highest rate over some round trips, byte/s.
    rate: Option<f64>,
    base_rtt_ms: Option<f64>,
    longest_queue_ms: Option<f64>,
    measured_s: f64,
    /// Fetched, and thrown away.
    measured_bytes: u64,
    /// Size, bytes.
    bytes: Option<u64>,
}

impl DiagnosisReport {
    fn new(url: String, seen: &PathDiagnosis) -> Self {
        let kind = seen.findings.and_then(|findings| findings.kind);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Self {
            url,
            bottleneck: kind,
            explanation: kind.map_or_else(|| unknown(seen), |kind| kind.explanation().to_owned()),
            yielding: if seen.is_held {
                kind.map_or(UNKNOWN_YIELDING, BottleneckKind::yielding)
            } else {
                NOT_HELD
            },
            rate: seen.findings.map(|findings| findings.rate),
            base_rtt_ms: seen.findings.map(|findings| ms(findings.base)),
            longest_queue_ms: seen.findings.map(|findings| ms(findings.longest_queue)),
            measured_s: seen.elapsed.as_secs_f64(),
            measured_bytes: seen.fetched,
            bytes: seen.bytes,
        }
    }
}

const UNKNOWN_YIELDING: &str = "Unknown. FAIRBAT leaves others nearly everything where the queue \
    is deep, more than curl does where it is short or managed, and about as much as curl where \
    packets are lost without a queue.";

const NOT_HELD: &str = "Not at all: this machine does not allow to hold a receive window. \
    fairbat doctor without --path says why.";

/// Why the kind is not known, and what to do.
fn unknown(seen: &PathDiagnosis) -> String {
    if !seen.is_held {
        return "Unknown. Nothing shows where a receive window cannot be held.".to_owned();
    }
    let seconds = seen.elapsed.as_secs_f64();
    if seen.has_ended {
        return format!(
            "Unknown. The file is too small to tell: all of it came in {seconds:.1} s. Name a \
             larger one."
        );
    }
    format!(
        "Unknown. {seconds:.0} s did not show enough full queues and losses to tell, or other \
         traffic hid them. Try a longer --measure, or while others are quiet."
    )
}

impl Display for DiagnosisReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.bottleneck.map_or("unknown", BottleneckKind::name);
        writeln!(f, "Bottleneck: {name}")?;
        for line in wrapped(&self.explanation, WIDTH - 2) {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "\nHow well a download yields there")?;
        for line in wrapped(self.yielding, WIDTH - 2) {
            writeln!(f, "  {line}")?;
        }
        let unknown = || "unknown".to_owned();
        let rate = self.rate.map(per_second);
        let ms = |ms: Option<f64>| ms.map_or_else(unknown, |ms| format!("{ms:.1} ms"));
        writeln!(f, "\nrate           {}", rate.unwrap_or_else(unknown))?;
        writeln!(
            f,
            "round trip     {}, without a queue",
            ms(self.base_rtt_ms)
        )?;
        writeln!(f, "longest queue  {}", ms(self.longest_queue_ms))?;
        let bytes = BinaryBytes(self.measured_bytes);
        write!(
            f,
            "measured       {bytes} in {:.1} s, thrown away",
            self.measured_s
        )
    }
}

#[cfg(test)]
mod tests;
