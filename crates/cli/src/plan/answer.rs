//! The answer of `fairbat plan`, as one JSON object or in a few lines for
//! people. Pure.

use std::fmt::{self, Display};
use std::time::Duration;

use fairbat::http::without_credentials;
use fairbat::path_measurement::PathMeasurement;
use fairbat::path_measurement::forecast::{Forecast, Verdict};
use indicatif::BinaryBytes;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde::Serialize;

use crate::settings::Question;

/// Everything there is to tell. Its field names are an interface,
/// `docs/json.md`.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    /// As given, without credentials.
    url: String,
    /// Size, bytes.
    bytes: Option<u64>,
    /// Whether ranges of it can be fetched and trusted.
    ranges: bool,
    /// The moment that the answer holds for.
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
    pub(super) verdict: Verdict,
    /// Why the verdict is what it is.
    explanation: &'static str,
    #[serde(serialize_with = "optional_moment")]
    latest_start: Option<Timestamp>,
    latest_start_past: Option<bool>,
    /// For people; programs get UTC.
    #[serde(skip)]
    zone: TimeZone,
}

impl Answer {
    /// The answer at `now`, told in its time zone.
    pub(super) fn new(question: &Question, survey: &PathMeasurement, now: &Zoned) -> Self {
        let deadline = question.deadline;
        let at = now.timestamp();
        // Of a deadline that is over nothing is left.
        let left = Duration::try_from(deadline.duration_since(at)).unwrap_or_default();
        let measurement = survey.measurement;
        let rates = measurement.map(|measurement| measurement.rates);
        let forecast = Forecast::new(left, survey.bytes, rates);
        let latest_start = forecast
            .lead
            .and_then(|lead| deadline.checked_sub(lead).ok());
        Self {
            url: without_credentials(&question.url).into(),
            bytes: survey.bytes,
            ranges: survey.ranges,
            now: at,
            deadline,
            needed_rate: forecast.needed,
            measured_s: measurement.map(|measurement| measurement.elapsed.as_secs_f64()),
            measured_bytes: measurement.map(|measurement| measurement.bytes),
            polite_rate: rates.map(|rates| rates.polite),
            peak_rate: rates.map(|rates| rates.peak),
            verdict: forecast.verdict,
            explanation: explanation(&forecast, survey, left),
            latest_start,
            latest_start_past: latest_start.map(|start| start < at),
            zone: now.time_zone().clone(),
        }
    }

    /// The answer as one line of JSON.
    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers, texts and options only")
    }

    fn size(&self) -> String {
        let ranges = match self.ranges {
            true => "served in ranges",
            false => "not served in ranges",
        };
        match self.bytes {
            Some(bytes) => format!("{}, {ranges}", BinaryBytes(bytes)),
            None => format!("the server does not tell it; {ranges}"),
        }
    }

    fn measured(&self) -> String {
        match (self.polite_rate, self.peak_rate, self.measured_s) {
            (Some(polite), Some(peak), Some(seconds)) => format!(
                "{} on average while yielding, {} at best, in {seconds:.1} s",
                rate(polite),
                rate(peak)
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

impl Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needed = match self.needed_rate {
            Some(needed) => format!("{} from now on", rate(needed)),
            None if self.deadline <= self.now => "more than there is time for".to_owned(),
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

fn explanation(forecast: &Forecast, survey: &PathMeasurement, left: Duration) -> &'static str {
    match forecast.verdict {
        Verdict::Comfortable if survey.bytes == Some(0) => "the file is empty",
        Verdict::Comfortable => "at most 80 % of the average is needed",
        Verdict::Tight => "more than 80 % of the average is needed, but no more than the best",
        Verdict::Impossible if left.is_zero() => "the deadline is over",
        Verdict::Impossible => "more than the best is needed; one connection cannot carry it",
        Verdict::Unknown if survey.bytes.is_none() => "the server does not tell the size",
        Verdict::Unknown if !survey.ranges => {
            "without ranges that can be trusted nothing was measured"
        }
        Verdict::Unknown => "nothing was measured",
    }
}

/// Saturates; for show only.
fn rate(rate: f64) -> String {
    format!("{}/s", BinaryBytes(rate as u64))
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
