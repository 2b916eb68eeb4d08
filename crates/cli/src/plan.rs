//! `fairbat plan`: measures the path to a file and prints a forecast. Writes no file.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::time::Duration;

use fairbat::http::without_credentials;
use fairbat::path_measurement::forecast::{Forecast, Verdict};
use fairbat::path_measurement::{PathMeasurement, survey};
use fairbat::settings::HttpSettings;
use indicatif::BinaryBytes;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde::Serialize;
use url::Url;

use crate::args::PlanArgs;
use crate::console::{Console, log_filter, per_second, shown, start_log};
use crate::exit::ExitCode;
use crate::session::{self, now};
use crate::settings::{UsageError, deadline_flag, http, urls};

/// Runs the command.
pub(crate) fn run(args: &PlanArgs) -> ExitCode {
    let variable = |name: &str| std::env::var_os(name);
    let arguments = resolve(args, &now(), &variable);
    let arguments = arguments.and_then(|request| Ok((request, log_filter(&args.log)?)));
    session::with_valid(arguments, |(request, filter)| {
        let console = Console::plain();
        start_log(filter, &args.log, &console);
        let url = without_credentials(&request.url);
        if !args.log.quiet && !request.measure.is_zero() {
            let limit = request.measure;
            console.line(&format!("looking at {url}, for at most {limit:?}"));
        }
        let call = survey(&request.http, &request.url, request.measure);
        match session::ask(&console, &url, call) {
            Ok(measured) => print(
                &ForecastReport::new(&request, &measured, &now()),
                args.messages.json,
            ),
            Err(code) => code,
        }
    })
}

/// The arguments, checked: can this file be here by then?
#[derive(Debug)]
struct ForecastRequest {
    url: Url,
    deadline: Timestamp,
    /// Longest time of the measurement; zero means none.
    measure: Duration,
    http: HttpSettings,
}

/// Checks the arguments.
///
/// # Errors
/// The first invalid argument.
fn resolve(
    args: &PlanArgs,
    now: &Zoned,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<ForecastRequest, UsageError> {
    Ok(ForecastRequest {
        url: urls::one(&args.url)?,
        deadline: deadline_flag(&args.deadline, now)?,
        measure: args.measure,
        http: http(&args.requests, &args.timeouts, variable)?,
    })
}

fn print(report: &ForecastReport, json: bool) -> ExitCode {
    let text = if json {
        report.json()
    } else {
        report.to_string()
    };
    match shown(&text) {
        ExitCode::Done => ExitCode::of_verdict(report.verdict),
        failed => failed,
    }
}

/// The forecast. Its field names are an interface, described in `docs/json.md`.
#[derive(Debug, Serialize)]
struct ForecastReport {
    /// The URL as given, without credentials.
    url: String,
    /// Size, bytes.
    bytes: Option<u64>,
    /// Whether the server serves ranges that can be trusted.
    ranges: bool,
    /// The moment of the forecast.
    #[serde(serialize_with = "moment")]
    now: Timestamp,
    #[serde(serialize_with = "moment")]
    deadline: Timestamp,
    /// byte/s.
    needed_rate: Option<f64>,
    measured_s: Option<f64>,
    measured_bytes: Option<u64>,
    /// byte/s.
    polite_rate: Option<f64>,
    /// byte/s.
    peak_rate: Option<f64>,
    verdict: Verdict,
    /// The reason for the verdict.
    explanation: &'static str,
    #[serde(serialize_with = "optional_moment")]
    latest_start: Option<Timestamp>,
    latest_start_past: Option<bool>,
    /// The local time zone, for people. Programs get UTC.
    #[serde(skip)]
    zone: TimeZone,
}

impl ForecastReport {
    /// The report at `now`, in the time zone of `now`.
    fn new(request: &ForecastRequest, measured: &PathMeasurement, now: &Zoned) -> Self {
        let deadline = request.deadline;
        let at = now.timestamp();
        // A past deadline leaves no time.
        let left = Duration::try_from(deadline.duration_since(at)).unwrap_or_default();
        let measurement = measured.measurement;
        let rates = measurement.map(|measurement| measurement.rates);
        let forecast = Forecast::new(left, measured.bytes, rates);
        let latest_start = forecast
            .lead
            .and_then(|lead| deadline.checked_sub(lead).ok());
        Self {
            url: without_credentials(&request.url).into(),
            bytes: measured.bytes,
            ranges: measured.ranges,
            now: at,
            deadline,
            needed_rate: forecast.needed,
            measured_s: measurement.map(|measurement| measurement.elapsed.as_secs_f64()),
            measured_bytes: measurement.map(|measurement| measurement.bytes),
            polite_rate: rates.map(|rates| rates.polite),
            peak_rate: rates.map(|rates| rates.peak),
            verdict: forecast.verdict,
            explanation: explanation(&forecast, measured, left),
            latest_start,
            latest_start_past: latest_start.map(|start| start < at),
            zone: now.time_zone().clone(),
        }
    }

    /// The report as one line of JSON.
    fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers, texts and options only")
    }

    fn size(&self) -> String {
        let ranges = match self.ranges {
            true => "served in ranges",
            false => "not served in ranges",
        };
        match self.bytes {
            Some(bytes) => format!("{}, {ranges}", BinaryBytes(bytes)),
            None => format!("unknown to the server; {ranges}"),
        }
    }

    fn measured(&self) -> String {
        match (self.polite_rate, self.peak_rate, self.measured_s) {
            (Some(polite), Some(peak), Some(seconds)) => format!(
                "{} on average while yielding, {} at best, in {seconds:.1} s",
                per_second(polite),
                per_second(peak)
            ),
            _ => "nothing".to_owned(),
        }
    }

    fn when(&self, moment: Timestamp) -> String {
        let local = moment.to_zoned(self.zone.clone());
        let from_now = moment.duration_since(self.now);
        let span = |span: SignedDuration| {
            let whole = SignedDuration::from_secs(span.as_secs());
            format!("{whole:#}")
        };
        let relation = if from_now.is_negative() {
            format!("already past, by {}", span(-from_now))
        } else {
            format!("in {}", span(from_now))
        };
        format!("{}, {relation}", local.strftime("%Y-%m-%d %H:%M:%S %Z"))
    }
}

impl Display for ForecastReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needed = match self.needed_rate {
            Some(needed) => format!("{} from now on", per_second(needed)),
            None if self.deadline <= self.now => "there is no time left".to_owned(),
            None => "unknown".to_owned(),
        };
        let latest_start = match self.latest_start {
            Some(start) => self.when(start),
            None => "unknown".to_owned(),
        };
        let verdict = match self.verdict {
            Verdict::Comfortable => "comfortable",
            Verdict::Tight => "tight",
            Verdict::Impossible => "impossible as best effort",
            Verdict::Unknown => "unknown",
        };
        writeln!(f, "size          {}", self.size())?;
        writeln!(f, "deadline      {}", self.when(self.deadline))?;
        writeln!(f, "needed        {needed}")?;
        writeln!(f, "measured      {}", self.measured())?;
        writeln!(f, "verdict       {verdict}: {}", self.explanation)?;
        write!(f, "latest start  {latest_start}")
    }
}

fn explanation(forecast: &Forecast, measured: &PathMeasurement, left: Duration) -> &'static str {
    match forecast.verdict {
        Verdict::Comfortable if measured.bytes == Some(0) => "the file is empty",
        Verdict::Comfortable => "at most 80 % of the average is needed",
        Verdict::Tight => "more than 80 % of the average is needed, but no more than the best",
        Verdict::Impossible if left.is_zero() => "the deadline is over",
        Verdict::Impossible => {
            "more than the best of one connection is needed; more of them help only if the \
             server limits each"
        }
        Verdict::Unknown if measured.bytes.is_none() => "the server does not tell the size",
        Verdict::Unknown if !measured.ranges => {
            "without ranges that can be trusted nothing was measured"
        }
        Verdict::Unknown => "nothing was measured",
    }
}

/// RFC 3339 in UTC, to the millisecond.
fn moment<S: serde::Serializer>(moment: &Timestamp, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(&format_args!("{moment:.3}"))
}

fn optional_moment<S: serde::Serializer>(
    at: &Option<Timestamp>,
    out: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => moment(at, out),
        None => out.serialize_none(),
    }
}

#[cfg(test)]
mod tests;
