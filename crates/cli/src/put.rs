//! `fairbat put`: turns its flags into settings and makes the library call.

use std::ffi::OsString;

use fairbat::upload::{self, UploadRequest, UploadSettings, target_url};
use jiff::Zoned;

use crate::args::PutArgs;
use crate::console::log_filter;
use crate::exit::ExitCode;
use crate::session::{self, Options, now, random_seed, warn_if_late};
use crate::settings::{UsageError, http, nonzero, optional_deadline, paths, retry, urls};

/// Runs the command.
pub(crate) fn run(args: &PutArgs) -> ExitCode {
    let variable = |name: &str| std::env::var_os(name);
    let arguments = resolve(args, &now(), &variable, random_seed());
    let arguments = arguments.and_then(|arguments| Ok((arguments, log_filter(&args.log)?)));
    session::with_valid(arguments, |((settings, request), filter)| {
        let options = Options {
            messages: &args.messages,
            log: &args.log,
            filter,
            fail_late: args.limits.fail_late,
            stopping: "stopping; the same command starts the upload over",
        };
        session::run(options, |stop, events| {
            warn_if_late(request.deadline);
            upload::run(settings, request, stop, events)
        })
    })
}

/// Turns the arguments into the arguments of the library call. `seed` is for a run
/// without `--seed`.
///
/// # Errors
/// The first invalid argument.
fn resolve(
    args: &PutArgs,
    now: &Zoned,
    variable: &dyn Fn(&str) -> Option<OsString>,
    seed: u64,
) -> Result<(UploadSettings, UploadRequest), UsageError> {
    let settings = UploadSettings {
        http: http(&args.requests, &args.timeouts, variable)?,
        paths: paths::of_flags(&args.speed.paths)?,
        weight: args.speed.weight,
        sender: args.speed.sender.into(),
        controller: args.speed.controller.into(),
        retry: retry(&args.failures)?,
        limit_rate: args.limits.limit_rate.and_then(nonzero),
        machine: args.lane.machine("put", args.speed.weight),
        max_time: args.limits.max_time.and_then(nonzero),
        seed: args.messages.seed.unwrap_or(seed),
    };
    if args.file.as_os_str() == "-" {
        return Err(UsageError::new(
            "FILE -: an upload must be able to start over, and standard input cannot be read \
             again; save it to a file first (./- for a file named -)",
        ));
    }
    if args.file.to_str().is_some_and(|file| file.contains("://")) {
        return Err(UsageError::new(
            "FILE is a URL: the file comes first; write fairbat put FILE URL",
        ));
    }
    let url = target_url(&urls::one(&args.url)?, &args.file).ok_or_else(|| {
        UsageError::new(format!(
            "{}: this path has no name to use at the server; end the URL with a name",
            args.file.display()
        ))
    })?;
    let request = UploadRequest {
        file: args.file.clone(),
        url,
        deadline: optional_deadline(args.speed.deadline.as_deref(), now)?,
        create_only: args.create_only,
    };
    Ok((settings, request))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dalbe::sender::SenderPolicy;
    use dalbe::weight::ControllerPolicy;

    use super::*;
    use crate::args::tests::put_from;

    fn ask(words: &[&str]) -> Result<(UploadSettings, UploadRequest), String> {
        let now = "2026-03-01T14:00:00+01:00[+01:00]"
            .parse()
            .expect("a moment");
        let variable = |name: &str| (name == "HOME").then(|| "/home/me".into());
        let args = put_from(words).map_err(|error| error.to_string())?;
        resolve(&args, &now, &variable, 7).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_and_a_url_are_enough() {
        let (settings, request) = ask(&["a/f", "http://me:pw@h/d/"]).expect("it is right");
        assert_eq!(request.url.as_str(), "http://me:pw@h/d/f");
        assert_eq!(request.file, std::path::Path::new("a/f"));
        assert_eq!((request.deadline, request.create_only), (None, false));
        assert_eq!(settings.sender, SenderPolicy::Vegas);
        assert_eq!(settings.controller, ControllerPolicy::Share);
        assert_eq!((settings.weight, settings.seed), (0.02, 7));
        assert_eq!((settings.limit_rate, settings.max_time), (None, None));
        assert_eq!(settings.retry.limit, Some(20));
    }

    #[test]
    fn the_file_comes_first() {
        let error = ask(&["http://me:pw@h/d", "f"]).expect_err("they are swapped");
        assert!(error.contains("fairbat put FILE URL"), "{error}");
        assert!(!error.contains("pw"), "{error}");
    }

    #[test]
    fn it_takes_the_flags_of_get() {
        let flags = [
            "--deadline=06:00",
            "--weight=0.5",
            "--sender=cdg",
            "--controller=pid",
            "--limit-rate=1K",
            "--max-time=1h",
            "--retry=3",
            "--create-only",
            "--interface=lo:limit=1K,none0",
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
        assert_eq!(settings.controller, ControllerPolicy::Pid);
        assert_eq!(settings.limit_rate, Some(1024));
        assert_eq!(settings.paths.len(), 2);
        assert_eq!(settings.paths[0].limit_rate, Some(1024));
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
            (&["--interface=none0", "f", "http://h/f"], "none0"),
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
