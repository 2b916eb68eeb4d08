//! From the arguments of `fairbat put` to a library call.

use std::ffi::OsString;

use fairbat::upload::{UploadRequest, UploadSettings, target_url};
use jiff::Zoned;

use super::{UsageError, deadline, http, max_time, optional, rate, retry, urls, value, weight};
use crate::args::PutArgs;

/// Turns the arguments of `fairbat put`, given at `now`, into a library call;
/// `seed` is the one to take unless one was given.
///
/// # Errors
/// The first thing that is wrong with them.
pub(crate) fn upload(
    args: &PutArgs,
    now: &Zoned,
    variable: &dyn Fn(&str) -> Option<OsString>,
    seed: u64,
) -> Result<(UploadSettings, UploadRequest), UsageError> {
    let settings = UploadSettings {
        http: http(&args.requests, &args.timeouts, variable)?,
        weight: value("--weight", &args.pace.weight, weight)?,
        sender: args.pace.sender.into(),
        retry: retry(&args.failures)?,
        limit_rate: optional("--limit-rate", &args.pace.limit_rate, rate)?.flatten(),
        max_time: max_time(&args.pace.max_time)?,
        seed: args.messages.seed.unwrap_or(seed),
    };
    Ok((settings, request(args, now)?))
}

fn request(args: &PutArgs, now: &Zoned) -> Result<UploadRequest, UsageError> {
    if args.file.as_os_str() == "-" {
        return Err(UsageError::new(
            "FILE -: an upload must be able to start over, and standard input cannot be read \
             again; save it to a file first (./- for one called -)",
        ));
    }
    let url = target_url(&urls::one(&args.url)?, &args.file).ok_or_else(|| {
        UsageError(format!(
            "{}: this has no name to use at the server; end the URL with one",
            args.file.display()
        ))
    })?;
    Ok(UploadRequest {
        file: args.file.clone(),
        url,
        deadline: optional("--deadline", &args.pace.deadline, |text| {
            deadline(text, now)
        })?,
        create_only: args.create_only,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dalbe::sender::SenderPolicy;

    use super::*;
    use crate::args::tests::put_from;

    fn ask(words: &[&str]) -> Result<(UploadSettings, UploadRequest), String> {
        let now = "2026-03-01T14:00:00+01:00[+01:00]"
            .parse()
            .expect("a moment");
        let variable = |name: &str| (name == "HOME").then(|| "/home/me".into());
        upload(&put_from(words), &now, &variable, 7).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_and_a_url_are_enough() {
        let (settings, request) = ask(&["a/f", "http://me:pw@h/d/"]).expect("it is right");
        assert_eq!(request.url.as_str(), "http://me:pw@h/d/f");
        assert_eq!(request.file, std::path::Path::new("a/f"));
        assert_eq!((request.deadline, request.create_only), (None, false));
        assert_eq!(settings.sender, SenderPolicy::Vegas);
        assert_eq!((settings.weight, settings.seed), (0.02, 7));
        assert_eq!((settings.limit_rate, settings.max_time), (None, None));
        assert_eq!(settings.retry.limit, Some(20));
    }

    #[test]
    fn it_takes_the_flags_of_get() {
        let flags = [
            "--deadline=06:00",
            "--weight=0.5",
            "--sender=cdg",
            "--limit-rate=1K",
            "--max-time=1h",
            "--retry=3",
            "--create-only",
            "-uyou:pw",
            "-HX-A: b",
            "-n",
            "--seed=9",
            "f",
            "http://h/g",
        ];
        let (settings, request) = ask(&flags).expect("it is right");
        let deadline = request.deadline.expect("one was given");
        assert_eq!(deadline.to_string(), "2026-03-02T05:00:00Z");
        assert!(request.create_only);
        assert_eq!(request.url.as_str(), "http://h/g");
        assert_eq!((settings.weight, settings.seed), (0.5, 9));
        assert_eq!(settings.sender, SenderPolicy::Cdg);
        assert_eq!(settings.limit_rate, Some(1024));
        assert_eq!(settings.max_time, Some(Duration::from_secs(3600)));
        assert_eq!(settings.retry.limit, Some(3));
        assert_eq!(settings.http.headers.len(), 1);
        assert_eq!(settings.http.netrc, Some("/home/me/.netrc".into()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, expected) in [
            (&["-", "http://h/f"][..], "standard input"),
            (&["..", "http://h/"], "no name"),
            (&["f", "example.org/f"], "https://example.org/f ?"),
            (&["f", "ftp://h/f"], "http and https"),
            (&["--weight=2", "f", "http://h/f"], "--weight"),
            (&["--deadline=soon", "f", "http://h/f"], "--deadline"),
            (
                &["-H", "Content-Range: bytes 0-1/2", "f", "http://h/f"],
                "content-range",
            ),
        ] {
            let error = ask(words).expect_err(expected);
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
}
