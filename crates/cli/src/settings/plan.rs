//! From the arguments of `fairbat plan` to what it has to find out.

use std::ffi::OsString;
use std::time::Duration;

use fairbat::settings::HttpSettings;
use fairbat::units::parse_duration;
use jiff::{Timestamp, Zoned};
use url::Url;

use super::{UsageError, deadline, http, urls, value};
use crate::args::PlanArgs;

/// Can this be there by then?
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) url: Url,
    pub(crate) deadline: Timestamp,
    /// How long to measure at most; zero is not at all.
    pub(crate) measure: Duration,
    pub(crate) http: HttpSettings,
}

/// Turns the arguments of `fairbat plan`, given at `now`, into its question.
///
/// # Errors
/// The first thing that is wrong with them.
pub(crate) fn question(
    args: &PlanArgs,
    now: &Zoned,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Question, UsageError> {
    Ok(Question {
        url: urls::one(&args.url)?,
        deadline: value("--deadline", &args.deadline, |text| deadline(text, now))?,
        measure: value("--measure", &args.measure, parse_duration)?,
        http: http(&args.requests, &args.timeouts, variable)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::tests::plan_from;

    fn ask(words: &[&str]) -> Result<Question, String> {
        let now = "2026-03-01T14:00:00+01:00[+01:00]"
            .parse()
            .expect("a moment");
        let variable = |name: &str| (name == "HOME").then(|| "/home/me".into());
        question(&plan_from(words), &now, &variable).map_err(|error| error.to_string())
    }

    #[test]
    fn a_question_is_a_url_a_deadline_and_a_measure() {
        let plain = ask(&["--deadline", "06:00", "http://me:pw@h/f"]).expect("it is right");
        assert_eq!(plain.url.as_str(), "http://me:pw@h/f");
        assert_eq!(plain.deadline.to_string(), "2026-03-02T05:00:00Z");
        assert_eq!(plain.measure, Duration::from_secs(10));
        assert_eq!(plain.http.connect_timeout, Some(Duration::from_secs(30)));
        assert!(plain.http.user.is_none() && plain.http.headers.is_empty());
    }

    #[test]
    fn it_takes_the_flags_of_requests() {
        let flags = [
            "--deadline=2026-03-01T12:00:00Z",
            "--measure=0",
            "-uyou:pw",
            "-HX-A: b",
            "-n",
            "--cacert=ca.pem",
            "--connect-timeout=0",
            "--stall-timeout=3s",
            "http://h/f",
        ];
        let question = ask(&flags).expect("it is right");
        // A deadline that is over is an answer too.
        assert_eq!(question.deadline.to_string(), "2026-03-01T12:00:00Z");
        assert_eq!(question.measure, Duration::ZERO);
        let http = question.http;
        assert_eq!(http.user.map(|user| user.user), Some("you".to_owned()));
        assert_eq!(http.headers.len(), 1);
        assert_eq!(http.netrc, Some("/home/me/.netrc".into()));
        assert_eq!(http.cacert, Some("ca.pem".into()));
        assert_eq!(http.connect_timeout, None);
        assert_eq!(http.stall_timeout, Some(Duration::from_secs(3)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, expected) in [
            (["--deadline", "soon", "http://h/f"], "--deadline: \"soon\""),
            (
                ["--deadline=4h", "--measure=x", "http://h/f"],
                "--measure: \"x\"",
            ),
            (["--deadline=4h", "--user=me", "http://h/f"], "--user"),
            (
                ["--deadline", "4h", "example.org/f"],
                "https://example.org/f ?",
            ),
        ] {
            let error = ask(&words).expect_err(expected);
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
}
